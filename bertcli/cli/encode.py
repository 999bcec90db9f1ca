"""bertcli encode"""

from __future__ import annotations

from bertcli.cli.command import command
from bertcli.cli.job import Job
from bertcli.cli.options import (
    InputOptions,
    LengthOptions,
    LongOptions,
    ModelOptions,
    OutputOptions,
    SearchOptions,
    WorkOptions,
)
from bertcli.cli.running import MASKED_SAMPLE, open_model, prepare
from bertcli.cli.vector_options import VectorOptions


@command("encode")
def encode(
    texts: InputOptions,
    length: LengthOptions,
    model: ModelOptions,
    output: OutputOptions,
    work: WorkOptions,
    long: LongOptions,
    search: SearchOptions,
    vectors: VectorOptions,
) -> None:
    """Turn texts into vectors.

    bertcli encode "The cat sat on the mat." --format json
    bertcli encode -i sentences.txt -o vectors.npy
    bertcli encode -i corpus.jsonl --column body -o vectors.parquet --id-column id
    bertcli encode -i huge.jsonl -o vectors.npy --resume --keep-going
    bertcli encode --similarity "a cup of tea" "a mug of coffee" "a red car"
    bertcli encode --query "a hot drink" --against vectors.npy -i sentences.txt
    bertcli encode -m sentence-transformers/all-MiniLM-L6-v2 "How are you?"

    Files: .json and .jsonl hold records; .npy, .npz and .safetensors hold an
    array "embeddings", one row per text; .parquet (needs pyarrow) holds the
    vectors next to id and text. With --pooling none there is one row per token,
    and an array "offsets" says where each text begins; int8 adds an array
    "scales".

    A file appears under its name only when it is complete. A run of ten seconds
    or more keeps its progress after a crash or Ctrl-C: repeat the command with
    --resume to continue it; the result is the same, byte for byte. With
    --keep-going a text that cannot be used has zeros for its row, and
    FILE.errors.jsonl says why.
    """
    vectors.refuse_contradictions(long)
    prepare(work)
    if search.given:
        from bertcli.cli.search import Search

        wanted = Search(search, texts, output, vectors.id_column)
        wanted.refuse(long, other=vectors.similarity or vectors.stored_smaller or not vectors.one_a_text)
        wanted.run(
            lambda: open_model(model, MASKED_SAMPLE),
            max_length=length.max_length,
            truncation=length.truncation,
            **vectors.plan,
        )
        return
    from bertcli.cli.encoding import run

    run(Job("encode", texts, length, output, work, long, vectors.by_name), vectors, model)

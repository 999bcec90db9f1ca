"""bertcli fill-mask"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from bertcli.cli.command import command
from bertcli.cli.options import InputOptions, LengthOptions, ModelOptions, OutputOptions, WorkOptions
from bertcli.cli.running import MASKED_SAMPLE, counted, open_model, prepare, read_texts
from bertcli.output.table import Cell, Column, Table

COLUMNS = (
    Column("index", number=True, varying=True),
    Column("position", number=True, varying=True),
    Column("score", number=True),
    Column("token"),
    Column("id", number=True),
    Column("sequence"),
)


@command("fill-mask")
def fill_mask(
    texts: InputOptions,
    length: LengthOptions,
    model: ModelOptions,
    output: OutputOptions,
    work: WorkOptions,
    top_k: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="K", help="How many words for a mask. (default: 5, or all targets)", show_default=False
        ),
    ] = None,
    targets: Annotated[
        str | None,
        typer.Option(metavar="A,B,C", help="Rank just these words; a word of several pieces is scored as a whole."),
    ] = None,
    joint: Annotated[
        bool,
        typer.Option(
            "--joint", metavar="", help="Fill all masks of a text together: row k of each is the k-th best filling."
        ),
    ] = False,
) -> None:
    """Say which words fit best where a text has a mask.

    bertcli fill-mask "She poured a cup of hot [MASK]."
    bertcli fill-mask "The [MASK] chased the [MASK]." --top-k 3 --joint
    bertcli fill-mask "He drank a glass of [MASK]." --targets water,milk,sand
    bertcli fill-mask -i cloze.txt --format jsonl | head
    bertcli fill-mask -m bert-base-uncased "Rome is the capital of [MASK]."

    The score is the probability among all words of the vocabulary. A text may
    have any number of masks; each is filled by itself, unless with --joint.
    """
    prepare(work)
    source = read_texts(texts)
    from bertcli.output.records import record_output

    with record_output(output.format, output.output, Table(COLUMNS, _rows)) as write:
        opened = open_model(model, MASKED_SAMPLE)
        from bertcli import tasks

        words = None if targets is None else [word.strip() for word in targets.split(",") if word.strip()]
        records = tasks.fill_mask(
            opened, source, top_k=top_k, targets=words, joint=joint,
            max_length=length.max_length, truncation=length.truncation, batch_tokens=work.batch_tokens,
        )  # fmt: skip
        for record in counted(records, "fill-mask", texts, output):
            write(record)


def _rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    for mask in record["masks"]:
        for found in mask["predictions"]:
            token = found["token"]
            id = " ".join(map(str, token)) if isinstance(token, list) else token
            yield record["index"], mask["position"], found["score"], found["token_str"], id, found["sequence"]

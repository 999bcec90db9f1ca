"""bertcli similarity: how much texts are alike."""

import logging
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from bertcli.cli.inputs import SingleTexts, read_texts
from bertcli.cli.options import EngineOptions, ModelOptions
from bertcli.cli.output import OutputOptions, write_results
from bertcli.cli.request import check_rows, note_untrained, open_model
from bertcli.cli.results import counted
from bertcli.errors import BertcliError
from bertcli.files.formats import ARRAYS, TABLES
from bertcli.report.tables import Record, Table
from bertcli.report.terminal import Column
from bertcli.report.written import say_written
from bertcli.tasks.encode import DenseOptions
from bertcli.tasks.options import option
from bertcli.tasks.registry import SENTENCE_SAMPLE

logger = logging.getLogger("bertcli")
MOST_SHOWN = 1000  # texts whose cosines are shown on standard output: some 10 MB


@dataclass(frozen=True, eq=False, repr=False)
class ComparedOptions(DenseOptions):
    """The options with which whole texts are encoded; every text must be usable."""

    not_offered: ClassVar[tuple[str, ...]] = ("layer", "normalize")
    pooling: Literal["auto", "mean", "cls", "max", "lasttoken", "pooler"] | None = option(
        "auto", "MODE", "How tokens become one vector. auto: as the model specifies (default); mean, cls, max, "
        "lasttoken, pooler.",
    )  # fmt: skip
    normalize: None = field(default=None, init=False)  # cosines are the same
    keep_going: bool = field(default=False, init=False)


@dataclass(frozen=True, eq=False, repr=False)
class ComparedTexts(SingleTexts):
    """The texts that are compared: single ones, of a file with a header."""

    not_offered: ClassVar[tuple[str, ...]] = ("no_header", "delimiter", "id_column", "keep")


@dataclass(frozen=True, eq=False, repr=False)
class ComparedOutput(OutputOptions):
    """The output of cosines, which may be an array."""

    endings: ClassVar[tuple[str, ...]] = (*TABLES, *ARRAYS)


def similarity(
    texts: ComparedTexts, model: ModelOptions, output: ComparedOutput, engine: EngineOptions, options: ComparedOptions
) -> None:
    """Compare texts: the cosine similarity of every pair.

    bertcli similarity "a cup of tea" "a mug of coffee" "a red car"
    bertcli similarity -i sentences.txt --format json
    bertcli similarity -i sentences.txt -o cosines.npy
    bertcli similarity -i reports.jsonl --chunk 256 -o cosines.npz

    A file of records has one for each text; a .npy, .npz or .safetensors file
    has the array "cosine" [text, text]. Standard output shows
    at most 1,000 texts. --chunk compares the parts of long texts.
    """
    source = read_texts(texts, output)
    output.check()
    check_rows(source)
    opened = open_model(model, SENTENCE_SAMPLE, engine, options.prompt_name)
    from bertcli.tasks.compute.encode import plan
    from bertcli.tasks.compute.similarity import cosines, similarity, vectors_of
    from bertcli.tasks.running.run import results

    note_untrained(model, opened, ("encode",))
    task = plan(opened, replace(options, workers="auto"))
    logger.info("%s.", task.summary)
    if (how := opened.kind.compared) != "cosine":
        logger.info("the checkpoint compares vectors by %s; these are cosines.", how)
    blocks, items = [], []
    with counted(results(task, source), "similarity", source, output) as computed:
        for block in computed:
            blocks.append(block)
            items += block.items
            if output.output is None and len(items) > MOST_SHOWN:
                raise BertcliError(
                    f"The cosines of more than {MOST_SHOWN:,} texts are only written to a file: -o FILE.npy."
                )
    count = len(items)
    if output.output is not None and output.ending in ARRAYS:
        from bertcli.files.arrays import FileArray
        from bertcli.files.write.save import save_stored

        save_stored(output.output, FileArray("cosine", "<f4", (count, count), cosines(vectors_of(blocks))))
        say_written(output.output)
        return
    numbers = [Column(_numbered(item.named), float) for item in items]
    first = Column("index") if options.chunk is not None else Column("index", int)
    table = Table(
        (first, Column("text"), *numbers),
        lambda record: [
            (_numbered(record) if first.number is False else record["index"], record["text"], *record["cosine"])
        ],
    )
    write_results(similarity(blocks), output, table)


def _numbered(record: Record) -> str:
    """A text's number, and after a dot that of the part of it."""
    return f"{record['index']}.{record['chunk']}" if "chunk" in record else str(record["index"])

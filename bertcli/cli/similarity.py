"""bertcli similarity: how much texts are alike."""

import logging
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from bertcli.cli.inputs import SingleTexts, read_texts
from bertcli.cli.model import note_untrained, open_model
from bertcli.cli.options import EngineOptions, ModelOptions, wrong
from bertcli.cli.output import OutputOptions, write_results
from bertcli.cli.request import check_rows
from bertcli.cli.results import counted
from bertcli.errors import BertcliError
from bertcli.files.formats import ARRAYS, TABLES
from bertcli.report.tables import Record, Row, Table
from bertcli.report.terminal import Column
from bertcli.report.written import say_written, size_on_disk
from bertcli.tasks.encode import SPEC, DenseOptions
from bertcli.tasks.options import option
from bertcli.tasks.registry import SENTENCE_SAMPLE
from bertcli.tasks.request import Request, begin

if TYPE_CHECKING:
    from bertcli.files.texts import Texts

logger = logging.getLogger("bertcli")
MOST_SHOWN = 1000  # texts whose cosines are shown on standard output: some 10 MB
MANY = 5000  # texts: what the cosines of so many take is said before any work
# The columns of a text and one of its nearest.
PAIRS = (Column("row", int), Column("other", int), Column("score", float), Column("text"), Column("other text"))


@dataclass(frozen=True, eq=False, repr=False)
class ComparedOptions(DenseOptions):
    """The options with which whole texts are encoded; every text must be usable."""

    not_offered: ClassVar[tuple[str, ...]] = ("layer", "normalize", "pooling", "truncate_dim")
    normalize: None = field(default=None, init=False)  # cosines are the same
    keep_going: bool = field(default=False, init=False)


class ComparedTexts(SingleTexts):
    """The texts that are compared: single ones, of a file with a header."""

    not_offered: ClassVar[tuple[str, ...]] = ("no_header", "delimiter", "id_column", "keep")


class ComparedOutput(OutputOptions):
    """The output of cosines, which may be an array."""

    endings: ClassVar[tuple[str, ...]] = (*TABLES, *ARRAYS)


@dataclass(frozen=True, eq=False, repr=False)
class NearestOptions:
    """Which pairs are given, where it is not all of them."""

    top_k: int | None = option(None, "K", "Of each text only the K others that are most alike, a row each.", least=1)
    min_score: float | None = option(None, "X", "With --top-k: only pairs with a cosine of at least X.", least=-1)

    def refuse_contradictions(self, output: ComparedOutput, options: ComparedOptions) -> None:
        """Wrong usage is a typer.BadParameter."""
        if self.min_score is not None and not self.min_score <= 1:
            raise wrong("--min-score", f"no cosine is {self.min_score:g}: give at most 1.")
        if self.top_k is None:
            if self.min_score is not None:
                raise wrong("--min-score", "this chooses among the nearest texts: give --top-k, too.")
            return
        if options.chunk is not None:
            raise wrong("--chunk", "with --top-k whole texts are compared: leave out one of the two.")
        if output.output is not None and output.ending in ARRAYS:
            raise wrong("--output", f"with --top-k a pair is a row: choose a file {', '.join(TABLES)}.")


def similarity(
    texts: ComparedTexts,
    model: ModelOptions,
    output: ComparedOutput,
    engine: EngineOptions,
    options: ComparedOptions,
    nearest: NearestOptions,
) -> None:
    """Compare texts: the cosine similarity of every pair.

    bertcli similarity "a cup of tea" "a mug of coffee" "a red car"
    bertcli similarity -i sentences.txt --format json
    bertcli similarity -i sentences.txt -o cosines.npy
    bertcli similarity -i reports.jsonl --chunk 256 -o cosines.npz
    bertcli similarity -i reviews.csv --column review --top-k 5 --min-score 0.9 -o pairs.csv

    A file of records has one for each text; a .npy, .npz or .safetensors file
    has the array "cosine" [text, text]. Standard output shows
    at most 1,000 texts. --chunk compares the parts of long texts.

    --top-k gives a row for each text and one of its nearest, to find duplicates
    and paraphrases: their numbers from 0, the cosine, both texts.
    """
    nearest.refuse_contradictions(output, options)
    source = read_texts(texts)
    output.check(source)
    count = check_rows(source)
    if nearest.top_k is None and count >= MANY:
        side, size = f"{count:,}", size_on_disk(4 * count**2)
        logger.info("%s × %s cosines take %s; --top-k gives those of the nearest texts alone.", side, side, size)
    opens = partial(open_model, model, SENTENCE_SAMPLE, engine, options.prompt_name)
    task: Any = begin(Request(SPEC, replace(options, workers="auto"), source, opens, output.output))
    note_untrained(model, task.model, ("encode",))
    logger.info("%s.", task.summary)
    if (how := task.model.kind.compared) != "cosine":
        logger.info("the checkpoint compares vectors by %s; these are cosines.", how)
    blocks = _encoded(task, source, output, nearest)
    if nearest.top_k is not None:
        _write_nearest(blocks, nearest.top_k, nearest.min_score, output)
    elif output.output is not None and output.ending in ARRAYS:
        _write_array(blocks, output.output)
    else:
        _write_cosines(blocks, output, has_parts=options.chunk is not None)


def _encoded(task: Any, source: "Texts", output: ComparedOutput, nearest: NearestOptions) -> list[Any]:
    """The blocks of vectors of all texts. Errors: BertcliError for more than are shown on standard output."""
    from bertcli.tasks.running.run import results

    blocks, count = [], 0
    with counted(results(task, source), "similarity", source, output) as computed:
        for block in computed:
            blocks.append(block)
            count += len(block.items)
            if output.output is None and nearest.top_k is None and count > MOST_SHOWN:
                raise BertcliError(
                    f"The cosines of more than {MOST_SHOWN:,} texts are only written to a file: -o FILE.npy."
                )
    return blocks


def _write_nearest(blocks: list[Any], top_k: int, min_score: float | None, output: ComparedOutput) -> None:
    """Write a row for each text and one of its nearest."""
    from bertcli.tasks.compute.similarity import nearest_pairs

    least = -1.0 if min_score is None else min_score
    pairs = list(nearest_pairs(blocks, top_k, least))
    if not pairs and sum(len(block.items) for block in blocks) > 1:
        logger.info("no two texts have a cosine of %g or more (--min-score).", least)
    write_results(pairs, output, Table(PAIRS, ""))


def _write_array(blocks: list[Any], file: str) -> None:
    """Write the array "cosine" [text, text]."""
    from bertcli.files.arrays import FileArray
    from bertcli.files.write.save import save_stored
    from bertcli.tasks.compute.similarity import cosines, vectors_of

    count = sum(len(block.items) for block in blocks)
    save_stored(file, FileArray("cosine", "<f4", (count, count), cosines(vectors_of(blocks))))
    say_written(file)


def _write_cosines(blocks: list[Any], output: ComparedOutput, has_parts: bool) -> None:
    """Write a record for each text, or for each part of one, with its cosines with all."""
    from bertcli.tasks.compute.similarity import similarity

    numbers = [Column(_numbered(item.named), float) for block in blocks for item in block.items]
    first = Column("index") if has_parts else Column("index", int)

    def rows_of(record: Record) -> list[Row]:
        number = _numbered(record) if has_parts else record["index"]
        return [(number, record["text"], *record["cosine"])]

    write_results(similarity(blocks), output, Table((first, Column("text"), *numbers), rows_of))


def _numbered(record: Record) -> str:
    """A text's number, and after a dot that of the part of it."""
    return f"{record['index']}.{record['chunk']}" if "chunk" in record else str(record["index"])

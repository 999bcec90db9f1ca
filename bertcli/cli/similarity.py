"""bertcli similarity: how much texts are alike."""

import logging
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

from bertcli.cli.inputs import SingleTexts, read_texts
from bertcli.cli.options import EngineOptions, ModelOptions, wrong
from bertcli.cli.output import OutputOptions, write_results
from bertcli.cli.request import check_rows, note_untrained, open_model
from bertcli.cli.results import counted
from bertcli.errors import BertcliError
from bertcli.files.formats import ARRAYS, TABLES
from bertcli.report.tables import Record, Table
from bertcli.report.terminal import Column
from bertcli.report.written import say_written, size_on_disk
from bertcli.tasks.encode import SPEC, DenseOptions
from bertcli.tasks.options import option
from bertcli.tasks.registry import SENTENCE_SAMPLE
from bertcli.tasks.request import Request, begin

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
    texts_in_all = check_rows(source)
    if nearest.top_k is None and texts_in_all >= MANY:
        side, size = f"{texts_in_all:,}", size_on_disk(4 * texts_in_all**2)
        logger.info("%s × %s cosines take %s; --top-k gives those of the nearest texts alone.", side, side, size)
    opens = partial(open_model, model, SENTENCE_SAMPLE, engine, options.prompt_name)
    task: Any = begin(Request(SPEC, replace(options, workers="auto"), source, opens, output.output))
    from bertcli.tasks.compute.similarity import cosines, nearest_pairs, similarity, vectors_of
    from bertcli.tasks.running.run import results

    note_untrained(model, task.model, ("encode",))
    logger.info("%s.", task.summary)
    if (how := task.model.kind.compared) != "cosine":
        logger.info("the checkpoint compares vectors by %s; these are cosines.", how)
    blocks, items = [], []
    with counted(results(task, source), "similarity", source, output) as computed:
        for block in computed:
            blocks.append(block)
            items += block.items
            if output.output is None and nearest.top_k is None and len(items) > MOST_SHOWN:
                raise BertcliError(
                    f"The cosines of more than {MOST_SHOWN:,} texts are only written to a file: -o FILE.npy."
                )
    if nearest.top_k is not None:
        least = -1.0 if nearest.min_score is None else nearest.min_score
        pairs = list(nearest_pairs(blocks, nearest.top_k, least))
        if not pairs and len(items) > 1:
            logger.info("no two texts have a cosine of %g or more (--min-score).", least)
        write_results(pairs, output, Table(PAIRS, ""))
        return
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

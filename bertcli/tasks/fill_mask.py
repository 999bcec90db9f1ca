"""The task fill-mask: its options, record and table. Its work is in compute/fill_mask.py."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from bertcli.files.texts import Pairs
from bertcli.report.tables import Record, Row, Table
from bertcli.report.terminal import Column
from bertcli.tasks.examples import Example, Subject
from bertcli.tasks.options import ReadOptions, option
from bertcli.tasks.registry import MASKED_SAMPLE, TEXTS_WITH_IDS, Fields, Needs, TaskSpec


@dataclass(frozen=True, eq=False, repr=False)
class FillMaskOptions(ReadOptions):
    """Find the words that fit best where a text has a mask.

    bertcli fill-mask "She poured a cup of hot [MASK]."
    bertcli fill-mask "The [MASK] chased the [MASK]." --top-k 3 --joint
    bertcli fill-mask "He drank a glass of [MASK]." --targets water,milk,sand
    bertcli fill-mask -i cloze.txt --format jsonl | head
    bertcli fill-mask -i cloze.txt -o filled.jsonl --resume --keep-going
    bertcli fill-mask -m bert-base-uncased "Rome is the capital of [MASK]."

    The score is the probability among all words of the vocabulary. A text may
    have any number of masks, filled independently unless --joint is given. A .csv,
    .tsv or .parquet file has the rows of the table.
    """

    top_k: int | None = option(None, "K", "How many words per mask. (default: 5, or all targets)", least=1)
    targets: Iterable[str] | str | None = option(
        None, "A,B,C", "Rank only these words; a word of several pieces is scored as a whole.", read=str
    )
    joint: bool = option(
        False, "", "Fill all masks of a text together: row k of each is the k-th best filling, of 250 at most."
    )
    _: KW_ONLY
    pairs: Pairs = None


def record(options: FillMaskOptions) -> Fields:
    """Records {index, text, truncated, masks: [{position, predictions: [{score, token, token_str, …}, …]}, …]}.

    The `top_k` most probable pieces for every mask, independently. A target of several pieces is scored as a whole,
    with `pieces` and a list for `token`. With `joint` the masks of a text are filled together: prediction k of
    every mask belongs to the k-th best filling, and has its score; `top_k` is then 250 at most.
    """
    token: Fields = {"token": int, "token_str": str}
    if options.targets is not None:
        token = {"token": (int, [int]), "token_str": str, "pieces?": [str]}
    predictions = [{"score": float, **token, "sequence": str}]
    return {
        "index": int,
        "text": str,
        "truncated": bool,
        "masks": [{"position": int, "predictions": predictions}],
    }


COLUMNS = (
    Column("index", int, varying=True),
    Column("position", int, varying=True),
    Column("score", float),
    Column("token"),
    Column("token_id", int),
    Column("sequence"),
)


def rows(record: Record) -> Iterator[Row]:
    """Yield a row for each word at each mask."""
    for mask in record["masks"]:
        for word in mask["predictions"]:
            token = word["token"]
            id = " ".join(map(str, token)) if isinstance(token, list) else token
            yield record["index"], mask["position"], word["score"], word["token_str"], id, word["sequence"]


def examples(subject: Subject) -> Iterator[Example]:
    """Yield a text with one mask."""
    yield Example("fill-mask", [f"She poured a cup of hot {subject.mask_token}."])


def shape(record: Record, options: Mapping[str, Any]) -> Any:
    """Shape a record as transformers' pipeline does: the predictions of a single mask, or a list of those of each."""
    masks = [mask["predictions"] for mask in record["masks"]]
    return masks[0] if len(masks) == 1 else masks


SPEC = TaskSpec(
    FillMaskOptions,
    reads=TEXTS_WITH_IDS,
    needs=lambda options: Needs("fill-mask", "mlm", MASKED_SAMPLE),
    record=record,
    shape=shape,
    table=lambda options: Table(COLUMNS, rows),
    examples=examples,
    position=3,
    other_words=("unmask", "mlm", "mask"),
)

"""The options of `bertcli evaluate`; their texts are the help of `--help`."""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from bertcli.errors import WrongOptions, check_whole
from bertcli.tasks.options import (
    DELIMITER,
    NO_HEADER,
    ReadOptions,
    delimiter_named,
    for_python,
    numbers,
    option,
    separated,
)

# Each task, and the file in evaluators/ that has its evaluator.
TASKS = {
    "sts": "similarity",
    "pairs": "similarity",
    "triplets": "similarity",
    "retrieval": "ranking",
    "rank": "ranking",
    "classification": "classification",
    "tag": "tagging",
    "answer": "answers",
    "fill-mask": "masked",
    "score": "masked",
    "minimal-pairs": "minimal_pairs",
    "bertscore": "bertscore",
}
*MOST, LAST = TASKS
if TYPE_CHECKING:
    TaskName = str
else:
    TaskName = Literal[tuple(TASKS)]
Metric = Literal["pll", "within-word", "shared"]
Scheme = Literal["IOB1", "IOB2", "BIOES", "BILOU"]
DTYPES = ("float32", "float16", "int8", "binary")
RANKS = (1, 3, 5, 10, 100)


def _renamed(text: str) -> dict[str, str]:
    """The names in a=b,c=d, each with what it stands for."""
    pairs = [pair.partition("=") for pair in separated(text)]
    if not all(name and equals and other for name, equals, other in pairs):
        raise ValueError("give the names in the data with those of the model, as in pos=positive,neg=negative.")
    return {name: other for name, _, other in pairs}


def _bound(text: str) -> tuple[str, float]:
    """METRIC=VALUE."""
    name, _, value = text.rpartition("=")
    try:
        bound = float(value)
    except ValueError:
        bound = math.nan
    if not math.isfinite(bound) or "," in text:
        raise ValueError("give one figure and the least it may be, as in ndcg@10=0.4.")
    return name, bound


def _dtypes(text: str) -> list[str]:
    names = separated(text)
    if not names or not {*names} <= {*DTYPES}:
        raise ValueError(f"choose from {', '.join(DTYPES)}.")
    return names


@dataclass(frozen=True, eq=False, repr=False)
class Evaluate(ReadOptions):
    """The task, the fields of the data, the figures. Errors: BertcliError."""

    _: KW_ONLY
    task: TaskName | None = option(None, "TASK", f"{', '.join(MOST)} or {LAST}. (default: told from the data)")
    column: str | None = option(
        None, "NAME", "The field of the text, anchor, query, question or candidate.", panel="Input"
    )
    pair_column: str | None = option(
        None,
        "NAME",
        "The field of the second text, the positive, the documents, the context or the references.",
        panel="Input",
    )
    label_column: str | None = option(
        None, "NAME", "The field of the label, score, negative, word, tags or answers.", panel="Input"
    )
    keep_going: bool = option(False, "", "Leave out rows that cannot be used, and count them.", panel="Input")
    no_header: bool = option(False, "", NO_HEADER, panel="Input")
    delimiter: str | None = option(None, "CHAR", DELIMITER, panel="Input", read=delimiter_named)
    rename_label: dict[str, str] | None = option(
        None,
        "A=B[,C=D]",
        "Rename labels of the data to the model's: A in the data is B in the model.",
        panel="Input",
        read=_renamed,
    )
    labels: list[str] | None = for_python(
        None, "tag with a model that takes types of entities: those to look for. (default: those of the data)"
    )
    threshold: float | None = for_python(
        None, "tag with a model that takes types of entities: only those that score more than this. (default: 0.5)"
    )
    scheme: Scheme | None = option(None, "NAME", "How tags are written: IOB1, IOB2, BIOES or BILOU.", panel="Input")
    split: str = option("test", "NAME", "Of a folder: which qrels/NAME.tsv. (default: test)", panel="Input")
    run: str | None = option(
        None, "FILE", "A TREC run to evaluate beside the models; with --task rank, their candidates.", panel="Input"
    )
    vectors: str | None = option(
        None, "FILE", "The corpus's vectors, made by encode, in the corpus's order.", panel="Input"
    )
    identical_ids: bool = for_python(
        False, "Of a folder: keep documents with the id of their query, which BEIR and mteb leave out."
    )
    by: str | None = option(None, "NAME", "Report the figures for each value of this field, too.")
    cluster: str | None = option(
        None,
        "NAME",
        "Resample texts with the same value in this field together, such as those of one document.",
    )
    metric: Metric | None = option(
        None, "NAME",
        "minimal-pairs: pll (default), the sum of all tokens' log-probabilities; within-word, with the later pieces of "
        "a word masked, too; shared, only the pieces that both texts have.",
    )  # fmt: skip
    candidate_column: list[str] | None = option(
        None, "NAME", "bertscore: the field of the candidates; give it again for another system's, which is compared "
        "with the first.", panel="Input",
    )  # fmt: skip
    layer: int | None = option(
        None, "N", "bertscore: compare the states after layer N. (default: the authors' choice for the model)"
    )
    idf: bool = option(False, "", "bertscore: weigh tokens by their inverse document frequency in the references.")
    baseline: str | None = option(
        None, "FILE", "bertscore: rescale with this file of baselines, such as bert-score's roberta-large.tsv."
    )
    k: list[int] | None = option(
        None, "K[,K]", "Ranks at which figures are cut. (default: 1,3,5,10,100)", read=numbers("1,10,100")
    )
    truncate_dim: list[int] | None = option(
        None, "N[,N]", "Evaluate the first N numbers of each vector, too (Matryoshka).", read=numbers("256,128,64")
    )
    dtype: list[str] | None = option(
        None, "TYPE[,TYPE]", "Evaluate vectors stored as float16, int8 or binary, too.", read=_dtypes
    )
    at_least: tuple[str, float] | None = option(
        None,
        "METRIC=VALUE",
        "End with status 1 if the figure is less (of losses, perplexities, ece, brier: more), for CI.",
        read=_bound,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, option_name, given in (("k", "--k", self.k), ("truncate_dim", "--truncate-dim", self.truncate_dim)):
            if given is not None and min(given, default=0) < 1:
                raise WrongOptions(f"{name} ({option_name}) needs whole numbers of 1 or more.", name)
        if self.layer is not None:
            check_whole("layer (--layer)", self.layer)
        if self.candidate_column is not None and self.column is not None:
            raise WrongOptions(
                "column (--column) and candidate_column (--candidate-column) name one field: give one.",
                "column",
                "candidate_column",
            )

    @property
    def reading_options(self) -> dict[str, Any]:
        """The options about reading texts, as keywords of a model's tasks."""
        return {item.name: getattr(self, item.name) for item in fields(ReadOptions)}

    @property
    def window_options(self) -> dict[str, Any]:
        """`reading_options` without `truncation`, for tasks that read long texts in windows and cut nothing."""
        return {name: value for name, value in self.reading_options.items() if name != "truncation"}

    def ranks(self, usual: Sequence[int] = RANKS) -> list[int]:
        """The ranks K of figures such as ndcg@K, ascending."""
        return sorted({*(self.k or usual)})

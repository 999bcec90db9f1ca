"""The task classify: its options, record and table. Its work is in compute/classify.py."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bertcli.errors import BertcliError, WrongOptions, quoted
from bertcli.files.texts import Pairs
from bertcli.report.tables import OWN_ID, Record, Table
from bertcli.report.terminal import Column
from bertcli.tasks.examples import CAT, CONTEXT, DOG, QUESTION, REVIEW, Example, Subject
from bertcli.tasks.options import ReadOptions, option
from bertcli.tasks.registry import MASKED_SAMPLE, SENTIMENT_SAMPLE, TEXTS_OR_CHOICES, Fields, Needs, TaskSpec, Use

Activation = Literal["softmax", "sigmoid", "none"]  # those that can be chosen
Head = Literal["classifier", "nsp"]

LONGEST_TEMPLATE = 1000  # characters


@dataclass(frozen=True, eq=False, repr=False)
class ClassifyOptions(ReadOptions):
    """Label texts, or say whether one text follows another.

    bertcli classify "I loved every minute of it."
    bertcli classify -i reviews.csv --column review -o labels.jsonl
    cat reviews.txt | bertcli classify --format jsonl
    bertcli classify -i reviews.csv --id-column id -o labels.csv --resume
    bertcli classify --head nsp "It began to rain." --text-pair "She ran inside."
    bertcli classify -m my-model --top-k 1 "How do I get my money back?"
    bertcli classify -m my-nli-model --candidates "sports,politics" "They won."
    bertcli classify -m my-swag-model "She sat." --choices "She ate." "It rained."

    Scores are the softmax over all labels. They are sigmoids for a multi-label model
    or a single label, and the raw outputs for regression.

    --candidates scores labels of your own with an NLI model: the probability that
    the text entails "This example is A."; or with a model that scores labels itself.
    --choices scores how well each choice continues the text. No model for these two
    is bundled; give one with -m.

    A .csv, .tsv or .parquet file has a row for each label of a text: index, id
    (with --id-column), text, text_pair, label, score, and error (with
    --keep-going). To measure a model on labelled texts, use bertcli evaluate.
    """

    pairs: Pairs = None
    top_k: int | None = option(None, "K", "Show only the K best labels. (default: all)", least=1)
    head: Head | None = option(None, "HEAD", "classifier, or nsp: does the second text follow the first?")
    activation: Activation | None = option(
        None, "NAME", "Turn logits into scores by softmax, sigmoid or none. (default: as the model was trained)"
    )
    candidates: Iterable[str] | str | None = option(
        None, "A,B,C", "Score these labels of your own (zero-shot), with an NLI model or one that takes them.", read=str
    )
    template: str | None = option(
        None, "TEXT", "The hypothesis, with {} for a candidate. (default: This example is {}.)"
    )
    multi_label: bool = option(False, "", "Score each candidate by itself: several may be true.")
    choices: Iterable[str] | None = None  # continuations or answers of which one is right, for a multiple-choice model

    def __post_init__(self) -> None:
        super().__post_init__()
        if sum(value is not None for value in (self.head or self.activation, self.candidates, self.choices)) > 1:
            raise BertcliError("candidates, choices, and head or activation exclude each other: give only one.")
        if self.candidates is None and (self.template is not None or self.multi_label):
            raise WrongOptions(
                "template and multi_label are for candidates (--candidates), and there are none.", "candidates"
            )
        if self.template is not None and len(self.template) > LONGEST_TEMPLATE:
            raise WrongOptions(
                f"The template has {len(self.template):,} characters, which each candidate of each text would get: "
                f"give at most {LONGEST_TEMPLATE:,} (--template).",
                "template",
            )
        if self.template is not None and "{}" not in self.template:
            raise WrongOptions(
                f"The template {quoted(self.template)} has no {{}}, where the candidate belongs: "
                "write one (--template).",
                "template",
            )


def needs(options: ClassifyOptions) -> Needs:
    """Return the needs of the options: no bundled model handles candidates or choices."""
    if options.candidates is not None:
        return Needs("classify --candidates", "classifier", None, "-m cross-encoder/nli-distilroberta-base")
    if options.choices is not None:
        fitting = "a BertForMultipleChoice that was trained on SWAG"
        return Needs("classify --choices", "multiple_choice", None, fitting)
    return Needs("classify", "classifier", MASKED_SAMPLE if options.head == "nsp" else SENTIMENT_SAMPLE)


def record(options: ClassifyOptions) -> Fields:
    """Records {index, text, text_pair, truncated, labels: [{label, score}, …]}, best label first.

    The head is "classifier" if there is one,
    else "nsp", whose labels are is_next and not_next and which needs pairs. Activations by default: softmax;
    sigmoid for a multi-label or single-label classifier; none for regression; a cross-encoder's own.
    """
    return {
        "index": int,
        "id?": (str, int),
        "text": str,
        "text_pair": (str, None),
        "truncated": bool,
        "labels": [{"label": str, "score": float}],
    }


COLUMNS = (
    Column("index", int, varying=True),
    OWN_ID,
    Column("text"),
    Column("text pair", optional=True),
    Column("label"),
    Column("score", float),
)


def examples(subject: Subject) -> Iterator[Example]:
    """Yield a review; two texts for a model of pairs; candidates; choices."""
    yield Example("classify", text_to_classify(subject))
    candidates = "sports,politics"
    yield Example(f"classify --candidates {candidates}", ["They won."], {"candidates": candidates})
    choices = ["She ate.", "It rained."]
    yield Example("classify --choices", ["She sat down.", *choices], {"choices": choices})


def text_to_classify(subject: Subject) -> list[str]:
    """Choose the arguments of an example whose result is a label or a ranking score."""
    heads = subject.model.heads
    if subject.runs("rank"):
        return [QUESTION, "--text-pair", CONTEXT]
    if "classifier" not in heads and "nsp" in heads:
        return [CAT, "--text-pair", DOG]
    return [REVIEW]


def shape(record: Record, options: Mapping[str, Any]) -> Any:
    """Shape a record as transformers' pipelines do: labels with scores; for candidates two lists beside the text."""
    labels = record["labels"]
    if "candidates" not in options:
        return labels
    return {"sequence": record["text"], **{f"{key}s": [label[key] for label in labels] for key in ("label", "score")}}


SPEC = TaskSpec(
    ClassifyOptions,
    reads=TEXTS_OR_CHOICES,
    needs=needs,
    record=record,
    shape=shape,
    table=lambda options: Table(COLUMNS, "labels"),
    examples=examples,
    position=2,
    uses=(
        Use("classify", "classifier"),
        Use("zero-shot", "classifier", asked=[{"candidates": ("good", "bad")}]),
    ),
    other_words=("predict", "sentiment", "label", "nli", "zero-shot"),
)

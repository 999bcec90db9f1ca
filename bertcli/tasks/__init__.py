"""What each task can be asked for: its options, said once, for Python and for the command line.

A task takes a frozen dataclass of this file, `Model`'s methods take its fields as keywords, and the command line is
made of them: of their names, types, bounds and help. A field that is no `option` belongs to Python alone; a command has
its second texts from its input. Nothing here loads NumPy, since `--help` reads it. The classes have `eq=False`, since
generating `__eq__` would double the 6 ms that they take.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from bertcli.errors import BertcliError, check_choice, check_count, check_kind, check_whole, shown
from bertcli.files.texts import Pairs

Activation = Literal["softmax", "sigmoid", "none"]  # those that can be chosen
Aggregation = Literal["none", "simple", "first", "max", "average"]
Head = Literal["classifier", "nsp"]
Pooling = Literal["auto", "mean", "cls", "max", "pooler", "none"]
Precision = Literal["float32", "float16", "int8", "int8-stored"]
Scoring = Literal["probability", "logits"]
Truncation = Literal["warn", "error", "silent"]
Workers = int | Literal["auto"] | None


# ------------------------------------------------------------------------------------------- how an option is declared


def option(
    default: Any,
    metavar: str,
    help: str,
    *names: str,
    panel: str | None = None,
    least: float | None = None,
    read: Callable[[str], Any] | None = None,
    **settings: Any,
) -> Any:
    """A field that is an option, called --like-the-field on the command line unless it has other `names`.

    `metavar` stands for its value in the help, and is "" for a switch. `panel` is the box of the help that shows it, by
    default that of the command's own options. `least`: the smallest number allowed. `read` makes the value of the
    command line's text, where that is more than a word or a number; it raises ValueError for wrong usage. `settings`
    are further ones of the command line.
    """
    settings |= {"metavar": metavar, "help": help, "rich_help_panel": panel}
    return field(default=default, metadata={"names": names, "least": least, "read": read, "settings": settings})


def numbers(example: str) -> Callable[[str], list[int]]:
    """A reader of whole numbers separated by commas."""

    def read(text: str) -> list[int]:
        try:
            return [int(number) for number in text.split(",")]
        except ValueError:
            raise ValueError(f"give whole numbers, as in {example}.") from None

    return read


def separated(text: str) -> list[str]:
    """The names in a text that separates them by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def kinds_of(hint: Any) -> tuple[Any, ...]:
    """The types of which a value is one."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _check(name: str, value: object, kinds: Sequence[Any], least: int | None) -> None:
    """Refuse a value that is of none of these types; None leaves it to the task or the model. Errors: BertcliError."""
    words = next((kind for kind in kinds if get_origin(kind) is Literal), None)
    if isinstance(value, str) and value in get_args(words):
        return
    if int in kinds:
        if least is not None:  # else the model sets bounds
            check_count(name, value, least)  # type: ignore[arg-type]
    elif words:
        check_choice(name, value, words)  # type: ignore[arg-type]
    else:
        check_kind(name, value, get_origin(kinds[0]) or kinds[0])


# --------------------------------------------------------------------------------------------- options of several tasks


class Checked:
    """A dataclass of options.

    Errors: BertcliError for a value of another type, below its bound, or not one of its words.
    """

    def __post_init__(self) -> None:
        for item in fields(self):  # type: ignore[arg-type]
            if item.metadata:
                _check(item.name, getattr(self, item.name), kinds_of(item.type), item.metadata["least"])


@dataclass(frozen=True, eq=False, kw_only=True)
class Reading(Checked):
    """How texts are read: where they are cut, how that is reported, how many tokens are computed together, by whom.

    truncation: one warning at the end, an error, or nothing. keep_going: a text that cannot be used becomes a Failure
    in its place. workers: processes, see `bertcli.tasks.run`; None: this one alone.
    """

    max_length: int | None = option(None, "N", "Cut texts to N tokens. (default: the model's own limit)", panel="Input")
    truncation: Truncation = option(
        "warn", "MODE", "When a text is cut: warn (default), error, or silent.", panel="Input"
    )
    keep_going: bool = option(
        False, "", 'Record a text that cannot be used with an "error" and continue.', panel="Input"
    )
    batch_tokens: int | None = option(None, "N", "Tokens computed together. (default: 1536)", panel="Work", least=1)
    workers: Workers = option(None, "N", "Processes. (default: one for every 8 threads)", panel="Work", least=1)

    @property
    def reading(self) -> "Reading":
        """These options without those of the task."""
        return Reading(**{item.name: getattr(self, item.name) for item in fields(Reading)})


@dataclass(frozen=True, eq=False, kw_only=True)
class Windows(Reading):
    """How a text beyond the limit is read; it is never cut."""

    max_length: int | None = option(
        None, "N", "Read in windows of N tokens. (default: the model's limit; answer: at most 384)", panel="Input"
    )
    truncation: Truncation = field(default="silent", init=False)
    stride: int | None = option(
        None, "N", "How many tokens windows share. (default: a quarter; answer: half, at most 128)", panel="Input",
        least=0,
    )  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class Prepared(Reading):
    """How texts are prepared before they are tokenized, and read."""

    prompt_name: str | None = option(
        None, "NAME", "The prompt of this name, as the model defines it, is put before every text."
    )
    prompt: str | None = option(
        None, "TEXT",
        "This is put before every text; '' for nothing. (default: the model's own prompt, if it has one)",
    )  # fmt: skip
    chunk: int | Sequence[int] | None = option(
        None, "N[,OVERLAP]",
        "Several vectors for a text of more than N tokens, one for each part of it, cut between words; "
        "neighboring parts share up to OVERLAP tokens.", read=numbers("256 or 256,32"),
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prompt is not None and self.prompt_name is not None:
            raise BertcliError(
                "Give a prompt or the name of one, not both (prompt, prompt_name; --prompt, --prompt-name)."
            )
        if self.chunk is None:
            return
        if self.max_length is not None:
            raise BertcliError(
                "Chunks have a length of their own: leave out max_length (--max-length), or chunk (--chunk)."
            )
        for number in self.chunk_sizes:
            check_whole("chunk (--chunk)", number)
        size, *overlap = self.chunk_sizes or [0]
        if len(overlap) > 1 or not 0 <= sum(overlap) < size:
            sizes = ",".join(map(str, self.chunk_sizes))
            raise BertcliError(
                f"chunk (--chunk) is {sizes}: give a size of 1 or more tokens, or a size and an overlap below it."
            )

    @property
    def chunk_sizes(self) -> list[int]:
        """The size of chunks and, if there is one, their overlap."""
        chunk: Any = self.chunk
        return [*chunk] if isinstance(chunk, Sequence) and not isinstance(chunk, str) else [chunk]


# ----------------------------------------------------------------------------------------------------------- the tasks


@dataclass(frozen=True, eq=False)
class Encode(Prepared):
    """How a text's vector is made."""

    pairs: Pairs = None
    pooling: Pooling | None = option(
        "auto", "MODE",
        "auto: as the model specifies (default); mean, cls, max, pooler; none: one vector per token.",
    )  # fmt: skip
    layer: int | Sequence[int] = option(
        -1, "N[,N]", "0: embeddings, N: layer N, -1: the last; several are concatenated.", read=numbers("-1 or 0,6,12")
    )
    normalize: bool | None = option(
        None, "", "Scale vectors to length 1 (default: as the model specifies).", "--normalize/--no-normalize"
    )
    _: KW_ONLY
    truncate_dim: int | None = option(
        None, "N", "Keep only the first N numbers of each vector; normalization, if any, comes after.", least=1
    )


@dataclass(frozen=True, eq=False)
class EncodeSparse(Prepared):
    """How a text's sparse vector is made; `words`: records have the pieces of the vocabulary beside their numbers."""

    pairs: Pairs = None
    words: bool = False


@dataclass(frozen=True, eq=False)
class Classify(Reading):
    """Which labels are scored, and how; only one of candidates, choices, and head or activation.

    choices: continuations or answers of which one is right, for a multiple-choice model.
    """

    pairs: Pairs = None
    top_k: int | None = option(None, "K", "Show only the K best labels. (default: all)", least=1)
    head: Head | None = option(None, "HEAD", "classifier, or nsp: does the second text follow the first?")
    activation: Activation | None = option(
        None, "NAME", "Scores by softmax, sigmoid or none (default: what the model was made for)."
    )
    candidates: Iterable[str] | str | None = option(
        None, "A,B,C", "Score these labels of your own, with an NLI model (zero-shot).", read=str
    )
    template: str | None = option(
        None, "TEXT", "The sentence that takes a candidate at {}. (default: This example is {}.)"
    )
    multi_label: bool = option(False, "", "Several candidates may hold, each with a score of its own.")
    choices: Iterable[str] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if sum(value is not None for value in (self.head or self.activation, self.candidates, self.choices)) > 1:
            raise BertcliError("candidates, choices, and head or activation exclude each other: give only one.")
        if self.candidates is None and (self.template is not None or self.multi_label):
            raise BertcliError("template and multi_label are for candidates (--candidates), and there are none.")
        if self.template is not None and "{}" not in self.template:
            raise BertcliError(
                f"The template {shown(self.template)} has no {{}}, where the candidate belongs: write one (--template)."
            )


@dataclass(frozen=True, eq=False)
class FillMask(Reading):
    """Which words are tried."""

    top_k: int | None = option(None, "K", "How many words per mask. (default: 5, or all targets)", least=1)
    targets: Iterable[str] | str | None = option(
        None, "A,B,C", "Rank only these words; a word of several pieces is scored as a whole.", read=str
    )
    joint: bool = option(
        False, "", "Fill all masks of a text together: row k of each is the k-th best filling, of 250 at most."
    )
    _: KW_ONLY
    pairs: Pairs = None


@dataclass(frozen=True, eq=False)
class Score(Reading):
    """What is scored."""

    pairs: Pairs = None
    target: str | None = option(None, "TEXT", "The true sentence: score only the tokens that the text has masked.")


@dataclass(frozen=True, eq=False, kw_only=True)
class Tag(Windows):
    """What is found."""

    aggregation: Aggregation = option(
        "simple", "NAME",
        "How tokens become entities: simple (default); first, max or average, which keep words whole; none.",
    )  # fmt: skip
    ignore: Iterable[str] = option(("O",), "A,B,C", "Labels to leave out. (default: O)", read=separated)


@dataclass(frozen=True, eq=False)
class Answer(Windows):
    """Which answers are found, and how question and context are read; contexts: one for each question, or for all."""

    contexts: Pairs = None
    top_k: int | None = option(None, "K", "How many answers per question. (default: 1)", least=1)
    max_answer_length: int | None = option(None, "N", "Tokens of an answer, at most. (default: 15)", least=1)
    no_answer: bool = option(False, "", "Let no answer, an empty text, compete with the others.")
    score: Scoring = option(
        "probability", "NAME",
        "probability (default), or logits: start + end minus those of no answer, comparable across windows.",
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Rank(Reading):
    """Which documents are ranked, and what is shown."""

    documents: Iterable[str] | None = None
    top_k: int | None = option(None, "K", "Show only the K best of each query. (default: all)", least=1)


@dataclass(frozen=True, eq=False, kw_only=True)
class Export(Checked):
    """Which results a graph has, how they are stored, and whether they are checked.

    precision: "float16" and "int8-stored" store weights in fewer bits and compute in float32, "int8" multiplies in 8
    bits, which is faster and less exact. check: run the graph once beside NumPy; in float32, one that differs by more
    than 1e-4 is refused.
    """

    head: str | None = option(
        None, "NAME",
        "The head that gives logits, as in classifier or mlm; none: hidden states. "
        "(default: the one the model was made for)",
    )  # fmt: skip
    pooling: Pooling | None = option(
        None, "HOW",
        "Give a vector for each text: auto (as the model's files say), mean, cls, max, pooler; or none. "
        "(default: auto for sentence models)",
    )  # fmt: skip
    normalize: bool | None = option(
        None, "", "Scale it to length 1. (default: as the model's files say)", "--normalize/--no-normalize"
    )
    opset: int = option(20, "N", "Version of ONNX's operators, from 18. (default: 20)")
    precision: Precision = "float32"
    check: bool | None = option(
        None, "", "Run it once beside NumPy. (default: if onnxruntime is installed)", "--check/--no-check"
    )

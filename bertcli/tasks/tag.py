"""The task tag: its options, record and table. Its work is in compute/tag.py."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Literal

from bertcli.errors import WrongOptions, quoted
from bertcli.report.marked import MarkedTable, Passage, mark
from bertcli.report.shades import Mark
from bertcli.report.tables import Record, Rewritten, Row, Table
from bertcli.report.terminal import Column
from bertcli.tasks.examples import Example, Subject
from bertcli.tasks.options import option, separated
from bertcli.tasks.registry import SINGLE_TEXTS, Fields, Needs, TaskSpec, Use
from bertcli.tasks.window_options import WindowOptions

NAMES, TYPES = "Angela Merkel visited Paris.", ("person", "city")  # of the examples
OF_WORDS = ("tokens", "tags")  # fields of a record, as data sets of entities call them
LONGEST_REPLACEMENT = 200  # characters in place of each entity
LONGEST_LABEL = 1000  # characters of a type of entities, which may be a sentence
Aggregation = Literal["none", "simple", "first", "max", "average"]
Decode = Literal["argmax", "legal"]


@dataclass(frozen=True, eq=False, repr=False)
class TagOptions(WindowOptions):
    """Find the names, places or other entities in texts of any length.

    bertcli tag -m dslim/bert-base-NER "Angela Merkel visited Paris."
    bertcli tag -m dslim/bert-base-NER -i letters.txt -o entities.jsonl
    bertcli tag -m my-model -i news.csv --column body -o news.html
    bertcli tag -m my-pos-model --aggregation none --ignore "" "Dogs bark."
    bertcli tag -m my-model --redact --only PER,LOC "Ann Lee went to Rome."
    bertcli tag -m my-model --labels "person, city" "Ann Lee went to Rome."
    bertcli tag -m my-model --redact -i letters -o redacted/
    bertcli tag -m my-model --redact -i people.csv --column note -o clean.csv

    A row of a .jsonl or .parquet file may have words, as data sets of entities do,
    {"tokens": ["Anna", "left"]}: its record then has tags, one for each word.

    Give a token classifier with -m, or a model that finds entities of the types that
    you name: --labels "person, product". No such model is bundled.

    A terminal shows each text with its entities marked; a pipe gets a table. start
    and end are characters of the text. A text beyond the model's limit is read in
    overlapping windows; nothing is cut. A .csv, .tsv or .parquet file has the rows
    of the table, a .html file the marked texts.

    --redact replaces entities in the text, and the redacted texts are printed, one
    a line, or written to a .txt file. A folder (-i) is written again as a folder,
    a table as a table with all its columns. Records have neither the text nor its
    words, but what was hidden where. Whole words are replaced, also where the model
    gives only a part of a word a label. An entity that the model misses stays in
    the text.
    """

    _: KW_ONLY
    aggregation: Aggregation = option(
        "simple", "NAME",
        "How tokens become entities: simple (default); first, max or average, which keep words whole; none.",
    )  # fmt: skip
    decode: Decode = option(
        "argmax", "NAME",
        "How labels are chosen: argmax (default), each token's likeliest; legal, the likeliest labels that together "
        "obey their scheme, such as BIO.",
    )  # fmt: skip
    ignore: Iterable[str] = option(("O",), "A,B,C", "Labels to leave out. (default: O)", read=separated)
    labels: Iterable[str] | None = option(
        None,
        "A,B,C",
        "The types of entities to find, in words of your own, with a model that takes them.",
        read=separated,
    )
    nested: bool = option(False, "", "With --labels: an entity may lie inside another.")
    multi_label: bool = option(False, "", "With --labels: the same words may have several labels.")
    redact: bool = option(False, "", "Give the text with each entity replaced by its label, as in [PER].")
    redact_with: str | None = option(None, "TEXT", "With --redact: put this text in place of each entity.")
    only: Iterable[str] | None = option(
        None, "A,B,C", "With --redact: replace only entities with these labels.", read=separated
    )
    keep_text: bool = option(
        False, "", "With --redact: keep the text and its words in records, beside the redacted text."
    )
    threshold: float | None = option(
        None, "P",
        "Find (--labels) or replace (--redact) only entities with this score or more. (default: 0.5 with --labels, "
        "else 0)",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        threshold = None if self.labels is not None else self.threshold
        of_redaction = (self.redact_with, self.only, threshold, self.keep_text or None)
        if not self.redact and of_redaction != (None, None, None, None):
            raise WrongOptions(
                "redact_with, only, keep_text and threshold need redact: add --redact, or leave out --redact-with, "
                "--only, --keep-text, --threshold.",
                "redact",
                "redact_with",
                "only",
                "keep_text",
                "threshold",
            )
        if self.labels is None and (self.nested or self.multi_label):
            raise WrongOptions(
                "nested and multi_label (--nested, --multi-label) need the types of entities to find: add labels "
                "(--labels).",
                "labels",
                "nested",
                "multi_label",
            )
        of_taggers = (self.aggregation, self.decode, tuple(self.ignore))
        if self.labels is not None and of_taggers != ("simple", "argmax", ("O",)):
            raise WrongOptions(
                "aggregation, decode and ignore (--aggregation, --decode, --ignore) are for models that label tokens: "
                "leave them out, or leave out labels (--labels).",
                "aggregation",
                "decode",
                "ignore",
                "labels",
            )
        if self.labels is not None and not labels_of(self):
            raise WrongOptions('labels (--labels) names no type of entity: give some, as in "person, city".', "labels")
        if only_of(self) == ():
            raise WrongOptions(
                "only (--only) names no label: give some, as in PER,LOC, or leave it out to hide all.", "only"
            )
        if self.redact_with is not None and len(self.redact_with) > LONGEST_REPLACEMENT:
            raise WrongOptions(
                f"redact_with (--redact-with) has {len(self.redact_with):,} characters, which each entity would get: "
                f"give at most {LONGEST_REPLACEMENT:,}.",
                "redact_with",
            )
        if longest := [label for label in labels_of(self) if len(label) > LONGEST_LABEL]:
            raise WrongOptions(
                f"labels (--labels): {quoted(longest[0])} has {len(longest[0]):,} characters: name a type in at most "
                f"{LONGEST_LABEL:,}.",
                "labels",
            )
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise WrongOptions(f"threshold (--threshold) is {self.threshold}; scores are 0 to 1.", "threshold")


def record(options: TagOptions) -> Fields:
    """Records {index, text, truncated, entities: [{entity_group, score, word, start, end}, …]}.

    start and end count characters of the text; with aggregation "none" every piece is {entity, score, index, word,
    start, end}, and index counts special tokens, too. A text of more than `max_length` tokens is read in windows,
    of which `stride` tokens overlap; of entities that overlap the longer, then the likelier one is kept.

    With `labels` a model that takes them finds entities of these types, in words of your own: spans of words whose
    score is above `threshold` (0.5), the best first, of which none overlaps another; with `nested` one may lie inside
    another, with `multi_label` the same words may have several labels.

    Of a text that is given as its words, {"tokens": ["Anna", "left"]}, the record also has these `tokens` and `tags`:
    for each word the label of its first piece, whatever `ignore` leaves out; with `labels` B-person, I-person or O. The
    text then has a space between the words. With `nested` or `multi_label` there are no tags.

    With `redact` records also have {redacted, hidden: [{label, start, end}]}: the text with entities replaced, and the
    characters of the text that are replaced, whole words. They then have neither `text` nor `word`, and no
    `tokens` and `tags`, so that they may be shared; `keep_text` keeps all of these.
    """
    if options.aggregation == "none":
        entity: Fields = {"entity": str, "score": float, "index": int, "word": str, "start": int, "end": int}
    else:
        entity = {"entity_group": str, "score": float, "word": str, "start": int, "end": int}
    of_text: Fields = {"index": int, "text": str, "truncated": bool}
    if not options.nested and not options.multi_label:
        of_text |= {f"{name}?": [str] for name in OF_WORDS}
    if not options.redact:
        return {**of_text, "entities": [entity]}
    if not options.keep_text:
        del entity["word"]
        of_text = {"index": int, "truncated": bool}
    hidden: Fields = {"label": str, "start": int, "end": int}
    return {**of_text, "entities": [entity], "redacted": str, "hidden": [hidden]}


COLUMNS = (
    Column("index", int, varying=True),
    Column("label"),
    Column("score", float),
    Column("word"),
    Column("start", int),
    Column("end", int),
)
REDACTED_COLUMNS = (Column("index", int, varying=True), Column("redacted"))
HIDDEN_COLUMNS = (Column("index", int, varying=True), Column("label"), Column("start", int), Column("end", int))
LEAD = (
    "Each text with the entities that the model found. A stronger mark has a higher score: the mean probability of "
    "its label over the tokens. It measures how sure the model is, not whether it is right."
)


REDACTED_LEAD = (
    "Each text as it is given out: a mark is what stands in place of an entity. start and end are the characters of "
    "the text that it hides. A name that the model misses stays in the text."
)


def rows(record: Record) -> Iterator[Row]:
    """Yield a row for each entity, with the words as the text has them."""
    for entity in record["entities"]:
        start, end = entity["start"], entity["end"]
        yield record["index"], _label(entity), entity["score"], record["text"][start:end], start, end


def passage(record: Record) -> Passage:
    """Mark the entities in the text."""
    entities = record.get("entities", ())
    marks = [mark(entity["start"], entity["end"], _label(entity), entity["score"]) for entity in entities]
    return Passage("", record["text"] or "", marks)


def redacted_line(record: Record) -> str:
    """Return the redacted text as a line; empty for a text that could not be used."""
    return " ".join(record.get("redacted", "").splitlines())


def rewritten(record: Record) -> Rewritten | None:
    """The redacted text, with the label of each part that it hides; None for a text that could not be used."""
    if "error" in record:
        return None
    return Rewritten(record["redacted"], [part["label"] for part in record["hidden"]])


def redacted_passage(record: Record, word: str | None) -> Passage:
    """Mark in a redacted text what stands for its hidden parts; word: as --redact-with."""
    marks: list[Mark] = []
    longer = 0
    for part in record.get("hidden", ()):
        start, end, label = part["start"], part["end"], part["label"]
        length = len(f"[{label}]" if word is None else word)
        begin = start + longer
        marks.append(Mark(begin, begin + length, 1.0, "" if word is None else label, f"{label}: {start} to {end}"))
        longer += length - (end - start)
    return Passage("", record.get("redacted", ""), marks)


def table(options: TagOptions) -> Table:
    """Choose the table: entities, or redacted texts."""
    if options.redact:
        return MarkedTable(
            REDACTED_COLUMNS,
            "",
            line_of=redacted_line,
            rewritten=None if options.keep_text else rewritten,
            passage_of=partial(redacted_passage, word=options.redact_with),
            title="Redacted texts",
            lead=REDACTED_LEAD,
            beside=Table(HIDDEN_COLUMNS, "hidden"),
            beside_title="What was hidden where",
            says_command=False,
        )
    if options.aggregation == "none":
        return MarkedTable(COLUMNS, rows, passage_of=passage, types_of=types_of, title="Entities", lead=LEAD)
    return MarkedTable(COLUMNS, rows, passage_of=passage, title="Entities", lead=LEAD)


def types_of(labels: Sequence[str]) -> dict[str, str]:
    """The type of each label that pieces have, such as PER of B-PER; one that only looks so is a type itself."""
    from bertcli.tasks.parts.label_schemes import LabelSet

    tags = LabelSet(labels).tags
    return {label: tags[label].type for label in labels}


def _label(entity: Mapping[str, Any]) -> str:
    return str(entity.get("entity_group", entity.get("entity")))


def examples(subject: Subject) -> Iterator[Example]:
    """Yield a text with names in it, and the same with types of entities."""
    yield Example("tag", [NAMES])
    yield Example("tag", ["--labels", ", ".join(TYPES), NAMES], {"labels": TYPES})


def labels_of(options: TagOptions) -> tuple[str, ...]:
    """List the options' types of entities, each once; a text is split at its commas."""
    return _names(options.labels or ())


def only_of(options: TagOptions) -> tuple[str, ...] | None:
    """List the labels whose entities are replaced, as `labels_of`; None: those of all."""
    return None if options.only is None else _names(options.only)


def _names(given: Any) -> tuple[str, ...]:
    words = separated(given) if isinstance(given, str) else [str(label).strip() for label in given]
    return tuple(dict.fromkeys(filter(None, words)))


def shape(record: Record, options: Mapping[str, Any]) -> Any:
    """Shape a record as transformers' pipeline does: the entities; with `redact`, and of words, the whole record."""
    if options.get("redact") or "tags" in record:
        return record
    if "tags?" in record:
        # Of the types of a record, both.
        return record["entities"], record
    return record["entities"]


def needs(options: TagOptions) -> Needs:
    """The head that labels tokens; with labels of your own a kind of model that takes them."""
    if options.labels is not None:
        return Needs("tag --labels")
    return Needs("tag", "token_classifier", None, "-m dslim/bert-base-NER")


# Labels of one's own, with which a model is asked whether it finds such entities.
OF_TYPES: Mapping[str, Any] = {"labels": ("person", "place")}
SPEC = TaskSpec(
    TagOptions,
    reads=SINGLE_TEXTS,
    needs=needs,
    record=record,
    shape=shape,
    table=table,
    examples=examples,
    position=5,
    uses=(Use("tag", "token_classifier", asked=[{}, OF_TYPES]), Use("entities", asked=[OF_TYPES])),
    other_words=("ner", "entities", "pos", "redact", "anonymize", "deidentify", "pseudonymize"),
)

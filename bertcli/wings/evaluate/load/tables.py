"""Read a table of labelled texts (.csv, .jsonl, .parquet …): find its task by its fields, and read each row.

SHAPES has the fields of each task. Files without named fields are read in conll.py, squad.py and beir.py.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bertcli.errors import BertcliError, quoted
from bertcli.files.read.inputs import are_separated, rows_in
from bertcli.files.read.rows import RowColumns, header_hint, unusable
from bertcli.files.texts import Text, is_unicode
from bertcli.wings.evaluate.load.labelled import LabelledText, Rated, Relevance, TaggedWords
from bertcli.wings.evaluate.options import Evaluate

# ------------------------------------------------------------------------------- what a field may hold, else ValueError


def read_text(value: Any) -> str:
    """A text."""
    if not isinstance(value, str) or not is_unicode(value):
        raise ValueError(f"{quoted(value)} is not a text.")
    return value


def read_texts(value: Any) -> list[str]:
    """One text or a list of them; also as SQuAD's answers have them, below "text"."""
    values = value.get("text") if isinstance(value, dict) else value
    if isinstance(values, str):
        values = [values]
    if not isinstance(values, list):
        raise ValueError(f"{quoted(value)} is neither a text nor a list of texts.")
    return [read_text(each) for each in values]


def read_references(value: Any) -> list[str]:
    """A text, or a list of at least one."""
    texts = read_texts(value)
    if not texts:
        raise ValueError("there is no reference to compare with.")
    return texts


def read_tags(value: Any) -> list[str]:
    """A list of tags: all like B-PER, or plain names; the evaluator, which sees all rows, tells which."""
    tags = read_texts(value)
    for tag in tags:
        if not tag.strip():
            raise ValueError(f"{quoted(tag)} is no tag.")
    return tags


def read_names(value: Any) -> list[str]:
    """A list of names, which may be numbers."""
    if isinstance(value, list):
        value = [str(name) if isinstance(name, int) else name for name in value]
    return read_texts(value)


def read_words(value: Any) -> list[str]:
    """A word, or a list of words that are as good."""
    if not value:
        raise ValueError(f"{quoted(value)} is neither a word nor a list of words.")
    return read_texts(value)


def read_number(value: Any) -> float:
    """A finite number."""
    number = _number_or_nan(value)
    if not math.isfinite(number):
        raise ValueError(f"the score {quoted(value)} is not a number.")
    return number


def read_numbers(value: Any) -> list[float]:
    """A list of numbers."""
    return [read_number(each) for each in (value if isinstance(value, list) else [value])]


def read_truth(value: Any) -> float:
    """0 or 1."""
    number = read_number(value)
    if number not in (0, 1):
        raise ValueError(f"the label {quoted(value)} is neither 0 nor 1.")
    return number


def read_label(value: Any) -> str | list[str]:
    """The name or number of a label, or a list of such."""
    if isinstance(value, list):
        return [name if isinstance(name, str) else json.dumps(name) for name in value]
    return value if isinstance(value, str) else json.dumps(value)


# --------------------------------------------------------------------------------------------------------- the tasks


class FieldSpec(NamedTuple):
    """A field of a task's rows: the names that it may have, and the function that reads its value."""

    names: tuple[str, ...]
    read: Callable[[Any], Any]
    optional: bool = False


class Shape(NamedTuple):
    """The fields of a task's rows (text, second text, label), and the name of what is counted."""

    unit: str
    fields: tuple[FieldSpec, FieldSpec, FieldSpec]


# Fields of several tasks. NOTHING: the task has no such field. UNKNOWN: it has one, but in no table.
TEXT = FieldSpec(("text", "sentence", "sentence1", "text1", "premise", "question1", "question", "review"), read_text)
SECOND = FieldSpec(("text_pair", "sentence2", "text2", "hypothesis", "question2", "answer"), read_text)
LABEL = ("label", "labels", "score", "similarity_score", "similarity", "class")
SCORES = ("score", "similarity_score", "similarity")
NOTHING, UNKNOWN = FieldSpec((), read_text, optional=True), FieldSpec((), read_text)
SHAPES = {
    "triplets": Shape(
        "triplets",
        (
            FieldSpec(("anchor", "query", "text"), read_text),
            FieldSpec(("positive", "near"), read_text),
            FieldSpec(("negative", "far"), read_text),
        ),
    ),
    "rank": Shape(
        "queries",
        (
            FieldSpec(("query",), read_text),
            FieldSpec(("documents", "passages"), read_texts),
            FieldSpec(("labels", "relevance"), read_numbers),
        ),
    ),
    "tag": Shape(
        "sentences",
        (FieldSpec(("tokens", "words"), read_texts), NOTHING, FieldSpec(("tags", "ner_tags", "labels"), read_tags)),
    ),
    "words": Shape(
        "words",
        (FieldSpec(("tokens", "words"), read_texts), NOTHING, FieldSpec(("tags", "ner_tags", "labels"), read_names)),
    ),
    "answer": Shape(
        "questions",
        (
            FieldSpec(("question",), read_text),
            FieldSpec(("context",), read_text),
            FieldSpec(("answers", "answer"), read_texts),
        ),
    ),
    "sts": Shape("pairs", (TEXT, SECOND, FieldSpec(LABEL, read_number))),
    "pairs": Shape("pairs", (TEXT, SECOND, FieldSpec(LABEL, read_truth))),
    "fill-mask": Shape("texts", (TEXT, NOTHING, FieldSpec(("word", "accepted", "target", *LABEL), read_words))),
    "classification": Shape("texts", (TEXT, SECOND._replace(optional=True), FieldSpec(LABEL, read_label))),
    "score": Shape("texts", (TEXT, NOTHING, NOTHING)),
    "minimal-pairs": Shape(
        "pairs",
        (
            FieldSpec(("better", "sentence_good", "sent_more", "text", "sentence1"), read_text),
            FieldSpec(("worse", "sentence_bad", "sent_less", "text_pair", "sentence2"), read_text),
            NOTHING,
        ),
    ),
    # SummEval has decoded and references, WMT mt and ref, the library evaluate predictions and references.
    "bertscore": Shape(
        "texts",
        (
            FieldSpec(
                ("candidate", "prediction", "predictions", "hypothesis", "hyp", "mt", "decoded", "output"), read_text
            ),
            FieldSpec(("reference", "references", "ref", "refs"), read_references),
            NOTHING,
        ),
    ),
    "retrieval": Shape("queries", (UNKNOWN, NOTHING, NOTHING)),
}
OF_ANY_NAMES = ("sts", "pairs", "classification", "score")  # tasks of fields that --column and the like may name
ONLY_BY_NAME = ("minimal-pairs", "bertscore")  # tasks whose fields are those of another one, too
TAG = re.compile(r"O|[BIESLU]-\S+")
# A mask token as vocabularies write it. Reviews have the word "mask", and other words with these letters.
MASK = re.compile(r"\[MASK\]|<mask>|<\|mask\|>|\[mask\]")
# Names of fields whose values say which rows belong together.
CLUSTER_NAME = re.compile(
    r"(?:^|_)(?:doc|document|article|author|user|speaker|dialogue?|session|conversation|thread|paragraph|passage)"
    r"(?:_?id)?$",
    re.IGNORECASE,
)
VECTORS, FOUND = ("sts", "pairs", "triplets", "retrieval"), ("retrieval", "rank")
TASKS_OF_OPTION = {  # the options that only some tasks have
    **dict.fromkeys(("truncate_dim", "dtype"), VECTORS),
    "run": FOUND,
    "vectors": ("retrieval",),
    "k": (*FOUND, "fill-mask"),
    **dict.fromkeys(("scheme", "labels", "threshold"), ("tag",)),
    "metric": ("minimal-pairs",),
    **dict.fromkeys(("candidate_column", "layer", "idf", "baseline"), ("bertscore",)),
    "rename_label": ("classification", "tag"),
}


class ReadTable(NamedTuple):
    """Rows of one task: the task, why it is this one, in a few words, the rows, and a note about them."""

    task: str
    why: str
    rows: Sequence[LabelledText]
    note: str = ""


class Fields(NamedTuple):
    """The names of a table's fields: text, second text and label (None where there is none), group and cluster."""

    text: str | None
    second: str | None
    label: str | None
    group: str | None = None
    cluster: str | None = None


def read_table(file: str, options: Evaluate, any_tag: bool) -> ReadTable:
    """Read a table, and find its task. Errors: BertcliError where its fields are those of no task."""
    columns = RowColumns(whole=True, header=not options.no_header, delimiter=options.delimiter)
    rows = [*rows_in([file], columns, keep_going=True)]
    good = [row.label for row in rows if not row.error]
    if not good:
        return ReadTable(options.task or "score", "it is empty", [LabelledText(row) for row in rows])
    known = good[0]
    task, fields = _task_and_fields(file, [*known], options, columns)
    for option, name in (("by", options.by), ("cluster", options.cluster)):
        if name not in (None, *known):
            raise _unknown(file, name, option, known)
    if options.task is None and task == "fill-mask":
        # A text and a label: a word at a mask, if most texts have one.
        with_mask = sum(MASK.search(str(values.get(fields.text))) is not None for values in good)
        task = task if 2 * with_mask > len(good) else "classification"
    if options.task is None and task == "sts":
        task = _task_by_values(str(fields.label), [values.get(fields.label) for values in good])
    why = f"its fields are {', '.join(quoted(name) for name in fields[:3] if name is not None)}"
    if options.no_header and options.label_column is None and len(known) > 1:
        why = f"no --label-column names one of its {len(known)} columns"
    fields = fields._replace(group=options.by, cluster=options.cluster)
    shape = "words" if any_tag else task
    others = (options.candidate_column or [])[1:]
    labelled = [LabelledText(row) if row.error else read_row(row, shape, fields, others) for row in rows]
    note = "" if options.cluster else looks_clustered(good, fields)
    return ReadTable(task, why, labelled, note)


def looks_clustered(values: Sequence[Mapping[str, Any]], fields: Fields) -> str:
    """A sentence about a field whose values say that some rows belong together; "" if there is none."""
    named_so = [name for name in values[0] if CLUSTER_NAME.search(name) and name not in fields]
    texts = [name for name in (fields.text, fields.second) if name is not None]
    for name in (*named_so, *texts):
        of_rows = [str(row.get(name)) for row in values]
        distinct = len({*of_rows})
        # A text may stand twice by chance; where every text does, there is a reason, such as one query's candidates.
        most = len(of_rows) - 1 if name in named_so else len(of_rows) // 2
        if 1 < distinct <= most:
            return (
                f"{len(of_rows):,} rows share {distinct:,} values of {quoted(name)}: if rows with one value belong "
                f"together, add --cluster {name}, since intervals take rows as independent."
            )
    return ""


def _unknown(file: str, name: str | None, option: str, known: Iterable[str]) -> BertcliError:
    return BertcliError(
        f"{file} has no field {quoted(name)} (--{option}); choose from {', '.join(map(quoted, known))}."
    )


def read_row(row: Text, task: str, fields: Fields, others: Sequence[str] = ()) -> LabelledText:
    """A row from its fields; its text has an error where they do not have such values.

    others: fields of further candidates (bertscore).
    """
    location = str(row.location)
    missing = next((name for name in (*fields, *others) if name is not None and row.label.get(name) is None), None)
    if missing is not None:
        return LabelledText(unusable(location, f"there is no {quoted(missing)}."))
    try:
        values: list[Any] = []
        for spec, name in zip(SHAPES[task].fields, fields[:3], strict=True):
            values.append(None if name is None else spec.read(row.label[name]))
        text, pair, label = values
        candidates = [text, *(read_text(row.label[name]) for name in others)]
        if task in ("tag", "words", "rank") and len(pair or text) != len(label):
            first = fields.second or fields.text
            raise ValueError(f"{first} and {fields.label} must be two lists of one length.")
    except ValueError as error:
        return LabelledText(unusable(location, str(error)))
    if task in ("tag", "words"):
        words: list[str] = values[0]
        text, label = " ".join(words), TaggedWords(words, label)
    if task == "rank":
        # Documents without ids get numbers, which a text comparison sorts as they stand.
        ids = [f"{i:06d}" for i in range(len(pair))]
        gains = dict(zip(ids, label, strict=True))
        documents = dict(zip(ids, pair, strict=True))
        own_order = {id: -int(id) for id in ids}  # as scores: the first document has the highest
        label, pair = Relevance(location, gains, own_order, documents), None
    if task == "bertscore":
        label, pair = Rated(candidates, pair), None
    group = None if fields.group is None else str(row.label[fields.group])
    cluster = None if fields.cluster is None else str(row.label[fields.cluster])
    return LabelledText(Text(text, pair, location, None, label), group, cluster)


def _task_and_fields(file: str, names: Sequence[str], options: Evaluate, columns: RowColumns) -> tuple[str, Fields]:
    """The task, and the fields of its rows: the first whose fields are all there, those that were named in theirs."""
    # As in all commands, the text is in the first column of a file without a header, unless another one is named.
    first = "1" if options.no_header and options.column is None else options.column
    candidates = options.candidate_column or []
    given = (next(iter(candidates), first), options.pair_column, options.label_column)
    named = [*zip(("column", "pair-column", "label-column"), given, strict=True)]
    for option, name in (*(("candidate-column", name) for name in candidates), *named):
        if name not in (None, *names):
            raise _unknown(file, name, option, names)
    tasks = [options.task] if options.task else [task for task in SHAPES if task not in ONLY_BY_NAME]
    for task in tasks:
        specs = SHAPES[task].fields
        usual = {None}.union(*(spec.names for spec in specs))
        if options.task is None and task not in OF_ANY_NAMES and not {*given} <= usual:
            continue
        chosen: list[str | None] = []
        fits = True
        for spec, name in zip(specs, given, strict=True):
            if name is None:
                name = next((usual_name for usual_name in spec.names if usual_name in names), None)
            fits = fits and (name is not None or spec.optional)
            chosen.append(name)
        if fits:
            return task, Fields(*chosen)
    what = f"not have the fields of {options.task}" if options.task else "not say by its fields what the task is"
    if options.task:
        their_names = [spec.names[0] for spec in SHAPES[options.task].fields if spec.names and not spec.optional]
        what += f" ({', '.join(their_names)})"
    what += f"; its fields are {', '.join(map(quoted, names[:20]))}"
    for task in () if options.task else ONLY_BY_NAME:
        needed = [spec for spec in SHAPES[task].fields if not spec.optional]
        if all({*spec.names} & {*names} for spec in needed):
            raise BertcliError(f"{file} does {what}, which fit only one that is chosen: give --task {task}.")
    raise BertcliError(
        f"{file} does {what}: name them with --column, "
        f"--pair-column and --label-column{'' if options.task else ', and the task with --task'}."
        f"{header_hint(names, columns) if are_separated([file]) else ''}"
    )


def _number_or_nan(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _task_by_values(name: str, values: Sequence[Any]) -> str:
    """The task of pairs of texts, by the name and the values of their label."""
    numbers = [*filter(math.isfinite, map(_number_or_nan, values))]
    if 2 * len(numbers) <= len(values):  # some may be mistakes
        return "classification"
    if {*numbers} <= {0.0, 1.0}:
        return "pairs"
    are_whole = all(number.is_integer() for number in numbers)
    return "classification" if are_whole and name not in SCORES else "sts"

"""Read a table of labelled texts (.csv, .jsonl, .parquet …): find its task by its fields, and read each row.

The tasks that are asked for say which fields their rows have. CoNLL's columns, which have no names, are in conll.py.
"""

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from bertcli.errors import BertcliError, quoted
from bertcli.files.formats import ending_of
from bertcli.files.labelled.fields import Fields, Row, RowsOfTask, ShapeOfRows, TableOptions, number_or_nan, read_text
from bertcli.files.labelled.rows import LabelledText
from bertcli.files.read.inputs import are_separated, rows_in, takes_columns
from bertcli.files.read.line_reader import LineFile
from bertcli.files.read.row_columns import RowColumns, unusable
from bertcli.files.read.rows import header_hint
from bertcli.files.texts import Text

# A mask token as vocabularies write it. Reviews have the word "mask", and other words with these letters.
MASK = re.compile(r"\[MASK\]|<mask>|<\|mask\|>|\[mask\]")
# Names of fields whose values say which rows belong together.
CLUSTER_NAME = re.compile(
    r"(?:^|_)(?:doc|document|article|author|user|speaker|dialogue?|session|conversation|thread|paragraph|passage)"
    r"(?:_?id)?$",
    re.IGNORECASE,
)
# Share of rows from which repeated ones are noted.
REPEATED = 0.05
# Names of labels whose whole numbers are scores all the same.
SCORES = ("score", "similarity_score", "similarity")


class ReadTable(NamedTuple):
    """Rows of one task: the task, why it is this one, in a few words, the rows, and a note about them."""

    task: str
    why: str
    rows: Sequence[LabelledText]
    note: str = ""


def is_table(file: str, options: TableOptions) -> bool:
    """True for a file with named fields; with --task tag, a .tsv file has CoNLL's columns."""
    return takes_columns([file]) and not (options.task == "tag" and ending_of(file) == ".tsv")


def check_columns(file: str, options: TableOptions) -> None:
    """Errors: BertcliError for options about the columns of a .csv or .tsv file where the data are no such table."""
    given = [name for name in ("no_header", "delimiter") if getattr(options, name) not in (None, False)]
    is_folder = os.path.isdir(file)
    if given and (is_folder or not are_separated([file]) or not is_table(file, options)):
        option = given[0].replace("_", "-")
        raise BertcliError(f"--{option} is for the columns of a .csv or .tsv file, and {file} has none: leave it out.")


def check_regular(file: str) -> None:
    """Errors: BertcliError for a pipe, which can be read once."""
    if not LineFile(file).regular:
        raise BertcliError(f"{file} is not a regular file, and data are read more than once: save them to a file.")


def read_table(file: str, options: TableOptions, tasks: Mapping[str, RowsOfTask]) -> ReadTable:
    """Read a table, and find which of these tasks it is for.

    Errors: BertcliError where its fields are those of no task.
    """
    columns = RowColumns(whole=True, header=not options.no_header, delimiter=options.delimiter)
    rows = [*rows_in([file], columns, keep_going=True)]
    good = [row.label for row in rows if not row.error]
    if not good:
        return ReadTable(options.task or "score", "it is empty", [LabelledText(row) for row in rows])
    # A field may be missing in any row: .jsonl leaves out what has no value.
    known = dict.fromkeys(name for values in good for name in values)
    # What the rows are for is decided by the first one's fields, and by those that are named.
    named = (options.column, options.pair_column, options.label_column, *(options.candidate_column or ()))
    deciding = [name for name in known if name in good[0] or name in named]
    task, fields, shape = _task_and_fields(file, deciding, options, columns, tasks)
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
    # Rows of another task than its fields say have the usual shape.
    shape = shape if shape in tasks[task].other_shapes else tasks[task]
    others = (options.candidate_column or [])[1:]
    labelled = [LabelledText(row) if row.error else read_row(row, shape, fields, others) for row in rows]
    note = "" if options.cluster else _note_of_clusters(good, labelled, fields)
    return ReadTable(task, why, labelled, note)


def _note_of_clusters(values: Sequence[Mapping[str, Any]], rows: Sequence[LabelledText], fields: Fields) -> str:
    """A sentence about rows that are not independent; "" if they seem to be."""
    named_so = [name for name in values[0] if CLUSTER_NAME.search(name) and name not in fields]
    texts = [name for name in (fields.text, fields.second) if name is not None]
    # A text may stand twice by chance; where every text does, there is a reason, such as one query's candidates.
    return (
        looks_clustered(values, named_so, len(values) - 1)
        or repeats(rows, fields.text)
        or looks_clustered(values, texts, len(values) // 2)
    )


def repeats(rows: Sequence[LabelledText], field: str | None) -> str:
    """A sentence about rows that say again what another says; "" if there are few. field: that of the text."""
    said = [(row.text.text, row.text.pair, str(row.text.label)) for row in rows if not row.text.error]
    repeated = len(said) - len({*said})
    if repeated < REPEATED * len(said) or not repeated:
        return ""
    cure = "leave them out" if field is None else f"--cluster {field} keeps the intervals honest"
    verb = "repeats" if repeated == 1 else "repeat"
    return f"{repeated:,} of {len(said):,} rows {verb} a text, and intervals take rows as independent: {cure}."


def looks_clustered(values: Sequence[Mapping[str, Any]], names: Iterable[str], most: int) -> str:
    """A sentence about the first of these fields that has several values, at most so many; "" if there is none."""
    for name in names:
        of_rows = [str(row.get(name)) for row in values]
        distinct = len({*of_rows})
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


def read_row(row: Text, of_task: ShapeOfRows, fields: Fields, others: Sequence[str] = ()) -> LabelledText:
    """A row from its fields; its text has an error where they do not have such values.

    others: fields of further candidates (bertscore).
    """
    location = str(row.location)
    missing = next((name for name in (*fields, *others) if name is not None and row.label.get(name) is None), None)
    if missing is not None:
        return LabelledText(unusable(location, f"there is no {quoted(missing)}."))
    try:
        values: list[Any] = []
        for spec, name in zip(of_task.fields, fields[:3], strict=True):
            values.append(None if name is None else spec.read(row.label[name]))
        more = [read_text(row.label[name]) for name in others]
        first, second, label = values
        text, pair, label = of_task.parts(Row(first, second, label, fields, location, more))
    except ValueError as error:
        return LabelledText(unusable(location, str(error)))
    group = None if fields.group is None else str(row.label[fields.group])
    cluster = None if fields.cluster is None else str(row.label[fields.cluster])
    return LabelledText(Text(text, pair, location, None, label), group, cluster)


def _task_and_fields(
    file: str, names: Sequence[str], options: TableOptions, columns: RowColumns, known: Mapping[str, RowsOfTask]
) -> tuple[str, Fields, ShapeOfRows]:
    """The task, the fields of its rows and their shape.

    It is the first whose fields are all there, those that were named in theirs.
    """
    # As in all commands, the text is in the first column of a file without a header, unless another one is named.
    first = "1" if options.no_header and options.column is None else options.column
    candidates = options.candidate_column or []
    given = (next(iter(candidates), first), options.pair_column, options.label_column)
    named = [*zip(("column", "pair-column", "label-column"), given, strict=True)]
    for option, name in (*(("candidate-column", name) for name in candidates), *named):
        if name not in (None, *names):
            raise _unknown(file, name, option, names)
    placed = sorted((of_task.place, task) for task, of_task in known.items() if of_task.place is not None)
    for task in [options.task] if options.task else [task for _, task in placed]:
        for shape in sorted((known[task], *known[task].other_shapes), key=partial(_strange_names, given)):
            usual = _usual_names(shape)
            if options.task is None and not known[task].of_any_names and not {*given} <= usual:
                continue
            chosen: list[str | None] = []
            fits = True
            for spec, name in zip(shape.fields, given, strict=True):
                if name is None:
                    name = next((usual_name for usual_name in spec.names if usual_name in names), None)
                fits = fits and (name is not None or spec.optional)
                chosen.append(name)
            if fits:
                return task, Fields(*chosen), shape
    what = f"not have the fields of {options.task}" if options.task else "not say by its fields what the task is"
    if options.task:
        their_names = [spec.names[0] for spec in known[options.task].fields if spec.names and not spec.optional]
        what += f" ({', '.join(their_names)})"
    what += f"; its fields are {', '.join(map(quoted, names[:20]))}"
    for task, of_task in {} if options.task else known.items():
        needed = [spec for spec in of_task.fields if not spec.optional]
        if of_task.place is None and all({*spec.names} & {*names} for spec in needed):
            raise BertcliError(f"{file} does {what}, which fit only one that is chosen: give --task {task}.")
    their_options = ["--column", "--pair-column", "--label-column"]
    if options.task:
        specs = known[options.task].fields
        their_options = [option for option, spec in zip(their_options, specs, strict=True) if spec.names]
        if "candidate" in specs[0].names:
            their_options[0] = "--candidate-column"
    *others, last = their_options
    options_named = f"{', '.join(others)} and {last}" if others else last
    raise BertcliError(
        f"{file} does {what}: name them with {options_named}{'' if options.task else ', and the task with --task'}."
        f"{header_hint(names, columns) if are_separated([file]) else ''}"
    )


def _usual_names(shape: ShapeOfRows) -> set[str | None]:
    return {None}.union(*(spec.names for spec in shape.fields))


def _strange_names(given: Iterable[str | None], shape: ShapeOfRows) -> int:
    """Count the names that were given and are none of a shape's own."""
    return len({*given} - _usual_names(shape))


def _task_by_values(name: str, values: Sequence[Any]) -> str:
    """The task of pairs of texts, by the name and the values of their label."""
    numbers = [*filter(math.isfinite, map(number_or_nan, values))]
    if 2 * len(numbers) <= len(values):  # some may be mistakes
        return "classification"
    if {*numbers} <= {0.0, 1.0}:
        return "pairs"
    are_whole = all(number.is_integer() for number in numbers)
    return "classification" if are_whole and name not in SCORES else "sts"

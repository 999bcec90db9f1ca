"""Labelled data from tables (csv, tsv, jsonl, parquet), and what their fields say about the task."""

import csv
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bertcli.errors import BertcliError, shown
from bertcli.evaluate.options import Evaluate
from bertcli.files.held import pyarrow
from bertcli.files.inputs import from_files
from bertcli.files.lines import LineFile

Names = tuple[str, ...]
TEXT: Names = ("text", "sentence", "sentence1", "text1", "premise", "question1", "question", "review")
SECOND: Names = ("text_pair", "sentence2", "text2", "hypothesis", "question2", "answer")
LABEL: Names = ("label", "labels", "score", "similarity_score", "similarity", "class")
SCORES = ("score", "similarity_score", "similarity")
SHAPES: dict[str, tuple[Names, Names, Names]] = {  # the fields of each task's rows: text, second, label
    "triplets": (("anchor", "query", "text"), ("positive", "near"), ("negative", "far")),
    "rank": (("query",), ("documents", "passages"), ("labels", "relevance")),
    "tag": (("tokens", "words"), (), ("tags", "ner_tags", "labels")),
    "answer": (("question",), ("context",), ("answers", "answer")),
    "sts": (TEXT, SECOND, LABEL),
    "fill-mask": (TEXT, (), ("word", "accepted", "target", *LABEL)),
    "classification": (TEXT, (), LABEL),
    "score": (TEXT, (), ()),
}
ALIKE = {"pairs": "sts"}
TABLES = (".jsonl", ".csv", ".tsv", ".parquet")
Value = Any  # what JSON holds


class Row(NamedTuple):
    """A row of a table: its place, and its fields of text, second text, label and group."""

    place: str
    values: tuple[Value, ...]
    group: str | None = None


class Item(NamedTuple):
    """One labelled item: where it stands in the data, its texts, what is true of it, the group it belongs to."""

    place: str
    texts: tuple[str, ...]
    truth: Any = None
    group: str | None = None


class Labelled(NamedTuple):
    """Data with its task, and in a few words why it is this one; `corpus`: what queries look in."""

    file: str
    task: str
    why: str
    items: list[Item]
    left_out: "LeftOut"
    corpus: Any = None


class LeftOut:
    """Rows that cannot be used: an error at the first, or (keep_going) counted."""

    def __init__(self, keep_going: bool) -> None:
        self._keep_going = keep_going
        self.count = 0
        self.first = ""

    def add(self, why: str) -> None:
        """Errors: BertcliError, if rows are not to be left out."""
        if not self._keep_going:
            raise BertcliError(f"{why.rstrip('.')}: mend it, or leave such rows out (--keep-going).")
        self.skip(why)

    def skip(self, why: str) -> None:
        """Count a row that says nothing, though nothing is wrong with it."""
        self.count += 1
        self.first = self.first or why


def ending_of(file: str) -> str:
    """The ending that says what a file holds, without a final .gz."""
    path = Path(file.lower())
    return Path(path.stem).suffix if path.suffix == ".gz" else path.suffix


def objects(file: str, left_out: LeftOut) -> Iterator[tuple[str, dict[str, Value]]]:
    """The place and content of every line of a .jsonl file; lines that are no objects are left out."""
    for line in LineFile(file):
        try:
            value = None if line.error else json.loads(line.text)
        except (ValueError, RecursionError) as error:
            left_out.add(f"{line.place}: not usable JSON ({error}).")
            continue
        if isinstance(value, dict):
            yield line.place, value
        else:
            left_out.add(line.error or f"{line.place}: not a JSON object but {shown(value)}.")


def field_names(file: str) -> list[str]:
    """The fields of a table: those of its header, of its first object, or of its schema."""
    ending = ending_of(file)
    if ending == ".parquet":
        return list(pyarrow(file)[1].read_schema(file).names)
    if ending == ".jsonl":
        return [*next(objects(file, LeftOut(True)), ("", {}))[1]]
    first = next(iter(LineFile(file)), None)
    return next(csv.reader([first.text], delimiter="\t" if ending == ".tsv" else ",")) if first else []


def fields_of(task: str, names: Sequence[str], wanted: Evaluate) -> list[str | None] | None:
    """The fields of a task's rows among these names, those asked for first; None if one is missing."""
    chosen: list[str | None] = []
    asked = (wanted.column, wanted.pair_column, wanted.label_column)
    for known, given in zip(SHAPES[ALIKE.get(task, task)], asked, strict=True):
        found = given if given in names else next((name for name in known if name in names and given is None), None)
        if found is None and (known or given is not None):
            return None
        chosen.append(found)
    return chosen


def told(file: str, names: Sequence[str], wanted: Evaluate) -> tuple[str, list[str | None]]:
    """The task, and the fields of its rows: the first whose fields are all there. Errors: BertcliError."""
    asked = {wanted.column, wanted.pair_column, wanted.label_column} - {None}
    for task, known in SHAPES.items() if wanted.task is None else ((wanted.task, ()),):
        special = wanted.task is None and task in ("triplets", "rank", "tag", "answer", "fill-mask")
        if special and not asked <= {name for some in known for name in some}:
            continue
        fields = fields_of(task, names, wanted)
        if fields is None and wanted.task == "classification":
            fields = fields_of("sts", names, wanted)
        if fields is not None:
            return task, fields
    what = (
        f"does not have the fields of {wanted.task}" if wanted.task else "does not say by its fields what the task is"
    )
    raise BertcliError(
        f"{file} {what}; they are {', '.join(map(shown, names[:20])) or 'none'}: name them with --column, "
        "--pair-column and --label-column, and the task with --task."
    )


def rows(file: str, fields: Sequence[str | None], by: str | None, left_out: LeftOut) -> Iterator[Row]:
    """The rows of a table, with these fields and the group's."""
    text, second, label = fields
    if ending_of(file) != ".jsonl":
        table = from_files([file], text, second, label_column=label, id_column=by, keep_going=True)
        for found in table:
            if found.error:
                left_out.add(found.error)
            else:
                group = None if by is None else str(found.id)
                yield Row(str(found.place), (found.text, found.pair, found.label), group)
        return
    for place, value in objects(file, left_out):
        missing = next((name for name in (*fields, by) if name is not None and value.get(name) is None), None)
        if missing is None:
            cells = tuple(None if name is None else value[name] for name in fields)
            yield Row(place, cells, None if by is None else str(value[by]))
        else:
            left_out.add(f"{place}: there is no {shown(missing)}.")


def text(row: Row, value: Value) -> str:
    """A text of a row. Errors: BertcliError for anything else."""
    if not isinstance(value, str):
        raise BertcliError(f"{row.place}: {shown(value)} is not a text.")
    return value


def number(place: str, value: Value) -> float:
    """A finite number. Errors: BertcliError for anything else."""
    try:
        found = math.nan if isinstance(value, bool | list | dict) else float(value)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise BertcliError(f"{place}: the score {shown(value)} is not a number.")
    return found


def by_values(name: str, values: Sequence[Value]) -> str:
    """The task of pairs of texts, by the name and the values of their label."""
    try:
        numbers = {float(value) for value in values if not isinstance(value, list | dict)}
    except ValueError:
        return "classification"
    if numbers <= {0.0, 1.0}:
        return "pairs"
    whole = all(value == int(value) for value in numbers if math.isfinite(value))
    return "classification" if whole and name not in SCORES else "sts"

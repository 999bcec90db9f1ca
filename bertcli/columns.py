"""The tasks as functions of batches of columns, which Ray Data, Spark, Dask and datasets map over data of any size.

What such an object was made of is all that is pickled. The first batch in a process opens the model, memory-mapped, so
that the processes of a machine share its weights; the objects of a process that name the same model share all of it.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from inspect import Parameter, Signature, signature
from math import isnan
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bertcli.engine import blas
from bertcli.engine.threads import core_count, set_thread_count
from bertcli.errors import PATH, BertcliError, check_kind, check_names, shown, shown_object
from bertcli.files.parquet import value_of
from bertcli.files.rows import Field, Wanted
from bertcli.files.texts import Texts
from bertcli.model import Model, load
from bertcli.platforms import at_fork
from bertcli.tasks import answer, classify, encode, encode_sparse, fill_mask, score, tag
from bertcli.tasks.compute.encode import Block, EncodeTask
from bertcli.tasks.compute.run import results
from bertcli.tasks.compute.task import Records, Task
from bertcli.tasks.registry import QUESTIONS, Fields, TaskSpec, compute

Columns = Mapping[str, tuple[Any, list[Any]]]  # the type of a column, as `_type` has it, and its values
OPENING = {name for name, option in signature(load).parameters.items() if option.kind is option.KEYWORD_ONLY}
UNFIT = {"chunk", "keep_going", "workers"}  # a row has one result, there is `strict`, and engines have workers
QUIET = {"truncation": "silent"}  # by default, since a column says so
SAID = {"index", "id?", "text", "text_pair", "question", "context", "truncated"}
COUNT = ("tokens", int)


class Mapped:
    """A task on batches, which get a column `output` of vectors, or of records without what the row says already.

    model (default: a bundled one, if one fits), and options of `bertcli.load`: what to open. column: the texts.
    pair_column: second texts, for tasks that take pairs (one for all rows: pairs, or contexts). Beside the output are
    `truncated` (<output>_truncated where that name is taken) and <output>_error: why a text cannot be used, whose
    result is null, or NaN in a NumPy array of vectors. strict: such a text is an error. All other options are the
    task's, see `bertcli.tasks`.

    Errors: BertcliError; TypeError for an option that does not exist.
    """

    spec: ClassVar[TaskSpec]
    usual_output: ClassVar[str] = ""  # "": the task's own name

    def __init_subclass__(cls) -> None:
        """Show the task's options in help() and notebooks."""
        cls.usual_output = cls.usual_output or cls.spec.module
        common = [option for option in signature(Mapped).parameters.values() if option.kind is not option.VAR_KEYWORD]
        of_task = [option for name, option in signature(cls.spec.options).parameters.items() if name not in UNFIT]
        options = [*common, *(option.replace(kind=Parameter.KEYWORD_ONLY) for option in of_task)]
        usual = {"output": cls.usual_output, "column": cls.spec.reads.text, "pair_column": cls._usual_pair(), **QUIET}
        usual["model"] = cls.spec.needs(cls.spec.options()).sample
        options = [option.replace(default=usual.get(option.name, option.default)) for option in options]
        cls.__signature__ = Signature(options)  # type: ignore[attr-defined]

    @classmethod
    def _usual_pair(cls) -> str | None:
        """The column of second texts: of contexts, without which there is no answer; others are asked for."""
        return "context" if cls.spec.reads is QUESTIONS else None

    def __init__(
        self,
        model: str | Path | None = None,
        column: str | None = None,
        output: str | None = None,
        *,
        pair_column: str | None = None,
        strict: bool = False,
        **more: Any,
    ) -> None:
        check_kind("model", model, PATH)
        check_names(type(self).__name__, more, {*signature(self.spec.options).parameters} | OPENING)
        for name in sorted(more):
            if name in UNFIT or (name == "pooling" and more[name] == "none"):
                raise BertcliError(f"Rows of batches cannot have {name} {shown_object(more[name])}: leave it out.")
        spec, usual_pair = self.spec, self._usual_pair()
        self._opening = tuple((name, _hashable(more.pop(name))) for name in sorted(OPENING & {*more}))
        second = more.pop(spec.reads.second, None) if spec.reads.second else None
        check_kind("the second text of all rows", second, str)
        pair = pair_column or (usual_pair if second is None else None)
        text = Field(column or spec.reads.text, "column")
        self._row = Wanted(text, Field(pair, "pair_column") if pair else None, fixed_pair=second)
        self._output = output or self.usual_output
        lists = {name: tuple(value) for name, value in more.items() if isinstance(value, Iterator)}
        quiet = QUIET if "truncation" in signature(spec.options).parameters else {}  # tag and answer cut nothing
        self._wanted: Any = spec.options(**quiet | more | lists | {"keep_going": not strict})
        needs = spec.needs(self._wanted)
        model = needs.sample if model is None else model
        if model is None:
            fitting = needs.fitting.removeprefix("-m ")
            raise BertcliError(f"There is no bundled model for {needs.task}: give one that fits, such as {fitting}.")
        self._model = Path(model).resolve() if model and Path(model).is_dir() else model

    def __repr__(self) -> str:
        column = ", ".join(repr(field.name) for field in self._row.fields)
        return f"{type(self).__name__}({str(self._model)!r}, column={column}, output={self._output!r})"

    def __call__(self, batch: Any) -> Any:
        """The batch with columns more: a dict of arrays, a pandas DataFrame, an Arrow table or record batch.

        Errors: BertcliError for a column that is missing or holds no texts, for an output that is there already, and
        whatever the task raises.
        """
        names = _names(batch)
        for field in self._row.fields:
            if names.count(field.name) != 1:
                raise BertcliError(f"In the batch {field.lacking(names)}")
        name = self._output
        cut = f"{name}_truncated" if "truncated" in (*names, name) else "truncated"
        for column in (name, cut, f"{name}_error"):
            if column in names:
                raise BertcliError(f"The batch has a column {shown(column)} already: choose another output.")
        columns = {field.name: _texts(batch, field.name) for field in self._row.fields}
        rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
        texts = [self._row.row(f"row {number}", row) for number, row in enumerate(rows)]
        task = compute(self.spec).plan(_opened(self._model, self._opening), self._wanted)
        row_results = sorted(_results(task, Texts(texts, at_hand=True)), key=lambda result: result.number)
        kind = task.width if isinstance(task, EncodeTask) else _type(self.spec.record(self._wanted))
        more: Columns = {
            name: (kind, [None if result.error else _fitted(kind, result.value) for result in row_results]),
            cut: (bool, [result.truncated for result in row_results]),
            f"{name}_error": (str, [result.error for result in row_results]),
        }
        return _joined(batch, more)


class Encode(Mapped):
    """Vectors: float32 [row, width] among NumPy arrays, fixed-size lists in Arrow, a column of arrays in pandas."""

    spec, usual_output = encode.SPEC, "embedding"


class EncodeSparse(Mapped):
    """Sparse vectors: records of indices and values."""

    spec, usual_output = encode_sparse.SPEC, "sparse"


class Classify(Mapped):
    """Labels with scores, best first; by a cross-encoder the score of each pair, which an engine can rank rows by."""

    spec = classify.SPEC


class FillMask(Mapped):
    """Words for each mask; with targets, which may have several pieces, every `token` is a list."""

    spec = fill_mask.SPEC


class Score(Mapped):
    """The probability of each token."""

    spec = score.SPEC


class Tag(Mapped):
    """Entities."""

    spec = tag.SPEC


class Answer(Mapped):
    """Answers to the questions in `column` from the contexts in `pair_column`, best first."""

    spec = answer.SPEC


# ---------------------------------------------------------------------------------------------------- opening a model

_lock = Lock()


def _hashable(value: Any) -> Any:
    """An option of `load` that can be a key, and travel: a tuple for a list."""
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else value


def _opened(model: str | Path | None, opening: tuple[tuple[str, Any], ...]) -> Model:
    """The model, opened once in a process, which works with as many threads as it was granted."""
    _use_granted_threads()  # each time: a forked process inherits the model, and not its grant
    with _lock:
        return _loaded(model, opening)


@cache
def _loaded(model: str | Path | None, opening: tuple[tuple[str, Any], ...]) -> Model:
    return load(model, **dict(opening))


# a child forked while a thread opens a model would wait for that thread, which it does not have
at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


# ------------------------------------------------------------------------------------------------------------ results


class _Result(NamedTuple):
    """Of a row: its number in the batch, its vector or record, and what is beside it."""

    number: int
    value: Any = None
    truncated: bool = False
    error: str | None = None


def _results(task: Task[Any], texts: Texts) -> Iterator[_Result]:
    for block in results(task, texts):
        if isinstance(block, Records):
            for record in block.records():
                yield _Result(record["index"], record, record.get("truncated", False), record.get("error"))
        else:
            values = block.vectors if isinstance(block, Block) else block.values()
            for item, value in zip(block.items, values, strict=True):
                yield _Result(item.index, value, item.tokens.truncated)
            for failure in block.failures:
                yield _Result(failure.index, error=failure.error)


def _type(record: Fields) -> Any:
    """The types of a record's fields that a row does not say already; of a field that may have several, the list."""
    return {name: _one_type(kind) for name, kind in record.items() if name not in SAID and (name, kind) != COUNT}


def _one_type(kind: Any) -> Any:
    if isinstance(kind, tuple):  # null and absent are null in Arrow
        return _one_type(next((one for one in kind if isinstance(one, list)), kind[0]))
    if isinstance(kind, list):
        return [_one_type(kind[0])]
    if isinstance(kind, dict):
        return {name.removesuffix("?"): _one_type(of_field) for name, of_field in kind.items()}
    return kind


def _fitted(kind: Any, value: Any) -> Any:
    """A value with the fields of its type alone; one where there may be several is a list."""
    if value is None or not isinstance(kind, dict | list):
        return value
    if isinstance(kind, dict):
        return {name: _fitted(of_field, value.get(name)) for name, of_field in kind.items()}
    return [_fitted(kind[0], item) for item in (value if isinstance(value, list) else [value])]


# ------------------------------------------------------------------------------------------------------------ batches


def _names(batch: Any) -> list[str]:
    """The names of a batch's columns. Errors: BertcliError for what is no batch."""
    if isinstance(batch, Mapping) or hasattr(batch, "assign"):
        return [*batch]
    if hasattr(batch, "append_column"):
        return list(batch.schema.names)
    kind = type(batch).__name__
    raise BertcliError(f"A batch is a dict of arrays, a pandas DataFrame or an Arrow table, not {kind}.")


def _texts(batch: Any, name: str) -> list[Any]:
    """The values of a column, None for null. Errors: BertcliError for a column of something else than texts."""
    if hasattr(batch, "append_column"):
        values = [value_of(scalar) for scalar in batch.column(name)]
    else:
        column = batch[name].to_numpy(dtype=object, na_value=None) if hasattr(batch, "assign") else batch[name]
        if isinstance(column, str):
            raise BertcliError(f"The column {shown(name)} is one text: pass batches of rows (batched=True).")
        values = column.tolist() if isinstance(column, np.ndarray) else [*column]
        values = [None if isinstance(value, float) and isnan(value) else value for value in values]
    first = next((value for value in values if value is not None), "")
    if not isinstance(first, str) and not any(isinstance(value, str) for value in values):
        raise BertcliError(f"The column {shown(name)} holds {shown_object(first)}, which is not a text.")
    return values


def _joined(batch: Any, more: Columns) -> Any:
    """The batch with more columns."""
    if isinstance(batch, Mapping):
        return {**batch, **{name: _array(*column) for name, column in more.items()}}
    if hasattr(batch, "assign"):
        cells = {name: (object if isinstance(kind, int) else kind, values) for name, (kind, values) in more.items()}
        return batch.assign(**{name: _array(*column) for name, column in cells.items()})
    arrow = import_module("pyarrow")
    for name, (kind, values) in more.items():
        batch = batch.append_column(name, arrow.array(values, _arrow(arrow, kind)))
    return batch


def _array(kind: Any, values: list[Any]) -> Any:
    """Vectors as [row, width], where null is NaN; all else as objects, or truth values."""
    if isinstance(kind, int):
        missing = np.full(kind, np.nan, np.float32)
        return np.array([missing if value is None else value for value in values], np.float32).reshape(-1, kind)
    return np.fromiter(values, bool if kind is bool else object, len(values))


def _arrow(arrow: Any, kind: Any) -> Any:
    """A type of Arrow, from one as `_type` has it."""
    if isinstance(kind, dict):
        return arrow.struct([(name, _arrow(arrow, of_field)) for name, of_field in kind.items()])
    if isinstance(kind, list):
        return arrow.list_(_arrow(arrow, kind[0]))
    if isinstance(kind, int):
        return arrow.list_(arrow.float32(), kind)
    return {str: arrow.string(), int: arrow.int64(), float: arrow.float64(), bool: arrow.bool_()}[kind]


def _use_granted_threads() -> None:
    """Use no more threads than this process was granted by an engine or a scheduler.

    Ray, Spark and Dask say so in OMP_NUM_THREADS, perhaps after NumPy was loaded, which would have obeyed it.
    """
    names = ("OMP_NUM_THREADS", "SLURM_CPUS_PER_TASK")
    granted = [int(count) for name in names if (count := os.environ.get(name, "")).isdecimal() and int(count)]
    if granted and min(granted) < core_count():
        set_thread_count(min(granted))
        blas.set_threads(min(granted))

"""A task as a function of batches of columns, which Ray Data, Spark, Dask and datasets map over data of any size.

What a `Columns` was made of is all that is pickled. The first batch in a process opens the model, memory-mapped, so
that the processes of a machine share its weights; objects of a process that name the same model share all of it.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from inspect import signature
from math import isnan
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from bertcli.engine import blas
from bertcli.engine.threads import core_count, set_thread_count
from bertcli.errors import PATH, BertcliError, check_kind, check_names, nearest, shown, shown_object
from bertcli.files.parquet import value_of
from bertcli.files.rows import Field, RowColumns
from bertcli.files.texts import Texts
from bertcli.model import Model, load
from bertcli.platforms import at_fork
from bertcli.tasks.compute.encode import Block, EncodeTask
from bertcli.tasks.compute.run import results
from bertcli.tasks.compute.task import Records, Task
from bertcli.tasks.registry import DOCUMENTS, QUESTIONS, Fields, TaskSpec, compute, spec, specs

NewColumns = Mapping[str, tuple[Any, list[Any]]]  # the type of a column, as `_type` has it, and its values
OF_LOAD = {name for name, option in signature(load).parameters.items() if option.kind is option.KEYWORD_ONLY}
UNFIT = {"chunk", "keep_going", "workers"}  # a row has one result, there is `strict`, and engines have workers
OUTPUTS = {"encode": "embedding", "encode_sparse": "sparse"}  # what results are called; others by their task's name
IN_ROW = {"index", "id?", "text", "text_pair", "question", "context", "truncated"}  # what a row says already
TOKEN_COUNT = ("tokens", int)


class Columns:
    """A task on batches, which get a column `output` of vectors, or of records without what the row says already.

    task: the name of a command or method, such as "encode", "classify", "fill_mask". model (default: a bundled one, if
    one fits), and options of `bertcli.load`: what to open. column: the texts. pair_column: second texts, for tasks that
    take pairs (one for all rows: pairs, or contexts). Beside the output are `truncated` (<output>_truncated where that
    name is taken) and <output>_error: why a text cannot be used, whose result is null, or NaN in a NumPy array of
    vectors. strict: such a text is an error. All other options are the task's, see `bertcli.tasks`.

    Errors: BertcliError; TypeError for an option that does not exist.
    """

    def __init__(
        self,
        task: str,
        model: str | Path | None = None,
        column: str | None = None,
        output: str | None = None,
        *,
        pair_column: str | None = None,
        strict: bool = False,
        **options: Any,
    ) -> None:
        self._spec = _spec_of(task)
        check_kind("model", model, PATH)
        self._check_options(options)
        self._load_options = tuple((name, _hashable(options.pop(name))) for name in sorted(OF_LOAD & {*options}))
        self._fields = self._fields_of(column, pair_column, options)
        self._output = output or OUTPUTS.get(self._spec.module, self._spec.module)
        self._options = self._options_of(options, strict)
        needs = self._spec.needs(self._options)
        if model is None and needs.sample is None:
            fitting = needs.fitting.removeprefix("-m ")
            raise BertcliError(f"There is no bundled model for {needs.task}: give one that fits, such as {fitting}.")
        model = needs.sample if model is None else model
        # the engine's processes may work in another folder
        self._model = Path(model).resolve() if model and Path(model).is_dir() else model

    def _check_options(self, options: Mapping[str, Any]) -> None:
        known = {*signature(self._spec.options).parameters}
        check_names(f"Columns({self._spec.module!r})", options, known | OF_LOAD)
        for name in sorted(options):
            if name in UNFIT or (name == "pooling" and options[name] == "none"):
                raise BertcliError(f"Rows of batches cannot have {name} {shown_object(options[name])}: leave it out.")

    def _fields_of(self, column: str | None, pair_column: str | None, options: dict[str, Any]) -> RowColumns:
        """The fields of a row that are read; a second text for all rows is taken out of the options."""
        reads = self._spec.reads
        second = options.pop(reads.second, None) if reads.second else None
        check_kind("the second text of all rows", second, str)
        if pair_column is None and second is None and reads is QUESTIONS:
            pair_column = "context"  # without which there is no answer
        pair = Field(pair_column, "pair_column") if pair_column else None
        return RowColumns(Field(column or reads.text, "column"), pair, fixed_pair=second)

    def _options_of(self, options: Mapping[str, Any], strict: bool) -> Any:
        """The task's options; how often texts were cut is not said, since a column says so."""
        lists = {name: tuple(value) for name, value in options.items() if isinstance(value, Iterator)}
        quiet = {"truncation": "silent"} if "truncation" in signature(self._spec.options).parameters else {}
        return self._spec.options(**quiet | dict(options) | lists | {"keep_going": not strict})

    def __getstate__(self) -> dict[str, Any]:
        """What it was made of; the spec, whose functions cannot be pickled, by its name."""
        return {**self.__dict__, "_spec": self._spec.module}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _spec=_spec_of(state["_spec"]))

    def __repr__(self) -> str:
        column = ", ".join(repr(field.name) for field in self._fields.fields)
        name, model = self._spec.module, str(self._model)
        return f"{type(self).__name__}({name!r}, {model!r}, column={column}, output={self._output!r})"

    def __call__(self, batch: Any) -> Any:
        """The batch with columns more: a dict of arrays, a pandas DataFrame, an Arrow table or record batch.

        Errors: BertcliError for a column that is missing or holds no texts, for an output that is there already, and
        whatever the task raises.
        """
        names = _names(batch)
        for field in self._fields.fields:
            if names.count(field.name) != 1:
                raise BertcliError(f"In the batch {field.lacking(names)}")
        output = self._output
        truncated = f"{output}_truncated" if "truncated" in (*names, output) else "truncated"
        for column in (output, truncated, f"{output}_error"):
            if column in names:
                raise BertcliError(f"The batch has a column {shown(column)} already: choose another output.")
        values = {field.name: _texts(batch, field.name) for field in self._fields.fields}
        rows = (dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True))
        texts = [self._fields.row(f"row {number}", row) for number, row in enumerate(rows)]
        task = compute(self._spec).plan(_opened(self._model, self._load_options), self._options)
        row_results = sorted(_results(task, Texts(texts, at_hand=True)), key=lambda result: result.number)
        kind = task.width if isinstance(task, EncodeTask) else _type(self._spec.record(self._options))
        new: NewColumns = {
            output: (kind, [None if result.error else _fitted(kind, result.value) for result in row_results]),
            truncated: (bool, [result.truncated for result in row_results]),
            f"{output}_error": (str, [result.error for result in row_results]),
        }
        return _joined(batch, new)


def _spec_of(task: str) -> TaskSpec:
    """The spec of a task that gives each row a result. Errors: BertcliError."""
    found = spec(task) if isinstance(task, str) else None
    if found is None or found.reads is DOCUMENTS:
        tasks = [one.module for one in specs() if one.reads is not DOCUMENTS]
        raise BertcliError(f"There is no task {shown_object(task)} for columns. {nearest(str(task), tasks)}")
    return found


# ---------------------------------------------------------------------------------------------------- opening a model

_lock = Lock()


def _hashable(value: Any) -> Any:
    """An option of `load` that can be a key, and travel: a tuple for a list."""
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else value


def _opened(model: str | Path | None, options: tuple[tuple[str, Any], ...]) -> Model:
    """The model, opened once in a process, which works with as many threads as it was granted."""
    _use_granted_threads()  # each time: a forked process inherits the model, and not its grant
    with _lock:
        return _loaded(model, options)


@cache
def _loaded(model: str | Path | None, options: tuple[tuple[str, Any], ...]) -> Model:
    return load(model, **dict(options))


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
    return {
        name: _one_type(kind) for name, kind in record.items() if name not in IN_ROW and (name, kind) != TOKEN_COUNT
    }


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


def _joined(batch: Any, new: NewColumns) -> Any:
    """The batch with the new columns."""
    if isinstance(batch, Mapping):
        return {**batch, **{name: _array(*column) for name, column in new.items()}}
    if hasattr(batch, "assign"):
        cells = {name: (object if isinstance(kind, int) else kind, values) for name, (kind, values) in new.items()}
        return batch.assign(**{name: _array(*column) for name, column in cells.items()})
    arrow = import_module("pyarrow")
    for name, (kind, values) in new.items():
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

"""A task as a callable on batches of columns, for the `map` of Ray Data, Spark, Dask and datasets.

A `Columns` pickles as its arguments. The first batch in a process opens the model; its weights are memory-mapped, so
the processes of a machine share them. Objects in one process that name the same model share the opened model.
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
from bertcli.errors import PATH, BertcliError, check_names, check_type, nearest, quoted, quoted_object
from bertcli.files.parquet import value_of
from bertcli.files.read.rows import Field, RowColumns
from bertcli.files.texts import Text, Texts
from bertcli.model import Model, load
from bertcli.platforms import at_fork
from bertcli.tasks.compute.encode import Block, EncodeTask
from bertcli.tasks.registry import DOCUMENTS, QUESTIONS, Fields, TaskSpec, compute, spec, specs
from bertcli.tasks.running.run import results
from bertcli.tasks.running.task import Records, Task

# The options of `load`, which a `Columns` takes beside the task's.
OF_LOAD = {name for name, option in signature(load).parameters.items() if option.kind is option.KEYWORD_ONLY}
# Options that are refused: a row has one result (chunk), `strict` replaces keep_going, and engines have own workers.
UNFIT = {"chunk", "keep_going", "workers"}
# Names of output columns; of other tasks it is the task's name.
OUTPUTS = {"encode": "embedding", "encode_sparse": "sparse"}
# Fields of a record that repeat the row, or have a column of their own.
IN_ROW = {"index", "id?", "text", "text_pair", "question", "context", "truncated"}
# This one is left out, too; `tokens` of another type, as of `tag`, is a result.
TOKEN_COUNT = ("tokens", int)


class NewColumn(NamedTuple):
    """A column that is added to a batch: its type, as `_type` gives it, and a value for each row."""

    type: Any
    values: list[Any]


class Columns:
    """Run a task on batches: each call returns the batch with a column of vectors, or of records, named `output`.

        task          the name of a command or method, such as "encode", "classify", "fill_mask"
        model         a folder or Hub id (default: a bundled model, if one fits); options of `bertcli.load` go with it
        column        the column of texts
        pair_column   the column of second texts, for tasks on pairs; `pairs` or `contexts` give one text for all rows
        strict        raise BertcliError for a text that cannot be used

    Two more columns are added: `truncated` (<output>_truncated if that name is taken), and <output>_error with the
    reason why a text cannot be used. Its result is null, or NaN in a NumPy array of vectors. All other options are the
    task's, see `bertcli.tasks`.

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
        check_type("model", model, PATH)
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
        # A worker process may have another working directory.
        self._model = Path(model).resolve() if model and Path(model).is_dir() else model

    def _check_options(self, options: Mapping[str, Any]) -> None:
        known = {*signature(self._spec.options).parameters}
        check_names(f"Columns({self._spec.module!r})", options, known | OF_LOAD)
        for name in sorted(options):
            if name in UNFIT or (name == "pooling" and options[name] == "none"):
                raise BertcliError(f"Rows of batches cannot have {name} {quoted_object(options[name])}: leave it out.")

    def _fields_of(self, column: str | None, pair_column: str | None, options: dict[str, Any]) -> RowColumns:
        """Choose the columns to read; a second text for all rows is removed from the options."""
        reads = self._spec.reads
        second = options.pop(reads.second, None) if reads.second else None
        check_type("the second text of all rows", second, str)
        if pair_column is None and second is None and reads is QUESTIONS:
            pair_column = "context"  # as in SQuAD: `answer` needs one
        pair = Field(pair_column, "pair_column") if pair_column else None
        return RowColumns(Field(column or reads.text, "column"), pair, fixed_pair=second)

    def _options_of(self, options: Mapping[str, Any], strict: bool) -> Any:
        """Make the task's options, without its warning about truncated texts: the column `truncated` shows them."""
        chosen = dict(options)
        for name, value in options.items():
            # Options are used for every batch, and an iterator would be empty after the first.
            if isinstance(value, Iterator):
                chosen[name] = tuple(value)
        if "truncation" in signature(self._spec.options).parameters:
            chosen.setdefault("truncation", "silent")
        chosen["keep_going"] = not strict
        return self._spec.options(**chosen)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the spec by its name, since its functions cannot be pickled."""
        return {**self.__dict__, "_spec": self._spec.module}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _spec=_spec_of(state["_spec"]))

    def __repr__(self) -> str:
        columns = ", ".join(repr(field.name) for field in self._fields.fields)
        task, model = self._spec.module, str(self._model)
        return f"{type(self).__name__}({task!r}, {model!r}, column={columns}, output={self._output!r})"

    def __call__(self, batch: Any) -> Any:
        """Return the batch with the new columns; it is a dict of arrays, a pandas DataFrame, or an Arrow table.

        Errors: BertcliError for a column that is missing or holds no texts, for an output column that exists already,
        and whatever the task raises.
        """
        output_names = self._output_names(_names(batch))
        texts = self._read(batch)
        task = compute(self._spec).plan(_opened(self._model, self._load_options), self._options)
        found = sorted(_results(task, Texts(texts, at_hand=True)), key=lambda result: result.number)
        value_type = task.width if isinstance(task, EncodeTask) else _type(self._spec.record(self._options))
        values = [None if result.error else _fitted(value_type, result.value) for result in found]
        truncated = [result.truncated for result in found]
        errors = [result.error for result in found]
        added = (NewColumn(value_type, values), NewColumn(bool, truncated), NewColumn(str, errors))
        return _joined(batch, dict(zip(output_names, added, strict=True)))

    def _output_names(self, names: list[str]) -> tuple[str, str, str]:
        """The names of the columns for results, `truncated` and errors. Errors: BertcliError for one that is taken."""
        for field in self._fields.fields:
            if names.count(field.name) != 1:
                raise BertcliError(f"In the batch {field.lacking(names)}")
        output = self._output
        is_taken = "truncated" in (*names, output)
        truncated = f"{output}_truncated" if is_taken else "truncated"
        chosen = (output, truncated, f"{output}_error")
        for column in chosen:
            if column in names:
                raise BertcliError(f"The batch has a column {quoted(column)} already: choose another output.")
        return chosen

    def _read(self, batch: Any) -> list[Text]:
        """The rows of a batch as texts."""
        values = {field.name: _texts(batch, field.name) for field in self._fields.fields}
        texts = []
        for number, cells in enumerate(zip(*values.values(), strict=True)):
            row = dict(zip(values, cells, strict=True))
            texts.append(self._fields.row(f"row {number}", row))
        return texts


def _spec_of(task: str) -> TaskSpec:
    """Find the spec of a task that gives each row a result (`rank` does not). Errors: BertcliError."""
    found = spec(task) if isinstance(task, str) else None
    if found is None or found.reads is DOCUMENTS:
        tasks = [one.module for one in specs() if one.reads is not DOCUMENTS]
        raise BertcliError(f"There is no task {quoted_object(task)} for columns. {nearest(str(task), tasks)}")
    return found


# ---------------------------------------------------------------------------------------------------- opening a model

_lock = Lock()


def _hashable(value: Any) -> Any:
    """Turn a list among the options of `load` into a tuple, which can be a key of the cache and be pickled."""
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else value


def _opened(model: str | Path | None, options: tuple[tuple[str, Any], ...]) -> Model:
    """Open the model, once in a process, and use no more threads than the process was granted."""
    # On every call: a forked process inherits the opened model, but has a grant of its own.
    _use_granted_threads()
    with _lock:
        return _loaded(model, options)


@cache
def _loaded(model: str | Path | None, options: tuple[tuple[str, Any], ...]) -> Model:
    return load(model, **dict(options))


# A child that is forked while a thread opens a model would wait forever for a thread that it does not have.
at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


# ------------------------------------------------------------------------------------------------------------ results


class _Result(NamedTuple):
    """The result of a row: its number in the batch, its vector or record, and the values of the other new columns."""

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
    """The types of a record's fields, as a dict by name, without those that repeat the row (IN_ROW).

    A list of one type is a list of such values; a field that may be one value or a list is typed as the list.
    """
    types = {}
    for name, declared in record.items():
        if name not in IN_ROW and (name, declared) != TOKEN_COUNT:
            types[name] = _one_type(declared)
    return types


def _one_type(declared: Any) -> Any:
    # A tuple lists alternatives. Null needs no type of its own: every Arrow type has it.
    if isinstance(declared, tuple):
        lists = [alternative for alternative in declared if isinstance(alternative, list)]
        return _one_type(lists[0] if lists else declared[0])
    if isinstance(declared, list):
        return [_one_type(declared[0])]
    if isinstance(declared, dict):
        return {name.removesuffix("?"): _one_type(of_field) for name, of_field in declared.items()}
    return declared


def _fitted(type: Any, value: Any) -> Any:
    """Fit a value to its type: drop fields that the type lacks, and wrap a single value in a list where it has one."""
    if value is None or not isinstance(type, dict | list):
        return value
    if isinstance(type, dict):
        return {name: _fitted(of_field, value.get(name)) for name, of_field in type.items()}
    items = value if isinstance(value, list) else [value]
    return [_fitted(type[0], item) for item in items]


# ------------------------------------------------------------------------------------------------------------ batches


def _names(batch: Any) -> list[str]:
    """The names of a batch's columns. Errors: BertcliError for an object that is no batch."""
    if isinstance(batch, Mapping) or hasattr(batch, "assign"):
        return [*batch]
    if hasattr(batch, "append_column"):
        return list(batch.schema.names)
    found = type(batch).__name__
    raise BertcliError(f"A batch is a dict of arrays, a pandas DataFrame or an Arrow table, not {found}.")


def _texts(batch: Any, name: str) -> list[Any]:
    """The values of a column, None for null. Errors: BertcliError for a column that holds no texts."""
    if hasattr(batch, "append_column"):
        values = [value_of(scalar) for scalar in batch.column(name)]
    else:
        values = [None if isinstance(value, float) and isnan(value) else value for value in _cells(batch, name)]
    present = [value for value in values if value is not None]
    # One text among other values is enough: the others are errors of their rows.
    if present and not any(isinstance(value, str) for value in present):
        raise BertcliError(f"The column {quoted(name)} holds {quoted_object(present[0])}, which is not a text.")
    return values


def _cells(batch: Any, name: str) -> list[Any]:
    """The values of a column of a DataFrame or a dict."""
    column = batch[name]
    if hasattr(batch, "assign"):
        column = column.to_numpy(dtype=object, na_value=None)
    if isinstance(column, str):
        raise BertcliError(f"The column {quoted(name)} is one text: pass batches of rows (batched=True).")
    return column.tolist() if isinstance(column, np.ndarray) else [*column]


def _joined(batch: Any, added: Mapping[str, NewColumn]) -> Any:
    """Add columns to a batch, which stays as it is."""
    if isinstance(batch, Mapping):
        return {**batch, **{name: _array(column.type, column.values) for name, column in added.items()}}
    if hasattr(batch, "assign"):
        arrays = {}
        for name, column in added.items():
            # A cell of a DataFrame holds one object, so a column of vectors is one of objects.
            cell_type = object if _is_width(column.type) else column.type
            arrays[name] = _array(cell_type, column.values)
        return batch.assign(**arrays)
    arrow = import_module("pyarrow")
    for name, column in added.items():
        batch = batch.append_column(name, arrow.array(column.values, _arrow(arrow, column.type)))
    return batch


def _is_width(type: Any) -> bool:
    """True for the type of a column of vectors: their width."""
    return isinstance(type, int)


def _array(type: Any, values: list[Any]) -> Any:
    """Make an array of a column: vectors as [row, width] with NaN for null, truth values as bool, else objects."""
    if _is_width(type):
        missing = np.full(type, np.nan, np.float32)
        vectors = [missing if value is None else value for value in values]
        # Of no rows, too, the array has two axes.
        return np.array(vectors, np.float32).reshape(-1, type)
    return np.fromiter(values, bool if type is bool else object, len(values))


def _arrow(arrow: Any, type: Any) -> Any:
    """Convert a type as `_type` returns it into Arrow's; an int is the width of a vector."""
    if isinstance(type, dict):
        return arrow.struct([(name, _arrow(arrow, of_field)) for name, of_field in type.items()])
    if isinstance(type, list):
        return arrow.list_(_arrow(arrow, type[0]))
    if _is_width(type):
        return arrow.list_(arrow.float32(), type)
    scalars = {str: arrow.string(), int: arrow.int64(), float: arrow.float64(), bool: arrow.bool_()}
    return scalars[type]


def _use_granted_threads() -> None:
    """Use no more threads than this process was granted by an engine or a scheduler.

    Ray, Spark and Dask set OMP_NUM_THREADS, possibly after NumPy was loaded and has stopped looking at it.
    """
    granted = []
    for name in ("OMP_NUM_THREADS", "SLURM_CPUS_PER_TASK"):
        count = os.environ.get(name, "")
        if count.isdecimal() and int(count) > 0:
            granted.append(int(count))
    if granted and min(granted) < core_count():
        set_thread_count(min(granted))
        blas.set_threads(min(granted))

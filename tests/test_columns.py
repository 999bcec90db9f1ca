"""The tasks on batches of columns, as engines pass them: what comes back, and what becomes of rows without a text."""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made
from numpy.typing import NDArray

import bertcli
from bertcli.columns import Columns
from bertcli.errors import BertcliError

pa: Any = pytest.importorskip("pyarrow")
TEXTS = ["The cat sat.", "A dog [MASK] tea.", "", "tea " * 60]


class Series:
    """Of a pandas column what is used, with a missing value as pandas has it."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = [*values]

    def to_numpy(self, dtype: type, na_value: object) -> Any:
        cells: NDArray[Any] = np.empty(len(self.values), dtype)
        cells[:] = [na_value if value != value else value for value in self.values]
        return cells


class Frame:
    """Of a DataFrame what is used."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self.columns = {name: Series(values) for name, values in columns.items()}

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> Series:
        return self.columns[name]

    def assign(self, **columns: Any) -> "Frame":
        return Frame({**{name: series.values for name, series in self.columns.items()}, **columns})


def frame(columns: dict[str, Any]) -> Frame:
    return Frame({name: [float("nan") if one is None else one for one in values] for name, values in columns.items()})


def listed(batch: Any, name: str) -> list[Any]:
    """A column of a batch."""
    if isinstance(batch, pa.Table | pa.RecordBatch):
        return list(batch.column(name).to_pylist())
    return list(batch[name].values if isinstance(batch, Frame) else batch[name])


BATCHES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "lists": dict,
    "arrays": lambda columns: {name: np.array(values, dtype=object) for name, values in columns.items()},
    "frame": frame,
    "table": pa.table,
    "record_batch": pa.RecordBatch.from_pydict,
    "dictionaries": lambda columns: pa.table(
        {name: pa.array(one).dictionary_encode() for name, one in columns.items()}
    ),
}


@pytest.mark.parametrize("kind", BATCHES)
def test_columns_gain_the_vectors_of_the_model(kind: str, made: Made) -> None:
    expected = bertcli.load(made()).encode(TEXTS)
    batch = BATCHES[kind]({"text": [*TEXTS, None], "id": ["a", "b", "c", "d", "e"]})
    found = Columns("encode", made())(batch)
    assert type(found) is type(batch)
    assert listed(found, "id") == ["a", "b", "c", "d", "e"]
    assert np.abs(np.stack(listed(found, "embedding")[:4]) - expected).max() < 1e-6
    assert listed(found, "truncated") == [False, False, False, True, False]
    errors = listed(found, "embedding_error")
    assert errors == [*[None] * 4, "row 4: the field 'text' is null, which is not a text."]


@pytest.mark.parametrize("kind", BATCHES)
def test_columns_without_a_null_are_vectors_too(kind: str, made: Made) -> None:
    found = Columns("encode", made())(BATCHES[kind]({"text": TEXTS[:2]}))
    assert np.abs(np.stack(listed(found, "embedding")) - bertcli.load(made()).encode(TEXTS[:2])).max() < 1e-6


def test_columns_of_vectors_have_one_type_whatever_they_hold(made: Made) -> None:
    encode = Columns("encode", made())
    for texts in ([], ["tea"], [None], ["tea", None]):
        found = encode(pa.table({"text": pa.array(texts, pa.string())}))
        assert found.schema.field("embedding").type == pa.list_(pa.float32(), 32)
        assert found.schema.field("embedding_error").type == pa.string()
        assert found["embedding"].null_count == found.num_rows - found["embedding_error"].null_count
        arrays = encode({"text": np.array(texts, dtype=object)})
        assert (arrays["embedding"].dtype, arrays["embedding"].shape) == (np.float32, (len(texts), 32))
        assert np.isnan(arrays["embedding"]).all(axis=1).tolist() == [text is None for text in texts]
        assert arrays["truncated"].dtype == bool


def records(found: Any, name: str) -> list[Any]:
    """The records of a column after all their strings and numbers went through JSON."""
    return list(json.loads(json.dumps(listed(found, name))))


def test_columns_of_records_are_structs(made: Made) -> None:
    paired = made(head="nsp")
    cases: list[tuple[Any, Any, str]] = [
        (
            Columns("classify", made(head="classifier"), top_k=2),
            bertcli.load(made(head="classifier")).classify,
            "classify",
        ),
        (Columns("classify", paired, pairs="And tea."), bertcli.load(paired).classify, "classify"),
        (Columns("score", made(head="mlm")), bertcli.load(made(head="mlm")).score, "score"),
        (Columns("tag", made(head="token_classifier")), bertcli.load(made(head="token_classifier")).tag, "tag"),
    ]
    options: list[dict[str, Any]] = [{"top_k": 2}, {"pairs": "And tea."}, {}, {}]
    for (task, method, name), more in zip(cases, options, strict=True):
        for make in BATCHES.values():
            found = task(make({"text": [*TEXTS[:3], None]}))
            expected = method(TEXTS[:3], **more)
            *computed, failed = records(found, name)
            assert failed is None
            assert computed == [{field: record[field] for field in computed[0]} for record in expected]
            assert {*expected[0]} - {*computed[0]} == {"index", "text", "truncated"} | {*expected[0]} & {"text_pair"}
        empty = task(pa.table({"text": pa.array([], pa.string())}))
        assert empty.schema == task(pa.table({"text": ["tea"]})).schema


@pytest.mark.parametrize("aggregation", ["simple", "none"])
def test_columns_of_entities_have_the_fields_of_their_aggregation(aggregation: str, made: Made) -> None:
    task = Columns("tag", made(head="token_classifier"), aggregation=aggregation)
    (record,) = records(task(pa.table({"text": TEXTS[:1]})), "tag")
    (expected,) = bertcli.load(made(head="token_classifier")).tag(TEXTS[:1], aggregation=aggregation)  # type: ignore[arg-type]
    assert record["entities"] == expected["entities"]
    assert record["entities"]


@pytest.mark.parametrize("targets", [None, "cat,catdog"])
def test_columns_of_words_for_masks(targets: str | None, made: Made) -> None:
    folder = made(head="mlm")
    (expected,) = bertcli.load(folder).fill_mask(TEXTS[1:2], targets=targets)
    for make in (BATCHES["lists"], BATCHES["table"]):
        found = Columns("fill_mask", folder, targets=targets)(make({"text": TEXTS[1::-1]}))
        record, none = records(found, "fill_mask")
        assert none is None
        assert "There is no [MASK]" in listed(found, "fill_mask_error")[1]
        for word, one in zip(record["masks"][0]["predictions"], expected["masks"][0]["predictions"], strict=True):
            several = isinstance(one["token"], list)
            listing = {} if targets is None else {"token": one["token"] if several else [one["token"]]}
            assert word == {**one, **listing, **({"pieces": one.get("pieces")} if targets else {})}


def test_columns_of_sparse_vectors(made: Made) -> None:
    folder = made(head="mlm")
    expected = bertcli.load(folder).encode_sparse(TEXTS)
    found = listed(Columns("encode_sparse", folder, words=True)(pa.table({"text": TEXTS})), "sparse")
    for record, vector in zip(found, expected, strict=True):
        assert record["indices"] == vector.indices.tolist()
        assert record["values"] == vector.values.tolist()
        assert len(record["words"]) == len(vector.indices)


def test_columns_of_questions_and_contexts(made: Made) -> None:
    folder = made(head="qa")
    expected = bertcli.load(folder).answer(["Who?", "What?"], ["The cat sat.", "A dog."])
    table = pa.table({"question": ["Who?", "What?", "Where?"], "context": ["The cat sat.", "A dog.", None]})
    found = Columns("answer", folder)(table)
    assert listed(found, "answer") == [*({"answers": record["answers"]} for record in expected), None]
    assert listed(found, "answer_error")[2] == "row 2: the field 'context' is null, which is not a text."
    again = Columns("answer", folder, column="q", contexts="The cat sat.")({"q": ["Who?"]})
    best, wanted = again["answer"][0]["answers"][0], expected[0]["answers"][0]
    assert best == {**wanted, "score": pytest.approx(wanted["score"], rel=1e-5)}


def test_columns_of_pairs(made: Made) -> None:
    folder = made(head="nsp")
    found = Columns("classify", folder, column="a", pair_column="b", output="follows")(
        {"a": TEXTS[:1], "b": TEXTS[1:2]}
    )
    (expected,) = bertcli.load(folder).classify(TEXTS[:1], TEXTS[1:2])
    assert found["follows"][0] == {"labels": expected["labels"]}
    assert found["follows_error"].tolist() == [None]


def test_columns_of_two_tasks_stand_side_by_side(made: Made) -> None:
    folder = made(head="classifier")
    table = Columns("classify", folder)(Columns("encode", folder, truncate_dim=8)(pa.table({"text": TEXTS})))
    added = ["embedding", "truncated", "embedding_error", "classify", "classify_truncated", "classify_error"]
    assert table.column_names == ["text", *added]
    assert table["truncated"] == table["classify_truncated"]
    with pytest.raises(BertcliError, match="has a column 'embedding' already: choose another output"):
        Columns("encode", folder)(table)
    assert (
        Columns("encode", folder, output="other")(table)["other"]
        == Columns("encode", folder)(table.select([0]))["embedding"]
    )


def test_columns_whose_output_is_called_truncated(made: Made) -> None:
    found = Columns("encode", made(), output="truncated")({"text": TEXTS})
    assert [*found] == ["text", "truncated", "truncated_truncated", "truncated_error"]
    assert np.array_equal(found["truncated"], Columns("encode", made())({"text": TEXTS})["embedding"])
    with pytest.raises(BertcliError, match="has a column 'embedding_error' already"):  # before any model is opened
        Columns("encode", "no/such-model", offline=True)({"text": TEXTS, "embedding_error": TEXTS})


def test_columns_take_heads_in_a_list(made: Made) -> None:
    task = pickle.loads(pickle.dumps(Columns("encode", made(), heads=["pooler"], pooling="pooler")))
    expected = bertcli.load(made()).encode(TEXTS, pooling="pooler")
    assert np.abs(task({"text": TEXTS})["embedding"] - expected).max() < 1e-6


def test_columns_begin_with_the_bundled_model_of_their_command() -> None:
    text, masked = {"text": ["A fine day."]}, {"text": ["A fine [MASK]."]}
    for task, sample, batch in (
        (partial(Columns, "encode"), "bert-mini-sentence", text),
        (partial(Columns, "encode_sparse"), "bert-mini-mlm", text),
        (partial(Columns, "classify"), "bert-mini-sentiment", text),
        (partial(Columns, "classify", head="nsp", pairs="So was the next."), "bert-mini-mlm", text),
        (partial(Columns, "fill_mask"), "bert-mini-mlm", masked),
        (partial(Columns, "score"), "bert-mini-mlm", text),
    ):
        (found,), (expected,) = (listed(one(batch), "new") for one in (task(output="new"), task(sample, output="new")))
        assert np.array_equal(found, expected)
    for needing, name in (
        (partial(Columns, "tag"), "tag: .* dslim/bert-base-NER"),
        (partial(Columns, "answer"), "answer: .* deepset/"),
    ):
        with pytest.raises(BertcliError, match=f"There is no bundled model for {name}"):
            needing()


def test_columns_need_texts(made: Made) -> None:
    encode = Columns("encode", made())
    for batch in ({"text": [1, None]}, {"text": np.array([1.5, 2])}, {"text": [b"tea"]}, frame({"text": [7]})):
        with pytest.raises(BertcliError, match=r"The column 'text' holds .*, which is not a text"):
            encode(batch)
    for typed in (pa.array([1]), pa.array([b"tea"]), pa.array([["tea"]])):
        with pytest.raises(BertcliError, match=r"The column 'text' holds .*, which is not a text"):
            encode(pa.table({"text": typed}))
    for lacking in ({"txt": ["tea"]}, frame({"txt": ["tea"]}), pa.table({"txt": ["tea"]})):
        with pytest.raises(BertcliError, match=r"there is no field 'text'; fields are 'txt' .choose one with column"):
            encode(lacking)
    with pytest.raises(BertcliError, match="more than one field 'text'"):
        encode(pa.table([["tea"], ["tea"]], names=["text", "text"]))
    with pytest.raises(BertcliError, match="is one text: pass batches"):
        encode({"text": "tea"})
    with pytest.raises(BertcliError, match=r"A batch is a dict of arrays, .* not list"):
        encode([{"text": "tea"}])


def test_columns_keep_rows_that_cannot_be_used_unless_strict(made: Made) -> None:
    broken = pa.array([b"tea", b"\xff"]).cast(pa.string(), safe=False)
    for batch, reason in (
        ({"text": ["tea", 5]}, "row 1: the field 'text' is 5, which is not a text."),
        ({"text": ["tea", "\ud800"]}, "row 1: the field 'text' is '\\ud800', which is not a text."),
        (pa.table({"text": broken}), "row 1: the field 'text' is b'\\xff', which is not a text."),
        ({"text": np.array(["tea", np.nan], dtype=object)}, "row 1: the field 'text' is null, which is not a text."),
    ):
        assert listed(Columns("encode", made())(batch), "embedding_error") == [None, reason]
        with pytest.raises(BertcliError) as caught:
            Columns("encode", made(), strict=True)(batch)
        assert str(caught.value) == reason
    cut = {"text": ["tea", "tea " * 60]}
    none, error = Columns("encode", made(), truncation="error")(cut)["embedding_error"]
    assert none is None
    assert "has 62 tokens, more than 48" in error
    with pytest.raises(BertcliError, match="more than 48"):
        Columns("encode", made(), truncation="error", strict=True)(cut)


def test_columns_take_the_options_of_their_task(made: Made) -> None:
    assert Columns("encode", made(), pooling="max", layer=[0, 1])({"text": ["tea"]})["embedding"].shape == (1, 64)
    words = Columns("fill_mask", made(head="mlm"), targets=iter(["cat", "dog"]))
    for _ in range(2):  # an iterator would be at its end
        assert len(words({"text": TEXTS[1:2]})["fill_mask"][0]["masks"][0]["predictions"]) == 2
    for wrong in ({"workers": 2}, {"keep_going": True}, {"chunk": 8}, {"pooling": "none"}):
        with pytest.raises(BertcliError, match=f"Rows of batches cannot have {next(iter(wrong))}"):
            Columns("encode", made(), **wrong)
    with pytest.raises(BertcliError, match=r"There is no pooling 'mode'"):
        Columns("encode", made(), pooling="mode")
    with pytest.raises(BertcliError, match="the second text of all rows is"):
        Columns("encode", made(), pairs=["tea"])
    with pytest.raises(BertcliError, match="which is not a path"):
        Columns("encode", bertcli.load(made()))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="poling"):
        Columns("encode", made(), poling="max")
    for task, hint in (
        ("embed", "Choose from"),
        ("encod", "Did you mean encode"),
        ("rank", "Choose from"),
        ("", "Choose from"),
    ):
        with pytest.raises(BertcliError, match=f"There is no task '{task}' for columns. {hint}"):
            Columns(task)
    for old, name in (("Encode", "encode"), ("FillMask", "fill_mask")):
        with pytest.raises(AttributeError, match=f"was withdrawn in 0.8: write bertcli.Columns\\('{name}', model"):
            getattr(bertcli, old)
    assert Columns("encode", made(), engine="onnx")({"text": ["tea"]})["embedding"].shape == (1, 32)


ELSEWHERE = """
import json, os, pickle, sys
task, again = (pickle.loads(bytes.fromhex(one)) for one in sys.argv[1:])
import bertcli.model
from bertcli.engine import threads
opened, load = [], bertcli.model.Model.at
bertcli.model.Model.at = lambda *given, **more: (opened.append(given[0]), load(*given, **more))[1]
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as pool:
    found = list(pool.map(lambda _: task({"text": ["tea"]})["embedding"][0].tolist(), range(4)))
again({"text": ["tea"]})
print(json.dumps([len(opened), threads.thread_count(), found]))
"""


def test_columns_travel_without_the_model_and_open_it_once_in_a_process(made: Made, tmp_path: Path) -> None:
    folder = made(head="classifier")
    sent = [pickle.dumps(task) for task in (Columns("encode", os.path.relpath(folder)), Columns("classify", folder))]
    assert max(map(len, sent)) < 1500
    command = [sys.executable, "-W", "error", "-c", ELSEWHERE, *(one.hex() for one in sent)]
    for variable in ("OMP_NUM_THREADS", "SLURM_CPUS_PER_TASK"):
        done = subprocess.run(
            command, cwd=tmp_path, env={**os.environ, variable: "1"}, capture_output=True, text=True, check=True
        )
        opened, threads, found = json.loads(done.stdout)
        assert (opened, threads) == (1, 1)
        expected = bertcli.load(folder).encode(["tea"])
        assert np.abs(np.array(found) - expected).max() < 1e-6


def test_columns_have_the_threads_of_the_process_that_was_forked(made: Made) -> None:
    code = """
import os, sys, bertcli
from bertcli.engine import threads
encode = bertcli.Columns("encode", sys.argv[1])
os.environ.pop("OMP_NUM_THREADS", None)
encode({"text": ["tea"]})
os.environ["OMP_NUM_THREADS"] = "1"
if not os.fork():
    encode({"text": ["tea"]})
    os._exit(threads.thread_count())
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    done = subprocess.run([sys.executable, "-c", code, str(made())], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_columns_are_made_without_opening_anything() -> None:
    task = Columns("encode", "no/such-model", offline=True)
    with pytest.raises(BertcliError, match="no/such-model"):
        pickle.loads(pickle.dumps(task))({"text": ["tea"]})


def test_columns_may_have_a_class_of_their_own(made: Made) -> None:
    class Short(Columns):
        """As Ray makes one of every class that it runs."""

    assert Short("encode", made(), truncate_dim=8)({"text": TEXTS})["embedding"].shape == (4, 8)


def test_columns_are_imported_when_they_are_first_used() -> None:
    code = "import sys, bertcli; print('bertcli.columns' in sys.modules, 'numpy' in sys.modules)"
    code += "; bertcli.Columns('encode')"
    code += "; print('bertcli.columns' in sys.modules, {'pyarrow', 'pandas'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["False False", "True set()"]

"""What encode gives comes back from every kind of file: a row a text or chunk, whatever fails and however it is cut."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.numpy import load_file

from bertcli.files.texts import Chunk, Failure, Item, Text
from bertcli.files.write.resumable_output import ResumableOutput
from bertcli.files.write.vector_writer import SparseForm, TokenForm, VectorForm

WIDTH = 3
NO_TOKENS: Any = None  # a file of vectors has none
Array = NDArray[Any]
few = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


class Sparse(NamedTuple):
    indices: Array
    values: Array


class Block(NamedTuple):
    items: list[Item]
    vectors: Any
    failures: list[Failure]


def blocks(counts: list[int], cut: int, one: Any) -> list[Block]:
    """Texts with so many chunks each (0: a failure), in blocks of `cut` texts; `one(text, chunk)` is a vector."""
    found = []
    for first in range(0, len(counts), cut):
        block = Block([], [], [])
        for index, count in enumerate(counts[first : first + cut], first):
            text = Text("abcdef", id=f"t{index}")
            if not count:
                block.failures.append(Failure(index, text, "no"))
            for number in range(count):
                chunk = Chunk(number, number, number + 2) if max(counts) > 1 else None
                block.items.append(Item(index, text, NO_TOKENS, chunk))
                block.vectors.append(one(index, number))
        stacked = np.array(block.vectors, np.float32).reshape(-1, WIDTH) if one is dense else block.vectors
        found.append(block._replace(vectors=stacked))
    return found


def written(file: Path, form: VectorForm, given_blocks: list[Any]) -> Any:
    """The file's arrays, or a table's rows."""
    form = replace(form, ending=file.suffix)
    with ResumableOutput(str(file)) as segments:
        for block in given_blocks:
            segments.add(form.arrays(block.items, block.failures, block.vectors), {})
        with segments.result() as stream:
            form.write(stream, segments)
    if file.suffix == ".parquet":
        return pytest.importorskip("pyarrow.parquet").read_table(file).to_pylist()
    if file.suffix == ".npy":
        return {"embeddings": np.load(file)}
    if file.suffix == ".safetensors":
        return load_file(file)
    with np.load(file) as arrays:
        return dict(arrays)


def dense(text: int, chunk: int) -> Array:
    return np.array([text + 1, chunk, 0.5], np.float32)


def tokens(text: int, chunk: int) -> Array:
    return np.array([[text, i, chunk] for i in range(text % 4)], np.float32).reshape(-1, WIDTH)


def sparse(text: int, chunk: int) -> Sparse:
    return Sparse(np.arange(text % 3, dtype=np.int32), np.full(text % 3, text + chunk, np.float32))


failing = st.lists(st.integers(0, 1), min_size=1, max_size=9)
cuts = st.integers(1, 4)


@given(counts=failing, cut=cuts, ending=st.sampled_from([".npy", ".npz", ".safetensors", ".parquet"]))
@few
def test_vectors_of_texts_come_back(counts: list[int], cut: int, ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"v{ending}"
    found = written(file, VectorForm(WIDTH, keep_going=True, own_ids=True), blocks(counts, cut, dense))
    rows = [dense(i, 0).tolist() if count else None for i, count in enumerate(counts)]
    if ending == ".parquet":
        assert [row["embedding"] for row in found] == rows
        assert [row["id"] for row in found] == [f"t{i}" for i in range(len(counts))]
        assert [row["error"] for row in found] == [None if count else "no" for count in counts]
    else:
        assert found["embeddings"].tolist() == [row or [0, 0, 0] for row in rows]
        listed = tmp_path / f"v{ending}.errors.jsonl"
        failed = [i for i, count in enumerate(counts) if not count]
        lines = listed.read_text().splitlines() if failed else []
        assert [json.loads(line)["index"] for line in lines] == failed
        assert listed.exists() == bool(failed)


@given(counts=failing, cut=cuts, ending=st.sampled_from([".npz", ".safetensors"]))
@few
def test_vectors_of_tokens_come_back(counts: list[int], cut: int, ending: str, tmp_path: Path) -> None:
    found = written(tmp_path / f"v{ending}", TokenForm(WIDTH, "int8"), blocks(counts, cut, tokens))
    assert list(map(len, found.values())).count(len(found["embeddings"])) >= 2
    bounds = found["offsets"]
    assert [bounds[0], len(bounds)] == [0, len(counts) + 1]
    restored = found["embeddings"] * found["scales"][:, None]
    for i, count in enumerate(counts):
        assert np.allclose(restored[bounds[i] : bounds[i + 1]], tokens(i, 0)[: 9 * count], atol=0.05)


@given(
    counts=st.lists(st.integers(0, 2), min_size=1, max_size=9), cut=cuts, ending=st.sampled_from([".npz", ".parquet"])
)
@few
def test_vectors_that_are_sparse_come_back(counts: list[int], cut: int, ending: str, tmp_path: Path) -> None:
    form = SparseForm(30, chunked=max(counts) > 1, keep_going=True)
    found = written(tmp_path / f"v{ending}", form, blocks(counts, cut, sparse))
    rows = [(i, number) for i, count in enumerate(counts) for number in range(max(1, count))]
    for row, (i, number) in enumerate(rows):
        expected = sparse(i, number) if counts[i] else Sparse(np.empty(0), np.empty(0))
        if ending == ".parquet":
            lists = found[row]["indices"], found[row]["values"]
            assert lists == ((expected.indices.tolist(), expected.values.tolist()) if counts[i] else (None, None))
        else:
            begin, end = found["indptr"][row : row + 2]
            assert np.array_equal(found["indices"][begin:end], expected.indices)
            assert np.array_equal(found["data"][begin:end], expected.values)
    if ending == ".npz":  # what scipy.sparse.load_npz asks for
        assert found["format"].item() == b"csr"
        assert found["shape"].tolist() == [len(rows), 30]


@given(counts=st.lists(st.integers(0, 3), min_size=1, max_size=6).filter(lambda counts: max(counts) > 1), cut=cuts,
       ending=st.sampled_from([".npz", ".safetensors", ".parquet"]))  # fmt: skip
@few
def test_vectors_of_chunks_say_whose_they_are(counts: list[int], cut: int, ending: str, tmp_path: Path) -> None:
    form = VectorForm(WIDTH, chunked=True, keep_going=True)
    found = written(tmp_path / f"v{ending}", form, blocks(counts, cut, dense))
    rows = [(i, number, *((number, number + 2) if count else (0, 0))) for i, count in enumerate(counts)
            for number in range(max(1, count))]  # fmt: skip
    names = ("index", "chunk", "start", "end")
    if ending == ".parquet":
        assert [tuple(row[name] for name in names) for row in found] == rows
        texts = ["abcdef"[start:end] if counts[i] else None for i, _, start, end in rows]
        assert [row["text"] for row in found] == texts
    else:
        assert np.stack([found[name] for name in names], axis=1).tolist() == [list(row) for row in rows]
        expected = [dense(i, number).tolist() if counts[i] else [0, 0, 0] for i, number, _, _ in rows]
        assert found["embeddings"].tolist() == expected


def test_vectors_that_failed_are_said_to_be_so() -> None:
    assert (
        VectorForm(WIDTH, ending=".parquet").failures_shown("v.parquet")
        == "their vectors are null, and column error says why"
    )
    assert (
        VectorForm(WIDTH, ending=".npz").failures_shown("v.npz")
        == "their vectors are zeros, and v.npz.errors.jsonl says why"
    )

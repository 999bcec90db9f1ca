"""The spec of search is what the command, the Python calls and the tool for assistants are made from."""

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from helpers.terminal import bertcli

import bertcli as library
from bertcli.wings.search.spec import FILES, STORED, SearchOptions, SearchSpec


def fits(hit: dict[str, Any], spec: SearchSpec) -> None:
    """Assert that a hit has the spec's columns in their order, and values of their types."""
    columns = [column for column in spec.columns if column.name in hit]
    assert [*hit] == [column.name for column in columns]
    assert all(column.optional for column in spec.columns if column not in columns)
    assert all(type(hit[column.name]) is (column.number or str) for column in columns)


def test_hits_have_the_columns_of_the_spec(tmp_path: Path) -> None:
    text, vectors = tmp_path / "tea.md", tmp_path / "v.npz"
    text.write_text("First.\n\n# Tea\n\nGreen tea grows in Japan, and it is drunk hot.\n")
    rows = tmp_path / "tea.jsonl"
    rows.write_text('{"text": "Green tea grows in Japan, and it is drunk hot.", "id": "a"}\n')
    assert bertcli("encode", "-i", rows, "--chunk", "8", "-o", vectors).status == 0
    of_files = bertcli("search", "tea", "-i", text, "--format", "jsonl").records
    assert {len(hit) for hit in of_files} == {5, 6}
    (record,) = bertcli("search", "tea", "-i", vectors, "-i", rows, "--id-column", "id", "--format", "jsonl").records
    assert library.search("tea", vectors, texts=rows, id_column="id") == [record]
    assert [*record] == ["query", STORED.rows_of]
    for hit in of_files:
        fits(hit, FILES)
    for hit in record[STORED.rows_of]:
        fits({"query": record["query"], **hit}, STORED)
        assert len(hit) == len(STORED.columns) - 1
    assert [hit["row"] for hit in bertcli("search", "tea", "-i", vectors, "--format", "jsonl").records[0]["nearest"]]


@pytest.mark.parametrize(("name", "other"), [("search", FILES), ("search_files", STORED)])
def test_python_calls_have_the_options_of_the_spec(name: str, other: SearchSpec) -> None:
    options = {item.name: item for item in fields(SearchOptions)}
    keywords = inspect.signature(getattr(library, name)).parameters.values()
    shared = [keyword for keyword in keywords if keyword.name in options]
    assert {"column", "top_k"} < {keyword.name for keyword in shared}
    for keyword in shared:
        assert keyword.default == options[keyword.name].default
        assert f"--{keyword.name.replace('_', '-')}" not in other.own


def test_a_query_has_one_vector_in_python_too(tmp_path: Path) -> None:
    file = tmp_path / "v.npy"
    assert bertcli("encode", "a long text about tea", "-o", file).status == 0
    for option in ({"chunk": 4}, {"keep_going": True}):
        (name,) = option
        with pytest.raises(TypeError, match=rf"search\(\) has no option '{name}'"):
            library.search("a long text about tea", file, **option)


def test_no_queries_have_no_hits(tmp_path: Path) -> None:
    text, vectors = tmp_path / "tea.txt", tmp_path / "v.npy"
    text.write_text("Green tea.\n")
    assert bertcli("encode", "-i", text, "-o", vectors).status == 0
    assert library.search_files([], text) == library.search([], vectors) == []


def test_texts_of_vectors_may_be_in_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    text, vectors, texts = tmp_path / "tea.txt", tmp_path / "v.npy", tmp_path / "t.parquet"
    text.write_text("Green tea.\nA dog.\n")
    for file in (vectors, texts):
        assert bertcli("encode", "-i", text, "-o", file).status == 0
    (record,) = bertcli("search", "dogs", "-i", vectors, "-i", texts, "--format", "jsonl").records
    assert [hit["text"] for hit in record["nearest"]] == ["A dog.", "Green tea."]

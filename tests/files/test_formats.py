"""Every ending is one format's, which has a function for each content of its files."""

from collections import Counter
from pathlib import Path

import pytest

from bertcli.files.formats import ARRAYS, BY_ENDING, FORMATS, RECORDS, TABLES, VECTOR_TABLES, endings_with, writer_of


def test_endings_say_what_files_may_hold() -> None:
    assert endings_with("texts") == (".txt", ".jsonl", ".csv", ".tsv", ".fasta", ".fa", ".parquet")
    assert RECORDS == (".json", ".jsonl")
    assert TABLES == (".json", ".jsonl", ".csv", ".tsv", ".md", ".parquet")
    assert ARRAYS == (".npy", ".npz", ".safetensors")
    assert VECTOR_TABLES == (".parquet",)
    assert set(Counter(ending for format in FORMATS for ending in format.endings).values()) == {1}
    assert ".nonsense" not in BY_ENDING
    assert [ending for ending, format in BY_ENDING.items() if format.stored] == [*ARRAYS, *VECTOR_TABLES]


def test_each_content_has_a_function_that_is_there(tmp_path: Path) -> None:
    """A function is named by its module, and imported when it is called."""
    for ending in endings_with("texts"):
        if ending != ".parquet":
            (tmp_path / f"t{ending}").write_text("")
            texts = BY_ENDING[ending].texts
            assert texts is not None
            assert texts(str(tmp_path / f"t{ending}")).rows.name == str(tmp_path / f"t{ending}")
    for content in ("records", "rows", "array", "arrays", "vectors"):
        for ending in endings_with(content):
            with pytest.raises(TypeError, match="missing"):
                writer_of(ending, content)()

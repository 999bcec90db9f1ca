"""Texts that files hold, and what is said of files that hold none."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bertcli.errors import BertcliError
from bertcli.files.read.inputs import rows_in
from bertcli.files.read.row_columns import Field, RowColumns, columns_named
from bertcli.files.texts import Text, Texts


def from_files(
    files: Sequence[str],
    column: str | None = None,
    pair_column: str | None = None,
    pair: str | None = None,
    *,
    id_column: str | None = None,
    keep_going: bool = False,
    rows_piped: bool = False,
    way_on: str = "",
    **of_rows: Any,
) -> Texts:
    """The texts in files, by the names of columns; of_rows: further fields of RowColumns."""
    column = column or (None if of_rows.get("header", True) else "1")
    named = columns_named(column, id_column)
    second = None if pair_column is None else Field(pair_column, "--pair-column")
    columns = RowColumns(named.text, second, named.id, fixed_pair=pair, **of_rows)
    return rows_in(files, columns, keep_going, rows_piped, way_on)


def texts(*files: Path | str, **options: Any) -> list[str]:
    """The texts in these files, one file after another."""
    return [text.text for text in from_files([str(file) for file in files], **options)]


def refusal(*files: Path | str, **options: Any) -> str:
    """What is said of these files, without the names of folders."""
    with pytest.raises(BertcliError) as caught:
        texts(*files, **options)
    message = str(caught.value)
    for file in files:
        message = message.replace(str(Path(file).parent) + os.sep, "")
    return message


def written(folder: Path, name: str, data: bytes | str) -> Path:
    """A file of this name and content."""
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def rows_of(folder: Path, name: str, data: bytes | str, **options: Any) -> list[Text]:
    """The rows of a file of this name and content."""
    return list(from_files([str(written(folder, name, data))], **options))


def texts_of(folder: Path, name: str, data: bytes | str, **options: Any) -> list[str]:
    """The texts that a file of this name and content holds."""
    return [text.text for text in rows_of(folder, name, data, **options)]


def refusal_of(folder: Path, name: str, data: bytes | str, **options: Any) -> str:
    """What is said of a file of this name and content."""
    return refusal(written(folder, name, data), **options)

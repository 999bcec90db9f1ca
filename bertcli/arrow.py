"""pyarrow, which reads and writes Parquet: the extra `bertcli[parquet]`, imported when it is wanted."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bertcli.errors import BertcliError


def pyarrow(file: str) -> tuple[Any, Any]:
    """The modules pyarrow and pyarrow.parquet; BertcliError naming the file that needs them where they are missing."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise BertcliError(f"{file}: Parquet needs pyarrow: pip install 'bertcli[parquet]'.") from None


def first_line(error: Exception) -> str:
    """What pyarrow says is wrong, without the lines on where in its source that is."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")

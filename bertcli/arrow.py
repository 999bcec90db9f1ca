"""pyarrow, which reads and writes Parquet: the extra `bertcli[parquet]`, imported only when needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bertcli.errors import BertcliError


def pyarrow(file: str) -> tuple[Any, Any]:
    """The modules pyarrow and pyarrow.parquet; if they are missing, BertcliError naming the file that needs them."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise BertcliError(f"{file}: Parquet needs pyarrow: pip install 'bertcli[parquet]'.") from None


def first_line(error: Exception) -> str:
    """pyarrow's error message, without the lines about where in its source it arose."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")

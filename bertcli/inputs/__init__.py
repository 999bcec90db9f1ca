"""Texts from arguments, files and pipes."""

from bertcli.inputs.files import ENDINGS, from_files, takes_columns
from bertcli.inputs.texts import Text, Texts, from_arguments, from_values, is_unicode

__all__ = [
    "ENDINGS",
    "Text",
    "Texts",
    "from_arguments",
    "from_files",
    "from_values",
    "is_unicode",
    "takes_columns",
]

"""The markers that begin the prompts of late-interaction models ("[Q] ").

Each was a single token in training, so the tokenizer must not split it: tokens/tokenizer.py calls `read_markers` by its
name.
"""

from typing import NamedTuple

from bertcli.folder.layout import Layout
from bertcli.folder.modules import STANFORD
from bertcli.kinds.multi_vector.folder_type import METADATA


class Markers(NamedTuple):
    """The markers of queries and of documents; empty for none."""

    query: str = ""
    document: str = ""


def read_markers(layout: Layout) -> Markers:
    """Read the markers of a model; none for one that is not for late interaction."""
    if is_of_stanford(layout):
        metadata = layout.folder.optional(METADATA)
        return Markers(metadata.text("query_token_id", "[unused0]"), metadata.text("doc_token_id", "[unused1]"))
    if layout.keeps_tokens:
        return Markers(layout.settings.text("query_prefix"), layout.settings.text("document_prefix"))
    return Markers()


def is_of_stanford(layout: Layout) -> bool:
    """True for a model as Stanford's library saves it. One without modules that PyLate saved has its class, too."""
    if layout.module_types or layout.keeps_tokens:
        return False
    return STANFORD in str(layout.folder.optional("config.json").get("architectures"))

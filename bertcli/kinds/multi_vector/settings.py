"""Read the settings of late interaction (ColBERT) for queries and documents.

Three layouts: sentence-transformers' MultiVectorEncoder, PyLate up to version 3, and Stanford's. Source of their
meaning: sentence-transformers 6, which reads all three.
"""

import string
from typing import Any

from bertcli.folder.files import Folder, JsonSettings, unusable
from bertcli.folder.layout import Layout
from bertcli.folder.modules import MASK
from bertcli.folder.transformer import transformer_config
from bertcli.kinds.late_interaction import LateInteraction, RoleSettings
from bertcli.kinds.multi_vector.folder_type import METADATA
from bertcli.kinds.multi_vector.markers import Markers, is_of_stanford, read_markers

CANONICAL = 32  # tokens of a query in PyLate's and Stanford's layouts, unless the settings give a length


def read_late(layout: Layout) -> LateInteraction | None:
    """Read the settings in the layout that a model has; None for a model that is not for late interaction."""
    markers = read_markers(layout)
    if is_of_stanford(layout):
        return _read_stanford(layout.folder, markers)
    if not layout.keeps_tokens:
        return None
    settings = layout.settings
    mask = next((layout.folder.within(module.path) for module in layout.modules if module.type == MASK), None)
    # A PyLate model lacks the module MultiVectorMask.
    query, document = _pylate_roles(settings) if mask is None else _encoder_roles(layout.transformer, mask)
    return LateInteraction(
        query._replace(prompt=_with_marker(markers.query, layout.prompts.named.get("query", ""))),
        document._replace(prompt=_with_marker(markers.document, layout.prompts.named.get("document", ""))),
        mean=settings.get("similarity_fn_name") == "meanmaxsim",
    )


def _with_marker(marker: str, prompt: str) -> str:
    """Put a marker before a prompt, unless it is there."""
    return marker + prompt.removeprefix(marker)


def _pylate_roles(config: JsonSettings) -> tuple[RoleSettings, RoleSettings]:
    """Make the roles of a PyLate model; settings that it lacks have ColBERT's defaults."""
    skipped = config.words("skiplist_words", [*string.punctuation])
    expansion = None
    if config.flag("do_query_expansion", True):
        length = config.positive("query_length") or CANONICAL
        attended = config.flag("attend_to_expansion_tokens", False)
        expansion = {"strategy": "fixed", "length": length, "attend": attended}
    query, document = _roles(config, expansion)
    return query, document._replace(skipped=tuple(skipped))


def _encoder_roles(network: Folder, mask: Folder) -> tuple[RoleSettings, RoleSettings]:
    """Make the roles of a MultiVectorEncoder; `mask` is the folder of its module MultiVectorMask."""
    settings = transformer_config(network)
    query, document = _roles(settings, settings.get("query_expansion"))
    masks = mask.optional("config.json")
    skipped = tuple(masks.words("skiplist_words", []))
    tasks = masks.words("skiplist_tasks", ["document"])
    if masks.get("keep_only_token_ids"):
        raise unusable(masks.file, "has keep_only_token_ids, which are for documents that are images")
    return (
        query._replace(skipped=skipped if "query" in tasks else ()),
        document._replace(skipped=skipped if "document" in tasks else ()),
    )


def _read_stanford(folder: Folder, markers: Markers) -> LateInteraction:
    """Read artifact.metadata of a Stanford model; settings that it lacks have ColBERT's defaults."""
    config = folder.optional(METADATA)
    length = config.positive("query_maxlen") or CANONICAL
    attended = config.flag("attend_to_mask_tokens", False)
    skipped = tuple(string.punctuation) if config.flag("mask_punctuation", True) else ()
    query = RoleSettings(f"{markers.query} ", length, length, None, attended)
    document = RoleSettings(f"{markers.document} ", config.positive("doc_maxlen"), skipped=skipped)
    return LateInteraction(query, document, is_stated=folder.has(METADATA))


def _roles(settings: JsonSettings, expansion: Any) -> tuple[RoleSettings, RoleSettings]:
    """Make the roles of queries and documents from their lengths and the query expansion."""
    length = settings.positive("query_length")
    document = RoleSettings(length=settings.positive("document_length"))
    if expansion is None:
        return RoleSettings(length=length), document
    expected = isinstance(expansion, dict) and not expansion.keys() - {"strategy", "attend", "token", "length"}
    if not expected or expansion.get("strategy") not in ("fixed", "min"):
        raise settings.refused("query_expansion")
    expansion = JsonSettings(expansion, settings.file)
    filled, attended = expansion.positive("length"), expansion.flag("attend", False)
    if filled is None:
        raise unusable(settings.file, "has a query_expansion without a length")
    if length is not None and length < filled:
        raise settings.refused("query_length", f", less than the length {filled} of its query_expansion")
    limit = filled if expansion["strategy"] == "fixed" else length
    return RoleSettings("", limit, filled, expansion.text("token") or None, attended), document

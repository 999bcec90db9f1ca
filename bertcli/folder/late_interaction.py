"""Late interaction (ColBERT): read the settings for queries and documents, which get a vector for each token.

Three layouts: sentence-transformers' MultiVectorEncoder, PyLate up to version 3, and Stanford's. Source of their
meaning: sentence-transformers 6, which reads all three. tasks/parts/late.py applies the settings.
"""

import string
from typing import Any, NamedTuple

from bertcli.folder.files import Folder, JsonSettings, unusable
from bertcli.folder.prompts import MODEL_FILE, Prompts
from bertcli.folder.transformer import transformer_settings

METADATA = "artifact.metadata"  # Stanford's settings
CANONICAL = 32  # tokens of a query in PyLate's and Stanford's layouts, unless the settings give a length


class Role(NamedTuple):
    """Settings for queries, or for documents.

    prompt     put before the text
    length     the limit of tokens; None: the model's
    filled     expand the text to this number of tokens (query expansion)
    token      the expansion token, which is scored like others; None: the mask token
    attended   the other tokens attend to expansion tokens
    skipped    the pieces that are not scored, such as punctuation
    left_out   the number of tokens at the beginning that are not scored
    """

    prompt: str = ""
    length: int | None = None
    filled: int = 0
    token: str | None = None
    attended: bool = True
    skipped: tuple[str, ...] = ()
    left_out: int = 0


class LateInteraction(NamedTuple):
    """Settings for queries and documents. `mean`: divide scores by the number of the query's tokens.

    `markers` begin prompts ("[Q] "). Each was a single token in training, so the tokenizer must not split it.
    `is_stated`: false if no file has these settings; they are then ColBERT's. `note`: what a ranking says of them.
    """

    query: Role
    document: Role
    mean: bool = False
    markers: tuple[str, ...] = ()
    is_stated: bool = True
    note: str = ""


def is_pylate(settings: JsonSettings) -> bool:
    """True if PyLate saved the model, by its config_sentence_transformers.json."""
    return settings.get("model_type") == "ColBERT" or "query_prefix" in settings


def read_late(settings: JsonSettings, prompts: Prompts, network: Folder, mask: Folder | None) -> LateInteraction:
    """Read the settings of a MultiVectorEncoder, or of a PyLate model.

    `mask` is the folder of the module MultiVectorMask, which a PyLate model lacks.
    """
    texts, markers = dict(prompts.named), []
    for name in ("query", "document"):
        marker = settings.text(f"{name}_prefix")
        texts[name] = marker + texts.get(name, "").removeprefix(marker)
        markers += [marker] if marker else []
    query, document = _pylate_roles(settings) if mask is None else _encoder_roles(network, mask)
    return LateInteraction(
        query._replace(prompt=texts["query"]),
        document._replace(prompt=texts["document"]),
        mean=settings.get("similarity_fn_name") == "meanmaxsim",
        markers=tuple(markers),
    )


def _pylate_roles(config: JsonSettings) -> tuple[Role, Role]:
    """Make the roles of a PyLate model; settings that it lacks have ColBERT's defaults."""
    skipped = config.words("skiplist_words", [*string.punctuation])
    expansion = None
    if config.flag("do_query_expansion", True):
        length = config.positive("query_length") or CANONICAL
        attended = config.flag("attend_to_expansion_tokens", False)
        expansion = {"strategy": "fixed", "length": length, "attend": attended}
    query, document = _roles(config, expansion)
    return query, document._replace(skipped=tuple(skipped))


def _encoder_roles(network: Folder, mask: Folder) -> tuple[Role, Role]:
    """Make the roles of a MultiVectorEncoder; `mask` is the folder of its module MultiVectorMask."""
    settings = transformer_settings(network) or JsonSettings({}, network.file(MODEL_FILE))
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


def read_stanford(folder: Folder) -> LateInteraction:
    """Read artifact.metadata of a Stanford model; settings that it lacks have ColBERT's defaults."""
    config = folder.optional(METADATA)
    markers = [config.text(f"{key}_token_id", f"[unused{n}]") for n, key in enumerate(("query", "doc"))]
    length = config.positive("query_maxlen") or CANONICAL
    attended = config.flag("attend_to_mask_tokens", False)
    skipped = tuple(string.punctuation) if config.flag("mask_punctuation", True) else ()
    query = Role(f"{markers[0]} ", length, length, None, attended)
    document = Role(f"{markers[1]} ", config.positive("doc_maxlen"), skipped=skipped)
    return LateInteraction(query, document, markers=tuple(markers), is_stated=folder.has(METADATA))


def _roles(settings: JsonSettings, expansion: Any) -> tuple[Role, Role]:
    """Make the roles of queries and documents from their lengths and the query expansion."""
    length = settings.positive("query_length")
    document = Role(length=settings.positive("document_length"))
    if expansion is None:
        return Role(length=length), document
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
    return Role("", limit, filled, expansion.text("token") or None, attended), document

"""Late interaction (ColBERT): how a folder says that queries and documents are read, a vector for each of their tokens.

Three layouts: sentence-transformers' MultiVectorEncoder, PyLate up to version 3, and Stanford's. Source of their
meaning: sentence-transformers 6, which reads all three.
"""

import string
from typing import Any, NamedTuple

from bertcli.folder.files import JsonSettings, unusable
from bertcli.folder.layout import MASK, MODEL_FILE, Layout

METADATA = "artifact.metadata"  # Stanford's settings
CANONICAL = 32  # tokens of a query, where a folder of PyLate or Stanford does not say


class Role(NamedTuple):
    """Settings of queries, or of documents: `prompt` comes first, `length` cuts (None: the model's limit of tokens).

    Up to `filled` tokens they are followed by `token` (None: the mask token), which is scored, too; if not `attended`,
    no other token looks at it. The pieces `skipped` are not scored, nor are the first `left_out` tokens.
    """

    prompt: str = ""
    length: int | None = None
    filled: int = 0
    token: str | None = None
    attended: bool = True
    skipped: tuple[str, ...] = ()
    left_out: int = 0


class LateInteraction(NamedTuple):
    """Settings of both. `mean`: scores are divided by the number of the query's tokens.

    `markers` are prompts, or begin them, that were one token each in training, whatever a tokenizer makes of such text.
    """

    query: Role
    document: Role
    mean: bool = False
    markers: tuple[str, ...] = ()


def late_interaction(layout: Layout) -> LateInteraction:
    """Read how a model of late interaction reads queries and documents."""
    return _of_stanford(layout.folder.optional(METADATA)) if layout.is_stanford else _of_modules(layout)


def _of_modules(layout: Layout) -> LateInteraction:
    """A MultiVectorEncoder, or a model of PyLate, which has no module to say which vectors are scored."""
    config, folder = layout.settings, layout.folder
    prompts, markers = dict(layout.prompts.named), []
    for name in ("query", "document"):
        marker = config.text(f"{name}_prefix")
        prompts[name] = marker + prompts.get(name, "").removeprefix(marker)
        markers += [marker] if marker else []
    mask = next((folder.within(module.path) for module in layout.modules if module.type == MASK), None)
    if mask is None:
        skipped = config.words("skiplist_words", [*string.punctuation])
        expansion = None
        if config.flag("do_query_expansion", True):
            length = config.positive("query_length") or CANONICAL
            attended = config.flag("attend_to_expansion_tokens", False)
            expansion = {"strategy": "fixed", "length": length, "attend": attended}
        query, document = _roles(config, expansion)
        tasks = ["document"]
    else:
        place, transformer = layout.transformer, layout.transformer_file
        settings = place.object(transformer) if transformer else JsonSettings({}, place.file(MODEL_FILE))
        query, document = _roles(settings, settings.get("query_expansion"))
        masks = mask.optional("config.json")
        skipped, tasks = masks.words("skiplist_words", []), masks.words("skiplist_tasks", ["document"])
        if masks.get("keep_only_token_ids"):
            raise unusable(masks.file, "has keep_only_token_ids, which are for documents that are images")
    query, document = (
        role._replace(prompt=prompts[name], skipped=tuple(skipped) if name in tasks else ())
        for name, role in (("query", query), ("document", document))
    )
    return LateInteraction(query, document, config.get("similarity_fn_name") == "meanmaxsim", tuple(markers))


def _of_stanford(config: JsonSettings) -> LateInteraction:
    """Read artifact.metadata; what it leaves out has ColBERT's defaults."""
    markers = [config.text(f"{key}_token_id", f"[unused{n}]") for n, key in enumerate(("query", "doc"))]
    length = config.positive("query_maxlen") or CANONICAL
    attended = config.flag("attend_to_mask_tokens", False)
    skipped = tuple(string.punctuation) if config.flag("mask_punctuation", True) else ()
    query = Role(f"{markers[0]} ", length, length, None, attended)
    document = Role(f"{markers[1]} ", config.positive("doc_maxlen"), skipped=skipped)
    return LateInteraction(query, document, markers=tuple(markers))


def _roles(settings: JsonSettings, expansion: Any) -> tuple[Role, Role]:
    """Queries and documents, from what both layouts call their lengths."""
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
    limit = filled if expansion["strategy"] == "fixed" else length and max(length, filled)
    return Role("", limit, filled, expansion.text("token") or None, attended), document

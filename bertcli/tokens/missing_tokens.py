"""Add tokens and steps that a tokenizer's files lack, and that its class in transformers adds.

load_tokenizer.py calls these.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from tokenizers import Tokenizer as Backend
from tokenizers import normalizers, processors

from bertcli.errors import BertcliError, quoted
from bertcli.tokens.settings import Settings


def append_tokens(backend: Backend, settings: Settings, special: Mapping[str, str], folder: Path) -> None:
    """Add the tokens after the end of a vocabulary (added_tokens.json); `special` maps roles to tokens.

    Errors: BertcliError for an id that is neither the token's in the vocabulary nor the next one.
    """
    for id, token in sorted(settings.added.items()):
        next_id = backend.get_vocab_size()
        allowed = None if id == next_id else id
        if backend.token_to_id(token.content) != allowed:
            raise BertcliError(
                f"{folder} gives the added token {quoted(token.content)} the id {id}, which is neither its own in the "
                f"vocabulary nor the next one, {next_id}: use another model."
            )
        token.special = token.special or token.content in special.values()
        (backend.add_special_tokens if token.special else backend.add_tokens)([token])
    mask = settings.named.get("mask", "[MASK]")
    # The only class whose vocabulary may lack the mask.
    if settings.class_name == "debertav2" and backend.token_to_id(mask) is None:
        backend.add_special_tokens([mask])


def add_template(backend: Backend, special: Mapping[str, str], folder: Path) -> None:
    """Add the template of special tokens around texts.

    BERT: [CLS] A [SEP] and [CLS] A [SEP] B [SEP]; RoBERTa: <s> A </s> and <s> A </s></s> B </s>.
    """
    first, last = special["cls"], special["sep"]
    ids = [(token, backend.token_to_id(token)) for token in (first, last)]
    missing = ", ".join(token for token, id in ids if id is None)
    if missing:
        raise BertcliError(
            f"The vocabulary in {folder} lacks {missing}, which BERT puts around every text: use another model."
        )
    second = [f"{last}:0", "$B:0", f"{last}:0"] if first == "<s>" else ["$B:1", f"{last}:1"]
    backend.post_processor = processors.TemplateProcessing(
        single=[f"{first}:0", "$A:0", f"{last}:0"],
        pair=[f"{first}:0", "$A:0", f"{last}:0", *second],
        special_tokens=ids,
    )


def add_lowercase(backend: Backend) -> None:
    """Put Lowercase before the normalizer, unless that includes it, as sentence-transformers does."""
    normalizer = backend.normalizer
    state = {} if normalizer is None else json.loads(normalizer.__getstate__())
    if all(step["type"] != "Lowercase" for step in (state, *state.get("normalizers", ())) if step):
        steps = [normalizers.Lowercase(), *([] if normalizer is None else [normalizer])]
        backend.normalizer = normalizers.Sequence(steps)

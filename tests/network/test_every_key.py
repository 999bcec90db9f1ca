"""Each key of config.json that is a family's field changes what the network gives, or is refused, or is named here."""

from collections.abc import Iterator
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.family_checkpoints import FAMILIES, make_family
from helpers.json_files import read_json
from numpy.typing import NDArray
from reference.cases import ids_of
from reference.family_cases import PADS

import bertcli
from bertcli.engine.packing import pack
from bertcli.errors import BertcliError
from bertcli.models.registry import family as family_of

HEADS = ("mlm", "lm", "classifier", "token_classifier")  # of which the first two that a family has are tried
LENGTHS = (40, 5)  # the longer text goes beyond every window of these small models

# Fields that change nothing, and why.
FIXED = "transformers has a constant there"
RMS = "rms_norm_eps is this family's"
NO_DECODER = "no head of these models has a decoder that could be tied"
APART = "a decoder that is stored with other values than the embeddings is kept apart, as in transformers"
DERIVED = "no key of config.json: another key or the tensors decide it"
UNLIMITED = "positions are relative, and without a limit"
LATER = "of DeBERTa-v2 and later"
EXPERTS = "only layers with experts read it, and this model has none (test_families.py has such models)"
OF_T5 = {
    "layer_norm_eps": RMS,
    "tie_word_embeddings": NO_DECODER,
    "hidden_act": DERIVED,
    "is_gated": DERIVED,
    "max_position_embeddings": UNLIMITED,
}
IDLE: dict[str, dict[str, str]] = {
    "distilbert": {"layer_norm_eps": FIXED},
    "mpnet": {"type_vocab_size": "it has no segments"},
    "deberta": dict.fromkeys(("norm_rel_ebd", "conv_kernel_size", "position_buckets", "conv_act"), LATER),
    "nomic_bert": {"is_gated": DERIVED, "num_experts": EXPERTS, "moe_top_k": EXPERTS},
    "eurobert": {"layer_norm_eps": RMS, "tie_word_embeddings": APART},
    "gemma3_text": {"layer_norm_eps": RMS, "tie_word_embeddings": NO_DECODER},
    "qwen3": {"layer_norm_eps": RMS, "tie_word_embeddings": APART},
    "qwen2": {"layer_norm_eps": RMS, "tie_word_embeddings": APART, "attention_bias": FIXED},
    "t5": OF_T5,
    "mt5": OF_T5,
    "umt5": OF_T5,
    "esm": {"hidden_act": FIXED},
    "jina_bert": {"max_position_embeddings": UNLIMITED, "qk_norm": DERIVED},
}
# What makes other keys matter.
SLIDING = {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}
GIVEN: dict[str, dict[str, Any]] = {
    "qwen2": SLIDING,
    "qwen3": SLIDING,
    "deberta-v2": {"conv_kernel_size": 3},
}


class Sentence:
    """Token ids and segments, as `pack` takes them."""

    def __init__(self, ids: list[int], segments: list[int]) -> None:
        self.ids, self.segments = ids, segments


def outcome(folder: Path, family: str, head: str, config: dict[str, Any]) -> list[NDArray[Any]] | str:
    """The limit of a text, the states, and each head's logits; of a model that is refused, the message."""
    try:
        model = bertcli.load(make_family(folder, family, head, config=config))
    except BertcliError as error:
        return str(error)
    sentences = []
    for length in LENGTHS:
        ids = [2, *(int(id) + 4 for id in ids_of(length, 100, length))]
        ids[2:4] = PADS[family], 3  # padding and a mask within a text, to which some families pay attention
        half = len(ids) // 2
        sentences.append(Sentence(ids, [0] * half + [int(model.config.has_segments)] * (len(ids) - half)))
    batch, network = pack(sentences), model.network
    heads = [network.predict(name, network(batch, network.input_rows(name, batch)), batch) for name in model.heads]
    return [np.array(model.config.max_tokens), network(batch), *heads]


def differ(before: list[NDArray[Any]] | str, after: list[NDArray[Any]] | str) -> bool:
    """True if a model is refused now, or gives something else."""
    if isinstance(before, str) or isinstance(after, str):
        return before != after
    return any(a.shape != b.shape or not np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def alternatives(item: Field[Any], value: Any) -> Iterator[Any]:
    """Other values of a field, within its range."""
    if "choices" in item.metadata:
        # silu and swish are one function, and two names of GELU's approximation another.
        synonyms = {"silu": "swish", "gelu_pytorch_tanh": "gelu_new", "gelu_new": "gelu_pytorch_tanh"}
        yield from [choice for choice in item.metadata["choices"] if choice not in (value, synonyms.get(value))][:1]
    elif isinstance(value, bool):
        yield not value
    elif item.name.endswith("eps"):
        yield 0.05
    elif "range" in item.metadata:
        least, most = item.metadata["range"]
        larger = 3 if value is None else value * 2 or least + (most - least) / 2
        yield larger if larger <= most else (least + value) / 2


@pytest.mark.parametrize("family", FAMILIES)
def test_every_key_of_a_family_is_heeded_or_refused(family: str, tmp_path: Path) -> None:
    heads = [head for head in HEADS if head in FAMILIES[family].heads][:2]
    given = GIVEN.get(family, {})
    before = {head: outcome(tmp_path / head, family, head, given) for head in heads}
    told = read_json(tmp_path / heads[0] / "config.json")
    config = family_of(family).config
    values = config.parse({**told, "model_type": family})
    idle = set()
    for item in fields(config):
        for value in alternatives(item, getattr(values, item.name)):
            changed = given | {config.key(item.name): value}
            if not any(differ(before[head], outcome(tmp_path / "changed", family, head, changed)) for head in heads):
                idle.add(item.name)
    assert idle == IDLE.get(family, {}).keys()

"""BERT configurations, with config.json's own keys, and the named variants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bertcli.errors import BertcliError
from bertcli.kernels import ACTIVATIONS
from bertcli.untrusted import shown

HEADS = ("pooler", "mlm", "nsp", "classifier")
TEXTBOOK = "textbook"
LARGEST = {"num_hidden_layers": 1000}
LARGEST_SIZE = 1 << 24  # far above any BERT; anything larger is a mistake, or an attempt to exhaust memory
MOST_SENTENCES = 1 << 20


@dataclass(frozen=True)
class BertConfig:
    """A BERT configuration with config.json's own keys; the defaults are those of BERT-base uncased."""

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-12
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    pad_token_id: int = 0
    tie_word_embeddings: bool = True
    num_labels: int = 2
    id2label: Mapping[int, str] = field(default_factory=dict)
    problem_type: str | None = None
    model_type: str = "bert"
    architectures: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for key in ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
                    "max_position_embeddings", "type_vocab_size", "num_labels"):  # fmt: skip
            if getattr(self, key) < 1:
                raise BertcliError(f"{key} is {getattr(self, key)}; it must be at least 1.")
            if getattr(self, key) > (most := LARGEST.get(key, LARGEST_SIZE)):
                raise BertcliError(f"{key} is {getattr(self, key)}; it must be at most {most}.")
        if self.hidden_size % self.num_attention_heads:
            divisors = [n for n in range(1, self.hidden_size + 1) if self.hidden_size % n == 0]
            near = sorted(divisors, key=lambda n: abs(n - self.num_attention_heads))[:3]
            raise BertcliError(
                f"hidden_size {self.hidden_size} cannot be split over num_attention_heads {self.num_attention_heads}; "
                f"possible numbers are, for example, {', '.join(map(str, sorted(near)))}."
            )
        if self.hidden_act not in ACTIVATIONS:
            raise BertcliError(f"hidden_act {shown(self.hidden_act)} is unknown; known are {', '.join(ACTIVATIONS)}.")
        if not 0 < self.layer_norm_eps < 1:
            raise BertcliError(f"layer_norm_eps is {self.layer_norm_eps}; it must be between 0 and 1.")

    @property
    def sizes(self) -> dict[str, int]:
        """Size of every axis by its symbol (the glossary is in tree.py)."""
        return {
            "V": self.vocab_size, "H": self.hidden_size, "L": self.num_hidden_layers, "A": self.num_attention_heads,
            "D": self.hidden_size // self.num_attention_heads, "F": self.intermediate_size,
            "P": self.max_position_embeddings, "T": self.type_vocab_size, "C": self.num_labels,
        }  # fmt: skip

    def check_input(self, batch: int | None, sequence: int | None) -> None:
        """Raise BertcliError for an impossible number of sentences, or of tokens in each; None means any."""
        longest = self.max_position_embeddings
        if sequence is not None and not 1 <= sequence <= longest:
            raise BertcliError(
                f"A sequence length of {sequence} is not possible; with this model it must be 1 to {longest}."
            )
        if batch is not None and not 1 <= batch <= MOST_SENTENCES:
            raise BertcliError(f"A batch size of {batch} is not possible; it must be 1 to {MOST_SENTENCES:,}.")

    @property
    def labels(self) -> list[str]:
        """Name of every label: from id2label, else LABEL_0, LABEL_1, …"""
        return [self.id2label.get(i, f"LABEL_{i}") for i in range(self.num_labels)]


def _config(layers: int, hidden: int, vocab: int = 30522) -> BertConfig:
    return BertConfig(
        vocab_size=vocab,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64,
        intermediate_size=4 * hidden,
    )


VARIANTS: dict[str, BertConfig] = {
    "tiny": _config(2, 128),
    "mini": _config(4, 256),
    "small": _config(4, 512),
    "medium": _config(8, 512),
    "base": _config(12, 768),
    "large": _config(24, 1024),
    "base-cased": _config(12, 768, vocab=28996),
    "large-cased": _config(24, 1024, vocab=28996),
    "base-multilingual-cased": _config(12, 768, vocab=119547),
    "base-chinese": _config(12, 768, vocab=21128),
    TEXTBOOK: replace(_config(12, 768), hidden_act="relu", layer_norm_eps=1e-5, model_type=TEXTBOOK),
}


def variant_config(name: str) -> BertConfig:
    """The configuration of a variant by its name."""
    try:
        return VARIANTS[name]
    except KeyError:
        raise BertcliError(f"There is no variant '{name}'; choose from {', '.join(VARIANTS)}.") from None


def parse_heads(heads: str | tuple[str, ...] | list[str]) -> tuple[str, ...]:
    """Heads from a list or from "mlm,nsp" or "none", in a fixed order; nsp and classifier include the pooler."""
    names = [name.strip() for name in heads.split(",")] if isinstance(heads, str) else list(heads)
    if names == ["none"]:
        return ()
    for name in names:
        if name not in HEADS:
            raise BertcliError(f"There is no head '{name}'; choose from {', '.join(HEADS)}, or none.")
    wanted = set(names) | ({"pooler"} if {"nsp", "classifier"} & set(names) else set())
    return tuple(name for name in HEADS if name in wanted)

"""`CandidateScorer`: what scores candidates that a request names; a kind that takes them has one.

tasks/compute/classify.py makes records with it. Nothing is computed here.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple, Protocol

from bertcli.engine.packing import Packed, Sentence
from bertcli.tokens import Tokens
from bertcli.tracing.dispatch import Array

PLACE = "{}"  # of a candidate in a template


class CandidateOptions(NamedTuple):
    """What a request asks for.

    candidates   the labels to choose from, each once
    template     the words around a candidate, with PLACE; None: the kind's own
    limit        gives the number of tokens of a text, with the candidates
    """

    candidates: tuple[str, ...]
    template: str | None
    limit: Callable[[], int]


class CandidateScorer(Protocol):
    """Scores candidates for texts, whose tokens are those of `tokens`. A text is a sentence of a batch."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the candidates."""

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """Tokenize texts; `lost` is the number of a text's tokens that there is no room for."""

    def cost(self, text: str, tokens: Tokens) -> int:
        """The work of a text, in tokens of a small model."""

    def sentence(self, text: str, tokens: Tokens) -> Sentence:
        """Put a text behind the candidates."""

    def key(self, window: Sentence) -> Hashable:
        """What must be equal, beside its tokens, for two sentences to have equal logits."""

    def logits(self, windows: Sequence[Sentence], hidden_states: Callable[[Packed], Array]) -> list[Array]:
        """Compute the logits [candidate] of sentences that are one batch. hidden_states: gives the last layer's."""

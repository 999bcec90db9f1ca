"""`EntityFinder`: what finds entities of types that a request names; a kind that takes labels has one.

tasks/parts/entities.py makes records with it. Nothing is computed here.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from bertcli.engine.packing import Packed, Sentence
from bertcli.tokens import Tokens
from bertcli.tracing.dispatch import Array


class FinderOptions(NamedTuple):
    """What a request asks for.

    labels        the types of entities, each once
    threshold     the score above which an entity counts; None: the library's
    nested        an entity may lie inside another
    multi_label   the same words may have several labels
    limit         tokens of a window, with the labels
    stride        tokens that neighboring windows share; None: the kind's own rule
    """

    labels: tuple[str, ...]
    threshold: float | None
    nested: bool
    multi_label: bool
    limit: int
    stride: int | None


class LabelledSpan(NamedTuple):
    """An entity: its first character, the one after its last, its label and its score."""

    start: int
    end: int
    label: str
    score: float


class EntityFinder(Protocol):
    """Finds entities in texts, whose tokens are those of `tokens`. A window of a text is a sentence of a batch.

    labels_named   the label of entities for each way in which a request may name it
    """

    @property
    def labels_named(self) -> Mapping[str, str]: ...

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """Tokenize texts."""

    def words(self, text: str, tokens: Tokens) -> list[tuple[int, int]]:
        """The first character of each word that counts, and the one after its last."""

    def cost(self, text: str, tokens: Tokens) -> int:
        """The work of a text, in tokens of a small model."""

    def is_cut(self, text: str, tokens: Tokens) -> bool:
        """True if some of the text is not read."""

    def windows(self, text: str, tokens: Tokens) -> Sequence[Sentence]:
        """Split a text into windows; none for a text without words."""

    def key(self, window: Sentence) -> Hashable:
        """What must be equal, beside its tokens, for two windows to have equal logits."""

    def logits(self, windows: Sequence[Sentence], hidden_states: Callable[[Packed], Array]) -> list[Array]:
        """Compute the logits of windows that are one batch. hidden_states: gives those of the last layer."""

    def entities(
        self, text: str, tokens: Tokens, windows: Sequence[Sentence], logits: Iterator[Array]
    ) -> list[LabelledSpan]:
        """Choose the entities of a text, in its order; `logits` yields those of each window, in turn."""

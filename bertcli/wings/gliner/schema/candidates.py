"""`SchemaCandidates`: the scores of GLiNER2 for the candidates of a request.

The prompt is as for entities, but with the mark [L], and a task's name in place of "entities": the template's words.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar, Self

from bertcli.engine.packing import Packed, pack
from bertcli.kinds.candidate_labels import PLACE, CandidateOptions
from bertcli.kinds.entities import FinderOptions
from bertcli.kinds.opened import Opened
from bertcli.tokens import Tokens
from bertcli.tokens.words import Word
from bertcli.tracing.dispatch import Array
from bertcli.wings.gliner.schema.finder import SchemaFinder, SchemaWindow
from bertcli.wings.gliner.schema.settings import LABEL
from bertcli.wings.gliner.schema.words import read_words

TASK_NAME = "category"  # the library has no name of its own


class SchemaCandidates(SchemaFinder):
    """Scores candidates. One may be described: "sports: games, teams and players"."""

    mark: ClassVar[str] = LABEL

    @classmethod
    def of(cls, settings: Any, model: Opened, options: CandidateOptions) -> Self:
        """Make the scorer of a request."""
        task = (options.template or "").replace(PLACE, "").strip(" .:") or TASK_NAME
        asked = FinderOptions(options.candidates, None, False, False, options.limit(), None)
        return cls(settings, model, asked, task)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the candidates."""
        return tuple(type.name for type in self.types)

    def split(self, text: str) -> list[Word]:
        """Split a text into words; of a text without words, the sign that is put after it."""
        return read_words(text)

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """Tokenize texts; `lost` is the number of a text's tokens that there is no room for."""
        return [self._with_lost(text, tokens) for text, tokens in zip(texts, super().tokens(texts), strict=True)]

    def _with_lost(self, text: str, tokens: Tokens) -> Tokens:
        of_text, _ = self.parted(text, tokens)
        counts = [len(piece.ids) for piece in of_text]
        # Only the first window is read.
        kept = self._slices(counts)[0].stop if counts else 0
        return replace(tokens, lost=sum(counts[kept:]))

    def cost(self, text: str, tokens: Tokens) -> int:
        """The tokens of the text and of the candidates."""
        return min(self.options.limit, len(tokens.ids) + len(self.prompt_of_labels.ids))

    def sentence(self, text: str, tokens: Tokens) -> SchemaWindow:
        """Put a text behind the candidates; what there is no room for is left out."""
        windows = self.windows(text, tokens)
        return windows[0] if windows else self.window([], 0, self.pieces(text, tokens))

    def logits(self, windows: Sequence[Any], hidden_states: Callable[[Packed], Array]) -> list[Array]:
        """Compute the logits of each sentence: [candidate]."""
        network: Any = self.model.network
        packed = pack(windows)
        rows = self.rows(windows, packed.offsets[:-1].tolist())
        logits: Array = network.candidate_scores(hidden_states(packed), rows)[:, 0]
        step = len(self.types)
        return [logits[first:last] for first, last in pairwise(range(0, len(logits) + 1, step))]

"""Late interaction (ColBERT): a vector for every token of a query and of a document.

kinds/max_sim.py says how well they match.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bertcli.engine.packing import pack
from bertcli.errors import BertcliError, quoted
from bertcli.folder.late_interaction import Role
from bertcli.loaded_model import LoadedModel
from bertcli.models.registry import family
from bertcli.tasks.running.batches import check_finite, hidden_states, in_micro_batches
from bertcli.tokens import Tokens
from bertcli.tracing.dispatch import Array

logger = logging.getLogger("bertcli")


@dataclass(frozen=True, eq=False, repr=False)
class TokenVectors:
    """Computes token vectors of queries, or of documents; `finish` applies the layers after the network."""

    model: LoadedModel
    role: Role
    finish: Callable[[Array], Array]

    def of(self, texts: Sequence[Tokens], batch_tokens: int | None) -> tuple[list[Tokens], list[Array]]:
        """Return the scored tokens of each text, and their vectors [token, width]."""
        lengths = [len(tokens.ids) for tokens in texts]
        filled = [self.filled(tokens) for tokens in texts]

        def run(batch: list[int]) -> list[Array]:
            packed = pack([filled[i] for i in batch])
            if self.role.attended or not self.role.filled:
                hidden = hidden_states(self.model, packed)
            else:  # by NumPy with every engine: a graph's mask leaves tokens out on both sides
                hidden = self.model.network(packed.attending([lengths[i] for i in batch]))
            vectors = self.finish(hidden)
            check_finite(vectors)
            return np.split(vectors, packed.offsets[1:-1])

        vectors = in_micro_batches(filled, batch_tokens, run, lengths)
        scored = [self.scored(tokens) for tokens in filled]
        kept = [_only(tokens, positions) for tokens, positions in zip(filled, scored, strict=True)]
        return kept, [rows[positions] for rows, positions in zip(vectors, scored, strict=True)]

    def scored(self, filled: Tokens) -> list[int]:
        """List the positions of an expanded text's tokens that are scored."""
        return [i for i, id in enumerate(filled.ids) if i >= self.role.left_out and id not in self._skipped]

    def filled(self, tokens: Tokens) -> Tokens:
        """Expand a query with expansion tokens, as the network reads it."""
        missing = self.role.filled - len(tokens.ids)
        if missing <= 0:
            return tokens
        return replace(tokens, ids=tokens.ids + [self._fill] * missing, segments=tokens.segments + [0] * missing)

    @cached_property
    def _fill(self) -> int:
        """The id of the expansion token."""
        token, tokenizer, most = self.role.token, self.model.tokenizer, self.model.config.max_tokens
        masked = not self.role.attended and family(self.model.config.model_type).zero_masked_embeddings
        if masked or tokenizer.fills_left:
            how = "are not attended to" if masked else "come first (padding_side)"
            raise BertcliError(
                f"Queries of {self.model.name} are filled with tokens that {how}, which bertcli does not do: "
                "use another model."
            )
        if self.role.filled > most:
            raise BertcliError(
                f"Queries are filled up to {self.role.filled} tokens, but this model has {most} positions."
            )
        id = tokenizer.mask_id if token is None else tokenizer.id_of(token)
        if id is None:
            raise BertcliError(
                f"Queries are filled up with {quoted(token)}, which the vocabulary lacks: use another model."
            )
        return id

    @cached_property
    def _skipped(self) -> frozenset[int]:
        """Ids of tokens that are not scored."""
        ids = {word: self.model.tokenizer.id_of(word) for word in self.role.skipped}
        if unknown := [word for word, id in ids.items() if id is None]:
            words = ", ".join(map(quoted, unknown))
            logger.warning("the skip list has words that are not in the vocabulary and have no effect: %s.", words)
        return frozenset(id for id in ids.values() if id is not None)


def _only(tokens: Tokens, positions: Sequence[int]) -> Tokens:
    """The tokens at these positions."""
    return replace(tokens, ids=[tokens.ids[i] for i in positions], segments=[tokens.segments[i] for i in positions])

"""`TokenVectors`: the vectors of a text's tokens in late interaction (ColBERT).

kinds/scored_tokens.py says which tokens count, kinds/max_sim.py how well they match.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bertcli.engine.packing import pack
from bertcli.errors import check_finite
from bertcli.kinds.late_interaction import RoleSettings
from bertcli.kinds.scored_tokens import RoleTokens, only
from bertcli.loaded_model import LoadedModel
from bertcli.tasks.running.batches import hidden_states, in_micro_batches
from bertcli.tokens import Tokens
from bertcli.tracing.dispatch import Array

logger = logging.getLogger("bertcli")


@dataclass(frozen=True, eq=False, repr=False)
class TokenVectors:
    """Computes token vectors of queries, or of documents; `finish` applies the layers after the network."""

    model: LoadedModel
    role: RoleSettings
    finish: Callable[[Array], Array]

    @cached_property
    def tokens(self) -> RoleTokens:
        """Which tokens there are, and which of them are scored."""
        return RoleTokens(self.model, self.role)

    def of(self, texts: Sequence[Tokens], batch_tokens: int | None) -> tuple[list[Tokens], list[Array]]:
        """Return the scored tokens of each text, and their vectors [token, width]."""
        lengths = [len(tokens.ids) for tokens in texts]
        filled = [self.tokens.filled(tokens) for tokens in texts]

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
        scored = [self.tokens.scored(tokens) for tokens in filled]
        kept = [only(tokens, positions) for tokens, positions in zip(filled, scored, strict=True)]
        return kept, [rows[positions] for rows, positions in zip(vectors, scored, strict=True)]

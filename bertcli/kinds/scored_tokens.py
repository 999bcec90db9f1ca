"""`RoleTokens`: which tokens of a query or a document have a vector in late interaction, and what fills a query up.

late_interaction.py has the settings; tasks/parts/token_vectors.py runs the network on what is here.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from bertcli.errors import BertcliError, quoted
from bertcli.kinds.late_interaction import RoleSettings
from bertcli.kinds.opened import Opened
from bertcli.models.registry import family
from bertcli.tokens import Tokens

logger = logging.getLogger("bertcli")


@dataclass(frozen=True, eq=False, repr=False)
class RoleTokens:
    """The tokens of texts in a role. Errors: BertcliError for an expansion that bertcli does not do."""

    model: Opened
    role: RoleSettings

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


def only(tokens: Tokens, positions: Sequence[int]) -> Tokens:
    """The tokens at these positions."""
    return replace(tokens, ids=[tokens.ids[i] for i in positions], segments=[tokens.segments[i] for i in positions])

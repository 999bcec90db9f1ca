"""A cross-encoder made of modules: it reads a query and a document together and gives the score of the pair.

Its modules are a pooling with Dense and LayerNorm layers up to the logits, or LogitScore, which compares logits of the
next token. One with a classification head needs no settings from here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bertcli.errors import BertcliError, quoted
from bertcli.folder.files import Folder
from bertcli.folder.layout import Layout
from bertcli.folder.modules import SCORES
from bertcli.kinds.kind import Kind, numbered
from bertcli.kinds.modules import Modules, check_layers, settings
from bertcli.kinds.opened import Opened
from bertcli.kinds.pair_scores import PairScores
from bertcli.network.after_pooling import Dense, LayerNorm


class LogitScore(NamedTuple):
    """The ids of two answers: a pair's logit is the next token's logit for `true` minus that for `false`, if any."""

    true: int
    false: int | None


@dataclass(frozen=True)
class CrossEncoder(Kind):
    """scores: from the pooled vector of a pair to its logits. next_token: instead, the tokens that are compared."""

    scores: tuple[Dense | LayerNorm, ...] = ()
    next_token: LogitScore | None = None

    def purpose(self, *, one_label: bool) -> str:
        return "cross-encoder"

    def uses(self) -> tuple[str, ...]:
        return ("rank",)

    def other_uses(self, of_heads: Sequence[str]) -> Sequence[str]:
        return ()

    def refusal_of_one_vector(self) -> str:
        return "This checkpoint scores pairs: use rank, or choose a pooling (--pooling)."

    @property
    def layers(self) -> Mapping[str, Dense | LayerNorm]:
        return numbered((*self.dense, *self.scores))

    def refusal_of_chat(self, name: str) -> None:
        return None

    def pair_scores(self, model: Opened) -> PairScores:
        """As of any kind. Logits of the next token come from its row in a table: their difference is the rows'."""
        if self.next_token is None:
            return PairScores(self.pooling, self.scores)
        if model.network.lm is None:
            heads = ", ".join(model.heads) or "none"
            raise BertcliError(
                f"LogitScore needs a head that predicts the next token (lm), which {model.name} does not have; "
                f"its heads: {heads}."
            )
        table, (true, false) = model.network.lm.decoder, self.next_token
        if max(true, false or 0) >= len(table):
            raise BertcliError(
                f"{model.name} has {len(table)} tokens, and LogitScore needs the ids {quoted((true, false))}."
            )
        weight = table[[true]] if false is None else table[[true]] - table[[false]]
        return PairScores(("lasttoken",), (Dense(weight, None, "identity"),))


def read(layout: Layout, modules: Modules) -> CrossEncoder | None:
    """Read the settings of a cross-encoder; None for any other model."""
    if modules.output == SCORES:
        scores = tuple(modules.layers)
        return CrossEncoder(**settings(layout, modules) | {"dense": ()}, scores=scores)
    folder = modules.folders.get("LogitScore")
    if folder is None:
        return None
    check_layers(layout)
    return CrossEncoder(**settings(layout, modules), next_token=read_logit_score(folder))


def read_logit_score(at: Folder) -> LogitScore:
    """Read a LogitScore module's config.json."""
    config = at.object("config.json")
    config.one_of("module_input_name", ("causal_logits",))
    true, false = (config.get(name) for name in ("true_token_id", "false_token_id"))
    if type(true) is not int or not (false is None or type(false) is int) or min(true, false or 0) < 0:
        raise config.refused(
            "true_token_id", f" and the false_token_id {quoted(false)}, which are not two ids of tokens"
        )
    return LogitScore(true, false)

"""`Kind`: the questions that commands, tasks, views and the server ask about what a model gives.

The answers here are those of a model without sentence settings: its tokens can be pooled, and nothing else is known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from bertcli.errors import check_choice
from bertcli.folder.prompts import NAMES_OF_ROLE, Role
from bertcli.kinds.candidate_labels import CandidateOptions, CandidateScorer
from bertcli.kinds.entities import EntityFinder, FinderOptions
from bertcli.kinds.label_scores import LabelScores, OwnLabels
from bertcli.kinds.late_interaction import RoleSettings
from bertcli.kinds.max_sim import MaxSim
from bertcli.kinds.opened import Opened
from bertcli.kinds.pair_scores import PairScores
from bertcli.kinds.pooling import DEFAULT_POOLING
from bertcli.kinds.relevance import RelevanceScore
from bertcli.kinds.routes import ONE_ROUTE, Routes
from bertcli.kinds.sparse_vectors import SparseWeights, SpladeWeights
from bertcli.network.after_pooling import Dense, LayerNorm

Similarity = Literal["cosine", "dot", "euclidean", "manhattan"]
UNSPECIFIED = "since the checkpoint specifies no pooling"


class Steps(NamedTuple):
    """The steps from hidden states to vectors: pool, apply `dense` in turn, normalize.

    Without `pooling` every token keeps its vector; in late interaction as its `role` has it. reason: for the user.
    """

    pooling: tuple[str, ...]
    dense: tuple[Dense, ...]
    normalize: bool
    reason: str
    role: RoleSettings | None = None


def numbered(layers: Sequence[Dense | LayerNorm]) -> dict[str, Dense | LayerNorm]:
    """Layers that follow each other, by their paths."""
    return {f"dense.{number}": layer for number, layer in enumerate(layers)}


@dataclass(frozen=True)
class Kind:
    """What a model gives, and the settings of a single vector of a text, which every model of tokens can give."""

    pooling: tuple[str, ...] = ()  # several modes are concatenated; empty if the folder does not specify it
    normalize: bool = False
    dense: tuple[Dense, ...] = ()
    reason: str = f"{DEFAULT_POOLING[0]}, {UNSPECIFIED}"  # for the user: the pooling, and where it comes from
    prompts: Mapping[str, str] = field(default_factory=dict)
    prompt: str = ""  # put before every text unless another of `prompts` is asked for
    include_prompt: bool = True  # the prompt's tokens are pooled, too
    truncate_dim: int | None = None  # keep only the first numbers of a vector (Matryoshka); None keeps all
    routes: Routes = ONE_ROUTE  # of texts; a Router's documents have these settings
    similarity: str = "cosine"  # the folder's name of the function that compares two vectors, supported or not

    # ------------------------------------------------------------------------------------------------------- prompts

    def prompt_name(self, role: Role) -> str | None:
        """The name of the prompt that a text of a role gets, or of its route of a Router; None for the default prompt.

        Whatever compares texts asks this: commands, methods, routes of the server. A user may name another prompt.
        """
        of_prompts = (name for name in NAMES_OF_ROLE[role] if name in self.prompts)
        return self.routes.name_for(role) or next(of_prompts, None)

    def prompt_text(self, name: str | None) -> str:
        """The prompt of a name that the model has; of None the default prompt."""
        return self.prompt if name is None else self.prompts[name]

    # ------------------------------------------------------------------------------------------------- what it is for

    def purpose(self, *, one_label: bool) -> str:
        """What it was made for, in a few words; empty if the prediction heads say it.

        one_label: there is a classifier with one label, which scores pairs.
        """
        return "cross-encoder" if one_label else ""

    def uses(self) -> tuple[str, ...]:
        """The uses that its settings state, its own first (see capabilities.py); none if the heads say it."""
        return ()

    def other_uses(self, of_heads: Sequence[str]) -> Sequence[str]:
        """Those that count beside its own, of the uses that any model with its prediction heads has."""
        return of_heads

    def refusal_of_one_vector(self) -> str | None:
        """Say why a text has no single vector unless a pooling is given; None if it has one."""
        return None

    @property
    def own_pooling(self) -> Literal["auto", "none"]:
        """The pooling with which `encode` gives what the model was made for; "none": a vector for each token."""
        return "auto"

    # ------------------------------------------------------------------------------------------------- dense vectors

    @property
    def pooling_of_text(self) -> tuple[str, ...]:
        """The pooling modes that the folder specifies for a text's single vector; none if a text has no such vector."""
        return self.pooling if self.refusal_of_one_vector() is None else ()

    @property
    def pooling_or_default(self) -> tuple[str, ...]:
        """The pooling modes; DEFAULT_POOLING if the folder specifies none."""
        return self.pooling or DEFAULT_POOLING

    @property
    def compared(self) -> str:
        """The similarity function for vectors of whole texts. Errors: BertcliError for an unknown one."""
        check_choice("similarity", self.similarity, Similarity)
        return self.similarity

    def steps(self, pooling: str, prompt_name: str | None) -> Steps:
        """The steps to the vectors of a text, with the pooling that is asked for; "auto": the folder's."""
        if pooling == "auto":
            return Steps(self.pooling_or_default, self.dense, self.normalize, self.reason)
        if pooling == "none":
            return self.token_steps(prompt_name)
        return Steps((pooling,), self.dense, self.normalize, f"{pooling}, as requested")

    def token_steps(self, prompt_name: str | None) -> Steps:
        """The steps to a vector for every token."""
        reason = "none, as requested: a vector for every token"
        steps = (("Dense layers", self.dense), ("normalization", self.normalize))
        left_out = [name for name, step in steps if step]
        if left_out:
            reason += f", without the checkpoint's {' and '.join(left_out)}, which is for one vector per text"
        return Steps((), (), False, reason)

    @property
    def layers(self) -> Mapping[str, Dense | LayerNorm]:
        """All layers after the network, by their paths in `params` and `trace`."""
        return numbered(self.dense)

    # ------------------------------------------------------------------------------------------------- other results

    @property
    def relevance(self) -> RelevanceScore | None:
        """How a query and a document are compared that are encoded apart; None if pairs are read together."""
        return None

    def matched_tokens(self, *, names_result: bool) -> MaxSim | None:
        """The relevance that `explain` shows as a sum over tokens; None where it leaves out words.

        names_result: a label, a word or another text is named, whose result is to be explained.
        """
        return None

    @property
    def sparse_weights(self) -> SparseWeights:
        """What computes sparse vectors; by default SPLADE's rule with the masked-language-model head."""
        return SpladeWeights()

    @property
    def sparse_compared(self) -> str:
        """The function that compares two sparse vectors, "dot" or "cosine"."""
        return "dot"

    @property
    def commands_of_heads(self) -> Mapping[str, str]:
        """By a prediction head that this kind alone has: the command that it is for."""
        return {}

    def refusal_without_labels(self, name: str) -> str | None:
        """Say why a model of this name finds no entities unless types are named; None if it has labels of its own."""
        return None

    def entity_finder(self, model: Opened, options: FinderOptions) -> EntityFinder:
        """What finds entities of the types that a request names, for a kind that takes labels."""
        raise NotImplementedError

    def own_labels(self, model: Opened) -> OwnLabels:
        """The labels that were given with the model, for a kind that has them.

        Errors: BertcliError for labels that were given for another model.
        """
        raise NotImplementedError

    def label_scores(self, head: str) -> LabelScores | None:
        """What scores the labels of a head; None if the network's head does."""
        return None

    def candidate_scorer(self, model: Opened, options: CandidateOptions) -> CandidateScorer | None:
        """What scores candidates that a request names; None if only a classifier of entailment can."""
        return None

    def pair_scores(self, model: Opened) -> PairScores | None:
        """The steps from a pair's hidden states to its logits; None if the classification head has them.

        Errors: BertcliError for a head that the steps need and the model lacks, and a token that its table lacks.
        """
        return None

    def refusal_of_chat(self, name: str) -> str | None:
        """Say why texts of a model of this name do not go through its chat template; None if they may."""
        return (
            f"{name} puts texts into its chat template (modality_config), which bertcli does only for the pairs of a "
            "reranker: use another model."
        )

    # ------------------------------------------------------------------------------------------------ for other rooms

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the record of `info` has of this kind alone; `lines`, a function of its file, puts it in words."""
        return {}

    def refusal_in_a_graph(self, head: str) -> str | None:
        """Say why a head that the model has cannot be in an ONNX graph; None if it can."""
        return None

    @property
    def note_of_encoder_graph(self) -> str | None:
        """What people should know of an ONNX graph that gives hidden states; None if nothing."""
        return None

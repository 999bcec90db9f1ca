"""`MultiVectorEncoder`: a vector for every token of a query and of a document, for late interaction.

tasks/parts/token_vectors.py computes the vectors, max_sim.py their match.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bertcli.errors import BertcliError
from bertcli.folder.files import Folder
from bertcli.folder.layout import Layout
from bertcli.folder.modules import MASK, PROJECTION
from bertcli.kinds.kind import Kind, Steps
from bertcli.kinds.late_interaction import LateInteraction
from bertcli.kinds.max_sim import MaxSim
from bertcli.kinds.modules import Modules, check_layers, settings
from bertcli.kinds.multi_vector.folder_type import METADATA
from bertcli.kinds.multi_vector.settings import read_late
from bertcli.network.after_pooling import Dense
from bertcli.weights.tensors import open_tensors

logger = logging.getLogger("bertcli")


@dataclass(frozen=True, kw_only=True)
class MultiVectorEncoder(Kind):
    """`dense` and `normalize` apply to the vectors of tokens; the default prompt is the documents'."""

    late: LateInteraction

    def purpose(self, *, one_label: bool) -> str:
        return "late interaction (ColBERT)"

    def uses(self) -> tuple[str, ...]:
        return "late", "tokens"

    def other_uses(self, of_heads: Sequence[str]) -> Sequence[str]:
        return ()

    @property
    def own_pooling(self) -> Literal["none"]:
        return "none"

    def refusal_of_one_vector(self) -> str:
        return (
            "This checkpoint has a vector for each token (late interaction): rank documents with it, choose a "
            "pooling for one vector of a text, or encode with pooling none (--pooling, model.encode_blocks)."
        )

    @property
    def compared(self) -> str:
        return "cosine"

    @property
    def relevance(self) -> MaxSim:
        return MaxSim(self.late)

    def matched_tokens(self, *, names_result: bool) -> MaxSim:
        return self.relevance

    def steps(self, pooling: str, prompt_name: str | None) -> Steps:
        """As any, but without the layers, which are for vectors of tokens."""
        steps = super().steps(pooling, prompt_name)
        return steps._replace(dense=(), normalize=False) if steps.pooling else steps

    def token_steps(self, prompt_name: str | None) -> Steps:
        side = "query" if prompt_name == "query" else "document"
        role = self.late.query if side == "query" else self.late.document
        reason = f"none, as requested: a vector for every token of a {side}"
        return Steps((), self.dense, self.normalize, reason, role)


def read(layout: Layout, modules: Modules) -> MultiVectorEncoder | None:
    """Read the settings of late interaction; None for any other model."""
    late = read_late(layout)
    if late is None:
        return None
    check_layers(layout)
    of_modules: dict[str, Any] = settings(layout, modules)
    # PyLate and Stanford always normalize; a MultiVectorEncoder lists a module for it.
    of_modules["normalize"] = modules.normalize or MASK not in layout.module_types
    of_modules["prompts"] = {**layout.prompts.named, "query": late.query.prompt, "document": late.document.prompt}
    of_modules["prompt"] = late.document.prompt
    if not layout.module_types:
        of_modules["dense"] = (_projection(layout.folder, late),)
    return MultiVectorEncoder(**of_modules, late=late)


def _projection(folder: Folder, late: LateInteraction) -> Dense:
    """Read the projection of Stanford ColBERT models, which have no modules: its tensor is in the network's file.

    Logs if their settings are absent.
    """
    tensors, width = open_tensors(folder), folder.object("config.json").get("hidden_size", 768)
    if PROJECTION not in tensors:
        raise BertcliError(f"{folder.path} lacks tensor {PROJECTION}: use another model.")
    tensor = tensors[PROJECTION]
    if len(tensor.shape) != 2 or tensor.shape[1] != width:
        raise BertcliError(
            f"{tensor.file} has tensor {PROJECTION} of shape {tensor.shape}, but hidden_size in config.json is "
            f"{width}: they are not of one model, so take both from the same one."
        )
    if not late.is_stated:
        logger.info(
            "%s has no %s: queries get %d tokens, as in ColBERT, and documents are cut at the model's limit.",
            folder.path,
            METADATA,
            late.query.length,
        )
    return Dense(tensor.float32(), None, "identity")

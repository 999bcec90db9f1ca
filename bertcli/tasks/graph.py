"""Which numbers of a model a graph gives, by the names that other tools expect, and the same numbers from NumPy."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bertcli.engine.onnx import rules
from bertcli.engine.onnx.file import Export
from bertcli.engine.onnx.graph import Tensor
from bertcli.engine.packing import Packed
from bertcli.engine.seam import Array
from bertcli.errors import BertcliError, shown
from bertcli.network.exporter import HIDDEN, Exporter, exporter_of
from bertcli.network.ops import pick
from bertcli.opened import Opened
from bertcli.report.tables import visible
from bertcli.tasks import options
from bertcli.tasks.encode import SMALLEST_LENGTH, Plan, pool
from bertcli.tasks.options import Encode

# The head that a model was made for, if it has several; nsp and sop were only a help in training.
HEADS = ("classifier", "token_classifier", "qa", "multiple_choice", "rtd", "mlm")
ANSWER = ("start_logits", "end_logits")


@dataclass(frozen=True)
class GraphResults:
    """A model and the results that a graph of it has: those of a head, or a sentence's vector, or hidden states."""

    model: Opened
    head: str | None = None
    plan: Plan | None = None

    @classmethod
    def of(cls, model: Opened, wanted: options.Export) -> GraphResults:
        """What was asked for; by default the vector of a sentence model, or the logits that a model was made for.

        head: its name, "none" for hidden states. pooling: "auto", "mean", "cls", "max", "pooler", or "none" for hidden
        states of a sentence model. Errors: BertcliError if the model has no such head, or for both.
        """
        head, pooling = wanted.head, wanted.pooling
        if head not in (None, "none") and pooling not in (None, "none"):
            raise BertcliError("A graph gives a head's logits or a sentence's vector: leave out --head or --pooling.")
        if head not in (None, "none"):
            if head not in model.heads:
                there = ", ".join(model.heads) or "none"
                raise BertcliError(f"{model.name} has no head {shown(head)}; its heads: {there}.")
            return cls(model, head)
        is_sentence_model = model.path is not None and bool(model.sentence.pooling)
        if (pooling or ("auto" if is_sentence_model and head is None else "none")) != "none":
            return cls(model, plan=Plan.make(model, Encode(pooling=pooling, normalize=wanted.normalize)))
        default = next((one for one in HEADS if one in model.heads), None)
        return cls(model, default if head is None and pooling is None else None)

    def numpy(self, batch: Packed) -> dict[str, Array]:
        """The results for a batch as NumPy computes them."""
        found = self._watchable(batch)
        if self.head == "qa":
            found = dict(zip(ANSWER, found["logits"].T, strict=True))
        if self.plan is not None:
            hidden, pooled = found[HIDDEN], found.pop("pooler_output", None)
            modes = [pooled if mode == "pooler" else pool(hidden, batch.offsets, mode) for mode in self.plan.pooling]
            found["sentence_embedding"] = self.plan.finish(np.concatenate([x for x in modes if x is not None], axis=1))
        return found

    def export(self, opset: int, *, half: bool = False) -> Export:
        """The graph of these results; with `half` its weights are stored as float16."""
        exporter = exporter_of(self.model.network, self.plan.dense if self.plan else (), opset=opset, half=half)
        results = exporter.watch(self._watchable)
        if self.head == "qa":
            results = {name: rules.column(exporter.graph, results["logits"], i) for i, name in enumerate(ANSWER)}
        if self.plan is not None:
            pooler = results.pop("pooler_output", None)
            results["sentence_embedding"] = _vector(exporter, self.plan, results[HIDDEN], pooler)
        return Export(exporter.graph, results, self._metadata())

    def _watchable(self, batch: Packed) -> dict[str, Array]:
        """The results that consist of ops."""
        network = self.model.network
        hidden = network(batch)
        if self.head is not None:
            rows = network.reads(self.head, batch)
            logits = network.predict(self.head, hidden if rows is None else pick(hidden, rows), batch)
            return {"logits": logits}
        pooler = "pooler" in (network.heads if self.plan is None else self.plan.pooling)
        pooled = {"pooler_output": network.predict("pooler", pick(hidden, batch.first), batch)} if pooler else {}
        return {HIDDEN: hidden, **pooled}

    def _metadata(self) -> dict[str, str]:
        """What a program that opens the file may want to know; a folder's name, not where it lies."""
        model = self.model
        metadata = {"source": visible(model.path.name if Path(model.name).exists() and model.path else model.name)}
        if model.path is not None and (model.path / "config.json").exists():
            metadata["config"] = (model.path / "config.json").read_text(encoding="utf-8")
        if self.head is not None:
            metadata["head"] = self.head
        if self.head in ("classifier", "token_classifier"):
            metadata["labels"] = json.dumps(model.config.labels)
        if self.plan is not None:
            steps = [*self.plan.pooling, *("dense" for _ in self.plan.dense)]
            metadata["pooling"] = ", ".join([*steps, "normalize"] if self.plan.normalize else steps)
        return metadata


def _vector(exporter: Exporter, plan: Plan, hidden: Tensor, pooler: Tensor | None) -> Tensor:
    """Pooling, Dense layers, truncation of dimensions, normalization, as `Plan.finish` has them."""
    graph = exporter.graph
    x = pooler if pooler is not None else rules.pooled(graph, hidden, plan.pooling)
    for layer in plan.dense:
        x = exporter.applied(layer, x)
    x = x if plan.cut_last else rules.first(graph, x, plan.width)
    x = rules.unit(graph, x, SMALLEST_LENGTH) if plan.normalize else x
    return rules.first(graph, x, plan.width)

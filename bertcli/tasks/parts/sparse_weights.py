"""encode --sparse: a weight for every entry of the vocabulary, most of them 0, as the model's kind computes them.

kinds/sparse_vectors.py has SPLADE's rule, kinds/several_outputs/ that of bge-m3; queries of a Router with a table of
weights are in sparse_queries.py.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bertcli.engine.packing import Packed
from bertcli.files.texts import Item
from bertcli.kinds.sparse_vectors import SparseVector, SparseWeights
from bertcli.loaded_model import LoadedModel
from bertcli.tasks.encode import SPEC, EncodeOptions
from bertcli.tasks.parts.prepared import prepare
from bertcli.tasks.parts.prepared_task import PreparedTask
from bertcli.tasks.parts.sparse_vectors import SparseBlock, SparseTask
from bertcli.tasks.running.batches import check_needs, hidden_states, in_packed_batches


def plan_sparse(model: LoadedModel, options: EncodeOptions) -> PreparedTask[SparseBlock]:
    """Make the task of sparse vectors. Errors: BertcliError for a model without the head, and as of dense vectors."""
    model = model.for_prompt(options.prompt_name)
    weights = model.kind.sparse_weights
    if weights.head is not None:
        check_needs(model, SPEC.needs(options))
    table = model.kind.routes.table(options.prompt_name)
    if table is not None:
        from bertcli.tasks.parts.sparse_queries import plan_queries  # few models have a table for queries

        return plan_queries(model, options, table)
    read_options, prompt, chunking, _ = prepare(model, options)
    return WeightsTask(model, read_options, chunking, 0, options.words, weights, prompt=prompt)


@dataclass(frozen=True, eq=False, repr=False)
class WeightsTask(SparseTask):
    """The task of sparse vectors from a text's hidden states."""

    weights: SparseWeights

    @property
    def summary(self) -> str:
        return f"{self.weights.summary}{self.model.kind.routes.summary}{super().summary}"

    def vectors(self, items: Sequence[Item]) -> list[SparseVector]:
        return in_packed_batches([item.tokens for item in items], self.read_options.batch_tokens, self._vectors)

    def _vectors(self, packed: Packed) -> Iterator[SparseVector]:
        hidden = hidden_states(self.model, packed)
        return self.weights.of(hidden, packed, self.model.network, self.tokenizer)

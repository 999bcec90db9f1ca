"""Rows of `params` for weights outside the network: Dense layers after the pooling, and parts that bertcli ignores."""

from collections.abc import Iterator
from math import prod

from bertcli.analysis.params.summary import SummaryRow
from bertcli.loaded_model import LoadedModel
from bertcli.models.registry import family
from bertcli.network.module import parameters
from bertcli.weights.loading import UNREAD


def rows_beside(model: LoadedModel) -> Iterator[SummaryRow]:
    """A row for each layer after the pooling, and for each part of the base model that bertcli does not run."""
    before: tuple[str, ...] = ()
    for number, layer in enumerate(model.layers_after()):
        arrays = [parameter.array for parameter in parameters(layer)]
        formula = " + ".join("·".join(map(str, array.shape)) for array in arrays)
        count, name = sum(array.size for array in arrays), f"dense.{number}"
        shape, size = f"(None, {arrays[0].shape[0]})", sum(array.nbytes for array in arrays)
        yield SummaryRow(name, type(layer).__name__, shape, count, size, formula, formula, before, None)
        before = (name,)
    prefix = family(model.config.model_type).prefix_in([use.name for use in model.uses])
    for use in model.uses:
        if use.note == UNREAD and use.name.startswith(prefix):
            shape, count = f"({', '.join(map(str, use.shape))})", prod(use.shape)
            formula = "·".join(map(str, use.shape))
            yield SummaryRow(
                use.name.removeprefix(prefix), "not used", shape, count, use.bytes, formula, formula, (), None
            )

"""Rows of `params` for weights outside the network: the kind's layers after it, and parts that bertcli ignores."""

from collections.abc import Iterator
from math import prod

from bertcli.analysis.params.rows import Count, SummaryRow
from bertcli.loaded_model import LoadedModel
from bertcli.models.registry import family
from bertcli.network.module import parameters
from bertcli.weights.loading import UNREAD, TensorUse


def rows_outside(model: LoadedModel) -> Iterator[SummaryRow]:
    """A row for each layer after the network, and for each part of the base model that bertcli does not run."""
    # Layers whose paths begin alike follow each other.
    before: dict[str, tuple[str, ...]] = {}
    for name, layer in model.layers_after().items():
        chain = name.partition(".")[0]
        arrays = [parameter.array for parameter in parameters(layer)]
        formula = " + ".join("·".join(map(str, array.shape)) for array in arrays)
        params, stored = sum(array.size for array in arrays), sum(array.nbytes for array in arrays)
        count = Count(params, stored, formula, formula)
        yield SummaryRow(
            path=name,
            type=type(layer).__name__,
            output_shape=f"(None, {arrays[0].shape[0]})",
            **count._asdict(),
            connected_to=before.get(chain, ()),
            tied_to=None,
            whole=count,
        )
        before[chain] = (name,)
    prefix = family(model.config.model_type).prefix_in([use.name for use in model.tensor_uses])
    unread: dict[str, list[TensorUse]] = {}
    for use in model.tensor_uses:
        if use.why == UNREAD and use.name.startswith(prefix):
            part = use.name.removeprefix(prefix).partition(".")[0]
            unread.setdefault(part, []).append(use)
    for part, uses in unread.items():
        params = sum(prod(use.shape) for use in uses)
        count = Count(params, sum(use.bytes for use in uses), str(params), str(params))
        yield SummaryRow(
            path=part,
            type="not used",
            output_shape="",
            **count._asdict(),
            connected_to=(),
            tied_to=None,
            whole=count,
        )

"""The summary of a model: its modules, read from the tree that runs, and how many parameters each has."""

from __future__ import annotations

from bertcli.analysis.params.flow import Input
from bertcli.analysis.params.summary import Row, Summary, Totals, module_plans, rows
from bertcli.errors import BertcliError
from bertcli.model import Model, expect_model

STYLES = ("tree", "keras")
__all__ = ["Row", "Summary", "Totals", "params"]


def params(
    model: Model,
    *,
    depth: int = 3,
    style: str = "tree",
    collapse: bool = False,
    seq_len: int | None = None,
    batch_size: int | None = None,
) -> Summary:
    """Rows that add up to the model's parameters, tied ones counted once; no weights are needed.

    A row is a module at most `depth` levels below the whole; with `style="keras"` it is a layer of the Keras summary.
    `collapse` merges rows that differ only in the layer's number. `seq_len` (default: all positions of the model) and
    `batch_size` (default: any) are shown in the output shapes. Raises BertcliError for a size that is not possible.
    """
    expect_model(model)
    given = Input.checked(model.config, seq_len, batch_size)
    if style not in STYLES:
        raise BertcliError(f"There is no style '{style}'; choose {' or '.join(STYLES)}.")
    if depth < 0:
        raise BertcliError(f"A depth of {depth} is not possible; it must be 0 (the whole model in one row) or more.")
    if style == "keras":
        from bertcli.analysis.params.keras import keras_plans

        return Summary(model.name, rows(keras_plans(model, given), model, collapse=collapse, powers=False), style)
    plans = module_plans(model, depth, given)
    return Summary(model.name, rows(plans, model, collapse=collapse, powers=True), style)

"""`params(model)`: the table of a model's modules and their parameters, as `bertcli params` prints it.

compare          `params` of two models side by side
flow             which module feeds which, and the shape of its output; what stands for B and S; **which
                 of equal layers run**
formula          formulas for parameter counts: sums of products of axis symbols, read from the arrays of the tree
keras            the rows of `params --style keras`
memory           the peak memory of a forward pass; **when an activation is freed**
outside_network  rows of `params` for weights outside the network
plot             `params -o FILE.dot`: the rows as a graph of what feeds what, and which rows contain which
rows             a row for each module: which parameters it counts, where a tied one counts, what --collapse merges;
                 **with which module a tied parameter counts**
table            the rows with their totals; the columns of the table, the lines below it; **which columns a style has**
"""

from typing import Literal

from bertcli.analysis.params.rows import SummaryRow, module_rows, rows
from bertcli.analysis.params.table import ParameterTotals, Summary
from bertcli.errors import BertcliError, check_choice, names_checked
from bertcli.loaded_model import LoadedModel, expect_model

Dtype = Literal["float32", "float16", "bfloat16"]
Style = Literal["tree", "keras"]
__all__ = ["ParameterTotals", "Summary", "SummaryRow", "params"]


@names_checked
def params(
    model: LoadedModel,
    *,
    depth: int = 3,
    style: str = "tree",
    collapse: bool = False,
    seq_len: int | None = None,
    batch_size: int | None = None,
    dtype: str = "float32",
) -> Summary:
    """Count a model's parameters module by module; tied ones count once, and a model without weights will do.

    A row is a module at most `depth` levels below the whole; with `style="keras"` it is a layer of the Keras summary.
    `collapse` merges rows that differ only in the layer's number. `seq_len` (default: all positions of the model) and
    `batch_size` (default: any) are shown in the output shapes; with both, `memory` is that of such a pass in this dtype
    ("float32", "float16", "bfloat16"). Errors: BertcliError for a size that is not possible.
    """
    expect_model(model)
    check_choice("dtype", dtype, Dtype)
    model.config.check_input(batch_size, seq_len)
    check_choice("style", style, Style)
    if depth < 0:
        raise BertcliError(f"A depth of {depth} is not possible; it must be 0 (the whole model in one row) or more.")
    if style == "keras":
        from bertcli.analysis.params.keras import keras_rows

        bare_rows = keras_rows(model)
    else:
        bare_rows = module_rows(model, depth)
    inputs = {"B": batch_size, "S": seq_len or model.config.max_tokens}
    counted = rows(bare_rows, model, inputs, collapse=collapse, nested=style != "keras")
    if model.path is not None:
        from bertcli.analysis.params.outside_network import rows_outside

        counted += tuple(rows_outside(model))
    if seq_len is None or batch_size is None:
        return Summary(model.name, counted, style, idle=model.config.idle_parameters)
    from bertcli.analysis.params.memory import memory

    taken = memory(model, batch_size, seq_len, dtype)
    return Summary(model.name, counted, style, taken, model.config.idle_parameters)

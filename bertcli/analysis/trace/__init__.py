"""Trace a forward pass: a step for every op, with shapes, parameters, MACs and time, and the intermediate arrays.

formulas    print the formula of each op in the symbols of its step, as MathML and as plain text
operations_page  the page of a model without weights: the table of operations; **what share of MACs an op has**
page        the page of `trace -o pass.html`; **how large a page may get**
passes      `bertcli.trace`, and the traced pass of one sentence that the page draws; **which predictions it shows**
products    data from which the page explains a matrix product
recorder    `recording(model)`: record a step for every op of a forward pass, with numbers or by shapes alone; **how
            many MACs an op has, from its axes**
selection   choose the numbers of a traced pass that its page holds, so that they fit into a number of bytes; **which
            are left out**
step_names  what a step is called, and its result and weights
steps       the records of a trace, and its operation table; **which layers are folded into one row**
"""

from bertcli.analysis.trace.passes import trace
from bertcli.analysis.trace.recorder import Trace
from bertcli.analysis.trace.steps import Call, Stats, Step, Totals, Value

__all__ = ["Call", "Stats", "Step", "Totals", "Trace", "Value", "trace"]

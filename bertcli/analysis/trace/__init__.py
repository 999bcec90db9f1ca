"""Observing a model as it runs: the operation table, the cost of each step, and the intermediate arrays."""

from bertcli.analysis.trace.recorder import Trace, trace
from bertcli.analysis.trace.steps import Call, Stats, Step, Totals, Value

__all__ = ["Call", "Stats", "Step", "Totals", "Trace", "Value", "trace"]

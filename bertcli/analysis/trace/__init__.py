"""Trace a forward pass: a step for every op, with shapes, parameters, MACs and time, and the intermediate arrays."""

from bertcli.analysis.trace.recorder import Trace, trace
from bertcli.analysis.trace.steps import Call, Stats, Step, Totals, Value

__all__ = ["Call", "Stats", "Step", "Totals", "Trace", "Value", "trace"]

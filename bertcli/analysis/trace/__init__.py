"""Observing a model as it runs: the operation table, the cost of each step, and the intermediate arrays."""

from bertcli.analysis.trace.steps import Call, Stats, Step, Totals
from bertcli.analysis.trace.values import Value
from bertcli.analysis.trace.watcher import Trace, trace

__all__ = ["Call", "Stats", "Step", "Totals", "Trace", "Value", "trace"]

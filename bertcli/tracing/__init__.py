"""Watching a model run: the operation table, what each step costs, and the arrays in between."""

from bertcli.tracing.records import Call, Stats, Step, Totals, Value
from bertcli.tracing.watcher import Trace, trace

__all__ = ["Call", "Stats", "Step", "Totals", "Trace", "Value", "trace"]

"""How often a probe's control task is drawn, which is half of a probe's time."""

import pytest

from bertcli.wings.interpret.compute import probe_folds, probe_result

FEW, ALL = 2, probe_folds.DRAWS


def draw(count: int, patch: pytest.MonkeyPatch) -> None:
    """Let probes draw the labels of their control task so often."""
    for module in (probe_folds, probe_result):
        patch.setattr(module, "DRAWS", count)

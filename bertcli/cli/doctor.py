"""bertcli doctor"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from bertcli.tasks.options import option


@dataclass(frozen=True)
class DoctorOptions:
    """How it is shown."""

    format: Literal["table", "json"] = option("table", "FORMAT", "How to print it: table (default) or json.")


def doctor(wanted: DoctorOptions) -> None:
    """Show what determines speed here: BLAS and its kernel, threads, measured rates.

    bertcli doctor
    bertcli doctor --format json
    """
    if wanted.format == "table":
        print_findings()
        return
    from bertcli.doctor import examine

    print(json.dumps(examine(), indent=2))


def print_findings(without: str = "") -> None:
    """Print the table without the row of this name: `bertcli --version --verbose` has already printed the version."""
    from bertcli.doctor import examine
    from bertcli.report.tables import visible

    for name, value in examine().items():
        if name != without and value not in (None, []):
            if isinstance(value, bool):
                value = "yes" if value else "no"
            shown = " ".join(value) if isinstance(value, list) else str(value)
            print(f"{name.replace('_', ' '):26}{visible(shown)}")

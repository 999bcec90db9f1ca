"""bertcli doctor"""

import json
from typing import Literal

from bertcli.lean import lean_dataclass
from bertcli.tasks.options import option


@lean_dataclass
class DoctorOptions:
    """How it is shown."""

    format: Literal["table", "json"] = option("table", "FORMAT", "How to print it: table (default) or json.")


def doctor(wanted: DoctorOptions) -> None:
    """Show what determines speed here: BLAS and its kernel, threads, measured rates.

    bertcli doctor
    bertcli doctor --format json
    """
    from bertcli.doctor import examine
    from bertcli.report.terminal import visible

    findings = examine()
    if wanted.format == "json":
        print(json.dumps(findings, indent=2))
        return
    for name, value in findings.items():
        if value not in (None, []):
            if isinstance(value, bool):
                value = "yes" if value else "no"
            shown = " ".join(value) if isinstance(value, list) else str(value)
            print(f"{name.replace('_', ' '):26}{visible(shown)}")

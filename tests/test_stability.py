"""The names that are promised to stay are there: `bertcli guide stability`."""

import json
from pathlib import Path

from helpers.public import public_names

PROMISED = json.loads((Path(__file__).parent / "reference" / "public.json").read_text(encoding="utf-8"))


def test_every_name_that_is_promised_is_there() -> None:
    present = public_names()
    for kind, names in PROMISED.items():
        missing = {*names} - {*present[kind]}
        assert not missing, f"{kind} that are promised to stay, or that a short help has had: {sorted(missing)}"


def test_every_name_is_promised() -> None:
    for kind, names in public_names().items():
        new = {*names} - {*PROMISED[kind]}
        assert not new, f"record these {kind} with tests/reference/record_public.py: {sorted(new)}"

"""A few cases of each part of the fuzzer (`python tests/fuzz` runs more), and that it finds what it should."""

import sys
from pathlib import Path
from typing import Any

import pytest
from fuzz.parts import PARTS, Part
from fuzz.rounds import Limits, Round, guarded, judge, write_files
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bertcli.errors import BertcliError

LIMITS = Limits(seconds=1, memory=256 << 20)
few = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", PARTS)
def test_fuzz_a_few_cases(name: str, tmp_path: Path) -> None:
    @few
    @given(files=PARTS[name].cases)
    def one(files: Any) -> None:
        write_files(tmp_path, files)
        assert judge(PARTS[name].read, tmp_path, seconds=30)[0] != "found"

    one()


def misbehave(folder: Path) -> None:
    """What the fuzzer is there to find, by the content of a file."""
    match (folder / "case").read_bytes():
        case b"error":
            raise KeyError("key")
        case b"slow":
            while True:
                pass
        case b"large":
            bytearray(1 << 32)
        case b"long":
            raise BertcliError("x" * 5000)
        case b"refused":
            raise BertcliError("no")


@pytest.mark.skipif(sys.platform != "linux", reason="bounds a process's memory by /proc")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    ("case", "outcome", "what"),
    [
        ("error", "found", "KeyError"),
        ("slow", "found", "TooSlow"),
        ("large", "found", "MemoryError"),
        ("long", "found", "a message of 5000 letters"),
        ("refused", "refused", ""),
        ("fine", "read", ""),
    ],
)
def test_fuzz_finds_it(case: str, outcome: str, what: str) -> None:
    part = Part(st.just({"case": case.encode()}), misbehave)
    outcomes = guarded(Round(part, seed=1, cases=1, limits=LIMITS))
    assert outcomes.counts == {outcome: 1}
    assert all(what in report for report, _ in outcomes.found.values())

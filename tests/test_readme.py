"""Every example in the README runs and prints what it shows there."""

from pathlib import Path

import pytest
from readme import README, Example, blocks, run

BLOCKS = list(blocks(README.read_text(encoding="utf-8")))


def same(shown: str, printed: str) -> bool:
    """Equal word for word; numbers may differ in the last digit, or by 1e-5: another processor rounds."""
    if shown == printed:
        return True
    try:
        digits = len(shown.rstrip("%,]}").partition(".")[2])
        expected, found = (float(one.strip("%,[]{}")) for one in (shown, printed))
        return "." in shown and abs(expected - found) <= max(1.01 * 10**-digits, 1e-5 * abs(expected))
    except ValueError:
        return False


@pytest.mark.parametrize("examples", BLOCKS, ids=[block[0].command[:60] for block in BLOCKS])
def test_the_readme_shows_what_happens(examples: list[Example], tmp_path: Path) -> None:
    for example in examples:
        shown, printed = example.output.split(), run(example.command, tmp_path).split()
        differences = [pair for pair in zip(shown, printed, strict=False) if not same(*pair)]
        assert not differences, example.command
        assert len(shown) == len(printed), example.command

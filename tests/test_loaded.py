"""How much code there is, and how much of it a command loads: what somebody has to read who wants to know how it works.

Tokens of Python are counted, without comments and docstrings, so that no layout is better than another. The numbers are
what is reached. `python tests/test_loaded.py` prints them all, and which files a command loads.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from helpers.tokens import PACKAGE, tokens_by_folder, tokens_in

LOADED = """
import sys
{code}
print(*sorted(
    module.__file__ for name, module in sys.modules.items() if name.split(".")[0] == "bertcli"
), sep="\\n", file=sys.stderr)
"""
COMMAND = """
from bertcli.cli import main
sys.argv = ["bertcli", *{arguments!r}]
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
"""
MOST_IN_ALL = 252_200
# Of 0.6.1: 59,748, 63,073, 41,392, 28,602, 21,420; a tenth less are wanted: 53,770, 56,770, 37,250, 25,740, 19,280.
MOST = {
    "fill-mask king": 53_770,
    "encode king": 56_760,
    "params --variant large": 36_600,
    "--help": 17_700,
    "import bertcli.models.bert": 16_650,
}


def loaded(what: str) -> list[Path]:
    """The files of the package that a command or a statement loads."""
    arguments = what.replace("king", "The|[MASK]|sat.").split()
    code = what if arguments[0] == "import" else COMMAND.format(arguments=[one.replace("|", " ") for one in arguments])
    done = subprocess.run([sys.executable, "-c", LOADED.format(code=code)], capture_output=True, text=True, check=True)
    return [Path(line) for line in done.stderr.splitlines() if Path(line).is_relative_to(PACKAGE)]


@pytest.mark.parametrize("what", MOST)
def test_little_is_loaded(what: str) -> None:
    count = sum(map(tokens_in, loaded(what)))
    print(f"{what}: {count:,} tokens")
    assert 0 < count <= MOST[what]


def test_the_package_is_no_larger_than_its_budget(capsys: pytest.CaptureFixture[str]) -> None:
    counts = tokens_by_folder()
    with capsys.disabled():
        print("\n" + "  ".join(f"{folder} {count:,}" for folder, count in counts.items()))
    assert sum(counts.values()) <= MOST_IN_ALL


if __name__ == "__main__":
    for folder, count in tokens_by_folder().items():
        print(f"{count:8,}  {folder}")
    print(f"{sum(tokens_by_folder().values()):8,}  in all")
    for each in MOST:
        files = loaded(each)
        names = " ".join(str(file.relative_to(PACKAGE)) for file in files)
        print(f"{each}: {sum(map(tokens_in, files)):,} tokens in {len(files)} files\n  {names}")

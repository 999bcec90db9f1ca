"""How many files of the package a command loads: what somebody has to read who wants to know how it works.

The numbers are what is reached, and only get smaller. `python tests/test_loaded.py` prints which files they are.
"""

import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "bertcli"
LOADED = """
import sys
{code}
print(*sorted(name for name in sys.modules if name.split(".")[0] == "bertcli"), file=sys.stderr)
"""
COMMAND = """
from bertcli.cli import main
sys.argv = ["bertcli", *{arguments!r}]
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
"""
MOST = {
    "params --variant large": 35,
    "fill-mask king": 45,
    "encode king": 46,
    "import bertcli.models.bert": 16,
}


def loaded(what: str) -> list[str]:
    """The modules of the package that a command or a statement loads."""
    arguments = what.replace("king", "The|[MASK]|sat.").split()
    code = what if arguments[0] == "import" else COMMAND.format(arguments=[one.replace("|", " ") for one in arguments])
    done = subprocess.run([sys.executable, "-c", LOADED.format(code=code)], capture_output=True, text=True, check=True)
    return done.stderr.splitlines()[-1].split()


@pytest.mark.parametrize("what", MOST)
def test_loaded_files_are_few(what: str) -> None:
    count = len(loaded(what))
    print(f"{what}: {count} files")
    assert count <= MOST[what]


if __name__ == "__main__":
    for each in MOST:
        names = loaded(each)
        print(f"{each}: {len(names)} files\n  {' '.join(names)}")

"""The examples of the README, of the guide and of the bundled models' card: what each one runs and prints.

`python tests/readme.py [FILE]...` writes the outputs anew (without a file: in all of them).
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
MODEL_CARD = ROOT / "sample_weights" / "README.md"
GUIDE = sorted((ROOT / "bertcli").glob("**/guide/*.md"))
# Pages whose blocks run in one folder, each on what those before it have made.
ONE_JOB = ("README.md", "redact.md")
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Example(NamedTuple):
    """A command after a `$ ` and the lines it prints; a command may go on over lines that end in a backslash."""

    command: str
    output: str


def blocks(text: str) -> Iterator[list[Example]]:
    """The examples of each console block; those of one block run in one folder, one after the other."""
    for block in BLOCK.findall(text):
        parts = re.split(r"^\$ ((?:.*\\\n)*.*)\n", block, flags=re.MULTILINE)[1:]
        yield [Example(*pair) for pair in zip(parts[::2], parts[1::2], strict=True)]


def examples_of(page: Path) -> list[list[Example]]:
    """The blocks of a page; those of a page that is one job are one, from its first line to its last."""
    every = [*blocks(page.read_text(encoding="utf-8"))]
    return [[example for block in every for example in block]] if page.name in ONE_JOB else every


def run(command: str, folder: Path, stdin: str = "") -> str:
    """What a command prints on stdout, into a pipe, as a bash user would type it; raises when it fails."""
    if not (folder / "tests").exists():
        (folder / "tests").symlink_to(ROOT / "tests")  # examples may use the files in tests/data
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "BERTCLI_MODEL"):
        environment.pop(name, None)
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
    )
    if done.returncode:
        raise RuntimeError(f"$ {command}\n{done.stdout}{done.stderr}")
    return done.stdout


def rewritten(page: Path) -> str:
    """A page with every example's output as it is now."""

    def again(match: re.Match[str], folder: Path) -> str:
        (examples,) = blocks(match.group(0))
        shown = [f"$ {one.command}\n{run(one.command, folder)}" for one in examples]
        return "```console\n" + "".join(re.sub(r"[ \t]+$", "", one, flags=re.MULTILINE) for one in shown) + "```"

    def alone(match: re.Match[str]) -> str:
        with tempfile.TemporaryDirectory() as folder:
            return again(match, Path(folder))

    text = page.read_text(encoding="utf-8")
    if page.name not in ONE_JOB:
        return BLOCK.sub(alone, text)
    with tempfile.TemporaryDirectory() as folder:
        return BLOCK.sub(lambda match: again(match, Path(folder)), text)


if __name__ == "__main__":
    for file in [Path(name) for name in sys.argv[1:]] or [README, MODEL_CARD, *GUIDE]:
        file.write_text(rewritten(file), encoding="utf-8")

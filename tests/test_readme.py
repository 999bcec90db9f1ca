"""Every example in the README and in the guide runs and prints what it shows there."""

import contextlib
import io
import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from helpers.known_taggers import guide_tagger
from helpers.options_of_commands import options_of
from helpers.terminal import bertcli
from readme import GUIDE, MODEL_CARD, README, ROOT, Example, examples_of, run

from bertcli import __version__

PAGES = [README, MODEL_CARD, *GUIDE]
BLOCKS = [
    pytest.param(block, id=f"{page.stem}: {block[0].command[:60]}") for page in PAGES for block in examples_of(page)
]


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


QUOTED = r'"[^"$`\\]*"|\'[^\']*\''
# Nothing for bash but words and texts in quotes; then perhaps what its output goes through.
PLAIN = re.compile(rf"(?:COLUMNS=(\d+) )?(bertcli (?!serve)(?:[\w\s.,:/=-]|{QUOTED})*)(?:\|(.*))?")
PYTHON = re.compile(rf"python -c (?=.*\bbertcli)({QUOTED})")


def printed_by(command: str, folder: Path) -> str:
    """What bash prints, with a process of its own only where there is something for bash to do."""
    command = command.replace("\\\n", "")
    if code := PYTHON.fullmatch(command):
        with contextlib.redirect_stdout(io.StringIO()) as written:
            exec(compile(shlex.split(code[1])[0], command, "exec"), {})
        return written.getvalue()
    plain = PLAIN.fullmatch(command)
    if not plain:
        return run(command, folder)
    columns, words, through = plain.groups()
    done = bertcli(*shlex.split(words)[1:], stdin="", environment={"COLUMNS": columns} if columns else None)
    if through:
        return run(through, folder, done.out)
    assert done.status == 0, done.err
    return done.out


@cache
def is_possible(command: str) -> bool:
    """False for what this machine does not have, or does not allow: DuckDB, strace, a namespace without network."""
    needed = {
        "duckdb": "duckdb --version",
        "strace": "strace -o /dev/null true",
        "wc -l < calls": "strace -o /dev/null true",
        "unshare": "unshare -rn true",
    }
    tries = [attempt for begin, attempt in needed.items() if command.startswith(begin)]
    return all(subprocess.run(["bash", "-c", attempt], capture_output=True).returncode == 0 for attempt in tries)


@pytest.mark.parametrize("examples", BLOCKS)
def test_the_readme_and_the_guide_show_what_happens(
    examples: list[Example], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    if any("my-tagger" in example.command for example in examples):
        guide_tagger(tmp_path / "my-tagger")
    for example in examples:
        if not is_possible(example.command):
            continue
        shown, printed = example.output.split(), printed_by(example.command, tmp_path).split()
        differences = [pair for pair in zip(shown, printed, strict=False) if not same(*pair)]
        assert not differences, example.command
        assert len(shown) == len(printed), example.command


CODE = [
    pytest.param(code, id=f"{page.stem}: {number}")
    for page in PAGES
    for number, code in enumerate(
        re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    )
]


def test_the_readme_is_read_in_one_go() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 180


def test_every_picture_is_shown_and_of_this_version() -> None:
    image = pytest.importorskip("PIL.Image")
    pictures = sorted((ROOT / ".github" / "images").iterdir())
    shown = re.findall(r'<img src="([^"]+)"', README.read_text("utf-8"))
    assert sorted(ROOT / name for name in shown) == pictures
    for picture in pictures:
        assert image.open(picture).text["Software"] == f"bertcli {__version__}", "python tests/pictures.py"


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: str(page.name))
def test_prose_of_the_guide_is_wrapped_for_who_reads_it_in_a_pipe(page: Path) -> None:
    prose = re.sub(r"^```.*?^```$|^\|.*?$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert [line for line in prose.splitlines() if len(line) > 130] == []


def test_the_guide_names_each_extra_that_a_message_does() -> None:
    sources = "".join(file.read_text("utf-8") for file in (ROOT / "bertcli").rglob("*.py"))
    (page,) = (page.read_text("utf-8") for page in GUIDE if page.stem == "troubleshooting")
    extras = set(re.findall(r"pip install 'bertcli\[([a-z]+)\]'", sources))
    assert len(extras) > 2
    assert {name for name in extras if f"`{name}`" not in page} == set()


@pytest.mark.parametrize("code", CODE)
def test_python_in_a_page_runs_and_prints_what_its_comments_show(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    with contextlib.redirect_stdout(io.StringIO()) as written:
        exec(compile(code, "page", "exec"), {})
    shown = " ".join(re.findall("^# (.*)$", code, re.MULTILINE)).split()
    printed = written.getvalue().split()
    assert len(shown) == len(printed)
    assert [pair for pair in zip(shown, printed, strict=True) if not same(*pair)] == []


def commands_in(text: str) -> Iterator[tuple[str, set[str]]]:
    """The commands in the fences of a page, each with the names of its options."""
    for kind, fence in re.findall(r"^```(sh|console)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if kind == "console":  # what a command prints may name bertcli, too
            fence = "\n".join(re.findall(r"^\$ ((?:.*\\\n)*.*)$", fence, re.MULTILINE))
        lines = re.sub(r'"[^"]*"|\'[^\']*\'', "TEXT", fence.replace("\\\n", " "))
        lines = re.sub(r"^.*2>&1.*$", "", lines, flags=re.MULTILINE)  # which shows an error
        for command, rest in re.findall(r"\bbertcli ([a-z][a-z-]*)([^|;&#\n]*)", lines):
            yield command, set(re.findall(r"(?<!\S)(--[a-z][a-z0-9-]*|-[a-zA-Z])\b", rest))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))
def test_every_command_in_a_fence_of_a_page_exists(page: Path) -> None:
    """Of a ```sh block, which may name models that are not here, at least the command and its options exist."""
    known = options_of()
    for command, options in commands_in(page.read_text(encoding="utf-8")):
        assert command in known, f"{page.name}: bertcli {command}"
        missing = options - {*known[command], "--help"}
        assert not missing, f"{page.name}: bertcli {command} has no {', '.join(missing)}"


# Programs that prose names with options of theirs, and the one command that only a plugin brings.
OTHER_PROGRAMS = ("python ", "pip ", "grep ", "--build-arg ")
BROUGHT = "shout"


def named_in_prose(text: str) -> Iterator[tuple[str, str]]:
    """Each command in a page's prose with an option that stands behind it; "" for an option of any command."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    known = options_of()
    for span in re.findall(r"`([^`]+)`", prose):
        words = span.removeprefix("bertcli ").split()
        if span.startswith(OTHER_PROGRAMS) or not words:
            continue
        is_command = span.startswith("bertcli ") and re.fullmatch("[a-z][a-z-]*", words[0])
        command = words[0] if is_command or words[0] in known else ""
        yield command, "--help"
        for option in re.findall(r"(?<![\w-])(--[a-z][a-z0-9-]*|-[a-zA-Z])(?!\w)", span):
            yield command, option


@pytest.mark.parametrize("page", [*PAGES, *sorted((ROOT / ".github").glob("*.md"))], ids=lambda page: str(page.name))
def test_every_command_and_option_in_the_prose_of_a_page_exists(page: Path) -> None:
    known = options_of()
    every = {option for options in known.values() for option in options} | {"--help", "-h"}
    scripts = "".join(file.read_text(encoding="utf-8") for file in MODEL_CARD.parent.glob("*.py"))
    if page == MODEL_CARD:
        every |= {*re.findall(r'add_argument\("(--[a-z-]+)"', scripts)}
    named = {*named_in_prose(page.read_text(encoding="utf-8"))}
    assert {command for command, _ in named} - {*known, "", BROUGHT} == set()
    allowed = {command: {*options, "--help", "-h"} for command, options in known.items()} | {"": every}
    assert {(command, name) for command, name in named if name not in allowed.get(command, every)} == set()

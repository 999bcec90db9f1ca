"""What other code has set in the process decides nothing: the limit of the csv module, NumPy's errors, a locale, …"""

import csv
import decimal
import locale
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
import pytest
from helpers.json_files import write_json_lines
from helpers.terminal import bertcli


@contextmanager
def csv_limit() -> Iterator[None]:
    before = csv.field_size_limit(2)
    try:
        yield
    finally:
        csv.field_size_limit(before)


@contextmanager
def dialects() -> Iterator[None]:
    class Odd(csv.excel):
        delimiter, quotechar, lineterminator = ";", "'", "!"

    csv.register_dialect("excel", Odd)
    try:
        yield
    finally:
        csv.register_dialect("excel", csv.excel)


@contextmanager
def other_locale() -> Iterator[None]:
    before = locale.setlocale(locale.LC_ALL)
    for name in ("de_DE.UTF-8", "tr_TR.UTF-8", "C.UTF-8", "C"):
        try:
            locale.setlocale(locale.LC_ALL, name)
            break
        except locale.Error:
            continue
    try:
        yield
    finally:
        locale.setlocale(locale.LC_ALL, before)


@contextmanager
def seeds_and_digits() -> Iterator[None]:
    with decimal.localcontext() as context, np.printoptions(precision=1, suppress=True, threshold=2):
        context.prec = 2
        random.seed(7)
        np.random.seed(7)
        yield


@contextmanager
def environment() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "Asia/Kathmandu")
        time.tzset()
        patch.setenv("LC_ALL", "tr_TR.UTF-8")
        patch.setenv("PYTHONHASHSEED", "7")
        yield
    time.tzset()


def raising() -> AbstractContextManager[None]:
    return np.errstate(all="raise")


STATES = {"csv": csv_limit, "dialects": dialects, "locale": other_locale, "numpy": raising, "digits": seeds_and_digits,
          "environment": environment}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("state")
    long = "tea " * 40_000
    (folder / "d.tsv").write_text(f'id\ttext\n1\t"{long}"\n2\t"hot tea"\n')
    (folder / "d.csv").write_text(f'id,text\n1,"{long}"\n2,"hot, tea"\n')
    (folder / "e.csv").write_text("text,label\nI loved it.,positive\nIt was bad.,negative\nGood tea.,positive\n")
    write_json_lines(folder / "v.jsonl", ({"text": text} for text in ("tea", "hot tea", "rain")))
    return folder


@pytest.fixture(scope="module")
def usual(folder: Path) -> Callable[[tuple[str, ...]], tuple[int, str]]:
    known: dict[tuple[str, ...], tuple[int, str]] = {}

    def result(arguments: tuple[str, ...]) -> tuple[int, str]:
        if arguments not in known:
            answer = bertcli(*arguments)
            known[arguments] = answer.status, answer.out
        return known[arguments]

    return result


DATE = re.compile(r"\d{4}-\d\d-\d\dT[\d:]+Z")
COMMANDS = [
    "tokenize -i d.tsv --column text --format csv",
    "tokenize -i d.csv --column text --format json",
    "fill-mask [MASK]_tea --format csv",
    "similarity -i v.jsonl --format json",
    "similarity -i v.jsonl",
    "evaluate e.csv -m bert-mini-sentiment --format json",
    "search hot_tea -i v.jsonl",
    "params --variant mini --format csv",
]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("command", COMMANDS)
def test_the_state_of_the_process_decides_nothing(
    command: str, state: str, folder: Path, usual: Callable[[tuple[str, ...]], tuple[int, str]]
) -> None:
    words = tuple(word.replace("_", " ") if "." not in word else word for word in command.split())
    arguments = tuple(str(folder / word) if (folder / word).is_file() else word for word in words)
    expected = usual(arguments)
    assert expected[0] == 0
    with STATES[state]():
        answer = bertcli(*arguments)
    assert (answer.status, DATE.sub("", answer.out)) == (0, DATE.sub("", expected[1]))


def test_quotes_around_a_long_cell_of_tabs_go(folder: Path) -> None:
    """csv.field_size_limit is 131,072 in a process that has not read a .csv file."""
    with csv_limit():
        csv.field_size_limit(131_072)
        (first, second) = bertcli("tokenize", "-i", folder / "d.tsv", "--column", "text", "--format", "jsonl").records
    assert first["tokens"][1] == second["tokens"][2] == "tea"
    assert len(first["tokens"]) == 40_002

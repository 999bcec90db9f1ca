"""Tables: whole in a pipe, folded in a terminal, never short of a word."""

from collections import Counter
from pathlib import Path
from shutil import copytree

import pytest
from conftest import Made
from helpers.terminal import bertcli
from safetensors.numpy import load_file, save_file

LONG = "She poured a cup of hot [MASK] " + "and then another one " * 3 + "for her guests."


@pytest.fixture
def model(made: Made) -> Path:
    return made(head="pretraining", seed=7)


def test_tables_piped_table_is_whole(model: Path) -> None:
    result = bertcli("fill-mask", "-m", model, LONG, "--targets", "tea")
    assert LONG.replace("[MASK]", "tea") in result.out
    assert "\x1b" not in result.out


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_tables_narrow_table_folds_text_and_keeps_numbers(width: int, model: Path) -> None:
    wide = bertcli("fill-mask", "-m", model, LONG, "--targets", "tea,unbelievable")
    result = bertcli(
        "fill-mask", "-m", model, LONG, "--targets", "tea,unbelievable", environment={"COLUMNS": str(width)}
    )
    for number in (cell for line in wide.out.splitlines()[2:] for cell in line.split()[:1]):
        assert number in result.out.split()
    letters, shown = (Counter(filter(str.isalnum, out)) for out in (wide.out, result.out))
    assert not letters - shown  # a very narrow table has the headings at every row
    if width >= 80:
        assert max(map(len, result.out.splitlines())) <= width


def test_tables_columns_that_say_nothing_are_left_out(model: Path) -> None:
    one, two = (bertcli("tokenize", "-m", model, *texts).out for texts in (["tea"], ["tea", "milk"]))
    assert "index" not in one
    assert "index" in two


def test_tables_second_text_is_shown_where_there_is_one(model: Path, made: Made, tmp_path: Path) -> None:
    out = bertcli("classify", "-m", model, "tea", "--text-pair", "milk").out
    assert [line.split() for line in out.splitlines()[:1]] == [["text", "text", "pair", "label", "score"]]
    assert [line.split()[:2] for line in out.splitlines()[2:]] == [["tea", "milk"]] * 2
    file = tmp_path / "pairs.jsonl"
    file.write_text('{"text": "tea", "second": "milk"}\n{"text": "tea", "second": ""}\n', encoding="utf-8")
    out = bertcli("classify", "-m", model, "-i", file, "--pair-column", "second").out
    assert [line.split()[:3] for line in out.splitlines()[2:4]] == [["0", "tea", "milk"]] * 2
    assert "pair" not in bertcli("classify", "-m", made(head="classifier"), "tea", "milk").out


def test_tables_ids_are_shown_where_there_are_any(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "texts.jsonl"
    file.write_text('{"text": "tea", "name": "t-1"}\n{"text": "milk", "name": 2}\n', encoding="utf-8")
    for pooling, rows in (("mean", 1), ("none", 3)):
        lines = bertcli("encode", "-m", model, "-i", file, "--id-column", "name", "--pooling", pooling).out.splitlines()
        assert lines[0].split()[:2] == ["index", "id"]
        assert [line.split()[1] for line in lines[2:]] == ["t-1"] * rows + ["2"] * rows
    assert " id " not in bertcli("encode", "-m", model, "-i", file).out


def test_tables_say_that_a_text_is_the_name_of_a_file(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("tea\n", encoding="utf-8")
    err = bertcli("encode", "-m", model, "notes.txt", "tea").err
    assert "Note: 'notes.txt' is taken as a text; to read the file of that name: -i notes.txt\n" in err
    assert "read as a text" not in bertcli("encode", "-m", model, "-i", "notes.txt").err


def test_tables_controls_are_written_out(model: Path) -> None:
    out = bertcli("encode", "-m", model, "a\x1b[31mred\x07\nb\u202ec\r\td").out
    assert r"a\x1b[31mred\x07\nb\u202ec\r\td" in out
    assert not set("\x1b\x07\r\t\u202e") & set(out)


def test_tables_nothing_in_a_text_is_taken_for_markup(model: Path) -> None:
    assert "[bold]x[/bold] :smile: [link=y]" in bertcli("encode", "-m", model, "[bold]x[/bold] :smile: [link=y]").out


@pytest.mark.parametrize(
    ("environment", "colored"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({"FORCE_COLOR": "1"}, True),
    ],
)
def test_tables_colors_in_a_terminal(environment: dict[str, str], colored: bool, model: Path) -> None:
    result = bertcli(
        "tokenize", "-m", model, "tea", terminal=True, environment={"TERM": "xterm-256color", **environment}
    )
    assert ("\x1b[" in result.out) == colored


def test_tables_forced_colors_do_not_cut_a_piped_table(model: Path) -> None:
    result = bertcli("fill-mask", "-m", model, LONG, "--targets", "tea", environment={"FORCE_COLOR": "1"})
    assert LONG.replace("[MASK]", "tea") in result.out
    assert "\x1b[" in result.out


@pytest.mark.parametrize("value", ["", "0", "wide", "-5"])
def test_tables_width_that_is_none_is_ignored(value: str, model: Path) -> None:
    assert bertcli("tokenize", "-m", model, "tea", environment={"COLUMNS": value}) == bertcli(
        "tokenize", "-m", model, "tea"
    )


@pytest.mark.parametrize("width", ["1", "7"])
def test_tables_are_laid_out_for_sixteen_cells_at_least(width: str, model: Path) -> None:
    narrowest = bertcli("tokenize", "-m", model, "漢 tea", environment={"COLUMNS": "16"})
    assert bertcli("tokenize", "-m", model, "漢 tea", environment={"COLUMNS": width}) == narrowest


@pytest.mark.parametrize(
    ("score", "cell"),
    [
        (12345.6875, "12345.6875"), (999_999.5, "999999.5000"), (1_000_000.0, "1.000e+06"), (0.0, "0.0000"),
        (0.001953125, "0.0020"), (-0.0001220703125, "-1.221e-04"), (-2500.25, "-2500.2500"),
    ],
)  # fmt: skip
def test_tables_show_numbers_with_four_decimals_unless_they_are_very_small_or_large(
    score: float, cell: str, made: Made, tmp_path: Path
) -> None:
    folder = copytree(made(head="classifier", num_labels=1), tmp_path / "model")
    tensors = load_file(folder / "model.safetensors")
    tensors["classifier.weight"][:] = 0
    tensors["classifier.bias"][:] = score
    save_file(tensors, folder / "model.safetensors")
    result = bertcli("classify", "-m", folder, "hot tea", "--activation", "none")
    assert result.status == 0, result.err
    assert result.out.splitlines()[-1].split()[-1] == cell

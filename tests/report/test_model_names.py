"""Two models whose folders have one name are told apart, in tables and on pages."""

import re
import shutil
from pathlib import Path

import pytest
from conftest import Made
from helpers.terminal import bertcli

from bertcli.report.model_names import told_apart

DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["/m/a/x/model", "/m/b/x/model"], ["a/x/model", "b/x/model"]),
        (["/m/a/model", "bert-mini-mlm"], ["model", "bert-mini-mlm"]),
        (["a/model", "b/model"], ["a/model", "b/model"]),
        (["/m/a", "/m/a"], ["/m/a", "/m/a"]),
        (["/m/a"], ["/m/a"]),
        (["org/bert", "/models/bert"], ["org/bert", "models/bert"]),
        (["/m/a/x", "/m/b/x", "/n/a/x"], ["m/a/x", "m/b/x", "n/a/x"]),
    ],
)
def test_names_are_the_shortest_ends_that_differ(names: list[str], short: list[str]) -> None:
    assert told_apart(names) == short


@pytest.fixture(scope="module")
def twins(made: Made, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    root = tmp_path_factory.mktemp("twins")
    model = made(head="classifier", id2label={0: "negative", 1: "positive"})
    folders = root / "first" / "model", root / "second" / "model"
    for folder in folders:
        shutil.copytree(model, folder)
    return folders


def test_evaluate_heads_its_columns_with_what_differs(twins: tuple[Path, Path], tmp_path: Path) -> None:
    first, second = twins
    page = tmp_path / "page.html"
    assert bertcli("evaluate", DATA / "reviews.csv", "-m", first, "-m", second, "-o", page).status == 0
    figure = tmp_path / "figure.svg"
    assert bertcli("evaluate", DATA / "reviews.csv", "-m", first, "-m", second, "-o", figure).status == 0
    words = re.findall(">([^<>]+)<", figure.read_text(encoding="utf-8"))
    assert {*words} >= {f"{name}/model: reliability diagram" for name in ("first", "second")}
    told = bertcli("evaluate", DATA / "reviews.csv", "-m", first, "-m", second)
    heading = told.out.splitlines()[0].split()
    assert heading == ["Figure", "first/model", "second/model", "n"]
    assert ">first/model</td>" in page.read_text(encoding="utf-8")
    without = [line for line in told.out.splitlines() if line.startswith("No interval for ece")]
    assert len(without) == 1, "both models give one reason"
    record = bertcli("evaluate", DATA / "reviews.csv", "-m", first, "-m", second, "--format", "json")
    assert f'"model": "{second}"' in record.out


def test_diff_and_params_name_what_differs(twins: tuple[Path, Path]) -> None:
    first, second = twins
    told = bertcli("diff", first, "--versus", second, "the cat")
    assert "first/model and second/model: no step beyond 0.0001" in told.out
    weights = bertcli("diff", first, "--versus", second).out.splitlines()
    assert weights[0].startswith("first/model: ")
    assert weights[1].startswith("second/model: ")
    assert weights[2].endswith("different ones: 0")
    counted = bertcli("params", "-m", first, "--versus", second)
    assert "first/model" in counted.out.splitlines()[0]


def test_diff_says_what_a_question_mark_is(twins: tuple[Path, Path], made: Made) -> None:
    wider = made(head="classifier", sizes={"hidden_size": 64})
    told = bertcli("diff", twins[0], "--versus", wider)
    assert "?: cannot be compared, since one has another shape" in told.out


def test_evaluate_names_the_model_whose_figure_has_no_interval(twins: tuple[Path, Path], made: Made) -> None:
    other = made(head="classifier", id2label={0: "negative", 1: "positive"}, seed=5)
    told = bertcli("evaluate", DATA / "reviews.csv", "-m", twins[0], "-m", other)
    without = [line for line in told.out.splitlines() if line.startswith("No interval for ece")]
    assert [line.partition(":")[0] for line in without] == [
        "No interval for ece of model",
        f"No interval for ece of {other.name}",
    ]


def test_evaluate_of_three_models_has_differences_beside_their_short_names(twins: tuple[Path, Path]) -> None:
    models = [word for model in (*twins, "bert-mini-sentiment") for word in ("-m", model)]
    told = bertcli("evaluate", DATA / "reviews.csv", *models).out
    assert "p is corrected for their number as Holm does" in told
    heading, _, *rows = told.splitlines()
    assert heading.split() == ["Model", "accuracy", "Difference", "p"]
    assert [row.split()[0] for row in rows[:3]] == ["first/model", "second/model", "bert-mini-sentiment"]
    figures = [[*map(float, re.findall(r"[+-]?\d\.\d{2}(?= \[)", row))] for row in rows[:3]]
    (random,), twin, (trained, above) = figures
    assert twin == [random, 0.0]
    assert above == pytest.approx(trained - random, abs=0.011)
    assert above > 0.2

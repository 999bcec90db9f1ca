"""`evaluate -o FILE.svg`: intervals, differences, confusion matrix and reliability diagram in one figure."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from helpers.terminal import bertcli

REVIEWS = Path(__file__).parents[2] / "data" / "reviews.csv"
SENTIMENT = "bert-mini-sentiment"
SVG = "{http://www.w3.org/2000/svg}"


def drawn(file: Path, *arguments: Any, again: bool = False) -> Any:
    """The root of a figure; `again`: which a command draws the same twice."""
    assert bertcli("evaluate", *arguments, "-o", file).status == 0
    figure = file.read_bytes()
    if again:
        assert bertcli("evaluate", *arguments, "-o", file).status == 0
        assert file.read_bytes() == figure
    return ElementTree.fromstring(figure)


def words_of(root: Any) -> list[str]:
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


def test_evaluate_figure_has_each_figure_with_its_interval_and_each_group(tmp_path: Path) -> None:
    command: list[str | Path] = [REVIEWS, "-m", SENTIMENT, "--by", "about"]
    root = drawn(tmp_path / "figures.svg", *command, again=True)
    words = words_of(root)
    (model,) = json.loads(bertcli("evaluate", *command, "--format", "json").out)["models"]
    dots = [float(dot.get("cx")) for dot in root.iter(f"{SVG}circle") if dot.get("r") == "1.7"]
    begin = 0
    for figures in (model["metrics"], *model["by"].values()):
        for name, figure in figures.items():
            low, high = figure["low"], figure["high"]
            interval = "none" if low is None else f"[{low:.4f}, {high:.4f}]"
            row = [name, f"{figure['value']:.4f}", interval]
            begin = next(i for i in range(begin, len(words)) if words[i : i + 3] == row)
    assert [f"Figures with 95 % intervals, {group}" for group in model["by"]] == [
        text for text in words if text.startswith("Figures with 95 % intervals,")
    ]
    # The first dot stands on the line where the accuracy is: from 166 to 232 points.
    assert abs(dots[0] - (166 + 66 * model["metrics"]["accuracy"]["value"])) < 0.01
    low, high = (166 + 66 * model["metrics"]["accuracy"][end] for end in ("low", "high"))
    ranges = [line.get("d") for line in root.iter(f"{SVG}path") if line.get("stroke-width") == "3"]
    assert re.fullmatch(rf"M{low:.2f} [\d.]+H{high:.2f}", ranges[0])
    assert {"0", "0.5", "1", "mean confidence →"} <= {*words}
    for counts in model["confusion"]:
        assert all(str(count) in words for count in counts)


def test_evaluate_figure_of_two_models_names_both_and_their_differences(tmp_path: Path) -> None:
    command: list[str | Path] = [REVIEWS, "-m", SENTIMENT, "-m", SENTIMENT]
    words = words_of(drawn(tmp_path / "figures.svg", *command))
    record = json.loads(bertcli("evaluate", *command, "--format", "json").out)
    assert words.count(SENTIMENT) == 2 * len(record["models"][0]["metrics"])
    begin = words.index(f"Differences: {SENTIMENT} less {SENTIMENT}")
    for difference in record["differences"]:
        at = words.index(difference["metric"], begin)
        assert words[at + 1] == f"{difference['value']:+.4f}"
    assert sum(text.endswith("reliability diagram") for text in words) == 2


def test_evaluate_figure_leaves_the_line_out_for_figures_beyond_one(tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("A cup of tea.\nThe dog sat on the mat.\nShe ran home.\n", encoding="utf-8")
    root = drawn(tmp_path / "figures.svg", texts, "--task", "score")
    assert "loss" in words_of(root)
    assert not [*root.iter(f"{SVG}circle")]

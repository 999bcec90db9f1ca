"""Every figure (-o FILE.svg), in a real browser at a column's width: no text leaves it, and none covers another."""

from pathlib import Path
from typing import Any

import pytest
from conftest import Made
from helpers.terminal import bertcli

from bertcli.wings.evaluate.report.drawing import FONTS

DATA, SENTIMENT = Path(__file__).parents[1] / "data", "bert-mini-sentiment"
TEXT = "She poured a cup of hot [MASK] and water; the king's unbelievably good dogs sat on the mat."
MIXED = "The word שלום עולם (and קפה) is read from the right, déjà vu."
FIGURES: dict[str, list[Any]] = {
    "explain": ["explain", "A warm, funny and moving film.", MIXED, "הסרט הזה היה נהדר, אבל הסוף היה נורא."],
    "lens": ["lens", TEXT, "--top-k", "6"],
    "lens-all": ["lens", TEXT, "--all"],
    "heads": ["heads", "A warm film.", "--ablate"],
    "heads-layer": ["heads", TEXT, "--layer", "3"],
    "heads-rollout": ["heads", "A cup of hot [MASK].", "--rollout", "0"],
    "patch": [
        "patch",
        "The film was good, and we loved it.",
        "The film was bad, and we loved it.",
        "--direction",
        "both",
    ],
    "probe": ["probe", "-i", DATA / "reviews.csv", "-m", SENTIMENT],
    "evaluate": ["evaluate", DATA / "reviews.csv", "--by", "about", "-m", SENTIMENT, "-m", SENTIMENT],
    "evaluate-vectors": ["evaluate", DATA / "triplets.jsonl", "--truncate-dim", "64,16", "--dtype", "int8,binary"],
}
# Texts that stand outside of the figure or are too small, and pairs that cover more than a pixel of each other.
WRONG = """
const LEAST = 7.1;  // pixels: 5.4 points
const {width, height} = document.documentElement.getBoundingClientRect(), found = [];
const texts = [...document.querySelectorAll("text")].map(element => {
  const {left, top, right, bottom} = element.getBoundingClientRect(), {a, b} = element.getScreenCTM();
  // Of a line's box, a part above and below is room for other letters; an upright text has it at its sides.
  const across = element.getAttribute("transform") ? .15 * (right - left) : 0, down = across ? 0 : .15 * (bottom - top);
  const size = parseFloat(getComputedStyle(element).fontSize) * Math.hypot(a, b);
  const box = {left: left + across, right: right - across, top: top + down, bottom: bottom - down};
  return {text: element.textContent, size, ...box};
});
texts.forEach((one, i) => {
  if (one.left < 0 || one.top < 0 || one.right > width || one.bottom > height) found.push(`${one.text} is outside`);
  if (one.size < LEAST) found.push(`${one.text} is of ${one.size} pixels`);
  for (const two of texts.slice(i + 1)) {
    const across = Math.min(one.right, two.right) - Math.max(one.left, two.left);
    const down = Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top);
    if (across > 1 && down > 1) found.push(`${one.text} covers ${two.text}: ${across} by ${down}`);
  }
});
return [Math.round(width), found];
"""
COLUMN = 321  # pixels of 8.5 cm


def check(browser: Any, file: Path) -> None:
    browser.get(file.as_uri())
    width, found = browser.execute_script(WRONG)
    assert width == COLUMN
    assert found == []
    # A reader without Helvetica, Arial and Liberation Sans may have a wider font.
    other = file.with_name("other-font.svg")
    figure = file.read_text(encoding="utf-8")
    assert FONTS in figure
    other.write_text(figure.replace(FONTS, "DejaVu Sans, Verdana, sans-serif"), encoding="utf-8")
    browser.get(other.as_uri())
    assert browser.execute_script(WRONG)[1] == []
    # In a page, in a column of text.
    page = file.with_suffix(".html")
    column = f'<div style="width: 8.5cm"><img src="{file.name}" alt="" style="width: 100%"></div>'
    page.write_text(f"<!DOCTYPE html>{column}", encoding="utf-8")
    browser.get(page.as_uri())
    image = "const image = document.querySelector('img'); return [image.complete, image.naturalWidth, image.width]"
    assert browser.execute_script(image) == [True, COLUMN, COLUMN]


@pytest.mark.parametrize("name", FIGURES)
def test_browser_shows_every_text_of_a_figure_by_itself(browser: Any, tmp_path: Path, name: str) -> None:
    file = tmp_path / f"{name}.svg"
    done = bertcli(*FIGURES[name], "-o", file)
    assert done.status == 0, done.err
    check(browser, file)


def test_browser_shows_the_figure_of_twelve_layers_and_heads(browser: Any, tmp_path: Path, made: Made) -> None:
    sizes = {"num_hidden_layers": 12, "num_attention_heads": 12, "hidden_size": 48}
    model = made(head="mlm", sizes=sizes, seed=3)
    words = "the cat sat on the mat, and a dog ran to the house of the king [MASK]."
    commands: list[list[str]] = [
        ["lens", words, "--all"],
        ["heads", "the cat sat.", "--ablate", "--contrast", "a dog."],
        ["patch", words, words.replace("cat", "dog")],
    ]
    for number, command in enumerate(commands):
        file = tmp_path / f"{number}.svg"
        done = bertcli(*command, "-m", model, "-o", file)
        assert done.status == 0, done.err
        check(browser, file)

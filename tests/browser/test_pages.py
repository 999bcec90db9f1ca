"""Every page that bertcli draws, opened in a real browser: Chromium, driven by Selenium, if it is there."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.browser import until
from helpers.terminal import bertcli

import bertcli as library
from bertcli.analysis.trace.page import PageOptions, page_of_text

DATA, SENTIMENT = Path(__file__).parents[1] / "data", "bert-mini-sentiment"
# A page is opened at the first width of a pair, and the window is then made as wide as the second.
OPENED = ((390, 800), (1440, 1180))
SCHEMES = (("light", "dark"), ("dark", "light"))
TEXT = "She poured a cup of hot [MASK] </script><b>."
LONG = "The dog and the cat sat on the mat by the old house, and the sun was hot. " * 6


# The boxes that scroll sideways inside a page.
CUT = """
return [...document.querySelectorAll(".scrolled")].filter(box => box.scrollWidth > box.clientWidth + 1)
  .map(box => `${box.getAttribute("aria-label")}: ${box.scrollWidth} in ${box.clientWidth}`);
"""


def look(browser: Any, file: Path, width: int, scheme: str) -> None:
    """Open a page at a width, light or dark; it must not complain, load anything, or scroll sideways."""
    resize(browser, width)
    turn(browser, scheme)
    browser.get(file.as_uri())
    check(browser, f"{file.name} at {width}, {scheme}")


def look_at_all_widths(browser: Any, file: Path, ways: Sequence[int] = (0, 1)) -> None:
    """Open a page on a phone and on a wide screen, light and dark, and change both while it is open.

    ways: of the two ways to open it those that are tried.
    """
    for widths, schemes in [(OPENED[way], SCHEMES[way]) for way in ways]:
        look(browser, file, widths[0], schemes[0])
        assert browser.execute_script(CUT) == [], widths[0]
        turn(browser, schemes[1])
        check(browser, f"{file.name} at {widths[0]}, from {schemes[0]} to {schemes[1]}")
        resize(browser, widths[1])
        check(browser, f"{file.name}, from {widths[0]} to {widths[1]}")
        assert browser.execute_script(CUT) == [], widths[1]


def resize(browser: Any, width: int) -> None:
    """Make the window so wide, or a phone's."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def turn(browser: Any, scheme: str) -> None:
    """Make it day or night."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def check(browser: Any, where: str) -> None:
    assert browser.get_log("browser") == [], where
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0, where
    across = browser.execute_script(
        "const root = document.documentElement; return [root.scrollWidth, root.clientWidth]"
    )
    assert across[0] <= across[1], f"{where}: {across[0]} wide"


PAGES: dict[str, list[str]] = {
    "pass": ["trace", TEXT],
    "operations": ["trace", "--variant", "base"],
    "pass-textbook": ["trace", "--variant", "textbook", "--seed", "0", "--seq-len", "5"],
    "pass-long": ["trace", LONG],
    "pass-versus": ["trace", TEXT, "--contrast", "He drank a glass of cold [MASK]."],
    "lens": ["lens", TEXT],
    "lens-all": ["lens", TEXT, "--all"],
    "explain": ["explain", "A warm, funny and moving film </script>."],
    "heads": ["heads", "A warm film.", "--ablate"],
    "heads-rollout": ["heads", "A warm film.", "--rollout", "0"],
    "patch": ["patch", "She </script> poured hot [MASK].", "He poured <b> [MASK].", "--of", "heads"],
    "probe": ["probe", "-i", str(DATA / "reviews.csv"), "-m", SENTIMENT],
    "evaluate": ["evaluate", str(DATA / "reviews.csv"), "--by", "about", "-m", SENTIMENT, "-m", SENTIMENT],
    "evaluate-vectors": ["evaluate", str(DATA / "triplets.jsonl"), "--truncate-dim", "64,16", "--dtype", "int8,binary"],
    "diff": ["diff", "bert-mini-mlm", "--versus", "bert-mini-sentiment", "A warm film."],
}


# A browser works for seconds when one of these is opened: each is opened one way, the page of a short pass both ways.
LARGE: dict[str, Sequence[int]] = {"pass-textbook": (0,), "pass-long": (1,), "pass-versus": (0,)}


@pytest.mark.parametrize("name", PAGES)
def test_browser_shows_each_page_and_cuts_no_row(browser: Any, tmp_path: Path, name: str) -> None:
    file = tmp_path / f"{name}.html"
    left = bertcli(*PAGES[name], "-o", file)
    assert left.status == 0, left.err
    assert 'class=""' not in file.read_text(encoding="utf-8")
    look_at_all_widths(browser, file, LARGE.get(name, (0, 1)))


COLORS = """
const color = selector => getComputedStyle(document.querySelector(selector)).stroke;
return [".curve .range", ".strip .range", ".curve polyline"].map(color);
"""


def test_browser_draws_intervals_in_a_color_of_their_own(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    assert bertcli("evaluate", DATA / "reviews.csv", "-m", SENTIMENT, "-o", file).status == 0
    look(browser, file, 1440, "light")
    of_curve, of_strip, of_line = browser.execute_script(COLORS)
    assert of_curve == of_strip
    assert of_curve != of_line


SIZES_OF_BASE = {"num_hidden_layers": 12, "num_attention_heads": 12, "hidden_size": 48}
WORDS = "the cat sat on the mat, and a dog ran to the house of the king [MASK]."
WIDE_PAGES: dict[str, list[str]] = {
    "lens-all": ["lens", WORDS, "--all"],
    "heads": ["heads", "the cat sat.", "--ablate", "--label", "bad"],
    "patch": ["patch", "the cat sat on [MASK].", "a dog sat on [MASK]."],
    "patch-long": ["patch", WORDS, WORDS.replace("cat", "dog")],
}


@pytest.mark.parametrize("name", WIDE_PAGES)
def test_browser_shows_twelve_layers_and_heads_without_scrolling_sideways(
    browser: Any, tmp_path: Path, made: Made, name: str
) -> None:
    file = tmp_path / f"{name}.html"
    ablates = name == "heads"
    model = made(head="classifier" if ablates else "mlm", sizes=SIZES_OF_BASE, id2label={0: "bad", 1: "good"}, seed=3)
    result = bertcli(*WIDE_PAGES[name], "-m", model, "-o", file)
    assert result.status == 0, result.err
    look_at_all_widths(browser, file)


def test_browser_shows_tagged_texts_and_answers(browser: Any, tmp_path: Path, made: Made) -> None:
    labels = {0: "O", 1: "B-PER", 2: "I-PER"}
    tagger, reader = made(head="token_classifier", id2label=labels), made(head="qa")
    pages: dict[str, list[str | Path]] = {
        "tag": ["tag", "-m", tagger, "The king drinks tea."],
        "answer": ["answer", "-m", reader, "Who drinks?", "--context", "The king drinks tea."],
    }
    for name, arguments in pages.items():
        file = tmp_path / f"{name}.html"
        left = bertcli(*arguments, "-o", file)
        assert left.status == 0, left.err
        look_at_all_widths(browser, file)


EXPLAIN = """
const found = [];
for (const step of main.steps) {
  const view = viewOf(main, step, data.heads - 1);
  if (!view) continue;
  if (chosen.head !== data.heads - 1) choose({head: data.heads - 1});  // a cell before was of another
  const [row, column] = [Math.min(2, view.rows - 1), Math.min(5, view.columns - 1)];
  explain(view, row, column);
  const {worked, shown, terms} = document.getElementById("worked").dataset;
  const told = workedOut(step.path, view.head, row, column);
  if (worked !== (told ? String(told.sum) : "")) throw new Error("the panel says other than workedOut at " + step.path);
  found.push([step.path, step.op, worked, shown, terms]);
}
return JSON.stringify(found);
"""


def explained(browser: Any, file: Path) -> list[list[str]]:
    """Of each step a chosen cell: [path, op, what its terms come to, what the page shows, the terms less their sum]."""
    look(browser, file, 1400, "light")
    found: list[list[str]] = json.loads(browser.execute_script(EXPLAIN))
    assert browser.get_log("browser") == []
    return found


def check_sums(found: list[list[str]]) -> None:
    for path, _, worked, shown, terms in found:
        if worked and not shown.endswith("Infinity"):  # a mask's
            assert float(worked) == pytest.approx(float(shown), rel=1e-5, abs=2e-6), path
            assert terms == "" or abs(float(terms)) < 1e-6, path


def test_browser_works_out_numbers_that_add_up(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "pass.html"
    assert bertcli("trace", TEXT, "-o", file).status == 0
    found = explained(browser, file)
    check_sums(found)
    here = [one for one in found if not one[0].startswith("encoder.layers.") or ".layers.3." in one[0]]
    assert len(here) == 25
    assert all(worked for _, op, worked, *_ in here), "the chosen layer is whole, so each number can be worked out"


def test_browser_follows_keys_and_links(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    file = tmp_path / "pass.html"
    assert bertcli("trace", TEXT, "-o", file).status == 0
    resize(browser, 1400)
    browser.get(file.as_uri() + "#encoder.layers.1.attention.softmax")
    opened = "return document.querySelector('.section.open').dataset.section"
    assert browser.execute_script(opened) == "2"
    browser.find_element(By.TAG_NAME, "body").send_keys("]")
    assert browser.execute_script(opened) == "3"
    board = browser.find_element(By.CSS_SELECTOR, ".section.open .board")
    board.send_keys(Keys.ENTER)
    before = browser.find_element(By.ID, "worked").text
    browser.find_element(By.CSS_SELECTOR, ".section.open .board").send_keys(Keys.ARROW_DOWN)
    after = browser.find_element(By.ID, "worked").text
    assert before != after
    assert "row" in after
    browser.find_element(By.CSS_SELECTOR, ".section.open .picture details summary").click()
    # The table is made once the browser says that it was opened.
    numbers = ".section.open .picture details td[title]"
    cells = until(browser, lambda shown: shown.find_elements(By.CSS_SELECTOR, numbers))
    assert float(cells[0].get_attribute("title")) == pytest.approx(float(cells[0].text), rel=1e-3)
    pressed = browser.find_elements(By.CSS_SELECTOR, ".chip[aria-pressed=true]")
    assert len(pressed) == 1
    assert np.isfinite(float(browser.find_element(By.ID, "worked").get_attribute("data-shown")))


def chosen_cell(browser: Any) -> tuple[str, str]:
    """What the panel says, and the end of the page's address."""
    from selenium.webdriver.common.by import By

    return browser.find_element(By.ID, "worked").text, browser.current_url.partition("#")[2]


def test_browser_panel_begins_with_the_weight_of_the_chosen_token_where_it_has_a_column(
    browser: Any, tmp_path: Path
) -> None:
    file = tmp_path / "pass.html"
    assert bertcli("trace", "A cup of hot [MASK].", "-o", file).status == 0
    look(browser, file, 1400, "light")
    said, link = chosen_cell(browser)
    assert "Layer 4: Attention weights\nhead 1, row “[MASK]” (token 5), column “hot” (token 4)" in said
    assert not link, "the address changes once something is chosen"
    paper = "return shade(0, 1, false)"
    assert browser.execute_script(paper) == [255, 255, 255]
    turn(browser, "dark")
    assert browser.execute_script(paper) == [22, 22, 26], "a page that is open turns dark with the system"
    look(browser, file, 800, "light")
    browser.get("about:blank")
    browser.get(file.as_uri())
    assert "Choose a cell" in chosen_cell(browser)[0]


def test_browser_panel_names_the_cell_follows_the_layer_and_links_keep_it(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.by import By

    file = tmp_path / "pass.html"
    assert bertcli("trace", "A cup of hot [MASK].", "-o", file).status == 0
    resize(browser, 1400)
    browser.get(file.as_uri() + "#encoder.layers.3.attention.softmax@3,4,1")
    said, link = chosen_cell(browser)
    assert "Layer 4: Attention weights" in said
    assert "head 3, row “hot” (token 4), column “a” (token 1)" in said
    assert browser.execute_script("return [chosen.head, chosen.token, chosen.section]") == [2, 4, 4]
    body = browser.find_element(By.TAG_NAME, "body")
    body.send_keys("[")
    said, link = chosen_cell(browser)
    assert "Layer 3: Attention weights" in said
    assert link == "encoder.layers.2.attention.softmax@3,4,1"
    body.send_keys("]]")
    said, link = chosen_cell(browser)
    assert "Choose a cell" in said
    assert link == "section-5@3"
    browser.get(file.as_uri() + "#mlm.decoder@1,5,0")
    word = browser.execute_script("return data.names['mlm.decoder'][0]")
    assert f"Head: Vocabulary logits\nrow “[MASK]” (token 5), column “{word}”" in chosen_cell(browser)[0]
    browser.get(file.as_uri() + "#encoder.layers.3.attention.query@1,5,70")
    assert "column 6 of head 2" in chosen_cell(browser)[0]


def test_browser_stripes_what_it_cannot_work_out_and_says_what_helps(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.by import By

    file, cell = tmp_path / "pass.html", "encoder.layers.1.feed_forward.output@1,2,9"
    assert bertcli("trace", LONG, "-o", file).status == 0
    resize(browser, 1400)
    browser.get(file.as_uri() + "#" + cell)
    until(browser, lambda driver: driver.find_elements(By.CSS_SELECTOR, ".section.open canvas.hatch"))
    said, _ = chosen_cell(browser)
    assert "It was made from “Intermediate” (layer 2), of which only some columns are on this page." in said
    assert "--layer 2 puts it on the page" in said
    assert browser.execute_script("return workedOut('encoder.layers.1.feed_forward.output', 0, 2, 9)") is None
    assert bertcli("trace", LONG, "--layer", "2", "-o", file).status == 0
    browser.get("about:blank")
    browser.get(file.as_uri() + "#" + cell)
    told = browser.execute_script("return workedOut('encoder.layers.1.feed_forward.output', 0, 2, 9)")
    assert told["sum"] == pytest.approx(told["shown"], abs=1e-4)
    assert "not on this page" not in chosen_cell(browser)[0]
    # With more bytes than a short text's page has: states whole, and weights of the layers that are not open in part.
    text = page_of_text(library.load("bert-mini-mlm"), TEXT, options=PageOptions(bound=8_000_000))
    file.write_text(text, encoding="utf-8")
    browser.get("about:blank")
    browser.get(file.as_uri())
    path = "encoder.layers.1.feed_forward.intermediate"
    row = browser.execute_script(f"return main.tokens.findIndex((_, i) => !workedOut('{path}', 0, i, 3))")
    browser.execute_script(f"location.hash = '{path}@1,{row},3'")
    until(browser, lambda driver: "Layer 2" in chosen_cell(driver)[0])
    assert "The weights W_1 of layer 2 that belong to this number are not on this page." in chosen_cell(browser)[0]


def test_browser_draws_two_texts_side_by_side(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.by import By

    file = tmp_path / "pass.html"
    texts = "A cup of hot [MASK].", "A cup of cold [MASK]."
    assert bertcli("trace", texts[0], "--contrast", texts[1], "-o", file).status == 0
    look(browser, file, 1400, "light")
    differ = browser.find_elements(By.CSS_SELECTOR, ".chip.differs")
    assert [chip.text.split("\n")[0] for chip in differ] == ["hot", "cold"]
    apart = """
    const step = main.steps.find(step => step.path === "encoder.layers.3.feed_forward.output");
    const [first, second] = passes.map(pass => viewOf(pass, step, 0)), both = difference(first, second);
    const comes = account(versus, step.path, 0, 4, 7).comes;
    return [both.rows, both.at(4, 7), second.at(4, 7) - first.at(4, 7), comes, second.at(4, 7)];
    """
    rows, shown, wanted, comes, number = browser.execute_script(apart)
    assert rows == 8
    assert shown == pytest.approx(wanted)
    assert comes == pytest.approx(number, abs=1e-4)
    assert len(browser.find_elements(By.CSS_SELECTOR, ".section.open .card:first-of-type .board")) == 3

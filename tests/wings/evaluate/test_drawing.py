"""The parts of figures: the widths of texts, where lines break, which way they are written, what is turned."""

import re
from xml.etree import ElementTree

import pytest

from bertcli.report.shades import HeatMap, Mark, Shaded
from bertcli.report.terminal import Column
from bertcli.wings.evaluate.report.drawing import (
    HALF,
    LABELS,
    MARGIN,
    WIDTH,
    WORDS,
    FigurePart,
    beside,
    figure,
    folded,
    ground,
    heat_map,
    marked_words,
    sentence,
    text_width,
)

SVG = "{http://www.w3.org/2000/svg}"


def texts_of(*blocks: object) -> list[ElementTree.Element]:
    return [*ElementTree.fromstring(figure("A title", blocks, lead="A lead.")).iter(f"{SVG}text")]  # type: ignore[arg-type]


def test_text_is_as_wide_as_in_helvetica() -> None:
    # Widths of Helvetica's metrics (AFM), in thousandths of an em.
    for text, width in (
        ("Hamburgefonts", 722 + 556 + 833 + 556 * 2 + 333 + 556 * 2 + 278 + 556 * 2 + 278 + 500),
        ("+0.94", 584 + 556 * 3 + 278),
    ):
        assert text_width(text, 10) == pytest.approx(width / 100, rel=0.02)
    assert text_width("é", 10) == text_width("e\u0301", 10) == text_width("e", 10)
    assert text_width("漢字", 10) == 20
    assert text_width("\x1b", 10) == text_width("\\x1b", 10)


def test_figure_says_what_it_is_and_is_a_column_wide() -> None:
    root = ElementTree.fromstring(figure("A <title>", [sentence("&")], lead="A lead.", model="m", text="x < y"))
    assert (root.get("width"), root.get("viewBox", "").split()[2]) == ("241pt", "241")
    assert root.find(f"{SVG}title").text == "A <title>"  # type: ignore[union-attr]
    assert (root.find(f"{SVG}desc").text or "").startswith("A lead.\nm: “x < y”\n")  # type: ignore[union-attr]
    assert "sans-serif" in root.get("font-family", "")


def test_parts_of_a_figure_stand_below_one_another() -> None:
    parts = [sentence("one"), sentence("two " * 40), sentence("three")]
    moved = [group.get("transform") for group in ElementTree.fromstring(figure("t", parts, lead="")).iter(f"{SVG}g")]
    first, second, third = (float(str(each).split()[1].rstrip(")")) for each in moved)
    assert second - first == pytest.approx(parts[0].height + 9)
    assert third - second == pytest.approx(parts[1].height + 9)
    assert parts[1].height == 3 * parts[0].height


def test_texts_of_known_letters_are_fitted_into_their_width() -> None:
    for text, is_known in (("déjà vu", True), ("漢字", False), ("x", False)):
        (label,) = texts_of(sentence(text))
        expected = f"{text_width(text, LABELS):.2f}".rstrip("0").rstrip(".") if is_known else None
        assert label.get("textLength") == expected


def test_ground_of_a_shade_is_what_a_page_shows_in_daylight() -> None:
    assert [ground(shade) for shade in (0, 1, -1, 7, 0.5)] == ["#ffffff", "#58a0de", "#ec7862", "#58a0de", "#acd0ee"]


def test_marked_words_break_at_spaces_and_within_words_longer_than_a_line() -> None:
    text = "word " * 30 + "x" * 200 + "."
    lines: dict[str, str] = {}
    for word in texts_of(marked_words(text, [Mark(0, 4, title="+1.00")])):
        if word.get("font-size") == f"{WORDS:g}":
            lines[word.get("y", "")] = lines.get(word.get("y", ""), "") + (word.text or "")
            assert float(word.get("x", "")) + text_width(word.text or "", WORDS) / 2 < WIDTH
    assert "".join(lines.values()) == text.replace(" ", "")
    assert not any(re.fullmatch(r"\.", line) for line in [*lines.values()][:-2])


def test_marked_words_keep_the_lines_of_a_text() -> None:
    heights = [text.get("y") for text in texts_of(marked_words("one \n two\n\nfour", []))]
    first, second, fourth = map(float, heights)  # type: ignore[arg-type]
    assert fourth - second == pytest.approx(2 * (second - first))


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("one two three", "one two three"),
        ("הסרט היה טוב", "טוב היה הסרט"),
        ("the שלום עולם word", "the עולם שלום word"),
        ("הסרט of the year טוב", "טוב of the year הסרט"),
    ],
)
def test_marked_words_stand_in_the_order_in_which_they_are_read(text: str, seen: str) -> None:
    words = texts_of(marked_words(text, [Mark(*match.span()) for match in re.finditer(r"\w+", text)]))
    ordered = sorted(words, key=lambda word: float(word.get("x", "")))
    if text.startswith("ה"):
        # The first word ends at the right, within the room around a figure and a mark.
        end = float(ordered[-1].get("x", "")) + text_width(ordered[-1].text or "", WORDS) / 2
        assert end == pytest.approx(WIDTH - 2 * 3 - 2)
    assert " ".join(word.text or "" for word in ordered) == seen


def test_heat_map_turns_numbers_and_then_goes_on_below() -> None:
    def turned(columns: int) -> tuple[int, int]:
        """How many texts are upright, and how often the name of the first column stands there."""
        cells = [Shaded(f"{number / 100:+.2f}", number / 100) for number in range(columns)]
        found = HeatMap(
            "A map", [Column("Layer"), *(Column(f"{i} understood") for i in range(columns))], [["1", *cells]]
        )
        texts = texts_of(heat_map(found))
        assert sum(text.text == str(cell) for text in texts for cell in cells) == columns
        upright = [text.get("transform", "").startswith("rotate(-90 ") for text in texts]
        return sum(upright), sum(text.text == "Layer" for text in texts)

    assert turned(4) == (0, 1)
    assert turned(9) == (9, 1)
    assert turned(15) == (30, 1)
    assert turned(40) == (80, 2)
    cells = [Shaded(f"{number / 100:+.2f}", 1) for number in range(40)]
    texts = texts_of(heat_map(HeatMap("A map", [Column("Layer"), *map(Column, cells)], [["1", *cells]])))
    first, second = (i for i, text in enumerate(texts) if text.text == "Layer")
    assert second - first == (len(texts) - first) / 2, "as many columns above as below"


def test_names_are_folded_between_their_parts() -> None:
    assert folded("comp.sys.mac.hardware", LABELS, 60) == ["comp.sys.mac.", "hardware"]
    assert folded("a cup of_hot tea", LABELS, 25) == ["a cup", "of_hot", "tea"]
    assert folded("comp.sys.mac.hardware of a king", LABELS, 200) == ["comp.sys.mac.hardware of a king"]


def test_heat_map_goes_on_below_with_a_table_and_turns_none_of_its_words() -> None:
    names = [Column("Layer"), *(Column(f"Prediction {i}") for i in range(30))]
    texts = texts_of(heat_map(HeatMap("A table", names, [["1", *["water"] * 30]])))
    assert sum(text.text == "water" for text in texts) == 30
    assert sum(text.text == "Layer" for text in texts) > 2
    assert not any("transform" in text.attrib for text in texts)


def test_heat_map_puts_a_label_below_its_word_where_the_word_is_written_from_the_right() -> None:
    for word, lines in (("tea", ["tea 20%"]), ("\u0634\u0627\u064a", ["\u0634\u0627\u064a", "20%"])):
        found = HeatMap("A map", [Column("Layer"), Column("Best")], [["1", Shaded(word, 0.2, "20%")]])
        assert [text.text for text in texts_of(heat_map(found))][-len(lines) :] == lines


def test_heat_map_gives_each_row_its_height() -> None:
    rows = [[name, Shaded("0.5", 0.5)] for name in ("one", "a name of so many words that it takes three lines", "two")]
    texts = texts_of(heat_map(HeatMap("A map", [Column("Name"), Column("Value")], rows)))
    first, second, third = (float(text.get("y", "")) for text in texts if text.text == "0.5")
    assert second - first == pytest.approx(third - second)
    assert second - first > 1.25 * LABELS * 2


def test_heat_map_keeps_long_names_whole() -> None:
    name = "A label of so many words that no column has room for it"
    found = HeatMap("A map", [Column("True"), Column(name)], [[name, Shaded("x" * 90, 1, note="0.5")]])
    texts = texts_of(heat_map(found))
    assert (
        " ".join(text.text or "" for text in texts if text.get("font-size") == f"{LABELS:g}").count("so many words")
        == 2
    )
    root = ElementTree.fromstring(figure("t", [heat_map(found)], lead=""))
    assert f"{'x' * 90}, 0.5" in [title.text for title in root.iter(f"{SVG}title")]


def test_two_parts_beside_one_another_fill_the_column() -> None:
    *_, moved = beside(FigurePart(1, []), FigurePart(1, [])).shapes
    found = re.search(r"translate\(([\d.]+) 0\)", str(moved))
    assert found
    assert float(found[1]) + HALF == pytest.approx(WIDTH - 2 * MARGIN, abs=0.1)

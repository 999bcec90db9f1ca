"""Web pages: nothing in a text becomes markup, nothing is loaded, only the script that was given may run."""

import json
import re
from base64 import b64encode
from datetime import date
from hashlib import sha256
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from shlex import quote

import pytest
from helpers.terminal import bertcli as command
from hypothesis import given
from hypothesis import strategies as st

import bertcli
from bertcli.analysis.trace.page import PageOptions, page_of_text
from bertcli.report.page import HEAT, element, html, marked, page, table
from bertcli.report.shades import Mark
from bertcli.report.terminal import CONTROLS, Column, visible
from bertcli.report.written import COMMAND

NASTY = ["</script><script>alert(1)</script>", "<!--", "&amp;\"'", "{{data}}", "\x1b[31m\x07", "\u202eabc", "\ud800"]
texts = st.text(st.characters(), max_size=20) | st.sampled_from(NASTY)


class Found(HTMLParser):
    """What a browser would find: elements, attributes by name, and text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[str] = []
        self.attributes: dict[str, list[str | None]] = {}
        self.text: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, []).append(value)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@given(text=texts, title=texts)
def test_page_elements_hold_any_text_as_text(text: str, title: str) -> None:
    found = Found(element("p", text, title=title))
    assert found.elements == ["p"]
    assert found.attributes == {"title": [visible(title, lines=True)]}
    assert "".join(found.text) == visible(text, lines=True)
    assert set(re.findall(f"[{CONTROLS}]", "".join(found.text))) <= {"\t", "\n"}


@given(text=texts, title=texts)
def test_page_templates_hold_any_text_as_text(text: str, title: str) -> None:
    made = html('<p title="a {title}" class="b">{text}{inner}</p>', text=text, title=title, inner=[element("b", "c")])
    found = Found(made)
    assert found.elements == ["p", "b"]
    assert found.attributes == {"title": ["a " + visible(title, lines=True)], "class": ["b"]}
    assert "".join(found.text) == visible(text, lines=True) + "c"


def test_page_templates_format_numbers_and_know_their_places() -> None:
    assert html('<i x="{x:.1f}">{x:.3f} "{y}"</i>', x=1.25, y='"') == '<i x="1.2">1.250 """</i>'
    with pytest.raises(KeyError, match="z"):
        html("{z}", y=1)


def test_page_elements_nest_and_leave_attributes_out() -> None:
    inner = element("b", "<1>", hidden=True, id=None, class_="x", aria_label='"')
    assert element("p", inner, "&") == '<p><b hidden class="x" aria-label="&quot;">&lt;1&gt;</b>&amp;</p>'


@given(text=texts, cuts=st.lists(st.integers(0, 20), max_size=6))
def test_page_marks_keep_every_character_of_the_text(text: str, cuts: list[int]) -> None:
    ends = sorted(min(cut, len(text)) for cut in cuts)
    marks = [Mark(start, end, -0.5) for start, end in zip(ends[::2], ends[1::2], strict=False)]
    found = Found(marked(text, marks))
    assert "".join(found.text) == visible(text, lines=True)
    assert found.elements == ["p", *["mark"] * len(marks)]


def test_page_marks_say_side_and_strength() -> None:
    shown = marked("good <bad>", [Mark(0, 4, 0.25, title="+1"), Mark(5, 10, -3.0, label="NO")])
    assert '<mark class="for" style="--shade: 0.250" title="+1">good</mark> ' in shown
    assert '<mark class="against" style="--shade: 1.000">&lt;bad&gt;<small>NO</small></mark>' in shown
    with pytest.raises(ValueError, match="overlaps"):
        marked("good", [Mark(0, 3), Mark(2, 4)])
    with pytest.raises(ValueError, match="ends after"):
        marked("good", [Mark(0, 5)])


def test_page_tables_have_headings_for_screen_readers() -> None:
    found = Found(table("Words", [Column("word"), Column("share", number=True)], [["<a>", "1"], ["b", "2"]]))
    assert found.attributes["scope"] == ["col", "col", "row", "row"]
    assert found.attributes["tabindex"] == ["0"]
    assert found.attributes["aria-label"] == ["Words"]
    assert found.text == ["Words", "word", "share", "<a>", "1", "b", "2"]


def test_page_divides_the_long_name_of_a_row_at_its_dots_and_no_short_one() -> None:
    rows = [("weighted_f1", "1"), ("encoder.layers.0.attention", "2")]
    drawn = str(table("", [Column("Name"), Column("n")], rows))
    assert ">weighted_f1<" in drawn
    assert "encoder.<wbr>layers.<wbr>0.<wbr>attention" in drawn


def test_page_rows_of_many_cells_name_their_columns_for_a_phone() -> None:
    columns = [Column("Layer", number=True), *map(Column, ("a", "b", "c")), Column("From <0>")]
    shown = table("Layers", columns, [["1", "2", "3", "4", "5"]])
    assert '<table class="stacks">' in shown
    assert '<th scope="row" class="number" data-name="Layer">1</th><td data-name="a">2</td>' in shown
    assert '<td data-name="From &lt;0&gt;">5</td>' in shown
    assert "data-name" not in table("Heads", columns, [["1", "2", "3", "4", "5"]], HEAT)
    assert "data-name" not in table("Layers", columns[:4], [["1", "2", "3", "4"]])


def test_page_runs_only_its_own_script_and_loads_nothing() -> None:
    script = "const data = JSON.parse(document.getElementById('data').textContent);"
    text = page("<title>", element("p", *NASTY), lead="What it <means>.", script=script, data={"pieces": NASTY})
    found = Found(text)
    (policy,) = (one for one in found.attributes["content"] if one and "script-src" in one)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    assert found.elements.count("script") == text.count("<script") == text.count("</script>") == 2
    assert json.loads(text.partition('id="data">')[2].partition("</script>")[0]) == {"pieces": NASTY}
    assert not {"src", "href", "srcset", "action", "onload"} & found.attributes.keys()
    assert not re.search(r"https?:|@import|url\(", text)
    assert found.attributes["lang"] == ["en"]


def test_page_without_a_script_allows_none() -> None:
    assert "script-src 'none'" in page("title", lead="")
    with pytest.raises(ValueError, match="script element"):
        page("title", lead="", script="'</script>'")


def test_page_frame_names_model_text_date_version_and_command() -> None:
    text = page(
        "Title", element("p", "content"), lead="What it shows.", model="m<", text="a\n" * 200, command="bertcli x"
    )
    header, _, rest = text.partition("<main")
    assert "<h1>Title</h1>" in header
    assert f'<p class="about">m&lt;: “{"a " * 79}a…”</p>' in header
    assert f"{date.today():%Y-%m-%d} · bertcli {bertcli.__version__} · <code>bertcli x</code>" in header
    assert "What it shows." not in header
    assert "<footer><p>What it shows.</p></footer>" in rest


def test_page_says_the_command_that_made_it(tmp_path: Path) -> None:
    file = tmp_path / "it's.html"
    assert command("explain", "A warm film.", "--method", "delete", "-o", file).status == 0
    made = f"bertcli explain 'A warm film.' --method delete -o {quote(str(file))}"
    assert f"<code>{escape(made, quote=False)}</code>" in file.read_text(encoding="utf-8")


def test_page_of_a_server_has_no_command() -> None:
    COMMAND.set("bertcli serve --api-key secret")
    model = bertcli.load("bert-mini-mlm")
    assert "secret" not in page_of_text(model, "tea", options=PageOptions(bound=None, ask="/pass"))
    COMMAND.set("")


def test_no_legend_speaks_of_darkness() -> None:
    """In dark mode the strongest color is the brightest."""
    package = Path(bertcli.__file__).parent
    legends = [path for ending in ("*.js", "page.py", "compute/heads.py") for path in package.rglob(ending)]
    assert len(legends) > 6
    for legend in legends:
        assert not re.search("darker|darkest|lighter|white ", legend.read_text(encoding="utf-8")), legend


def test_cells_whose_labels_a_phone_does_not_show_are_upright_there_only_if_words_need_it(tmp_path: Path) -> None:
    file = tmp_path / "lens.html"
    assert command("lens", "She poured a cup of hot [MASK].", "--all", "-o", file).status == 0
    (classes,) = re.findall(r'<table class="(heat[^"]*)"', file.read_text(encoding="utf-8"))
    assert "upright-600" not in classes

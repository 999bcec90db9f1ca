"""Which of what was found in a text is marked, and how dark."""

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bertcli.report.marked import MarkedTable, Passage, mark, without_overlaps
from bertcli.report.shades import Mark
from bertcli.tasks.tag import TagOptions
from bertcli.tasks.tag import table as tag_table

founds = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6), st.sampled_from("AB")), max_size=20).map(
    lambda drawn: [mark(start, start + length, label, 0.5) for start, length, label in drawn]
)


@given(founds)
def test_marked_are_the_first_that_overlap_none_before_them(found: list[Mark]) -> None:
    expected: list[Mark] = []
    for one in found:
        if one.start < one.end and all(one.end <= other.start or other.end <= one.start for other in expected):
            expected.append(one)
    assert without_overlaps(found) == sorted(expected)


def test_marked_on_a_page_can_be_seen_whatever_the_score() -> None:
    def passage(record: Any) -> Passage:
        return Passage("", "abcd", [mark(i, i + 1, "X", score) for i, score in enumerate((-7.0, 0.0, 0.5, 9.0))])

    table = MarkedTable((), lambda record: (), passage_of=passage, title="Title", lead="Lead.")
    table.add({})
    text = table.page("M")
    assert re.findall(r"--shade: ([0-9.]+)", text.partition("<body>")[2]) == ["0.250", "0.250", "0.625", "1.000"]


def hues_of(labels: list[str], aggregation: Any) -> list[str]:
    """The color of each label on the page of `tag`."""
    table = tag_table(TagOptions(aggregation=aggregation))
    key = "entity" if aggregation == "none" else "entity_group"
    places = [{"start": i, "end": i + 1, "score": 1.0, "word": "a", key: label} for i, label in enumerate(labels)]
    table.add({"index": 0, "text": "a" * len(labels), "entities": places})
    return re.findall(r"--hue: (\d+)", table.page("M").partition("<body>")[2])


def test_labels_of_one_type_have_one_color_and_others_their_own() -> None:
    first, inner, other = hues_of(["B-PER", "I-PER", "B-LOC"], "none")
    assert first == inner != other
    # These only look as if they had prefixes.
    assert len({*hues_of(["E-mail", "post-mail", "mail"], "none")}) == 3
    assert len({*hues_of(["street-name", "person-name"], "simple")}) == 2

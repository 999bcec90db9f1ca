"""tag against transformers' token-classification pipeline (tests/reference/tasks.json), and what it refuses."""

from collections.abc import Sequence
from typing import Any

import pytest
from conftest import Made
from helpers.pipelines import SAID, same
from hypothesis import given
from hypothesis import strategies as st
from reference import task_cases as cases

import bertcli
from bertcli.errors import BertcliError
from bertcli.model import Model


@pytest.fixture(scope="module")
def tagger(made: Made) -> Model:
    return bertcli.load(made(**cases.TAGGER))


def as_named_here(entities: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The pipeline takes the E- of E-ORG off; there is no other label of this type, so it is the type's own name."""
    named = {"ORG": "E-ORG"}
    return [one | {key: named.get(one[key], one[key]) for key in ("entity_group",) if key in one} for one in entities]


@pytest.mark.parametrize("aggregation", cases.AGGREGATIONS)
def test_tag_equals_the_pipeline(aggregation: Any, tagger: Model) -> None:
    records = tagger.tag(cases.TAGGED_TEXTS, aggregation=aggregation)
    assert [list(record) for record in records] == [["index", "text", "truncated", "entities"]] * len(records)
    for record, expected in zip(records, SAID[f"tag.{aggregation}"], strict=True):
        same(record["entities"], as_named_here(expected))


@pytest.mark.parametrize(("size", "overlap"), cases.TAG_WINDOWS)
def test_tag_reads_long_texts_in_windows_as_the_pipeline_does(size: int, overlap: int, tagger: Model) -> None:
    for aggregation, expected in SAID[f"tag.windows.{size}.{overlap}"].items():
        record = tagger.tag(cases.LONG_TEXT, aggregation=aggregation, max_length=size, stride=overlap)
        same(record["entities"], as_named_here(expected))
        assert record["truncated"] is False


def test_tag_can_give_every_label(tagger: Model) -> None:
    (record,) = tagger.tag([cases.TAGGED_TEXTS[1]], ignore=())
    same(record["entities"], as_named_here(SAID["tag.everything"]))


def test_tag_gives_every_piece_of_a_long_text_once(tagger: Model) -> None:
    (record,) = tagger.tag([cases.LONG_TEXT], aggregation="none", ignore=[], max_length=13)
    (tokens,) = tagger.tokenizer.encode([cases.LONG_TEXT])
    assert [piece["index"] for piece in record["entities"]] == list(range(1, len(tokens.ids) - 1))
    assert [(piece["start"], piece["end"]) for piece in record["entities"]] == tokens.offsets[1:-1]


@given(text=st.text(max_size=60), aggregation=st.sampled_from(cases.AGGREGATIONS), size=st.integers(3, 20))
def test_tag_ranges_lie_in_the_text_in_order(text: str, aggregation: Any, size: int, tagger: Model) -> None:
    (record,) = tagger.tag([text], aggregation=aggregation, ignore=(), max_length=size)
    ends = [(one["start"], one["end"]) for one in record["entities"]]
    assert all(0 <= start <= end <= len(text) for start, end in ends)
    assert ends == sorted(ends)
    assert all(0 < one["score"] <= 1 + 1e-12 for one in record["entities"])


def test_tag_results_do_not_depend_on_company(tagger: Model) -> None:
    together = tagger.tag(cases.TAGGED_TEXTS, batch_tokens=20)
    for index, text in enumerate(cases.TAGGED_TEXTS):
        (alone,) = tagger.tag([text])
        same(together[index]["entities"], alone["entities"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"aggregation": "mean"}, "There is no aggregation 'mean'; choose from none, simple, first, max, average."),
        ({"stride": 8, "max_length": 10}, "a window of 10 tokens has 8 of the text"),
        ({"stride": -1}, "stride is -1"),
        ({"ignore": 3}, "ignore is 3, which is not a list"),
        ({"stride": 1.5}, "stride is 1.5, which is not a whole number."),
        ({"max_length": 100}, "more than the 48"),
        (
            {"max_length": 2},
            "max_length 2 is too small: a window needs a token beside its special ones.",
        ),
    ],
)
def test_tag_refuses_options(options: Any, message: str, tagger: Model) -> None:
    with pytest.raises(BertcliError) as error:
        tagger.tag(["tea"], **options)
    assert message in str(error.value)

"""tag, answer and rank on other families and tokenizers than BERT's, against the same pipelines."""

from pathlib import Path
from typing import Any

import pytest
from helpers.pipelines import SAID, same
from reference import task_cases as cases

import bertcli


@pytest.fixture(scope="module", params=cases.FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("aggregation", cases.AGGREGATIONS)
def test_tag_of_other_families_equals_the_pipeline(family: str, aggregation: Any, tmp_path: Path) -> None:
    model = bertcli.load(cases.make_task(tmp_path, family, "token_classifier"))
    size, overlap = cases.FAMILY_WINDOW
    settings: list[Any] = [{"max_length": 64}, {"max_length": size, "stride": overlap}]
    said = SAID[f"{family}.tag.{aggregation}"]  # of the long text only with "simple"
    texts = cases.FAMILY_TEXTS if aggregation in ("none", "simple") else [cases.FAMILY_WORDS]
    for text, how, expected in zip(texts, settings, said, strict=False):
        (record,) = model.tag([text], aggregation=aggregation, ignore=(), **how)
        keys = expected[0].keys()
        same([{key: entity[key] for key in keys} for entity in record["entities"]], [*map(_named_whole, expected)])


def _named_whole(entity: dict[str, Any]) -> dict[str, Any]:
    """An entity of the pipeline, which cuts E- off a label that is a name: no other label here is of a type ORG."""
    return entity | {"entity_group": "E-ORG"} if entity.get("entity_group") == "ORG" else entity


def test_answer_of_other_families_equals_the_pipeline(family: str, tmp_path: Path) -> None:
    model = bertcli.load(cases.make_task(tmp_path, family, "qa"))
    questions, contexts = zip(*cases.FAMILY_QUESTIONS, strict=True)
    records = model.answer(questions, contexts, top_k=4, no_answer=True)
    for record, expected in zip(records, SAID[f"{family}.answer"], strict=True):
        same(record["answers"], expected)


def test_rank_of_other_families_equals_cross_encoder(family: str, tmp_path: Path) -> None:
    model = bertcli.load(cases.make_task(tmp_path, family, "classifier"))
    records = model.rank(cases.QUERY, cases.DOCUMENTS, truncation="silent")
    same([{key: record[key] for key in ("corpus_id", "score")} for record in records], SAID[f"{family}.rank"])


def test_tag_spells_the_letters_that_a_tokenizer_takes_apart(tmp_path: Path) -> None:
    model = bertcli.load(cases.make_task(tmp_path, "roberta", "token_classifier"))
    for aggregation in ("simple", "first", "max", "average"):
        (record,) = model.tag([cases.FAMILY_TEXTS[0]], aggregation=aggregation, ignore=())
        assert "".join(entity["word"] for entity in record["entities"]) == cases.FAMILY_TEXTS[0]

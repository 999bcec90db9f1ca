"""What attention heads do: equal to transformers' attentions, and to passes with a hook that silences a head."""

import base64
import json
import re
from pathlib import Path

import numpy as np
import pytest
from conftest import Made
from helpers.near import assert_near
from helpers.recorded import recorded
from helpers.static_models import write_static
from reference.view_cases import MASKED, MASKS, TEXTS

import bertcli
from bertcli.analysis.texts import tokens_of
from bertcli.errors import BertcliError
from bertcli.model import Model
from bertcli.wings.interpret.compute.heads import draw as heads_page

MEASURES = ("entropy", "distance", "special", "self", "next", "previous")
RECORDED = recorded("views.json")
GOLDEN = RECORDED["heads"]


def test_heads_are_the_attentions_of_transformers(labels: Model) -> None:
    found = bertcli.heads(labels, TEXTS, ablate=True, label="LABEL_0")
    most_first = sorted(GOLDEN, key=lambda one: -abs(one["change"]))
    assert [(row.layer, row.head) for row in found.heads] == [(1 + one["layer"], 1 + one["head"]) for one in most_first]
    for row, golden in zip(found.record["heads"], most_first, strict=True):
        assert list(row) == ["layer", "head", *MEASURES, "change"]
        for name in (*MEASURES, "change"):
            assert row[name] == pytest.approx(golden[name], abs=1e-5), name


def test_heads_without_ablation_have_no_change(labels: Model) -> None:
    found = bertcli.heads(labels, TEXTS)
    assert {row.change for row in found.heads} == {None}
    with pytest.raises(BertcliError, match="--ablate"):
        bertcli.heads(labels, TEXTS, label="LABEL_0")


def test_heads_changes_do_not_depend_on_the_batch(labels: Model) -> None:
    one, other = (bertcli.heads(labels, TEXTS[0], ablate=True, batch_tokens=tokens).heads for tokens in (1, 10_000))
    assert len(one) > 2
    assert [(row.layer, row.head) for row in one] == [(row.layer, row.head) for row in other]
    for row, same in zip(one, other, strict=True):
        assert row.change == pytest.approx(same.change, abs=1e-5)


def test_heads_are_those_that_change_most_or_stand_in_layers(labels: Model) -> None:
    found = bertcli.heads(labels, TEXTS, ablate=True)
    assert bertcli.heads(labels, TEXTS, ablate=True, top_k=2).heads == found.heads[:2]
    assert [(row.layer, row.head) for row in bertcli.heads(labels, TEXTS).heads] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    with pytest.raises(BertcliError, match="top_k is 0; it must be at least 1"):
        bertcli.heads(labels, TEXTS, top_k=0)


def test_heads_say_what_they_cannot_do(labels: Model, tmp_path: Path) -> None:
    write_static(tmp_path, "root")
    with pytest.raises(BertcliError, match="has no attention heads"):
        bertcli.heads(bertcli.load(tmp_path), "a")
    with pytest.raises(BertcliError, match="at least one"):
        bertcli.heads(labels, [])


def test_heads_pages_have_a_cell_for_each_head(labels: Model) -> None:
    for found in (
        bertcli.heads(labels, TEXTS),
        bertcli.heads(labels, TEXTS, ablate=True),
        bertcli.heads(labels, "a", top_k=1),
    ):
        text = heads_page(found)
        assert text.count("<mark") == text.count("<canvas") == len(found.heads)
        numbers = [head["distance"] if found.meaning is None else head["change"] for head in found.heads]
        shares = {f"{abs(number) / max(map(abs, numbers)):.3f}" for number in numbers}
        assert set(re.findall(r'--shade: ([0-9.]+)"', text)) == shares
        shown = [f"{number:.1f}" if found.meaning is None else f"{number:+z.3f}" for number in numbers]
        assert sorted(re.findall(r"<mark [^>]*>([^<]+)</mark>", text)) == sorted(shown)
        assert ("mean distance" in text) == (found.meaning is None)
        assert ("change of the result without the head" in text) == (found.meaning is not None)
        data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
        drawn = np.frombuffer(base64.b64decode(data["weights"]), np.uint8).reshape(found.weights.shape)
        assert found.weights.shape == (2, 2, len(data["tokens"]), len(data["tokens"]))
        assert_near(drawn / 255, found.weights, 1 / 510)
    assert "set to zero" in heads_page(bertcli.heads(labels, TEXTS, ablate=True))


def test_heads_rollout_is_the_product_of_transformers_attentions(labels: Model) -> None:
    found = bertcli.heads(labels, TEXTS[0], rollout=0)
    assert found.rollout is not None
    assert_near(found.record["rollout"], RECORDED["rollout"]["rollout"], 1e-6)
    assert_near(found.rollout.mean, RECORDED["rollout"]["mean"], 1e-6)
    assert_near(found.rollout.layers.sum(axis=1), 1, 1e-6)
    assert "rollout" not in bertcli.heads(labels, TEXTS[0]).record
    assert len(found.record["heads"]) == 4


def test_heads_rollout_shows_the_token_asked_about(masks: Model) -> None:
    place = tokens_of(masks, MASKED).ids.index(masks.tokenizer.mask_id)
    for shown in (0, 2, place):
        found = bertcli.heads(masks, MASKED, rollout=shown)
        assert found.rollout is not None
        assert found.rollout.token == shown
        lines = found.document().lines
        assert [line["rollout"] for line in lines] == found.record["rollout"][shown]
        mean = np.array([line["mean"] for line in lines], np.float32)
        assert np.array_equal(mean, found.rollout.mean[shown].astype(np.float32))
        assert f"What token {shown}, " in found.document().below[0]
        cells = [row[1] for row in found.document().rows]
        assert cells == [f"{share:.1%}" for share in found.record["rollout"][shown]]


def test_heads_rollout_says_what_it_cannot_do(labels: Model) -> None:
    with pytest.raises(BertcliError, match="one text"):
        bertcli.heads(labels, TEXTS, rollout=0)
    with pytest.raises(BertcliError, match="There is no token 99: the text has"):
        bertcli.heads(labels, "Paris", rollout=99)


def test_heads_page_has_the_rollout_as_a_picture(made: Made) -> None:
    long = "the king drank hot tea " * 40
    found = bertcli.heads(bertcli.load(made(**MASKS, sizes={"max_position_embeddings": 256})), long, rollout=0)
    assert found.rollout is not None
    page = heads_page(found)
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    drawn = np.frombuffer(base64.b64decode(data["weights"]), np.uint8).reshape(-1, 128, 128)
    assert len(drawn) == 4 + 2
    assert len(data["tokens"]) == 128 < len(found.pieces)
    np.testing.assert_array_equal(drawn[4], np.round(255 * found.rollout.layers[:128, :128]).astype(np.uint8))
    np.testing.assert_array_equal(drawn[5], np.round(255 * found.rollout.mean[:128, :128]).astype(np.uint8))
    assert 'title="Rollout"' in page
    assert page.count("<canvas>") == 6

"""What each layer would predict: equal to transformers' hidden states through its own head."""

import json
import re

import pytest
from conftest import Made
from helpers.recorded import recorded
from reference.view_cases import MASKED, MASKS

import bertcli
from bertcli.errors import BertcliError
from bertcli.model import Model
from bertcli.wings.interpret.compute.lens import MOST_TABLES
from bertcli.wings.interpret.compute.lens import draw as lens_page

GOLDEN = recorded("views.json")["lens"]


def test_lens_layers_are_those_of_transformers(masks: Model) -> None:
    found = bertcli.lens(masks, MASKED)
    (mask,) = found.masks
    assert [layer.layer for layer in mask.layers] == [0, 1, 2]
    for layer, golden in zip(mask.layers, GOLDEN, strict=True):
        assert [one.token for one in layer.predictions] == golden["best"]
        assert [one.score for one in layer.predictions] == pytest.approx(golden["scores"], abs=1e-5)
        assert layer.rank == golden["rank"]
        assert (layer.score, layer.kl) == pytest.approx((golden["score"], golden["kl"]), abs=1e-5)


def test_lens_all_tokens_are_looked_at_in_blocks(masks: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    found = bertcli.lens(masks, MASKED, all_tokens=True)
    tokens = masks.tokenizer.encode([MASKED])[0]
    assert [(one.position, one.token_str) for one in found.masks] == list(enumerate(tokens.pieces))
    monkeypatch.setattr("bertcli.wings.interpret.compute.lens.NUMBERS_TOGETHER", 1)
    again = bertcli.lens(masks, MASKED, all_tokens=True)
    for one, other in zip(found.masks, again.masks, strict=True):
        for layer, same in zip(one.layers, other.layers, strict=True):
            assert layer.rank == same.rank
            assert layer.kl == pytest.approx(same.kl, abs=1e-5)


def test_lens_says_that_the_masks_were_cut_off(masks: Model) -> None:
    cut = r"Every \[MASK\] of 'tea \[MASK\]' was cut off: the model reads 3 tokens of it \(see --max-length\)"
    with pytest.raises(BertcliError, match=cut):
        bertcli.lens(masks, "tea [MASK]", max_length=3)
    with pytest.raises(BertcliError, match=r"There is no \[MASK\] in 'tea tea': write one"):
        bertcli.lens(masks, "tea tea", max_length=3)


def test_lens_records(masks: Model) -> None:
    record = bertcli.lens(masks, [MASKED, "[MASK]"])[1].record
    assert list(record) == ["index", "text", "masks"]
    assert record["index"] == 1
    assert list(record["masks"][0]) == ["position", "layers"]
    assert list(record["masks"][0]["layers"][0]) == ["layer", "predictions", "rank", "score", "kl"]
    assert list(record["masks"][0]["layers"][0]["predictions"][0]) == ["token", "token_str", "score"]
    json.dumps(record, allow_nan=False)


def test_lens_says_what_it_cannot_do(labels: Model, masks: Model) -> None:
    with pytest.raises(BertcliError, match=r"lens needs a masked-language-model head .* its heads: pooler, classifier"):
        bertcli.lens(labels, MASKED)
    with pytest.raises(BertcliError, match=r"no \[MASK\] in 'Paris'.*--all"):
        bertcli.lens(masks, "Paris")
    with pytest.raises(BertcliError, match="top_k"):
        bertcli.lens(masks, MASKED, top_k=0)


def test_lens_pages_show_tables_or_a_grid(made: Made) -> None:
    model = bertcli.load(made(**MASKS))
    masks, tokens = bertcli.lens(model, MASKED), bertcli.lens(model, MASKED, all_tokens=True)
    assert len(tokens.masks) > MOST_TABLES
    text = lens_page([masks])
    assert text.count("<table") == 1
    assert text.count("<mark") == 3 * 3
    assert "rank and score are" in text
    text = lens_page([tokens])
    assert text.count("<mark") == 3 * len(tokens.masks)
    assert "rank and score are" not in text
    # More tokens than layers: tokens go down.
    names = [f"{one.position} {one.token_str}" for one in tokens.masks]
    assert re.findall(r'scope="row">(?:<wbr>)?([^<]+)<', text) == names
    assert re.findall(r'scope="col">([^<]+)<', text) == ["Token", "embeddings", "layer 1", "layer 2"]
    assert "<script" not in text

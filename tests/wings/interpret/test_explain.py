"""What words contribute: equal to passes of transformers run one by one."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.checkpoints import Sentence
from helpers.near import assert_near
from helpers.recorded import recorded
from reference.view_cases import MASKED, OTHER, PAIR, TEXTS

import bertcli
from bertcli.errors import BertcliError
from bertcli.model import Model
from bertcli.wings.interpret.compute.explain import Explanation
from bertcli.wings.interpret.compute.explain import draw as explain_page

GOLDEN = recorded("views.json")
NEAR = 1e-5


def near(found: Explanation, golden: dict[str, Any], by: str) -> None:
    """The same words with the same contributions to the same value."""
    assert found.value == pytest.approx(golden["value"], abs=NEAR)
    places = [(word.side, word.start, word.end) for word in found.words]
    assert places == [(word["side"], word["start"], word["end"]) for word in golden["words"]]
    assert_near([word.contribution for word in found.words], [word[by] for word in golden["words"]], NEAR)


@pytest.mark.parametrize("by", ["mask", "delete"])
def test_explain_labels_are_passes_of_transformers(by: Any, labels: Model) -> None:
    for label, name in enumerate(labels.config.labels):
        found = bertcli.explain(labels, TEXTS, label=name, method=by)
        for one, golden in zip(found, GOLDEN["labels"], strict=True):
            near(one, golden[label], by)
            assert one.target == name
    (one,) = bertcli.explain(labels, *([text] for text in PAIR), label="LABEL_1", method=by)
    near(one, GOLDEN["pair"], by)


@pytest.mark.parametrize("by", ["mask", "delete"])
def test_explain_words_and_cosines_are_passes_of_transformers(by: Any, masks: Model, vectors: Model) -> None:
    near(bertcli.explain(masks, MASKED, word="poured", method=by), GOLDEN["word"], by)
    near(bertcli.explain(vectors, TEXTS[0], contrast=OTHER, method=by), GOLDEN["cosine"], by)


def test_explain_takes_what_the_model_predicts_where_nothing_is_asked(labels: Model, masks: Model) -> None:
    for one, record in zip(bertcli.explain(labels, TEXTS), labels.classify(TEXTS), strict=True):
        best = record["labels"][0]
        assert one.target == best["label"]
        assert one.value == pytest.approx(np.log(best["score"] / (1 - best["score"])), abs=1e-5)
    one = bertcli.explain(masks, MASKED)
    best = masks.fill_mask([MASKED])[0]["masks"][0]["predictions"][0]
    assert one.target == best["token_str"]
    assert one.value == pytest.approx(np.log(best["score"]), abs=1e-5)


def test_explain_a_regression_and_a_single_label_by_their_own_output(made: Made) -> None:
    for problem, value in (("regression", None), (None, "LABEL_0")):
        model = bertcli.load(made(head="classifier", num_labels=1, seed=5, config={"problem_type": problem}))
        one = bertcli.explain(model, "The cat sat.")
        (record,) = model.classify(["The cat sat."], activation="none")
        assert one.value == pytest.approx(record["labels"][0]["score"], abs=1e-6)
        assert ("log-odds" in one.meaning) == (value is not None)


def test_explain_is_the_same_whatever_the_batch(labels: Model) -> None:
    expected, *others = (bertcli.explain(labels, TEXTS[0], batch_tokens=tokens).words for tokens in (None, 1, 40))
    for found in others:
        assert_near([word.contribution for word in found], [word.contribution for word in expected], 2e-5)


def test_explain_words_are_the_texts_own_characters(labels: Model) -> None:
    for one in bertcli.explain(labels, [*TEXTS, "中国 naïve  İ’s [SEP] end [MASK]"]):
        assert all(one.text[word.start : word.end] == word.word for word in one.words)
        assert [word.start for word in one.words] == sorted(word.start for word in one.words)
        assert not {"[SEP]", "[MASK]", "SEP", "MASK"} & {word.word for word in one.words}


def test_explain_leaves_a_prompt_out_but_reads_it(made: Made, tmp_path: Path) -> None:
    folder = shutil.copytree(made(sentence=Sentence()), tmp_path / "prompted")
    cosine = bertcli.load(folder).encode(["query: " + OTHER, "query: Paris is red"], normalize=True)
    (folder / "config_sentence_transformers.json").write_text(
        '{"prompts": {"query": "query: "}, "default_prompt_name": "query"}'
    )
    model = bertcli.load(folder)
    found = bertcli.explain(model, "Paris is red", contrast=OTHER)
    assert found.value == pytest.approx(float(cosine[0] @ cosine[1]), abs=1e-5)
    words = [("Paris", 0), ("is", 6), ("red", 9)]
    assert [(word.word, word.start) for word in found.words] == words
    paired = bertcli.explain(model, "Paris is red", "Paris is red", contrast=OTHER)
    assert [(word.word, word.start) for word in paired.words] == words * 2
    assert [word.side for word in paired.words] == [0] * 3 + [1] * 3


def test_explain_says_what_it_cannot_do(labels: Model, masks: Model) -> None:
    cases: tuple[tuple[Model, str, dict[str, Any], str], ...] = (
        (labels, "x", {"label": "none"}, "no label 'none'"),
        (labels, "x [MASK]", {"word": "tea"}, "needs a masked-language-model head"),
        (masks, "x", {}, "needs a classifier head"),
        (masks, "x", {"word": "tea"}, r"has 0 \[MASK\]"),
        (masks, "[MASK] [MASK]", {}, r"has 2 \[MASK\]"),
        (masks, "[MASK]", {"word": "unbelievably"}, "not one piece"),
        (masks, "x", {"word": "tea", "contrast": "y"}, "one result"),
        (labels, "x", {"method": "magic"}, "no method 'magic'; choose from mask, delete"),
    )
    for model, text, options, message in cases:
        with pytest.raises(BertcliError, match=message):
            bertcli.explain(model, text, **options)
    with pytest.raises(BertcliError, match="not a model"):
        bertcli.explain("base", "x")  # type: ignore[call-overload]


def test_explain_records_and_shares(labels: Model) -> None:
    one = bertcli.explain(labels, TEXTS[0])
    assert list(one.record) == ["index", "text", "target", "value", "words"]
    assert list(one.record["words"][0]) == ["word", "start", "end", "contribution"]
    assert sum(map(abs, one.shares)) == pytest.approx(1)
    assert max(map(abs, one.shades)) == 1
    pair = bertcli.explain(labels, [PAIR[0]], PAIR[1])[0]
    assert pair.record["text_pair"] == PAIR[1]
    assert {word["side"] for word in pair.record["words"]} == {0, 1}


def test_explain_pages_hold_the_text_and_every_number(labels: Model) -> None:
    found = bertcli.explain(labels, ["<b>cat</b> &amp; </script>dog", PAIR[0]], [None, PAIR[1]])
    text = explain_page(found, "M<b>")
    assert '<p class="about">M&lt;b&gt;' in text
    assert "<b>" not in text
    assert "<script" not in text
    assert text.count("<mark") == sum(2 + len(one.words) for one in found)  # and what either color means
    for one in found:
        scores = {said["label"]: said["score"] for said in labels.classify([one.text], [one.text_pair])[0]["labels"]}
        assert one.probability == pytest.approx(scores[one.target], abs=1e-6)
        assert f"a probability of {one.probability:.1%}</p>" in text
        assert f">for {one.target}</mark>" in text
        for word in one.words:
            assert f'title="{word.contribution:+z.4f}"' in text


def test_explain_a_text_without_words(labels: Model) -> None:
    one = bertcli.explain(labels, "")
    assert one.words == ()
    assert one.shares == []

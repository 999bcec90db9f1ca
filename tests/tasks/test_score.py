"""score: log-probabilities of each token, and of masks with a known truth."""

import math

import pytest
from helpers.forward import log_probabilities
from helpers.near import assert_near
from helpers.terminal import bertcli

from bertcli.errors import BertcliError
from bertcli.model import Model


def test_score_leaves_special_tokens_out(mlm: Model) -> None:
    (record,) = mlm.score(["The cat sat [SEP] un"])
    assert [token["token"] for token in record["tokens"]] == ["the", "cat", "sat", "un"]


def test_score_warns_once_of_another_models_mask() -> None:
    result = bertcli("score", "hot <mask>.", "cold <mask>.", "--format", "jsonl")
    assert result.status == 0
    assert result.err.count("<mask> is read as text: the mask token of bert-mini-mlm is [MASK].") == 1
    assert "read as text" not in bertcli("score", "hot [MASK].").err


def test_score_loss_at_the_masks(mlm: Model) -> None:
    """L = -1/|M| Σ log ŷ_i[y_i], all masks in one pass."""
    (record,) = mlm.score(["The [MASK] sat on the [MASK]."], target="The cat sat on the mat.")
    (tokens,), (truth,) = (mlm.tokenizer.encode([text]) for text in ("The [MASK] sat on the [MASK].", record["text"]))
    ids = [mlm.tokenizer.id_of(word) for word in ("cat", "mat")]
    values = log_probabilities(mlm, tokens.ids)[[2, 6], ids]  # type: ignore[index]
    assert truth.ids == tokens.ids
    assert [token["token"] for token in record["tokens"]] == ["cat", "mat"]
    assert_near([token["log_prob"] for token in record["tokens"]], values, 1e-5)
    assert record["loss"] == pytest.approx(-values.mean(), abs=1e-5)


@pytest.mark.parametrize("target", ["The dog", "The cat sat down", "A cat sat", "The unbelievable sat"])
def test_score_target_has_to_match_token_by_token(target: str, mlm: Model) -> None:
    with pytest.raises(BertcliError, match="does not match text 0"):
        mlm.score(["The [MASK] sat"], target=target)


def test_score_target_prints_the_sum_over_the_masks(mlm: Model) -> None:
    """The sum is the training loss; a pseudo-perplexity it is not, since not every token was masked."""
    text, target = "The cat [MASK] on the [MASK]", "The cat sat on the mat"
    (record,) = mlm.score([text], target=target)
    log_probs = [token["log_prob"] for token in record["tokens"]]
    assert len(log_probs) == 2
    assert record["loss_sum"] == pytest.approx(-sum(log_probs))
    assert record["loss"] == pytest.approx(-sum(log_probs) / 2)
    assert record["perplexity"] == pytest.approx(math.exp(record["loss"]))
    assert "pseudo_perplexity" not in record
    shown = bertcli("score", "-m", str(mlm.path), text, "--target", target).out
    assert "loss sum   perplexity" in shown
    assert f"{record['loss_sum']:.4f}" in shown.splitlines()[-1]
    assert "pseudo" not in shown
    assert "pseudo-perplexity" in bertcli("score", "-m", str(mlm.path), "The cat").out


def test_score_of_a_text_with_a_mask_has_no_pseudo_perplexity(mlm: Model) -> None:
    """No word is named at the mask, so not every token is predicted; the loss is that of the others."""
    whole, masked = mlm.score(["The cat sat", "The cat [MASK]"])
    assert whole["pseudo_perplexity"] == pytest.approx(math.exp(whole["loss"]))
    assert [token["token"] for token in masked["tokens"]] == ["the", "cat"]
    assert masked["loss"] == pytest.approx(-sum(token["log_prob"] for token in masked["tokens"]) / 2)
    assert masked["pseudo_perplexity"] is None
    done = bertcli("score", "-m", str(mlm.path), "The cat [MASK]")
    assert "left out of the loss, and the text has no pseudo-perplexity" in done.err
    assert done.out.splitlines()[-1].split() == ["(all)", f"{masked['loss']:.4f}"]
    (in_pair,) = mlm.score(["The cat"], "sat on the [MASK]")
    assert in_pair["pseudo_perplexity"] is None
    two = bertcli("score", "-m", str(mlm.path), "The cat [MASK]", "The [MASK] sat")
    assert two.err.count("left out of the loss") == 1


def test_score_needs_a_true_word_for_each_mask(mlm: Model) -> None:
    with pytest.raises(BertcliError, match=r"There is a \[MASK\] in the target or in the second text of text 0"):
        mlm.score(["The [MASK] sat"], "a [MASK]", target="The cat sat")
    with pytest.raises(BertcliError, match=r"There is a \[MASK\] in the target"):
        mlm.score(["The [MASK] [MASK]"], target="The cat [MASK]")


def test_score_target_needs_masks_within_the_limit(mlm: Model) -> None:
    with pytest.raises(BertcliError, match=r"no \[MASK\] in text 0"):
        mlm.score(["The cat"], target="The cat")
    with pytest.raises(BertcliError, match="beyond the cut"):
        mlm.score(["a b c [MASK]"], target="a b c d", max_length=4)
    (record,) = mlm.score(["a [MASK] c d"], target="a b c d", max_length=5)
    assert (record["truncated"], len(record["tokens"])) == (True, 1)

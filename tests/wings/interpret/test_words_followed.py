"""lens --word, patch --foil, and patch on texts of other lengths."""

import math

import pytest
from helpers.terminal import bertcli, wrong_usage

import bertcli as library
from bertcli.errors import BertcliError

CLEAN, CORRUPTED = "A cup of hot [MASK].", "A cup of cold [MASK]."


def test_lens_follows_a_word() -> None:
    result = bertcli("lens", CLEAN, "--word", "water", "--format", "json")
    (record,) = result.json
    assert record["word"] == "water"
    (mask,) = record["masks"]
    filled = library.load("bert-mini-mlm").fill_mask(CLEAN, targets=["water"])
    last = mask["layers"][-1]
    assert last["score"] == pytest.approx(filled["masks"][0]["predictions"][0]["score"], abs=1e-6)
    by_rank = bertcli("lens", CLEAN, "--top-k", str(last["rank"]), "--format", "json").json
    assert by_rank[0]["masks"][0]["layers"][-1]["predictions"][-1]["token_str"] == "water"
    assert "Rank and score are those of 'water'" in bertcli("lens", CLEAN, "--word", "water").out
    assert "is not one piece of the vocabulary" in bertcli("lens", CLEAN, "--word", "qqqzzz").err


def test_patch_measures_the_logit_difference() -> None:
    arguments = ("patch", CLEAN, CORRUPTED, "--word", "tea", "--foil", "water")
    record = bertcli(*arguments, "--format", "json").json
    assert record["target"] == "tea - water"
    for text, value in ((CLEAN, record["value_a"]), (CORRUPTED, record["value_b"])):
        shares = []
        for word in ("tea", "water"):
            filled = library.load("bert-mini-mlm").fill_mask(text, targets=[word])
            shares.append(filled["masks"][0]["predictions"][0]["score"])
        assert value == pytest.approx(math.log(shares[0] / shares[1]), abs=1e-4)
    # The last layer's state at the mask carries all of it.
    assert record["effects"]["layers"][-1][5] == pytest.approx(1, abs=1e-4)
    with pytest.raises(BertcliError, match="needs the word that it is compared with"):
        library.patch(library.load("bert-mini-mlm"), CLEAN, CORRUPTED, foil="tea")


def test_patch_says_that_texts_have_other_lengths() -> None:
    line = "A has 8 tokens and B 9: positions are those of B; 3 tokens of A stood at another one"
    out = bertcli("patch", CLEAN, "A cup of very cold [MASK].", "--word", "tea").out
    assert line in " ".join(out.split())
    assert "positions are those of B" not in bertcli("patch", CLEAN, CORRUPTED, "--word", "tea").out


def test_a_template_is_bounded() -> None:
    words = ("classify", "a", "-m", "bert-mini-sentiment", "--candidates", "b,c", "--template", "z" * 2000 + "{}")
    wrong_usage(*words, why="The template has 2,002 characters")

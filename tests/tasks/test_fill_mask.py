"""fill-mask: predictions, targets of several pieces, fillings of all masks together."""

import itertools
import math
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import Made
from helpers.checkpoints import make
from helpers.family_checkpoints import make_family
from helpers.forward import log_probabilities
from helpers.json_files import read_json, write_json
from helpers.tokenizer_kinds import write_kind
from helpers.vocabulary import pieces

import bertcli
from bertcli.errors import BertcliError
from bertcli.model import Model


@pytest.mark.parametrize(
    ("text", "pair", "expected"),
    [
        ("A  [MASK]\tX\u2028y [MASK] Ü.", None, ["A  tea\tX\u2028y [MASK] Ü.", "A  [MASK]\tX\u2028y tea Ü."]),
        ("[MASK]", None, ["tea"]),
        ("😀 é[MASK]é", None, ["😀 éteaé"]),
        ("no mask", "Here [MASK]!", ["Here tea!"]),
        ("[MASK] a", "b [MASK]", ["tea a", "b tea"]),
    ],
)
def test_fill_mask_replaces_only_the_mask(text: str, pair: str | None, expected: list[str], mlm: Model) -> None:
    (record,) = mlm.fill_mask([text], pairs=[pair], targets=["tea"])
    assert [mask["predictions"][0]["sequence"] for mask in record["masks"]] == expected


def test_fill_mask_joins_a_continuation_to_a_letter_only(mlm: Model) -> None:
    (record,) = mlm.fill_mask(["play[MASK] is [MASK]"], targets=["##ing"])
    assert [mask["predictions"][0]["sequence"] for mask in record["masks"]] == [
        "playing is [MASK]",
        "play[MASK] is ##ing",
    ]
    assert record["masks"][0]["predictions"][0]["token_str"] == "##ing"


def test_fill_mask_targets_keep_their_share_of_the_vocabulary(mlm: Model) -> None:
    text = "She poured a cup of hot [MASK]."
    everything = {
        one["token_str"]: one["score"] for one in mlm.fill_mask([text], top_k=10_000)[0]["masks"][0]["predictions"]
    }
    (record,) = mlm.fill_mask([text], targets=["Tea", "coffee", "tea", "milk", "water", "bread", "cat"])
    found = {one["token_str"]: one["score"] for one in record["masks"][0]["predictions"]}
    assert found == pytest.approx({word: everything[word] for word in found})
    assert set(found) == {"tea", "coffee", "milk", "water", "bread", "cat"}
    assert list(found.values()) == sorted(found.values(), reverse=True)
    (best,) = mlm.fill_mask([text], targets=["tea", "coffee", "cat"], top_k=2)
    assert len(best["masks"][0]["predictions"]) == 2


def test_fill_mask_chains_a_target_of_several_pieces(mlm: Model) -> None:
    """p(un | _ _ _) · p(##believ | un _ _) · p(##able | un ##believ _), each mask of the text by itself."""
    text = "An [MASK] cat and [MASK]"
    (record,) = mlm.fill_mask([text], targets=["unbelievable", "tea"])
    tokenizer = mlm.tokenizer
    (tokens,) = tokenizer.encode([text])
    target = [tokenizer.id_of(piece) for piece in ("un", "##believ", "##able")]
    for mask in record["masks"]:
        at = mask["position"]
        total: Any = 0.0
        for filled in range(3):
            slots = [*target[:filled], *[tokenizer.mask_id] * (3 - filled)]
            ids = [*tokens.ids[:at], *slots, *tokens.ids[at + 1 :]]
            total += log_probabilities(mlm, ids)[at + filled, target[filled]]  # type: ignore[arg-type]
        (found,) = [one for one in mask["predictions"] if one["token_str"] == "unbelievable"]
        assert math.log(found["score"]) == pytest.approx(total, abs=1e-5)
        assert found["pieces"] == ["un", "##believ", "##able"]
        assert found["token"] == target
    assert record["masks"][1]["predictions"][-1]["sequence"].startswith("An [MASK] cat and ")
    assert "pieces" not in next(one for one in record["masks"][0]["predictions"] if one["token_str"] == "tea")


def test_fill_mask_keeps_the_words_of_a_target_apart(mlm: Model) -> None:
    (record,) = mlm.fill_mask(["a [MASK]."], targets=[" The  king's CAT", "unbelievable tea", "##able"])
    found = {one["token_str"]: one["sequence"] for one in record["masks"][0]["predictions"]}
    sequences = {
        "the king's cat": "a the king's cat.",
        "unbelievable tea": "a unbelievable tea.",
        "##able": "a ##able.",
    }
    assert found == sequences


def test_fill_mask_gives_back_the_spaces_that_an_added_token_takes(tmp_path: Path) -> None:
    folder = make(tmp_path / "model", head="mlm", tokenizer="json")
    settings = read_json(folder / "tokenizer.json")
    king = {"id": settings["model"]["vocab"]["king"], "content": "king", "lstrip": True, "rstrip": True}
    settings["added_tokens"].append({**king, "single_word": False, "normalized": False, "special": False})
    write_json(folder / "tokenizer.json", settings)
    (record,) = bertcli.load(folder).fill_mask(["a [MASK]."], targets=["tea king cat"])
    assert [one["token_str"] for one in record["masks"][0]["predictions"]] == ["tea king cat"]


@pytest.mark.parametrize("target", ["☃☃☃", "[UNK]", ""])
def test_fill_mask_refuses_a_target_the_vocabulary_cannot_spell(target: str, mlm: Model) -> None:
    with pytest.raises(BertcliError, match="unknown to the vocabulary"):
        mlm.fill_mask(["[MASK]"], targets=["tea", target])
    with pytest.raises(BertcliError, match="no targets"):
        mlm.fill_mask(["[MASK]"], targets=[])


def test_fill_mask_joint_fillings_against_every_combination(mlm: Model) -> None:
    text, words = "The [MASK] drank [MASK].", ["tea", "cat", "king", "unbelievable"]
    (record,) = mlm.fill_mask([text], targets=words, joint=True, top_k=16)
    expected = {}
    for first, second in itertools.product(words, repeat=2):
        half = mlm.fill_mask([text], targets=[first])[0]["masks"][0]["predictions"][0]
        rest = mlm.fill_mask([half["sequence"]], targets=[second])[0]["masks"][0]["predictions"][0]
        expected[rest["sequence"]] = half["score"] * rest["score"]
    one, two = (mask["predictions"] for mask in record["masks"])
    assert [a["sequence"] for a in one] == [b["sequence"] for b in two]
    assert [a["score"] for a in one] == [b["score"] for b in two]
    found = {a["sequence"]: a["score"] for a in one}
    assert found == pytest.approx(expected, rel=1e-4)
    assert list(found.values()) == sorted(found.values(), reverse=True)


SMALL_WORDS = [piece for piece in pieces() if re.fullmatch("[a-z]{2,}", piece)][:40]


def beam_by_hand(model: Model, text: str, width: int) -> list[tuple[float, str]]:
    """The `width` best fillings after each mask, from the left: scores and texts, best first."""
    beam = [(1.0, text)]
    for _ in range(text.count("[MASK]")):
        grown = []
        for score, begun in beam:
            (record,) = model.fill_mask([begun], targets=SMALL_WORDS, top_k=width)
            grown += [(score * word["score"], word["sequence"]) for word in record["masks"][0]["predictions"]]
        beam = sorted(grown, key=lambda filling: -filling[0])[:width]
    return beam


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("[MASK] mat [MASK] tea", 4, "at mat your tea"),  # misses the best filling, whose first word is unlikely
        ("[MASK] mat [MASK] tea", 40, "your mat your tea"),  # has room for all
        ("on [MASK] [MASK] sat [MASK]", 4, "on from your sat has"),  # of 16 beginnings four are kept
    ],
)
def test_fill_mask_joint_fillings_are_those_of_a_beam(
    text: str, width: int, expected: str, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = bertcli.load(made(head="mlm", seed=5))
    monkeypatch.setattr("bertcli.tasks.parts.joint.BEAM", width)
    (record,) = model.fill_mask([text], targets=SMALL_WORDS, joint=True, top_k=1)
    ((score, sequence), *_) = beam_by_hand(model, text, width)
    (best,) = record["masks"][0]["predictions"]
    assert (best["sequence"], best["score"]) == (sequence, pytest.approx(score, rel=1e-4))
    assert sequence == expected


def test_fill_mask_joint_with_one_mask(mlm: Model) -> None:
    (alone,), (joint,) = (mlm.fill_mask(["a [MASK]"], joint=joint) for joint in (False, True))
    assert alone == joint


def test_fill_mask_needs_masks_before_the_cut(mlm: Model) -> None:
    with pytest.raises(BertcliError, match=r"1 \[MASK\] of text 0 .* beyond the cut"):
        mlm.fill_mask(["a [MASK] b [MASK]"], max_length=5)


@pytest.mark.parametrize(("joint", "fits", "too_long"), [(False, 42, 43), (True, 40, 41)])
def test_fill_mask_refuses_targets_that_do_not_fit(mlm: Model, joint: bool, fits: int, too_long: int) -> None:
    """Of 48 positions two are [CLS] and [SEP], two the masks; "unbelievable" takes two more in one, four in both."""
    assert len(mlm.tokenizer.pieces_of("unbelievable")) == 3
    texts = ["a " * count + "[MASK] [MASK]" for count in (fits, too_long, 1)]
    how: dict[str, Any] = {"targets": ["tea", "unbelievable"], "joint": joint}
    with pytest.raises(
        BertcliError, match=r"A target of 3 pieces makes text 1 .* longer than this model's 48 positions"
    ):
        mlm.fill_mask(texts, **how)
    one, two, three = mlm.fill_mask(texts, **how, keep_going=True)
    assert "longer than this model's 48 positions" in two["error"]
    for record, text in ((one, texts[0]), (three, texts[2])):
        (first, _) = record["masks"]
        assert len({found["sequence"] for found in first["predictions"]}) == 2, text


# ----------------------------------------------------------------------- pieces that carry the space before them


@pytest.mark.parametrize("kind", ["roberta", "xlm-roberta", "camembert", "modernbert"])
def test_fill_mask_puts_words_in_with_their_space(tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    size = write_kind(tmp_path, kind)
    model = bertcli.load(make_family(tmp_path, kind, "mlm", sizes={"V": size}))
    mask = model.tokenizer.mask_token
    texts = [f"The {mask} was hot", f"{mask} was hot", f"The hot{mask}!", f"The\n{mask} was {mask}"]
    if mask == "<mask>":
        with pytest.raises(
            BertcliError, match=rf"text 0 \('Hot \[MASK\]'\) has \[MASK\], .* is {mask}: write {mask}\."
        ):
            model.fill_mask("Hot [MASK]")
    with caplog.at_level("INFO", "bertcli"):
        found = model.fill_mask(texts, targets="tea, unbelievable,")
    assert "Targets are words with the space before them, such as ' tea'." in caplog.text
    for which, expected in enumerate(["The {} was hot", "{} was hot", "The hot {}!", f"The\n{{}} was {mask}"]):
        predictions = {p["token_str"].strip(): p for p in found[which]["masks"][0]["predictions"]}
        assert {word: p["sequence"] for word, p in predictions.items()} == {
            word: expected.format(word) for word in ("tea", "unbelievable")
        }
        assert predictions["tea"]["token_str"] == (" tea" if kind in ("roberta", "modernbert") else "tea")
        assert [model.tokenizer.piece(predictions["tea"]["token"])] in (["Ġtea"], ["▁tea"])

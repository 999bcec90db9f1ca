"""evaluate of taggers whose labels have no B- and I-: spans of equal labels, and accuracy by word."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers.known_taggers import word_piece_tagger
from helpers.terminal import bertcli
from wings.evaluate.test_tasks import judged, values

TAGGED = "anna B-PER\nsmith I-PER\nlives O\nin O\nparis B-LOC\n\nanna B-PER\nlives O\n"
PLAIN = TAGGED.replace("B-", "").replace("I-", "")
WORDS = ("anna", "smith", "lives", "in", "paris")


def tagger(folder: Path, labels: Sequence[str], of_words: Sequence[int]) -> Path:
    return word_piece_tagger(folder, WORDS, dict(zip(WORDS, of_words, strict=True)), labels)


def figures(file: Path, model: Path, *more: str) -> dict[str, Any]:
    return values(judged(file, "-m", model, *more))


def written(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_plain_labels_are_spans_on_either_side(tmp_path: Path) -> None:
    plain = tagger(tmp_path / "plain", ("O", "PER", "LOC"), (1, 1, 0, 0, 2))
    typed = tagger(tmp_path / "typed", ("O", "B-PER", "I-PER", "B-LOC"), (1, 2, 0, 0, 3))
    wrong = tagger(tmp_path / "wrong", ("O", "PER", "LOC"), (1, 2, 0, 0, 2))
    for text in (TAGGED, PLAIN):
        file = written(tmp_path, "data.conll", text)
        for model in (plain, typed):
            right = figures(file, model)
            names = ("f1", "precision", "recall", "macro_f1", "covered", "accuracy", "f1:LOC", "f1:PER")
            assert right == dict.fromkeys(names, 1)
        half = figures(file, wrong)
        # Found: anna, smith, paris, anna; right: paris, and the second anna.
        assert (half["precision"], half["recall"]) == (0.5, pytest.approx(2 / 3))
        assert half["accuracy"] == pytest.approx(6 / 7)
    rows = [{"tokens": [*WORDS], "tags": ["PER", "PER", "O", "O", "LOC"]}]
    file = written(tmp_path, "data.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert figures(file, plain)["f1"] == 1


def test_names_of_labels_are_data(tmp_path: Path) -> None:
    """Parts of speech, names that look like tags, and types that are called O or nothing."""
    pos = tagger(tmp_path / "pos", ("PROPN", "VERB", "ADP", "E-mail"), (0, 3, 1, 2, 0))
    text = "anna PROPN\nsmith E-mail\nlives VERB\nin ADP\nparis PROPN\n"
    of_pos = figures(written(tmp_path, "pos.conll", text), pos)
    assert {of_pos[f"f1:{name}"] for name in ("PROPN", "VERB", "ADP", "E-mail")} == {1.0}
    assert of_pos["accuracy"] == 1
    (record,) = bertcli("tag", "-m", pos, "--format", "jsonl", "smith").records
    assert record["entities"][0]["entity_group"] == "E-mail"

    untyped = tagger(tmp_path / "untyped", ("O", "B", "I"), (1, 2, 0, 0, 1))
    text = "anna B\nsmith I\nlives O\nin O\nparis B\n"
    assert figures(written(tmp_path, "untyped.conll", text), untyped)["f1:entity"] == 1

    called_o = tagger(tmp_path / "o", ("O", "B-O", "I-O", "B-LOC"), (1, 2, 0, 0, 3))
    text = "anna B-O\nsmith I-O\nlives O\nin O\nparis B-LOC\n"
    assert figures(written(tmp_path, "o.conll", text), called_o)["f1:O"] == 1

    roles = tagger(tmp_path / "roles", ("O", "B-ARGM-LOC", "B-X-LOC"), (1, 0, 0, 0, 2))
    text = "anna B-ARGM-LOC\nsmith O\nlives O\nin O\nparis B-X-LOC\n"
    of_roles = figures(written(tmp_path, "roles.conll", text), roles)
    assert (of_roles["f1:ARGM-LOC"], of_roles["f1:X-LOC"]) == (1, 1)
    redacted = bertcli("tag", "-m", roles, "--redact", "--only", "ARGM-LOC", "anna in paris").out
    assert redacted == "[ARGM-LOC] in paris\n"


def test_a_plain_tag_among_others_is_refused_by_its_line(tmp_path: Path) -> None:
    model = tagger(tmp_path / "typed", ("O", "B-PER", "I-PER", "B-LOC"), (1, 2, 0, 0, 3))
    file = written(tmp_path, "data.conll", TAGGED.replace("paris B-LOC", "paris LOC"))
    result = bertcli("evaluate", file, "-m", model)
    assert result.status == 1
    assert "the tag 'LOC' is neither O nor like B-PER" in " ".join(result.err.split())
    plain = written(tmp_path, "plain.conll", PLAIN.replace("PER", "MISC").replace("lives O", "lives ACT"))
    assert "the type 'MISC' is not one of this model's: LOC, PER" in " ".join(
        bertcli("evaluate", plain, "-m", model).err.split()
    )
    renamed = figures(plain, model, "--rename-label", "MISC=PER,ACT=O")
    assert renamed["f1"] == 1

"""tag on words: what belongs to a word, where it is in the text, and that redaction hides all of it."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers.known_taggers import byte_tagger, word_piece_tagger
from helpers.served import serving
from helpers.terminal import bertcli as command
from helpers.terminal import wrong_usage
from helpers.tokenizer_kinds import write_kind
from tokenizers import pre_tokenizers as split

import bertcli
from bertcli.errors import BertcliError
from bertcli.tasks.parts import redact

AGGREGATIONS: tuple[Any, ...] = ("none", "simple", "first", "max", "average")
NOVARA = ("we", "met", "in", "no", "##vara", "##1", "today", "-", "x", ".", ",", "(", ")")


def spans(record: Any) -> list[tuple[str, int, int]]:
    return [(one["entity_group"], one["start"], one["end"]) for one in record["entities"]]


@pytest.fixture(scope="module")
def novara(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It takes only the first piece of "novara" for a place."""
    return word_piece_tagger(tmp_path_factory.mktemp("novara"), NOVARA, {"no": 1})


def test_redact_hides_whole_words(novara: Path) -> None:
    texts = ("we met in novara today", "No\u0301vara, (no) x-no no.", "NOVARA")
    expected = ["we met in [LOC] today", "[LOC], ([LOC]) [LOC] [LOC].", "[LOC]"]
    for aggregation in AGGREGATIONS:
        arguments = ("tag", "-m", novara, "--redact", "--aggregation", aggregation)
        assert command(*arguments, *texts).out.splitlines() == expected
    entity = bertcli.load(novara).tag(texts[0], redact=True, keep_text=True)["entities"][0]
    assert (entity["word"], entity["start"], entity["end"]) == ("no", 10, 12)
    with serving([bertcli.load(novara)]) as running:
        parameters = {"redact": True, "redact_with": "***"}
        given = running.given("/tag", {"inputs": texts[0], "parameters": parameters})
        assert given["redacted"] == "we met in *** today"
        refused = running.ask("/tag", {"inputs": texts[0], "parameters": {**parameters, "redact_with": "z" * 201}})
        assert refused.status == 422


def test_redact_leaves_nothing_of_an_entity_that_two_windows_see(novara: Path) -> None:
    record = bertcli.load(novara).tag("no no no no no", max_length=5, stride=1, aggregation="first", redact=True)
    assert record["redacted"] == "[LOC] [LOC] [LOC] [LOC] [LOC]"


def test_redact_bounds_what_stands_for_an_entity(novara: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    why = "has 100,000 characters, which each entity would get: give at most 200."
    wrong_usage("tag", "-m", novara, "--redact", "--redact-with", "z" * 100_000, "no", why=why)
    assert redact.LONGEST_RESULT == 20_000_000
    monkeypatch.setattr(redact, "LONGEST_RESULT", 100_000)
    with pytest.raises(BertcliError, match=r"has 1,000 entities, and the text that replaces them is too long"):
        bertcli.load(novara).tag("no " * 1000, redact=True, redact_with="z" * 200)
    with pytest.raises(BertcliError, match="name a type in at most 1,000"):
        bertcli.load(novara).tag("no", labels=["z" * 1001])


def test_offsets_begin_where_words_do_after_any_pre_tokenizer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """RobBERT's puts a space before each word itself, and then trims it from the word's characters."""
    caplog.set_level(logging.INFO, "bertcli")
    space = split.ByteLevel(add_prefix_space=True)
    splitters: Sequence[Any] = (
        split.Sequence([split.Whitespace(), space, split.Punctuation()]),
        split.Sequence([split.WhitespaceSplit(), space]),
        split.Sequence([split.BertPreTokenizer(), space]),
        split.Sequence([split.Punctuation(), space]),
        split.Sequence([split.Digits(individual_digits=True), space]),
        space,
    )
    for number, splitter in enumerate(splitters):
        folder = tmp_path / str(number)
        model = bertcli.load(byte_tagger(folder, ["in", "Amsterdam"], {"ĠAmsterdam": 1}, splitter))
        # A setting that two components have is named once.
        assert caplog.messages[-1].count("add_prefix_space false") == 1
        inside, first = model.tag(["in Amsterdam", "Amsterdam in"], redact=True)
        assert (spans(inside), inside["redacted"]) == ([("LOC", 3, 12)], "in [LOC]")
        assert spans(model.tag("in\tAmsterdam")) in ([("LOC", 3, 12)], [])
        if number < 5:
            # The class RoBERTa's own setting, no space before the first word, holds for a pre-tokenizer alone.
            assert (spans(first), first["redacted"]) == ([("LOC", 0, 9)], "[LOC] in")
        if number in (0, 2, 3):
            record = model.tag("in (Amsterdam)")
            assert spans(record) == [("LOC", 4, 13)]
    arguments = ("tag", "-m", tmp_path / "0", "--redact", "in Amsterdam")
    assert command(*arguments).out == "in [LOC]\n"


def test_words_are_those_of_the_tokenizer(tmp_path: Path) -> None:
    label_of = {"ĠBerlin": 1, **dict.fromkeys("Paris", 3)}
    model = byte_tagger(tmp_path / "bytes", ["Berlin", "Paris", "is"], label_of)
    texts = ["is Berlin\nParis", "is\tBerlin", "is\u00a0Berlin", "is, Berlin", "is \u2028is"]
    for aggregation in ("first", "max", "average"):
        records = command("tag", "-m", model, "--aggregation", aggregation, "--format", "jsonl", *texts).records
        assert spans(records[0]) == [("PER", 0, 2), ("LOC", 3, 9), ("PER", 10, 15)]
        assert spans(records[1]) == [("PER", 0, 2)]
        assert spans(records[3]) == [("PER", 0, 2), ("LOC", 4, 10)]


def test_words_keep_letters_whose_number_changes_on_the_way(tmp_path: Path) -> None:
    """İ in lower case is two characters, of which one is then stripped; ﬀ stays, and an unknown letter is a piece."""
    model = bertcli.load(word_piece_tagger(tmp_path, ["i", "##stanbul", "x", "##i", "a", "##a"], {"i": 1, "a": 3}))
    for text, expected in (("İstanbul x", [("LOC", 0, 8)]), ("xx İi", [("LOC", 3, 5)]), ("a\u0301a", [("PER", 0, 3)])):
        for aggregation in ("first", "max"):
            record = model.tag(text, aggregation=aggregation)
            assert spans(record) == expected


def test_words_of_a_tokenizer_that_parts_nothing_are_parted_by_spaces(tmp_path: Path) -> None:
    from helpers.opened_folders import tokenizer_of

    from bertcli.tokens.text_words import word_numbers, word_spans

    write_kind(tmp_path, "gemma3_text")
    text = "The hot  tea\nis here"
    (tokens,) = tokenizer_of(tmp_path).encode([text])
    assert {word for word in tokens.words if word is not None} == {0}
    numbers = word_numbers(text, tokens)
    words = [text[start:end].strip() for start, end in word_spans(numbers, tokens.offsets)]
    assert [word for word in words if word] == ["The", "hot", "tea", "is", "here"]


def test_redact_hides_a_word_with_signs_inside_that_the_tokenizer_takes_for_one(tmp_path: Path) -> None:
    by_space = split.ByteLevel(add_prefix_space=True, use_regex=False)
    model = byte_tagger(tmp_path, ["in"], {"b": 3}, split.Sequence([split.WhitespaceSplit(), by_space]))
    record = bertcli.load(model).tag("in o'brien, in", redact=True)
    assert record["redacted"] == "in [PER], in"

"""keywords: beside KeyBERT, the words of a text, long texts, what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.recorded import recorded
from helpers.terminal import bertcli, wrong_usage

import bertcli as package
from bertcli.errors import BertcliError
from bertcli.files.texts import Text
from bertcli.wings.keywords import work
from bertcli.wings.keywords.keywords import KeywordsOptions

RECORDED = recorded("keywords.json")
EVERY = 1000


@pytest.fixture(scope="module")
def model() -> Any:
    return package.load("bert-mini-sentence")


def found(model: Any, text: str, **options: Any) -> list[str]:
    """The keywords of a text in its order, with all of its words as candidates unless options say otherwise."""
    (record,) = model.keywords([text], **{"top_k": EVERY, "stop_words": "none", **options})
    in_order = sorted(record["keywords"], key=lambda keyword: (keyword["start"], keyword["end"]))
    assert all(" ".join(text[one["start"] : one["end"]].split()) == one["keyword"] for one in in_order)
    return [keyword["keyword"] for keyword in in_order]


def check(records: list[dict[str, Any]], expected: list[list[tuple[str, float]]]) -> None:
    """Equal words in equal order, but for scores that are equal but for rounding, and scores to 1e-5."""
    for record, reference in zip(records, expected, strict=True):
        keywords = record["keywords"]
        score_of = dict(reference)
        assert {keyword["keyword"].lower() for keyword in keywords} == score_of.keys()
        for keyword, (_, in_order) in zip(keywords, reference, strict=True):
            assert abs(keyword["score"] - in_order) < 1e-5
            assert abs(keyword["score"] - score_of[keyword["keyword"].lower()]) < 1e-5


def test_keywords_are_those_of_keybert(model: Any) -> None:
    expected, texts = RECORDED["keywords"], RECORDED["texts"]
    every: Any = {"top_k": EVERY, "stop_words": "none"}
    check(model.keywords(texts, **every), expected["words"])
    check(model.keywords(texts, ngrams=(1, 2), **every), expected["phrases"])
    check(model.keywords(texts, candidates=RECORDED["given"], top_k=EVERY), expected["given"])
    for diversity, reference in expected["diverse"].items():
        options: Any = {"ngrams": (1, 2), "stop_words": "none", "top_k": 6}
        check(model.keywords(texts, diversity=float(diversity), **options), reference)


def test_keywords_are_words_of_the_text(model: Any) -> None:
    cut: dict[str, list[str]] = {
        "State-of-the-art models don't use O'Neil’s C++.": ["State-of-the-art", "models", "don't", "use", "O'Neil’s"],
        "हिन्दी भाषा": ["हिन्दी", "भाषा"],
        "Cafe\u0301 re\u00adport, می\u200cخواهم": ["Cafe\u0301", "re\u00adport", "می\u200cخواهم"],
        "BERT是好": ["BERT", "是", "好"],
        "Tea tea TEA x 7 42": ["Tea", "42"],
        "": [],
        "… !": [],
    }
    for text, words in cut.items():
        assert found(model, text) == words
    assert found(model, "vitamin C, C vitamins\nat  tea-time", ngrams=2) == [
        "vitamin C",
        "C vitamins",
        "vitamins at",
        "at tea-time",
    ]
    assert found(model, "是好的", ngrams=(2, 3)) == ["是好", "是好的", "好的"]


def test_keywords_begin_and_end_with_no_stop_word(model: Any) -> None:
    text = "The bank of England doesn’t lend"
    assert found(model, text, stop_words="english", ngrams=(1, 3)) == [
        "bank",
        "bank of England",
        "England",
        "England doesn’t lend",
        "lend",
    ]
    assert found(model, text, stop_words=["BANK", "lend"]) == ["The", "of", "England", "doesn’t"]


def test_keywords_of_a_list_are_whole_words_with_their_signs(model: Any) -> None:
    given = ["C++", ".net", "new york", "tea", "at&t", "R"]
    text = "A team in New\n York: .NET, AT&T, at T, C, c++ or Rust; steam, tea."
    places = found(model, text, candidates=given)
    assert places == ["New York", ".NET", "AT&T", "c++", "tea"]
    with pytest.raises(BertcliError, match=r"The candidate '\+\+' has no word"):
        model.keywords(["tea"], candidates=["++"])
    with pytest.raises(BertcliError, match="longer than 10 words"):
        model.keywords(["tea"], candidates=["tea " * 11])


def test_keywords_of_a_long_text_are_beside_the_mean_of_its_windows(model: Any) -> None:
    text = "The river flooded the old town. " * 30 + "Green tea is drunk in Japan. " * 60
    (record,) = model.keywords([text], top_k=2, max_length=64)
    (block,) = model.encode_blocks([text], chunk=64)
    weights = [len(item.tokens.ids) for item in block.items]
    assert len(weights) > 9
    mean = np.average(np.asarray(block.vectors, np.float64), axis=0, weights=weights)
    for keyword in record["keywords"]:
        vector = model.encode([keyword["keyword"]])[0].astype(np.float64)
        cosine = mean @ vector / np.linalg.norm(mean) / np.linalg.norm(vector)
        assert abs(keyword["score"] - cosine) < 1e-6
    assert record["truncated"] is False
    assert [keyword["keyword"] for keyword in record["keywords"]] == ["tea", "drunk"]


def test_keywords_do_not_depend_on_the_other_texts(model: Any) -> None:
    texts = [*RECORDED["texts"], "", "tea"]
    together = model.keywords(texts, ngrams=(1, 2))
    assert [record["index"] for record in together] == [0, 1, 2, 3, 4]
    for text, record in zip(texts, together, strict=True):
        (alone,) = model.keywords([text], ngrams=(1, 2))
        assert [one["keyword"] for one in alone["keywords"]] == [one["keyword"] for one in record["keywords"]]
        scores: Any = [[one["score"] for one in side["keywords"]] for side in (alone, record)]
        assert np.abs(np.subtract(*scores)).max(initial=0) < 2e-6


def test_keywords_say_that_the_stop_words_are_english() -> None:
    german = "Der Kaffee wird in Äthiopien seit Jahrhunderten angebaut und hat dort eine lange Tradition, die lebt."
    assert "stop words" not in bertcli("keywords", german).err  # too few words to say
    asked = bertcli("keywords", german, german)
    assert "the built-in stop words are English, and the texts have only 2 of them in 32 words" in asked.err
    assert "stop words" not in bertcli("keywords", german, german, "--stop-words", "none").err
    assert "stop words" not in bertcli("keywords", " ".join(RECORDED["texts"])).err


def test_keywords_command_reads_its_lists(tmp_path: Path) -> None:
    stops, given, page = tmp_path / "stops.txt", tmp_path / "given.txt", tmp_path / "page.html"
    stops.write_bytes(b"\xef\xbb\xbfGreen\n\n hills \n")
    given.write_text("tea\nJapan\n", encoding="utf-8")
    text = "Green tea of Japan."
    shown = bertcli("keywords", text, "--stop-words", stops, "--format", "jsonl")
    assert {one["keyword"] for one in shown.records[0]["keywords"]} == {"tea", "of", "Japan"}
    shown = bertcli("keywords", text, "--candidates", given)
    assert [line.split()[::2] for line in shown.out.splitlines()[2:]] == [["tea", "6"], ["Japan", "13"]]
    assert bertcli("keywords", text, "-o", page).status == 0
    assert page.read_text(encoding="utf-8").count("<mark") == 3
    given.write_bytes("thé\n".encode("latin-1"))
    for file, said in ((given, "is not UTF-8 (byte 2)"), (tmp_path / "none.txt", "No such file")):
        for option in ("--candidates", "--stop-words"):
            wrong_usage("keywords", text, option, file, why=said)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ngrams": (2, 1)}, "ngrams"),
        ({"ngrams": 11}, "ngrams"),
        ({"ngrams": (1, 2, 3)}, "ngrams"),
        ({"diversity": 1.5}, "diversity"),
        ({"diversity": 0.5, "top_k": 1001}, "diversity"),
        ({"stop_words": "german"}, "stop_words"),
        ({"candidates": "tea"}, "candidates"),
        ({"candidates": ["tea"], "ngrams": (1, 2)}, "candidates"),
        ({"top_k": 0}, "top_k"),
    ],
)
def test_keywords_refuse(options: dict[str, Any], said: str, model: Any) -> None:
    with pytest.raises(BertcliError, match=said):
        model.keywords(["tea"], **options)


def test_phrases_are_counted_until_there_are_more_than_a_server_computes(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = work.plan(model, KeywordsOptions(ngrams=(1, 10), stop_words="none"))
    text = " ".join(f"a{number}" for number in range(60))
    (item,) = task.tokenize_group([Text(text)], 0).items
    phrases = [candidate.text for candidate in task.candidates(text)]
    assert len(phrases) == 10 * 60 - 45
    assert task.cost(item) == len(item.tokens.ids) + 3 * len(phrases) + sum(map(len, phrases)) // 4 > 3_000
    assert task.predictions(item) == 5
    monkeypatch.setattr(work, "ENOUGH_TO_REFUSE", 1_000)
    assert 1_000 < task.cost(item) < 1_020

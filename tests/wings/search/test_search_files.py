"""bertcli search -i: lines, paragraphs and rows of files are found, with file and line."""

import gzip
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.bge_m3 import DOCUMENTS, QUERIES, write_bge_m3
from helpers.json_files import write_json
from helpers.late_folders import FOLDERS, write_late
from helpers.modular import write_router
from helpers.terminal import bertcli, wrong_usage
from reference.encode_cases import sparse
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import bertcli as library
from bertcli.errors import BertcliError
from bertcli.files.read.passages import passages_in
from bertcli.files.texts import Texts
from bertcli.folder.hub import sample
from bertcli.tasks.parts.sample_sentences import PREDICATES, SENTENCES
from bertcli.tasks.running.run import results
from bertcli.wings.search import files as search_files
from bertcli.wings.search.bm25 import Keywords
from bertcli.wings.search.index import write_index
from bertcli.wings.search.vectors import Comparison

NOTES = "A dog ran home.\n\nInterest rates rose.\nThe puppy went back to its house.\n"
MANUAL = """\
# Kettle

Boil water before
the first use.

## Reset

### Factory settings

Hold the red button
for ten seconds.

```sh
# not a heading

kettle --reset
```
## Warranty ##
Two years.
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with files of every kind."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs" / "deep").mkdir(parents=True)
    (tmp_path / "notes.txt").write_text(NOTES, encoding="utf-8")
    (tmp_path / "docs" / "deep" / "manual.md").write_text(MANUAL, encoding="utf-8")
    (tmp_path / "docs" / "picture.png").write_bytes(b"\x89PNG")
    (tmp_path / "menu.csv").write_text('price,dish\n2,"Hot tea,\nwith milk"\n5,Fried fish\n', encoding="utf-8")
    (tmp_path / "menu.jsonl").write_text('{"dish": "Hot tea"}\n{"dish": "Fried fish"}\n', encoding="utf-8")
    return tmp_path


@pytest.fixture(autouse=True)
def chance_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For each model and setting: what unrelated sentences reach takes half the time of a search in a few lines."""

    def once(comparison: Comparison) -> float:
        key = f"{comparison.task.model.path} {comparison.settings}"
        if key not in CHANCES:
            CHANCES[key] = chance(comparison)
        return CHANCES[key]

    chance = Comparison.chance
    monkeypatch.setattr(Comparison, "chance", once)


CHANCES: dict[str, float] = {}


def hits(*arguments: str | Path) -> list[dict[str, Any]]:
    """The records of a search that succeeds."""
    result = bertcli("search", *arguments, "--format", "jsonl")
    assert result.status == 0, result.err
    return result.records


def test_search_files_scores_are_the_cosines_of_encode(folder: Path) -> None:
    found = hits("a walk with the dog", "-i", "notes.txt")
    model = library.load("bert-mini-sentence")
    texts = [line for line in NOTES.splitlines() if line]
    query, *vectors = model.encode(["a walk with the dog", *texts])
    cosines = {
        text: float(query @ vector / np.linalg.norm(query) / np.linalg.norm(vector))
        for text, vector in zip(texts, vectors, strict=True)
    }
    assert [hit["text"] for hit in found] == sorted(texts, key=lambda text: -cosines[text])
    assert [hit["score"] for hit in found] == pytest.approx(sorted(cosines.values(), reverse=True), abs=1e-5)
    assert [hit["line"] for hit in found] == [1, 4, 3]
    assert [*found[0]] == ["query", "file", "line", "score", "text"]
    assert {hit["file"] for hit in found} == {"notes.txt"}


def test_search_files_prints_file_line_score_text(folder: Path) -> None:
    result = bertcli("search", "a walk with the dog", "-i", "notes.txt", "--top-k", "2")
    assert result.out == (
        "notes.txt:1: 0.5554 A dog ran home.\nnotes.txt:4: 0.4423 The puppy went back to its house.\n"
    )
    assert "Note: 3 texts of 1 file encoded in " in result.err
    assert "--index FILE keeps the vectors" in result.err


def test_search_files_paragraphs_have_headings_as_context(folder: Path) -> None:
    file = "docs/deep/manual.md"
    found = [(one.line, one.last, one.context, one.text) for one in passages_in(file)]
    assert found == [
        (3, 4, "Kettle", "Boil water before\nthe first use."),
        (6, 6, "Kettle", "Reset"),
        (10, 11, "Kettle > Reset > Factory settings", "Hold the red button\nfor ten seconds."),
        (13, 17, "Kettle > Reset > Factory settings", "```sh\n# not a heading\n\nkettle --reset\n```"),
        (19, 19, "Kettle > Warranty", "Two years."),
    ]
    (best, *_) = hits("warranty", "-i", "docs/**/*.md")
    assert (best["file"], best["line"], best["text"]) == (file, 19, "Two years.")  # the word is in its heading alone
    assert best["headings"] == "Kettle > Warranty"
    assert "headings" not in hits("dog", "-i", "notes.txt")[0]


def test_search_files_rows_have_their_line_and_column(folder: Path) -> None:
    found = hits("hot tea", "-i", "menu.csv", "-i", "menu.jsonl", "--column", "dish")
    assert {(hit["file"], hit["line"], hit["text"]) for hit in found} == {
        ("menu.csv", 2, "Hot tea,\nwith milk"),
        ("menu.csv", 4, "Fried fish"),
        ("menu.jsonl", 1, "Hot tea"),
        ("menu.jsonl", 2, "Fried fish"),
    }
    assert found[0]["text"] == "Hot tea"
    error = bertcli("search", "tea", "-i", "menu.csv").error
    assert "menu.csv, line 1: there is no field 'text'; fields are 'price', 'dish'" in error


def test_search_files_pattern_passes_over_other_endings(folder: Path) -> None:
    result = bertcli("search", "button", "-i", "docs/**", "--format", "jsonl")
    assert {hit["file"] for hit in result.records} == {"docs/deep/manual.md"}
    assert "1 file of another ending is left out" in result.err
    assert "docs/picture.png: search reads .txt, .md" in bertcli("search", "a", "-i", "docs/picture.png").error
    assert "No file matches none/*.md." in bertcli("search", "a", "-i", "none/*.md").error
    assert "docs/picture.png: search reads" in bertcli("search", "a", "-i", "docs/pict*").error
    assert "Cannot read none.txt" in bertcli("search", "a", "-i", "none.txt").error


def test_search_files_reads_gzips_and_pipes(folder: Path) -> None:
    Path("notes.txt.gz").write_bytes(gzip.compress(NOTES.encode()))
    packed = hits("dog", "-i", "notes.txt.gz")
    piped = bertcli("search", "dog", "-i", "-", "--format", "jsonl", stdin=NOTES).records
    plain = hits("dog", "-i", "notes.txt")
    assert [hit["line"] for hit in packed] == [hit["line"] for hit in piped] == [hit["line"] for hit in plain]
    assert {hit["file"] for hit in piped} == {"-"}
    why = "--lines: standard input cannot be read a second time"
    wrong_usage("search", "dog", "-i", "-", "--lines", "1", stdin=NOTES, why=why)
    assert "has no index" in bertcli("search", "dog", "-i", "-", "--index", "x", stdin=NOTES).error


def test_search_files_without_text_or_with_broken_text_is_one_line(folder: Path) -> None:
    Path("empty.txt").write_bytes(b"")
    Path("blank.md").write_bytes(b"\n  \n")
    assert "There is no text in empty.txt to search." in bertcli("search", "dog", "-i", "empty.txt").error
    assert "no text in these 2 files" in bertcli("search", "dog", "-i", "empty.txt", "-i", "blank.md").error
    assert len(hits("dog", "-i", "empty.txt", "-i", "notes.txt")) == 3
    for name in ("bad.txt", "bad.md"):
        Path(name).write_bytes(b"fine\n\xff\n")
        assert f"{name}, line 2: not UTF-8 (byte 1 is 0xff)" in bertcli("search", "dog", "-i", name).error


def test_search_files_says_when_nothing_is_near(folder: Path) -> None:
    far = bertcli("search", "zq gargle wombat", "-i", "notes.txt")
    assert far.status == 0
    assert far.out.count("\n") == 3  # in the order of relevance all the same
    assert "Note: nothing is near to 'zq gargle wombat': the best similarity is 0." in far.err
    near = bertcli("search", "a walk with the dog", "-i", "notes.txt")
    assert "nothing is near" not in near.err


def test_search_files_an_exact_hit_of_hybrid_is_near(folder: Path) -> None:
    line = "The committee of the lower house voted against the new budget, zq tonnage and all."
    Path("ship.txt").write_text(f"{line}\nA fine day.\n", encoding="utf-8")
    assert "nothing is near" in bertcli("search", "tonnage", "-i", "ship.txt").err
    assert "nothing is near" in bertcli("search", "tonnage wombat", "-i", "ship.txt", "--hybrid").err
    assert "nothing is near" not in bertcli("search", "tonnage", "-i", "ship.txt", "--hybrid").err
    assert bertcli("search", "tonnage", "-i", "ship.txt", "--hybrid", "-l").out == "ship.txt\n"


def test_search_files_a_limit_above_every_score_is_none(folder: Path) -> None:
    """Similarities of this model vary so much that its limit would be above 1, the cosine of a text with itself."""
    Path("wide").mkdir()
    shutil.copytree(sample("bert-mini-sentence"), "wide", dirs_exist_ok=True)
    weights = load_file("wide/model.safetensors")
    name = next(name for name in weights if name.endswith("word_embeddings.weight"))
    of_pieces, direction = (
        np.random.default_rng(seed).normal(size=size) for seed, size in ((0, len(weights[name])), (1, 256))
    )
    weights[name] = np.outer(3 * of_pieces, direction).astype(np.float32)
    save_file(weights, "wide/model.safetensors", {"format": "pt"})
    for query in ("A dog ran home.", "zq gargle wombat"):
        assert "nothing is near" not in bertcli("search", query, "-m", "wide", "-i", "notes.txt").err
    assert bertcli("search", "A dog ran home.", "-m", "wide", "-i", "notes.txt", "-l").out == "notes.txt\n"


def test_search_files_min_score_leaves_out_hits(folder: Path) -> None:
    scores = [hit["score"] for hit in hits("a walk with the dog", "-i", "notes.txt")]
    assert [hit["score"] for hit in hits("a walk with the dog", "-i", "notes.txt", "--min-score", "0.3")] == [
        score for score in scores if score >= 0.3
    ]
    assert min(scores) < 0.3 < max(scores)
    assert bertcli("encode", "-i", "notes.txt", "-o", "v.npy").status == 0
    (record,) = hits("a walk with the dog", "-i", "v.npy", "--min-score", "0.3")
    stored = [hit["score"] for hit in record["nearest"]]
    assert stored == pytest.approx([s for s in scores if s >= 0.3], abs=1e-6)
    # A score that was read is a bound that its own hit meets, and each larger one.
    for number, score in enumerate(scores, 1):
        again = hits("a walk with the dog", "-i", "notes.txt", "--min-score", str(score))
        assert [hit["score"] for hit in again] == scores[:number]
    for number, score in enumerate(stored, 1):
        (record,) = hits("a walk with the dog", "-i", "v.npy", "--min-score", str(score))
        assert [hit["score"] for hit in record["nearest"]] == stored[:number]


def test_search_files_a_folder_stands_for_all_files_in_it(folder: Path) -> None:
    (folder / "docs" / "[1]").mkdir()
    (folder / "docs" / "[1]" / "picture.png").write_bytes(b"")
    whole = bertcli("search", "dog", "-i", "docs", "--format", "json")
    assert whole.out == bertcli("search", "dog", "-i", "docs/**/*.*", "--format", "json").out
    assert whole.json
    assert "2 files of other endings are left out" in whole.err
    assert "docs/[1]/picture.png: search reads .txt" in bertcli("search", "dog", "-i", "docs/[1]").error
    (folder / "empty").mkdir()
    assert "No file matches empty/**/*." in bertcli("search", "dog", "-i", "empty").error
    assert bertcli("search", "dog", "-i", "missing").error == "Error: Cannot read missing: No such file or directory."


def test_search_files_a_folder_passes_over_rows_without_texts(folder: Path) -> None:
    shutil.copy("menu.csv", "docs/menu.csv")
    found = bertcli("search", "dog", "-i", "docs", "--format", "jsonl")
    assert {record["file"] for record in found.records} == {"docs/deep/manual.md"}
    assert "left out: docs/menu.csv, line 1: there is no field 'text'" in found.err
    dishes = hits("hot tea", "-i", "docs", "--column", "dish")
    assert dishes[0]["file"] == "docs/menu.csv"
    assert library.search_files("hot tea", "docs", column="dish")[0]["file"] == "docs/menu.csv"
    assert bertcli("search", "dog", "-i", "docs/menu.csv").status == 1  # it was named
    Path("rows").mkdir()
    shutil.copy("menu.csv", "rows/menu.csv")
    assert "rows/menu.csv, line 1: there is no field 'text'" in bertcli("search", "dog", "-i", "rows").error


def test_search_files_with_matches_prints_names(folder: Path) -> None:
    both = ("-i", "notes.txt", "-i", "menu.jsonl", "--column", "dish", "-l")
    assert bertcli("search", "the dog ran home", *both).out == "notes.txt\n"
    nothing = bertcli("search", "zq gargle wombat", *both)
    assert (nothing.status, nothing.out) == (1, "")
    assert "Error" not in nothing.err
    Path("dogs.txt").write_text("The dog ran home.\n" * 20, encoding="utf-8")
    assert bertcli("search", "the dog ran home", "-i", "dogs.txt", *both).out == "dogs.txt\nnotes.txt\n"
    assert bertcli("search", "the dog ran home", "-i", "dogs.txt", *both, "--top-k", "1").out == "dogs.txt\n"
    (record,) = hits("the dog ran home", *both)
    assert (record["file"], [*record]) == ("notes.txt", ["query", "file", "score"])


def test_search_files_warns_of_a_pattern_that_the_shell_resolved(folder: Path) -> None:
    result = bertcli("search", "dog", "-i", "menu.csv", "notes.txt", "--column", "dish")
    assert "Warning: 'notes.txt' is taken as a query; to search in it, write -i before it" in result.err
    assert result.out.startswith("dog\n")  # each query, above its hits
    assert "\n\nnotes.txt\n" in result.out


def test_search_files_prints_lines_around_a_hit(folder: Path) -> None:
    result = bertcli("search", "hold the red button", "-i", "docs/deep/manual.md", "--top-k", "1", "--lines", "2")
    before, blank, hit, after, more = result.out.splitlines()
    file = "docs/deep/manual.md"
    assert (before, blank) == (f"{file}-8- ### Factory settings", f"{file}-9- ")
    assert hit.startswith(f"{file}:10: ")
    assert hit.endswith(" Hold the red button for ten seconds.")
    assert (after, more) == (f"{file}-12- ", f"{file}-13- ```sh")


def test_search_files_cuts_long_texts_into_parts(made: Made, folder: Path) -> None:
    paragraphs = [" ".join(["the dog"] * 60), "Paris is a city.\n" + "a cup of tea\n" * 40]
    Path("long.md").write_text("\n\n".join(paragraphs), encoding="utf-8")
    first, second = library.search_files("tea", "long.md", model=made(seed=7), max_length=16, top_k=5)
    assert {len(str(hit["text"]).split()) <= 16 for hit in (first, second)} == {True}
    found = {hit["line"] for hit in (first, second)}
    assert 1 in found
    assert max(found) >= 3


def test_search_files_shades_words_on_a_terminal(folder: Path) -> None:
    color = {"TERM": "xterm-256color", "COLUMNS": "80", "FORCE_COLOR": "1"}
    shaded = bertcli("search", "the dog", "-i", "notes.txt", "--top-k", "1", terminal=True, environment=color).out
    assert "\x1b[" in shaded.partition("dog")[0]
    plain = bertcli("search", "the dog", "-i", "notes.txt", "--top-k", "1").out
    assert "\x1b" not in plain


def test_search_files_into_files(folder: Path) -> None:
    result = bertcli("search", "dog", "tea", "-i", "notes.txt", "-o", "hits.csv")
    assert (result.status, result.out) == (0, "")
    header, *rows = Path("hits.csv").read_text(encoding="utf-8").splitlines()
    assert header == "query,file,line,score,text"
    assert [row.partition(",")[0] for row in rows] == ["dog"] * 3 + ["tea"] * 3
    assert "the texts are read from it" in bertcli("search", "dog", "-i", "notes.txt", "-o", "notes.txt").error
    assert "the texts are read from it" in bertcli("search", "dog", "-i", "notes.txt", "--index", "notes.txt").error


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("-i", "notes.txt", "-i", "v.npy"), "v.npy has vectors: name one such file, first"),
        (("-i", "v.npy", "-i", "v.npy"), "v.npy has vectors: name one such file, first"),
        (("-i", "notes.txt", "--id-column", "id"), "--id-column: this is for stored vectors"),
        (("-i", "v.npy", "--index", "x"), "--index: this is for files of texts, and v.npy has vectors"),
        (("-i", "v.npy", "--hybrid"), "--hybrid: this is for files of texts, and v.npy has vectors"),
        (("-i", "v.npy", "--sparse"), "--sparse: this is for files of texts, and v.npy has vectors"),
        (("-i", "notes.txt", "--column", "body"), "--column: lines and paragraphs have no fields"),
        ((), "give files to search in (-i), or vectors that encode wrote"),
        (("notes.txt",), "'notes.txt' is taken for a query: did you mean -i notes.txt?"),
    ],
)
def test_search_files_and_vectors_exclude_each_other(arguments: tuple[str, ...], why: str, folder: Path) -> None:
    wrong_usage("search", "dog", *arguments, why=why)


# -------------------------------------------------------------------------------------------------------------- index


def test_search_files_index_computes_only_what_changed(folder: Path) -> None:
    search = ("search", "dog", "-i", "*.txt", "--index", "notes.index", "--format", "jsonl")
    Path("other.txt").write_text("Tea is hot.\nRain falls.\n", encoding="utf-8")
    fresh = bertcli("search", "dog", "-i", "*.txt", "--format", "jsonl")
    first = bertcli(*search)
    assert "5 texts of 2 files encoded in" in first.err
    kept = Path("notes.index").read_bytes()
    again = bertcli(*search)
    assert "encoded" not in again.err
    assert Path("notes.index").read_bytes() == kept
    assert fresh.out == first.out == again.out
    Path("notes.txt").write_text("A cat.\n" + NOTES, encoding="utf-8")
    changed = bertcli(*search)
    assert "4 texts of 1 file encoded in" in changed.err
    assert changed.records[0]["line"] == 2
    Path("other.txt").rename("third.txt")
    assert "encoded" not in bertcli(*search).err  # the same bytes by another name
    part = ("search", "dog", "-i", "notes.txt", "--index", "notes.index")
    bertcli(*part)
    assert "encoded" not in bertcli(*search).err  # files that were not asked for are kept
    Path("third.txt").unlink()
    Path("notes.txt").write_text("A cat.\n", encoding="utf-8")
    bertcli(*search)
    assert len(Path("notes.index").read_bytes()) < len(kept) / 2  # older states of files are not
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_search_files_index_reads_a_renamed_file_as_its_new_ending_says(folder: Path) -> None:
    """The same bytes are three lines of a .txt file, and two rows of a .csv file below their header."""
    search = ("search", "dog", "--top-k", "9", "--format", "jsonl")
    Path("kept.txt").write_text("text\na dog barks\na cat sleeps\n", encoding="utf-8")
    assert len(bertcli(*search, "-i", "kept.txt", "--index", "kept.index").records) == 3
    Path("kept.txt").rename("kept.csv")
    found = bertcli(*search, "-i", "kept.csv", "--index", "kept.index").records
    assert [(record["line"], record["text"]) for record in found] == [(2, "a dog barks"), (3, "a cat sleeps")]


def test_search_files_index_of_one_column_is_made_anew_for_another(made: Made, folder: Path) -> None:
    Path("kept.csv").write_text("said,meant\nthe cat sat,a dog\nhot tea,the cat sat\n", encoding="utf-8")
    search = ("search", "cat", "-i", "kept.csv", "-m", made(seed=7), "--format", "jsonl")
    for column in ("said", "meant"):
        found = bertcli(*search, "--column", column, "--index", "kept.index")
        assert "2 texts of 1 file encoded in" in found.err
        assert found.out == bertcli(*search, "--column", column).out


def test_search_files_index_of_another_model_or_way_is_one_line(made: Made, folder: Path) -> None:
    search = ("search", "dog", "-i", "notes.txt", "--index", "notes.index")
    assert bertcli(*search).status == 0
    kept = Path("notes.index").read_bytes()
    assert "was made by another model, bert-mini-sentence" in bertcli(*search, "-m", made(seed=7)).error
    with pytest.raises(BertcliError, match="was made with pooling 'mean', and this command has 'cls'"):
        library.search_files("dog", "notes.txt", index="notes.index", pooling="cls")
    assert Path("notes.index").read_bytes() == kept


def test_search_files_index_of_a_model_whose_last_weights_changed_is_refused(folder: Path) -> None:
    shutil.copytree(sample("bert-mini-sentence"), "mini")
    search = ("search", "dog", "-i", "notes.txt", "--index", "notes.index", "-m", "mini")
    assert bertcli(*search).status == 0
    weights = Path("mini/model.safetensors")
    data = bytearray(weights.read_bytes())
    data[-2_000_000:-4] = data[-1_999_996:]  # as if the last layers had been trained further
    weights.write_bytes(data)
    assert "notes.index was made by another model, mini" in bertcli(*search).error


def test_search_files_damaged_index_is_one_line_and_stays(folder: Path) -> None:
    search = ("search", "dog", "-i", "notes.txt", "--index", "notes.index")
    assert bertcli(*search).status == 0
    whole = Path("notes.index").read_bytes()
    nan = np.full(256, np.nan, np.float32).tobytes()
    length = 8 + int.from_bytes(whole[:8], "little")
    forged = [
        b"",
        b"no index",
        whole[:-1],
        whole[: len(whole) // 2],
        whole.replace(b"search index 1", b"search index 9"),
        whole.replace(b'\\"parts\\": 3', b'\\"parts\\": 2'),
        whole[:length] + nan + whole[length + len(nan) :],
        whole[:-4] + (999).to_bytes(4, "little"),
    ]
    for data in forged:
        assert data != whole
        Path("notes.index").write_bytes(data)
        assert "notes.index is damaged" in bertcli(*search).error
        assert Path("notes.index").read_bytes() == data


# ---------------------------------------------------------------------------------------------- keywords and rerankers


def test_search_files_bm25_is_the_formula() -> None:
    texts = ["the dog and the cat", "a dog", "tea"]
    scores = Keywords(texts).bm25("The DOG, fish")
    mean = (5 + 2 + 1) / 3

    def term(often: int, length: int, having: int) -> float:
        idf = math.log(1 + (3 - having + 0.5) / (having + 0.5))
        return idf * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * length / mean))

    assert scores == pytest.approx([term(2, 5, 1) + term(1, 5, 2), term(1, 2, 2), 0.0], abs=1e-12)


def test_search_files_hybrid_fuses_two_rankings(folder: Path) -> None:
    Path("codes.txt").write_text("Error E4711 again\nThe machine has failed\nIt is broken\nA fine day\n", "utf-8")
    query = "the machine is broken E4711"
    by_similarity = [hit["text"] for hit in hits(query, "-i", "codes.txt")]
    bm25 = dict(zip(by_similarity, Keywords(by_similarity).bm25(query), strict=True))
    by_keywords = sorted((text for text in bm25 if bm25[text]), key=lambda text: -bm25[text])
    expected = {text: 1 / (60 + rank) for rank, text in enumerate(by_similarity, 1)}
    for rank, text in enumerate(by_keywords, 1):
        expected[text] += 1 / (60 + rank)
    found = {hit["text"]: hit["score"] for hit in hits(query, "-i", "codes.txt", "--hybrid")}
    assert found == pytest.approx(expected, rel=1e-7)
    assert 0 < len(by_keywords) < 4


def check_as_rank(found: list[dict[str, Any]], model: Path, query: str) -> None:
    """The hits are the lines of notes.txt in the order, and with the scores, that `rank` gives them."""
    lines = [line for line in NOTES.splitlines() if line]
    ranked = bertcli("rank", "-m", model, query, *lines, "--format", "jsonl").records
    assert [hit["text"] for hit in found] == [record["text"] for record in ranked]
    assert [hit["score"] for hit in found] == pytest.approx([record["score"] for record in ranked], abs=1e-5)


def test_search_files_rerank_orders_as_rank(made: Made, folder: Path) -> None:
    reranker = made(head="classifier", num_labels=1, seed=3)
    check_as_rank(hits("the dog", "-i", "notes.txt", "--rerank", reranker), reranker, "the dog")
    assert len(hits("the dog", "-i", "notes.txt", "--rerank", reranker, "--top-k", "1")) == 1
    assert "needs" in bertcli("search", "dog", "-i", "notes.txt", "--rerank", "bert-mini-mlm").error


def test_search_files_a_prompt_that_is_given_is_the_querys(made: Made, folder: Path) -> None:
    model = made(seed=7)
    (best, *_) = hits("-m", model, "tea", "-i", "notes.txt", "--prompt", "the cat ")
    query, document = library.load(model).encode(["the cat tea", str(best["text"])])
    cosine = float(query @ document / np.linalg.norm(query) / np.linalg.norm(document))
    assert best["score"] == pytest.approx(cosine, abs=1e-5)


def test_search_files_late_interaction_reranks_and_gives_no_single_vector(folder: Path) -> None:
    Path("late").mkdir()
    late = write_late(folder / "late", next(iter(FOLDERS)))
    error = bertcli("search", "-m", late, "dog", "-i", "notes.txt").error
    assert "has a vector for each token (late interaction): rank documents with it" in error
    check_as_rank(hits("the dog", "-i", "notes.txt", "--rerank", late), late, "the dog")


# --------------------------------------------------------------------------------------------------- sparse vectors


def test_search_files_by_sparse_vectors_of_a_router_rank_as_rank(folder: Path) -> None:
    model = write_router(folder / "router")
    check_as_rank(hits("-m", model, "the dog", "-i", "notes.txt", "--sparse"), model, "the dog")
    assert "add --sparse" in bertcli("search", "-m", model, "dog", "-i", "notes.txt").error


def test_search_files_compare_sparse_vectors_as_the_folder_says(folder: Path, tmp_path: Path) -> None:
    model = sparse(tmp_path, "max")
    settings = {"similarity_fn_name": "cosine"}
    write_json(model / "config_sentence_transformers.json", settings)
    found = hits("-m", model, "A dog ran home.", "-i", "notes.txt", "--sparse")
    check_as_rank(found, model, "A dog ran home.")
    assert found[0]["score"] == pytest.approx(1)


def test_search_files_by_sparse_vectors_of_bge_m3_sums_products(folder: Path) -> None:
    """Its dense vectors are compared by cosines."""
    model = write_bge_m3(folder / "bge-m3")
    Path("texts.txt").write_text("".join(f"{line}\n" for line in DOCUMENTS), encoding="utf-8")
    texts = (QUERIES[1], *DOCUMENTS)
    query, *documents = bertcli("encode", "-m", model, "--sparse", *texts, "--format", "jsonl").records
    weights: dict[int, float] = dict(zip(query["indices"], query["values"], strict=True))
    expected = {}
    for document in documents:
        entries = zip(document["indices"], document["values"], strict=True)
        expected[document["text"]] = sum(weights.get(index, 0.0) * value for index, value in entries)
    found = {hit["text"]: hit["score"] for hit in hits("-m", model, QUERIES[1], "-i", "texts.txt", "--sparse")}
    assert found == pytest.approx(expected, abs=1e-5)
    assert max(expected.values()) > 0.1


def test_search_files_damaged_index_of_sparse_vectors_is_one_line(folder: Path) -> None:
    search = ("search", "dog", "-i", "notes.txt", "--sparse", "-m", write_bge_m3(folder / "bge"), "--index", "n.index")
    assert bertcli(*search).status == 0
    whole = load_file("n.index")
    with safe_open("n.index", "np") as file:
        described = file.metadata()
    damage = ("values", np.nan), ("indices", -1), ("indices", 1 << 20), ("counts", -1), ("counts", 1 << 20)
    for name, value in damage:
        arrays = {key: array.copy() for key, array in whole.items()}
        arrays[name][0] = value
        save_file(arrays, "n.index", described)
        assert "n.index is damaged" in bertcli(*search).error


def test_search_files_index_of_sparse_vectors(folder: Path) -> None:
    model = write_bge_m3(folder / "bge-m3")
    Path("texts.txt").write_text("".join(f"{line}\n" for line in DOCUMENTS), encoding="utf-8")
    search = ("search", "-m", model, QUERIES[1], "-i", "*.txt", "--index", "sparse.index", "--format", "jsonl")
    first = bertcli(*search, "--sparse")
    assert "6 texts of 2 files encoded in" in first.err
    again = bertcli(*search, "--sparse")
    assert "encoded" not in again.err
    assert again.out == first.out
    Path("texts.txt").write_text("".join(f"{line}\n" for line in reversed(DOCUMENTS)), encoding="utf-8")
    changed = bertcli(*search, "--sparse")
    assert "3 texts of 1 file encoded in" in changed.err
    scores = [sorted(hit["score"] for hit in result.records) for result in (first, changed)]
    assert scores[1] == pytest.approx(scores[0], abs=1e-5)  # 3 texts together, not 6
    assert "sparse.index holds sparse vectors: give --sparse" in bertcli(*search).error
    for file in ("sparse.npz", "sparse.parquet"):
        assert bertcli("encode", "-m", model, "--sparse", "-i", "texts.txt", "-o", file).status == 0
        error = bertcli("search", "-m", model, "tea", "-i", file).error
        assert f"{file} holds sparse vectors, and only files of dense ones are searched" in error
    dense = (*search[:-3], "dense.index")
    assert bertcli(*dense).status == 0
    assert "dense.index holds dense vectors: leave out --sparse" in bertcli(*dense, "--sparse").error


def test_search_files_by_sparse_vectors_refuses_what_is_of_dense_ones(folder: Path) -> None:
    search = ("search", "dog", "-i", "notes.txt", "--sparse", "-m", write_bge_m3(folder / "bge-m3"))
    with pytest.raises(BertcliError, match="made as the model specifies: leave out pooling"):
        library.search_files("dog", "notes.txt", model=folder / "bge-m3", sparse=True, pooling="cls")
    assert bertcli(*search).status == 0
    assert "needs" in bertcli("search", "dog", "-i", "notes.txt", "--sparse", "-m", "bert-mini-sentence").error


def test_search_files_says_when_no_word_is_shared(folder: Path) -> None:
    model = write_bge_m3(folder / "bge-m3")
    Path("texts.txt").write_text("the tea\n", encoding="utf-8")
    done = bertcli("search", "-m", model, "coffee", "-i", "texts.txt", "--sparse")
    assert "nothing is near to 'coffee': the best similarity is 0.00" in done.err


# ------------------------------------------------------------------------------------------- interrupted, and watched


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit(143)])
def test_search_files_index_keeps_what_was_done_before_an_interruption(
    error: BaseException, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("other.txt").write_text("Tea is hot.\nRain falls.\n", encoding="utf-8")
    Path("third.txt").write_text("A boat.\n", encoding="utf-8")
    search = ("search", "dog", "-i", "third.txt", "--index", "notes.index", "--format", "jsonl")
    assert bertcli(*search).status == 0
    both = (*search[:2], "-i", "notes.txt", "-i", "other.txt", *search[2:])
    real = results

    def interrupted(task: Any, texts: Any) -> Iterator[Any]:
        """The first file, and a text of the second: then the error."""
        yield from real(task, Texts([*texts][:4]))
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(search_files, "results", interrupted)
        assert bertcli(*both).status in (130, 143)
    done = bertcli(*both)
    assert "2 texts of 1 file encoded in" in done.err  # of other.txt alone
    Path("notes.index").unlink()
    fresh = bertcli(*both).records
    assert [hit["text"] for hit in fresh] == [hit["text"] for hit in done.records]
    assert [hit["score"] for hit in fresh] == pytest.approx([hit["score"] for hit in done.records], abs=1e-6)


def test_search_files_index_is_written_while_the_work_goes_on(
    made: Made, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_files, "BETWEEN_WRITES", -1.0)
    written: list[int] = []
    real = write_index

    def write(file: str, made: Any, entries: dict[str, Any]) -> None:
        written.append(len(entries))
        real(file, made, entries)

    monkeypatch.setattr("bertcli.wings.search.index.write_index", write)
    Path("other.txt").write_text("the dog\n" * 900, encoding="utf-8")
    done = bertcli("search", "dog", "-m", made(), "-i", "*.txt", "--index", "notes.index")
    assert "903 texts of 2 files encoded in" in done.err
    assert written == [1, 2, 2]  # the first, before all of the longer file is encoded


def test_search_files_shows_a_bar_on_a_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shares: list[float | None] = []

    def bar(blocks: Any, task: str, reached: Any, unit: str) -> Iterator[Any]:
        for block in blocks:
            shares.append(reached(block)[1])
            yield block

    monkeypatch.setattr(search_files, "progress", bar)
    assert bertcli("search", "dog", "-i", "notes.txt", terminal=True).status == 0
    assert shares[-1] == 1.0
    shares.clear()
    assert bertcli("search", "dog", "-i", "notes.txt").status == 0
    assert shares == []


# ----------------------------------------------------------------------------------------------------- from Python


def test_search_files_from_python_finds_as_the_command(folder: Path, made: Made) -> None:
    files = ("-i", "*.txt", "-i", "menu.csv", "--column", "dish")
    model = made(seed=7)
    expected = hits("-m", model, "the dog", "tea", *files, "--top-k", "3")
    found = library.search_files(["the dog", "tea"], ["*.txt", "menu.csv"], model=model, column="dish", top_k=3)
    assert found == expected
    one = library.search_files("tea", Path("notes.txt"), model=library.load(model), index=Path("n.index"), hybrid=True)
    assert one == hits("-m", model, "tea", "-i", "notes.txt", "--index", "n.index", "--hybrid")
    reranker = made(head="classifier", num_labels=1, seed=3)
    assert library.search_files("tea", "notes.txt", model=model, rerank=reranker) == hits(
        "-m", model, "tea", "-i", "notes.txt", "--rerank", reranker
    )
    bge = write_bge_m3(folder / "bge-m3")
    assert library.search_files("tea", "notes.txt", model=bge, sparse=True) == hits(
        "-m", bge, "tea", "-i", "notes.txt", "--sparse"
    )
    with pytest.raises(TypeError, match=r"search_files\(\) has no option 'poling'. Did you mean pooling\?"):
        library.search_files("tea", "notes.txt", poling="cls")
    with pytest.raises(library.BertcliError, match="search reads"):
        library.search_files("tea", "docs/picture.png")


def test_search_files_says_nothing_of_its_own_sentences(folder: Path) -> None:
    """Those that measure chance are cut silently: they are not the user's."""
    assert library.search_files("dog", "notes.txt", max_length=7, truncation="error")
    with pytest.raises(BertcliError, match="has 8 tokens, more than 7"):
        library.search_files("the dog that ran home again", "notes.txt", max_length=7, truncation="error")


def test_search_files_refuses_a_prompt_before_it_encodes(folder: Path) -> None:
    done = bertcli("search", "dog", "-i", "notes.txt", "--prompt-name", "query")
    assert "has no prompt 'query'" in done.error
    assert "encoded" not in done.err


def test_the_note_names_the_score_that_unrelated_sentences_reach(tmp_path: Path) -> None:
    """The median of unrelated pairs and three spreads above it, each 1.4826 times the median absolute deviation."""
    (tmp_path / "notes.txt").write_text(NOTES, encoding="utf-8")
    vectors = library.load("bert-mini-sentence").encode(SENTENCES)
    rows = [divmod(i, len(PREDICATES)) for i in range(len(SENTENCES))]
    pairs = np.array(
        [
            float(vectors[i] @ vectors[j])
            for i, (subject, predicate) in enumerate(rows)
            for j, (other, does) in enumerate(rows)
            if subject < other and predicate != does
        ]
    )
    spread = 1.4826 * np.median(np.abs(pairs - np.median(pairs)))
    chance = np.median(pairs) + 3 * spread
    note = bertcli("search", "zq gargle wombat", "-m", "bert-mini-sentence", "-i", tmp_path / "notes.txt").err
    assert f"unrelated sentences reach {chance:.2f} by chance" in note

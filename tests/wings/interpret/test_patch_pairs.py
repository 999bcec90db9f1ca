"""Patching over many pairs: the mean of single pairs, its intervals, what is left out, and files of pairs."""

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import Made
from helpers.terminal import bertcli as run

import bertcli
from bertcli.errors import BertcliError
from bertcli.wings.interpret.compute.parts import PATCHED_PLACES
from bertcli.wings.interpret.compute.patch import patches
from bertcli.wings.interpret.specs.patch import PatchOptions

SUBJECTS = ("king", "queen", "dog", "cat", "tea", "paris")
# Texts of one length, that differ in the word at position 2.
EQUAL = [(f"the {a} drank hot [MASK]", f"the {b} drank hot [MASK]") for a in SUBJECTS for b in SUBJECTS if a != b]
# Texts of several lengths; one lacks a word of the other.
OTHER = [
    ("the king drank [MASK]", "the queen drank [MASK]"),
    ("a dog and the king drank hot [MASK]", "a dog and the queen drank hot [MASK]"),
    ("hot tea and paris [MASK]", "hot tea paris [MASK]"),
]


@pytest.mark.parametrize("of", PATCHED_PLACES)
def test_means_are_those_of_single_pairs(of: str, made: Made) -> None:
    model = bertcli.load(made(head="mlm", seed=402, tokenizer="both"))
    found = bertcli.patch_pairs(model, EQUAL[:3], of=of, direction="both")
    single = [bertcli.patch(model, a, b, of=of, direction="both") for a, b in EQUAL[:3]]
    for direction in ("denoise", "noise"):
        expected = np.mean([one.effects[direction] for one in single], axis=0)
        np.testing.assert_allclose(found.effects[direction], expected, atol=1e-9)
        assert np.ptp(expected) > 1e-3
    assert found.value_a == pytest.approx(np.mean([one.value_a for one in single]))
    assert found.value_b == pytest.approx(np.mean([one.value_b for one in single]))
    columns = (
        ["Head 1", "Head 2"]
        if of == "heads"
        else ["0 [CLS]", "1 the", "2 …", "3 drank", "4 hot", "5 [MASK]", "6 [SEP]"]
    )
    assert [*found.columns] == columns
    assert found.record["n"] == [3] * len(columns)
    assert found.record["noise"]["effects"][of] == found.effects["noise"].tolist()


def test_texts_of_other_lengths_are_averaged_by_what_differs(made: Made) -> None:
    model = bertcli.load(made(head="mlm", seed=402, tokenizer="both"))
    found = bertcli.patch_pairs(model, OTHER)
    # Positions in the second text: [CLS], before, different, after, [MASK], [SEP]; the third pair lacks "and".
    places = {
        "[CLS]": ([0], [0], [0]),
        "before": ([1], [1, 2, 3, 4], [1, 2]),
        "different": ([2], [5], []),
        "after": ([3], [6, 7], [3]),
        "[MASK]": ([4], [8], [4]),
        "[SEP]": ([5], [9], [5]),
    }
    assert [*found.columns] == [*places]
    single = [bertcli.patch(model, a, b).effects["denoise"] for a, b in OTHER]
    for column, of_pairs in enumerate(places.values()):
        means = [one[:, at].mean(axis=1) for one, at in zip(single, of_pairs, strict=True) if at]
        np.testing.assert_allclose(found.effects["denoise"][:, column], np.mean(means, axis=0), atol=1e-9)
    assert found.record["n"] == [3, 3, 2, 3, 3, 3]
    assert "Texts have 6 to 10 tokens, so positions cannot be averaged" in found.averaged
    assert "Fewer pairs have such tokens: 2 for different" in found.averaged


def test_tokens_between_two_differences_are_called_so(made: Made) -> None:
    model = bertcli.load(made(head="mlm", seed=402, tokenizer="both"))
    a, b = "the king drank hot tea and a [MASK]", "the queen drank hot paris and a [MASK]"
    (view,) = patches(model, a, PatchOptions(b), ("layers",))
    assert view.roles == (
        *("[CLS]", "before", "different", "between", "between", "different", "after", "after", "[MASK]", "[SEP]"),
    )


def test_intervals_are_of_the_pairs(made: Made) -> None:
    """About as wide as a mean's 1.96 standard errors; none for fewer than ten pairs, or where all have one effect."""
    model = bertcli.load(made(head="mlm", seed=402, tokenizer="both"))
    pairs = EQUAL[:24]
    found = bertcli.patch_pairs(model, pairs, of="heads")
    single = np.array([bertcli.patch(model, a, b, of="heads").effects["denoise"] for a, b in pairs])
    error = single.std(axis=0, ddof=1) / len(pairs) ** 0.5
    low, high = (np.array(found.record[name]["heads"]) for name in ("low", "high"))
    assert (low < found.effects["denoise"]).all()
    assert (found.effects["denoise"] < high).all()
    np.testing.assert_allclose((high - low) / (2 * 1.96 * error), 1, atol=0.4)
    few = bertcli.patch_pairs(model, pairs[:9], of="heads")
    assert (few.record["low"]["heads"], few.record["no_interval"]) == (
        [[None, None]] * 2,
        ["fewer than 10 pairs: too few to resample"],
    )
    # Before any layer a text's own tokens carry all of the difference, or nothing.
    states = bertcli.patch_pairs(model, pairs)
    assert states.effects["denoise"][0] == pytest.approx([0, 0, 1, 0, 0, 0, 0], abs=1e-5)
    assert states.record["low"]["layers"][0] == [None] * 7
    assert states.record["no_interval"] == ["the same in all pairs"]


def test_pairs_are_asked_about_their_own_words(made: Made, caplog: pytest.LogCaptureFixture) -> None:
    model = bertcli.load(made(head="mlm", seed=402, tokenizer="both"))
    caplog.set_level("INFO", "bertcli")
    words = [("tea", "paris"), ("dog", "cat")]
    asked = [(*pair, *of_pair) for pair, of_pair in zip(EQUAL, words, strict=False)]
    found = bertcli.patch_pairs(model, asked, of="heads")
    single = [bertcli.patch(model, a, b, word=word, foil=foil, of="heads") for a, b, word, foil in asked]
    np.testing.assert_allclose(found.effects["denoise"], np.mean([one.effects["denoise"] for one in single], axis=0))
    assert found.meaning == "the logit difference of each pair's word and foil at the mask"
    assert caplog.messages == ["each pair is asked about its own word and foil."]
    by_option = bertcli.patch_pairs(model, asked, of="heads", word="tea")
    single = [bertcli.patch(model, a, b, word="tea", of="heads") for a, b, *_ in asked]
    np.testing.assert_allclose(
        by_option.effects["denoise"], np.mean([one.effects["denoise"] for one in single], axis=0)
    )
    assert caplog.messages[1].startswith("the fields word and foil are not used")


def test_pairs_without_a_difference_are_left_out_and_counted(made: Made) -> None:
    folder = made(head="mlm", seed=402, tokenizer="both")
    model = bertcli.load(folder)
    pairs = [*EQUAL[:2], ("the [MASK]", "The [MASK]"), (*EQUAL[2], "of tea"), ("the [MASK]", "THE [MASK]")]
    found = bertcli.patch_pairs(model, pairs)
    assert found.left_out == {
        "the same tokens in both texts": 2,
        "a word that is not one piece of the vocabulary": 1,
    }
    assert len(found.results) == 2
    assert (
        "3 of 5 pairs left out: 2 with the same tokens in both texts; 1 with a word that is not one piece of the "
        "vocabulary."
    ) in found.below()
    with pytest.raises(BertcliError, match="None of the 1 pair shows a difference to locate: 1 with the same tokens"):
        bertcli.patch_pairs(model, pairs[2:3])


def test_results_that_hardly_differ_are_left_out(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    model = bertcli.load(made(head="mlm", seed=402, tokenizer="both"))
    single = [bertcli.patch(model, a, b) for a, b in EQUAL[:6]]
    differences = [abs(one.value_a - one.value_b) for one in single]
    monkeypatch.setattr("bertcli.wings.interpret.compute.patch.LEAST_DIFFERENCE", np.median(differences))
    found = bertcli.patch_pairs(model, EQUAL[:6])
    (why,) = found.left_out
    assert (found.left_out[why], len(found.results)) == (3, 3)
    assert why.startswith("results less than ")


def test_what_cannot_be_used_is_an_error_that_names_the_pair(made: Made, tmp_path: Path) -> None:
    folder = made(head="mlm", seed=402, tokenizer="both")
    model = bertcli.load(folder)
    for pairs, message in (
        ([EQUAL[0], ("the [MASK]", "the king")], r"Pair 1: 'the king' has 0 \[MASK\]"),
        ([("a",)], r"Pair 0 is \('a',\): give two texts"),
        ([("a", 3)], r"Pair 0 is \('a', 3\)"),
        ("ab", "takes a list of pairs"),
        ([], "no pairs"),
    ):
        with pytest.raises(BertcliError, match=message):
            bertcli.patch_pairs(model, pairs)
    for name, content, message in (
        ("x.csv", "x,y\n1,2\n", "x.csv, line 2: there is no field a (or clean, text); fields are 'x', 'y'"),
        ("x.jsonl", '{"a": "x", "b": 3}\n', "x.jsonl, line 1: the field 'b' is 3, which is not a text"),
        ("w.jsonl", '{"a": "x", "b": "y", "word": 3}\n', "w.jsonl, line 1: the field 'word' is 3"),
        ("x.txt", "one text\n", "x.txt has no named fields"),
        ("e.jsonl", "", "e.jsonl has no pairs of texts"),
        ("m.csv", "a,b\nthe [MASK],the king\n", "m.csv, line 2: 'the king' has 0 [MASK]"),
    ):
        file = tmp_path / name
        file.write_text(content)
        done = run("patch", "-m", folder, "-i", file)
        assert (done.status, done.err.count("\n")) == (1, 1)
        assert message in done.err


def test_what_the_model_or_an_option_lacks_is_no_fault_of_a_line(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text("a,b\nthe king,the queen\n")
    model = made(head="classifier", num_labels=3, seed=401, tokenizer="both")
    done = run("patch", "-m", model, "-i", file, "--label", "LABEL_9")
    assert done.err.startswith("Error: There is no label 'LABEL_9'; this model's are ")
    file.write_text("a,b,label\nthe king,the queen,LABEL_9\n")
    done = run("patch", "-m", model, "-i", file)
    assert done.err.splitlines()[-1].startswith(f"Error: {file}, line 2: There is no label 'LABEL_9'")
    file.write_text("a,b,label\nthe king,the queen,LABEL_2\n")
    assert "The log-odds of LABEL_2: on average" in run("patch", "-m", model, "-i", file).out


def test_patch_command_reads_pairs_from_every_kind_of_table(made: Made, tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    folder = made(head="mlm", seed=402, tokenizer="both")
    pairs = EQUAL[:3]
    expected = bertcli.patch_pairs(bertcli.load(folder), pairs, of="heads").record
    lines = {"csv": ",", "tsv": "\t"}
    for ending, separator in lines.items():
        rows = [separator.join(row) for row in [("clean", "corrupted"), *pairs]]
        (tmp_path / f"pairs.{ending}").write_text("\n".join(rows) + "\n")
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps({"a": a, "b": b}) + "\n" for a, b in pairs))
    table = pyarrow.table({"text": [a for a, _ in pairs], "text_pair": [b for _, b in pairs]})
    pyarrow.parquet.write_table(table, tmp_path / "pairs.parquet")
    for ending in (*lines, "jsonl", "parquet"):
        done = run("patch", "-m", folder, "-i", tmp_path / f"pairs.{ending}", "--of", "heads", "--format", "json")
        assert json.loads(done.out) == expected, ending
    for ending in (*lines, "jsonl"):
        piped = (tmp_path / f"pairs.{ending}").read_text()
        done = run("patch", "-m", folder, "-i", "-", "--of", "heads", "--format", "json", stdin=piped)
        assert json.loads(done.out) == expected, ending


def test_patch_command_prints_and_writes_means(made: Made, tmp_path: Path) -> None:
    """Eleven pairs of several lengths, in two of which a word has more pieces; and one pair without a difference."""
    rows = [("a", "b"), *EQUAL[:8], OTHER[1], *[(f"the {word}s [MASK]", "the cat [MASK]") for word in ("king", "dog")]]
    file = tmp_path / "pairs.csv"
    file.write_text("".join(f"{a},{b}\n" for a, b in [*rows, ("the [MASK]", "The [MASK]")]))
    command = ("patch", "-m", made(head="mlm", seed=402, tokenizer="both"), "-i", file)
    shown = run(*command, "--of", "heads").out
    heading, _, *rows_shown = shown.splitlines()
    assert heading.split() == ["Layer", "Head", "1", "Head", "2"]
    record = json.loads(run(*command, "--of", "heads", "--format", "json").out)
    low, high, mean = (record[name]["heads"][0][1] for name in ("low", "high", "effects"))
    assert f"{mean:+.2f} [{low:.2f}, {high:.2f}]" in rows_shown[0]
    assert "1 of 12 pairs left out: 1 with the same tokens in both texts." in shown
    assert "In brackets: 95 % confidence intervals" in shown
    csv = run(*command, "--of", "heads", "--format", "csv").out.splitlines()
    assert csv[0] == "of,direction,layer,head,effect,low,high,n"
    assert csv[2] == f"heads,denoise,1,2,{mean},{low},{high},11"
    narrow = run(*command, environment={"COLUMNS": "60"}).out
    assert max(map(len, narrow.splitlines())) <= 60
    assert "or a wider terminal, shows 95 %" in " ".join(narrow.split())
    assert run(*command, "--format", "csv").out.splitlines()[3].startswith("layers,denoise,0,different,")
    page = tmp_path / "pairs.html"
    assert run(*command, "-o", page).status == 0
    text = page.read_text(encoding="utf-8")
    assert text.count('<table class="heat') == 4
    assert f"{mean:+.2f}<small>[{low:.2f}, {high:.2f}]</small>" in text
    assert "a dog and the queen drank hot [MASK]" in text


def test_patch_command_takes_two_texts_or_a_file() -> None:
    for arguments, message in (
        ((), "give two texts, or a file of pairs"),
        (("one text",), "give two texts, or a file of pairs"),
        (("one", "two", "-i", "pairs.csv"), "give two texts or --input, not both"),
        (("one", "-i", "pairs.csv"), "give two texts or --input, not both"),
    ):
        done = run("patch", *arguments)
        assert done.status == 2
        assert message in " ".join(done.err.replace("│", "").split())

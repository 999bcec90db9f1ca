"""Probes: as scikit-learn has them on transformers' states (`tests/reference/record_probe.py`), and as a command."""

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.checkpoint_files import Dense, Sentence, write_weights
from helpers.json_files import write_json
from helpers.lines import write_lines
from helpers.near import assert_near
from helpers.recorded import recorded
from helpers.static_models import write_static
from helpers.terminal import bertcli, wrong_usage
from reference.probe_cases import DATA, MODEL, labelled, reviews, sentences

import bertcli as library
from bertcli.errors import BertcliError
from bertcli.folder.files import Folder
from bertcli.model import Model
from bertcli.statistics.intervals import Share, wilson
from bertcli.weights.tensors import open_tensors
from bertcli.wings.interpret.compute import logistic

pytestmark = pytest.mark.usefixtures("few_draws")
RECORDED = recorded("probe.json")["layers"]
SENTIMENT = ("-m", MODEL)
CONLL = "".join(f"a DT O\n{word} {tag} O\n\n" for word, tag in 6 * (("king", "NN"), ("cat", "NN"), ("sat", "VB")))


def model_of(made: Made, **others: Any) -> Model:
    return library.load(made(seed=7, tokenizer="both", **others))


@pytest.mark.parametrize("unit", ["texts", "words"])
def test_figures_are_those_of_scikit_learn_on_the_states_of_transformers(unit: str) -> None:
    data = reviews() if unit == "texts" else sentences()
    found = library.probe(library.load(MODEL), *data, words=unit == "words").record
    assert len(found["layers"]) == len(RECORDED[unit]) == 5
    for layer, expected in zip(found["layers"], RECORDED[unit], strict=True):
        assert layer["accuracy"]["value"] == pytest.approx(expected["accuracy"], abs=0.005)
        assert layer["macro_f1"]["value"] == pytest.approx(expected["macro_f1"], abs=0.01)
    assert found["best"] == int(np.argmax([layer["accuracy"] for layer in RECORDED[unit]]))


@pytest.mark.usefixtures("ten_draws")
def test_intervals_are_those_of_evaluate() -> None:
    """Accuracy has Wilson's of the items, selectivity one of resampled items; the values are means over folds."""
    found = library.probe(library.load(MODEL), *reviews(), folds=4)
    layer = found.layers[2]
    assert layer.control_draws.shape == (10, 4)
    assert layer.selectivity.value == pytest.approx(layer.accuracy.value - layer.control_draws.mean())
    assert layer.control_spread == pytest.approx(np.std(layer.control_draws.mean(axis=1), ddof=1))
    right = layer.confusion.trace()
    assert (layer.accuracy.low, layer.accuracy.high) == pytest.approx(wilson(Share(right, 40)))
    reach = 1.96 * np.std(layer.selectivity.drawn)
    assert layer.selectivity.low == pytest.approx(layer.selectivity.value - reach, abs=0.04)
    assert layer.selectivity.high == pytest.approx(layer.selectivity.value + reach, abs=0.04)


@pytest.mark.parametrize("mode", ["mean", "cls"])
def test_states_are_pooled_as_encode_pools_them(made: Made, mode: str) -> None:
    model, (texts, labels) = model_of(made, sentence=Sentence((mode,), normalize=True)), labelled()
    found = library.probe(model, texts, labels)
    assert found.record["pooling"] == mode
    for layer in range(3):
        expected = model.encode(texts, layer=layer, normalize=False)
        np.testing.assert_allclose(found.vectors(layer, found.pooling), expected, atol=1e-6)
    names = np.array(found.labels)
    assert names[found.validation.true.argmax(axis=1)].tolist() == labels


def test_a_word_is_the_mean_of_its_pieces(made: Made) -> None:
    model, words = model_of(made), ["the", "unbelievably", "good", "New", "king", "of Paris"]
    found = library.probe(model, [words] * 3, [["1", "2", "3", "4", "5", "6"]] * 3, words=True, folds=3)
    means = found.vectors(2, ())[:6]
    (block,) = model.encode_blocks([" ".join(words)], pooling="none", layer=2)
    pieces = block.records()[0]["tokens"]
    owners = [1 if piece.startswith(("##", "un")) else None for piece in pieces]
    first, last = owners.index(1), len(owners) - owners[::-1].index(1)
    assert last - first > 1
    assert_near(means[1], np.mean(block.vectors[0][first:last], axis=0), 1e-6)
    assert_near(means[0], block.vectors[0][1], 1e-6)
    assert_near(means[5], np.mean(block.vectors[0][-3:-1], axis=0), 1e-6)
    assert found.validation.true.argmax(axis=1).tolist() == [0, 1, 2, 3, 4, 5] * 3


@pytest.mark.usefixtures("ten_draws")
def test_folds_have_as_many_of_each_label_and_sentences_stay_whole(made: Made) -> None:
    model = model_of(made)
    texts, _ = labelled()
    labels = np.repeat([0, 1, 2], [22, 11, 7])
    folds = library.probe(model, texts, labels.tolist()).validation.folds
    counts = np.array([np.bincount(folds[labels == label], minlength=5) for label in range(3)])
    assert np.ptp(counts, axis=1).max() <= 1
    assert np.ptp(counts.sum(axis=0)) <= 1
    words, tags = sentences()
    found = library.probe(model, words, tags, words=True)
    with pytest.raises(BertcliError, match=r"^A saved probe classifies texts, not words\.$"):
        found.save("x.safetensors")
    validation = found.validation
    ends = np.cumsum([*map(len, words)])
    of_sentences = np.split(validation.folds, ends[:-1])
    assert all(len({*some}) == 1 for some in map(np.ndarray.tolist, of_sentences))
    assert sorted({*validation.folds.tolist()}) == [0, 1, 2, 3, 4]
    spelled = [word for some in words for word in some]
    assert validation.control.shape == (10, len(spelled))
    assert len({*map(tuple, validation.control.tolist())}) == 10, "draws differ"
    true = validation.true.argmax(axis=1)
    for draw in validation.control:
        types: dict[str, int] = {}
        for word, item in zip(spelled, draw.tolist(), strict=True):
            assert types.setdefault(word, item) == item, "a word has one label in the control task"
        assert {*true[draw].tolist()} == {0, 1}
        assert (true[draw] != true).any()


@pytest.mark.usefixtures("ten_draws")
def test_control_labels_are_drawn_as_often_as_true_ones_are_there(made: Made) -> None:
    texts = [f"the king {'tea ' * (i % 7)}{i}" for i in range(40)]
    labels = ["a"] * 32 + ["b"] * 8
    found = library.probe(model_of(made), texts, labels)
    shares = found.validation.true[found.validation.control][:, :, 1].mean(axis=1)
    assert len(shares) == 10
    assert 0.1 < shares.mean() < 0.3
    assert all(0 < share < 0.5 for share in shares)
    assert found.labels == ["a", "b"]
    assert {layer["majority"] for layer in found.record["layers"]} == {0.8}


def test_what_cannot_be_used_is_left_out_with_its_label(made: Made) -> None:
    model, (texts, labels) = model_of(made), labelled()
    more = [text for one in texts for text in (one, " ".join([one] * 8))]
    both = [label for one in labels for label in (one, "long")]
    found = library.probe(model, more, both, truncation="error", keep_going=True)
    assert found.record == library.probe(model, texts, labels).record
    words, tags = sentences()
    cut = library.probe(model, words, tags, words=True, max_length=5, truncation="silent")
    assert cut.record["count"] < sum(map(len, words))


def test_second_texts_are_read(made: Made) -> None:
    model, (texts, labels) = model_of(made), labelled()
    alone, paired = library.probe(model, texts, labels), library.probe(model, texts, labels, texts[::-1])
    assert alone.record != paired.record


def test_control_task_tells_pairs_of_one_first_text_apart(made: Made) -> None:
    texts, labels = (some[:24] for some in labelled())
    found = library.probe(model_of(made), ["tea"] * len(texts), labels, texts, folds=3)
    assert len({*texts}) == 24
    assert all(layer["control"] < 0.9 for layer in found.record["layers"]), "pairs have labels of their own"


def test_layers_are_those_of_the_network_without_what_a_folder_puts_after_it(made: Made) -> None:
    data = labelled()
    plain, projected = (model_of(made, sentence=Sentence(dense=dense)) for dense in ((), (Dense(3),)))
    found = library.probe(plain, *data, folds=3).record
    assert len(found["layers"]) > 1
    assert library.probe(projected, *data, folds=3).record == found


def test_a_static_model_has_one_layer(tmp_path: Path) -> None:
    write_static(tmp_path, "root")
    found = library.probe(library.load(tmp_path), *labelled(), folds=3).record
    assert [layer["layer"] for layer in found["layers"]] == [0]
    assert found["best"] == 0


def test_what_does_not_fit_is_refused(made: Made) -> None:
    model, (texts, labels) = model_of(made), labelled()
    few = ["rare" if i < 2 else label for i, label in enumerate(labels)]
    for call, message in (
        ((texts, labels[1:]), "39 labels do not fit 40 texts"),
        ((texts, ["x"] * 40), "the only one here is 'x'"),
        (([], []), "and there is none"),
        ((texts, [["x", "y"], ["x"]] * 20), "Every text has the label 'x'"),
        ((texts, few), "2 texts with the label 'rare' cannot be divided among 5 folds"),
        (([["a"], ["b"]], [["x"], ["y"]], None, True), "2 texts cannot be divided among"),
        (([["a", "b"]], [["x"]], None, True), "do not fit"),
    ):
        with pytest.raises(BertcliError, match=message):
            library.probe(model, *call[:3], words=len(call) > 3)
    for options, message in (
        ({"words": True, "pooling": "cls"}, "A word is the mean of its pieces"),
        ({"save": "folder"}, "no longer as a model's folder"),
    ):
        with pytest.raises(BertcliError, match=message):
            library.probe(model, texts, labels, **options)
    with pytest.raises(BertcliError, match="not a model"):
        library.probe("bert", texts, labels)  # type: ignore[arg-type]


def test_damaged_weights_are_an_error(made: Made, tmp_path: Path) -> None:
    folder = copytree(made(seed=7, tokenizer="both"), tmp_path / "model")
    arrays = {name: ("F32", tensor.float32().copy()) for name, tensor in open_tensors(Folder(folder)).items()}
    arrays["bert.encoder.layer.1.output.dense.weight"][1][3, 3] = np.nan
    (folder / "model.safetensors").unlink()
    write_weights(folder, arrays, 0)
    assert "holds NaN or infinite numbers" in bertcli("probe", "-i", DATA, "-m", folder).error


def test_a_file_without_its_option_is_answered_with_the_option() -> None:
    wrong_usage("probe", "reviews.csv", why="Did you mean bertcli probe -i reviews.csv?")


# ------------------------------------------------------------------------------------------------------- the command


@pytest.mark.usefixtures("ten_draws")
def test_the_command_shows_a_table_that_fits_a_terminal() -> None:
    left = bertcli("probe", "-i", DATA, *SENTIMENT, environment={"COLUMNS": "80"})
    assert left.status == 0
    lines = left.out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert [line.split("  ")[0].strip() for line in lines[2:7]] == [
        "embeddings",
        *(f"after layer {i}" for i in (1, 2, 3, 4)),
    ]
    assert "after layer 2  0.85 ██████▊   [0.71, 0.93]" in left.out
    below = " ".join(left.out.split())
    assert "Best of 5 layers, chosen on these folds: after layer 2, 0.85 [0.71, 0.93]. Majority: 0.5000" in below
    assert "Control is the mean of 10 draws of random labels; their standard deviation is 0." in below
    assert "275 fits: all have converged within" in below
    assert "Note: 40 texts are few: differences between layers are mostly chance below 100." in left.err
    record = bertcli("probe", "-i", DATA, *SENTIMENT, "--format", "json").json
    assert record == library.probe(library.load(MODEL), *reviews()).record
    head, first = bertcli("probe", "-i", DATA, *SENTIMENT, "--format", "csv").out.splitlines()[:2]
    assert head.startswith("layer,accuracy_value,accuracy_low,accuracy_high,macro_f1_value,")
    assert first.startswith("0,0.625,0.470")


@pytest.mark.usefixtures("ten_draws")
def test_fits_that_did_not_converge_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic, "MOST_STEPS", 2)
    left = bertcli("probe", "-i", DATA, *SENTIMENT)
    assert "271 have not converged" in " ".join(left.out.split())


def test_the_page_draws_the_curve_and_the_confusion_of_a_layer(tmp_path: Path) -> None:
    file = tmp_path / "probe.html"
    data = tmp_path / "data.csv"
    data.write_text(DATA.read_text(encoding="utf-8").replace("negative", "<b>bad"), encoding="utf-8")
    assert bertcli("probe", "-i", data, *SENTIMENT, "-o", file).out == ""
    page = file.read_text(encoding="utf-8")
    assert "<title>0.85 [0.71, 0.93]</title>" in page
    assert "does not show that the model uses it" in page
    assert all(f">{name}</text>" in page for name in ("accuracy", "majority", "control")), "lines have their names"
    assert "Probe (after layer 2): confusion matrix, true labels down" in page
    assert "&lt;b&gt;bad" in page
    assert "<b>bad" not in page
    assert page.count("<circle") == 5
    assert "█" not in page
    accuracy, majority, control = (one.partition('"')[0] for one in page.split('<polyline points="')[1:])
    assert accuracy.startswith("0.00,37.50 ")  # of the embeddings 0.625
    assert accuracy.count(",") == control.count(",") == 5
    assert {point.partition(",")[2] for point in majority.split()} == {"50.00"}
    assert bertcli("probe", "-i", data, *SENTIMENT, "-o", file, "--layer", "-1").status == 0
    assert "Probe (after layer 4): confusion matrix, true labels down" in file.read_text(encoding="utf-8")


def test_words_come_as_columns_or_lists(made: Made, tmp_path: Path) -> None:
    words, tags = sentences()
    model = ("-m", made(seed=7, tokenizer="both"))
    expected = library.probe(library.load(made(seed=7, tokenizer="both")), words, tags, words=True).record
    both = [list(zip(*pair, strict=True)) for pair in zip(words, tags, strict=True)]
    files = {
        "a.conll": "\n".join("".join(f"{word}\tX\t{tag}\n" for word, tag in some) for some in both),
        "b.conllu": "\n".join(
            "# text = x\n1-2\tx\t_\t_\n"
            + "".join(f"{i}\t{word}\t{word}\t{tag}\tX\n" for i, (word, tag) in enumerate(some, 1))
            for some in both
        ),
        "c.jsonl": "\n".join(
            json.dumps({"tokens": some, "ner_tags": own}) for some, own in zip(words, tags, strict=True)
        ),
        "d.txt": "# a comment\n" + "\n".join("".join(f"{tag} {word} _\n" for word, tag in some) for some in both),
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
        columns = ("--column", "2", "--label-column", "1") if name == "d.txt" else ()
        left = bertcli("probe", "-i", tmp_path / name, *model, "--words", *columns, "--format", "json")
        assert left.json == expected, name


def test_any_tag_is_one_and_columns_have_numbers(made: Made, tmp_path: Path) -> None:
    file, model = tmp_path / "data.conll", ("-m", made(seed=7, tokenizer="both"))
    file.write_text("# begins\n" + CONLL)
    record = bertcli("probe", "-i", file, *model, "--words", "--label-column", "2", "--format", "json").json
    assert (record["labels"], record["count"]) == (["DT", "NN", "VB"], 36)
    assert "the only one here is 'O'" in bertcli("probe", "-i", file, *model, "--words").error
    wrong = bertcli("probe", "-i", file, *model, "--words", "--label-column", "tag")
    assert "has columns without names: give the number of one, from 1 (--label-column)" in wrong.error
    left = bertcli("probe", "-i", file, *model, "--words", "--label-column", "9")
    assert "line 2: 'a DT O' has no word and a tag" in left.error


def test_numbers_are_labels_and_a_row_without_one_is_left_out(made: Made, tmp_path: Path) -> None:
    texts, _ = labelled()
    file, model = tmp_path / "data.jsonl", ("-m", made(seed=7, tokenizer="both"))
    rows = [json.dumps({"text": text, "label": i % 2}) for i, text in enumerate(texts)]
    write_lines(file, [*rows, json.dumps({"text": "x", "label": ""})])
    assert (
        "line 41: there is no label: mend it, or leave such rows out (--keep-going)"
        in bertcli("probe", "-i", file, *model).error
    )
    write_lines(file, [*rows, json.dumps({"text": "x", "label": ""}), "{}"])
    left = bertcli("probe", "-i", file, *model, "--keep-going", "--format", "json")
    record = left.json
    assert (record["labels"], record["count"]) == (["0", "1"], 40)
    assert "Note: 2 left out; the first: " in left.err
    lists = tmp_path / "lists.jsonl"
    write_json(lists, {"tokens": ["a", "b"], "tags": ["x", None]})
    assert "line 1: null is not a text" in bertcli("probe", "-i", lists, *model, "--words").error
    write_json(lists, {"tokens": ["a", "b"], "tags": [1]})
    assert "two lists of one length" in bertcli("probe", "-i", lists, *model, "--words").error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("-i", DATA, "--label-column", "nope"),
            "has no field 'nope' (--label-column); choose from 'text', 'label', 'about'.",
        ),
        (("-i", "nowhere.csv"), "Cannot read nowhere.csv"),
        (("-i", DATA, "--words"), "does not have the fields of tag"),
        (("-i", DATA, "--layer", "9"), "There is no layer 9: layers are 0 (the embeddings) to 4"),
        (
            ("-i", DATA, "-o", "page.txt"),
            "must be one of .json, .jsonl, .csv, .tsv, .md, .parquet, .html, .pdf, .svg, .png, .safetensors.",
        ),
    ],
)
def test_the_command_says_in_a_line_what_is_wrong(arguments: tuple[str | Path, ...], message: str) -> None:
    assert message in bertcli("probe", *arguments, *SENTIMENT).error


def test_the_command_refuses_a_file_without_labels_and_wrong_usage(tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("one\ntwo\n")
    assert "has no named fields, so no labels" in bertcli("probe", "-i", file, *SENTIMENT).error
    wrong_usage("probe", why="give a file of labelled texts (-i).")
    wrong_usage("probe", "-i", DATA, "--folds", "2", why="'--folds': 2 is not in the range x>=3.")
    wrong_usage("probe", "-i", DATA, "--folds", "11", why="(--folds) is 11: choose 3 to 10.")
    why = "a classifier (.safetensors) is of texts, not of words"
    wrong_usage("probe", "-i", DATA, "--words", "-o", "x.safetensors", why=why)


def test_the_command_counts_texts_and_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    totals = []

    def counted(items: Any, task: str, unit: str, total: int | None) -> Any:
        totals.append((task, unit, total))
        return items

    monkeypatch.setattr("bertcli.report.progress.counted", counted)
    assert bertcli("probe", "-i", DATA, *SENTIMENT).status == 0
    assert totals == [("probe", "texts", 40), ("probe", "layers", 5), ("probe", "controls", 5)]


def test_words_that_all_are_right_have_no_interval_but_a_reason(tmp_path: Path) -> None:
    """Six sentences are too few to resample, and twelve alike show no spread: never [1.0000, 1.0000]."""
    file = tmp_path / "words.conll"
    for count, reason in ((6, "fewer than 10 sentences: too few to resample"), (12, "all sentences give the same")):
        file.write_text("won O\ntoday O\nPeru B-LOC\n\n" * count)
        left = bertcli("probe", "-i", file, "--words", "--folds", "3")
        assert "[1.0000, 1.0000]" not in left.out
        assert "1.000 (no interval)" in left.out
        assert reason in " ".join(left.out.split())
    record = bertcli("probe", "-i", file, "--words", "--folds", "3", "--format", "json").json
    figure = record["layers"][0]["accuracy"]
    assert (figure["value"], figure["low"], figure["high"], figure["n"]) == (1.0, None, None, 3 * 12)
    assert reason in figure["reason"]


def test_clusters_are_in_one_fold_and_resampled_together(tmp_path: Path) -> None:
    """Twelve nouns, each with a label of its own drawing: what is known of a noun helps for no other noun.

    With the noun's texts in other folds a probe learns the nouns by heart; with --cluster it cannot.
    """
    nouns = ["tea", "rain", "cat", "dog", "river", "house", "king", "film", "road", "tree", "book", "car"]
    rows = [f"the {noun} {ending},{'ab'[i % 5 % 2]},{noun}" for i, noun in enumerate(nouns) for ending in ENDINGS]
    file = tmp_path / "nouns.csv"
    write_lines(file, ["text,label,noun", *rows])
    options = ("--layer", "0", "--format", "json", *SENTIMENT)
    alone = bertcli("probe", "-i", file, *options).json["layers"][0]["accuracy"]
    together = bertcli("probe", "-i", file, *options, "--cluster", "noun").json["layers"][0]["accuracy"]
    assert alone["value"] > 0.95
    assert together["value"] < 0.75
    assert together["high"] - together["low"] > 2 * (alone["high"] - alone["low"])
    text, label, noun = (list(column) for column in zip(*(row.split(",") for row in rows), strict=True))
    found = library.probe(library.load(MODEL), text, label, clusters=noun)
    folds = found.validation.folds
    assert all(len({*folds[np.array(noun) == one]}) == 1 for one in nouns)
    assert found.layers[0].accuracy.record == together
    shown = bertcli("probe", "-i", file, *options[:2], *SENTIMENT, "--cluster", "noun")
    assert "with 95 % intervals of clusters as a whole" in " ".join(shown.out.split())
    few = bertcli("probe", "-i", file, "--cluster", "label").error
    assert "2 clusters cannot be divided among 5 folds: give fewer folds (--folds)" in few
    with pytest.raises(BertcliError, match="2 clusters do not fit 48 texts"):
        library.probe(library.load(MODEL), text, label, clusters=["a", "b"])


ENDINGS = ("is here", "was there", "is old", "may come")

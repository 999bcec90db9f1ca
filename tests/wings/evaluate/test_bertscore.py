"""`bertcli evaluate --task bertscore`: candidates and references, beside the numbers that bert-score recorded."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.json_files import write_json_lines
from helpers.near import assert_near
from helpers.recorded import recorded
from helpers.static_models import write_static
from helpers.terminal import bertcli, wrong_usage
from reference.bertscore_cases import BASELINE, CANDIDATES, CASES, REFERENCES, SAMPLE, Case, rows, write_model
from wings.evaluate.test_tasks import judged

import bertcli as library
from bertcli.wings.evaluate.evaluators.bertscore import LAYERS

RECORDED = recorded("bertscore.json")
TASK = ("--task", "bertscore")
FIGURES = ("precision", "recall", "f1")
MODEL = ("-m", "bert-mini-mlm", "--layer", "3")


def write(folder: Path, lines: Any) -> Path:
    file = folder / "texts.jsonl"
    write_json_lines(file, lines)
    return file


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bertscore")


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_those_of_bert_score(name: str, models: Path, tmp_path: Path) -> None:
    case: Case = CASES[name]
    baseline = tmp_path / "baseline.tsv"
    baseline.write_text(BASELINE)
    options: dict[str, Any] = {"baseline": str(baseline)} if case.baseline else {}
    folder = write_model(models, case.model)
    data = write(tmp_path, rows(case))
    evaluation = library.evaluate(data, folder, task="bertscore", layer=case.layer, idf=case.idf, **options)
    (model,) = evaluation.record["models"]
    expected = RECORDED["cases"][name]
    found = [[text[figure] for figure in FIGURES] for text in model["texts"]]
    assert_near(np.array(found, float), np.array(expected["scores"], float), 1e-5)
    assert model["signature"].partition("(")[0] == expected["cited"].partition("(")[0]
    assert model["signature"].partition(")")[2] == expected["cited"].partition(")")[2]
    for place, figure in enumerate(FIGURES):
        defined = [row[place] for row in expected["scores"] if row[place] is not None]
        mean = model["metrics"][figure]
        assert mean["n"] == len(defined)
        if defined:
            assert mean["value"] == pytest.approx(np.mean(defined), abs=1e-5)


def test_the_layer_is_the_one_that_the_authors_choose(tmp_path: Path) -> None:
    """By the model's name, under any owner and in a folder; another name has none."""
    recorded = RECORDED["layers"]
    assert {name: recorded.get(name) for name in LAYERS} == LAYERS
    assert len(LAYERS) == 97
    file = write(tmp_path, rows(CASES["bert"]))
    known, too_deep = tmp_path / "bert_uncased_L-4_H-128_A-2", tmp_path / "bert-large-uncased"
    for link in (known, too_deep):
        link.symlink_to(SAMPLE)
    (model,) = judged(file, *TASK, "-m", known)["models"]
    assert model["signature"].startswith("google/bert_uncased_L-4_H-128_A-2_L3_no-idf_version=0.3.12(bertcli=")
    left = bertcli("evaluate", file, *TASK, "-m", known)
    assert "Cite as google/bert_uncased_L-4_H-128_A-2_L3_no-idf_version=" in left.out
    assert "states after layer 3, the authors' choice for google/bert_uncased_L-4_H-128_A-2 (--layer)" in left.err
    assert "There is no layer 18 (--layer):" in bertcli("evaluate", file, *TASK, "-m", too_deep).error
    assert judged(file, *TASK, "-m", known, "--layer", "-2")["models"] == [model]
    error = bertcli("evaluate", file, *TASK, "-m", "bert-mini-mlm").error
    assert error.endswith("choose no layer for bert-mini-mlm: give one of its layers, 1 to 4 (--layer).")


def test_two_systems_are_compared_in_pairs(tmp_path: Path) -> None:
    lines = [
        {"mt": text, "other": text.lower(), "ref": references, "lp": f"en-{number % 2}", "doc": number // 2}
        for number, (text, references) in enumerate(zip(CANDIDATES * 4, REFERENCES * 4, strict=True))
    ]
    file = write(tmp_path, lines)
    options = (*TASK, *MODEL, "--candidate-column", "mt", "--candidate-column", "other")
    record = judged(file, *options, "--by", "lp", "--cluster", "doc")
    first, second = record["models"]
    assert (first["model"], second["model"]) == ("bert-mini-mlm, mt", "bert-mini-mlm, other")
    assert record["clusters"] == 12
    assert {*first["by"]} == {"en-0", "en-1"}
    assert [*first["metrics"]] == ["f1", "precision", "recall"]
    difference = record["differences"][0]
    assert difference["value"] == pytest.approx(second["metrics"]["f1"]["value"] - first["metrics"]["f1"]["value"])
    assert first["metrics"]["f1"]["reason"] == (
        "fewer than 100 clusters: a few decide the mean, and may be missing here"
    )
    texts = [text["candidate"] for text in second["texts"]]
    assert texts == [line["other"] for line in lines]
    worst = first["worst"][0]
    assert worst["text"] == CANDIDATES[3]
    assert worst["expected"] == REFERENCES[3][0]
    assert worst["found"] == f"F1 {first['texts'][3]['f1']:.4f}"
    alone = judged(file, *TASK, *MODEL, "--candidate-column", "other")["models"][0]
    # Texts that are computed beside others differ in the last digits.
    for one, other in zip(alone["texts"], second["texts"], strict=True):
        assert one == {**other, **{figure: pytest.approx(other[figure], abs=1e-6) for figure in FIGURES}}
    assert alone["model"] == "bert-mini-mlm"


def test_several_models_are_not_compared_by_their_scores(tmp_path: Path) -> None:
    file = write(tmp_path, rows(CASES["bert"]) * 2)
    page = tmp_path / "scores.html"
    command = ("evaluate", file, *TASK, *MODEL, "-m", "bert-mini-sentence")
    assert bertcli(*command, "-o", page).status == 0
    left = bertcli(*command)
    caution = "compare texts by one model, not models by their scores"
    cited = [f"Cite as {name}_L3_no-idf_version=0.3.12" for name in ("bert-mini-mlm", "bert-mini-sentence")]
    for text in (caution, *cited):
        assert text in left.out
        assert text in page.read_text()
    assert caution not in bertcli("evaluate", file, *TASK, *MODEL).out
    assert "mean similarity of the candidate's tokens to the nearest of the reference" in page.read_text()


@pytest.mark.parametrize(
    ("candidate", "reference"),
    [
        ("decoded", "references"),
        ("mt", "ref"),
        ("prediction", "references"),
        ("hypothesis", "reference"),
        ("hyp", "refs"),
    ],
)
def test_fields_of_published_data_are_known(candidate: str, reference: str, tmp_path: Path) -> None:
    file = write(tmp_path, [{candidate: "The cat sat.", reference: ["A cat sat.", "It sat."], "score": 1, "text": "x"}])
    (text,) = judged(file, *TASK, *MODEL)["models"][0]["texts"]
    assert text["candidate"] == "The cat sat."
    assert text["place"] == f"{file}, line 1"
    assert text["precision"] < 1


def test_what_is_cut_and_what_is_empty_is_said(tmp_path: Path) -> None:
    file = write(tmp_path, rows(CASES["bert.long"]) + rows(CASES["bert.empty"]))
    error = bertcli("evaluate", file, *TASK, *MODEL).err
    cut = "2 of 6 rows: a candidate or a reference has more than 256 tokens, and is cut there as bert-score cuts it"
    assert cut in error
    assert "4 of 6 rows: a candidate or a reference has no tokens, and scores 0." in error
    assert "had more than" not in error, "said once"
    long_reference = write(tmp_path, rows(CASES["bert.long"])[1:])
    with pytest.raises(library.BertcliError, match=r"A text of .*, line 1 .* has more than 256 tokens: shorten it."):
        library.evaluate(long_reference, "bert-mini-mlm", task="bertscore", layer=3, truncation="error")
    only = write(tmp_path, rows(CASES["bert.idf-of-one"]))
    left = bertcli("evaluate", only, *TASK, *MODEL, "--idf")
    assert "the precision or recall of 2 texts is not defined, since idf is 0 for every token" in left.err


def test_what_cannot_be_used_is_one_clear_line(tmp_path: Path) -> None:
    good = rows(CASES["bert"])
    file = write(tmp_path, good)

    def error(*arguments: str | Path, lines: Any = good) -> str:
        return bertcli("evaluate", write(tmp_path, lines), *TASK, *arguments).error

    fields = f"{file} does not have the fields of bertscore (candidate, reference)"
    unknown = error(*MODEL, lines=[{"candidate": "a", "other": "b"}])
    assert fields in unknown
    assert unknown.endswith("name them with --candidate-column and --pair-column.")
    assert "line 2: there is no 'reference'" in error(*MODEL, lines=[good[0], {"candidate": "a"}])
    assert "line 1: there is no reference to compare with" in error(*MODEL, lines=[{"candidate": "a", "reference": []}])
    assert "line 1: 1 is not a text" in error(*MODEL, lines=[{"candidate": "a", "reference": ["b", 1]}])
    assert "line 1: nan is not a text" in error(*MODEL, lines=[{"candidate": float("nan"), "reference": "a"}])
    assert "has no texts that can be used" in error(*MODEL, lines=[])
    assert "There is no layer 9 (--layer): bert-mini-mlm has layers 1 to 4" in error(
        "-m", "bert-mini-mlm", "--layer", "9"
    )
    with pytest.raises(library.BertcliError, match=re.escape("layer (--layer) is 'x', which is not a whole number")):
        library.evaluate(file, "bert-mini-mlm", task="bertscore", layer="x")  # type: ignore[arg-type]
    wrong_usage("evaluate", file, *TASK, why="such as roberta-large")
    twice = ("--column", "candidate", "--candidate-column", "candidate")
    wrong_usage("evaluate", file, *TASK, *MODEL, *twice, why="name one field: give one")
    assert "has no field 'b' (--candidate-column)" in error(*MODEL, "--candidate-column", "b")
    onnx = error(*MODEL, "--engine", "onnx")
    assert onnx.endswith("and layer 3 is asked for: use --engine numpy, or --layer 4.")
    reviews = Path(__file__).parents[2] / "data" / "reviews.csv"
    for option in (("--layer", "3"), ("--idf",), ("--baseline", "b.tsv"), ("--candidate-column", "text")):
        refused = bertcli("evaluate", reviews, "-m", "bert-mini-sentiment", *option).error
        assert f"{option[0]} is for bertscore" in refused
    assert bertcli("evaluate", file, *MODEL).error.endswith("give --task bertscore.")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read (--baseline): No such file"),
        ("", "is no file of baselines (--baseline): it needs the columns LAYER,P,R,F"),
        ("LAYER,P,R\n3,0.1,0.1\n", "is no file of baselines"),
        ("LAYER,P,R,F\n3,a,b,c\n", "is no file of baselines"),
        ("LAYER,P,R,F\n3,0.1,0.1\n", "is no file of baselines"),
        ("LAYER,P,R,F\n3,1,0.1,0.1\n", "is no file of baselines"),
        ("LAYER,P,R,F\n3,nan,0.1,0.1\n", "is no file of baselines"),
        (
            "LAYER,P,R,F\n0,0.1,0.1,0.1\n1,0.1,0.1,0.1\n",
            "has no baseline for layer 3 (--baseline): it has layers 0 to 1.",
        ),
    ],
)
def test_a_file_of_baselines_is_checked(text: str | None, message: str, tmp_path: Path) -> None:
    baseline = tmp_path / "baseline.tsv"
    if text is not None:
        baseline.write_text(text)
    file = write(tmp_path, rows(CASES["bert"]))
    assert message in bertcli("evaluate", file, *TASK, *MODEL, "--baseline", baseline).error


def test_onnx_runtime_gives_the_last_layer(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    file = write(tmp_path, rows(CASES["bert.last"]))
    options = (*TASK, "-m", "bert-mini-mlm", "--layer", "4")
    (model,) = judged(file, *options, "--engine", "onnx")["models"]
    found = [[text[figure] for figure in FIGURES] for text in model["texts"]]
    assert_near(found, RECORDED["cases"]["bert.last"]["scores"], 1e-5)


def test_a_table_of_vectors_has_no_layers(tmp_path: Path) -> None:
    write_static(tmp_path / "static", "model2vec")
    file = write(tmp_path, rows(CASES["bert"]))
    error = bertcli("evaluate", file, *TASK, "-m", tmp_path / "static").error
    assert "has no layers: choose another" in error

"""Every task of `bertcli evaluate` through its command: told from the data, judged as the public calls answer."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.json_files import read_json_lines, write_json, write_json_lines
from helpers.lines import write_lines
from helpers.terminal import bertcli

import bertcli as library
from bertcli.statistics import metrics
from bertcli.wings.evaluate.load.data_file import read
from bertcli.wings.evaluate.options import Evaluate

DATA = Path(__file__).parents[2] / "data"
SENTENCES = [
    "A man plays a guitar.",
    "A person plays music.",
    "It is raining.",
    "The sky is blue.",
    "She eats an apple.",
]


def judged(*arguments: str | Path) -> dict[str, Any]:
    """The record of an evaluation."""
    left = bertcli("evaluate", *arguments, "--format", "json")
    assert left.status == 0, left.err
    record: dict[str, Any] = left.json
    return record


def values(record: dict[str, Any], model: int = 0) -> dict[str, float]:
    """The figures of a model."""
    return {name: figure["value"] for name, figure in record["models"][model]["metrics"].items()}


def lines(file: Path, rows: list[dict[str, Any]]) -> Path:
    """A .jsonl file of these rows."""
    write_json_lines(file, rows)
    return file


def similar_pairs() -> list[tuple[str, str]]:
    return [(a, b) for i, a in enumerate(SENTENCES) for b in SENTENCES[i + 1 :]]


def cosines() -> metrics.Numbers:
    model = library.load("bert-mini-sentence")
    first, second = (model.encode(list(side)).astype(float) for side in zip(*similar_pairs(), strict=True))
    return np.asarray((first * second).sum(axis=1))


# --------------------------------------------------------------------------------------------------------- two texts


@pytest.mark.parametrize("ending", ["jsonl", "csv", "tsv"])
def test_sts_is_told_from_two_texts_and_a_score(tmp_path: Path, ending: str) -> None:
    scores = [round(0.37 * i, 2) for i in range(10)]
    rows = [{"sentence1": a, "sentence2": b, "score": s} for (a, b), s in zip(similar_pairs(), scores, strict=True)]
    file = tmp_path / f"data.{ending}"
    if ending == "jsonl":
        lines(file, rows)
    else:
        mark = "," if ending == "csv" else "\t"
        write_lines(file, [mark.join(rows[0]), *(mark.join(map(str, row.values())) for row in rows)])
    record = judged(file)
    assert record["task"] == "sts"
    assert [*values(record)] == ["spearman", "pearson"], "no dot products: the vectors have length 1"
    expected = np.corrcoef(cosines(), scores)[0, 1]
    assert values(record)["pearson"] == pytest.approx(expected, abs=1e-6)
    worst = record["models"][0]["worst"][0]
    assert {*worst} == {"place", "text", "text_pair", "expected", "found"}


def test_pairs_are_told_from_zeros_and_ones(tmp_path: Path) -> None:
    rows = [{"a": a, "b": b, "same": int(i < 3)} for i, (a, b) in enumerate(similar_pairs())]
    file = lines(tmp_path / "data.jsonl", rows)
    names = ("--column", "a", "--pair-column", "b", "--label-column", "same")
    record = judged(file, *names)
    assert record["task"] == "pairs"
    assert [*values(record)] == ["average_precision", "best_f1", "best_f1_threshold", "best_accuracy"]
    order = np.argsort(-cosines())
    hits = np.flatnonzero(order < 3) + 1
    assert values(record)["average_precision"] == pytest.approx(np.mean(np.arange(1, 4) / hits))
    beyond = (values(record)["best_f1_threshold"] - cosines()) * np.where(np.arange(10) < 3, 1, -1)
    worst = [int(one["place"].rpartition(" ")[2]) - 1 for one in record["models"][0]["worst"]]
    assert worst == [i for i in np.argsort(-beyond).tolist() if beyond[i] > 0], "the farthest from the threshold first"
    page = tmp_path / "report.html"
    assert bertcli("evaluate", file, *names, "-o", page).status == 0
    right = np.cumsum(order < 3)
    curve = [f"{100 * x:.2f},{100 - 100 * y:.2f}" for x, y in zip(right / 3, right / np.arange(1, 11), strict=True)]
    assert f'<polyline points="{" ".join(curve)}"' in page.read_text(), "precision over recall at every threshold"
    assert ">recall →<" in page.read_text()
    assert ">↑ precision<" in page.read_text()
    assert "does not say by its fields what the task is" in bertcli("evaluate", file).error
    assert (
        "'2' is neither 0 nor 1"
        in bertcli("evaluate", lines(file, [{**rows[0], "same": "2"}]), *names, "--task", "pairs").error
    )


def test_triplets_count_how_often_the_positive_is_nearer() -> None:
    record = judged(DATA / "triplets.jsonl")
    assert (record["task"], record["count"]) == ("triplets", 120)
    assert values(record) == {"accuracy": pytest.approx(14 / 120)}
    assert record["models"][0]["worst"][0]["found"] == "0.849 with The cats and dogs are in the rain."


@pytest.mark.parametrize("how", ["dot", "euclidean", "manhattan", "cosine"])
def test_vectors_are_compared_as_the_folder_says(how: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(library.load("bert-mini-mlm").path or "", folder)
    write_json(folder / "config_sentence_transformers.json", {"similarity_fn_name": how})
    rows = read_json_lines(DATA / "triplets.jsonl")[:40]
    file = lines(tmp_path / "data.jsonl", rows)
    x, near, far = (library.load(folder).encode([row[key] for row in rows]) for key in ("text", "near", "far"))

    def scores(a: Any, b: Any) -> Any:
        if how in ("euclidean", "manhattan"):
            return -np.linalg.norm(a - b, ord=2 if how == "euclidean" else 1, axis=1)
        lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1) if how == "cosine" else 1
        return (a * b).sum(axis=1) / lengths

    record = judged(file, "-m", folder)
    assert values(record) == {"accuracy": pytest.approx((scores(x, near) > scores(x, far)).mean())}
    assert record["models"][0]["worst"][0]["expected"].startswith(how)
    pairs = [{"text1": row["text"], "text2": row["near"], "score": i / 7} for i, row in enumerate(rows)]
    record = judged(lines(file, pairs), "-m", folder)
    found, metrics = values(record), record["models"][0]["metrics"]
    # An outlier may decide a linear correlation of similarities without bounds.
    linear = metrics["pearson_dot" if how == "cosine" else "pearson"]
    assert (linear["low"], linear["high"]) == (None, None)
    assert linear["reason"].startswith("similarities without bounds may have outliers")
    assert metrics["spearman"]["low"] is not None
    assert (metrics["pearson"]["low"] is None) == (how != "cosine")
    assert found["pearson"] == pytest.approx(np.corrcoef(scores(x, near), np.arange(40))[0, 1], abs=1e-6)
    assert ("pearson_dot" in found) == (how == "cosine")


def test_what_else_vectors_may_be_compared_with_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(library.load("bert-mini-sentence").path or "", folder)
    write_json(folder / "config_sentence_transformers.json", {"similarity_fn_name": "jaccard"})
    error = bertcli("evaluate", DATA / "triplets.jsonl", "-m", folder).error
    assert "There is no similarity 'jaccard'; choose from cosine, dot, euclidean, manhattan" in error


def test_a_model_without_the_head_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("The cat sat on the mat.\n")
    assert "needs a masked-language-model head" in bertcli("evaluate", file, "-m", "bert-mini-sentence").error


def test_a_grid_of_widths_and_types_is_judged_in_one_run() -> None:
    record = judged(DATA / "triplets.jsonl", "--truncate-dim", "64,16", "--dtype", "int8,binary")
    shapes = [(model["truncate_dim"], model["dtype"], model["bytes"]) for model in record["models"]]
    assert shapes == [
        (256, "float32", 1024), (256, "int8", 256), (256, "binary", 32), (64, "float32", 256), (64, "int8", 64),
        (64, "binary", 8), (16, "float32", 64), (16, "int8", 16), (16, "binary", 2),
    ]  # fmt: skip
    model = library.load("bert-mini-sentence")
    rows = read_json_lines(DATA / "triplets.jsonl")
    x, near, far = (model.encode([row[key] for row in rows]) for key in ("text", "near", "far"))
    signs = [np.where(vectors[:, :16] > 0, 1, -1) for vectors in (x, near, far)]
    nearer = (signs[0] * signs[1]).sum(axis=1) > (signs[0] * signs[2]).sum(axis=1)
    assert values(record, 8) == {"accuracy": pytest.approx(nearer.mean())}
    assert {difference["a"] for difference in record["differences"]} == {"bert-mini-sentence, 256 × float32"}
    assert "cannot be cut to 300" in bertcli("evaluate", DATA / "triplets.jsonl", "--truncate-dim", "300").error


# ------------------------------------------------------------------------------------------------------------ words


def test_masked_words_are_judged_by_the_rank_of_an_accepted_word() -> None:
    record = judged(DATA / "cloze.jsonl")
    assert (record["task"], record["count"]) == ("fill-mask", 72)
    found = values(record)
    assert found["accuracy@1"] == pytest.approx(40 / 72)
    assert found["accuracy@5"] == pytest.approx(64 / 72)
    rows = read_json_lines(DATA / "cloze.jsonl")
    predictions = library.load().fill_mask([row["text"] for row in rows], top_k=100)
    ranks = []
    for row, some in zip(rows, predictions, strict=True):
        words = [prediction["token_str"] for prediction in some["masks"][0]["predictions"]]
        ranks.append(next((1 / rank for rank, word in enumerate(words, 1) if word in row["accepted"]), 0))
    assert found["mrr"] == pytest.approx(np.mean(ranks))


def test_a_text_a_line_is_scored_as_a_corpus(tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("The cat sat on the mat.\nIt rained.\n")
    record = judged(file)
    records = library.load().score(["The cat sat on the mat.", "It rained."])
    tokens = [token["log_prob"] for one in records for token in one["tokens"]]
    assert record["task"] == "score"
    assert values(record)["loss"] == pytest.approx(-np.mean(tokens))
    assert values(record)["loss_sum"] == pytest.approx(-np.sum(tokens))
    assert values(record)["pseudo_perplexity"] == pytest.approx(np.exp(-np.mean(tokens)))
    file.write_text("The cat sat on the mat.\n\nIt rained.\n")
    left = bertcli("evaluate", file).out
    assert "2 texts; 1 left out." in left, "a line without tokens says nothing"
    file.write_text("The cat sat on the mat.\nIt [MASK] rained.\n")
    figures = judged(file, "--task", "score")["models"][0]["metrics"]
    assert figures["loss"]["value"] == pytest.approx(figures["loss_sum"]["value"] / 11)
    assert figures["pseudo_perplexity"]["value"] is None
    assert figures["pseudo_perplexity"]["reason"] == "not every token was predicted: 1 text with a mask in it"
    bounded = bertcli("evaluate", file, "--at-least", "loss_sum=40")
    assert (bounded.status, bounded.err.splitlines()[-1]) == (
        1, "Error: Neither more nor less loss_sum is better (--at-least); choose from loss, pseudo_perplexity.",
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------ tags, answers

CONLL = """-DOCSTART- -X- O O

The DT B-NP O
king NN I-NP B-PER
drinks VBZ B-VP O
tea NN B-NP B-LOC

Paris NNP B-NP B-LOC
"""
LABELS = {0: "O", 1: "B-PER", 2: "I-PER", 3: "B-LOC", 4: "I-LOC"}


def test_tags_are_those_of_the_first_pieces_of_words(made: Made, tmp_path: Path) -> None:
    folder, file = made(head="token_classifier", id2label=LABELS), tmp_path / "data.conll"
    file.write_text(CONLL)
    left = bertcli("evaluate", file, "-m", folder, "--format", "json")
    record = left.json
    assert (record["task"], record["count"]) == ("tag", 2)
    assert "tags are read as IOB2 in the data" in left.err
    found = values(record)
    assert [*found] == ["f1", "precision", "recall", "macro_f1", "covered", "accuracy", "f1:LOC", "f1:PER"]
    pieces = library.load(folder).tag(["The king drinks tea", "Paris"], aggregation="none", ignore=())
    starts = [{0, 4, 9, 16}, {0}]
    said = [
        [piece["entity"] for piece in one["entities"] if piece["start"] in some]
        for one, some in zip(pieces, starts, strict=True)
    ]
    assert [len(tags) for tags in said] == [4, 1]
    begun = sum(tag.startswith("B-") for tags in said for tag in tags)
    right = (said[0][1] == "B-PER" and said[0][2] != "I-PER") + (said[0][3] == "B-LOC") + (said[1][0] == "B-LOC")
    assert found["precision"] == pytest.approx(right / max(1, begun))
    assert found["recall"] == pytest.approx(right / 3)


def test_the_terminal_shows_the_figures_of_each_type(made: Made, tmp_path: Path) -> None:
    folder, file = made(head="token_classifier", id2label=LABELS), tmp_path / "data.conll"
    file.write_text(CONLL)
    left = bertcli("evaluate", file, "-m", folder)
    rows = [line.split() for line in left.out.splitlines()]
    labels = judged(file, "-m", folder)["models"][0]["labels"]
    assert [row["label"] for row in labels] == ["LOC", "PER"]
    assert ["Label", "Precision", "Recall", "F1", "Support"] in rows
    for row in labels:
        numbers = (f"{row[key]:.4f}" for key in ("precision", "recall", "f1"))
        assert [row["label"], *numbers, str(row["support"])] in rows
    assert [row["support"] for row in labels] == [2, 1]


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [("I-PER I-PER O I-LOC", "IOB1"), ("B-PER I-PER O B-LOC", "IOB2")],
)
def test_the_scheme_of_tags_is_told_from_the_data(made: Made, tmp_path: Path, tags: str, scheme: str) -> None:
    file = tmp_path / "data.conll"
    file.write_text(
        "".join(f"{word} {tag}\n" for word, tag in zip(["The", "king", "drinks", "tea"], tags.split(), strict=True))
    )
    left = bertcli("evaluate", file, "-m", made(head="token_classifier", id2label=LABELS), "--format", "json")
    assert f"tags are read as {scheme} in the data" in left.err
    assert "The king (PER); tea (LOC)" in left.out


def test_sequences_of_fasta_are_scored_as_score_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "data.fasta"
    file.write_text(">a\ntea\n>b\nhot\nmilk\n")
    assert judged(file)["count"] == 2


def squad(file: Path, impossible: bool) -> Path:
    questions = [
        {"id": "1", "question": "Who drinks?", "answers": [{"text": "The king", "answer_start": 0}]},
        {"id": "2", "question": "What does he drink?", "answers": [{"text": "tea"}, {"text": "hot tea"}]},
    ]
    if impossible:
        questions.append({"id": "3", "question": "Who eats?", "is_impossible": True, "answers": []})  # type: ignore[dict-item]
    paragraphs = [{"context": "The king drinks hot tea in Paris.", "qas": questions}]
    write_json(file, {"version": "x", "data": [{"title": "kings", "paragraphs": paragraphs}]})
    return file


def test_answers_are_judged_as_squad_has_them(made: Made, tmp_path: Path) -> None:
    from bertcli.wings.evaluate.evaluators.answers import best_of

    folder = made(head="qa")
    record = judged(squad(tmp_path / "data.json", False), "-m", folder, "--by", "title")
    assert (record["task"], record["count"]) == ("answer", 2)
    assert [*record["models"][0]["by"]] == ["kings"]
    questions, truths = ["Who drinks?", "What does he drink?"], [["The king"], ["tea", "hot tea"]]
    answers = library.load(folder).answer(questions, contexts="The king drinks hot tea in Paris.")
    best = [best_of(one["answers"][0]["answer"], truth) for one, truth in zip(answers, truths, strict=True)]
    assert [values(record)["exact_match"], values(record)["f1"]] == pytest.approx(np.mean(best, axis=0).tolist())


def test_questions_without_an_answer_are_judged_apart(made: Made, tmp_path: Path) -> None:
    record = judged(squad(tmp_path / "data.json", True), "-m", made(head="qa"))
    found = values(record)
    assert [*found] == [
        *("exact_match", "f1", "exact_match:answer", "f1:answer", "exact_match:no_answer", "f1:no_answer"),
    ]
    assert found["f1"] == pytest.approx((2 * found["f1:answer"] + found["f1:no_answer"]) / 3)
    flat = {"question": "Who?", "context": "The king drinks.", "answers": {"text": ["king"], "answer_start": [4]}}
    assert judged(lines(tmp_path / "flat.jsonl", [flat]), "-m", made(head="qa"))["task"] == "answer"


@pytest.mark.parametrize(
    ("name", "labels", "task"),
    [
        ("label", [0, 1], "pairs"),
        ("score", [0, 1, 1], "pairs"),
        ("label", [0, 1, 2], "classification"),
        ("label", ["entailment", "neutral"], "classification"),
        ("score", [0, 3, 5], "sts"),
        ("label", [0.5, 1], "sts"),
    ],
)
def test_pairs_of_texts_say_their_task_by_their_labels(tmp_path: Path, name: str, labels: list[Any], task: str) -> None:
    rows = [{"sentence1": "a", "sentence2": "b", name: label} for label in labels]
    assert read(str(lines(tmp_path / "data.jsonl", rows)), Evaluate()).task == task
    rows = [{"text": "a", name: label} for label in labels]
    assert read(str(lines(tmp_path / "data.jsonl", rows)), Evaluate()).task == "classification"

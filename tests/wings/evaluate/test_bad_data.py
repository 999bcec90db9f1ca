"""Data that cannot be used: one line with file and line number; `--keep-going` leaves it out and counts it."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Made
from helpers.checkpoints import damaged
from helpers.json_files import write_json, write_json_lines
from helpers.lines import write_lines
from helpers.terminal import bertcli, wrong_usage
from wings.evaluate.test_tasks import judged

import bertcli as library
from bertcli.errors import BertcliError
from bertcli.files.labelled.rows import LeftOut
from bertcli.files.read.inputs import rows_in
from bertcli.wings.evaluate.load import beir as beir_module
from bertcli.wings.evaluate.load.beir import Corpus

GOOD = {"text": "I loved it.", "label": "positive"}
SCORED = {"sentence1": "a", "sentence2": "b", "score": 1.5}
TRIPLET = {"anchor": "a", "positive": "b", "negative": "c"}
WORD = {"text": "Hot [MASK].", "word": "tea"}
RANKED = {"query": "a", "documents": ["b"], "labels": [1]}
TAGGED = {"tokens": ["Paris"], "tags": ["B-LOC"]}
BAD: dict[str, tuple[Any, Any, str]] = {
    "no JSON": (GOOD, "{", "line 2: not valid JSON"),
    "no object": (GOOD, "[1]", "line 2: not a JSON object but [1]"),
    "no label": (GOOD, {"text": "x"}, "line 2: there is no 'label'"),
    "null label": (GOOD, {"text": "x", "label": None}, "line 2: there is no 'label'"),
    "text": (GOOD, {"text": 7, "label": "positive"}, "line 2: 7 is not a text"),
    "score": (SCORED, {**SCORED, "score": "high"}, "line 2: the score 'high' is not a number"),
    "infinite score": (SCORED, {**SCORED, "score": float("inf")}, "line 2: the score inf is not a number"),
    "NaN": (SCORED, {**SCORED, "score": float("nan")}, "line 2: the score nan is not a number"),
    "negative": (TRIPLET, {**TRIPLET, "negative": 3}, "line 2: 3 is not a text"),
    "word": (WORD, {**WORD, "word": []}, "line 2: [] is neither a word nor a list of words"),
    "lists": (RANKED, {**RANKED, "labels": [1, 0]}, "line 2: documents and labels must be two lists of one length"),
    "no documents": (RANKED, {**RANKED, "documents": [], "labels": []}, "line 2: the list 'documents' is empty"),
    "tag": (TAGGED, {**TAGGED, "tags": ["LOC"]}, "line 2: the tag 'LOC' is neither O nor like B-PER"),
}


def model_for(good: Any, made: Made) -> list[str | Path]:
    if good is RANKED:
        return ["-m", made(head="classifier", num_labels=1)]
    return ["-m", made(head="token_classifier", id2label={0: "O", 1: "B-LOC"})] if good is TAGGED else []


@pytest.mark.parametrize("name", BAD)
def test_a_bad_row_is_named_and_can_be_left_out(made: Made, tmp_path: Path, name: str) -> None:
    good, bad, why = BAD[name]
    file, model = tmp_path / "data.jsonl", model_for(good, made)
    rows = [json.dumps(good), bad if isinstance(bad, str) else json.dumps(bad), json.dumps(good)]
    write_lines(file, rows)
    task = ["--task", "sts"] if good is SCORED else []
    error = bertcli("evaluate", file, *model, *task).error
    assert f"{file}, {why}" in error
    assert error.endswith("mend it, or leave such rows out (--keep-going).")
    left = bertcli("evaluate", file, *model, *task, "--keep-going", "--format", "json")
    record = left.json
    assert (record["count"], record["left_out"]) == (2, 1)
    assert f"1 left out (the first: {file}, {why}" in bertcli("evaluate", file, *model, *task, "--keep-going").out


OF_MODELS: dict[str, tuple[str, str, str]] = {
    "an unknown label": (
        "data.csv",
        "text,label\nGood.,positive\nBad.,meh\n",
        "line 3: the label 'meh' is not one of this model's: 'negative', 'positive' (--rename-label",
    ),
    "no label": (
        "data.csv",
        "text,label\nGood.,positive\nBad.,\n",
        "line 3: there is no label, and this model chooses",
    ),
    "a type": ("data.conll", "Paris B-LOC\n\nRome B-GPE\n", "line 3: the type 'GPE' is not one of this model's: LOC"),
    "two masks": ("data.csv", "text,word\nA [MASK].,dog\n[MASK] [MASK].,dog\n", "line 3: there are 2 masks; leave one"),
}


@pytest.mark.parametrize("name", OF_MODELS)
def test_a_row_that_a_model_cannot_use_is_named_and_can_be_left_out(made: Made, tmp_path: Path, name: str) -> None:
    file, content, why = OF_MODELS[name]
    data = tmp_path / file
    data.write_text(content)
    model = model_for(TAGGED, made) if file == "data.conll" else []
    error = bertcli("evaluate", data, *model).error
    assert f"{data}, {why}" in error
    assert error.endswith("mend it, or leave such rows out (--keep-going).")
    left = bertcli("evaluate", data, *model, "--keep-going", "--format", "json")
    assert (left.json["count"], left.json["left_out"]) == (1, 1)
    assert f"1 left out (the first: {data}, {why}" in bertcli("evaluate", data, *model, "--keep-going").out


def test_figures_are_those_of_the_rows_that_are_not_left_out(tmp_path: Path) -> None:
    """Wherever the row that is left out stands, and whichever words are no single piece."""
    good = [("The [MASK] barked.", "dog"), ("A cup of hot [MASK].", "xylophonist"), ("He drank [MASK].", "milk")]
    bad = ("[MASK] [MASK].", "dog")
    found = []
    for number, rows in enumerate([good, [bad, *good], [good[0], bad, *good[1:]]]):
        data = tmp_path / f"{number}.csv"
        data.write_text("text,word\n" + "".join(f"{text},{word}\n" for text, word in rows))
        record = judged(data, "--keep-going")
        found.append(record["models"][0]["metrics"])
    assert found[0]["loss"]["n"] == 2
    assert found[0]["loss"]["value"] > 0
    for figures in found[1:]:
        for name, figure in found[0].items():
            assert (figures[name]["n"], figures[name]["value"]) == (figure["n"], pytest.approx(figure["value"])), name


def test_one_bad_score_makes_no_other_task(tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.write_text("sentence1,sentence2,score\na,b,4.5\nc,d,high\ne,f,1\n")
    assert f"{file}, line 3: the score 'high' is not a number" in bertcli("evaluate", file).error
    assert "evaluating as sts" in bertcli("evaluate", file, "--keep-going").err


def test_a_column_that_there_is_none_of_is_named(tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.write_text("sentence1,sentence2,score\na,b,4.5\n")
    for option in ("--column", "--pair-column", "--label-column"):
        error = bertcli("evaluate", file, option, "nope").error
        assert f"has no field 'nope' ({option}); choose from 'sentence1', 'sentence2', 'score'." in error


@pytest.mark.parametrize(
    ("option", "value", "tasks"),
    [
        ("--truncate-dim", "8", "sts, pairs, triplets, retrieval"),
        ("--dtype", "int8", "sts, pairs, triplets, retrieval"),
        ("--run", "x.trec", "retrieval, rank"),
        ("--vectors", "x.npy", "retrieval"),
        ("--k", "1", "retrieval, rank, fill-mask"),
        ("--scheme", "IOB2", "tag"),
    ],
)
def test_an_option_of_other_tasks_is_refused(tmp_path: Path, option: str, value: str, tasks: str) -> None:
    file = tmp_path / "data.csv"
    file.write_text("text,label\nGood.,positive\n")
    error = bertcli("evaluate", file, option, value).error
    assert f"{option} is for {tasks}, and {file} is for classification: leave it out." in error


def test_rows_of_csv_are_named_too(tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.write_text("text,label\nGood.,positive\nonly one\nBad.,negative\n")
    assert f"{file}, line 3: 1 field where the header has 2" in bertcli("evaluate", file).error
    assert "2 texts; 1 left out" in bertcli("evaluate", file, "--keep-going").out


def test_a_text_that_the_model_cannot_use_is_left_out_for_all_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertcli.tokens.tokenizer.LONGEST", 1000)  # characters
    file = tmp_path / "data.jsonl"
    long = {"text": "word " * 400, "label": "positive"}
    write_json_lines(file, (GOOD, long))
    assert "line 2" in bertcli("evaluate", file).error
    both = ("-m", "bert-mini-sentiment", "-m", "bert-mini-sentiment")
    left = bertcli("evaluate", file, "--keep-going", *both, "--format", "json")
    assert (left.json["count"], left.json["left_out"]) == (1, 1)


@pytest.mark.parametrize("option", ["--by", "--cluster", "--pair-column", "--label-column"])
@pytest.mark.parametrize("first", [True, False])
def test_a_field_that_some_rows_lack_is_missed_where_they_stand(tmp_path: Path, option: str, first: bool) -> None:
    rows = [{"text": "I loved it.", "label": "positive"}, {"text": "Bad.", "label": "negative", "kind": "a"}]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in (rows if first else rows[::-1])), encoding="utf-8")
    said = bertcli("evaluate", file, option, "kind").error
    assert f"line {1 if first else 2}: there is no 'kind'" in said


def test_files_that_say_nothing_are_refused(tmp_path: Path) -> None:
    empty, none = tmp_path / "empty.csv", tmp_path / "none.jsonl"
    empty.write_text("text,label\n")
    none.write_text("")
    assert "has no texts that can be used, so there is nothing to evaluate" in bertcli("evaluate", empty).error
    assert "has no texts that can be used" in bertcli("evaluate", none).error
    assert "Cannot read" in bertcli("evaluate", tmp_path / "missing.csv").error
    empty.write_text("text,label\nGood.,positive\n")
    assert "does not have the fields of triplets" in bertcli("evaluate", empty, "--task", "triplets").error
    lines = tmp_path / "lines.txt"
    lines.write_text("It rained.\n")
    assert (
        f"{lines} is for score, since it has a text a line, and not for pairs."
        in bertcli("evaluate", lines, "--task", "pairs").error
    )
    assert (
        "is for retrieval, since it is a folder with a corpus, and not for sts"
        in bertcli("evaluate", beir(tmp_path / "beir"), "--task", "sts").error
    )
    assert "/dev/null is not a regular file" in bertcli("evaluate", "/dev/null").error
    write_json(none, TAGGED)
    wrong_usage("evaluate", none, why="there is no bundled model for tag")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--rename-label", "a"), "give the names in the data with those of the model"),
        (("--at-least", "accuracy"), "give one figure and the least it may be"),
        (("--at-least", "accuracy=0.8", "--at-least", "ece=0.1"), "give one figure and the least it may be"),
        (("--dtype", "int4"), "choose from float32, float16, int8, binary"),
        (("--k", "0"), "needs whole numbers of 1 or more"),
        (("--truncate-dim", "x"), "give whole numbers"),
    ],
)
def test_wrong_options_are_wrong_usage(arguments: tuple[str, ...], why: str) -> None:
    wrong_usage("evaluate", "missing.csv", *arguments, why=why)


def test_labels_are_renamed_by_one_list_or_several_options(tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.write_text("text,label\na good film,pos\na bad film,neg\n")
    in_one = bertcli("evaluate", file, "--rename-label", "pos=positive,neg=negative", "--format", "json")
    each = ("--rename-label", "pos=positive", "--rename-label", "neg=negative")
    in_two = bertcli("evaluate", file, *each, "--format", "json")
    assert (in_one.status, in_two.status) == (0, 0)
    assert in_two.json["models"] == in_one.json["models"]
    assert in_one.json["models"][0]["metrics"]["accuracy"]["value"] == 1


def test_one_class_only_gives_figures_that_say_so(tmp_path: Path) -> None:
    file = tmp_path / "data.jsonl"
    rows = [{"sentence1": "a cat", "sentence2": f"a dog {i}", "score": 1} for i in range(5)]
    write_json_lines(file, rows)
    left = bertcli("evaluate", file, "--task", "sts", "--format", "json")
    reason = "not defined: these pairs do not vary in what it compares"
    undefined = {"value": None, "low": None, "high": None, "n": 5, "reason": reason}
    assert left.json["models"][0]["metrics"] == {"spearman": undefined, "pearson": undefined}
    table = bertcli("evaluate", file, "--task", "sts").out
    assert "–" in table
    assert f"No interval for spearman, pearson: {reason}." in table
    assert (
        bertcli("evaluate", file, "--task", "sts", "--at-least", "spearman=-1", "-o", tmp_path / "x.json").status == 1
    )


def test_damaged_weights_are_no_figure(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "data.jsonl"
    write_json(file, {"text": "It rained.", "text_pair": "She ran inside.", "label": "is_next"})
    assert "the weights are damaged" in bertcli("evaluate", file, "-m", damaged(tmp_path / "model", float("nan"))).error
    assert bertcli("evaluate", file, "-m", made(head="pretraining")).status == 0, (
        "pairs are judged by the next-sentence head"
    )


def test_a_model_of_one_number_is_no_classifier(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "data.jsonl"
    write_json(file, {"text": "x", "label": "0"})
    folder = made(head="classifier", num_labels=1)
    assert "does not choose between labels" in bertcli("evaluate", file, "-m", folder).error


def beir(folder: Path, **files: str) -> Path:
    contents = {
        "corpus.jsonl": '{"_id": "d0", "text": "tea"}\n',
        "queries.jsonl": '{"_id": "q0", "text": "a drink"}\n',
        "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq0\td0\t1\n",
    }
    for name, content in {**contents, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


HEADER = "query-id\tcorpus-id\tscore\n"


@pytest.mark.parametrize(
    ("file", "content", "why"),
    [
        ("qrels/test.tsv", f"{HEADER}q0\td9\t1\n", "test.tsv, line 2: corpus.jsonl has no document 'd9'"),
        ("qrels/test.tsv", f"{HEADER}q9\td0\t1\n", "test.tsv, line 2: queries.jsonl has no query 'q9'"),
        ("qrels/test.tsv", f"{HEADER}q0\td0\tmuch\n", "test.tsv, line 2: the score 'much' is not a number"),
        ("qrels/test.tsv", f"{HEADER}q0\td0\n", "test.tsv, line 2: 2 fields where there should be 3"),
        (
            "queries.jsonl",
            '{"_id": 7, "text": "x"}\n',
            "queries.jsonl, line 1: the field '_id' is 7, which is not a text",
        ),
        ("corpus.jsonl", '{"_id": "d0"}\n', "corpus.jsonl, line 1: there is no field 'text'; fields are '_id'"),
        ("qrels/test.tsv", f"{HEADER}q0\td0\t0\n", "has no texts that can be used"),
    ],
)
def test_collections_that_do_not_fit_together_are_refused(tmp_path: Path, file: str, content: str, why: str) -> None:
    assert why in bertcli("evaluate", beir(tmp_path / "beir", **{file: content})).error


def test_a_corpus_of_repeated_ids_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second reading for each repeated id took 41 s for 4,000 rows."""
    file = tmp_path / "corpus.jsonl"
    file.write_text("".join(f'{{"_id": "d{i % 500}", "text": "{i}"}}\n' for i in range(1500)))
    read: list[Any] = []

    def counted(files: list[str], *more: Any, **named: Any) -> Any:
        read.append(files)
        return rows_in(files, *more, **named)

    monkeypatch.setattr(beir_module, "rows_in", counted)
    left_out = LeftOut(keep_going=True)
    corpus = Corpus(str(file), left_out)
    assert len(read) == 1
    assert left_out.count == 1000
    assert left_out.first == f"{file}, line 501: the id 'd0' stands in {file}, line 1, too"
    assert [document.text for document in corpus.documents()] == [str(i) for i in range(1000, 1500)]
    with pytest.raises(BertcliError, match=r"line 501: the id 'd0' stands in .*corpus.jsonl, line 1, too"):
        Corpus(str(file), LeftOut(keep_going=False))


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl"])
def test_a_row_of_a_collection_that_cannot_be_read_is_left_out_alone(tmp_path: Path, name: str) -> None:
    texts = {"corpus.jsonl": "tea", "queries.jsonl": "a drink"}
    id = "d0" if name == "corpus.jsonl" else "q0"
    rows = f'{{"_id": "x", "text": 7}}\n{{"_id": "{id}", "text": "{texts[name]}"}}\n'
    folder = beir(tmp_path / "beir", **{name: rows})
    assert f"{name}, line 1: the field 'text' is 7, which is not a text" in bertcli("evaluate", folder).error
    record = judged(folder, "--keep-going")
    assert (record["count"], record["left_out"]) == (1, 1)
    for command in ("evaluate", "probe"):
        assert "Leave out rows that cannot be used" in bertcli(command, "--help").out


def test_stored_vectors_of_a_corpus_with_a_row_that_cannot_be_read_stay_in_step(tmp_path: Path) -> None:
    corpus = '{"_id": "d0", "text": "stone"}\n{"_id": "x"}\n{"_id": "d1", "text": "tea"}\n'
    queries = '{"_id": "q0", "text": "tea"}\n'
    qrels = f"{HEADER}q0\td1\t1\n"
    folder = beir(tmp_path / "beir", **{"corpus.jsonl": corpus, "queries.jsonl": queries, "qrels/test.tsv": qrels})
    vectors = tmp_path / "corpus.npy"
    options = ("-m", "bert-mini-sentence", "--keep-going")
    bertcli("encode", *options, "-i", folder / "corpus.jsonl", "-o", vectors)
    given = bertcli("evaluate", folder, *options, "--k", "1", "--vectors", vectors, "--format", "json").out
    assert json.loads(given)["models"][0]["metrics"]["recall@1"]["value"] == 1


TWICE = {
    "corpus.jsonl": ('{"_id": "d0", "text": "stone"}\n{"_id": "d1", "text": "x"}\n{"_id": "d0", "text": "tea"}\n', 3),
    "queries.jsonl": ('{"_id": "q0", "text": "stone"}\n{"_id": "q0", "text": "tea"}\n', 2),
    "qrels/test.tsv": (f"{HEADER}q0\td0\t0\nq0\td0\t1\n", 3),
}


@pytest.mark.parametrize("name", TWICE)
def test_an_id_that_stands_twice_is_refused_with_both_lines_or_the_last_is_kept(tmp_path: Path, name: str) -> None:
    content, line = TWICE[name]
    folder = beir(tmp_path / "beir", **{name: content})
    error = bertcli("evaluate", folder).error
    first = 2 if name.startswith("qrels") else 1
    assert f"{folder}/{name}, line {line}: the " in error
    assert f"in {folder}/{name}, line {first}, too" in error
    assert "leave such rows out (--keep-going)" in error
    record = judged(folder, "--keep-going", "--k", "1")
    assert (record["count"], record["left_out"]) == (1, 1)
    if name == "corpus.jsonl":
        folder = beir(tmp_path / "other", **{name: content, "qrels/test.tsv": f"{HEADER}q0\td1\t1\n"})
        (model,) = judged(folder, "--keep-going")["models"]
        assert model["worst"][0]["found"] == "d0: tea", "the last document of that id is the one that is compared"
    if name == "queries.jsonl":
        (model,) = record["models"]
        assert model["metrics"]["recall@1"]["value"] == 1
    if name == "qrels/test.tsv":
        assert record["models"][0]["metrics"]["recall@1"]["value"] == 1, "the last grade says that it is relevant"


def test_stored_vectors_of_a_corpus_with_an_id_twice_stay_in_step(tmp_path: Path) -> None:
    corpus = '{"_id": "d0", "text": "stone"}\n{"_id": "d1", "text": "tea"}\n{"_id": "d0", "text": "a river"}\n'
    queries = '{"_id": "q0", "text": "tea"}\n'
    qrels = f"{HEADER}q0\td1\t1\n"
    folder = beir(tmp_path / "beir", **{"corpus.jsonl": corpus, "queries.jsonl": queries, "qrels/test.tsv": qrels})
    vectors = tmp_path / "corpus.npy"
    assert bertcli("encode", "-m", "bert-mini-sentence", "-i", folder / "corpus.jsonl", "-o", vectors).status == 0
    given = bertcli("evaluate", folder, "--keep-going", "--k", "1", "--vectors", vectors, "--format", "json").out
    assert json.loads(given)["models"][0]["metrics"]["recall@1"]["value"] == 1


def test_a_document_that_stands_twice_in_a_run_is_refused(tmp_path: Path) -> None:
    qrels, run = tmp_path / "qrels.txt", tmp_path / "run.txt"
    qrels.write_text("a 0 x 1\n")
    run.write_text("a Q0 x 1 2 me\na Q0 x 2 1 me\n")
    error = bertcli("evaluate", qrels, "--run", run).error
    assert f"{run}, line 2: the query 'a' and document 'x' stand in {run}, line 1, too" in error


@pytest.mark.parametrize("grade", ["1.0", "0.5", "-1", "2", "1e0"])
def test_the_first_line_of_qrels_without_a_header_counts(tmp_path: Path, grade: str) -> None:
    qrels = f"q0\td0\t{grade}\nq1\td1\t1\n"
    corpus = '{"_id": "d0", "text": "stone"}\n{"_id": "d1", "text": "tea"}\n'
    queries = '{"_id": "q0", "text": "stone"}\n{"_id": "q1", "text": "tea"}\n'
    folder = beir(tmp_path / "beir", **{"corpus.jsonl": corpus, "queries.jsonl": queries, "qrels/test.tsv": qrels})
    record = judged(folder)
    assert (record["count"], record["left_out"]) == ((1, 1) if grade == "-1" else (2, 0))


def test_a_bad_line_of_qrels_is_left_out_alone(tmp_path: Path) -> None:
    folder = beir(tmp_path / "beir", **{"qrels/test.tsv": f"{HEADER}q0\td0\t1\nq0\td9\t1\n"})
    assert "test.tsv, line 3: corpus.jsonl has no document 'd9'" in bertcli("evaluate", folder).error
    record = judged(folder, "--keep-going")
    assert (record["count"], record["left_out"]) == (1, 1)
    assert record["models"][0]["metrics"]["recall@1"]["value"] == 1


def test_a_collection_s_missing_file_is_named(tmp_path: Path) -> None:
    folder = beir(tmp_path / "beir")
    (folder / "queries.jsonl").unlink()
    assert "Cannot read" in bertcli("evaluate", folder).error
    assert "queries.jsonl" in bertcli("evaluate", folder).error


def test_a_run_with_a_bad_score_is_named(tmp_path: Path) -> None:
    qrels, run = tmp_path / "qrels.txt", tmp_path / "run.txt"
    qrels.write_text("a 0 x 1\n")
    run.write_text("a Q0 x 1 nan me\n")
    assert "run.txt, line 1: the score 'nan' is not a number" in bertcli("evaluate", qrels, "--run", run).error
    run.write_text("a Q0 x 1 me\n")
    assert "run.txt, line 1: 5 fields where there should be 6" in bertcli("evaluate", qrels, "--run", run).error


def test_lines_of_words_without_a_tag_are_named(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "data.conll"
    file.write_text("Paris B-LOC\n\nis\n\nhot O\n")
    model = ("-m", made(head="token_classifier", id2label={0: "O", 1: "B-LOC"}))
    assert "line 3: 'is' has no word and a tag such as O or B-PER" in bertcli("evaluate", file, *model).error
    assert "2 sentences; 1 left out" in bertcli("evaluate", file, *model, "--keep-going").out


def test_json_that_is_not_squad_s_is_refused(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "data.json"
    file.write_text("[1]")
    assert "is not SQuAD data: it must be JSON" in bertcli("evaluate", file, "-m", made(head="qa")).error
    wrong: list[Any] = [1.0, None, "x", {"paragraphs": []}]
    for data in wrong:
        write_json(file, {"data": data})
        assert "is not SQuAD data: it must be JSON" in bertcli("evaluate", file, "-m", made(head="qa")).error


QUESTION = {"id": "1", "question": "who?", "answers": [{"text": "the king", "answer_start": 0}]}
NOT_SQUAD: dict[str, tuple[Any, str]] = {
    "article": (1.0, "article 1 does not have the shape of SQuAD: 1.0 is not an object with paragraphs"),
    "no paragraphs": ({}, "article 1 does not have the shape of SQuAD: an object has no paragraphs"),
    "paragraphs": ({"paragraphs": 1.0}, "article 1 does not have the shape of SQuAD: paragraphs is 1.0, not a list"),
    "paragraph": (
        {"paragraphs": [{"qas": []}, 3]},
        "article 1 does not have the shape of SQuAD: 3 is not an object with qas",
    ),
    "questions": ({"paragraphs": [{"qas": {}}]}, "article 1 does not have the shape of SQuAD: qas is {}, not a list"),
    "question": (
        {"paragraphs": [{"qas": ["x"]}]},
        "article 1 does not have the shape of SQuAD: 'x' is not an object with question",
    ),
    "no context": (
        {"paragraphs": [{"qas": [QUESTION]}]},
        "article 1 does not have the shape of SQuAD: an object has no context",
    ),
    "context": ({"paragraphs": [{"qas": [QUESTION], "context": 1.0}]}, "question '1': 1.0 is not a text"),
    "words": (
        {"paragraphs": [{"qas": [{**QUESTION, "question": True}], "context": "the king"}]},
        "question '1': true is not a text",
    ),
    "answers": (
        {"paragraphs": [{"qas": [{**QUESTION, "answers": "the king"}], "context": "the king"}]},
        "article 1 does not have the shape of SQuAD: answers is 'the king', not a list",
    ),
    "answer": (
        {"paragraphs": [{"qas": [{**QUESTION, "answers": [None]}], "context": "the king"}]},
        "article 1 does not have the shape of SQuAD: null is not an object with text",
    ),
    "answer's text": (
        {"paragraphs": [{"qas": [{**QUESTION, "answers": [{"text": 1.0}]}], "context": "the king"}]},
        "question '1': 1.0 is not a text",
    ),
}


@pytest.mark.parametrize("name", NOT_SQUAD)
def test_values_of_the_wrong_type_in_squad_s_json_are_one_line(name: str, made: Made, tmp_path: Path) -> None:
    article, message = NOT_SQUAD[name]
    file = tmp_path / "data.json"
    write_json(file, {"data": [article]})
    assert f"{file}, {message}: mend it, or" in bertcli("evaluate", file, "-m", made(head="qa")).error


# ---------------------------------------------------------------------------- files without a header, other delimiters


def test_a_file_without_a_header_is_evaluated_by_the_numbers_of_its_columns(tmp_path: Path) -> None:
    rows = [("I loved it.", "positive"), ("Awful.", "negative"), ("Dull, and long.", "negative")]
    named, bare, other = (tmp_path / name for name in ("named.csv", "bare.csv", "other.csv"))
    body = "".join(f'"{text}",{label}\n' for text, label in rows)
    named.write_text(f"text,label\n{body}", encoding="utf-8")
    bare.write_text(body, encoding="utf-8")
    other.write_text("label;text\n" + "".join(f'{label};"{text}"\n' for text, label in rows), encoding="utf-8")

    def figures(*arguments: str | Path) -> Any:
        (model,) = judged(*arguments)["models"]
        return model["metrics"]

    expected = figures(named)
    assert expected["accuracy"]["n"] == 3
    assert figures(bare, "--no-header", "--label-column", "2") == expected
    assert figures(other, "--delimiter", ";") == expected
    assert figures(other) == expected
    assert f"{other}: its columns are separated by ';'." in bertcli("evaluate", other).err
    left = bertcli("evaluate", bare)
    assert left.error.endswith("If this row is data: --no-header, and --column 2 for the second column.")
    assert "because no --label-column names one of its 2 columns" in bertcli("evaluate", bare, "--no-header").err
    left = bertcli("evaluate", bare, "--no-header", "--label-column", "3")
    assert "has no field '3' (--label-column); choose from '1', '2'." in left.error


def test_a_probe_reads_a_file_without_a_header(tmp_path: Path) -> None:
    rows = [f"{'good' if i % 2 else 'bad'} {i};{i % 2}" for i in range(8)]
    named, bare = tmp_path / "named.csv", tmp_path / "bare.tsv"
    named.write_text("\n".join(["text,label", *rows]).replace(";", ","), encoding="utf-8")
    write_lines(bare, rows)
    expected = bertcli("probe", "-i", named, "--folds", "3", "--format", "json")
    options = ("--no-header", "--delimiter", ";", "--label-column", "2")
    found = bertcli("probe", "-i", bare, "--folds", "3", "--format", "json", *options)
    assert found.json == expected.json


@pytest.mark.parametrize("option", [("--no-header",), ("--delimiter", ";")])
@pytest.mark.parametrize("command", [("evaluate",), ("probe", "-i")])
def test_only_tables_have_a_header(command: tuple[str, ...], option: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "data.jsonl"
    write_json(file, GOOD)
    assert f"{option[0]} is for the columns of a .csv or .tsv file" in bertcli(*command, file, *option).error


LATIN = "Perú".encode("latin-1")
# Of each format a file that is Latin-1 in line 2, or throughout, and a command that reads it.
NOT_UTF8: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "data.txt": (b"tea\n" + LATIN + b"\n", ("evaluate", "FILE")),
    "data.csv": (b"text,label\n" + LATIN + b",positive\n", ("evaluate", "FILE")),
    "data.tsv": (b"text\tlabel\n" + LATIN + b"\tpositive\n", ("evaluate", "FILE")),
    "data.jsonl": (b'{"text": "tea", "label": "positive"}\n{"text": "' + LATIN + b'"}\n', ("evaluate", "FILE")),
    "data.conll": (b"tea O\n" + LATIN + b" B-LOC\n", ("probe", "-i", "FILE", "--words")),
    "tag.conll": (b"tea O\n" + LATIN + b" B-LOC\n", ("evaluate", "FILE", "--task", "tag", "-m", "MODEL")),
    "data.conllu": (b"1 tea tea N\n2 " + LATIN + b" x N\n", ("probe", "-i", "FILE", "--words")),
    "comment.conllu": (b"1 tea tea N\n# " + LATIN + b"\n", ("probe", "-i", "FILE", "--words")),
    "data.json": (b'{"data": ["' + LATIN + b'"]}', ("evaluate", "FILE", "-m", "MODEL")),
    "qrels.txt": (b"q 0 d 1\nq 0 " + LATIN + b" 1\n", ("evaluate", "FILE", "--run", "FILE")),
    "data.fasta": (b">a\n" + LATIN + b"\n", ("encode", "-i", "FILE", "-o", "OUT")),
    "words.txt": (b"tea\n" + LATIN + b"\n", ("search", "tea", "-i", "FILE")),
    "words.md": (b"tea\n" + LATIN + b"\n", ("search", "tea", "-i", "FILE")),
    "pairs.csv": (b"text,text_pair\ntea," + LATIN + b"\n", ("classify", "-i", "FILE", "--pair-column", "text_pair")),
}


@pytest.mark.parametrize("name", NOT_UTF8)
def test_every_reader_refuses_a_file_that_is_not_utf_8(made: Made, tmp_path: Path, name: str) -> None:
    content, arguments = NOT_UTF8[name]
    file = tmp_path / name
    file.write_bytes(content)
    model = made(head="token_classifier", id2label={0: "O", 1: "B-LOC"})
    named = {"FILE": file, "MODEL": model, "OUT": tmp_path / "v.npy"}
    error = bertcli(*(named.get(one, one) for one in arguments)).error
    where = f"{file}: not UTF-8 (there is a byte 0xfa)" if name == "data.json" else f"{file}, line 2: not UTF-8"
    assert where in error
    assert "save the file as UTF-8" in error


def test_a_run_and_a_model_leave_out_the_same_documents(tmp_path: Path) -> None:
    """The document with the query's id, as BEIR's ignore_identical_ids does; identical_ids, of Python, keeps it."""
    corpus = '{"_id": "a", "text": "tea"}\n{"_id": "b", "text": "a cup of tea"}\n'
    queries, qrels = '{"_id": "a", "text": "tea"}\n', f"{HEADER}a\tb\t1\n"
    folder = beir(tmp_path / "beir", **{"corpus.jsonl": corpus, "queries.jsonl": queries, "qrels/test.tsv": qrels})
    run = tmp_path / "run.trec"
    run.write_text("a Q0 a 1 2 me\na Q0 b 2 1 me\n")
    left = bertcli("evaluate", folder, "--run", run, "-m", "bert-mini-sentence", "--format", "json")
    assert [model["metrics"]["mrr@10"]["value"] for model in left.json["models"]] == [1.0, 1.0]
    assert left.err.count("have their query's id and are left out, as in BEIR and mteb") == 2
    kept = library.evaluate(folder, library.load("bert-mini-sentence"), run=str(run), identical_ids=True)
    assert [model["metrics"]["mrr@10"]["value"] for model in kept.record["models"]] == [0.5, 0.5]

"""retrieval and rank: folders as BEIR has them, TREC's files, candidates, and corpora that do not fit in memory."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.json_files import read_json_lines
from helpers.terminal import bertcli
from wings.evaluate.test_tasks import judged, lines, values

import bertcli as library
from bertcli.files.search import Best

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The paraphrases as a collection: a query for each, two queries more that nothing is relevant to."""
    rows = read_json_lines(DATA / "paraphrases.jsonl")[:30]
    found = tmp_path / "beir"
    (found / "qrels").mkdir(parents=True)
    lines(
        found / "corpus.jsonl", [{"_id": f"d{i}", "title": "", "text": row["paraphrase"]} for i, row in enumerate(rows)]
    )
    queries = [{"_id": f"q{i}", "text": row["text"], "half": i % 2} for i, row in enumerate(rows)]
    lines(found / "queries.jsonl", [*queries, {"_id": "q30", "text": "Nothing?", "half": 0}])
    qrels = [f"q{i}\td{i}\t1" for i in range(30)]
    (found / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *qrels, "q30\td0\t0", ""]))
    return found


def test_figures_are_at_the_ranks_that_papers_give(folder: Path) -> None:
    names = [*values(judged(folder))]
    assert names[0] == "ndcg@10"
    assert {name.partition("@")[2] for name in names} == {"1", "3", "5", "10", "100"}


def test_a_folder_is_retrieval(folder: Path) -> None:
    record = judged(folder, "--k", "1,5")
    assert (record["task"], record["count"], record["left_out"]) == ("retrieval", 30, 1)
    assert [*values(record)][:3] == ["ndcg@5", "ndcg@1", "map@1"]
    rows = read_json_lines(DATA / "paraphrases.jsonl")[:30]
    model = library.load("bert-mini-sentence")
    queries, documents = (model.encode([row[key] for row in rows]) for key in ("text", "paraphrase"))
    products = queries @ documents.T
    ranks = (products > products.diagonal()[:, None]).sum(axis=1)
    assert values(record)["recall@1"] == pytest.approx((ranks < 1).mean())
    assert values(record)["mrr@5"] == pytest.approx(np.where(ranks < 5, 1 / (ranks + 1), 0).mean())
    assert values(record)["ndcg@5"] == pytest.approx(np.where(ranks < 5, 1 / np.log2(ranks + 2), 0).mean())
    by = judged(folder, "--k", "1", "--by", "half")["models"][0]["by"]
    assert [*by] == ["0", "1"]
    assert judged(folder, "--k", "1", "--cluster", "half")["clusters"] == 2
    lines(folder / "queries.jsonl", [{"_id": f"q{i}", "text": "x"} for i in range(31)])
    assert (
        "queries.jsonl, line 1: there is no 'half' (--cluster)"
        in bertcli("evaluate", folder, "--cluster", "half").error
    )


def test_documents_are_found_as_the_folder_says(folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(library.load("bert-mini-mlm").path or "", model)
    (model / "config_sentence_transformers.json").write_text(json.dumps({"similarity_fn_name": "dot"}))
    rows = [json.loads(line) for line in (DATA / "paraphrases.jsonl").read_text().splitlines()][:30]
    queries, documents = (library.load(model).encode([row[key] for row in rows]) for key in ("text", "paraphrase"))
    scores = queries @ documents.T
    ranks = (scores > scores.diagonal()[:, None]).sum(axis=1)
    found = values(judged(folder, "-m", model, "--k", "1,5"))
    assert found["mrr@5"] == pytest.approx(np.where(ranks < 5, 1 / (ranks + 1), 0).mean())
    assert found["recall@1"] == pytest.approx((ranks < 1).mean())


def test_worst_queries_are_shown_with_texts_of_documents(folder: Path) -> None:
    (folder / "qrels" / "wrong.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td7\t1\n")
    (worst,) = judged(folder, "--split", "wrong")["models"][0]["worst"]
    texts = [json.loads(line)["text"] for line in (folder / "corpus.jsonl").read_text().splitlines()]
    assert worst["expected"] == f"d7: {texts[7]}"
    assert worst["found"] == f"d0: {texts[0]}"


def test_the_query_itself_is_no_answer(folder: Path) -> None:
    rows = [{"_id": f"{i}", "text": text} for i, text in enumerate(["tea", "a cup of tea", "stone"])]
    lines(folder / "corpus.jsonl", rows)
    lines(folder / "queries.jsonl", rows[:1])
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n0\t1\t1\n")
    assert values(judged(folder, "--k", "1"))["recall@1"] == 1


def test_stored_vectors_give_the_same_figures(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "corpus.npy"
    assert bertcli("encode", "-m", "bert-mini-sentence", "-i", folder / "corpus.jsonl", "-o", file).status == 0
    given, computed = judged(folder, "--vectors", file), judged(folder)
    assert values(given) == pytest.approx(values(computed))
    np.save(tmp_path / "less.npy", np.load(file)[1:])
    less = bertcli("evaluate", folder, "--vectors", tmp_path / "less.npy")
    assert "has no record of the model and options of its vectors" in less.err
    assert "has 29 vectors, but the corpus 30 documents" in less.err
    np.save(tmp_path / "narrow.npy", np.load(file)[:, :8])
    narrow = bertcli("evaluate", folder, "--vectors", tmp_path / "narrow.npy")
    assert "vectors of 8 numbers, but this model gives 256" in narrow.err


def test_vectors_that_were_made_otherwise_are_refused(folder: Path, tmp_path: Path) -> None:
    for options, why in (
        (["-m", "bert-mini-mlm"], "was made by another model, 'bert-mini-mlm"),
        (["-m", "bert-mini-sentence", "--layer", "1"], "was made with --layer [1], and not with [4]"),
    ):
        file = tmp_path / f"{len(options)}.npy"
        assert bertcli("encode", *options, "-i", folder / "corpus.jsonl", "-o", file).status == 0
        assert why in bertcli("evaluate", folder, "--vectors", file).error


def test_a_query_that_nothing_is_relevant_to_is_left_out(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "data.jsonl"
    nothing = {"query": "none", "documents": ["x", "y"], "labels": [0, 0]}
    lines(file, [nothing, {"query": "tea", "documents": ["tea", "y"], "labels": [1, 0]}])
    record = judged(file, "-m", made(head="classifier", num_labels=1), "--k", "1")
    assert (record["count"], record["left_out"]) == (1, 1)
    assert record["models"][0]["metrics"]["ndcg@1"]["value"] == 1, "the candidates' own order"


def test_a_run_is_written_and_judged_alone_and_beside_a_model(folder: Path, tmp_path: Path) -> None:
    run, qrels = tmp_path / "model.trec", tmp_path / "qrels.txt"
    assert bertcli("evaluate", folder, "-o", run).status == 0
    assert run.read_text().splitlines()[0].split()[::2] == ["q0", "d0", run.read_text().split()[4]]
    qrels.write_text("".join(f"q{i} 0 d{i} 1\n" for i in range(30)))
    alone = judged(qrels, "--run", run)
    assert values(alone) == pytest.approx(values(judged(folder)))
    both = judged(folder, "--run", run, "-m", "bert-mini-sentence")
    assert [model["model"] for model in both["models"]] == [str(run), "bert-mini-sentence"]
    assert all(one["value"] == pytest.approx(0) and one["ahead"] == 0.5 for one in both["differences"])


def test_queries_that_a_run_lacks_have_found_nothing(tmp_path: Path) -> None:
    qrels, run = tmp_path / "qrels.txt", tmp_path / "run.txt"
    qrels.write_text("a 0 x 1\nb 0 x 1\n")
    run.write_text("a Q0 x 1 2.5 me\n")
    assert values(judged(qrels, "--run", run, "--k", "1"))["recall@1"] == 0.5


def test_equal_documents_are_ordered_by_their_ids_whatever_the_block(folder: Path) -> None:
    ids = [f"d{i:02d}" for i in np.random.default_rng(0).permutation(60)]
    scores = np.random.default_rng(1).integers(0, 3, size=(4, 60)).astype(float)
    expected = [sorted(zip(row.tolist(), ids, strict=True), reverse=True)[:7] for row in scores]
    later = np.argsort(np.argsort(ids)[::-1])
    for step in (1, 7, 60):
        best = Best(4, 7, later)
        for first in range(0, 60, step):
            best.add(scores[:, first : first + step])
        every = zip(*best.found()[:2], strict=True)
        found = [[(score, ids[number]) for number, score in zip(*rows, strict=True)] for rows in every]
        assert found == expected


def test_candidates_are_reranked_beside_their_own_order(made: Made, tmp_path: Path) -> None:
    cross = made(head="classifier", num_labels=1)
    rows: list[dict[str, Any]] = [
        {"query": "a hot drink", "documents": ["tea", "a stone", "a warm cup of tea"], "labels": [1, 0, 2]},
        {"query": "stone", "documents": ["tea", "a stone"], "labels": [0, 1]},
        {"query": "a hot drink", "documents": ["milk", "coffee"], "labels": [0, 1]},
    ]
    record = judged(lines(tmp_path / "data.jsonl", rows), "-m", cross, "--k", "1,3")
    assert (record["task"], record["count"]) == ("rank", 3)
    assert record["models"][0]["model"] == "the candidates' own order"
    assert values(record, 0)["mrr@3"] == pytest.approx((1 + 1 / 2 + 1 / 2) / 3)
    model, ranks = library.load(cross), []
    for row in rows:
        order = [one["corpus_id"] for one in model.rank(row["query"], documents=row["documents"])]
        ranks.append(next(rank for rank, i in enumerate(order, 1) if row["labels"][i]))
    assert values(record, 1)["mrr@3"] == pytest.approx(np.mean([1 / rank for rank in ranks]))


def test_a_folder_is_reranked_with_the_candidates_of_a_run(folder: Path, made: Made, tmp_path: Path) -> None:
    run = tmp_path / "run.trec"
    assert bertcli("evaluate", folder, "-o", run, "--k", "5").status == 0
    record = judged(folder, "--task", "rank", "--run", run, "-m", made(head="classifier", num_labels=1), "--k", "5")
    assert values(record, 0) == pytest.approx(values(judged(folder, "--k", "5")))
    assert record["models"][1]["metrics"]["recall@5"]["value"] >= values(record, 1)["mrr@5"]
    assert (
        "There are no candidates to rerank: give a run (--run)" in bertcli("evaluate", folder, "--task", "rank").error
    )


WIDTH = 128
LARGE = """
import sys
from pathlib import Path
from typing import Any

import numpy as np

from bertcli.wings.evaluate.evaluators import ranking
from bertcli.wings.evaluate.load.beir import Corpus
from bertcli.files.labelled.rows import LeftOut
from bertcli.wings.evaluate.load.labelled import Labelled, Relevance
from bertcli.wings.evaluate.options import Evaluate
from bertcli.files.texts import Text

folder, width = Path(sys.argv[1]), int(sys.argv[2])

class Model:
    name = "random"
    class kind:
        compared = "cosine"

        def prompt_name(role):
            return None

asked = np.random.default_rng(0).normal(size=(50, width)).astype(np.float32)
ranking.check_made_alike = lambda model, stored: None
ranking.vectors_of = lambda *given, **named: (asked, np.ones(50, bool))
rows = [Text("q", label=Relevance(f"q{i}", {"d0": 1.0}, {})) for i in range(50)]
data = Labelled("", "retrieval", "", rows, LeftOut(False), Corpus(str(folder / "corpus.jsonl"), LeftOut(False)))
(outcome,) = ranking.retrieve(Model, data, Evaluate(vectors=str(folder / "corpus.npy")))
(peak,) = (line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
vectors = np.load(folder / "corpus.npy", mmap_mode="r")
cosines = vectors @ asked[0] / np.linalg.norm(vectors, axis=1)
assert {f"d{i}" for i in np.argsort(-cosines)[:101]} == {id for id, _ in outcome.orders["q0"]}
print(1024 * int(peak))
"""


@pytest.mark.large
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_memory_does_not_grow_with_the_corpus_beyond_its_vectors(tmp_path: Path) -> None:
    peaks = []
    for count in (20_000, 200_000):
        folder = tmp_path / str(count)
        folder.mkdir()
        lines(folder / "corpus.jsonl", [{"_id": f"d{i}", "text": "x"} for i in range(count)])
        np.save(folder / "corpus.npy", np.random.default_rng(1).normal(size=(count, WIDTH)).astype(np.float32))
        arguments = [sys.executable, "-c", LARGE, str(folder), str(WIDTH)]
        peaks.append(int(subprocess.run(arguments, capture_output=True, text=True, check=True).stdout))
    print(f"peaks: {peaks[0]:,} and {peaks[1]:,} bytes")
    assert peaks[1] - peaks[0] < 180_000 * (4 * WIDTH + 250), "the vectors, which are mapped, and the ids"

"""A query and its documents get the model's prompts for them, whichever way they are compared: the same scores."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.json_files import write_json
from helpers.lines import write_lines
from helpers.served import serving
from helpers.terminal import bertcli as command

import bertcli

QUERY = "a walk with the dog"
TEXTS = ["A dog ran home.", "The puppy went back to its house.", "Interest rates rose.", "The river flows to the sea."]
PROMPTS = {"query": "question about the river: ", "document": "a page that says: "}


def prompted(sample: str, folder: Path, **settings: Any) -> Path:
    """A copy of a bundled model that has prompts."""
    shutil.copytree(bertcli.load(sample).path or "", folder)
    content = json.dumps({"prompts": PROMPTS, **settings})
    (folder / "config_sentence_transformers.json").write_text(content, encoding="utf-8")
    return folder


def by_text(records: list[dict[str, Any]]) -> list[float]:
    """The scores of hits, in the order of TEXTS."""
    scores = {record["text"]: record["score"] for record in records}
    return [scores[text] for text in TEXTS]


def in_run(file: Path) -> list[float]:
    """The scores of documents d0, d1, … in a run of TREC."""
    scores = {line.split()[2]: float(line.split()[4]) for line in file.read_text().splitlines()}
    return [scores[f"d{number}"] for number in range(len(TEXTS))]


def write_beir(folder: Path) -> Path:
    (folder / "qrels").mkdir(parents=True)
    documents = [json.dumps({"_id": f"d{number}", "text": text}) for number, text in enumerate(TEXTS)]
    write_lines(folder / "corpus.jsonl", documents)
    write_json(folder / "queries.jsonl", {"_id": "q", "text": QUERY})
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td0\t1\n")
    return folder


def test_one_query_has_one_score_with_each_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = prompted("bert-mini-sentence", tmp_path / "prompted")
    write_lines(Path("t.txt"), TEXTS)
    model = bertcli.load(folder)
    (query,) = model.encode([QUERY], prompt_name="query", normalize=True)
    expected = (model.encode(TEXTS, prompt_name="document", normalize=True) @ query).tolist()
    assert expected != pytest.approx((model.encode(TEXTS, normalize=True) @ query).tolist(), abs=1e-3)

    asked = ("search", QUERY, "-m", folder, "--format", "jsonl")
    assert by_text(command(*asked, "-i", "t.txt").records) == pytest.approx(expected, abs=1e-5)
    encoding = ("encode", "-m", folder, "-i", "t.txt")
    assert command(*encoding, "--prompt-name", "document", "-o", "d.npy").status == 0
    (found,) = command(*asked, "-i", "d.npy", "-i", "t.txt").records
    assert by_text(found["nearest"]) == pytest.approx(expected, abs=1e-5)
    (found,) = bertcli.search(QUERY, "d.npy", model=model, texts="t.txt")
    assert by_text(found["nearest"]) == pytest.approx(expected, abs=1e-5)

    beir = write_beir(tmp_path / "beir")
    for more in ((), ("--vectors", "d.npy")):
        ran = command("evaluate", beir, "-m", folder, "-o", "own.trec", *more)
        assert ran.status == 0, ran.err
        assert in_run(Path("own.trec")) == pytest.approx(expected, abs=1e-5)

    with serving([model]) as server:
        ranked = server.given("/rerank", {"query": QUERY, "texts": TEXTS, "raw_scores": True})
        assert [one["score"] for one in sorted(ranked, key=lambda one: int(one["index"]))] == pytest.approx(
            expected, abs=1e-5
        )
        roles = [("search_query", [QUERY]), ("search_document", TEXTS)]
        vectors = [
            server.given("/v1/embeddings", {"input": texts, "input_type": role})["data"] for role, texts in roles
        ]
        ((of_query,), of_documents) = ([np.array(one["embedding"]) for one in rows] for rows in vectors)
        assert [of_query @ vector for vector in of_documents] == pytest.approx(expected, abs=1e-5)


def test_vectors_without_their_prompt_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = prompted("bert-mini-sentence", tmp_path / "prompted")
    write_lines(Path("t.txt"), TEXTS)
    assert command("encode", "-m", folder, "-i", "t.txt", "-o", "plain.npy").status == 0
    assert command("encode", "-m", folder, "-i", "t.txt", "-o", "q.npy", "--prompt-name", "query").status == 0
    ran = command("search", QUERY, "-m", folder, "-i", "plain.npy")
    assert ran.status == 0
    assert "plain.npy was made without a prompt, and " in ran.err
    assert "has 'a page that says: ' for documents: encode the texts again with --prompt-name document" in ran.err
    beir = write_beir(tmp_path / "beir")
    error = command("evaluate", beir, "-m", folder, "--vectors", "plain.npy").error
    assert "plain.npy was made without a prompt" in error
    error = command("evaluate", beir, "-m", folder, "--vectors", "q.npy").error
    assert "q.npy was made with the prompt 'question about the river: '" in error
    # A model without prompts expects none.
    assert command("encode", "-i", "t.txt", "-o", "own.npy").status == 0
    assert "prompt" not in command("search", QUERY, "-i", "own.npy").err


def test_sparse_vectors_have_these_prompts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = prompted("bert-mini-mlm", tmp_path / "splade")
    modules = [("MLMTransformer", ""), ("SpladePooling", "1_SpladePooling")]
    entries = [{"type": f"sentence_transformers.sparse_encoder.models.{name}", "path": path} for name, path in modules]
    write_json(folder / "modules.json", entries)
    (folder / "1_SpladePooling").mkdir()
    (folder / "1_SpladePooling" / "config.json").write_text("{}")
    write_lines(Path("t.txt"), TEXTS)
    model = bertcli.load(folder)

    def dense(texts: list[str], name: str) -> Any:
        rows = np.zeros((len(texts), model.config.vocab_size))
        for row, (indices, values) in zip(rows, model.encode_sparse(texts, prompt_name=name), strict=True):
            row[indices] = values
        return rows

    expected = (dense(TEXTS, "document") @ dense([QUERY], "query")[0]).tolist()
    found = command("search", QUERY, "-m", folder, "-i", "t.txt", "--sparse", "--format", "jsonl").records
    assert by_text(found) == pytest.approx(expected, rel=1e-5)
    assert by_text(model.rank(QUERY, TEXTS)) == pytest.approx(expected, rel=1e-5)

"""Rerankers whose pairs go through a chat template: the tokens and scores of sentence-transformers, or one line."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from helpers.json_files import change_json
from helpers.near import assert_near
from helpers.recorded import recorded
from helpers.rerankers import DOCUMENTS, KINDS, LISTS, PAIRS, PLAIN, PUBLISHED, QUERY, TEMPLATES, write_reranker
from helpers.served import serving
from helpers.terminal import bertcli as run
from helpers.tokenizer_kinds import write_qwen

import bertcli
from bertcli.errors import BertcliError
from bertcli.folder.cache import missing
from bertcli.folder.files import Folder
from bertcli.tokens.chat import ChatTemplate

RECORDED = recorded("rerankers.json")


@pytest.fixture
def published(tmp_path: Path) -> Path:
    return write_reranker(tmp_path / "model", **KINDS["published"])


def change(file: Path, **settings: Any) -> None:
    change_json(file, settings)


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_and_scores_are_those_of_sentence_transformers(kind: str, tmp_path: Path) -> None:
    folder = write_reranker(tmp_path / "model", **KINDS[kind])
    assert missing(Folder(folder)) == []
    model, recorded, limit = bertcli.load(folder), RECORDED[kind], KINDS[kind].get("limit")
    tokens = model.tokenizer.encode([query for query, _ in PAIRS], [document for _, document in PAIRS], limit)
    assert [one.ids for one in tokens] == recorded["ids"]
    for (query, document), score in zip(PAIRS, recorded["scores"], strict=True):
        (record,) = model.rank(query, [document], truncation="silent")
        assert record["score"] == pytest.approx(score, abs=1e-5)
    ranked = model.rank(QUERY, DOCUMENTS, truncation="silent", batch_tokens=130)
    scores = recorded["scores"][: len(DOCUMENTS)]
    assert [record["corpus_id"] for record in ranked] == sorted(range(len(scores)), key=lambda i: -scores[i])


def test_a_reranker_gives_vectors_of_single_texts_without_its_template(published: Path) -> None:
    model = bertcli.load(published)
    (tokens,) = model.tokenizer.encode(["a hot tea"])
    assert tokens.pieces == ["a", "Ġhot", "Ġtea"]
    (states,) = model.forward([tokens.ids])
    (vector,) = model.encode(["a hot tea"], pooling="mean")
    assert_near(vector, states.mean(axis=0), 1e-6)


def test_tokens_know_where_they_are(tmp_path: Path) -> None:
    model = bertcli.load(write_reranker(tmp_path, **KINDS["one token"]))
    (tokens,) = model.tokenizer.encode(["a hot tea"], ["We sold it."])
    rows = zip(tokens.pieces, tokens.sides, tokens.offsets, strict=True)
    of_sides = [(piece, side, span) for piece, side, span in rows if side is not None]
    assert of_sides == [
        ("W", 1, (0, 1)),
        ("e", 1, (1, 2)),
        ("Ġsold", 1, (2, 7)),
        ("Ġit", 1, (7, 10)),
        (".", 1, (10, 11)),
        ("Ġa", 0, (0, 1)),
        ("Ġhot", 0, (1, 5)),
        ("Ġtea", 0, (5, 9)),
    ]
    assert tokens.sides[:5] == [1] * 5
    (cut,) = model.tokenizer.encode(["a hot tea"], ["We sold it."], len(tokens.ids) - 1)
    assert (cut.lost, cut.sides.count(0), cut.sides.count(1)) == (1, 2, 5)
    assert cut.with_tokenizer(model.tokenizer).offsets == cut.offsets


def test_the_command_ranks_and_says_what_it_puts_where(tmp_path: Path, published: Path) -> None:
    result = run("rank", "-m", published, QUERY, *DOCUMENTS[:2], "--format", "jsonl")
    assert {record["corpus_id"]: record["score"] for record in result.records} == pytest.approx(
        dict(enumerate(RECORDED["published"]["scores"][:2])), abs=1e-5
    )
    assert result.err == "Note: 1 of 2 texts is empty: text 1.\n"  # the second document
    prompted = write_reranker(tmp_path / "prompted", **KINDS["prompt"])
    said = "Note: 'Find tea' is the system's message in the chat template, as the checkpoint specifies."
    assert run("rank", "-m", prompted, "tea", "milk").err.strip() == said
    shown = run("tokenize", "-m", prompted, "tea", "--text-pair", "milk", "--format", "jsonl")
    (record,) = shown.records
    assert (record["tokens"][0], record["ids"][-1], shown.err) == ("<|im_start|>", RECORDED["prompt"]["ids"][0][-1], "")
    onnx = run("rank", "-m", published, QUERY, *DOCUMENTS, "--engine", "onnx", "--format", "jsonl").records
    for record in onnx:
        assert record["score"] == pytest.approx(RECORDED["published"]["scores"][record["corpus_id"]], abs=1e-5)


@pytest.mark.any_kernel
def test_words_speak_for_the_score(published: Path) -> None:
    texts: list[str | Path] = ["-m", published, "hot tea", "--text-pair", "We sold tea.", "--method", "delete"]
    (record,) = run("explain", *texts, "--format", "jsonl").records
    assert (record["target"], [word["word"] for word in record["words"]]) == (
        "score",
        ["hot", "tea", "We", "sold", "tea", "."],
    )
    model = bertcli.load(published)

    def logit(query: str, document: str) -> float:
        (ranked,) = model.rank(query, [document])
        return float(np.log(ranked["score"] / (1 - ranked["score"])))

    assert record["value"] == pytest.approx(logit("hot tea", "We sold tea."), abs=1e-4)
    contribution = record["value"] - logit("hot tea", "We tea.")
    assert record["words"][3]["contribution"] == pytest.approx(contribution, abs=1e-4)
    assert "needs a classifier head" in run("explain", *texts, "--label", "yes").err


def test_info_names_what_it_is_for_with_examples_that_run(published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(published.parent)
    text = run("info", "model").out
    assert "cross-encoder" in text
    assert 'rank -m model "How tall is the tower?" "The tower is 330 m high." "The cat sat on the mat."' in text
    assert 'explain -m model "How tall is the tower?" --text-pair "The tower is 330 m high." --method delete' in text
    assert "bertcli classify" not in text
    assert "bertcli encode" not in text


def test_a_graph_gives_the_logit(published: Path, tmp_path: Path) -> None:
    assert "gives logits; its numbers differ" in run("export", "-m", published, "-o", tmp_path / "model.onnx").err
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    rows = RECORDED["published"]["ids"][:2]
    ids, mask = (np.zeros((2, len(rows[0])), np.int64) for _ in "im")
    for number, row in enumerate(rows):
        ids[number, : len(row)], mask[number, : len(row)] = row, 1
    (logits,) = session.run(["logits"], {"input_ids": ids, "attention_mask": mask})
    assert logits.shape == (2, 1)
    assert_near(1 / (1 + np.exp(-logits[:, 0])), RECORDED["published"]["scores"][:2], 1e-5)
    result = run("export", "-m", published, "-o", tmp_path / "folder")
    assert "this folder is for others" in result.err
    shutil.copy(published / "model.safetensors", tmp_path / "folder")
    (record,) = bertcli.load(tmp_path / "folder").rank(*PAIRS[0][:1], [PAIRS[0][1]])
    assert record["score"] == pytest.approx(RECORDED["published"]["scores"][0], abs=1e-5)


@pytest.mark.any_kernel
def test_a_template_of_its_own_file_is_exported(tmp_path: Path) -> None:
    folder = write_reranker(tmp_path / "model", **KINDS["one token"])
    assert run("export", "-m", folder, "-o", tmp_path / "folder").status == 0
    assert (tmp_path / "folder" / "chat_template.jinja").read_bytes() == (folder / "chat_template.jinja").read_bytes()


def test_a_server_reranks(published: Path) -> None:
    with serving([bertcli.load(published)]) as running:
        found = running.given("/v1/rerank", {"query": QUERY, "documents": [*DOCUMENTS[:2]]})
        assert len(found["results"]) == 2
        for one in found["results"]:
            assert one["relevance_score"] == pytest.approx(RECORDED["published"]["scores"][one["index"]], abs=1e-5)
        refused = running.ask("/v1/embeddings", {"input": "tea"})
        assert (refused.status, refused.body["error"]["code"]) == (422, "wrong_model")


@pytest.mark.parametrize("number", range(len(TEMPLATES)))
@pytest.mark.parametrize("prompt", ["", "A prompt"])
def test_white_space_is_that_of_jinja(number: int, prompt: str, tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_bytes(TEMPLATES[number].encode())
    template = ChatTemplate.read(Folder(tmp_path), prompt)
    assert template.of("a  query\n", " its document")[0] == RECORDED["templates"][number][bool(prompt)]


TAKEN = "{{ messages | selectattr('role', 'eq', 'document') | map(attribute='content') | first }}"


@pytest.mark.any_kernel
@pytest.mark.parametrize(
    ("template", "message"),
    [
        (
            "{% for message in messages %}{{ message.content }}{% endfor %}",
            "'{% for message in messages %}'; of Jinja",
        ),
        (PUBLISHED + "{% if add_generation_prompt %}\n{% endif %}", "of Jinja, bertcli reads only text"),
        (PUBLISHED.replace("}}\n<Document>", "| upper }}\n<Document>"), "'query_text | upper'"),
        (PUBLISHED.replace("{{ instruction }}", "{{ tools }}"), "'tools'"),
        (PUBLISHED.replace("'eq', 'query'", "'eq', 'user'"), "chat template with"),
        (PUBLISHED + "{{ 'x' }}", "chat template with \"'x'\""),
        (PUBLISHED + "{{ query_text ~ '!' }}", "chat template with \"query_text ~ '!'\""),
        (PUBLISHED + "{# said #}", "'{# said #}'"),
        (PUBLISHED + "{{ x", "'{{ x'"),
        (PUBLISHED + "{{ 'a' %}", "\"{{ 'a' %}\""),
        (PUBLISHED + "{% set a = document_text %}", "'document_text'"),
        (PUBLISHED.replace('default("Find', 'default("\\tFind'), "chat template with"),
        (PUBLISHED.replace("set query_text", "set messages"), "set messages"),
        (TAKEN, "inserts document, not the query once"),
        (PUBLISHED + TAKEN, "inserts query, document, document"),
        ("Hello", "inserts neither, not the query once"),
        (LISTS, "chat template with"),
        (None, "has no chat_template, which this model needs"),
    ],
)
def test_a_template_that_does_more_is_refused(template: str | None, message: str, tmp_path: Path) -> None:
    folder = write_reranker(tmp_path / "model", template=template)
    result = run("rank", "-m", folder, "tea", "milk")
    assert (result.status, result.err.count("\n")) == (1, 1)
    assert message in result.err


@pytest.mark.any_kernel
@pytest.mark.parametrize(
    ("file", "settings", "message"),
    [
        ("1_LogitScore/config.json", {"true_token_id": None}, "has the true_token_id null and the false_token_id 300"),
        ("1_LogitScore/config.json", {"false_token_id": False}, "the false_token_id false, which are not two ids"),
        ("1_LogitScore/config.json", {"true_token_id": -1}, "the true_token_id -1"),
        ("1_LogitScore/config.json", {"true_token_id": 5000}, "1185 tokens, and LogitScore needs the ids (5000, 300)"),
        ("1_LogitScore/config.json", {"false_token_id": 1185}, "LogitScore needs the ids (301, 1185)"),
        ("1_LogitScore/config.json", {"module_input_name": "scores"}, "the module_input_name 'scores'"),
        ("sentence_bert_config.json", {"transformer_task": None}, "modality_config"),
        (
            "sentence_bert_config.json",
            {"transformer_task": None, "modality_config": None},
            "lists modules that do not fit the transformer_task",
        ),
        ("sentence_bert_config.json", {"modality_config": {"message": {}}}, "has the modality_config"),
        ("sentence_bert_config.json", {"processing_kwargs": {"chat_template": {"tools": []}}}, "processing_kwargs"),
        ("sentence_bert_config.json", {"processing_kwargs": {"chat_template": {"restore_suffix": False}}}, "suffix"),
        ("sentence_bert_config.json", {"max_seq_length": 90}, "no room for the second text in 90 tokens"),
        ("tokenizer_config.json", {"chat_template": [{"name": "rag", "template": "x"}]}, "has no chat_template"),
        ("tokenizer_config.json", {"chat_template": 3}, "has the chat_template 3"),
        ("config.json", {"architectures": ["Qwen3Model"]}, "needs a head that predicts the next token (lm)"),
    ],
)
def test_files_that_do_not_fit_are_refused(
    file: str, settings: dict[str, Any], message: str, published: Path, tmp_path: Path
) -> None:
    change(published / file, **settings)
    result = run("rank", "-m", published, "tea", "milk " * 9)
    assert (result.status, result.err.count("\n")) == (1, 1)
    assert message in result.err


def test_one_of_several_templates_is_the_default(published: Path) -> None:
    named = [{"name": "default", "template": PUBLISHED}, {"name": "rag", "template": "{% if x %}"}]
    change(published / "tokenizer_config.json", chat_template=named)
    (record,) = bertcli.load(published).rank(*PAIRS[0][:1], [PAIRS[0][1]])
    assert record["score"] == pytest.approx(RECORDED["published"]["scores"][0], abs=1e-5)
    (published / "chat_template.jinja").write_bytes(b"\xff")
    with pytest.raises(BertcliError, match="is not UTF-8"):
        bertcli.load(published)


@pytest.mark.any_kernel
def test_without_modules_nobody_says_what_becomes_of_pairs(tmp_path: Path) -> None:
    folder = write_reranker(tmp_path / "model", **KINDS["classifier"])
    (folder / "modules.json").unlink()
    assert "no modules.json that says whether pairs go through it" in run("rank", "-m", folder, "tea", "milk").err
    write_qwen(folder, closed=False)
    assert run("rank", "-m", folder, "tea", "milk").status == 0
    plain = write_reranker(tmp_path / "plain", template=PLAIN)
    (plain / "modules.json").unlink()
    assert "newer revisions of rerankers" in run("rank", "-m", plain, "tea", "milk").err


def test_texts_alone_are_no_pairs(tmp_path: Path) -> None:
    folder = write_reranker(tmp_path / "model", **KINDS["published"])
    assert "scores pairs: use rank" in run("encode", "-m", folder, "tea").err
    classifier = write_reranker(tmp_path / "classifier", **KINDS["classifier"])
    assert "which bertcli does only for the pairs of a reranker" in run("encode", "-m", classifier, "tea").err

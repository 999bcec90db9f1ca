"""Sentence models equal sentence-transformers: on other families than BERT, and static ones, a table of vectors."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.checkpoint_files import write_safetensors
from helpers.family_checkpoints import make_family
from helpers.json_files import change_json, write_json
from helpers.lines import write_lines
from helpers.near import assert_near
from helpers.recorded import recorded
from helpers.sentence_folders import (
    FOLDERS,
    LIMIT,
    ROLES,
    write_folder,
    write_gemma,
    write_jina,
    write_qwen_folder,
    write_roles,
    write_t5,
)
from helpers.served import serving
from helpers.static_models import LAYOUTS, MODEL2VEC, WIDTH, write_model2vec, write_static
from helpers.terminal import bertcli as command
from helpers.vocabulary import pieces
from safetensors.numpy import load_file

import bertcli
from bertcli.errors import BertcliError
from bertcli.folder.cache import missing
from bertcli.folder.files import Folder

GOLDEN = recorded("sentence_models.json")
MODEL2VEC_GOLDEN = recorded("model2vec.json")
ROLE_GOLDEN = recorded("roles.json")
# A prompt's name with a task, and what it is equal to. A task alone has the default prompt, the documents'.
JINA_NAMES = [
    ("text-matching.query", "text-matching/query"),
    ("text-matching", "text-matching/document"),
    ("retrieval.document", "retrieval/document"),
]


@pytest.mark.parametrize("family", FOLDERS)
def test_sentence_models_of_other_families(tmp_path: Path, family: str) -> None:
    model = bertcli.load(write_folder(tmp_path, family))
    vectors = model.encode(GOLDEN["long"], truncation="silent")
    assert_near(vectors, GOLDEN["families"][family], 1e-6)
    (item,) = [item for block in model.encode_blocks(GOLDEN["long"][1:]) for item in block.items]
    assert (len(item.tokens.ids), item.tokens.truncated) == (LIMIT, True)


@pytest.mark.parametrize("name", ROLES)
def test_sentence_models_have_the_prompts_of_their_roles(tmp_path: Path, name: str) -> None:
    """As sentence-transformers runs: without a prompt of its own a role has none, not the default one."""
    model = bertcli.load(write_roles(tmp_path, name))
    recorded = ROLE_GOLDEN["vectors"][name]
    for role in ("text", "query", "document"):
        vectors = model.encode(ROLE_GOLDEN["texts"], prompt_name=model.kind.prompt_name(role))
        assert_near(vectors, recorded[role], 1e-6)
    hits = bertcli_search(model, tmp_path)
    expected = np.array(recorded["query"])[0] @ np.array(recorded["document"]).T
    assert_near(hits, np.sort(expected)[::-1], 1e-6)


def bertcli_search(model: Any, folder: Path) -> list[float]:
    """The scores of all texts for the first of them, by `search_files`."""
    file = folder / "texts.txt"
    write_lines(file, ROLE_GOLDEN["texts"])
    return [hit["score"] for hit in bertcli.search_files(ROLE_GOLDEN["texts"][0], file, model=model)]


def test_nomics_prompts_are_a_note_where_none_is_given(tmp_path: Path) -> None:
    model = ("-m", str(write_folder(tmp_path, "nomic_bert")))
    expected = "expect 'search_query: ' or 'search_document: ' before each text"
    assert command("encode", *model, "hot tea", "river").err.count(expected) == 1
    texts = tmp_path / "texts.txt"
    texts.write_text("hot tea\nriver\n", encoding="utf-8")
    assert command("search", "tea", *model, "-i", texts).err.count(expected) == 1  # of queries and passages
    assert command("similarity", *model, "hot tea", "river").err.count(expected) == 1
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d", "text": "hot tea"}\n', encoding="utf-8")
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "tea"}\n', encoding="utf-8")
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t1\n", encoding="utf-8")
    assert command("evaluate", tmp_path, *model).err.count(expected) == 1
    assert expected not in command("encode", *model, "--prompt", "search_query: ", "hot tea").err
    assert expected not in command("encode", *model, "--prompt", "", "hot tea").err
    (tmp_path / "config_sentence_transformers.json").write_text('{"prompts": {"query": "q: "}}', encoding="utf-8")
    assert expected not in command("encode", *model, "hot tea").err


def test_layers_after_the_network_are_a_note_where_they_are_left_out(tmp_path: Path) -> None:
    folder = write_gemma(tmp_path)
    note = "the layers after the network (3,072 parameters) are not"
    assert "layers after" not in command("params", "-m", folder).err
    exported = command("export", "-m", folder, "-o", tmp_path / "m.onnx", "--pooling", "none", "--no-verify")
    assert f"{note} in the graph." in exported.err.splitlines()[0]
    assert f"{note} compared." in command("diff", folder, "--versus", folder, "tea").err.splitlines()[-1]
    modules = (folder / "modules.json").read_text(encoding="utf-8")
    (folder / "modules.json").write_text(modules.replace("models.Dense", "models.Unheard"), encoding="utf-8")
    assert "what comes after the network does not run: " in command("params", "-m", folder).err.splitlines()[-1]


def test_params_count_what_is_not_used_of_a_base_model(tmp_path: Path) -> None:
    record = command("params", "-m", make_family(tmp_path, "esm"), "--format", "json").json
    rows = [row for row in record["rows"] if row["type"] == "not used"]
    found = [(row["path"], row["params"], row["bytes"]) for row in rows]
    assert found == [("contact_head", 5, 20)]
    assert record["total_params"] == sum(row["params"] for row in record["rows"])


def test_configurations_of_other_models_are_not_counted_as_bert(tmp_path: Path) -> None:
    keys = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    sizes = dict(zip(keys, (50, 8, 1, 2, 16), strict=True))
    for changed, message in (
        (
            {"alibi_starting_size": 512, "model_type": "roberta"},
            "alibi_starting_size is 512: attention with ALiBi is not supported",
        ),
        ({"auto_map": {"AutoModel": "modeling.Own"}}, "is not of a plain BERT model: it has code of its own"),
    ):
        file = tmp_path / "config.json"
        write_json(file, {"model_type": "bert", **sizes, **changed})
        done = command("params", "--config", file)
        assert (done.status, message in done.error, done.out) == (1, True, "")
    own = {"model_type": "nomic_bert", **sizes, "auto_map": {"AutoModel": "modeling.NomicBertModel"}}
    write_json(tmp_path / "config.json", own)
    assert command("params", "--config", tmp_path / "config.json").status == 0


def test_embeddinggemma_with_its_prompts(tmp_path: Path) -> None:
    model = bertcli.load(write_gemma(tmp_path))
    texts = [*GOLDEN["texts"], *GOLDEN["long"]]
    for name, expected in GOLDEN["gemma"].items():
        vectors = model.encode(texts, prompt_name=name or None, truncation="silent")
        assert_near(vectors, expected, 2e-6)
    found = command("encode", "-m", str(tmp_path), "--prompt-name", "query", "--format", "jsonl", texts[0])
    assert_near(found.records[0]["embedding"], GOLDEN["gemma"]["query"][0], 2e-6)
    assert "'task: search result | query: ' is prepended" in found.err


@pytest.mark.parametrize("case", GOLDEN["qwen"])
def test_causal_models_pool_the_last_token_or_weigh_them_by_their_places(tmp_path: Path, case: str) -> None:
    pooling, name = case.split("/")
    model = bertcli.load(write_qwen_folder(tmp_path, pooling))
    texts = [*GOLDEN["texts"], *GOLDEN["long"]]
    vectors = model.encode(texts, prompt_name=name or None, truncation="silent")
    assert_near(vectors, GOLDEN["qwen"][case], 2e-6)
    onnx = bertcli.load(tmp_path, engine="onnx").encode(texts, prompt_name=name or None, truncation="silent")
    assert_near(onnx, GOLDEN["qwen"][case], 1e-5)
    layers = model.encode(texts, layer=(1, -1), truncation="silent", normalize=False)
    last = model.encode(texts, layer=-1, truncation="silent", normalize=False)
    assert_near(layers[:, last.shape[1] :], last, 2e-6)


@pytest.mark.parametrize("name", GOLDEN["qwen2"])
@pytest.mark.parametrize("engine", ["numpy", "onnx"])
def test_qwen2_sees_both_ways_where_its_config_says_so(tmp_path: Path, engine: str, name: str) -> None:
    folder = write_qwen_folder(tmp_path / "model", family="qwen2", is_causal=False)
    options = ["--prompt-name", name] if name else []
    texts = [*GOLDEN["texts"], *GOLDEN["long"]]
    found = command("encode", "-m", folder, *texts, *options, "--engine", engine, "--format", "jsonl")
    vectors = [record["embedding"] for record in found.records]
    assert_near(vectors, GOLDEN["qwen2"][name], 1e-5)


@pytest.mark.parametrize("family", GOLDEN["t5"])
@pytest.mark.parametrize("engine", ["numpy", "onnx"])
def test_t5s_encoder_with_a_dense_layer(tmp_path: Path, engine: str, family: str) -> None:
    folder = write_t5(tmp_path, family)
    texts = [*GOLDEN["texts"], *GOLDEN["long"]]
    found = command("encode", "-m", folder, *texts, "--engine", engine, "--format", "jsonl")
    vectors = [record["embedding"] for record in found.records]
    assert_near(vectors, GOLDEN["t5"][family], 1e-5)
    assert (
        "bertcli runs its encoder, for encode, similarity and search." in command("fill-mask", "-m", folder, "a").error
    )


def test_t5s_decoder_is_not_read(tmp_path: Path) -> None:
    folder = write_t5(tmp_path, "t5")
    vectors = command("encode", "-m", folder, "hot tea", "--format", "jsonl").out
    stored = {name: ("F32", values) for name, values in load_file(folder / "model.safetensors").items()}
    decoder = {"lm_head.weight": ("F32", np.ones((9, WIDTH), np.float32))}
    decoder["decoder.block.0.layer.0.SelfAttention.q.weight"] = ("F32", np.ones((32, 32), np.float32))
    decoder["encoder.embed_tokens.weight"] = stored.pop("shared.weight")
    write_safetensors(folder / "model.safetensors", stored | decoder)
    assert command("encode", "-m", folder, "hot tea", "--format", "jsonl").out == vectors
    record = command("params", "-m", folder, "--format", "json").json
    assert {row["path"]: row["params"] for row in record["rows"] if row["type"] == "not used"} == {
        "decoder": 32 * 32,
        "lm_head": 9 * WIDTH,
    }


@pytest.mark.parametrize("layout", LAYOUTS)
def test_static_models_equal_sentence_transformers(tmp_path: Path, layout: str) -> None:
    write_static(tmp_path, layout)
    assert missing(Folder(tmp_path)) == []
    model = bertcli.load(tmp_path)
    assert_near(model.encode(GOLDEN["texts"]), GOLDEN["static"][layout], 1e-6)
    assert (model.heads, model.config.hidden_size, model.notes) == ((), WIDTH, ())


@pytest.mark.parametrize("name", ["plain", "float16, mapped and weighted", "int8", "int8, mapped and weighted"])
def test_info_says_as_what_a_static_table_is_stored(tmp_path: Path, name: str) -> None:
    folder = write_model2vec(tmp_path, name)
    (stored,) = command("info", folder, "--format", "json").json["dtypes"]
    assert stored == {"float32": "F32", "float16": "F16", "int8": "I8"}[MODEL2VEC[name].dtype]


@pytest.mark.parametrize("name", MODEL2VEC)
def test_static_models_equal_the_library_that_reads_the_folder(tmp_path: Path, name: str) -> None:
    folder, recorded = write_model2vec(tmp_path, name), MODEL2VEC_GOLDEN["folders"][name]
    assert missing(Folder(folder)) == []
    vectors = bertcli.load(folder).encode(MODEL2VEC_GOLDEN["texts"], truncation="silent")
    expected = np.array(recorded["vectors"])
    # model2vec averages a float16 table in float16.
    half = MODEL2VEC[name].dtype == "float16"
    atol = 1e-3 * np.abs(expected).max() if half else 1e-6 * max(1, np.abs(expected).max())
    assert_near(vectors, expected, atol)
    unknown = vectors[MODEL2VEC_GOLDEN["texts"].index("§§§")]
    # A Unigram model has a piece for the space before them.
    assert unknown.any() == (recorded["library"] == "sentence-transformers" or MODEL2VEC[name].unigram)


def test_static_models_leave_out_unknown_words_wherever_tokens_are_shown(tmp_path: Path) -> None:
    folder = write_model2vec(tmp_path, "plain")
    tokens = command("tokenize", "-m", folder, "hot § tea", "--format", "jsonl").records[0]
    assert tokens["tokens"] == ["hot", "tea"]
    model = bertcli.load(folder)
    unknown = model.tokenizer.special_id("unk")
    hot, tea = tokens["ids"]
    assert unknown is not None
    assert model.tokenizer.of_ids([hot, unknown, tea]).ids == [hot, tea]
    told = command("encode", "-m", folder, "tea " * 600, "--format", "jsonl").err
    assert "had more than 512 tokens" in told
    assert "mean of the rows of a static model's table" in told
    (folder / "config.json").write_text('{"max_length": 0}')
    refused = command("encode", "-m", folder, "tea")
    assert refused.status == 1
    assert "config.json has the max_length 0" in refused.err


def test_static_models_cut_texts_where_their_tokenizer_does(tmp_path: Path) -> None:
    write_static(tmp_path, "root")
    file = tmp_path / "tokenizer.json"
    limit = {"max_length": 3, "strategy": "LongestFirst", "stride": 0}
    for direction, kept in (("Right", "the king drinks"), ("Left", "drinks hot tea")):
        cut = {"truncation": {**limit, "direction": direction}}
        change_json(file, cut)
        model = bertcli.load(tmp_path)
        assert np.array_equal(model.encode(["the king drinks hot tea"]), model.encode([kept]))
    told = command("encode", "-m", tmp_path, "the king drinks hot tea", "--format", "jsonl").err
    assert "had more than 3 tokens" in told


TABLE = np.zeros((3, WIDTH), np.float32)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"versus": ("F32", TABLE)}, "has no table of vectors, a tensor embedding.weight or embeddings"),
        ({"embeddings": ("F32", TABLE[0])}, r"embeddings of shape \(6,\), which is no table"),
        (
            {"embeddings": ("F32", TABLE), "mapping": ("I64", np.array([0, 3]))},
            "mapping of tokens to rows that do not exist",
        ),
        ({"embeddings": ("F32", TABLE), "mapping": ("I64", np.array([0, -1]))}, "mapping of tokens to rows"),
        ({"embeddings": ("F32", TABLE), "mapping": ("F32", np.zeros(2, np.float32))}, "mapping of tokens"),
        ({"embeddings": ("F32", TABLE), "weights": ("F32", np.ones(2, np.float32))}, r"weights of shape \(2,\) for 3"),
        ({"embedding.weight": ("F32", TABLE)}, "vocabulary has"),
    ],
)
def test_static_models_that_are_damaged_are_refused(tmp_path: Path, tensors: dict[str, Any], message: str) -> None:
    write_static(tmp_path, "root")
    write_safetensors(tmp_path / "model.safetensors", tensors)
    with pytest.raises(BertcliError, match=message) as caught:
        bertcli.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_static_models_average_only_the_texts_that_have_tokens(tmp_path: Path) -> None:
    write_static(tmp_path, "root")
    texts = ["", "hot", "", "", "tea cup", ""]
    model = bertcli.load(tmp_path)
    vectors = model.encode(texts)
    assert not vectors[[0, 2, 3, 5]].any()
    np.testing.assert_array_equal(vectors[[1, 4]], model.encode(["hot", "tea cup"]))
    assert len(pieces()) == model.config.vocab_size


def test_static_models_read_no_settings_of_a_transformer(tmp_path: Path) -> None:
    write_static(tmp_path, "root")
    before = bertcli.load(tmp_path).encode(GOLDEN["texts"])
    write_json(tmp_path / "sentence_bert_config.json", {"max_seq_length": 1, "do_lower_case": True})
    np.testing.assert_array_equal(bertcli.load(tmp_path).encode(GOLDEN["texts"]), before)


@pytest.mark.parametrize("engine", ["numpy", "onnx"])
def test_a_dense_layer_with_a_sigmoid_is_that_of_its_sums(tmp_path: Path, engine: str) -> None:
    folder, found = write_gemma(tmp_path), []
    for name in ("linear.Identity", "activation.Sigmoid"):
        last = folder / "3_Dense" / "config.json"
        change_json(last, {"activation_function": f"torch.nn.modules.{name}"})
        options: list[Any] = ["--engine", engine, "--no-normalize", "-o", tmp_path / f"{name}.npy"]
        result = command("encode", "-m", folder, "--prompt", "", "hot tea", "a river", *options)
        assert result.status == 0, result.error
        found.append(np.load(tmp_path / f"{name}.npy"))
    assert_near(found[1], 1 / (1 + np.exp(-found[0])), 1e-6)
    assert np.ptp(found[1]) > 0.01


@pytest.mark.parametrize("case", GOLDEN["jina"])
@pytest.mark.parametrize("engine", ["numpy", "onnx"])
def test_jina_v5_takes_the_adapter_of_a_task(tmp_path: Path, case: str, engine: str) -> None:
    family, task, prompt = case.split("/")
    folder = write_jina(tmp_path / "jina", family)
    assert missing(Folder(folder)) == []
    texts = [*GOLDEN["texts"], *GOLDEN["long"]]
    arguments = ["--prompt-name", prompt, "--engine", engine, "--format", "jsonl"]
    found = command("encode", "-m", f"{folder}+{task}", *texts, *arguments)
    assert found.status == 0, found.error
    vectors = [record["embedding"] for record in found.records]
    assert_near(vectors, GOLDEN["jina"][case], 1e-5)
    inside = command("encode", "-m", folder / "adapters" / task, *texts, *arguments)
    assert inside.out == found.out


def test_jina_v5_takes_another_adapter_for_each_request(tmp_path: Path) -> None:
    folder = write_jina(tmp_path / "jina", "eurobert")
    texts = [*GOLDEN["texts"], *GOLDEN["long"]]
    model = bertcli.load(folder, prompt_name="text-matching.query")
    assert_near(model.encode(texts, prompt_name="query"), GOLDEN["jina"]["eurobert/text-matching/query"], 1e-5)
    opened = bertcli.load(folder, adapter="retrieval")
    with serving([opened]) as running:
        for name, case in (("query", "retrieval/query"), *JINA_NAMES):
            golden = GOLDEN["jina"][f"eurobert/{case}"]
            assert_near(opened.encode(texts, prompt_name=name), golden, 1e-5)
            answer = running.ask("/embed", {"inputs": texts, "prompt_name": name})
            assert answer.status == 200, answer.body
            assert_near(answer.body, golden, 1e-5)
        refused = running.ask("/embed", {"inputs": texts, "prompt_name": "sorting.query"})
        assert (refused.status, "has no prompt 'sorting.query'" in str(refused.body)) == (422, True)
    assert opened.for_prompt("retrieval.document") is opened, "it has that adapter already"
    changed = replace(opened, name="other")
    with pytest.raises(BertcliError, match="has no other adapter"):
        changed.encode(texts, prompt_name="text-matching")


def test_jina_v5_searches_with_one_adapter(tmp_path: Path) -> None:
    folder = write_jina(tmp_path / "jina", "qwen3")
    file = tmp_path / "texts.txt"
    file.write_text("hot tea\na river\n", encoding="utf-8")
    found = {}
    ways: dict[str, list[Any]] = {
        "whole": [f"{folder}+text-matching"],
        "named": [folder, "--prompt-name", "text-matching.query"],
    }
    for name, how in ways.items():
        found[name] = command("search", "a cup", "-i", file, "-m", *how, "--format", "jsonl").records
    assert found["named"] == found["whole"]
    by_python = bertcli.search_files("a cup", file, model=folder, prompt_name="text-matching.query")
    assert by_python == found["whole"]


def test_jina_v5_asks_for_a_task(tmp_path: Path) -> None:
    folder = write_jina(tmp_path / "jina", "qwen3")
    told = (
        "has an adapter for each task, and none of its own: choose one as in NAME+retrieval (retrieval, "
        "text-matching), or a prompt's name with its task (--prompt-name retrieval.query)."
    )
    assert told in command("encode", "-m", folder, "hot tea").error
    for name in ("query", "sorting.query", "retrievals.query"):
        assert told in command("encode", "-m", folder, "hot tea", "--prompt-name", name).error
    assert "There is no folder" in command("encode", "-m", f"{folder}+./sorting", "hot tea").error
    assert command("tokenize", "-m", folder, "hot tea").status == 0
    documents = command("encode", "-m", f"{folder}+retrieval", "hot tea", "--format", "jsonl")
    assert "'Document: ' is prepended" in documents.err
    assert "lasttoken, as in jina-embeddings-v5's own code" in documents.err
    (folder / "adapters" / "retrieval" / "adapter_model.safetensors").unlink()
    assert missing(Folder(folder)) == ["adapters/retrieval/adapter_model.safetensors"]
    change_json(folder / "config.json", {"task_names": ["../x"]})
    assert "has the task_names" in command("encode", "-m", folder, "hot tea").error

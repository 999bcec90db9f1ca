"""bertcli info: what a model is, and that the commands it names are those that can use it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.checkpoint_files import Sentence
from helpers.checkpoints import make
from helpers.examples import asked, commands, try_each
from helpers.family_checkpoints import FAMILIES, make_family
from helpers.json_files import write_json
from helpers.late_folders import write_late
from helpers.modular import write_cross_encoder, write_router
from helpers.static_models import write_static
from helpers.terminal import Result, wrong_usage
from helpers.terminal import bertcli as run
from helpers.tokenizer_kinds import KINDS, write_kind
from helpers.vocabulary import pieces, write_tokenizer_json, write_vocabulary

from bertcli.cli.options import models_here

OF_HEADS = {
    "fill-mask": {"mlm"},
    "score": {"mlm"},
    "lens": {"mlm"},
    "tag": {"token_classifier"},
    "answer": {"qa"},
    "classify --choices": {"multiple_choice"},
    "classify": {"classifier", "nsp"},
}
VECTORS = {"encode", "keywords", "search", "similarity"}
ALWAYS = VECTORS | {
    "params", "trace", "neighbors", "explain", "heads", "patch", "probe", "diff", "tokenize", "evaluate", "serve",
    "export",
}  # fmt: skip


def cases() -> Iterator[tuple[str, str]]:
    for head in ("model", "mlm", "pretraining", "nsp", "classifier", "token_classifier", "qa", "multiple_choice"):
        yield "bert", head
    for family, of in FAMILIES.items():
        for head in of.heads:
            yield family, head


def run_too() -> set[tuple[str, str]]:
    """Cases whose examples are run: BERT with every head, every family with one of its heads, each in turn."""
    of_families = {(family, of.heads[i % len(of.heads)]) for i, (family, of) in enumerate(FAMILIES.items())}
    return of_families | {case for case in cases() if case[0] == "bert"}


@pytest.mark.parametrize(("family", "head"), [*cases()])
def test_info_names_the_commands_that_can_use_a_model(tmp_path: Path, family: str, head: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    if family == "bert":
        make(folder, head=head, tokenizer="both")
    else:
        size = write_kind(folder, family) if family in KINDS else len(pieces())
        if family not in KINDS:
            write_vocabulary(folder, pieces())
            write_tokenizer_json(folder, pieces())
        make_family(folder, family, head, sizes={"V": size})
    record = asked(folder)
    assert record["runs"]
    assert record["problems"] == []
    expected = {command for command, heads in OF_HEADS.items() if heads.intersection(record["heads"])}
    assert commands(record) == ALWAYS | expected
    assert record["num_hidden_layers"] == (4 if family == "modernbert" else 2)
    assert (record["hidden_size"], record["dtypes"]) == (32, ["F32"])
    assert record["files"] == [{"name": "model.safetensors", "bytes": (folder / "model.safetensors").stat().st_size}]
    assert ("labels" in record) == bool({"classifier", "token_classifier"}.intersection(record["heads"]))
    assert ("tied" in record) == ("mlm" in record["heads"])
    record["commands"] = [use for use in record["commands"] if use["command"] != "export"]  # tested below
    if (family, head) in run_too():
        try_each(record, folder, tmp_path)


@pytest.mark.parametrize("kind", ["sentence", "static", "late", "cross-encoder", "reranker", "nli", "router"])
def test_info_of_models_that_are_no_plain_heads(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "model"
    if kind == "sentence":
        make(folder, tokenizer="both", sentence=Sentence(("mean",)))
    elif kind == "static":
        write_static(folder, "normalized")
    elif kind == "late":
        write_late(folder, "modules fixed")
    elif kind == "cross-encoder":
        write_cross_encoder(folder)
    elif kind == "reranker":
        make(folder, head="classifier", num_labels=1)
    elif kind == "nli":
        make(folder, head="classifier", id2label={0: "entailment", 1: "neutral", 2: "contradiction"})
    else:
        write_router(folder)
    record = asked(folder)
    expected = {
        "sentence": ("sentence vectors", ALWAYS, set()),
        "static": ("static word vectors", ALWAYS, {"heads", "patch"}),
        "late": ("late interaction (ColBERT)", ALWAYS | {"encode --pooling none", "rank"}, VECTORS | {"patch"}),
        "cross-encoder": ("cross-encoder", ALWAYS | {"rank"}, VECTORS),
        "reranker": ("cross-encoder", ALWAYS | {"rank", "classify"}, set()),
        "nli": ("text classifier", ALWAYS | {"classify", "classify --candidates"}, set()),
    }
    sparse = (
        "sparse vectors (SPLADE)",
        ALWAYS | {"encode --sparse", "encode --sparse --prompt-name query", "rank", "fill-mask", "score", "lens"},
        VECTORS,
    )
    title, some, never = expected.get(kind, sparse)
    assert record["kind"] == title
    assert commands(record) == some - never
    # Vectors of tokens alone have a width and no pooling; pairs and weights of the vocabulary have neither.
    has_width, has_pooling = "width" in record, "pooling" in record
    assert has_width == (kind not in ("cross-encoder", "router"))
    assert has_pooling == (has_width and kind != "late")
    assert record["problems"] == []
    try_each(record, folder, tmp_path)


def test_what_info_says_of_a_sentence_model(tmp_path: Path) -> None:
    folder = make(tmp_path / "model", tokenizer="both", dtype="F16", sentence=Sentence(("cls", "max")))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 20, "do_lower_case": true}')
    settings = {"prompts": {"query": "Find: ", "document": ""}, "default_prompt_name": "query"}
    write_json(folder / "config_sentence_transformers.json", settings)
    record = asked("-m", folder)
    assert (record["limit"], record["max_tokens"], record["vocab_size"]) == (20, 48, len(pieces()))
    assert (record["pooling"], record["width"], record["normalize"]) == (["cls", "max"], 64, False)
    assert record["prompts"] == settings["prompts"]
    assert (record["prompt"], record["do_lower_case"], record["dtypes"]) == ("Find: ", True, ["F16"])
    assert record["modules"] == ["Transformer", "Pooling"]
    shown = run("info", folder).out
    assert "\n Limit        20 tokens a text; the network has 48 positions\n" in shown
    assert "\n Vectors      64 numbers, pooled by cls + max, from 1_Pooling/config.json\n" in shown
    assert "\n Prompts      query 'Find: '\n" in shown
    assert "\n Network      2 layers, width 32, 2 attention heads, feed-forward 64\n" in shown
    assert f'\n  bertcli encode -m {folder} "The cat sat on the mat."\n' in shown


def test_info_names_every_class_of_a_model(tmp_path: Path) -> None:
    classes = ["BertForMaskedLM", "BertModel"]
    folder = make(tmp_path / "model", head="mlm", tokenizer="both", config={"architectures": classes})
    assert asked(folder)["architectures"] == classes
    assert "BertForMaskedLM, BertModel" in run("info", folder).out


def test_what_info_says_of_a_model_that_does_not_run(tmp_path: Path) -> None:
    folder = make(tmp_path / "a", config={"model_type": "llama", "architectures": ["LlamaForCausalLM"]})
    record = asked(folder)
    assert (record["runs"], record["commands"]) == (False, [])
    assert record["problems"][0].startswith(f"{folder}/config.json: bertcli does not run models of type 'llama'; it")
    assert (record["model_type"], record["hidden_size"], record["dtypes"]) == ("llama", 32, ["F32"])
    assert record["parameters"] > 1000
    result = run("info", folder)
    assert result.status == 0
    assert "\n Classes        LlamaForCausalLM\n" in result.out
    assert "\n Does not run " in result.out
    assert "Commands that can use it" not in result.out
    (folder / "config.json").write_text("{")
    assert "config.json is not valid JSON" in asked(folder)["problems"][0]
    (folder / "config.json").unlink()
    assert "has no config.json" in asked(folder)["problems"][0]


def test_info_names_what_is_wrong_beside_a_network_that_runs(tmp_path: Path) -> None:
    folder = make(tmp_path / "a", head="mlm", tokenizer="none")
    record = asked(folder)
    assert record["runs"]
    assert commands(record) == {"params", "trace", "export"}
    assert "has no tokenizer" in record["problems"][0]
    assert "\n Wrong " in run("info", folder).out
    folder = make(tmp_path / "b", sentence=Sentence(("mean",)))
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode": "lastest"}')
    record = asked(folder)
    assert "asks for the pooling 'lastest'" in record["problems"][0]
    assert "encode" not in commands(record)
    assert "tokenize" in commands(record)


def test_info_takes_the_model_in_either_place(tmp_path: Path) -> None:
    assert run("info", "bert-mini-mlm").out == run("info", "-m", "bert-mini-mlm").out
    by_variable = run("info", environment={"BERTCLI_MODEL": "bert-mini-mlm"})
    assert by_variable.out == run("info", "bert-mini-mlm").out
    other = run("info", "bert-mini-sentence", environment={"BERTCLI_MODEL": "bert-mini-mlm"})
    assert other.out == run("info", "bert-mini-sentence").out
    wrong_usage("info", "bert-mini-mlm", "-m", "bert-mini-sentence", why="give the model once")
    assert run("info", tmp_path / "none").status == 1


@pytest.mark.parametrize("columns", ["80", "200"])
def test_info_fits_its_terminal(columns: str) -> None:
    shown = run("info", "bert-mini-mlm", terminal=True, environment={"COLUMNS": columns, "NO_COLOR": "1"}).out
    facts, _, examples = shown.partition("\nCommands that can use it:\n")
    assert max(map(len, facts.splitlines())) <= int(columns)
    assert '  bertcli fill-mask -m bert-mini-mlm "She poured a cup of hot [MASK]."' in examples.splitlines()
    listed = run("info", terminal=True, environment={"COLUMNS": columns, "HF_HUB_CACHE": "/nowhere"}).out
    assert max(map(len, listed.splitlines())) <= int(columns)


def cache(at: Path) -> dict[str, str]:
    """A Hub's cache with a model, one of another kind, and one whose download was cut off."""
    commit = "0" * 40
    for name in ("someone--model", "someone--large", "one"):
        refs = at / f"models--{name}" / "refs"
        refs.mkdir(parents=True)
        (refs / "main").write_text(commit)
    make(at / "models--someone--model" / "snapshots" / commit, head="mlm", tokenizer="json")
    (at / "models--someone--model" / "refs" / "v2").write_text(commit)
    make(at / "models--someone--large" / "snapshots" / commit, config={"model_type": "llama"})
    (make(at / "models--one" / "snapshots" / commit, tokenizer="json") / "model.safetensors").unlink()
    (at / "models--none").mkdir()
    return {"HF_HUB_CACHE": str(at)}


def test_info_lists_what_needs_no_download(tmp_path: Path) -> None:
    environment = cache(tmp_path)
    record = run("info", "--format", "json", environment=environment).json
    found = {(one["model"], one.get("revision", "main")): one for one in record["models"]}
    assert [*found] == [
        ("bert-mini-mlm", "main"),
        ("bert-mini-sentiment", "main"),
        ("bert-mini-sentence", "main"),
        ("one", "main"),
        ("someone/large", "main"),
        ("someone/model", "main"),
        ("someone/model", "v2"),
    ]
    assert found["bert-mini-sentence", "main"]["what"] == "Transformer, Pooling, Normalize"
    assert found["someone/model", "v2"]["what"] == "BertForMaskedLM"
    assert found["one", "main"]["lacks"] == ["model.safetensors"]
    assert not found["someone/large", "main"]["runs"]
    assert found["someone/large", "main"]["what"].startswith("bertcli does not run models of type 'llama'")
    elsewhere = {"HF_HUB_CACHE": str(tmp_path / "none")}
    assert run("info", "--cache-dir", tmp_path, "--format", "json", environment=elsewhere).json == record
    shown = run("info", environment=environment).out
    assert "\n someone/model@v2 " in shown
    assert "BERT, BertModel (lacks model.safetensors)" in shown


def test_a_shell_completes_names_of_models_that_are_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in cache(tmp_path).items():
        monkeypatch.setenv(name, value)
    assert models_here("bert-mini-se") == ["bert-mini-sentiment", "bert-mini-sentence"]
    assert models_here("some") == ["someone/large", "someone/model"]
    result = completed("bertcli encode -m someone/m")
    assert "someone/model" in result.out
    assert "bert-mini" not in result.out
    assert "bert-mini-mlm" in completed("bertcli info bert-mini-m").out


def completed(words: str) -> Result:
    """What the application gives a shell that asks how the last word may go on."""
    asked = {"_BERTCLI_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": words}
    return run(environment=asked)


def test_counts_agree_with_their_nouns(tmp_path: Path) -> None:
    folder = make(tmp_path / "m", head="mlm", sizes={"num_hidden_layers": 1, "num_attention_heads": 1})
    assert " 1 layer, width 32, 1 attention head, " in run("info", folder).out
    cut = run("fill-mask", "-m", folder, "[MASK] the the the the", "--max-length", "4").err
    assert "Warning: 1 of 1 text had more than 4 tokens and lost 3 (" in cut


def test_info_says_the_stored_type_and_the_one_that_is_computed_in() -> None:
    weights = "model.safetensors (10.8 MB), stored as F16, computed in float32"
    assert weights in run("info", "bert-mini-sentiment", environment={"COLUMNS": "120"}).out

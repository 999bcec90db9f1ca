"""Every command with every kind of model that is told apart by more than its family: right, or refused in a line.

What families and their heads have in common is in test_info_command.py; here are dialects of names, ways to turn
positions, tokenizers that belong to a family, adapters, routers and rerankers. A new kind belongs into MODELS.
"""

import shlex
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.adapters import CASES, write_lora
from helpers.checkpoint_files import Sentence, write_sentence
from helpers.examples import asked, commands, try_each
from helpers.family_checkpoints import make_family
from helpers.gliner import write_gliner
from helpers.modular import write_router
from helpers.near import assert_near
from helpers.rerankers import KINDS as RERANKERS
from helpers.rerankers import write_reranker
from helpers.sentence_folders import write_qwen_folder
from helpers.terminal import bertcli as run
from helpers.tokenizer_kinds import KINDS as TOKENIZERS
from helpers.tokenizer_kinds import write_kind, write_qwen
from helpers.vocabulary import pieces, write_tokenizer_json
from reference.family_cases import CAUSAL, EXPERTS, MOSAIC, ROPES, WINDOWS

import bertcli
from bertcli.cli.app import every_command

TEXT = "the good king drank hot tea"
WITHOUT_MODEL = {"guide", "info", "doctor", "mcp", "plugin"}
# What each command is called with where it has to refuse; a search needs vectors that the same model made.
REFUSED = {
    **dict.fromkeys(("encode", "classify", "score", "tag", "lens", "heads", "explain", "keywords"), f"'{TEXT}'"),
    **dict.fromkeys(("patch", "rank", "similarity"), f"'{TEXT}' tea"),
    "fill-mask": "'a [MASK]'",
    "answer": f"who? --context '{TEXT}'",
    "evaluate": "none.csv",
    "export": "-o none.onnx",
    "probe": "-i none.csv",
}


def family(folder: Path, name: str, head: str = "model", tokenizer: str = "", **more: Any) -> Path:
    """A checkpoint with a tokenizer; "" is BERT's, and "qwen" Qwen's."""
    folder.mkdir()
    if tokenizer == "qwen":
        size = write_qwen(folder)
    elif tokenizer in (*TOKENIZERS, "t5"):
        size = write_kind(folder, tokenizer)
    else:
        write_tokenizer_json(folder, pieces())
        size = len(pieces())
    sizes = {"V": size} | more.pop("sizes", {})
    return make_family(folder, name, head, sizes=sizes, **more)


def sentence(folder: Path, pooling: str, *arguments: Any, **more: Any) -> Path:
    """The same with the files of a sentence model."""
    family(folder, *arguments, **more)
    write_sentence(folder, Sentence((pooling,), normalize=True), 32, [])
    return folder


def adapter(folder: Path, case: str) -> Path:
    folder.mkdir()
    _, adapted = write_lora(folder, case)
    if CASES[case].family != "bert":
        write_tokenizer_json(folder / "base", pieces()[:120])
    return adapted


MODELS: dict[str, Callable[[Path], Path]] = {
    "qwen3 embedder": write_qwen_folder,
    "qwen3 reranker": partial(write_reranker, **RERANKERS["published"]),
    "qwen3 reranker with a classifier": partial(write_reranker, **RERANKERS["classifier"]),
    "qwen3 windows": partial(family, name="qwen3", tokenizer="qwen", config=WINDOWS),
    "qwen3 both ways": partial(family, name="qwen3", tokenizer="qwen", config={"is_causal": False}),
    **{
        f"qwen3 {head}": partial(family, name="qwen3", head=head, tokenizer="qwen")
        for head in ("lm", "classifier", "token_classifier")
    },
    "gemma causal": partial(family, name="gemma3_text", tokenizer="gemma3_text", config=CAUSAL),
    "gemma causal classifier": partial(
        family, name="gemma3_text", head="classifier", tokenizer="gemma3_text", config=CAUSAL
    ),
    "jina sentence": lambda folder: sentence(folder, "mean", "jina_bert", config={"model_type": "bert"}),
    "jina reranker": partial(family, name="jina_bert", head="classifier", sizes={"C": 1}),
    **{f"jina {head}": partial(family, name="jina_bert", head=head) for head in ("mlm", "token_classifier")},
    **{
        f"jina code {head}": partial(family, name="jina_bert", head=head, old="code")
        for head in ("model", "mlm", "classifier")
    },
    **{
        f"mosaic {head}": partial(family, name="jina_bert", head=head, old="mosaic", config=MOSAIC)
        for head in ("model", "mlm", "classifier")
    },
    **{
        f"deberta 1 {head}": partial(family, name="deberta", head=head, tokenizer="roberta")
        for head in ("mlm", "classifier", "token_classifier", "qa")
    },
    **{f"adapter of {case}": partial(adapter, case=case) for case in ("bert", "bert labels of tokens", "modernbert")},
    "nomic with experts": partial(family, name="nomic_bert", old="experts", sizes={"L": 4}, config=EXPERTS),
    "qwen2 embedder": partial(write_qwen_folder, family="qwen2", is_causal=False),
    **{kind: partial(family, name=kind, tokenizer="t5") for kind in ("t5", "umt5")},
    "router": write_router,
    "gliner": write_gliner,
    "gliner on bert": partial(write_gliner, backbone="bert", width=32, layers=0, form="bin"),
    **{
        f"{rope['rope_type']} in {name}": partial(
            family, name=name, tokenizer=tokenizer, config={"rope_parameters": rope}
        )
        for rope, (name, tokenizer) in zip(
            (*ROPES, ROPES[1]),
            (("qwen3", "qwen"), ("eurobert", ""), ("nomic_bert", "")),
            strict=True,
        )
    },
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of each kind of MODELS, made when it is first asked for; for reading only."""
    root = tmp_path_factory.mktemp("kinds")

    @cache
    def folder_of(kind: str) -> Path:
        return MODELS[kind](root / kind.replace(" ", "-"))

    return folder_of


@pytest.mark.parametrize("kind", MODELS)
def test_each_command_runs_or_refuses(kind: str, models: Callable[[str], Path], tmp_path: Path) -> None:
    folder = models(kind)
    record = asked(folder)
    assert record["problems"] == []
    try_each(record, folder, tmp_path)
    usable = {name.split()[0] for name in commands(record)} | WITHOUT_MODEL
    for command in sorted({command.name for command in every_command()} - usable - {"search"}):
        assert command in REFUSED, f"add arguments of {command} to REFUSED in this file"
        assert run(command, "-m", folder, *shlex.split(REFUSED[command])).error, command


# Of the families with all their dialects test_families.py and tests/wings/onnx compare all this.
NO_PLAIN_FAMILY = [kind for kind, write in MODELS.items() if getattr(write, "func", write) is not family]


@pytest.mark.parametrize("kind", NO_PLAIN_FAMILY)
def test_the_engine_the_graph_and_the_accounts_agree(kind: str, models: Callable[[str], Path], tmp_path: Path) -> None:
    folder = models(kind)
    model = bertcli.load(folder)
    (tokens,) = model.tokenizer.encode([TEXT])
    hidden = model.forward([tokens.ids], [tokens.segments])
    engine = bertcli.load(folder, engine="onnx")
    assert_near(engine.forward([tokens.ids], [tokens.segments]), hidden, 1e-5)
    counted = bertcli.params(model)
    traced = run("trace", "-m", folder, TEXT, "--format", "json").json
    assert traced["totals"]["params"] == counted.total_params
    assert run("params", "-m", folder, "--batch-size", "2", "--seq-len", "6").status == 0
    page = run("trace", "-m", folder, TEXT, "-o", tmp_path / "page.html")
    assert (page.status, (tmp_path / "page.html").stat().st_size < 3_500_000) == (0, True)


POOLED: dict[str, Callable[[Any], Any]] = {
    "mean": lambda x: x.mean(axis=0),
    "cls": lambda x: x[0],
    "max": lambda x: x.max(axis=0),
    "lasttoken": lambda x: x[-1],
}


@pytest.mark.parametrize(
    "kind", [kind for kind in MODELS if kind not in ("router", "qwen3 reranker with a classifier")]
)
def test_each_pooling_is_that_of_the_tokens(kind: str, models: Callable[[str], Path]) -> None:
    folder = models(kind)

    def encoded(pooling: str) -> Any:
        (record,) = run(
            "encode", "-m", folder, TEXT, "--pooling", pooling, "--no-normalize", "--format", "jsonl"
        ).records
        return np.array(record["embeddings" if pooling == "none" else "embedding"])

    tokens = encoded("none")
    for pooling, of in POOLED.items():
        assert_near(encoded(pooling), of(tokens), 1e-5)

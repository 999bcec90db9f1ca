"""`bertcli trace` as it is typed: the table at any width, JSON, CSV, Markdown, saved outputs, one line of error."""

import csv
import io
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.checkpoints import Sentence, make
from helpers.json_files import read_json, write_json
from helpers.near import assert_near
from helpers.terminal import Result, bertcli, wrong_usage
from safetensors.numpy import load_file

import bertcli as library
from bertcli.analysis.trace import Step
from bertcli.analysis.trace.steps import folded
from bertcli.engine.padded_batch import pack_padded

TEXT = "The king went home."
KEYS = ["index", "path", "group", "operation", "inputs", "output", "params", "macs", "flops", "bytes"]


@pytest.fixture
def model(made: Made) -> Path:
    return made(head="pretraining", seed=7)


def trace(*arguments: str | Path, **settings: Any) -> Result:
    return bertcli("trace", *arguments, **settings)


def record(*arguments: str | Path) -> dict[str, Any]:
    done = trace(*arguments, "--format", "json")
    assert done.status == 0, done.err
    found = done.json
    assert isinstance(found, dict)
    return found


def steps_of(name: str, sequence: int = 512, heads: str = "pooler") -> list[Step]:
    variant = library.variant(name, heads=heads)
    with library.trace(variant) as found:
        variant.outputs(np.zeros((1, sequence), dtype=int))
    return found.steps


# ------------------------------------------------------------------------------------------------------------- JSON


def test_trace_json_is_the_record_of_every_step_of_every_layer() -> None:
    found = record("--variant", "base", "--seq-len", "128")
    assert list(found) == ["model", "batch", "sequence", "steps", "totals"]
    assert (found["model"], found["batch"], found["sequence"]) == ("base", 1, 128)
    assert [step["index"] for step in found["steps"]] == list(range(6 + 12 * 13 + 2))
    assert all(list(step) == KEYS for step in found["steps"])
    scores = next(step for step in found["steps"] if step["path"] == "encoder.layers.11.attention.scores")
    assert scores["inputs"] == [
        {"name": "Query (Q)", "shape": [12, 128, 64], "symbols": "A × S × D"},
        {"name": "Kᵀ", "shape": [12, 64, 128], "symbols": "A × D × S"},
    ]
    assert scores["output"] == {"name": "Attention scores", "shape": [12, 128, 128], "symbols": "A × S × S"}
    assert (scores["macs"], scores["bytes"]) == (12 * 128 * 128 * 64, 4 * 12 * 128 * 128)
    assert found["totals"] == {
        "params": 109_482_240,
        "macs": 11_174_215_680,
        "matmul_flops": 22_348_431_360,
        "flops": sum(step["flops"] for step in found["steps"]),
        "activation_bytes": sum(step["bytes"] for step in found["steps"]),
    }


def test_trace_without_sizes_a_variant_has_512_tokens_or_all_its_positions(tmp_path: Path) -> None:
    assert record("--variant", "tiny")["sequence"] == 512
    sizes = dict.fromkeys(("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads"), 2)
    config = tmp_path / "config.json"
    write_json(config, {**sizes, "intermediate_size": 3, "max_position_embeddings": 40})
    found = record("--config", config)
    assert (found["model"], found["sequence"]) == (str(config), 40)


def test_trace_checkpoint_runs_random_ids_or_a_text(model: Path) -> None:
    assert record("-m", model)["sequence"] == 16
    random = record("-m", model, "--seq-len", "5", "--batch-size", "3")
    assert (random["batch"], random["sequence"]) == (3, 5)
    assert random["steps"][0]["output"] == {"name": "Token embeddings", "shape": [3, 5, 32], "symbols": "B × S × H"}
    assert record("-m", model, TEXT)["sequence"] == 7
    assert record("-m", model, TEXT, "--text-pair", "The queen stayed.")["sequence"] > 7
    assert record("-m", model, "")["sequence"] == 2


def test_trace_every_head_there_is_runs_unless_told_otherwise(model: Path) -> None:
    groups = {step["group"] for step in record("-m", model)["steps"]}
    assert {"Pooler", "Masked language model", "Next sentence"} <= groups
    groups = {step["group"] for step in record("-m", model, "--heads", "none")["steps"]}
    assert not {"Pooler", "Masked language model", "Next sentence"} & groups
    assert record("--variant", "tiny", "--heads", "classifier")["steps"][-1]["output"] == {
        "name": "Label logits", "shape": [2], "symbols": "C",
    }  # fmt: skip


def test_trace_time_and_statistics_are_there_when_asked_for(model: Path) -> None:
    found = record("-m", model, TEXT, "--time", "--stats")
    for step in found["steps"]:
        assert list(step) == [*KEYS, "seconds", "stats"]
        assert list(step["stats"]) == ["min", "max", "mean", "std", "finite"]
    assert found["totals"]["seconds"] == pytest.approx(sum(step["seconds"] for step in found["steps"]))
    softmax = next(step for step in found["steps"] if step["path"].endswith("softmax"))
    assert softmax["stats"]["mean"] == pytest.approx(1 / 7, abs=1e-6)


def test_trace_text_that_is_too_long_is_cut_and_that_is_said(model: Path) -> None:
    done = trace("-m", model, "king " * 100, "--format", "json")
    assert done.json["sequence"] == 48
    assert "was cut to 48 tokens; 54 were lost." in done.err


def test_trace_pooling_that_cannot_be_had_keeps_nobody_from_looking_at_the_network(tmp_path: Path) -> None:
    folder = make(tmp_path / "m", sentence=Sentence(max_seq_length=5))
    modules = read_json(folder / "modules.json")
    modules.append({"idx": 2, "name": "2", "path": "2_LSTM", "type": "sentence_transformers.models.LSTM"})
    write_json(folder / "modules.json", modules)
    assert record("-m", folder, "the cat sat on the mat")["sequence"] == 5


def test_trace_model_of_the_environment_gives_way_to_a_variant(model: Path) -> None:
    environment = {"BERTCLI_MODEL": str(model)}
    assert trace("--format", "json", environment=environment).json["model"] == str(model)
    done = trace("--variant", "tiny", "--format", "json", environment=environment)
    assert done.json["model"] == "tiny"


# ----------------------------------------------------------------------------------------------------------- tables


@pytest.mark.parametrize("name", ["base", "textbook"])
def test_trace_piped_a_row_for_each_op_and_nothing_is_cut(name: str) -> None:
    done = trace("--variant", name)
    assert done.status == 0
    lines = done.out.splitlines()
    for step in [step for block in folded(steps_of(name), fold=True) for step in block.steps]:
        values = [*step.inputs, step.output]
        cells = [cell for v in values for cell in (v.name, f"{v.symbols} ({' × '.join(map(str, v.shape))})")]
        cells += [f"{number:,}" for number in (step.params, step.macs, step.bytes) if number]
        assert any(_in_order([step.operation, *cells], line) for line in lines), cells
    layers = library.variant(name).config.num_hidden_layers
    assert f"Encoder layer × {layers}, each:" in done.out


def _in_order(cells: list[str], line: str) -> bool:
    return re.search(r"\s{2,}.*?".join(map(re.escape, cells)), line) is not None


def test_trace_below_the_table_stand_sizes_and_totals() -> None:
    below = trace("--variant", "base").out.split("\n\n")[1].splitlines()
    assert below == [
        "base: B = 1, S = 512, V = 30522, H = 768, L = 12, A = 12, D = 64, F = 3072, P = 512, T = 2",
        "Params: 109,482,240",
        "MACs: 48,318,971,904 (multiply-accumulates of matrix products)",
        "FLOPs: 96,637,943,808 of matrix products, 97,080,313,344 with element-wise operations",
        "Activations: 575,674,368 bytes (every output, as float32)",
    ]


@pytest.mark.parametrize(
    ("name", "seen"), [("qwen3-embedding-0.6b", "0 ≤ i − j"), ("modernbert-base", "| i − j | ≤ 64")]
)
def test_trace_says_which_tokens_are_seen(name: str, seen: str) -> None:
    told = trace("--variant", name, "--seq-len", "8", "--formulas").out
    assert f"Seen scores = Attention scores where {seen} else −∞\n" in told
    assert "; attention is counted whole, also where tokens are not seen)" in told


@pytest.mark.parametrize("width", [60, 80, 170])
@pytest.mark.parametrize("options", [[], ["--time", "--stats"]], ids=["plain", "measured"])
def test_trace_terminal_folds_text_and_never_numbers(width: int, options: list[str], model: Path) -> None:
    arguments = ["-m", str(model), TEXT, *options] if options else ["--variant", "large", "--heads", "mlm,nsp"]
    done = trace(*arguments, terminal=True, environment={"COLUMNS": str(width), "TERM": "dumb"})
    assert done.status == 0, done.err
    lines = done.out.split("\n\n")[0].splitlines()
    if width >= 80:
        assert max(map(len, lines)) <= width
    steps = record(*arguments)["steps"]
    for step in steps:
        for number in (step["params"], step["macs"], step["bytes"]):
            assert not number or re.search(rf"(?<![\d,]){number:,}(?![\d,])", done.out), number
        for value in [*step["inputs"], step["output"]]:
            size = f"{value['symbols']} ({' × '.join(map(str, value['shape']))})"
            assert size in done.out or width < 80


def test_trace_csv_has_a_line_for_each_op_and_how_often_it_was_run() -> None:
    rows = list(csv.DictReader(io.StringIO(trace("--variant", "base", "--format", "csv").out)))
    assert [row["times"] for row in rows] == ["1"] * 6 + ["12"] * 13 + ["1"] * 2
    assert rows[6]["path"] == "encoder.layers.*.attention.query"
    assert (rows[6]["input_1"], rows[6]["size_1"]) == ("Encoder input", "S × H (512 × 768)")
    assert sum(int(row["times"]) * int(row["macs"]) for row in rows) == 48_318_971_904
    assert sum(int(row["times"]) * int(row["params"]) for row in rows) == 109_482_240
    every = list(csv.DictReader(io.StringIO(trace("--variant", "base", "--format", "csv", "--all-layers").out)))
    assert [row["path"] for row in every] == [step.path for step in steps_of("base")]


def test_trace_markdown_is_a_table_and_the_totals() -> None:
    lines = trace("--variant", "base", "--format", "markdown").out.splitlines()
    assert lines[0].startswith(
        "| Group | Operation | Input 1 | Size | Input 2 | Size | Output | Size | Params | MACs |"
    )
    assert lines[1].endswith("| --- | ---: | ---: | ---: |"), "numbers stand to the right"
    # Formulas are text.
    formulas = trace("--variant", "tiny", "--format", "markdown", "--formulas").out.splitlines()
    assert formulas[0].endswith("| Bytes | Formula |")
    assert formulas[1].endswith("| ---: | --- |")
    query = "| 1 Multi-head attention | a) linear Q | Encoder input | S × H (512 × 768) | W_Q | H × H (768 × 768) | "
    assert query + "Query (Q) | S × H (512 × 768) | 590,592 | 301,989,888 | 1,572,864 |" in lines
    assert "- MACs: 48,318,971,904 (multiply-accumulates of matrix products)" in lines


def test_trace_of_layers_told_once_times_are_of_one_and_statistics_of_all(model: Path) -> None:
    opened = library.load(model)
    with library.trace(opened, time=True, stats=True, keep=lambda path: True) as found:
        opened.forward(np.arange(9).reshape(1, 9))
    (layers,) = (block for block in folded(found.steps, fold=True) if block.times > 1)
    for step in layers.steps:
        paths = [step.path.replace("*", str(layer)) for layer in range(layers.times)]
        parts = [part for part in found.steps if part.path in paths]
        assert step.seconds == pytest.approx(sum(part.seconds or 0 for part in parts) / layers.times)
        together = np.concatenate([found.arrays[path].reshape(-1) for path in paths])
        assert step.stats is not None
        numbers = np.array([step.stats.min, step.stats.max, step.stats.mean, step.stats.std], dtype=float)
        expected = (together.min(), together.max(), together.mean(), together.std())
        np.testing.assert_allclose(numbers, expected, rtol=1e-4, atol=1e-6)


def test_trace_layers_that_differ_are_not_told_as_one() -> None:
    variant = library.variant("mini", weights=0)
    ids = np.zeros((1, 6), dtype=np.intp)
    batch = pack_padded(ids, ids, ids == 0)[0]
    with library.trace(variant) as found:
        variant.network(batch, np.array([0, 3]))  # of the last layer two rows
    assert [(block.layers, block.times) for block in folded(found.steps, fold=True)] == [
        ("", 1), ("encoder.layers.*", 3), ("", 1), ("encoder.layers.3", 1),
    ]  # fmt: skip
    assert folded(found.steps, fold=True)[1].heading == "Encoder layers 1 to 3, each:"


# ------------------------------------------------------------------------------------------------------ saved outputs


def loaded(file: Path) -> dict[str, Any]:
    if file.suffix == ".safetensors":
        return load_file(file)
    with np.load(file) as arrays:
        return dict(arrays)


@pytest.mark.parametrize("ending", ["npz", "safetensors"])
def test_trace_every_output_is_saved_under_its_path(ending: str, model: Path, tmp_path: Path) -> None:
    file = tmp_path / f"outputs.{ending}"
    assert trace("-m", model, TEXT, "-o", file).status == 0
    found = record("-m", model, TEXT)
    arrays = loaded(file)
    tokens = library.load(model).tokenizer.encode([TEXT])[0]
    assert arrays.pop("input_ids").tolist() == [tokens.ids]
    assert arrays.pop("token_type_ids").tolist() == [tokens.segments]
    assert ending == "safetensors" or arrays.pop("tokens").tolist() == [tokens.pieces]
    assert set(arrays) == {step["path"] for step in found["steps"]}
    for step in found["steps"]:
        assert arrays[step["path"]].shape == tuple(step["output"]["shape"])
        assert arrays[step["path"]].dtype == np.float32
    hidden = library.load(model).forward([tokens.ids], [tokens.segments])[0]
    assert np.array_equal(arrays["encoder.layers.1.feed_forward_norm"], hidden)
    weights = arrays["encoder.layers.0.attention.softmax"]
    assert_near(weights.sum(axis=-1), 1, 1e-6)
    assert not np.array_equal(arrays["encoder.layers.0.attention.scores"], weights)  # copied before it was worked on


# ------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--variant base --seq-len 513", "with this model it must be 1 to 512."),
        ("-m MODEL --seq-len 49", "with this model it must be 1 to 48."),
        ("-m MODEL --heads classifier", "no classifier head; it has pooler, mlm, nsp."),
    ],
)
def test_trace_what_cannot_be_done_is_one_line_that_says_what_can(line: str, message: str, model: Path) -> None:
    assert message in trace(*line.replace("MODEL", str(model)).split()).error


ONE_MODEL = "-m, --variant, --config: only one of these can be given."
OWN_LENGTH = "a text has its own length: leave this out, or the text."
NO_WEIGHTS = "nothing is computed without weights; give a checkpoint."


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("--variant huge", "--variant: There is no variant 'huge'. Choose from tiny, mini"),
        ("--variant base -m x", ONE_MODEL),
        ("-m x --vocab-size 9", "--vocab-size: this needs --variant or --config"),
        ("-m x 'a text' --seq-len 4", f"--seq-len: {OWN_LENGTH}"),
        ("-m x 'a text' --batch-size 4", f"--batch-size: {OWN_LENGTH}"),
        ("-m x --text-pair 'a text'", "--text-pair: give the first text, too"),
        ("--variant base 'a text'", "TEXT: a variant or a config has no tokenizer; give --seq-len instead."),
        ("--variant base -o x.npz", f"--output: {NO_WEIGHTS}"),
        ("--variant base --time", f"--time: {NO_WEIGHTS}"),
        ("-m x -o x.html --stats", "--stats: this is about the table, which the page of a pass does not"),
        ("-m x -o x.npz --formulas", "--formulas: this is about the table, which a file of arrays"),
        ("-m x -o x.csv --format csv", "--format: the ending of x.csv decides what is written"),
        ("--variant base --stats", f"--stats: {NO_WEIGHTS}"),
        ("--variant base --format xml", "'--format': 'xml' is not one of 'table'"),
    ],
)
def test_trace_what_makes_no_sense_is_wrong_usage(line: str, why: str) -> None:
    wrong_usage("trace", *shlex.split(line), why=why)


@pytest.mark.parametrize(
    "file",
    ["outputs.npy", "/nowhere/outputs.npz", "x.svg", "/nowhere/x.html"],
)
def test_trace_names_a_file_that_cannot_be_written_before_it_opens_the_model(file: str, tmp_path: Path) -> None:
    error = trace("-m", tmp_path / "missing", "-o", file).error
    assert f"Cannot write {file}" in error


def test_trace_in_python_prints_as_the_command_does(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = library.load(str(model))
    with library.trace(loaded) as traced:
        loaded.outputs([[2, 3, 4, 5]])
    for columns in ("80", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        assert "Attention scores" in str(traced)
        assert f"{traced}\n" == trace("-m", model, "--seq-len", "4", environment={"COLUMNS": columns}).out
    assert traced._repr_markdown_() == trace("-m", model, "--seq-len", "4", "--format", "markdown").out


def test_trace_of_absurd_sizes_is_a_line_before_any_work(tmp_path: Path) -> None:
    sizes = {"hidden_size": 1 << 24, "intermediate_size": 1 << 24, "vocab_size": 1 << 24, "num_attention_heads": 1}
    config = {"model_type": "bert", "num_hidden_layers": 2, "max_position_embeddings": 1 << 24, **sizes}
    file = tmp_path / "config.json"
    write_json(file, config)
    trace = ("trace", "--config", file)
    assert bertcli(*trace, "--seq-len", str(1 << 24)).status == 0
    assert "has " in bertcli(*trace, "--seed", "0").error
    assert "bytes, but this machine has " in bertcli(*trace, "--seed", "0", "-o", tmp_path / "x.html").error
    message = "1,048,576 sentences of 16,777,216 tokens have more attention weights than can be counted"
    assert message in bertcli(*trace, "--seq-len", str(1 << 24), "--batch-size", str(1 << 20)).error

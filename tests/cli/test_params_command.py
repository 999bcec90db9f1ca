"""`bertcli params` as it is typed: formats, exit status, one line of error, and tables that lose nothing."""

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from conftest import Made
from helpers.checkpoints import make
from helpers.deadlines import SECONDS
from helpers.json_files import write_json
from helpers.terminal import bertcli as command
from helpers.terminal import wrong_usage
from hypothesis import given
from hypothesis import strategies as st

import bertcli
from bertcli.report.terminal import folded

FORMATS = ("table", "json", "csv", "markdown")


def result(*arguments: str, **how: Any) -> str:
    done = command("params", *arguments, **how)
    assert done.status == 0, done.err
    return done.out


def test_params_json_is_the_record() -> None:
    record = json.loads(result("--variant", "base", "--heads", "mlm,nsp", "--vocab-size", "30000", "--format", "json"))
    assert record == bertcli.params(bertcli.variant("base", heads="mlm,nsp", vocab_size=30000)).record
    assert record["total_params"] == 109_705_010


def test_params_markdown_is_a_table_and_the_totals() -> None:
    lines = result("--variant", "tiny", "--collapse", "--format", "markdown").splitlines()
    assert lines[0] == "| Layer (type) | Output Shape | Param # | Bytes | % of total |"
    assert lines[1] == "| --- | --- | ---: | ---: | ---: |"
    assert r"| encoder.layers.\*.attention (SelfAttention × 2) | (None, 512, 128) | 132,096 | 528,384 | 3.01 |" in lines
    assert lines[-4:-1] == ["- Total params: 4,385,920", "- Trainable params: 4,385,920", "- Non-trainable params: 0"]
    assert lines[-1] == "- Size: 17,543,680 bytes (16.7 MiB); in float16 8.4 MiB, in int8 4.2 MiB"


def unfolded(text: str, names: list[str]) -> str:
    """The text of a folded table's columns, one after the other, without spaces."""
    lines = text.split("\n\n")[0].splitlines()
    rule = next(i for i, line in enumerate(lines) if line.startswith("─"))
    starts = [0, *(lines[rule - 1].index(name) for name in names[1:]), max(map(len, lines))]
    columns = ["".join(line[start:end] for line in lines[rule + 1 :]) for start, end in pairwise(starts)]
    return "".join(columns).replace(" ", "")


@pytest.mark.parametrize("width", ["60", "80", "120", "200"])
def test_params_narrow_terminal_folds_text_and_loses_none(width: str) -> None:
    how = {"COLUMNS": width}
    text = result("--variant", "large", "--style", "keras", "--heads", "mlm,nsp", environment=how)
    rows = bertcli.params(bertcli.variant("large", heads="mlm,nsp"), style="keras").rows
    whole = unfolded(text, ["Layer (type)", "Output Shape", "", "Connected to"])
    assert "".join(f"{row.path}({row.type})" for row in rows) in whole
    assert whole.endswith("".join(",".join(row.connected_to) for row in rows))
    for row in rows:
        assert re.search(rf"(?<![\d,]){row.params:,}(?![\d,])", text)
    assert max(map(len, text.splitlines())) <= int(width)


@given(st.text(), st.integers(2, 20))
def test_params_folding_keeps_every_character(text: str, width: int) -> None:
    text = "".join(one for one in text if one.isprintable())
    lines = folded(text, width).split("\n")
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_params_folding_parts_names_where_people_would() -> None:
    assert folded("encoder.layers.0.attention (SelfAttention)", 20).split("\n") == [
        "encoder.layers.0.", "attention", "(SelfAttention)",
    ]  # fmt: skip
    assert folded("Encoder-1-MultiHeadSelfAttention", 20).split("\n") == ["Encoder-1-MultiHead", "SelfAttention"]
    assert folded("24·(2·1024·4096 + 4096)", 12).split("\n") == ["24·(2·1024·", "4096 + 4096)"]


def test_params_config_is_enough(made: Made) -> None:
    folder = made(head="model")
    record = json.loads(result("--config", str(folder / "config.json"), "--format", "json"))
    assert record["total_params"] == bertcli.params(bertcli.load(folder)).total_params


def test_params_of_a_checkpoint(made: Made) -> None:
    folder = str(made(head="pretraining", naming="gamma_beta"))
    total = bertcli.params(bertcli.load(folder)).total_params
    assert json.loads(result("-m", folder, "--format", "json"))["total_params"] == total
    named = {"BERTCLI_MODEL": folder}
    assert f"Total params: {total:,}" in result(environment=named)
    # What is typed outweighs the environment.
    assert "Total params: 4,385,920" in result("--variant", "tiny", environment=named)


@pytest.mark.parametrize("format", FORMATS)
def test_params_two_models_in_every_format(format: str) -> None:
    text = result("--variant", "base", "--versus", "large", "--format", format)
    assert "72,413,184" in text.replace("72413184", "72,413,184")  # of the attention
    assert "3.5544" in text
    assert ("SelfAttention × 12 → 24" if format in ("table", "markdown") else "SelfAttention × 24") in text


def test_params_variant_beside_a_checkpoint(made: Made) -> None:
    folder = made(head="model")
    record = json.loads(result("--variant", "tiny", "--versus", str(folder), "--no-collapse", "--format", "json"))
    assert record["versus"] == str(folder)
    assert record["versus_total_params"] == bertcli.params(bertcli.load(folder)).total_params
    assert "encoder.layers.1.attention" in {row["path"] for row in record["rows"]}
    bare = json.loads(result("--variant", "tiny", "--versus", str(folder), "--heads", "none", "--format", "json"))
    assert bare["versus_total_params"] == bertcli.params(bertcli.load(folder, heads="none")).total_params
    assert bare["versus_total_params"] < record["versus_total_params"]


def test_params_rows_of_one_model_alone_stand_where_they_stand_in_that_model() -> None:
    def rows(*arguments: str) -> list[str]:
        text = result("--variant", *arguments, "--no-collapse", "--depth", "4", "--format", "json")
        return [row["path"] for row in json.loads(text)["rows"]]

    pairs = (("tiny", "mini"), ("albert-base", "tiny"), ("deberta-v3-small", "roberta-base"))
    for first, second in pairs:
        paths = rows(first, "--versus", second)
        assert len({*paths}) == len(paths)
        for one in (rows(first), rows(second)):
            assert [path for path in paths if path in one] == one


def test_params_models_beside_each_other_need_no_tokenizer(tmp_path: Path) -> None:
    folder = make(tmp_path / "model", tokenizer="json")
    (folder / "tokenizer.json").write_text("damaged", encoding="utf-8")
    total = bertcli.params(bertcli.load(folder, text=False)).total_params
    assert f"{total:,}" in result("-m", str(folder), "--versus", str(folder))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--variant base --heads lm", "no head 'lm'; choose from pooler, mlm, nsp, classifier"),
        (
            "--variant textbook --heads nsp",
            "no head 'nsp'; choose from pooler, mlm (the heads of the textbook",
        ),
        ("--variant base --seq-len 0", "it must be 1 to 512."),
        ("--variant base --seq-len 513", "it must be 1 to 512."),
        ("--variant base --batch-size 0", "it must be 1 to 1,048,576."),
        ("--variant base --vocab-size -1", "at least 1."),
        ("--variant base --vocab-size " + "9" * 30, "at most 16777216."),
        ("--variant base --depth -1", "or more."),
        ("--config /nowhere/config.json", "/nowhere/config.json is missing: give the path"),
        ("--variant base -o a.pdf", ".dot, .mmd, .svg, .png."),
        ("--variant base --versus ./nowhere", "Variants to compare with are tiny"),
    ],
)
def test_params_what_cannot_be_done_is_one_line_that_says_what_can(line: str, message: str) -> None:
    assert message in command("params", *line.split()).error


@pytest.mark.parametrize(
    "change",
    [{"num_attention_heads": 3}, {"hidden_size": 1 << 30}, {"num_hidden_layers": 10**9}, {"vocab_size": 0}],
    ids=str,
)
def test_params_config_of_impossible_sizes_is_refused_at_once(tmp_path: Path, change: dict[str, Any]) -> None:
    sizes = {
        "vocab_size": 9,
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 9,
    }
    file = tmp_path / "config.json"
    write_json(file, {**sizes, **change})
    assert next(iter(change)) in command("params", "--config", file).error


ONE_MODEL = "-m, --variant, --config: only one of these can be given."


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("-m x --variant base", ONE_MODEL),
        ("-m x --vocab-size 9", "--vocab-size: this needs --variant or --config"),
        ("--variant base --versus large -o x.dot", "Invalid value for --output"),
        ("--variant base --versus large --formulas", "Invalid value for --formulas"),
        ("--variant huge", "There is no variant 'huge'"),
        ("--variant base --style keras --depth 1", "Invalid value for --depth"),
        ("--style torch", "'--style': 'torch' is not one of"),
        ("base", "Did you mean bertcli params --variant base?"),
        ("-variant base", "there is no option -variant. Did you mean --variant?"),
    ],
)
def test_params_wrong_usage_says_why(line: str, why: str) -> None:
    wrong_usage("params", *line.split(), why=why)


def test_params_whole_process_needs_neither_tokenizers_nor_the_hub() -> None:
    code = (
        "import sys; sys.argv = ['bertcli', 'params', '--variant', 'large']\n"
        "from bertcli.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = {'tokenizers', 'huggingface_hub', 'safetensors', 'httpx'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS, env={**os.environ, "COLUMNS": ""}
    )
    assert done.returncode == 0, done.stderr
    assert "Total params: 335,141,888" in done.stdout


@pytest.mark.parametrize("style", ["tree", "keras"])
def test_params_in_python_prints_as_the_command_does(style: str, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = bertcli.params(bertcli.variant("tiny"), style=style)
    words = ("--variant", "tiny", "--style", style)
    for columns in ("80", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        assert f"{summary}\n" == result(*words, environment={"COLUMNS": columns})
    assert summary._repr_markdown_() == result(*words, "--format", "markdown")

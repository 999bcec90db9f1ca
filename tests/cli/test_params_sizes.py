"""`bertcli params` in narrow terminals, with other sizes, and for configurations alone."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.json_files import write_json
from helpers.terminal import bertcli
from rich.cells import cell_len

import bertcli as library
from bertcli.models.bert import FAMILY as BERT
from bertcli.models.bert import Bert, BertConfig
from bertcli.models.config import count
from bertcli.network.encoder import Embeddings
from bertcli.network.module import parameter, part
from bertcli.tracing.dispatch import Array


@pytest.mark.parametrize("width", [40, 60, 80, 100])
@pytest.mark.parametrize(
    "arguments",
    [("--formulas",), ("--versus", "small"), ("--style", "keras")],
    ids=lambda arguments: arguments[0],
)
def test_params_lines_fit_the_terminal_and_lose_nothing(arguments: tuple[str, ...], width: int) -> None:
    narrow = bertcli("params", "--variant", "tiny", *arguments, environment={"COLUMNS": str(width)}).out
    assert max(map(cell_len, narrow.splitlines())) <= width
    whole = bertcli("params", "--variant", "tiny", *arguments).out
    # A comparison that is too wide goes on below, beside its first columns again: nothing is lost, some of it is twice.
    assert not Counter(re.findall(r"[\d·²]", whole)) - Counter(re.findall(r"[\d·²]", narrow))


def test_params_other_sizes_are_in_a_config(tmp_path: Path) -> None:
    """Those without an option."""
    file = tmp_path / "config.json"
    sizes = {"vocab_size": 30522, "dim": 96, "n_layers": 2, "n_heads": 12, "hidden_dim": 3072}
    write_json(file, {"model_type": "distilbert", **sizes})
    found = bertcli("params", "--config", file, "--format", "json").json
    expected = library.params(library.variant("distilbert-base", sizes={"dim": 96, "n_layers": 2}))
    assert found["total_params"] == expected.total_params
    assert "Invalid value for --variant" in bertcli("params", "--variant", "nosuch").err
    with pytest.raises(library.BertcliError, match=r"no size of a distilbert model: choose from vocab_size.*n_layers"):
        library.variant("distilbert-base", sizes={"depth": 3})
    with pytest.raises(library.BertcliError, match="no size"):
        library.variant("tiny", sizes={"hidden_act": 3})


@pytest.mark.parametrize(
    "options",
    [("--vocab-size", "1000"), ("--heads", "mlm,nsp"), ("--heads", "none")],
    ids=" ".join,
)
def test_params_sizes_and_heads_are_those_of_both_models(options: tuple[str, ...]) -> None:
    def counted(*arguments: str) -> dict[str, int]:
        found: dict[str, int] = bertcli("params", *arguments, "--format", "json").json
        return found

    both = counted("--variant", "tiny", "--versus", "small", *options)
    for variant, key in (("tiny", "total_params"), ("small", "versus_total_params")):
        alone = counted("--variant", variant, *options)["total_params"]
        assert both[key] == alone != counted("--variant", variant)["total_params"]


def test_params_configurations_are_compared_without_weights(tmp_path: Path) -> None:
    for name, layers in (("a", 2), ("b", 3)):
        (tmp_path / name).mkdir()
        sizes = {"hidden_size": 32, "num_hidden_layers": layers, "num_attention_heads": 2, "intermediate_size": 64}
        written = {"model_type": "bert", "vocab_size": 50, **sizes}
        write_json(tmp_path / name / "config.json", written)
    for other in (tmp_path / "b", tmp_path / "b" / "config.json"):
        done = bertcli("params", "--config", tmp_path / "a" / "config.json", "--versus", other, "--format", "json")
        record = done.json
        assert record["difference"] == 4 * (32 * 32 + 32) + 2 * 32 * 64 + 64 + 32 + 4 * 32


class Outer(Embeddings):
    """X = LayerNorm(E_tok[ids] + E_type[segments] + E_pos), and a table with an axis of its own"""

    table: Array = parameter("Ω H")


class OuterBert(Bert):
    """Token ids to hidden states, of a family whose axis Ω no glossary has"""

    embeddings: Outer = part()


class OuterConfig(BertConfig):
    """BERT's configuration, and the size of an axis of its own."""

    outer_size: int = count(7, "Ω")
    model_type: str = "outer"


def test_params_counts_an_axis_that_only_a_plugin_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outer = replace(BERT, types={"outer": "Outer"}, config=OuterConfig, network=OuterBert, variants={})
    monkeypatch.setattr("bertcli.extensions.plugin_parts", lambda *looked_for: iter([outer]))
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    write_json(tmp_path / "config.json", {"model_type": "outer", "vocab_size": 30, **sizes})
    arguments = ("params", "--config", str(tmp_path / "config.json"), "--formulas")
    rows = {row["path"]: row for row in bertcli(*arguments, "--format", "json").json["rows"]}
    assert rows["embeddings"]["formula"] == "V·H + T·H + P·H + H·Ω"
    assert rows["embeddings"]["params"] == 8 * (30 + 2 + 512 + 7)
    assert "30·8 + 2·8 + 512·8 + 8·7" in bertcli(*arguments, environment={"COLUMNS": "200"}).out

"""What `bertcli.params` counts: the totals of the literature, and rows that always add up to them."""

from typing import Any

import pytest
from helpers.terminal import bertcli as command
from hypothesis import given, settings
from hypothesis import strategies as st

import bertcli
from bertcli.analysis.params import SummaryRow
from bertcli.analysis.params.flow import Flow, connections
from bertcli.analysis.params.formula import factored, sum_of
from bertcli.engine.packing import batch_of_shapes
from bertcli.errors import BertcliError
from bertcli.models.bert import BertConfig
from bertcli.models.registry import family
from bertcli.network.heads import outputs
from bertcli.network.module import walk
from bertcli.tracing.dispatch import Module, watching

# Checked against PyTorch: encoder + pooler, + MLM without pooler, + MLM + NSP, classification with two labels.
TOTALS: dict[str, tuple[int | None, ...]] = {
    "base": (109_482_240, 109_514_298, 110_106_428, 109_483_778),
    "base-cased": (108_310_272, 108_340_804, 108_932_934, 108_311_810),
    "base-multilingual-cased": (177_853_440, 177_974_523, 178_566_653, 177_854_978),
    "base-chinese": (102_267_648, 102_290_312, 102_882_442, 102_269_186),
    "large": (335_141_888, 335_174_458, 336_226_108, 335_143_938),
    "large-cased": (333_579_264, 333_610_308, 334_661_958, 333_581_314),
    "tiny": (4_385_920, 4_416_698, 4_433_468, None),
    "mini": (11_170_560, 11_201_594, 11_267_900, None),
    "small": (28_763_648, 28_795_194, 29_058_876, None),
    "medium": (41_373_184, 41_404_730, 41_668_412, None),
}
HEADS = ("pooler", "mlm", "mlm,nsp", "classifier")


@pytest.mark.parametrize(
    ("name", "heads", "total"),
    [(name, *case) for name, totals in TOTALS.items() for case in zip(HEADS, totals, strict=True) if case[1]],
)
def test_params_totals_are_those_of_the_literature(name: str, heads: str, total: int) -> None:
    summary = bertcli.params(bertcli.variant(name, heads=heads))
    assert summary.total_params == summary.totals.trainable_params == total == sum(row.params for row in summary.rows)
    assert summary.totals.non_trainable_params == 0
    assert summary.total_bytes == 4 * total


configs = st.builds(
    lambda heads, head_size, **sizes: BertConfig(num_attention_heads=heads, hidden_size=heads * head_size, **sizes),
    heads=st.integers(1, 4),
    head_size=st.integers(1, 9),
    vocab_size=st.integers(1, 50),
    num_hidden_layers=st.integers(1, 4),
    intermediate_size=st.integers(1, 40),
    max_position_embeddings=st.integers(1, 30),
    type_vocab_size=st.integers(1, 3),
    num_labels=st.integers(1, 5),
    model_type=st.sampled_from(["bert", "textbook"]),
)


def expected(config: BertConfig, heads: tuple[str, ...]) -> int:
    """The number of parameters as the literature counts them: the second description, which only a test may hold."""
    v, p, t = config.vocab_size, config.max_position_embeddings, config.type_vocab_size
    h, f, layers, labels = config.hidden_size, config.intermediate_size, config.num_hidden_layers, config.num_labels
    if config.model_type == "textbook":
        total = v * h + p * h + layers * (3 * h * h + h * f + f + f * h + h)
        return total + ("pooler" in heads) * h * h + ("mlm" in heads) * (v * h + v)
    total = v * h + p * h + t * h + 2 * h + layers * (4 * (h * h + h) + 2 * h * f + f + h + 4 * h)
    total += ("pooler" in heads) * (h * h + h) + ("mlm" in heads) * (h * h + h + 2 * h + v)
    return total + ("nsp" in heads) * (2 * h + 2) + ("classifier" in heads) * (labels * h + labels)


def value(formula: str, sizes: dict[str, int]) -> int:
    """What a formula comes to, by Python's own arithmetic."""
    code = formula.replace("·", "*").replace("²", "**2").replace("³", "**3").replace("/", "//")
    return int(eval(code, {"__builtins__": {}}, dict(sizes))) if code else 0


@settings(deadline=None)
@given(
    config=configs,
    heads=st.sets(st.sampled_from(["pooler", "mlm", "nsp", "classifier"])),
    options=st.fixed_dictionaries(
        {"depth": st.integers(0, 6), "collapse": st.booleans(), "style": st.sampled_from(["tree", "keras"])}
    ),
)
def test_params_rows_always_add_up_and_say_how(config: BertConfig, heads: set[str], options: dict[str, Any]) -> None:
    if config.model_type == "textbook":
        heads -= {"nsp", "classifier"}
    model = bertcli.variant(config=config, heads=",".join(heads) or "none")
    summary = bertcli.params(model, **options)
    assert sum(row.params for row in summary.rows) == summary.total_params == expected(config, model.heads)
    assert len({row.path for row in summary.rows}) == len(summary.rows)
    for row in summary.rows:
        assert value(row.formula, config.sizes) == value(row.numbers, {}) == row.params
        assert not any(letter.isalpha() for letter in row.numbers)
        assert row.bytes == 4 * row.params
        assert set(row.connected_to) <= {other.path for other in summary.rows}
        inner = [other for other in summary.rows if f"{other.path}.".startswith(f"{row.path}." if row.path else "")]
        if options.get("style") != "keras":
            assert row.whole.params == sum(other.params for other in inner) == value(row.whole.numbers, {})


def rows_of(name: str, **options: Any) -> dict[str, SummaryRow]:
    variant = {key: options.pop(key) for key in ("heads", "num_labels") if key in options}
    return {row.path: row for row in bertcli.params(bertcli.variant(name, **variant), **options).rows}


def test_params_a_row_shows_what_no_other_row_does() -> None:
    whole, one, two, four = (rows_of("tiny", heads="mlm", depth=depth) for depth in (0, 1, 2, 4))
    assert list(whole) == [""]
    assert list(one) == ["embeddings", "encoder", "mlm"]
    assert two["encoder"].params == 0
    assert two["encoder.layers.1"].params == one["encoder"].params // 2
    assert two["embeddings"].params + two["embeddings.norm"].params == one["embeddings"].params
    assert four["encoder.layers.0.attention"].params == 0
    assert four["encoder.layers.0.attention.query"].params == 128 * 128 + 128
    assert four["encoder.layers.0.attention.query"].type == "Linear"


@pytest.mark.parametrize("depth", [2, 9])
def test_params_tables_show_a_module_with_what_is_inside_it(depth: int) -> None:
    arguments = ["params", "--variant", "base", "--formulas", "--depth", str(depth)]
    table = [row.split() for row in command(*arguments).out.splitlines()]
    (layer,) = (row for row in table if row[:2] == ["encoder.layers.0", "(EncoderLayer)"])
    assert layer[5:7] == ["7,087,872", "28,351,488"]
    (encoder,) = (row for row in table if row[:2] == ["encoder", "(Encoder)"])
    assert encoder[5:8] == ["85,054,464", "340,217,856", "77.69"]
    assert "L·(4·H² + 2·H·F + 9·H + F)" in " ".join(encoder)
    beside = command("params", "--variant", "base", "--versus", "large", "--depth", str(depth)).out
    (layers,) = (row.split() for row in beside.splitlines() if "encoder.layers.* (" in row)
    assert "85,054,464" in layers
    assert "302,309,376" in layers


def test_params_formulas_are_written_as_people_write_them() -> None:
    rows = rows_of("base", heads="mlm,nsp,classifier", num_labels=5)
    layer = "encoder.layers.0."
    assert rows[f"{layer}attention"].formula == "4·(H² + H)"
    assert rows[f"{layer}attention"].numbers == "4·(768² + 768)"
    assert rows[f"{layer}attention_norm"].formula == "2·H"
    assert rows[f"{layer}feed_forward"].formula == "2·H·F + F + H"
    assert rows["embeddings"].formula == "V·H + T·H + P·H"
    assert rows["nsp.output"].formula == "2·H + 2"
    assert rows["classifier.output"].formula == "C·H + C"
    assert rows["mlm"].formula == "V"
    assert rows["encoder"].formula == ""
    assert rows_of("base", depth=1)["encoder"].formula == "L·(4·H² + 2·H·F + 9·H + F)"
    assert rows_of("base", collapse=True)["encoder.layers.*.attention"].numbers == "4·12·(768² + 768)"


def test_params_a_tied_tensor_is_counted_once_and_shown_as_tied() -> None:
    rows = rows_of("tiny", heads="mlm")
    assert {path: row.tied_to for path, row in rows.items() if row.tied_to} == {"mlm": "embeddings.token"}
    assert rows["mlm"].params == 30522
    assert rows_of("tiny", heads="mlm", style="keras")["MLM-Sim"].tied_to == "Embedding-Token"
    assert rows_of("tiny", heads="mlm", depth=0)[""].tied_to is None  # with itself


def test_params_shapes_are_those_of_the_input() -> None:
    rows = rows_of("base", heads="mlm,nsp,classifier")
    assert rows["embeddings"].output_shape == rows["encoder.layers.11.feed_forward"].output_shape == "(None, 512, 768)"
    assert rows["pooler"].output_shape == "(None, 768)"
    assert rows["mlm"].output_shape == "(None, 512, 30522)"
    assert rows["nsp"].output_shape == "(None, 2)"
    assert rows_of("base", depth=4)["encoder.layers.0.feed_forward.intermediate"].output_shape == "(None, 512, 3072)"
    shorter = rows_of("base", seq_len=1, batch_size=8)
    assert shorter["encoder"].output_shape == "(8, 1, 768)"
    assert shorter["pooler"].output_shape == "(8, 768)"


def test_params_shapes_of_modules_that_see_relative_positions() -> None:
    rows = rows_of("deberta-v3-base", depth=4)
    query = rows["encoder.layers.0.attention.query"]
    assert query.output_shape == "(None, 512, 768)"  # of the tokens: relative positions go through it, too
    assert rows["encoder.relative_norm"].output_shape == "(512, 768)"  # 2 · 256 of these


def test_params_rows_are_fed_as_the_model_runs() -> None:
    rows = {path: row.connected_to for path, row in rows_of("tiny", heads="mlm,nsp").items()}
    assert rows["embeddings"] == ()
    assert rows["embeddings.norm"] == ("embeddings",)
    assert rows["encoder.layers.0.attention"] == ("embeddings.norm",)
    assert set(rows["encoder.layers.0.attention_norm"]) == {"embeddings.norm", "encoder.layers.0.attention"}
    assert rows["encoder.layers.0.feed_forward"] == ("encoder.layers.0.attention_norm",)
    assert rows["encoder.layers.1.attention"] == ("encoder.layers.0.feed_forward_norm",)
    assert rows["mlm.transform"] == rows["pooler.dense"] == ("encoder.layers.1.feed_forward_norm",)
    assert rows["mlm"] == ("mlm.norm", "embeddings")
    assert rows["nsp.output"] == ("pooler.dense",)
    deeper = rows_of("tiny", depth=4)["encoder.layers.0.attention.output"].connected_to
    assert {path.rpartition(".")[2] for path in deeper} == {"query", "key", "value"}
    assert rows_of("tiny", depth=1)["encoder"].connected_to == ("embeddings",)


def test_params_collapsing_makes_one_row_of_identical_layers() -> None:
    rows = rows_of("large", collapse=True)
    assert [path for path in rows if "layers" in path] == [
        "encoder.layers.*", "encoder.layers.*.attention", "encoder.layers.*.attention_norm",
        "encoder.layers.*.feed_forward", "encoder.layers.*.feed_forward_norm",
    ]  # fmt: skip
    attention = rows["encoder.layers.*.attention"]
    assert attention.type == "SelfAttention × 24"
    assert attention.params == 24 * 4 * (1024 * 1024 + 1024)
    assert attention.connected_to == ("embeddings.norm", "encoder.layers.*.feed_forward_norm")
    assert rows["pooler.dense"].connected_to == ("encoder.layers.*.feed_forward_norm",)


def test_params_the_record_is_what_json_shows() -> None:
    summary = bertcli.params(bertcli.variant("tiny"))
    record = summary.record
    assert summary["total_params"] == summary.totals["total_params"] == record["total_params"] == 4_385_920
    assert summary.rows[1]["formula"] == summary["rows"][1].formula == "2·H"
    assert list(record) == ["model", "rows", "total_params", "trainable_params", "non_trainable_params", "total_bytes"]
    assert record["rows"][1] == {
        "path": "embeddings.norm", "type": "LayerNorm", "output_shape": "(None, 512, 128)", "params": 256,
        "bytes": 1024, "formula": "2·H", "connected_to": ["embeddings"], "tied_to": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seq_len": 0}, "sequence length of 0 is not possible; with this model it must be 1 to 512"),
        ({"seq_len": 513}, "sequence length of 513"),
        ({"seq_len": -1}, "sequence length of -1"),
        ({"batch_size": 0}, "batch size of 0 is not possible; it must be 1 to 1,048,576"),
        ({"depth": -1}, "depth of -1 is not possible"),
        ({"style": "torch"}, "no style 'torch'; choose from tree, keras"),
    ],
)
def test_params_what_is_not_possible_is_said(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BertcliError, match=message):
        bertcli.params(bertcli.variant("tiny"), **options)


def test_params_no_variant_is_left_out_above() -> None:
    assert {*TOTALS} == set(family("bert").variants)


def test_params_fields_are_found_by_name_and_nothing_else() -> None:
    summary = bertcli.params(bertcli.variant("tiny"))
    assert summary["total_params"] == summary.total_params
    for name in ("document", "_rows", "no_such", 0):
        with pytest.raises(KeyError):
            summary[name]  # type: ignore[index]
    with pytest.raises(TypeError):
        list(summary)  # type: ignore[call-overload]


def test_params_products_of_axes_without_a_line_are_added_in_any_order() -> None:
    assert factored(sum_of([["Y", "G"], ["G", "Y"], ["G", "H"], ["Z", "G"]])) == "2·Y·G + H·G + Z·G"


@pytest.mark.parametrize("name", ["large", "deberta-base", "mpnet-base", "t5-small", "albert-base", "textbook"])
@pytest.mark.parametrize("depth", [0, 2, 9])
def test_params_of_layers_that_are_alike_are_those_of_a_pass_through_all(name: str, depth: int) -> None:
    """Of these only some run, but not of ALBERT, which has one layer in all places; T5's first has a table, too."""
    model = bertcli.variant(name)
    modules = [path for path, item in walk(model.network) if isinstance(item, Module)]
    displayed = [path for path in modules if path.count(".") < depth] or [""]
    flow = Flow(model.name, model.network, displayed)
    with watching(flow):
        outputs(model.network, batch_of_shapes(2, 3))
    assert connections(model, displayed) == (flow.shapes, flow.inputs)
    assert {*displayed} <= flow.shapes.keys()

"""What a trace says of a pass: complete, exact, in the right symbols, and without any influence on the numbers."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.bge_m3 import write_bge_m3
from helpers.checkpoints import Dense, Sentence
from helpers.modular import write_cross_encoder
from helpers.near import assert_near
from helpers.rerankers import KINDS as RERANKERS
from helpers.rerankers import write_reranker
from helpers.terminal import bertcli as command
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import cases

import bertcli
from bertcli.analysis.trace import Step, Trace
from bertcli.analysis.trace.recorder import run_shapes
from bertcli.engine.packing import Packed
from bertcli.engine.padded_batch import pack_padded
from bertcli.errors import BertcliError
from bertcli.model import Model
from bertcli.models.bert import BertConfig
from bertcli.models.registry import variant_config, variants
from bertcli.network import encoder, ops
from bertcli.network.module import Module, Parameter, parameters, walk

REFERENCE = Path(__file__).parents[1] / "reference"
ALL_HEADS = "mlm,nsp,classifier"


def heads_of(name: str) -> str:
    return ",".join(variants()[name].head_names)


def dry(name: str, sequence: int, *, batch: int = 1, heads: str | None = None) -> Trace:
    """The trace of a whole pass of a variant without weights."""
    model = bertcli.variant(name, heads=heads_of(name) if heads is None else heads)
    with bertcli.trace(model) as trace:
        model.outputs(np.zeros((batch, sequence), dtype=int))
    return trace


def packed(model: Model, batch: int, sequence: int) -> Packed:
    """Sentences of one length, as a pass of the network takes them."""
    ids = np.zeros((batch, sequence), dtype=np.intp)
    return pack_padded(ids, ids, ids == 0)[0]


def cells(step: Step) -> tuple[str, ...]:
    """A row of the operation table as the literature writes it."""
    values = [*step.inputs, *([None] if len(step.inputs) == 1 else []), step.output]
    sizes = [
        (value.name, f"{value.symbols} ({' × '.join(map(str, value.shape))})") if value else ("", "")
        for value in values
    ]
    return (step.group, step.operation, *(cell for pair in sizes for cell in pair))


# ------------------------------------------------------------------------------------------- the table of section 3

BERT_LAYER = """
1 Multi-head attention | a) linear Q            | Encoder input     | S × H     | W_Q              | H × H     | Query (Q)            | S × H
1 Multi-head attention | a) linear K            | Encoder input     | S × H     | W_K              | H × H     | Key (K)              | S × H
1 Multi-head attention | a) linear V            | Encoder input     | S × H     | W_V              | H × H     | Value (V)            | S × H
1 Multi-head attention | b) scaled dot product  | Query (Q)         | A × S × D | Kᵀ               | A × D × S | Attention scores     | A × S × S
1 Multi-head attention | c) softmax             | Attention scores  | A × S × S |                  |           | Attention weights    | A × S × S
1 Multi-head attention | d) weighted sum        | Attention weights | A × S × S | Value (V)        | A × S × D | Heads output         | A × S × D
1 Multi-head attention | e) concat and project  | Heads output      | S × (A·D) | W_O              | H × H     | Attention output     | S × H
2 Add & norm           | a) residual            | Encoder input     | S × H     | Attention output | S × H     | Sub-layer sum        | S × H
2 Add & norm           | b) layer normalization | Sub-layer sum     | S × H     |                  |           | Norm 1 output        | S × H
3 Feed-forward         | a) linear 1 + GELU     | Norm 1 output     | S × H     | W_1              | H × F     | Intermediate         | S × F
3 Feed-forward         | b) linear 2            | Intermediate      | S × F     | W_2              | F × H     | FFN output           | S × H
4 Add & norm           | a) residual            | Norm 1 output     | S × H     | FFN output       | S × H     | Sub-layer sum 2      | S × H
4 Add & norm           | b) layer normalization | Sub-layer sum 2   | S × H     |                  |           | Encoder layer output | S × H
"""  # noqa: E501


def expected_layer(sizes: dict[str, int]) -> list[tuple[str, ...]]:
    """Section 3's rows with the numbers beside the symbols."""

    def with_numbers(symbols: str) -> str:
        if not symbols:
            return ""
        number = {**sizes, "(A·D)": sizes["A"] * sizes["D"]}
        return f"{symbols} ({' × '.join(str(number[symbol]) for symbol in symbols.split(' × '))})"

    rows = []
    for line in BERT_LAYER.strip().splitlines():
        group, operation, *values = (cell.strip() for cell in line.split("|"))
        rows.append((group, operation, *(with_numbers(one) if i % 2 else one for i, one in enumerate(values))))
    return rows


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("base", {"S": 512, "H": 768, "A": 12, "D": 64, "F": 3072}),
        ("large", {"S": 512, "H": 1024, "A": 16, "D": 64, "F": 4096}),
        ("base", {"S": 64, "H": 768, "A": 12, "D": 64, "F": 3072}),
    ],
)
def test_trace_every_encoder_layer_is_the_table_of_the_literature(name: str, sizes: dict[str, int]) -> None:
    trace = dry(name, sizes["S"])
    for layer in range(variant_config(name).num_hidden_layers):
        steps = [step for step in trace.steps if step.path.startswith(f"encoder.layers.{layer}.")]
        assert [cells(step) for step in steps] == expected_layer(sizes)


def test_trace_the_textbook_pass_has_the_textbook_shapes() -> None:
    trace = dry("textbook", 512, heads="pooler")
    shapes = {step.output.name: (step.output.shape, step.output.symbols) for step in trace.steps}
    expected = {
        "T": "S × H", "X": "S × H", "Query (Q)": "A × S × D", "Key (K)": "A × S × D", "Value (V)": "A × S × D",
        "Attention weights (A)": "A × S × S", "Heads output (Z_h)": "A × S × D", "Attention output": "S × (A·D)",
        "Z_ffn": "S × F", "Z_out": "S × H", "Class vector": "H",
    }  # fmt: skip
    number = {"S": 512, "H": 768, "A": 12, "D": 64, "F": 3072, "(A·D)": 768}
    for value, symbols in expected.items():
        assert shapes[value] == (tuple(number[symbol] for symbol in symbols.split(" × ")), symbols)
    assert trace.totals.params == 102_326_784


# ----------------------------------------------------------------------------------------------------------- costs


@pytest.mark.parametrize(
    ("sequence", "macs"),
    [(8, 681_246_720), (128, 11_174_215_680), (384, 35_333_406_720), (512, 48_318_971_904)],
)
def test_trace_the_reference_values_of_base(sequence: int, macs: int) -> None:
    totals = dry("base", sequence, heads="pooler").totals
    assert (totals.macs, totals.matmul_flops, totals.params) == (macs, 2 * macs, 109_482_240)


configs = st.builds(
    lambda heads, size, **rest: BertConfig(num_attention_heads=heads, hidden_size=heads * size, **rest),
    st.integers(1, 6), st.integers(1, 9), vocab_size=st.integers(1, 99), num_hidden_layers=st.integers(1, 4),
    intermediate_size=st.integers(1, 60), max_position_embeddings=st.integers(8, 64), num_labels=st.integers(1, 5),
    type_vocab_size=st.integers(1, 3),
)  # fmt: skip


@given(config=configs, batch=st.integers(1, 4), sequence=st.integers(1, 8))
@settings(max_examples=40, deadline=None)
def test_trace_costs_are_the_closed_forms(config: BertConfig, batch: int, sequence: int) -> None:
    """The second description of what a pass costs stands here, as oracle."""
    model = bertcli.variant(config=config, heads=ALL_HEADS)
    with bertcli.trace(model) as trace:
        model.outputs(np.zeros((batch, sequence), dtype=int))
    h, f, v, c = config.hidden_size, config.intermediate_size, config.vocab_size, config.num_labels
    layers, a = config.num_hidden_layers, config.num_attention_heads
    rows, pairs = batch * sequence, batch * sequence * sequence
    layer = rows * (4 * h * h + 2 * h * f) + 2 * pairs * h
    heads = batch * (h * h + 2 * h + c * h) + rows * (h * h + h * v)
    assert trace.totals.macs == layers * layer + heads
    # bias 1; scale 1; softmax 5; layer norm 7; gelu 5; tanh 1; a residual 1: for every number they make
    layer_work = 4 * rows * h + (1 + 5) * a * pairs + 2 * (1 + 7) * rows * h + (1 + 5) * rows * f + rows * h
    embedding_work = (1 + 1 + 7) * rows * h
    head_work = batch * (2 * h + 2 + c) + rows * ((1 + 5 + 7) * h + v)
    assert trace.totals.flops == 2 * trace.totals.macs + embedding_work + layers * layer_work + head_work
    held = {id(one.array): one.array.size for one in parameters(model.network)}
    assert trace.totals.params == sum(held.values())


@pytest.mark.parametrize("name", variants())
def test_trace_rows_add_up_every_step_has_words_and_every_parameter_is_used(name: str) -> None:
    # Seven layers: of some families one layer of three or six differs. test_family_costs.py has all of them.
    model = bertcli.variant(name, heads=heads_of(name), sizes={"num_hidden_layers": 7})
    trace = run_shapes(model, 2, 5)
    totals = trace.totals
    for step in trace.steps:
        assert all([step.group, step.operation, step.output.name, *(value.name for value in step.inputs)]), step
    for field in ("params", "macs", "flops"):
        assert sum(step[field] for step in trace.steps) == totals[field]
    assert sum(step.bytes for step in trace.steps) == totals.activation_bytes
    assert {path for step in trace.steps for path in step.parameters} == {one.path for one in parameters(model.network)}
    assert [step.index for step in trace.steps] == list(range(len(trace.steps)))
    assert len({step.path for step in trace.steps}) == len(trace.steps)


def test_trace_every_module_call_is_noted_with_its_axes() -> None:
    model = bertcli.variant("tiny", heads=ALL_HEADS)
    trace = dry("tiny", 6, batch=3, heads=ALL_HEADS)
    modules = {path for path, found in walk(model.network) if not isinstance(found, Parameter)}
    assert {call.path for call in trace.calls} == modules - {"encoder"} | {"encoder"}
    axes = {call.path: call.axes for call in trace.calls}
    assert axes["encoder.layers.1.feed_forward.intermediate"] == ((("B", 3), ("S", 6)), (("F", 512),))
    assert axes["pooler"] == ((("B", 3),), (("H", 128),))
    assert axes["mlm"] == ((("B", 3), ("S", 6)), (("V", 30522),))


# ---------------------------------------------------------------------------------------------------------- symbols


@given(config=configs, batch=st.integers(1, 4), sequence=st.integers(1, 8))
@settings(max_examples=30, deadline=None)
def test_trace_symbols_stand_for_the_sizes_they_name(config: BertConfig, batch: int, sequence: int) -> None:
    sizes = {**config.sizes, "B": batch, "S": sequence, "(A·D)": config.hidden_size, "2": 2, "1": 1}
    model = bertcli.variant(config=config, heads=ALL_HEADS)
    with bertcli.trace(model) as trace:
        model.outputs(np.zeros((batch, sequence), dtype=int))
    for step in trace.steps:
        for value in (*step.inputs, step.output):
            assert value.shape == tuple(sizes[symbol] for symbol in value.symbols.split(" × ")), step


def test_trace_symbols_do_not_come_from_numbers() -> None:
    """Every size is 4, every symbol as if they were not."""
    same = BertConfig(vocab_size=4, hidden_size=4, num_hidden_layers=1, num_attention_heads=4, intermediate_size=4,
                      max_position_embeddings=4, type_vocab_size=4, num_labels=4)  # fmt: skip
    model, other = bertcli.variant(config=same, heads=ALL_HEADS), bertcli.variant("tiny", heads=ALL_HEADS)
    found = []
    for one in (model, other):
        with bertcli.trace(one) as trace:
            one.outputs(np.zeros((4, 4), dtype=int))
        found.append([[value.symbols for value in (*step.inputs, step.output)] for step in trace.steps])
    layers = len(found[0]) - 6 - 7  # what is not embeddings or heads
    assert found[0][: 6 + layers] == found[1][: 6 + layers]
    assert found[0][-7:] == found[1][-7:]


def test_trace_an_axis_that_is_another_one_in_this_model_has_one_symbol() -> None:
    for name in ("deberta-v3-small", "electra-base"):  # embeddings as wide as the layers
        steps = run_shapes(bertcli.variant(name, heads="classifier"), 1, 8).steps
        values = [value for step in steps for value in (*step.inputs, step.output)]
        assert not any("E" in value.symbols.split(" × ") for value in values)
        assert steps[0].inputs[1].symbols == "V × H"
    (narrow,) = {step.inputs[1].symbols for step in run_shapes(bertcli.variant("electra-small"), 1, 8).steps[:1]}
    assert narrow == "V × E"


def test_trace_factors_are_shown_as_they_are_multiplied() -> None:
    found = run_shapes(bertcli.variant("deberta-v2-xlarge"), 1, 8).steps
    shown = {step.op: tuple(value.symbols for value in step.inputs[:2]) for step in found}
    assert shown["scores"] == ("A × S × D", "A × D × S")
    assert shown["bucket_scores"] == ("A × S × D", "A × D × K")
    assert shown["attend"] == ("A × S × S", "A × S × D")
    assert shown["linear"] == ("S × F", "F × H")
    assert shown["convolve"] == ("S × H", "H × W × H")


def test_trace_sentences_of_different_lengths_are_shown_as_they_are() -> None:
    model = bertcli.variant("tiny")
    mask = np.array([[1] * 9, [1] * 4 + [0] * 5, [1] * 9])
    with bertcli.trace(model) as trace:
        model.forward(np.zeros((3, 9), dtype=int), mask=mask)
    found = {
        step.path.removeprefix("encoder.layers.0."): (step.output.symbols, step.output.shape) for step in trace.steps
    }
    assert found["attention.query"] == ("ΣS × H", (22, 128))
    assert found["attention.softmax"] == ("Bᵢ × A × Sᵢ × Sᵢ", (1, 2, 4, 4))
    assert found["attention.softmax_2"] == ("Bᵢ × A × Sᵢ × Sᵢ", (2, 2, 9, 9))
    merged = next(step for step in trace.steps if step.path == "encoder.layers.0.attention.output")
    assert (merged.inputs[0].symbols, merged.inputs[0].shape) == ("ΣS × (A·D)", (22, 128))
    assert (trace.batch, trace.sequence) == (3, 9)


def test_trace_rows_asked_for_are_told_from_all_rows() -> None:
    model = bertcli.variant("tiny", weights=0)
    batch = packed(model, 2, 6)
    with bertcli.trace(model) as trace:
        model.network(batch, np.array([0, 1, 6, 9]))
        model.network(batch, batch.first)
    found = [
        (step.output.symbols, step.output.shape) for step in trace.steps if "layers.1.attention.softmax" in step.path
    ]
    assert found == [("B × A × R × S", (2, 2, 2, 6)), ("B × A × 1 × S", (2, 2, 1, 6))]


# ----------------------------------------------------------------------------------------------- the trace is closed


def test_trace_passes_of_different_sizes_have_no_one_size() -> None:
    model = bertcli.variant("tiny")
    with bertcli.trace(model) as alike:
        model.forward([[2, 3, 4]])
        model.forward([[5, 6, 7]])
    assert (alike.batch, alike.sequence) == (1, 3)
    with bertcli.trace(model) as several:
        model.forward([[2, 3, 4]])
        model.forward([[2, 3], [4, 5]])
    assert several.batch is several.sequence is None
    assert "tiny: V = 30522" in str(several)


def test_trace_an_array_born_where_one_died_is_not_taken_for_it() -> None:
    model = bertcli.variant("tiny", weights=0)
    with bertcli.trace(model):
        shape = model.outputs(np.zeros((1, 4), dtype=int))["hidden"][0].shape
        for _ in range(50):
            with pytest.raises(RuntimeError, match="that the trace cannot see"):
                ops.norm(np.ones(shape, dtype=np.float32), eps=1e-5)


class Views(encoder.Embeddings):
    """A page with every kind of view, and a buffer that an op fills."""

    def forward(self, batch: Packed) -> Any:
        x = super().forward(batch)
        x = ops.add(x, ops.embed(self.token[3:99], batch.ids))
        (block,) = batch.blocks(2)
        z = ops.empty_like(x)
        heads = block.query_heads(x)
        ops.attend(ops.softmax(ops.scores(heads, heads)), heads, into=block.query_heads(z))
        return ops.norm(z, eps=1e-5)


def with_page(page: type[Module]) -> Model:
    """A tiny model whose embeddings are this page."""
    model = bertcli.variant("tiny", weights=0)
    embeddings = page(**{name: getattr(model.network.embeddings, name) for name in encoder.Embeddings.__annotations__})
    return replace(model, network=replace(model.network, embeddings=embeddings))


def test_trace_views_and_buffers_that_ops_fill_are_known() -> None:
    model = with_page(Views)
    with bertcli.trace(model) as trace:
        model.network.embeddings(packed(model, 1, 6))
    assert [tuple(value.symbols for value in step.inputs) for step in trace.steps[-6:]] == [
        ("S", "N × H"), ("S × H", "S × H"), ("A × S × D", "A × D × S"), ("A × S × S",), ("A × S × S", "A × S × D"),
        ("S × (A·D)",),
    ]  # fmt: skip
    sources = [step.sources for step in trace.steps[-6:]]
    assert sources == [("embeddings.token",), (5, 6), (7,), (8,), (9, 7), (10,)]


@pytest.mark.parametrize(
    ("page", "error"),
    [
        (lambda x: np.tanh(x), TypeError),
        (lambda x: x * 2, TypeError),
        (lambda x: ops.norm(np.asarray(x), eps=1e-5), RuntimeError),
        (lambda x: ops.norm(np.zeros((4, 128), np.float32), eps=1e-5), RuntimeError),
        (lambda x: ops.norm(x[::2], eps=1e-5), RuntimeError),
        (lambda x: encoder.LayerNorm(x, x, 1e-5)(x), RuntimeError),
    ],
)
def test_trace_a_page_that_computes_without_ops_is_an_error(
    page: Callable[[Any], Any], error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = encoder.Embeddings.forward
    monkeypatch.setattr(encoder.Embeddings, "forward", lambda self, batch: page(before(self, batch)))
    model = bertcli.variant("tiny", weights=0)
    with bertcli.trace(model), pytest.raises(error):
        model.forward(np.zeros((1, 4), dtype=int))


def test_trace_only_its_own_thread_is_watched() -> None:
    model = bertcli.variant("tiny", weights=0)
    ids = np.zeros((1, 4), dtype=int)
    with bertcli.trace(model) as trace:
        thread = Thread(target=model.forward, args=(ids,))
        thread.start()
        thread.join(30)
        assert trace.steps == []
        model.forward(ids)
    steps = len(trace.steps)
    model.forward(ids)
    assert len(trace.steps) == steps > 0


# -------------------------------------------------------------------------------------------------------- real passes


@pytest.mark.parametrize("name", ["tiny", "textbook"])
def test_trace_numbers_are_the_untraced_ones_to_the_bit(name: str) -> None:
    config = BertConfig(
        vocab_size=90, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40,
        hidden_act="relu", model_type="textbook",
    )  # fmt: skip
    model = bertcli.variant(name, config=config if name == "textbook" else None, heads=heads_of(name), weights=5)
    random = np.random.default_rng(3)
    ids = random.integers(0, model.config.vocab_size, (6, 21))
    mask = np.arange(21) < np.array([21, 3, 9, 9, 1, 20])[:, None]
    plain, whole = model.forward(ids, mask=mask), model.outputs(ids)
    with bertcli.trace(model, time=True, stats=True, keep=lambda path: True):
        assert np.array_equal(model.forward(ids, mask=mask), plain)
        again = model.outputs(ids)
        assert again.keys() == whole.keys()
        assert all(np.array_equal(again[head], expected) for head, expected in whole.items())


def test_trace_a_real_trace_and_one_by_shapes_say_the_same(made: Made) -> None:
    real = bertcli.load(made(head="pretraining"))
    shapes = bertcli.variant(config=real.config, heads=real.heads)
    ids = np.arange(24).reshape(2, 12)
    records = []
    for model in (real, shapes):
        with bertcli.trace(model) as trace:
            model.outputs(ids)
        records.append(trace.record() | {"model": ""})
    assert records[0] == records[1]


def test_trace_time_and_statistics_of_each_step(made: Made) -> None:
    model = bertcli.load(made())
    with bertcli.trace(model, time=True, stats=True, keep=lambda path: True) as trace:
        model.outputs(np.arange(12).reshape(1, 12))
    assert trace.totals.seconds == pytest.approx(sum(step.seconds or 0 for step in trace.steps))
    for step in trace.steps:
        kept, stats = trace.arrays[step.path], step.stats
        assert step.seconds is not None
        assert step.seconds > 0
        assert stats is not None
        assert kept.shape == step.output.shape
        assert stats.finite
        found = np.array([stats.min, stats.max, stats.mean, stats.std], dtype=float)
        np.testing.assert_allclose(found, (kept.min(), kept.max(), kept.mean(), kept.std()), rtol=1e-4, atol=1e-6)


def test_trace_statistics_of_numbers_that_are_none() -> None:
    model = bertcli.variant(
        "tiny", heads="none", weights={**weights_of("tiny"), "embeddings.norm.bias": np.full(128, np.nan)}
    )
    with bertcli.trace(model, stats=True) as trace, np.errstate(all="ignore"):
        model.forward(np.zeros((1, 3), dtype=int))
    finite = [step.stats.finite for step in trace.steps if step.stats]
    assert finite[:5] == [True] * 5
    assert not any(finite[5:])
    assert trace.steps[5].stats is not None
    assert trace.steps[5].stats.mean is None
    json.dumps(trace.record(), allow_nan=False)


def weights_of(name: str) -> dict[str, Any]:
    model: Model = bertcli.variant(name, heads="none", weights=1)
    return {one.path: one.array for one in parameters(model.network)}


def test_trace_kept_arrays_are_the_references_states_and_attentions(made: Made) -> None:
    with np.load(REFERENCE / "shapes.npz") as recorded:
        attention = recorded["attention"]  # [layer, batch, head, token, token]
    model = bertcli.load(made(**cases.ATTENTION))
    batch = cases.mixed_batch(model.config.vocab_size, 2, 1, (9, 5))
    with bertcli.trace(model, keep=lambda path: True) as trace:
        model.forward(*batch)
    for layer in range(2):
        short = trace.arrays[f"encoder.layers.{layer}.attention.softmax"]  # shorter sentences come first
        long = trace.arrays[f"encoder.layers.{layer}.attention.softmax_2"]
        assert_near(short[0], attention[layer, 1, :, :5, :5], 1e-5)
        assert_near(long[0], attention[layer, 0], 1e-5)
        assert_near(long.sum(axis=-1), 1, 1e-6)


def test_trace_the_dense_layers_of_a_sentence_folder_are_steps_of_an_encoding(made: Made) -> None:
    layers = (Dense(7), Dense(5, False, "torch.nn.modules.linear.Identity"))
    model = bertcli.load(made(sentence=Sentence(("cls", "mean"), dense=layers, normalize=True)))
    texts = ["three", "one two", "four five six"]  # in the order in which they are computed
    with bertcli.trace(model, keep=lambda path: True) as trace:
        assert "sentence" not in vars(model)  # its files are read when an encoding needs them
        traced = model.encode(texts)
    assert np.array_equal(traced, model.encode(texts))
    steps = {step.path: step for step in trace.steps if step.path.startswith("dense.")}
    assert [*steps] == ["dense.0", "dense.1"]
    shown = [[(value.symbols, value.shape) for value in (*step.inputs, step.output)] for step in steps.values()]
    assert shown == [
        [("B × E₀", (3, 64)), ("E₀ × E₁", (64, 7)), ("B × E₁", (3, 7))],
        [("B × E₁", (3, 7)), ("E₁ × E₂", (7, 5)), ("B × E₂", (3, 5))],
    ]
    assert [step.operation for step in steps.values()] == ["linear + tanh", "linear + identity"]
    assert [step.parameters for step in steps.values()] == [("dense.0.weight", "dense.0.bias"), ("dense.1.weight",)]
    assert [step.macs for step in steps.values()] == [3 * 7 * 64, 3 * 5 * 7]
    assert [step.params for step in steps.values()] == [7 * 64 + 7, 5 * 7]
    assert [call.path for call in trace.calls][-2:] == ["dense.0", "dense.1"]
    last = trace.arrays["dense.1"]
    np.testing.assert_allclose(traced, last / np.linalg.norm(last, axis=1, keepdims=True), rtol=1e-6)


def test_trace_a_trace_within_a_trace_is_refused() -> None:
    model = bertcli.variant("tiny")
    with bertcli.trace(model) as trace:
        with pytest.raises(BertcliError, match="already in progress"), bertcli.trace(model):
            raise AssertionError
        bertcli.params(model)  # looks by itself, and unnoticed
        model.forward([[1, 2]])
    assert trace.totals.macs == 2 * 2 * (4 * 128 * 128 + 2 * 128 * 512 + 2 * 2 * 128)


def test_trace_and_params_know_every_layer_of_a_kind(tmp_path: Path) -> None:
    """Outputs of bge-m3, modules of a cross-encoder, and what a reranker makes of two rows of a table."""
    bge = bertcli.load(write_bge_m3(tmp_path / "bge-m3"))
    modular = bertcli.load(write_cross_encoder(tmp_path / "modular"))
    reranker = bertcli.load(write_reranker(tmp_path / "reranker", **RERANKERS["published"]))
    documents = ["a river", "hot tea"]

    def token_vectors() -> Any:
        return [vectors for block in bge.encode_blocks(documents, pooling="none") for vectors in block.vectors]

    calls: list[tuple[Any, Callable[[], Any], list[str]]] = [
        (bge, lambda: bge.encode_sparse(documents), ["sparse_linear"]),
        (bge, lambda: bge.rank("tea", documents), ["colbert_linear"]),
        (bge, token_vectors, ["colbert_linear"]),
        (modular, lambda: modular.rank("tea", documents), ["dense.0", "dense.1", "dense.2"]),
        (reranker, lambda: reranker.rank("tea", documents), ["logit_score"]),
    ]
    for model, call, paths in calls:
        expected = call()
        with bertcli.trace(model) as trace:
            found = call()
        assert repr(found) == repr(expected)
        assert [each.path for each in trace.calls if each.path in paths][: len(paths)] == paths
        operations = {step.path: step.operation.split()[0] for step in trace.steps}
        assert all(operations[path] == ("layer" if path == "dense.1" else "linear") for path in paths)
    rows = {row.path: row for row in bertcli.params(bge).rows}
    assert (rows["sparse_linear"].params, rows["colbert_linear"].params) == (32 + 1, 32 * 32 + 32)
    assert rows["colbert_linear"].connected_to == ()
    rows = {row.path: row for row in bertcli.params(modular).rows}
    assert [rows[f"dense.{number}"].params for number in range(3)] == [1024, 64, 33]
    assert (rows["dense.2"].connected_to, rows["dense.2"].output_shape) == (("dense.1",), "(None, 1)")
    # The pass of a reranker reads no parameters but those of its network, which ends before its head.
    assert trace.totals.params == bertcli.params(reranker).total_params
    assert [(step.params, step.macs) for step in trace.steps if step.path == "logit_score"] == [(0, 2 * 32)]


def test_trace_a_dense_layer_of_another_folder_is_no_part_of_the_trace(made: Made) -> None:
    folder = made(sentence=Sentence(dense=(Dense(7),)))
    (other,) = bertcli.load(folder).kind.dense
    for model in (bertcli.load(folder), bertcli.load(made()), bertcli.variant("tiny", weights=0)):
        with bertcli.trace(model), pytest.raises(RuntimeError, match="Dense ran that is not part of the traced model"):
            other(np.zeros((1, 32), dtype=np.float32))


@pytest.mark.parametrize("name", ["modernbert-base", "deberta-v3-small", "distilbert-base", "electra-small", "tiny"])
@pytest.mark.parametrize(
    ("head", "kind", "words"),
    [
        ("qa", "QuestionAnswering", ("Question answering", "W_qa", "Start and end logits")),
        ("multiple_choice", "MultipleChoice", ("Multiple choice", "W_m", "Choice logit")),
    ],
)
def test_trace_and_params_name_heads_by_what_they_tell(name: str, head: str, kind: str, words: tuple[str, ...]) -> None:
    model = bertcli.variant(name, heads=head)
    last = run_shapes(model, 1, 8).steps[-1]
    assert (last.group, last.inputs[1].name, last.output.name) == words
    assert {row.path: row.type for row in bertcli.params(model).rows}[head] == kind


def test_trace_of_a_text_is_the_pass_that_the_command_prints() -> None:
    model = bertcli.load()
    text = "A hot [MASK]."
    trace = bertcli.trace(model, text, stats=True, keep=lambda path: path.endswith("softmax"))
    printed = command("trace", text, "--stats", "--all-layers", "--format", "json").out
    assert json.loads(printed)["steps"] == [json.loads(json.dumps(step.record())) for step in trace.steps]
    tokens = model.tokenize(text)["ids"]
    assert trace.arrays["encoder.layers.2.attention.softmax"].shape[1:] == (len(tokens), len(tokens))
    together = bertcli.trace(model, [text, "tea"], "milk")
    assert [one.sequence for one in together] == [len(model.tokenize(one, "milk")["ids"]) for one in (text, "tea")]
    timed = bertcli.trace(model, "tea", time=True)
    assert all(step.seconds is not None for step in timed.steps)

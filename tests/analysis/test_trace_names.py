"""Every operand has the name that its maker gave it, in every variant and family, with every head."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.family_checkpoints import FAMILIES, make_family

import bertcli
from bertcli.analysis.trace import Trace
from bertcli.analysis.trace.step_names import HEAD_INPUT, INPUTS, LAYER_INPUT, StepNames, names_for, transposed
from bertcli.engine.padded_batch import pack_padded
from bertcli.model import Model
from bertcli.models import esm
from bertcli.models.registry import variants
from bertcli.network.encoder import LayerNorm
from bertcli.tracing.dispatch import watching
from bertcli.tracing.traced import Traced, Weight
from bertcli.tracing.tracer import Ran

LAYER = re.compile(r"encoder\.layers\.\d+")
# Settings that change which steps a family has.
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "deberta-v2": [
        {"conv_kernel_size": 3, "type_vocab_size": 2, "position_biased_input": True, "norm_rel_ebd": "none"},
        {"pos_att_type": ["c2p"], "share_att_key": False},
    ],
    "nomic_bert": [{"type_vocab_size": 0}],
    "gte": [{"type_vocab_size": 0}],
    "esm": [{"token_dropout": False}],
    "eurobert": [{"classifier_pooling": "mean"}, {"classifier_pooling": "bos"}],
    "modernbert": [{"classifier_pooling": "mean"}],
    "ernie": [{"use_task_id": False}],
}


class Sourced(Trace):
    """A trace that also keeps of every operand shown which value it is."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.operands: list[list[Traced]] = []

    def ran(self, ran: Ran) -> None:
        shown = [one for one in ran.operands if one is not None and (one.weight is None or one.ndim > 1)]
        self.operands.append(sorted(shown, key=lambda one: one.weight is not None))
        super().ran(ran)


def traced(model: Model, length: int = 7) -> Sourced:
    """A pass with every head, and one of a few rows only."""
    trace, ids = Sourced(model), np.full((2, length), 5)
    with watching(trace):
        model.outputs(ids)
        model.network(pack_padded(ids, np.zeros_like(ids), ids > 0)[0], np.array([1, 3, 8]))
    return trace


# Weights have short names, W_Q or E_tok; the others are tables that have one of their own.
NAMES_OF_WEIGHTS = re.compile(r"[WETRV](?:[_^]\S+)?|Decoder|Relative (?:embeddings|positions \(R\))")


def layer_of(path: str) -> str:
    found = LAYER.match(path)
    return found[0] if found else ""


def check(trace: Sourced) -> None:
    """Names and sources agree."""
    for step, operands in zip(trace.steps, trace.operands, strict=True):
        assert all([step.group, step.operation, step.output.name]), step.path
        assert len(step.inputs) == len(operands)
        for shown, operand in zip(step.inputs, operands, strict=True):
            made = [trace.steps[origin] for origin in operand.source if isinstance(origin, int)]
            if any(isinstance(origin, Weight) for origin in operand.source):
                assert NAMES_OF_WEIGHTS.fullmatch(shown.name.removesuffix(" (tied)")), (step.path, shown.name)
                continue
            if not made:
                assert shown.name in {*INPUTS.values(), "[CLS] row"}, (step.path, shown.name)
                continue
            names = {made[-1].output.name, transposed(made[-1].output.name)}
            if layer_of(step.path) and layer_of(made[-1].path) != layer_of(step.path):
                names.add(LAYER_INPUT)
            if made[-1].path.startswith(("encoder", "embeddings")) and not step.path.startswith(("enc", "emb")):
                names = {HEAD_INPUT}
            assert shown.name in names, (step.path, shown.name, names)


@pytest.mark.parametrize("name", variants())
def test_trace_names_of_a_variant_are_those_that_makers_gave(name: str) -> None:
    heads = variants()[name].head_names
    # Seven layers: of some families one layer of three or six differs.
    check(traced(bertcli.variant(name, heads=heads, sizes={"num_hidden_layers": 7})))


@pytest.mark.parametrize(
    ("name", "changed"), [(name, changed) for name in FAMILIES for changed in ({}, *SETTINGS.get(name, []))]
)
def test_trace_names_of_a_family_are_those_that_makers_gave(name: str, changed: dict[str, Any], tmp_path: Path) -> None:
    for head in FAMILIES[name].heads:
        check(traced(bertcli.load(make_family(tmp_path / head, name, head, config=changed))))


def test_trace_names_of_one_layer_whose_rows_are_asked_for() -> None:
    for name in ("tiny", "mpnet-base", "modernbert-base", "deberta-v3-small"):
        check(traced(bertcli.variant(name, sizes={"num_hidden_layers": 1})))


def test_trace_names_of_shared_heads_and_of_plain_feed_forward_layers() -> None:
    shared = traced(bertcli.variant("eurobert-610m", heads="none")).steps
    named = {step.op: [value.name for value in step.inputs] for step in shared}
    assert named["scores"] == ["Rotated query", "Keys of all headsᵀ"]
    assert named["attend"] == ["Attention weights", "Values of all heads"]
    groups = {step.group for step in traced(bertcli.variant("esm2-8m")).steps}
    assert ("3 Feed-forward" in groups, "3 Gated feed-forward" in groups) == (True, False)


# ------------------------------------------------------------------------------------------ values that are gone


def test_trace_a_value_that_was_written_over_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    norms = {name: esm.EncoderLayer.__annotations__[name] for name in ("attention_norm", "feed_forward_norm")}
    assert {norm.__name__ for norm in norms.values()} == {"NormKeepingInput"}
    for name in norms:  # a family whose layers need x after their norms, written with the norm that writes over it
        model = bertcli.variant("esm2-8m", sizes={"num_hidden_layers": 2}, weights=0, heads="none")
        for layer in model.network.encoder.layers:
            right = getattr(layer, name)
            object.__setattr__(layer, name, LayerNorm(right.weight, right.bias, right.eps))
        with bertcli.trace(model), pytest.raises(RuntimeError, match="the op norm has written over"):
            model.forward(np.full((1, 5), 5))


def test_trace_a_value_is_read_again_in_another_pass() -> None:
    model = bertcli.variant("tiny", weights=0)
    with bertcli.trace(model) as trace:
        hidden = model.forward(np.full((2, 5), 5))
        assert np.array_equal(model.forward(np.full((2, 5), 5)), hidden)
    assert len({step.index for step in trace.steps}) == len(trace.steps) > 0


@pytest.mark.parametrize("file", ["encoder", "heads", "module", "after_pooling", "anything"])
def test_a_plugins_family_keeps_its_names_in_a_file_of_any_name(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in one that is called as a file of network/ is."""
    package = tmp_path / f"plugin_with_{file}"
    package.mkdir()
    (package / f"{file}.py").write_text(
        "from bertcli.network.encoder import SelfAttention\n\n\n"
        "class SelfAttention(SelfAttention):\n    pass\n\n\n"
        'STEP_NAMES = """\nOwn group\n  SelfAttention.query linear | own step | Own result | W_own\n"""\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    owner = import_module(f"plugin_with_{file}.{file}").SelfAttention
    expected = StepNames("Own group", "own step", "Own result", ("W_own",))
    assert names_for([(owner, "query", "linear")], {}, "", []) == expected
    # What it does not name has the name of the class that it is made from.
    base = names_for([(owner, "value", "softmax")], {}, "", [])
    assert base == StepNames("1 Multi-head attention", "c) softmax", "Attention weights")

"""No family and no op without numbers: what a new one lacks is named, with the line to add."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.family_checkpoints import FAMILIES, make_family
from helpers.gliner import write_gliner
from helpers.gliner2 import write_gliner2
from helpers.gliner25 import write_gliner25
from helpers.near import assert_near
from helpers.ops import OF_KINDS, OPS
from reference.family_cases import CASES

import bertcli
from bertcli.engine.padded_batch import pack_padded
from bertcli.model import Model
from bertcli.models.config import Config
from bertcli.models.registry import families, variant_config, variants
from bertcli.network import position_ops
from bertcli.network.heads import outputs
from bertcli.network.module import parameters
from bertcli.tracing.dispatch import Op, watching
from bertcli.wings.onnx.exporter import HIDDEN, OPSET, exporter_of
from bertcli.wings.onnx.file import Export, write_parts
from bertcli.wings.onnx.session import Session, hidden_states

RECORDED = Path(__file__).parents[1] / "reference" / "families"
# Types whose numbers are recorded elsewhere: BERT's in networks.npz, static tables' in sentence_models.json; and one
# that is another type's in every respect.
ELSEWHERE = {"bert", "model2vec", "new"}
# Ops of the textbook's model, which has no files: test_textbook.py works them out with loops.
OF_TEXTBOOK = {"project", "project_heads", "concat"}


def test_every_family_has_recorded_numbers() -> None:
    with_files = {kind for member in families() if member.names for kind in member.types}
    for kind in sorted(with_files - ELSEWHERE):
        assert kind in FAMILIES, f'add "{kind}": Family(…) to FAMILIES in tests/helpers/family_checkpoints.py'
        named = [name for name, case in CASES.items() if case.family == kind]
        assert named, f'add **every_head("{kind}") to CASES in tests/reference/family_cases.py'
        record = f"run python tests/reference/record_families.py {kind} (see its docstring)"
        assert (RECORDED / f"{kind}.npz").exists(), record
        with np.load(RECORDED / f"{kind}.npz") as stored:
            recorded = {key.partition("/")[0] for key in stored.files}
        assert recorded == {*named}, record
    assert {file.stem for file in RECORDED.glob("*.npz")} == with_files - ELSEWHERE


def test_every_head_has_recorded_numbers() -> None:
    """The pooler's numbers are recorded with the model's, those that a file for pre-training has with another head."""
    # BERT's own is recorded; transformers has no class of DeBERTa 1 with choices.
    beside = {"ernie": {"nsp"}, "deberta": {"multiple_choice"}}
    for member in families():
        for kind in sorted(member.types.keys() - ELSEWHERE if member.names else ()):
            heads = {head for head in member.head_names if member.head_tensor_prefix(head) or head == "lm"} - {"pooler"}
            missing = heads - {*FAMILIES[kind].heads} - beside.get(kind, set())
            assert not missing, (
                f'add {missing} to the heads of FAMILIES["{kind}"] in tests/helpers/family_checkpoints.py'
            )


class Seen:
    """Notes which ops are called."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def op(self, one: Op[Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        self.names.add(one.name)
        return one.compute(*arguments, **keywords)

    def module(self, module: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        return module.forward(*arguments, **keywords)


def test_every_op_occurs_in_a_recorded_case(tmp_path: Path) -> None:
    seen = Seen()
    for name, case in CASES.items():
        if not seen.names >= OPS.keys() - OF_KINDS.keys() - OF_TEXTBOOK:
            model = bertcli.load(make_family(tmp_path / name, case.family, case.head, **case.checkpoint))
            ids, segments, mask = case.batch()
            with watching(seen):
                outputs(model.network, pack_padded(ids, segments, mask != 0)[0])
    gliner = bertcli.load(write_gliner(tmp_path / "gliner"))  # its numbers are those of gliner.json
    with watching(seen):
        gliner.outputs([[1, 5, 6, 7, 2]])
    for layers in ("count_lstm", "count_lstm_v2"):  # of gliner2.json
        gliner2 = bertcli.load(write_gliner2(tmp_path / layers, counting_layer=layers))
        with watching(seen):
            gliner2.outputs([[1, 5, 6, 7, 2]])
    gliner25 = bertcli.load(write_gliner25(tmp_path / "gliner25"))  # of gliner25.json
    with watching(seen):
        gliner25.outputs([[1, 5, 6, 7, 2]])
    unseen = OPS.keys() - OF_TEXTBOOK - seen.names
    assert not unseen, f"add a case to CASES in tests/reference/family_cases.py that calls {', '.join(sorted(unseen))}"


# What a small model of each published size has instead of these keys.
SMALL: dict[str, Any] = {
    "vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 48,
    "max_position_embeddings": 40, "head_dim": 16, "attention_head_size": 16, "embedding_size": 24,
    "position_buckets": 16, "sliding_window": 4, "local_attention": 8, "pad_token_id": 1, "num_labels": 3,
    "mask_token_id": 5, "num_experts": 4,
}  # fmt: skip


def small(config: Config) -> Config:
    """The configuration of a published size, with a few numbers everywhere: its settings stay."""
    there = {item.name for item in fields(config) if getattr(config, item.name) is not None}
    changes = {key: value for key, value in SMALL.items() if key in there}
    key_heads = getattr(config, "num_key_value_heads", None)
    if key_heads is not None:
        changes["num_key_value_heads"] = 2 if key_heads == config.num_attention_heads else 1
    if getattr(config, "position_buckets", 1) < 0:
        changes["position_buckets"] = -1
    return replace(config, **changes)


def random_model(name: str, **changes: Any) -> Model:
    config = replace(small(variant_config(name)), **changes)
    listed = parameters(bertcli.variant(config=config, heads="none").network)
    shapes = {id(one.array): one for one in reversed(listed)}.values()  # layers that are shared are there once
    rng = np.random.default_rng(len(name))
    weights = {}
    for one in shapes:
        spread = 0.2 if len(one.array.shape) == 1 else 0.6 / np.sqrt(one.array.shape[-1])
        around = 1 if one.path.endswith("norm.weight") and config.model_type != "gemma3_text" else 0
        weights[one.path] = around + rng.normal(0, spread, one.array.shape)
    return bertcli.variant(config=config, heads="none", weights=weights)


def check_graph(model: Model, file: Path) -> None:
    """Compare a network's states with those of its graph: of sentences, and of one whose mask has holes, alone."""
    network, rng = model.network, np.random.default_rng(3)
    exporter = exporter_of(network, opset=OPSET, packed=True)
    made = Export(exporter.graph, exporter.watch(lambda batch: {HIDDEN: network(batch)}), {})
    write_parts(made, file, two_files=False)
    session = Session(file)
    lengths = np.arange(30) < np.array([[30], [4], [19]])
    # Its tokens stand far apart, though there are few.
    with_holes = np.isin(np.arange(30), [*range(5), 24, 25, 27, 28, 29])[None]
    for mask in (lengths, with_holes):
        ids = rng.integers(6, 64, mask.shape)
        segments = (np.arange(30) > 9) * np.int64(model.config.segment_count > 1) * mask
        batch, _ = pack_padded(ids, segments, mask)
        expected = network(batch)
        assert np.abs(expected).max() > 0.1
        assert_near(hidden_states(session, batch), expected, 1e-5)


@pytest.mark.parametrize("name", variants())
def test_the_numbers_of_every_variant_are_those_of_its_graph(name: str, tmp_path: Path) -> None:
    check_graph(random_model(name), tmp_path / "graph.onnx")


def test_a_wide_convolution_sees_past_a_masked_token(tmp_path: Path) -> None:
    check_graph(random_model("deberta-v2-xlarge", conv_kernel_size=5), tmp_path / "graph.onnx")


def test_a_convolution_takes_a_masked_token_for_zeros() -> None:
    """As transformers does; with weights that add up the token before and the one after."""
    x = np.arange(1, 6, dtype=np.float32)[:, None] ** 2
    weight, bias = np.array([[[1, 0, 10]]], np.float32), np.zeros(1, np.float32)
    found = position_ops.convolve.compute(x, weight, bias, np.array([0, 3]), np.array([0, 1, 3, 0, 2]))
    assert found[:, 0].tolist() == [40, 1, 0, 0, 0]

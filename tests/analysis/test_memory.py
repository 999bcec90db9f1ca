"""How much memory a pass takes: what params says is what NumPy allocates."""

import re
import tracemalloc
from typing import Any

import numpy as np
import pytest
from helpers.terminal import bertcli as run
from helpers.terminal import wrong_usage

import bertcli
from bertcli.engine.padded_batch import pack_padded
from bertcli.engine.threads import thread_count
from bertcli.errors import BertcliError
from bertcli.model import Model
from bertcli.tasks.running.batches import BATCH_TOKENS
from bertcli.tracing.dispatch import Module, Op, watching
from bertcli.tracing.tracer import argument_names


def allocated(model: Model, batch: int, sequence: int) -> int:
    """The most bytes that a pass with every head has allocated at a time, beyond the weights."""
    ids = np.random.default_rng(0).integers(0, model.config.vocab_size, (batch, sequence))
    model.outputs(ids)  # what is computed once, such as angles, is no part of a pass
    tracemalloc.start()
    try:
        model.outputs(ids)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("batch", "sequence"), [(8, 128), (16, 24)])
def test_memory_of_the_bundled_model_is_what_is_allocated(batch: int, sequence: int) -> None:
    model = bertcli.load()
    estimated = bertcli.params(model, batch_size=batch, seq_len=sequence).memory
    assert estimated is not None
    assert estimated.ours.activations == pytest.approx(allocated(model, batch, sequence), rel=0.05)


SMALL = ("base", "modernbert-base", "deberta-v3-base", "mpnet-base", "albert-base")


@pytest.mark.parametrize("name", SMALL)
def test_memory_of_each_family_is_what_is_allocated(name: str) -> None:
    model = bertcli.variant(name, weights=0, heads="none", sizes={"num_hidden_layers": 2, "vocab_size": 400})
    estimated = bertcli.params(model, batch_size=4, seq_len=128).memory
    assert estimated is not None
    assert sum(estimated.ours) == pytest.approx(estimated.ours.weights + allocated(model, 4, 128), rel=0.15)


@pytest.mark.parametrize("name", ["base", "deberta-v3-base", "mpnet-base", "textbook"])
def test_memory_of_attention_is_what_is_allocated(name: str) -> None:
    sizes = {"num_hidden_layers": 2, "vocab_size": 400, "intermediate_size": 64}  # attention needs most
    model = bertcli.variant(name, weights=0, heads="none", sizes=sizes)
    estimated = bertcli.params(model, batch_size=1, seq_len=512).memory
    assert estimated is not None
    assert estimated.ours.activations == pytest.approx(allocated(model, 1, 512), rel=0.15)


@pytest.mark.parametrize("name", ["deberta-base", "deberta-v3-base"])
def test_memory_of_relative_positions_is_that_of_the_distances_that_occur(name: str) -> None:
    """A table of 512 or 1,024 rows and its projections are 5 to 20 times what a pass of 8 tokens takes."""
    sizes = {"num_hidden_layers": 2, "vocab_size": 400, "intermediate_size": 64}
    model = bertcli.variant(name, weights=0, heads="none", sizes=sizes)
    for batch in (1, 4):
        estimated = bertcli.params(model, batch_size=batch, seq_len=8).memory
        assert estimated is not None
        assert estimated.ours.activations == pytest.approx(allocated(model, batch, 8), rel=0.25)
        assert estimated.padded.activations > 5 * estimated.ours.activations  # ordinarily, of all rows


@pytest.mark.parametrize("name", ["tiny", "albert-base", "modernbert-base", "t5-small"])
def test_memory_counts_weights_that_are_shared_once(name: str) -> None:
    heads = None if name == "t5-small" else "mlm"  # whose decoder is the embeddings
    model = bertcli.variant(name, heads=heads, sizes={"num_hidden_layers": 2})
    summary = bertcli.params(model, batch_size=1, seq_len=8)
    assert summary.memory is not None
    assert summary.memory.ours.weights == summary.memory.padded.weights == 4 * summary.total_params


def test_memory_of_attention_holds_what_its_ops_need_beside_their_results() -> None:
    sizes = {"num_hidden_layers": 1, "intermediate_size": 64}
    found = bertcli.params(bertcli.variant("base", heads="none", sizes=sizes), batch_size=1, seq_len=64).memory
    tokens = 4 * 64 * 768  # bytes of a value [token, hidden]
    assert found is not None  # x, q, k, v and the result, which is first made apart, beside the scores
    assert found.ours.activations == 6 * tokens + 4 * 12 * 64 * 64


def test_memory_in_ordinary_execution_holds_whole_scores() -> None:
    model = bertcli.variant("base", heads="none")
    found = bertcli.params(model, batch_size=2, seq_len=512).memory
    assert found is not None
    tokens, hidden, heads = 2 * 512, 768, 12
    # x, its norm's copy, q, k, v, and the scores beside their softmax
    assert found.padded.activations == 4 * (5 * tokens * hidden + 2 * 2 * heads * 512 * 512)
    assert found.ours.activations < 4 * 9 * tokens * hidden


class Overwritten:
    """Lets a pass through; `seen` are the ops whose results are where they say."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def module(self, module: Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        return module.forward(*arguments, **keywords)

    def op(self, op: Op[Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        given = {**dict(zip(argument_names(op), arguments, strict=False)), **keywords}
        result = op.compute(*arguments, **keywords)
        shared = {name for name, one in given.items() if isinstance(one, np.ndarray) and np.shares_memory(one, result)}
        assert shared == ({op.over} if given.get(op.over or "") is not None else set()), op.name
        self.seen.add(op.name)
        return result


def test_memory_a_result_is_written_over_what_its_op_says() -> None:
    watcher = Overwritten()
    ids = np.zeros((2, 9), dtype=int)
    batch, _ = pack_padded(ids, ids, ids == 0)
    for name in ("roberta-base", "textbook", *SMALL):
        model = bertcli.variant(name, weights=0, heads="none", sizes={"num_hidden_layers": 2, "vocab_size": 400})
        with watching(watcher):
            model.network(batch, np.array([0, 9]))
    assert watcher.seen >= {"add", "multiply", "rotate", "within", "softmax", "norm", "attend", "concat", "add_bias"}


def test_memory_is_shown_beside_the_counts() -> None:
    sized = ["--batch-size", "8", "--seq-len", "128"]
    record = run("params", "--variant", "base", *sized, "--format", "json").json["memory"]
    half = run("params", "--variant", "base", *sized, "--dtype", "float16", "--format", "json").json["memory"]
    assert record["weights"] == 4 * 109_482_240
    assert record["peak"] == record["weights"] + record["activations"]
    assert record["padded"]["peak"] > record["peak"]
    assert half["activations"] * 2 == record["activations"]
    both = run("params", "--variant", "base", *sized, "--versus", "large", "--format", "json").json
    assert both["memory"] == record
    assert both["versus_memory"]["weights"] == 4 * 335_141_888
    assert "of activations at once" in run("params", "--variant", "base", *sized).out
    assert "memory" not in run("params", "--variant", "base", "--format", "json").json


def test_memory_that_bertcli_takes_is_of_float32_and_of_few_texts() -> None:
    """Whatever type is asked for, and however many texts: they are computed in micro-batches."""
    words = ["params", "--variant", "base", "--seq-len", "128", "--format", "json"]
    half, many = (run(*words, "--dtype", "float16", "--batch-size", count).json["memory"] for count in ("8", "1000000"))
    whole = run(*words, "--batch-size", "8").json["memory"]
    assert half["taken"] == {"sentences": 8, **{name: whole[name] for name in ("weights", "activations", "peak")}}
    assert many["taken"]["sentences"] == thread_count() * BATCH_TOKENS // 128
    assert many["taken"]["peak"] < 2**30 < 2**40 < many["peak"]
    shown = run("params", "--variant", "base", "--seq-len", "512", "--batch-size", "1", "--dtype", "float16").out
    assert re.search(
        r"\nbertcli computes in float32, 1 text at a time: .* at once, 4\d\d\.\d MiB with the weights\n", shown
    )


def test_memory_needs_a_size_and_a_type() -> None:
    wrong_usage("params", "--variant", "base", "--dtype", "float16", why="add --batch-size")
    with pytest.raises(BertcliError, match="dtype"):
        bertcli.params(bertcli.variant("tiny"), dtype="float8")

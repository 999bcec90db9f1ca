"""`trace --estimate`: the time that a machine needs for each step (Williams, Waterman and Patterson 2009, "Roofline").

    seconds = (2 MACs / products + weights / memory + (activations + passes) / element-wise + call) / efficiency

products: floating-point operations a second of large matrix products. memory: bytes a second that come from memory, as
weights do. element-wise: bytes a second of NumPy's passes over activations, which micro-batches keep in the cache:
three to six times the rate of memory. Every element-wise operation reads and writes the result once (`passes`); of a
step that multiplies no matrix, these are its activations. call: what calling an op costs however small it is.
efficiency: the share of these rates that a pass of layers of this size and of so many tokens reaches; narrow layers
reach less.

These take turns here: OpenBLAS copies a weight before it multiplies, and NumPy makes one pass for each operation. All
five are measured as the pass uses them. Of a machine of which only the first two are given, element-wise passes run at
the rate of memory, so that its times are upper bounds.

A pass that is timed (`--time`) runs op by op: its products with weights are shared by the cores, all else runs on one.
"""

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

import numpy as np

from bertcli.analysis.trace.recorder import run_shapes
from bertcli.analysis.trace.recorder import trace as traced
from bertcli.analysis.trace.steps import ITEM, Account, Estimate, Rates, Step
from bertcli.engine.packing import LEAST_TOKENS
from bertcli.engine.threads import thread_count
from bertcli.loaded_model import LoadedModel
from bertcli.network.ops import norm, softmax

# Sizes of the arrays that element-wise passes are measured on: a micro-batch of BERT-base.
TOKENS, HIDDEN, HEADS, LENGTH = 800, 768, 12, 128
# Tokens of a pass so short that calling ops takes most of its time.
SHORT = 16
# Runs of a measurement; the fastest counts.
TRIES = 20
# Of the pass that efficiency is measured with: so many tokens that products are large, weights that do not fit a
# processor's caches, and a layer of a size that fits any machine's memory.
MOST_TOKENS = 1024
LEAST_NUMBERS, MOST_NUMBERS = 24 << 20, 32 << 20
# Seconds after which no further run of that pass is begun, when there have been two.
ENOUGH = 0.5


def machine_rates() -> Rates:
    """Measure the rates of this machine."""
    from bertcli.doctor import matrix_rate, memory_rate

    rates = Rates(matrix_rate() / 1e9, memory_rate() / 1e9, elementwise_rate() / 1e9, 0.0, thread_count())
    return rates._replace(call_seconds=call_seconds(rates))


def rates_for(trace: Account) -> Rates:
    """The rates of this machine, with the efficiency that layers such as those of the trace reach on it."""
    rates = machine_rates()
    return rates._replace(efficiency=efficiency(trace, rates))


def efficiency(account: Account, rates: Rates) -> float:
    """Measure a pass of a few layers of this size, and as many tokens: the estimate's share of its seconds."""
    sequence = account.sequence or SHORT
    batch = max(1, min(account.batch or 1, MOST_TOKENS // sequence))
    model = LoadedModel.variant("mini", heads="none", weights=0, sizes=_layers_like(account, sequence))
    ids = np.ones((batch, sequence), int)
    shapes = run_shapes(model, batch, sequence)
    shapes.timed = account.timed
    estimate(shapes, rates)
    expected = shapes.totals.estimated_seconds or 0.0

    seconds: list[float] = []
    while len(seconds) < 2 or (sum(seconds) < ENOUGH and len(seconds) < TRIES):
        start = perf_counter()
        if account.timed:
            with traced(model, time=True) as timed:
                model.forward(ids)
            seconds.append(timed.totals.seconds or 0.0)
        else:
            model.forward(ids)
            seconds.append(perf_counter() - start)
    return expected / min(seconds)


def _layers_like(account: Account, positions: int) -> dict[str, int]:
    """The sizes of a few of BERT's layers that are like those of this trace's model, by their keys in config.json."""
    sizes = account.sizes
    hidden, heads = sizes["H"], sizes.get("A", 0)
    inner = sizes.get("F", 4 * hidden)
    if not heads or hidden % heads:
        heads = 1
    if hidden * (4 * hidden + 2 * inner) > MOST_NUMBERS:
        hidden, inner, heads = 1024, 4096, 16
    layers = -(-LEAST_NUMBERS // (hidden * (4 * hidden + 2 * inner)))
    return {
        "vocab_size": 1000,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_attention_heads": heads,
        "num_hidden_layers": max(1, min(layers, sizes.get("L", 1))),
        "max_position_embeddings": positions,
    }


def elementwise_rate() -> float:
    """Measure element-wise passes over activations on one core: bytes a second, counted as the ops count theirs."""
    x = np.ones((TOKENS, HIDDEN), np.float32)
    scores = np.zeros((1, HEADS, LENGTH, LENGTH), np.float32)
    vector = np.ones(HIDDEN, np.float32)
    arguments = {"weight": vector, "bias": vector}
    passes = 2 * ITEM * (norm.work(arguments) * x.size + softmax.work({}) * scores.size)
    seconds = _best_of(lambda: norm.compute(x, vector, vector, eps=1e-12))
    seconds += _best_of(lambda: softmax.compute(scores))
    return passes / seconds


def call_seconds(rates: Rates) -> float:
    """Measure the seconds that calling an op takes: a short pass of a small model, less what the rates explain."""
    model = LoadedModel.variant("mini", heads="none", weights=0, sizes={"vocab_size": 1000})
    ids = np.ones((1, SHORT), int)
    seconds = _best_of(lambda: model.forward(ids))
    trace = run_shapes(model, 1, SHORT)
    estimate(trace, rates)
    explained = trace.totals.estimated_seconds or 0.0
    return max(0.0, seconds - explained) / len(trace.steps)


def _best_of(work: Callable[[], object]) -> float:
    """Seconds of the fastest of several calls, when nothing else was in the way."""
    times = []
    for _ in range(TRIES):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times)


def estimate(trace: Account, rates: Rates) -> None:
    """Add an estimate to every step of a trace, in place."""
    trace.rates = rates
    tokens = (trace.batch or 1) * (trace.sequence or 1)
    # A pass of few tokens is not divided, nor is one that is timed: only products with weights are shared by the cores.
    cores = rates.cores if tokens >= 2 * LEAST_TOKENS and not trace.timed else 1
    trace.steps[:] = [replace(step, estimate=_estimated(step, trace, rates, cores)) for step in trace.steps]


def _estimated(step: Step, trace: Account, rates: Rates, cores: int) -> Estimate:
    """The estimate of one step, by the formula at the top of this file; all sizes are bytes."""
    weights = ITEM * sum(trace.consumed.get(path, 0) for path in step.sources if isinstance(path, str))
    # A lookup in a table reads some of its rows, not the whole table.
    weights = min(weights, step.read)
    activations = step.read - weights + step.bytes
    passes = 2 * ITEM * (step.flops - 2 * step.macs)
    moved = activations + passes if step.macs else max(activations, passes)

    products = 1e9 * rates.gflops * (1 if step.parameters else cores / rates.cores)
    seconds = 2 * step.macs / products
    seconds += weights / (1e9 * rates.gbps)
    seconds += moved / (1e9 * rates.elementwise_gbps * cores)
    seconds = (seconds + rates.call_seconds) / rates.efficiency
    intensity = step.flops / max(1, step.read + step.bytes)
    # gflops / gbps is the ridge of the roofline: with fewer operations a byte, memory is the limit.
    bound = "products" if intensity > rates.gflops / rates.gbps else "memory"
    return Estimate(step.read, step.bytes, intensity, bound, seconds)

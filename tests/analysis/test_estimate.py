"""How long each step must take: the numbers of the estimate, and what it says of a machine."""

import csv
import io
import itertools
import json
import re
from pathlib import Path

import pytest
from helpers.terminal import bertcli as run

import bertcli
from bertcli.analysis.trace import estimate as estimates
from bertcli.analysis.trace.estimate import estimate
from bertcli.analysis.trace.recorder import run_shapes
from bertcli.analysis.trace.steps import Rates
from bertcli.tracing import tracer

CALL = 40e-6  # seconds
MACHINE = Rates(100, 20, 20, CALL)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured of the machine and of layers on it."""
    monkeypatch.setattr(estimates, "machine_rates", lambda: MACHINE)
    monkeypatch.setattr(estimates, "efficiency", lambda trace, rates: 1.0)


def test_estimate_of_a_product_of_a_norm_and_of_a_look_up() -> None:
    trace = run_shapes(bertcli.variant("base"), 2, 64)
    estimate(trace, MACHINE)
    steps = {step.path: step for step in trace.steps}

    product = steps["encoder.layers.3.feed_forward.intermediate"].estimate
    assert product is not None
    rows, hidden, inner = 2 * 64, 768, 3072
    read, written = 4 * (rows * hidden + hidden * inner + inner), 4 * rows * inner
    flops = 2 * rows * hidden * inner + 6 * rows * inner  # a bias, and GELU's 5
    assert product[:4] == (read, written, flops / (read + written), "products")
    seconds = 2 * rows * hidden * inner / 100e9 + (read + written + 2 * 4 * 6 * rows * inner) / 20e9 + CALL
    assert product.estimated_seconds == pytest.approx(seconds)

    norm = steps["encoder.layers.3.attention_norm"].estimate
    assert norm is not None
    assert norm[:2] == (4 * (rows * hidden + 2 * hidden), 4 * rows * hidden)
    assert norm.bound == "memory"
    assert norm.estimated_seconds == pytest.approx((4 * 2 * hidden + 2 * 4 * 7 * rows * hidden) / 20e9 + CALL)

    table = steps["embeddings.token"].estimate
    assert table is not None
    assert table[:3] == (4 * rows * hidden, 4 * rows * hidden, 0)  # of the table, only the rows of the tokens


def test_estimate_totals_are_sums_and_few_tokens_are_bound_by_memory() -> None:
    trace = run_shapes(bertcli.variant("large"), 1, 4)
    estimate(trace, MACHINE._replace(gflops=1000))
    record = trace.record()
    assert record["totals"]["estimated_seconds"] == pytest.approx(sum(s["estimated_seconds"] for s in record["steps"]))
    assert record["totals"]["rates"] == MACHINE._replace(gflops=1000)._asdict()
    assert sum(step["written_bytes"] for step in record["steps"]) == record["totals"]["activation_bytes"]
    assert {step["bound"] for step in record["steps"]} == {"memory"}
    weights = 4 * 24 * 12 * 1024**2
    assert record["totals"]["estimated_seconds"] > weights / 20e9


def test_estimate_on_the_command_line(machine: None) -> None:
    arguments = ["trace", "--variant", "tiny", "--batch-size", "2", "--seq-len", "8", "--estimate"]
    record = json.loads(run(*arguments, "--format", "json").out)
    first = record["steps"][0]
    assert [*first][-5:] == ["read_bytes", "written_bytes", "intensity", "bound", "estimated_seconds"]
    lines = list(csv.DictReader(io.StringIO(run(*arguments, "--format", "csv").out)))
    assert float(lines[0]["estimated_seconds"]) == first["estimated_seconds"]
    milliseconds, seconds = (record["totals"]["estimated_seconds"] * factor for factor in (1e3, 1000 / 2))
    out = run(*arguments).out
    assert f"Estimated: {milliseconds:,.3f} ms at 100.0 GFLOP/s and 20.0 GB/s" in out
    assert f"1,000 texts of this length: {seconds:,.3g} s" in out
    plain = json.loads(run("trace", "--variant", "tiny", "--format", "json").out)
    assert "estimated_seconds" not in {**plain["steps"][0], **plain["totals"]}


def test_estimate_tells_weights_from_memory_and_passes_in_the_cache_apart() -> None:
    trace = run_shapes(bertcli.variant("base"), 8, 128)
    estimate(trace, Rates(100, 20, 50, 1e-6, cores=2))
    steps = {step.path: step.estimate for step in trace.steps}
    rows, hidden, inner = 8 * 128, 768, 3072
    product, norm = steps["encoder.layers.3.feed_forward.intermediate"], steps["encoder.layers.3.attention_norm"]
    assert product is not None
    assert norm is not None
    weights, activations = 4 * (hidden * inner + inner), 4 * rows * (hidden + inner)
    seconds = 2 * rows * hidden * inner / 100e9 + weights / 20e9
    seconds += (activations + 2 * 4 * 6 * rows * inner) / (2 * 50e9) + 1e-6  # a bias, and GELU's 5
    assert product.estimated_seconds == pytest.approx(seconds)
    seconds = 4 * 2 * hidden / 20e9 + 2 * 4 * 7 * rows * hidden / (2 * 50e9) + 1e-6
    assert norm.estimated_seconds == pytest.approx(seconds)


def test_estimate_measures_passes_and_calls_too() -> None:
    measured = estimates.machine_rates()
    assert measured.elementwise_gbps > 0
    assert 0 <= measured.call_seconds < 0.01
    assert measured.cores >= 1


def test_estimate_beside_measured_times(machine: None) -> None:
    record = json.loads(run("trace", "a king", "--time", "--estimate", "--format", "json").out)
    assert all(step["seconds"] > 0 < step["estimated_seconds"] for step in record["steps"])


def test_estimate_says_the_ridge_and_draws_no_page(machine: None, tmp_path: Path) -> None:
    command = ("trace", "--variant", "base", "--seq-len", "128", "--estimate")
    assert "memory-bound below 5.0 FLOP/byte" in run(*command).out
    done = run(*command, "-o", tmp_path / "roof.html")
    assert (done.status, [*tmp_path.iterdir()]) == (2, [])
    assert "--estimate: this is about the table, which the page of a" in done.err


def test_estimate_of_a_pass_like_the_measured_one_is_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    # 60 s between two looks at the clock: no layers of this size are that slow, whatever the rates say.
    clock = itertools.count(0.0, 60.0)
    monkeypatch.setattr(estimates, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(estimates, "machine_rates", lambda: Rates(100, 20, 50, 1e-5, cores=2))
    trace = run_shapes(bertcli.variant("mini", heads="none", sizes={"vocab_size": 1000}), 2, 64)
    estimate(trace, estimates.rates_for(trace))
    assert trace.totals.estimated_seconds == pytest.approx(60.0, rel=1e-3)


def test_estimate_says_what_such_layers_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "machine_rates", lambda: Rates(100, 20, 50, 1e-5, cores=2))
    arguments = ["trace", "--variant", "tiny", "--seq-len", "8", "--estimate"]
    rates = json.loads(run(*arguments, "--format", "json").out)["totals"]["rates"]
    assert rates["efficiency"] > 0
    assert re.search(r"GB/s, of which such layers reach \d+% here \(memory-bound", run(*arguments).out)


def test_estimate_of_a_timed_pass_gives_one_core_all_but_products_with_weights() -> None:
    rates = Rates(100, 20, 50, 1e-6, cores=2)
    both, timed = (run_shapes(bertcli.variant("base"), 8, 128) for _ in range(2))
    timed.timed = True
    for trace in (both, timed):
        estimate(trace, rates)
    seconds = [
        {step.op: step.estimate.estimated_seconds for step in trace.steps if step.estimate} for trace in (both, timed)
    ]
    for op in ("scores", "softmax", "norm"):
        assert seconds[1][op] == pytest.approx(2 * seconds[0][op], rel=0.01)
    product = [step.estimate for step in timed.steps if step.path.endswith("layers.3.feed_forward.intermediate")]
    assert product[0] is not None
    assert product[0].estimated_seconds > 2 * 8 * 128 * 768 * 3072 / 100e9


def test_estimate_of_layers_that_no_machine_should_have_to_measure_is_that_of_narrower_ones() -> None:
    wide = run_shapes(bertcli.variant("base", sizes={"hidden_size": 49152, "num_attention_heads": 12}), 1, 4)
    assert estimates._layers_like(wide, 4)["hidden_size"] == 1024
    uneven = run_shapes(bertcli.variant("base", sizes={"num_hidden_layers": 3}), 1, 4)
    assert estimates._layers_like(uneven, 4)["num_hidden_layers"] == 3


def test_time_is_that_of_the_fastest_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = itertools.count(1)
    # Every look at the clock takes less than the one before, so that the last pass is the fastest.
    monkeypatch.setattr(tracer, "perf_counter", lambda: 1000.0 - 1000.0 / next(looks))
    record = json.loads(run("trace", "--variant", "tiny", "--seed", "0", "--time", "--format", "json").out)
    steps = len(record["steps"])
    number = next(looks)
    passes = (number - 1) // (2 * steps)
    assert passes >= 2
    last = [1000.0 / look - 1000.0 / (look + 1) for look in range(number - 2 * steps, number, 2)]
    assert [step["seconds"] for step in record["steps"]] == pytest.approx(last)

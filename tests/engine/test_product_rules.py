"""How products are divided by processor: each vendor has the rule of the table, and the results of all rules agree."""

import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from helpers.deadlines import SECONDS
from helpers.near import assert_near
from helpers.terminal import bertcli as command

import bertcli
from bertcli import doctor
from bertcli.engine import blas, kernels, product_rules, threads
from bertcli.engine.kernels import empty_tokens, multiply, product
from bertcli.engine.product_rules import product_rule
from bertcli.tracing.dispatch import Array

# Vendor, kernel, the tokens up to which strips are used (None: as long as they fit), from which OpenBLAS divides, up to
# which each is multiplied by itself.
TABLE = (
    ("AuthenticAMD", "SkylakeX", None, None, 0),
    ("AuthenticAMD", "Haswell", 0, None, 6),
    ("GenuineIntel", "SkylakeX", 32, 1024, 0),
    ("GenuineIntel", "SapphireRapids", 32, 1024, 0),
    ("GenuineIntel", "Haswell", 0, None, 6),
    ("GenuineIntel", "Nehalem", 0, None, 0),
    ("SomebodyElse", "SkylakeX", 32, None, 0),
    ("", "SkylakeX", 32, None, 0),
    ("", None, 0, None, 0),
)
VENDORS = ("AuthenticAMD", "GenuineIntel", "SomebodyElse")


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    before = blas.threads()
    if before is None:
        pytest.skip("this NumPy's library divides every product itself")
    threads.set_thread_count(2)
    blas.set_threads(2)
    product_rule.cache_clear()
    yield
    threads.set_thread_count(None)
    blas.set_threads(before)
    product_rule.cache_clear()


def force(monkeypatch: pytest.MonkeyPatch, vendor: str, kernel: str | None = "SkylakeX") -> None:
    """The processor is of this vendor, and OpenBLAS uses this kernel."""
    monkeypatch.setattr(blas, "processor", lambda: (vendor, frozenset[str]()))
    monkeypatch.setattr(blas, "kernel", lambda: kernel)
    product_rule.cache_clear()


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which way each product was computed: "strips", "plain" or "library"."""
    ways: list[str] = []

    def multiplied(weight: Array, columns: Array, into: Array, in_strips: bool) -> None:
        ways.append("strips" if in_strips else "plain")
        multiply(weight, columns, into, in_strips)

    monkeypatch.setattr(kernels, "multiply", multiplied)
    return ways


@pytest.mark.parametrize(("vendor", "kernel", "strips", "library", "single"), TABLE)
def test_each_processor_has_the_rule_of_the_table(
    vendor: str,
    kernel: str | None,
    strips: int | None,
    library: int | None,
    single: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PROCESSOR_IDENTIFIER", raising=False)
    force(monkeypatch, vendor, kernel)
    assert product_rule()[:2] == (strips, library)
    assert product_rule().single_tokens == single


def test_windows_names_the_vendor_in_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCESSOR_IDENTIFIER", "AMD64 Family 25 Model 17 Stepping 1, AuthenticAMD")
    force(monkeypatch, "")
    assert product_rule() == product_rules.RULES["AuthenticAMD"]


@pytest.mark.parametrize(("vendor", "few", "more"), [
    ("AuthenticAMD", "strips", "strips"), ("GenuineIntel", "strips", "plain"), ("SomebodyElse", "strips", "plain"),
])  # fmt: skip
def test_strips_end_where_the_rule_says(
    vendor: str, few: str, more: str, called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    force(monkeypatch, vendor)
    weight = np.random.default_rng(0).standard_normal((96, 768), dtype=np.float32)
    for tokens, way in ((2, few), (32, few), (33, more), (128, more)):
        x = np.asfortranarray(np.random.default_rng(1).standard_normal((tokens, 768), dtype=np.float32))
        found = product(x, weight, None, None)
        assert called.pop() == way
        exact = x.astype(np.float64) @ weight.T.astype(np.float64)
        assert_near(found, exact, 2e-6 * np.abs(exact).max())


@pytest.mark.parametrize("outputs", [96, 50, 7])
def test_few_tokens_are_multiplied_one_by_one_where_the_rule_says(
    outputs: int, called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    force(monkeypatch, "AuthenticAMD", "Haswell")
    generator = np.random.default_rng(0)
    weight, bias = generator.standard_normal((outputs, 768), dtype=np.float32), np.arange(outputs, dtype=np.float32)
    for tokens, ways in ((1, ["plain"]), (2, []), (6, []), (7, ["plain"])):
        x = np.asfortranarray(generator.standard_normal((tokens, 768), dtype=np.float32))
        found = product(x, weight, bias, None)
        assert called == ways
        called.clear()
        exact = x.astype(np.float64) @ weight.T.astype(np.float64) + bias
        assert_near(found, exact, 1e-6 * np.abs(exact).max())
        assert_near(product(x, weight.T.copy().T, bias, None), exact, 1e-6 * np.abs(exact).max())
        assert called.pop() == "plain"  # such a weight has no rows that lie together


def test_strips_and_whole_weights_are_different_ways_to_multiply(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def matmul(left: Array, right: Array, out: Array | None = None) -> Array:
        sizes.append(left.shape)
        return np.dot(left, right, out=out) if left.ndim == 2 else np.einsum("spij,pjk->spik", left, right)

    monkeypatch.setattr(np, "matmul", matmul)
    weight, x = np.ones((50, 768), np.float32), np.ones((768, 16), np.float32)
    results = [np.empty((50, 16), np.float32) for _ in range(2)]
    for in_strips, into in zip((True, False), results, strict=True):
        multiply(weight, x, into, in_strips)
    assert sizes == [(2, 2, 24, 384), (2, 768), (50, 768)]
    np.testing.assert_array_equal(results[0], results[1])


def test_the_results_of_all_rules_agree(called: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A forward call of 9 texts of 128 tokens: by the Intel rule OpenBLAS divides its products."""
    monkeypatch.setattr(kernels, "PIECE", 1)  # products of this small model are shared, too
    model = bertcli.variant("tiny", weights=0)
    ids = np.random.default_rng(0).integers(5, 1000, (9, 128))
    found: dict[str, Array] = {}
    for vendor in VENDORS:
        force(monkeypatch, vendor)
        called.clear()
        found[vendor] = model.forward(ids)
        assert bool(called) == (vendor != "GenuineIntel")
        called.clear()
        found[f"{vendor}, 7 texts"] = model.forward(ids[:7])  # 896 tokens: fewer than the rule's 1,024
        assert called
    for vendor in VENDORS:
        assert_near(found[vendor], found["AuthenticAMD"], 2e-6 * np.abs(found[vendor]).max())
        few = found[f"{vendor}, 7 texts"]
        assert_near(few, found[vendor][:7], 2e-6 * np.abs(few).max())


def test_only_a_forward_call_leaves_products_to_the_library(called: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A run over texts writes the same bytes on one core as on two, so it may not depend on OpenBLAS's threads."""
    force(monkeypatch, "GenuineIntel")
    x, weight = empty_tokens(2048, 768), np.ones((96, 768), np.float32)
    x[...] = 1
    product(x, weight, None, "relu")
    assert called == ["plain", "plain"]
    with product_rules.by_library(True):
        np.testing.assert_array_equal(product(x, weight, np.ones(96, np.float32), "relu"), np.full((2048, 96), 769.0))
    assert called == ["plain", "plain"]


def test_the_library_divides_only_for_as_many_threads_as_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    force(monkeypatch, "GenuineIntel")
    assert [product_rules.divided_by_library(tokens) for tokens in (1023, 1024)] == [False, True]
    threads.set_thread_count(1)
    assert not product_rules.divided_by_library(1024)
    threads.set_thread_count(2)
    blas.set_threads(1)
    assert not product_rules.divided_by_library(1024)


def test_no_rule_is_looked_for_before_a_product_is() -> None:
    program = (
        "import bertcli.engine.kernels; from bertcli.engine import blas, product_rules; import sys; "
        "sys.exit(product_rules.product_rule.cache_info().currsize + blas.kernel.cache_info().currsize)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=SECONDS, env=dict(os.environ))


def test_doctor_prints_the_rule_and_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "TOKENS", (16, 129))
    force(monkeypatch, "GenuineIntel")
    out = command("doctor").out
    assert (
        "strips of a weight up to 32 tokens; bertcli divides them, from 1,024 tokens in a forward call OpenBLAS; "
        "measured on Intel Xeon (Sapphire Rapids), SkylakeX, 2 cores"
    ) in out
    assert " ".join(out.split()).count("Tokens In strips Plain OpenBLAS's threads bertcli") == 1
    record = doctor.examine()
    assert [row["tokens"] for row in record["products"]] == [16, 129]
    few, many = record["products"]
    assert all(few[name] > 0 for name in ("strips_us", "plain_us", "library_us", "bertcli_us"))
    assert many["strips_us"] is None
    force(monkeypatch, "SomebodyElse")
    assert "up to 32 tokens; bertcli divides them; no machine of this kind was measured" in str(product_rule())

"""Parameters and multiply-accumulates of every family's variants, as PyTorch counts them."""

import re
from collections.abc import Iterator
from itertools import groupby

import pytest
from helpers.recorded import recorded
from helpers.terminal import bertcli as run

import bertcli
from bertcli.analysis.trace.recorder import run_shapes
from bertcli.model import Model
from bertcli.models.registry import variants

CASES = recorded("family_costs.json")
# The cases of a variant with a head: sentences of 16 tokens; of the encoder alone some of 128, too.
TOGETHER = {key: list(cases) for key, cases in groupby(CASES, lambda case: f"{case['variant']}.{case['head']}")}


def tried() -> Iterator[str]:
    """Every variant, and each head of a family with its first one."""
    seen = set()
    for name in TOGETHER:
        variant, _, head = name.rpartition(".")
        of_family = (*variants()[variant].types, head)
        if head == "model" or of_family not in seen:
            yield name
        seen.add(of_family)


@pytest.mark.parametrize("name", [*tried()])
def test_families_cost_what_pytorch_counts(name: str) -> None:
    variant, _, head = name.rpartition(".")
    model = bertcli.variant(variant, heads={"model": None, "sop": "mlm,sop"}.get(head, head))
    total = bertcli.params(model).total_params
    for case in TOGETHER[name]:
        assert total == case["params"] - _contact_head(model)
        totals = run_shapes(model, case["batch"], case["sequence"]).totals
        assert totals.matmul_flops == case["matmul_flops"] + _positions_beyond(model, case["batch"], case["sequence"])
        assert totals.params == total


def test_families_with_experts_say_what_a_token_uses() -> None:
    model = bertcli.variant("nomic-embed-text-v2-moe")
    (case, *_) = [case for case in CASES if case["variant"] == "nomic-embed-text-v2-moe"]
    idle = 6 * 6 * 2 * 3072 * 768  # of 6 layers, 6 of 8 experts, two matrices each
    arguments = ("--variant", "nomic-embed-text-v2-moe")
    record = run("params", *arguments, "--format", "json").json
    assert record["active_params"] == case["params"] - idle == bertcli.params(model).total_params - idle
    assert f"Active params: {case['params'] - idle:,} (those that a token uses)" in run("params", *arguments).out
    told = run("trace", *arguments, "--batch-size", "1", "--seq-len", "16").out
    assert f"Params: {case['params']:,}, of which a token uses {case['params'] - idle:,}" in told


def _positions_beyond(model: Model, batch: int, sequence: int) -> int:
    """What DeBERTa of version 1 computes for relative positions that no text of this length has: there it is cut."""
    if model.config.model_type != "deberta":
        return 0
    sizes = model.config.sizes
    beyond = sizes["K"] - 2 * sequence
    projected, scored = beyond * sizes["H"] ** 2, batch * sequence * beyond * sizes["H"]
    return 2 * sizes["L"] * 2 * (projected + scored)  # two terms


def _contact_head(model: Model) -> int:
    """Parameters of ESM's contact head, which every model of transformers has and none here."""
    config = model.config
    return config.num_hidden_layers * config.num_attention_heads + 1 if config.model_type == "esm" else 0


def test_families_every_variant_is_counted() -> None:
    counted = {case["variant"] for case in CASES}
    assert {name for name, member in variants().items() if not {"bert", "textbook"} & {*member.types}} == counted


FEW = (
    "tiny",
    "roberta-base",
    "mpnet-base",
    "electra-small",
    "modernbert-base",
    "deberta-v2-xlarge",
    "albert-base",
    "eurobert-610m",
    "embeddinggemma-300m",
    "esm2-8m",
    "ernie-3.0-base-zh",
    "gte-base-en",
)


@pytest.mark.parametrize("name", FEW)
def test_families_formulas_stand_for_their_numbers(name: str) -> None:
    """Also where layers differ (ModernBERT's first, DeBERTa's convolution) or are one layer (ALBERT's)."""
    powers = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
    model = bertcli.variant(name, heads=variants()[name].head_names)
    for collapse, depth in ((False, 2), (True, 2), (True, 6)):
        for row in bertcli.params(model, collapse=collapse, depth=depth).rows:
            numbers = re.sub("[⁰¹²³⁴⁵⁶⁷⁸⁹]+", lambda power: f"**{power[0].translate(powers)}", row.numbers)
            assert eval(numbers.replace("·", "*") or "0") == row.params, row

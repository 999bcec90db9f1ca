"""Every family against what transformers makes of the same files (see reference/record_families.py)."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.family_checkpoints import FAMILIES, make_family
from helpers.near import assert_near
from numpy.typing import NDArray
from reference.family_cases import CASES, COLUMNS, Case, recorded_rows

import bertcli
from bertcli.engine.packing import Packed, pack
from bertcli.model import Model
from bertcli.network.heads import outputs
from bertcli.network.module import parameters

RECORDED = Path(__file__).parents[1] / "reference" / "families"


class Sentence:
    """Token ids and segments, as `pack` takes them."""

    def __init__(self, ids: NDArray[Any], segments: NDArray[Any]) -> None:
        self.ids, self.segments = ids.tolist(), segments.tolist()


def packed(case: Case) -> Packed:
    batch = case.batch()
    return pack([Sentence(*(x[: mask.sum()] for x in row)) for *row, mask in zip(*batch, strict=True)])


def load(folder: Path, case: Case) -> Model:
    return bertcli.load(make_family(folder, case.family, case.head, **case.checkpoint))


@pytest.fixture(scope="module", params=CASES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def model(name: str, tmp_path_factory: pytest.TempPathFactory) -> Model:
    return load(tmp_path_factory.mktemp("family"), CASES[name])


def test_families_states_and_heads_are_those_of_the_reference(name: str, model: Model) -> None:
    case = CASES[name]
    batch, network = packed(case), model.network
    rows = recorded_rows(case.batch())
    found = {"states": np.stack([state[rows] for state in network.states(batch)])}
    for head in model.heads:
        logits = network.predict(head, network(batch, network.input_rows(head, batch)), batch)
        found[head] = logits[rows] if len(logits) == len(batch.ids) else logits
        found[head] = found[head][:, COLUMNS] if head in ("mlm", "lm") else found[head]
    with np.load(RECORDED / f"{case.family}.npz") as recorded:
        expected = {key.partition("/")[2]: recorded[key] for key in recorded.files if key.partition("/")[0] == name}
    assert {case.head if case.head != "model" else "states", "states"} <= expected.keys() <= found.keys()
    for part, values in expected.items():
        if part == "states":  # between layers that norm their input, sums grow
            for state, value in zip(found[part][:-1], values[:-1], strict=True):
                assert_near(state, value, 1e-5 * max(1, np.abs(value).max() / 4))
            found[part], values = found[part][-1], values[-1]
        np.testing.assert_allclose(found[part], values, rtol=0, atol=1e-5, err_msg=part)


def test_families_compute_only_the_rows_asked_for(name: str, model: Model) -> None:
    batch = packed(CASES[name])
    whole = model.network(batch)
    for rows in (batch.first, np.array(sorted({0, 3, 7, 8, 9, len(whole) - 1}))):
        assert_near(model.network(batch, rows), whole[rows], 3e-6)


def test_families_run_padded_batches_with_masks(name: str, model: Model) -> None:
    batch, whole = CASES[name].batch(), model.network(packed(CASES[name]))
    states = model.forward(batch.ids, batch.segments if CASES[name].segments else None, batch.mask)
    assert_near(states[batch.mask == 1], whole, 1e-5)


@pytest.mark.any_kernel
def test_families_traces_are_complete_and_change_nothing(name: str, model: Model) -> None:
    batch = packed(CASES[name])
    # A watched pass multiplies blocks of long texts, where attention is local, and near distances otherwise.
    in_part = name.endswith(("far", "windows", "windows-both-ways")) or name.startswith("deberta")
    plain = outputs(model.network, batch)
    with bertcli.trace(model) as trace:
        traced = outputs(model.network, batch)
    assert plain.keys() == traced.keys()
    for head, other in traced.items():
        assert_near(plain[head], other, in_part * 1e-6 * np.abs(other).max())
    assert [step.path for step in trace.steps if not step.group] == []  # every step has words
    consumed = {path for step in trace.steps for path in step.parameters}
    by_array: dict[int, set[str]] = {}
    for one_parameter in parameters(model.network):
        by_array.setdefault(id(one_parameter.array), set()).add(one_parameter.path)
    assert [paths for paths in by_array.values() if not paths & consumed] == []
    used = [row for row in bertcli.params(model).rows if row.type != "not used"]
    assert trace.totals.params == sum(row.params for row in used)


def test_families_have_a_case_of_every_head() -> None:
    there = {(case.family, case.head) for case in CASES.values()}
    alike = {"xlm-roberta": "roberta", "camembert": "roberta"}  # the same page and the same table
    for family, of in FAMILIES.items():
        assert {(alike.get(family, family), head) for head in of.heads} <= there

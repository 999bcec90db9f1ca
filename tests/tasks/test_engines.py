"""bertcli inside an engine's batch map, on the real engine, on this machine; skipped where there is none."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made

import bertcli

TEXTS = [f"The {word} {i}." for i in range(300) for word in ("cat", "dog", "tea")]


def test_engines_model_travels_as_its_path(made: Made) -> None:
    model = bertcli.load(made())
    sent = pickle.dumps(model)
    assert len(sent) < 1000
    assert np.array_equal(pickle.loads(sent).encode(TEXTS[:5]), model.encode(TEXTS[:5]))


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """Ray with two workers on this machine."""
    module = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    here = Path(__file__).resolve().parents[1]
    paths = [str(here.parent), str(here), str(here / "examples"), os.environ.get("PYTHONPATH", "")]
    module.init(
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=200 << 20,
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, paths))}},
        log_to_driver=False,
        logging_level="error",
    )
    yield module
    module.shutdown()


@pytest.mark.filterwarnings("default")
def test_engines_ray_gives_the_vectors_of_one_machine(ray: Any, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[1] / "examples"))
    embed = import_module("ray_batches").embed
    rows = [{"id": i, "text": text} for i, text in enumerate(TEXTS)]
    found = embed(ray.data.from_items(rows, override_num_blocks=5), bertcli.load(made())).take_all()
    found.sort(key=lambda row: row["id"])
    assert [row["text"] for row in found] == TEXTS
    expected = bertcli.load(made()).encode(TEXTS)
    assert np.abs(np.stack([row["embedding"] for row in found]) - expected).max() < 1e-6

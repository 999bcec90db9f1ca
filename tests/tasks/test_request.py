"""A request is refused by its size before any work is done, whoever makes it; without bounds it is not."""

from pathlib import Path
from typing import Any

import pytest

import bertcli
from bertcli.errors import BertcliError
from bertcli.files.read.inputs import rows_in
from bertcli.files.texts import from_values
from bertcli.model import Model
from bertcli.tasks.fill_mask import FillMaskOptions
from bertcli.tasks.limits import DoorLimits, TooMuch
from bertcli.tasks.registry import spec
from bertcli.tasks.request import Request, begin, run

MASKED = "A [MASK] and a [MASK]."
# Of a task: the texts, the options, the bound that they are above, the word for programs, what is said.
REFUSED: list[tuple[str, list[str], dict[str, Any], DoorLimits, str, str]] = [
    ("fill-mask", [MASKED], {"top_k": 9, "joint": True}, DoorLimits(tokens=99), "too_many_tokens", "tokens to compute"),
    ("score", ["a b c d e f g h"], {}, DoorLimits(tokens=99), "too_many_tokens", "at least 100 tokens to compute"),
    (
        "classify",
        ["tea"] * 9,
        {"candidates": "a,b", "template": "{} {}" * 99},
        DoorLimits(tokens=99),
        "too_many_tokens",
        "The request takes at least",
    ),
]


def requested(task: str, texts: list[str], options: dict[str, Any], limits: DoorLimits, model: Model) -> Request:
    """A request as a door makes it."""
    of_task = spec(task)
    assert of_task is not None
    made: Any = of_task.options(**options)
    return Request(of_task, made, from_values(texts), lambda: model, limits=limits)


@pytest.mark.parametrize(("task", "texts", "options", "limits", "code", "said"), REFUSED)
def test_what_is_above_a_bound_is_refused_before_work(
    task: str,
    texts: list[str],
    options: dict[str, Any],
    limits: DoorLimits,
    code: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bertcli.loaded_model.LoadedModel.hidden_states", None)
    model = bertcli.load("bert-mini-mlm")
    with pytest.raises(TooMuch, match=said) as refused:
        begin(requested(task, texts, options, limits, model))
    assert refused.value.code == code


def test_a_request_within_its_bounds_gives_what_the_method_gives() -> None:
    model = bertcli.load("bert-mini-mlm")
    within = DoorLimits(texts=1, characters=22, predictions=100)
    request = requested("fill-mask", [MASKED], {"top_k": 50}, within, model)
    records = [record for block in run(request) for record in block.records()]
    assert records == model.fill_mask([MASKED], top_k=50)


def test_a_request_that_would_write_what_it_reads_opens_no_model(tmp_path: Path) -> None:
    file = tmp_path / "cloze.txt"
    file.write_text(MASKED, encoding="utf-8")
    of_task = spec("fill-mask")
    assert of_task is not None

    def opens() -> Model:
        raise AssertionError("opened")

    request = Request(of_task, FillMaskOptions(), rows_in([str(file)]), opens, str(file))
    with pytest.raises(BertcliError, match="the texts are read from it; choose another --output"):
        begin(request)

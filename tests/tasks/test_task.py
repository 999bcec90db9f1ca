"""What all tasks promise of streams, limits, cuts and damaged weights."""

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Made
from helpers.checkpoints import Sentence, damaged
from helpers.reading import from_files

import bertcli
from bertcli.errors import BertcliError
from bertcli.model import Model


def test_task_blocks_come_while_texts_are_still_being_read(mlm: Model) -> None:
    texts: Iterator[str] = (f"text {number}" for number in itertools.count())
    blocks = iter(mlm.encode_blocks(texts, batch_tokens=20))
    found = [item for _ in range(5) for item in next(blocks).items]
    assert [item.index for item in found] == list(range(len(found)))
    assert [item.text.text for item in found[:3]] == ["text 0", "text 1", "text 2"]
    assert int(next(texts).split()[1]) < 2 * len(found) + 10


def test_task_records_keep_the_order_of_texts_of_mixed_length(classifier: Model) -> None:
    texts = ["word " * (number * 7 % 30) for number in range(100)]
    found = classifier.classify(texts, batch_tokens=50)
    assert [(record["index"], record["text"]) for record in found] == list(enumerate(texts))


def test_task_refuses_wrong_options_before_any_text_is_read(mlm: Model) -> None:
    def texts() -> Iterator[str]:
        raise AssertionError("a text was read")
        yield ""

    for call in (
        lambda: mlm.encode_blocks(texts(), pooling="x"),  # type: ignore[arg-type]
        lambda: mlm.classify(texts(), head="classifier"),
        lambda: mlm.classify(texts(), top_k=0),
        lambda: mlm.classify(texts(), head="mlm"),  # type: ignore[arg-type]
        lambda: mlm.classify(texts(), activation="relu"),  # type: ignore[arg-type]
        lambda: mlm.score(texts(), truncation="maybe"),  # type: ignore[arg-type]
        lambda: mlm.encode_blocks(texts(), layer=[]),
        lambda: mlm.encode_blocks(texts(), layer="1"),  # type: ignore[arg-type]
        lambda: mlm.encode_blocks(texts(), layer=0.5),  # type: ignore[arg-type]
        lambda: mlm.fill_mask(texts(), targets=["☃☃"]),
        lambda: mlm.fill_mask(texts(), targets=["\ud800"]),
        lambda: mlm.fill_mask(texts(), targets=[1]),  # type: ignore[list-item]
        lambda: mlm.fill_mask(texts(), max_length=1),
        lambda: mlm.score(texts(), max_length=49),
        lambda: mlm.score(texts(), batch_tokens=0),
    ):
        with pytest.raises(BertcliError):
            call()


@pytest.mark.parametrize("texts", [[None], [3], [b"tea"], ["tea", 1.5]])
def test_task_refuses_what_is_no_text(texts: list[Any], mlm: Model) -> None:
    for given in ((texts,), (["tea"] * len(texts), [text if text else 0 for text in texts])):
        with pytest.raises(BertcliError, match="must be a string"):
            mlm.encode(*given)


def test_task_limit_is_the_smallest_of_the_models_own(made: Made) -> None:
    long = "word " * 60
    for settings, limit in (
        ({}, 48),
        ({"model_max_length": 40}, 40),
        ({"model_max_length": 40, "sentence": Sentence(max_seq_length=9)}, 9),
        ({"model_max_length": 100}, 48),
    ):
        (block,) = bertcli.load(made(**settings)).encode_blocks([long], truncation="silent")
        assert len(block.items[0].tokens.ids) == limit
    (block,) = bertcli.load(made(model_max_length=40)).encode_blocks([long], max_length=48, truncation="silent")
    assert len(block.items[0].tokens.ids) == 48


def test_task_names_the_line_of_a_text_too_long_to_tokenize(mlm: Model, tmp_path: Path) -> None:
    file = tmp_path / "in.txt"
    file.write_text("tea\n" + "a" * 2_000_001 + "\n", encoding="utf-8")
    with pytest.raises(BertcliError, match=r"in\.txt, line 2 has 2,000,001 characters, more than 2,000,000: split it"):
        mlm.score(from_files([str(file)]))
    with pytest.raises(BertcliError, match="Text 1 has 2,000,001 characters"):
        mlm.encode(["tea", "a" * 2_000_001])
    with pytest.raises(BertcliError, match="Text 0 has 2,000,001 characters"):
        mlm.encode(["tea"], ["a" * 2_000_001])


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_task_reports_damaged_weights(value: float, tmp_path: Path) -> None:
    model = bertcli.load(damaged(tmp_path, value))
    for run in (
        lambda: model.encode(["tea"]),
        lambda: model.encode(["tea"], pooling="pooler", normalize=True),
        lambda: list(model.encode_blocks(["tea"], pooling="none")),
        lambda: model.classify(["tea"], "coffee"),
        lambda: model.fill_mask(["[MASK]"]),
        lambda: model.score(["tea"]),
    ):
        with pytest.raises(BertcliError, match="the weights are damaged"):
            run()


def test_task_reports_an_infinitely_improbable_piece_as_damage(tmp_path: Path) -> None:
    model = bertcli.load(damaged(tmp_path, -math.inf, "cls.predictions.bias"))
    with pytest.raises(BertcliError, match="the weights are damaged"):
        model.fill_mask(["[MASK]"])


@pytest.mark.parametrize(
    "options", [{"max_length": 1.5}, {"max_length": "5"}, {"batch_tokens": "a"}, {"max_length": True}]
)
def test_task_refuses_numbers_that_are_not_whole(made: Made, options: dict[str, object]) -> None:
    with pytest.raises(BertcliError, match="whole number"):
        bertcli.load(made()).encode(["tea"], **options)  # type: ignore[arg-type]


def test_task_refuses_what_holds_no_texts(made: Made) -> None:
    model = bertcli.load(made())
    for texts, pairs in ((None, None), (5, None), (["tea"], 5)):
        with pytest.raises(BertcliError, match="neither a text nor a list of texts"):
            model.encode(texts, pairs)  # type: ignore[arg-type]

"""Dataclasses that cost little to declare: what they have of a dataclass, and what they do without."""

from dataclasses import FrozenInstanceError, field, fields, replace

import pytest

from bertcli.lean import lean_dataclass


@lean_dataclass
class Cup:
    what: str
    sizes: list[int] = field(default_factory=list)


@lean_dataclass
class Pot(Cup):
    lid: bool = True


def test_lean_dataclasses_have_fields_that_are_set_once() -> None:
    cup, pot = Cup("tea"), replace(Pot("tea", [3]), lid=False)
    assert (cup.what, cup.sizes, pot.what, pot.sizes, pot.lid) == ("tea", [], "tea", [3], False)
    assert [item.name for item in fields(pot)] == ["what", "sizes", "lid"]
    for one in (cup, pot):
        with pytest.raises(FrozenInstanceError, match="cannot assign to field 'what'"):
            one.what = "milk"  # type: ignore[misc]
        assert one.what == "tea"


def test_lean_dataclasses_are_not_compared_or_printed() -> None:
    assert Cup("tea") != Cup("tea")
    assert len({Cup("tea"), Cup("tea")}) == 2
    assert "tea" not in repr(Cup("tea"))

"""The blocks of bertcli.functional, given what they do not expect."""

import pydoc
from collections.abc import Callable

import numpy as np
import pytest

from bertcli import functional
from bertcli.errors import BertcliError


def test_functional_attention_refuses_a_mask_to_be_added() -> None:
    x = np.ones((3, 4))
    for mask in ([[0, -np.inf, 0]] * 3, [[2, 0, 0]] * 3):
        with pytest.raises(BertcliError, match="mask"):
            functional.scaled_dot_product_attention(x, x, x, mask)
    assert functional.scaled_dot_product_attention(x, x, x, [[True, False, False]] * 3).shape == (3, 4)


@pytest.mark.parametrize("block", [functional.gelu, functional.relu, functional.layer_norm, functional.softmax])
def test_functional_blocks_take_a_single_number(block: Callable[[float], np.ndarray]) -> None:
    assert block(1.0).shape == ()
    assert block(1.0) == block([1.0])[0]  # type: ignore[arg-type]


def test_functional_residual_add_changes_nothing() -> None:
    x, y = np.ones((2, 3), np.float32), np.full((2, 3), 2.0)
    assert np.array_equal(functional.residual_add(x, y), np.full((2, 3), 3.0))
    assert (x == 1).all()


@pytest.mark.parametrize("ids", [[-100], [5]])
def test_functional_loss_over_ids_that_are_none(ids: list[int]) -> None:
    with pytest.raises(BertcliError, match="0 and 4"):
        functional.masked_lm_loss(np.zeros((1, 5)), ids)


def test_functional_help_can_be_read() -> None:
    page = pydoc.plain(pydoc.render_doc(functional.softmax))
    assert "softmax(x: ArrayLike) -> Array" in page.replace("'", "")  # which Python 3.14 leaves out

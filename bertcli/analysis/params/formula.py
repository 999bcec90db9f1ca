"""Formulas for parameter counts: sums of products of axis symbols, read from the arrays of the tree.

Four weights [H, H] with their biases [H] are `4·(H² + H)`; an embedding table [V, H] is `V·H`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from math import gcd, prod

from bertcli.network.axes import multiplied_at

POWERS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")

Product = tuple[str, ...]
# Product of symbols -> how many times it occurs, in the order of the arrays.
Sum = Counter[Product]


def sum_of(products: Iterable[Iterable[str]]) -> Sum:
    """The sum of products of axes; an axis is a symbol or a plain number."""
    total: Sum = Counter()
    for axes in products:
        factors = list(axes)
        symbols = sorted((factor for factor in factors if not factor.isdigit()), key=multiplied_at)
        total[tuple(symbols)] += prod(int(factor) for factor in factors if factor.isdigit())
    return total


@cache  # equal layers have equal products
def formula_of(products: tuple[Product, ...], powers: bool) -> str:
    """Write the sum of products of axes: with `powers` as `factored` does, else as `expanded`."""
    total = sum_of(products)
    return factored(total) if powers else expanded(total)


def factored(total: Sum) -> str:
    """`4·(H² + H)`: highest degree first, powers written as such, common factors (a number, L) in front.

    Terms repeated in every layer are kept apart from the others: `V·H + L·(H² + H)`.
    """
    repeated, once = Counter[Product](), Counter[Product]()
    for product, count in total.items():
        if product[:1] == ("L",):
            repeated[product[1:]] += count
        else:
            once[product] += count
    if once and repeated:
        return f"{_plain(once)} + {_shared(repeated, ['L'])}"
    return _shared(repeated, ["L"]) if repeated else _shared(once, [])


def expanded(total: Sum) -> str:
    """`H·H + H`: products in the order of the arrays, without powers, as the Keras summary is usually explained."""
    return " + ".join(_product(count, product) for product, count in total.items())


def with_numbers(formula: str, sizes: Mapping[str, int]) -> str:
    """Replace every symbol of a formula by its size: `4·(768² + 768)`."""
    return re.sub("|".join(sizes), lambda symbol: str(sizes[symbol[0]]), formula)


def _shared(total: Sum, front: list[str]) -> str:
    """The sum with its common factors in front: `front`, then the greatest common divisor of the counts."""
    # With a plain number, whose product is (), nothing is factored out: 2·H + 2 stays.
    number = gcd(*total.values()) if all(total) else 1
    if len(total) < 2 or (number == 1 and not front):
        with_front: Sum = Counter({(*front, *product): count for product, count in total.items()})
        return _plain(with_front)
    inner: Sum = Counter({product: count // number for product, count in total.items()})
    factors = [*front, f"({_plain(inner)})"]
    if number > 1:
        factors.insert(0, str(number))
    return "·".join(factors)


def _plain(total: Sum) -> str:
    by_degree = sorted(total.items(), key=lambda term: -len(term[0]))
    return " + ".join(_product(count, _powers(product)) for product, count in by_degree)


def _product(count: int, factors: Iterable[str]) -> str:
    words = list(factors)
    # 1 is only written where nothing else is.
    if count > 1 or not words:
        words.insert(0, str(count))
    return "·".join(words)


def _powers(product: Product) -> list[str]:
    return [symbol if n == 1 else symbol + str(n).translate(POWERS) for symbol, n in Counter(product).items()]

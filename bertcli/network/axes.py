"""The axes of arrays: the glossary of their symbols, and the order in which these are listed and multiplied.

A new axis is a line of AXES. One that has none, as a kind's head or a plugin's family may have, is listed and
multiplied last.
"""

# In the order in which sizes are listed. A plain number in a shape stands for itself.
AXES = {
    "B": "batch",
    "S": "token",
    "V": "vocabulary",
    "H": "hidden",
    "L": "layer",
    "A": "head",
    "D": "head size",
    "F": "feed-forward",
    "P": "position",
    "T": "token type",
    "C": "label",
    "E": "embedding",
    "K": "relative position",
    "W": "width of a convolution",
    "Q": "all query heads (A·D)",
    "M": "all key heads",
    "U": "task type",
    "X": "expert",
    "I": "feed-forward of all experts (X·F)",
}
# The order within a product, such as L·H: L is first, because `factored` in analysis/params takes it out in front.
IN_PRODUCTS = "LAVPKTUECHQMDFWXI"


def listed_at(symbol: str) -> int:
    """The place of an axis among sizes."""
    return [*AXES].index(symbol) if symbol in AXES else len(AXES)


def multiplied_at(symbol: str) -> tuple[int, list[int]]:
    """The place of an axis within a product; those without a line are sorted, so that equal products look the same."""
    place = IN_PRODUCTS.index(symbol) if symbol in IN_PRODUCTS else len(IN_PRODUCTS)
    return place, [-ord(letter) for letter in symbol]

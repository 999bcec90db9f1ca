"""The tables of names: which tensor in a file, or which part of one, holds a parameter of ours.

    encoder.layers.#.attention.{query,key,value}.*   encoder.layer.#.attention.self.{query,key,value}.*

A line is our path, then the tensor's names in files, without the base model's prefix; the first name that a file has is
read. A line that begins with a blank has further names of the path above it. `#` stands for a layer's number, `*` for
the last word (weight, bias), `{a,b}` for one of its words. In a name they stand for the same as in the path: its first
`#` for the path's first, the second word in its first braces for the second word in the path's. What is put after a
name says that the parameter is only a part of that tensor:

    [1/3]              the second third of its rows
    [1/3 of a head]    the second third of each head's rows
    [1/2 of columns]   the second half of its columns
    [pairs]            all of it; each head's rows change places, see TensorSlice.of_pairs
"""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from bertcli.tracing.dispatch import Array

FIELD = re.compile(r"(?:\[[^]]*\]|\S)+")  # a path or a name; blanks in brackets are part of it
SIGN = re.compile(r"#|\*|\{[^}]*\}")


class TensorSlice(NamedTuple):
    """A tensor's name, without prefix, and the number of the equal part, along the first axis, that a parameter is.

    `of_head`: each head's rows are divided into the parts, and heads follow each other. `of_columns`: the second axis
    is divided, not the first. `of_pairs`: the whole tensor, each head's rows at even places before those at odd places:
    the file's network turns neighbours (x_2j, x_2j+1) by position, `rotate` the pairs (x_j, x_j+D/2).
    """

    name: str
    number: int = 0
    parts: int = 1
    of_head: bool = False
    of_columns: bool = False
    of_pairs: bool = False

    @property
    def is_whole(self) -> bool:
        """True if the parameter is the tensor as it is stored."""
        return self.parts == 1 and not self.of_pairs

    def whole(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the whole tensor, for a parameter of this shape that is a part of it."""
        axis = int(self.of_columns)
        return (*shape[:axis], shape[axis] * self.parts, *shape[axis + 1 :]) if self.parts > 1 else shape

    def cut(self, whole: Array, heads: int) -> Array:
        """Cut the parameter out of the whole tensor; `heads` is the number of attention heads."""
        if self.is_whole:
            return whole
        if self.of_pairs:
            halves: Array = whole.reshape(heads, -1, 2, *whole.shape[1:]).swapaxes(1, 2).reshape(whole.shape)
            halves.setflags(write=False)
            return halves
        if self.of_columns:
            size = whole.shape[1] // self.parts
            columns: Array = whole[:, self.number * size : (self.number + 1) * size].copy()
            columns.setflags(write=False)
            return columns
        groups = heads if self.of_head else 1
        by_group = whole.reshape(groups, self.parts, -1, *whole.shape[1:])
        return by_group[:, self.number].reshape(-1, *whole.shape[1:])


class Line(NamedTuple):
    """A line of a table: our path as it is written there, the pattern that paths match, and the names in files."""

    path: str
    pattern: re.Pattern[str]
    names: list[str]

    def slices(self, path: str) -> tuple[TensorSlice, ...] | None:
        """The tensors, or parts of tensors, that may hold the parameter at a path; None if it is another's."""
        match = self.pattern.fullmatch(path)
        if match is None:
            return None
        # What stands in the path at each #, * and {…}; of the latter the number of the word.
        stands: dict[str, list[str | int]] = {"#": [], "*": [], "{": []}
        for sign, text in zip(SIGN.findall(self.path), match.groups(), strict=True):
            stands[sign[0]].append(_words(sign).index(text) if sign[0] == "{" else text)
        return tuple(_tensor_slice(_filled(name, stands)) for name in self.names)


@lru_cache(maxsize=1 << 14)  # of a model of 48 layers, a thousand paths, each asked for several times
def tensor_slices(tables: tuple[str, ...], path: str) -> tuple[TensorSlice, ...]:
    """What may hold the parameter at a path, by the first line for it; nothing if no table has one."""
    matches = (line.slices(path) for line in _lines(tables))
    return next((slices for slices in matches if slices is not None), ())


@cache
def _lines(tables: tuple[str, ...]) -> list[Line]:
    lines: list[Line] = []
    for text in "\n".join(tables).splitlines():
        fields = FIELD.findall(text)
        if text[:1].isspace():
            lines[-1].names.extend(fields)
        elif fields:
            path, *names = fields
            lines.append(Line(path, re.compile(_pattern(path)), names))
    return lines


def _pattern(path: str) -> str:
    """Write a regular expression for a path of a table, with a group for each sign."""
    groups = {"#": r"(\d+)", "*": r"(\w+)"}
    written = ""
    end = 0
    for sign in SIGN.finditer(path):
        group = groups.get(sign[0]) or f"({'|'.join(_words(sign[0]))})"
        written += re.escape(path[end : sign.start()]) + group
        end = sign.end()
    return written + re.escape(path[end:])


def _words(braces: str) -> list[str]:
    return braces[1:-1].split(",")


def _filled(name: str, stands: dict[str, list[str | int]]) -> str:
    """Put what stands in a path into a name in files."""
    left: dict[str, Iterator[str | int]] = {sign: iter(texts) for sign, texts in stands.items()}

    def fill(sign: re.Match[str]) -> str:
        text = next(left[sign[0][0]])
        return text if isinstance(text, str) else _words(sign[0])[text]

    return SIGN.sub(fill, name)


def _tensor_slice(name: str) -> TensorSlice:
    name, _, part = name.removesuffix("]").partition("[")
    if not part:
        return TensorSlice(name)
    if part == "pairs":
        return TensorSlice(name, of_pairs=True)
    numbers, _, of = part.partition(" of ")
    number, parts = map(int, numbers.split("/"))
    return TensorSlice(name, number, parts, of == "a head", of == "columns")

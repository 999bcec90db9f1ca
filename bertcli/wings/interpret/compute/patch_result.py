"""The result of patching, and its table: the effects of activations, layers by tokens or heads.

A table that is wider than the terminal is turned: tokens go down, and layers across.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.analysis.layers import layer_name, state_name
from bertcli.errors import number_of
from bertcli.report.digits import short
from bertcli.report.documents import Document, View, print_document
from bertcli.report.figures import Panel, WithFigure, heat_map
from bertcli.report.shades import HeatMap, Shaded, fitting, print_shades, shows_shades
from bertcli.report.terminal import Column, cell_count, folded, padded, terminal_width, visible
from bertcli.tasks.running.batches import Numbers
from bertcli.wings.interpret.compute.part_watcher import ATTENTION, FEED_FORWARD, HEADS, LAYERS

TITLES = {
    LAYERS: "Residual stream after each layer",
    ATTENTION: "Attention output, before the residual sum",
    FEED_FORWARD: "Feed-forward output, before the residual sum",
    HEADS: "Attention heads' output, at all tokens",
}
DIRECTIONS = {"denoise": "B with what A has there", "noise": "A with what B has there"}


@dataclass(frozen=True)
class Patch(View, WithFigure):
    """The result of patching one activation: `of` is its name, as the option has it.

    values: by direction the results [layer, token of b] or [layer, head]; NaN is not patched. pairs: positions in a and
    b that belong together. tokens: those of a, and those of b. meaning: the name of the result, for people.
    """

    a: str
    b: str
    target: str
    meaning: str
    value_a: float
    value_b: float
    pairs: tuple[tuple[int, int], ...]
    tokens: tuple[Sequence[str], Sequence[str]]
    of: str
    values: dict[str, Numbers]

    @cached_property
    def effects(self) -> dict[str, Numbers]:
        """The effects by direction, in the shape of the values: shares of the difference between the two results."""
        difference = self.value_a - self.value_b
        effects = {}
        for direction, values in self.values.items():
            if direction == "denoise":
                effects[direction] = (values - self.value_b) / difference
            else:
                effects[direction] = (values - self.value_a) / -difference
        return effects

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of a .npz file: the effects by direction, the tokens of both texts, and which belong together.

        Effects are float32 [layer, token of b], or of heads [layer, head]; of states layer 0 is the embeddings. NaN is
        not patched.
        """
        effects = {direction: values.astype(np.float32) for direction, values in self.effects.items()}
        tokens_a, tokens_b = (np.array([*tokens]) for tokens in self.tokens)
        pairs = np.array(self.pairs, np.int64).reshape(-1, 2)
        return {**effects, "tokens_a": tokens_a, "tokens_b": tokens_b, "pairs": pairs}

    @property
    def record(self) -> dict[str, Any]:
        """The effects as a JSON record, null where nothing is patched; of both directions the second is "noise"."""
        first, *second = [{self.of: nulls(effects)} for effects in self.effects.values()]
        record = {name: short(self[name]) for name in ("a", "b", "target", "value_a", "value_b")}
        record["pairs"] = [*map(list, self.pairs)]
        record["effects"] = first
        if second:
            record["noise"] = second[0]
        return record

    @property
    def columns(self) -> list[str]:
        """The names of the values' columns: heads, or the tokens of b."""
        if self.of == HEADS:
            (values, *_) = self.values.values()
            return [f"Head {1 + head}" for head in range(values.shape[1])]
        return [f"{position} {piece}" for position, piece in enumerate(self.tokens[1])]

    @property
    def results(self) -> str:
        """The line with the results of both texts."""
        return f"{self.meaning}: {self.value_a:.4f} of A, {self.value_b:.4f} of B"

    def line(self, direction: str, row: int, column: int) -> dict[str, Any]:
        """One effect as a line of a .csv file."""
        line = {"of": self.of, "direction": direction, "layer": self.layer(row)}
        if self.of == HEADS:
            line["head"] = 1 + column
        else:
            line |= {"position": column, "token": self.tokens[1][column]}
        effect = self.effects[direction][row, column]
        return {**line, "effect": None if np.isnan(effect) else short(float(effect))}

    @property
    def lengths(self) -> list[str]:
        """A line for texts of different lengths, on whose positions are meant; none for others."""
        count_a, count_b = map(len, self.tokens)
        if count_a == count_b:
            return []
        shifted = sum(in_a != in_b for in_a, in_b in self.pairs)
        return [
            f"A has {count_a} tokens and B {count_b}: positions are those of B; {number_of(shifted, 'token')} of A "
            "stood at another one, and tokens without a partner are not patched."
        ]

    def below(self) -> list[str]:
        """The lines below the table: both results, and how to read an effect."""
        runs = "; ".join(f"{name}: {DIRECTIONS[name]}" for name in self.effects)
        return [
            *self.lengths,
            f"{self.results[0].upper()}{self.results[1:]}.",
            f"Effect: 0 nothing, 1 all of the difference ({runs}).",
        ]

    def panels(self) -> list[Panel]:
        """A heat map for each direction; tokens that differ have both texts' names."""
        panels = []
        for direction in self.values:
            title = DIRECTIONS[direction] if len(self.values) > 1 else ""
            panels.append(heat_map(self.heat_map(direction, self._both_texts()), title, scale="effect"))
        return panels

    def _both_texts(self) -> list[str]:
        """The names of the columns; of a token that differs in A with that, too."""
        names = self.columns
        if self.of != HEADS:
            for in_a, in_b in self.pairs:
                of_a, of_b = self.tokens[0][in_a], self.tokens[1][in_b]
                if of_a != of_b:
                    names[in_b] = f"{in_b} {of_a} → {of_b}"
        return names

    def heat_map(self, direction: str, names: Sequence[str] | None = None) -> HeatMap:
        """The heat map of a direction; a cell's title has its value and both texts' results. names: of the columns.

        Layers go down, and tokens or heads across; where there are more tokens than layers, tokens go down.
        """
        effects, values = self.effects[direction], self.values[direction]
        corner, across = "Layer", self.columns if names is None else [*names]
        down = [layer_name(self.layer(row)) for row in range(len(effects))]
        if self.of != HEADS and len(across) > len(down):
            corner, across, down = "Token of B", down, across
            effects, values = effects.T, values.T
        unpatched = f"{self.value_b:.4f} of B, {self.value_a:.4f} of A"

        def cell(effect: float, value: float) -> str:
            if np.isnan(effect):
                return ""
            return Shaded(f"{effect:+z.2f}", effect, note=f"{value:.4f} patched, {unpatched}")

        rows = [[name, *map(cell, *row)] for name, *row in zip(down, effects, values, strict=True)]
        columns = [Column(corner), *map(Column, across)]
        return HeatMap(f"{TITLES[self.of]}: {DIRECTIONS[direction]}", columns, rows)

    def layer(self, row: int) -> int:
        """The number of a row of effects: of states from 0 (the embeddings), of layers from 1."""
        return row if self.of == LAYERS else 1 + row

    def row_name(self, row: int) -> str:
        """The name of a row of effects: a state, or a layer."""
        return state_name(row) if self.of == LAYERS else layer_name(self.layer(row))

    def document(self) -> Document:
        """The table that `bertcli patch` prints: layers by tokens, or by heads."""
        both = len(self.effects) > 1
        columns = [Column("State" if self.of == LAYERS else "Layer")]
        if both:
            columns.append(Column("Direction"))
        columns += [Column(name, number=True) for name in self.columns]
        rows, lines = [], []
        for direction, effects in self.effects.items():
            for row in range(len(effects)):
                names = [self.row_name(row), direction] if both else [self.row_name(row)]
                cells = [effect_cell(effects[row, column]) for column in range(len(self.columns))]
                rows.append([*names, *cells])
                lines += [self.line(direction, row, column) for column in range(len(self.columns))]
        return Document(columns, rows, self.below(), self.record, lines)

    def print(self) -> None:
        """Print the table, shaded in color where the terminal has color; turned if it is wider than the terminal.

        In the turned table tokens go down and states across, so that a long text is as wide as a short one.
        """
        document, width = self.document(), terminal_width()
        cells = [[column.name for column in document.columns], *document.rows]
        widths = [2 + max(cell_count(visible(cell)) for cell in column) for column in zip(*cells, strict=True)]
        if width is not None and sum(widths) > width:
            print_shades(self.turned(width))
            below = self.below()
            if self.of == LAYERS:
                below.insert(0, "Across: state 0 is the embeddings, state N what layer N gives.")
            print("", *(folded(visible(line), width) for line in below), sep="\n")
        elif shows_shades():
            print_shades(_aligned(row, widths) for row in cells)
            print("", *document.folded_below(), sep="\n")
        else:
            print_document(document, "table")

    def turned(self, width: int) -> Iterator[list[str]]:
        """The turned table for a terminal of this width: a row for each token or head, a column for each layer.

        Columns that do not fit follow in further tables. A line is a list of cells.
        """
        labels = [visible(name) for name in self.columns]
        heading = "state" if self.of == LAYERS else "layer"
        label_width = 1 + max(map(cell_count, [heading, *labels]))
        # Without color a block character stands before the number.
        gap = 1 if shows_shades() else 2
        for direction, effects in self.effects.items():
            # What is down in `effects`, a layer, is across here.
            texts = [[f"{effect:z.2f}" if np.isfinite(effect) else "" for effect in of_layer] for of_layer in effects]
            names = [str(self.layer(row)) for row in range(len(texts))]
            widths = [gap + max(map(len, [name, *column])) for name, column in zip(names, texts, strict=True)]
            for table_number, layers in enumerate(fitting(widths, width - label_width)):
                if table_number:
                    yield []
                elif len(self.effects) > 1:
                    yield [f"{direction}: {DIRECTIONS[direction]}"]
                numbers = [padded(names[layer], widths[layer], number=True) for layer in layers]
                yield [padded(heading, label_width), *numbers]
                for row, label in enumerate(labels):
                    cells = []
                    for layer in layers:
                        text = padded(texts[layer][row], widths[layer], number=True)
                        cells.append(Shaded(text, effects[layer][row]) if text.strip() else text)
                    yield [padded(label, label_width), *cells]


def _aligned(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """The cells of a row in their columns, with their shades; the first is no number."""
    cells = []
    for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
        text = padded(visible(cell), width, column > 0)
        cells.append(Shaded(text, cell.shade) if isinstance(cell, Shaded) else text)
    return cells


def effect_cell(effect: float) -> str:
    """An effect with its sign and its shade; "" for NaN."""
    return "" if np.isnan(effect) else Shaded(f"{effect:+z.3f}", effect)


def nulls(values: Numbers) -> list[list[float | None]]:
    """Rows of numbers for JSON; None in place of NaN."""
    return [[None if np.isnan(value) else short(float(value)) for value in row] for row in values]

"""The effects of patching as a table, layers by tokens or heads: of one pair of texts, and means over many.

A table that is wider than the terminal is turned: tokens go down, and layers across.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bertcli.analysis.layers import layer_name, state_name
from bertcli.report.documents import Document, View, print_document
from bertcli.report.shades import Shaded, fitting, print_shades, shows_shades
from bertcli.report.terminal import Column, cell_count, folded, padded, terminal_width, visible
from bertcli.tasks.running.batches import Numbers
from bertcli.wings.interpret.compute.parts import LAYERS

DIRECTIONS = {"denoise": "B with what A has there", "noise": "A with what B has there"}


class EffectGrid(View):
    """Base of the results of patching. of: what is patched, as the option has it.

    A subclass has the effects by direction [layer, token or head], NaN where nothing is patched; names of the columns;
    the lines below the table; and what a cell and a line of CSV say.
    """

    of: str

    @property
    def effects(self) -> Mapping[str, Numbers]:
        """The effects by direction [layer, column]; NaN is not patched."""
        raise NotImplementedError

    @property
    def columns(self) -> Sequence[str]:
        """The names of the effects' columns: tokens, or heads."""
        raise NotImplementedError

    def below(self, turned: bool = False) -> list[str]:
        """The lines below the table, or below the turned one, whose cells are effects alone."""
        raise NotImplementedError

    def line(self, direction: str, row: int, column: int) -> dict[str, Any]:
        """One effect as a line of a .csv file."""
        raise NotImplementedError

    def cell(self, direction: str, row: int, column: int) -> str:
        """One effect in the table; "" where nothing is patched."""
        return effect_cell(self.effects[direction][row, column])

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
                cells = [self.cell(direction, row, column) for column in range(len(self.columns))]
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
            below = self.below(turned=True)
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
    return [[None if np.isnan(value) else float(value) for value in row] for row in values]


def runs_of(effects: Mapping[str, Numbers]) -> str:
    """The directions of the effects in words, for the line that says how to read them."""
    return "; ".join(f"{name}: {DIRECTIONS[name]}" for name in effects)

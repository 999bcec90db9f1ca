"""The figure of `bertcli heads`: attention weights in grey, of every head, of one, or of a rollout."""

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from bertcli.report.figures import GREYS, FigurePart, Panel, heat_map, matrix, named
from bertcli.report.shades import HeatMap, Shaded
from bertcli.report.terminal import Column
from bertcli.wings.interpret.compute.attention import Attention

# Tokens and heads a layer of which each picture names its tokens.
MOST_NAMED, MOST_HEADS = 16, 6


def attention_panel(attention: Attention) -> Panel:
    """One head's weights, or the mean of a layer's: in percent, where there is room for numbers."""
    rows = []
    for piece, weights in zip(attention.pieces, attention.weights.tolist(), strict=True):
        rows.append([piece, *(Shaded(f"{100 * weight:.0f}", weight) for weight in weights)])
    columns = [Column(""), *map(Column, attention.pieces)]
    return heat_map(HeatMap("", columns, rows), attention.chosen.name, colors=GREYS, scale="attention weight")


def heads_panel(weights: NDArray[Any], pieces: Sequence[str], numbers: Mapping[tuple[int, int], str]) -> Panel:
    """A picture of each head's weights [layer, head, query, key], layers down and heads across.

    numbers: below a picture, by layer and head, which count from 1; a head without one is left out.
    """
    layers = sorted({layer for layer, _ in numbers})
    heads = sorted({head for _, head in numbers})
    names = [named(piece, 10) for piece in pieces[: weights.shape[-1]]]
    has_names = len(names) <= MOST_NAMED and len(heads) <= MOST_HEADS

    def draw(part: FigurePart) -> None:
        grid = part.subplots(len(layers), len(heads), squeeze=False)
        image = None
        for row, layer in zip(grid, layers, strict=True):
            for axes, head in zip(row, heads, strict=True):
                if (layer, head) not in numbers:
                    axes.set_axis_off()
                    continue
                first_row, first_column = layer == layers[0], head == heads[0]
                down = names if has_names and first_column else []
                across = names if has_names and first_row else []
                image = matrix(axes, weights[layer - 1, head - 1], down, across, GREYS, upright=True)
                if first_row:
                    # Names of tokens stand between the heading and the picture.
                    axes.set_title(f"Head {head}" if len(heads) <= MOST_HEADS else str(head))
                if first_column:
                    axes.set_ylabel(f"Layer {layer}")
                axes.set_xlabel(numbers[layer, head], fontsize=5, labelpad=1)
                axes.tick_params(labelsize=4)
                axes.set_aspect("equal")
        if image is not None:
            part.colorbar(image, ax=grid, label="attention weight", fraction=0.04, pad=0.02)

    each = 6.0 / len(heads)
    return Panel("", 1.5 + len(layers) * (each + 0.35) + (0.8 if has_names else 0), draw)


def rollout_panels(layers: NDArray[Any], mean: NDArray[Any], pieces: Sequence[str]) -> list[Panel]:
    """The rollout through all layers, and the mean weights [token, token]."""
    names = [named(piece, 10) for piece in pieces]

    def panel(title: str, weights: NDArray[Any]) -> Panel:
        def draw(part: FigurePart) -> None:
            axes = part.subplots()
            part.colorbar(matrix(axes, weights, names, names, GREYS), ax=axes, fraction=0.05, pad=0.02)

        return Panel(title, 2.0 + 0.32 * max(6, len(pieces)), draw)

    return [panel("Rollout through all layers", layers), panel("Mean weight", mean)]

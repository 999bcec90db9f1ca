"""Activation patching: which layer and token carry the difference between the results of two texts.

Text B (the corrupted one) is run again with one activation of text A (the clean one). An activation is the state after
a layer at one token, the output of attention or feed-forward there, or an attention head's output:

    effect = (m_patched - m_B) / (m_A - m_B)        0: nothing of the difference, 1: all of it

m is the result that `explain` asks about, too. That is "denoise"; "noise" runs A with an activation of B, and measures
how much of the result this one activation can spoil. Vig et al. 2020 (arXiv 2004.12265), Meng et al. 2022 (arXiv
2202.05262), Zhang and Nanda 2024 (arXiv 2309.16042).
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from textwrap import shorten
from typing import Any, NamedTuple

import numpy as np

from bertcli.analysis.layers import layer_name, state_name
from bertcli.analysis.texts import partners, tokens_of
from bertcli.errors import BertcliError
from bertcli.loaded_model import LoadedModel, expect_model
from bertcli.report.documents import Document, View, print_document
from bertcli.report.page import HEAT, Markup, element, maps, page, shaded, table
from bertcli.report.shades import Shaded, fitting, print_shades, shows_shades
from bertcli.report.terminal import Column, cell_count, folded, padded, terminal_width, visible
from bertcli.tasks.compute.batches import BATCH_TOKENS, Numbers, check_finite
from bertcli.tasks.compute.task import length_limit
from bertcli.tasks.options import takes
from bertcli.tokens import Tokens
from bertcli.tracing.dispatch import Array, watching
from bertcli.views.compute.parts import ATTENTION, FEED_FORWARD, HEADS, KINDS, LAYERS, PartWatcher
from bertcli.views.compute.target import Target, TokenizedText, preparing, result_of, sentence_of
from bertcli.views.patch import PatchOptions

TITLES = {
    LAYERS: "Residual stream after each layer",
    ATTENTION: "Attention output, before the residual sum",
    FEED_FORWARD: "Feed-forward output, before the residual sum",
    HEADS: "Attention heads' output, at all tokens",
}
DIRECTIONS = {"denoise": "B with what A has there", "noise": "A with what B has there"}
# Least difference of the two results: effects are shares of it, and below this their third digit would be noise.
LEAST_DIFFERENCE = 0.01
MEANING = (
    "An effect is the share of the difference between the two results that one patched activation carries: 0 is "
    "nothing of it, 1 all of it; effects below 0 (red) and above 1 happen. An effect of 0 does not show that an "
    "activation has no part in the result: it may matter together with others."
)
logger = logging.getLogger("bertcli")
# Positions in the text that is run (base), and in the one whose activations are taken (source).
Pairs = Sequence[tuple[int, int]]


# ----------------------------------------------------------------------------------------------- one place of a pass


class TextRun(NamedTuple):
    """A text's pass: its result, and its activations by kind and layer, [token, hidden] or of heads [head, …]."""

    sentence: TokenizedText
    value: float
    parts: dict[tuple[str, int], Array]


def run_of(model: LoadedModel, result: Target, sentence: TokenizedText) -> TextRun:
    """TextRun a text and keep a copy of every activation that can be patched."""
    parts: dict[tuple[str, int], Array] = {}

    def keep(kind: str, layer: int, array: Array) -> None:
        if kind in KINDS:
            parts[kind, layer] = array[0].copy() if kind == HEADS else array.copy()

    with np.errstate(all="ignore"), watching(PartWatcher(model.network, keep, whole=True)):
        value = float(result.of([sentence])[0])
    check_finite(np.array(value))
    return TextRun(sentence, value, parts)


class Patching(NamedTuple):
    """The text that is run again (`base`), and the one whose activations are put into it (`source`).

    denoise: base is the corrupted text, source the clean one; noise: the other way round.
    """

    model: LoadedModel
    result: Target
    base: TextRun
    source: TextRun

    def values(self, kind: str, layer: int, copies: Sequence[Pairs], heads: Sequence[int] = ()) -> Numbers:
        """The result [copy] of copies of the base, each patched at its own pairs of positions, and in its own head.

        All copies are one batch. It begins at the patched layer, with the base's state there: earlier layers are the
        same as in the base's own pass.
        """
        size, given = len(self.base.sentence.ids), self.source.parts[kind, layer]

        def put(at: str, number: int, array: Array) -> None:
            if (at, number) != (kind, layer):
                return
            for copy, pairs in enumerate(copies):
                for to, position in pairs:
                    if kind == HEADS:
                        array[copy, heads[copy], to] = given[heads[copy], position]
                    else:
                        array[copy * size + to] = given[position]

        state = np.tile(self.base.parts[LAYERS, layer], (len(copies), 1))
        with np.errstate(all="ignore"), watching(PartWatcher(self.model.network, put, layer, state, whole=True)):
            return self.result.of([self.base.sentence] * len(copies))

    def row(self, kind: str, layer: int, pairs: Pairs, batch_tokens: int) -> Numbers:
        """The results of one layer's patches: one for each pair [pair], or of heads one for each head [head]."""
        heads = range(self.model.config.num_attention_heads) if kind == HEADS else range(0)
        copies: Sequence[Pairs] = [pairs for _ in heads] or [[pair] for pair in pairs]
        step = max(1, batch_tokens // len(self.base.sentence.ids))
        parts = [slice(first, first + step) for first in range(0, len(copies), step)]
        return np.concatenate([self.values(kind, layer, copies[part], heads[part]) for part in parts])


# --------------------------------------------------------------------------------------------------- the whole of it


@dataclass(frozen=True)
class Patch(View):
    """The result of patching one kind of activation.

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
    kind: str
    values: dict[str, Numbers]

    @property
    def effects(self) -> dict[str, Numbers]:
        """The effects by direction, in the shape of the values: shares of the difference between the two results."""
        gap = self.value_a - self.value_b
        ends = {"denoise": (self.value_b, gap), "noise": (self.value_a, -gap)}
        return {name: (values - ends[name][0]) / ends[name][1] for name, values in self.values.items()}

    @property
    def record(self) -> dict[str, Any]:
        """The effects as a JSON record, null where nothing is patched; of both directions the second is "noise"."""
        grids = [{self.kind: _nulls(effects)} for effects in self.effects.values()]
        both = {"noise": grids[1]} if len(grids) > 1 else {}
        names = ("a", "b", "target", "value_a", "value_b")
        return {name: self[name] for name in names} | {"pairs": [*map(list, self.pairs)], "effects": grids[0], **both}

    @property
    def columns(self) -> list[str]:
        """The names of the values' columns: heads, or the tokens of b."""
        if self.kind == HEADS:
            return [f"Head {1 + head}" for head in range(len(next(iter(self.values.values()))[0]))]
        return [f"{position} {piece}" for position, piece in enumerate(self.tokens[1])]

    @property
    def results(self) -> str:
        """The line with the results of both texts."""
        return f"{self.meaning}: {self.value_a:.4f} of A, {self.value_b:.4f} of B"

    def layer(self, row: int) -> int:
        """The number of a row of values: of states from 0 (the embeddings), of layers from 1."""
        return row if self.kind == LAYERS else 1 + row

    def place(self, row: int) -> str:
        """The name of a row of values: a state, or a layer."""
        return state_name(row) if self.kind == LAYERS else layer_name(self.layer(row))

    def document(self) -> Document:
        """The table that `bertcli patch` prints: layers by tokens of B, or by heads."""
        both = len(self.effects) > 1
        columns = [Column("State" if self.kind == LAYERS else "Layer"), *([Column("Direction")] if both else [])]
        columns += [Column(name, number=True) for name in self.columns]
        rows, lines = [], []
        for direction, effects in self.effects.items():
            for line, row in enumerate(_nulls(effects)):
                named = [self.place(line), direction] if both else [self.place(line)]
                rows.append([*named, *("" if effect is None else Shaded(f"{effect:+z.3f}", effect) for effect in row)])
                for number, effect in enumerate(row):
                    at = {"head": 1 + number} if self.kind == HEADS else self._at(number)
                    where = {"of": self.kind, "direction": direction, "layer": self.layer(line), **at}
                    lines.append({**where, "effect": effect})
        return Document(columns, rows, self.below(), self.record, lines)

    def below(self) -> list[str]:
        """The lines below the table: both results, and how to read an effect."""
        runs = "; ".join(f"{name}: {DIRECTIONS[name]}" for name in self.effects)
        return [
            f"{self.results[0].upper()}{self.results[1:]}.",
            f"Effect: 0 nothing, 1 all of the difference ({runs}).",
        ]

    def print(self) -> None:
        """Print the table, shaded in color where the terminal has color; turned if it is wider than the terminal.

        In the turned table tokens go down and states across, so that a long text is as wide as a short one.
        """
        document, room = self.document(), terminal_width()
        cells = [[column.name for column in document.columns], *document.rows]
        widths = [2 + max(cell_count(visible(row[i])) for row in cells) for i in range(len(cells[0]))]
        if room is not None and sum(widths) > room:
            print_shades(self.turned(room))
            below = ["Across: state 0 is the embeddings, state N what layer N gives."] if self.kind == LAYERS else []
            print("", *(folded(visible(line), room) for line in [*below, *self.below()]), sep="\n")
        elif shows_shades():
            lines = ([_aligned(*cell, i > 0) for i, cell in enumerate(zip(row, widths, strict=True))] for row in cells)
            print_shades(lines)
            print("", *document.shown_below(), sep="\n")
        else:
            print_document(document, "table")

    def turned(self, width: int) -> Iterator[list[str]]:
        """The turned table for a terminal of this width: a row for each token or head, a column for each layer.

        Columns that do not fit follow in further tables.
        """
        labels = [visible(name) for name in self.columns]
        heading = "state" if self.kind == LAYERS else "layer"
        beside = 1 + max(map(cell_count, [heading, *labels]))
        for direction, effects in self.effects.items():
            texts = [[f"{effect:z.2f}" if np.isfinite(effect) else "" for effect in row] for row in effects]
            names = [str(self.layer(row)) for row in range(len(texts))]
            # Without color a block character stands before the number.
            gap = 1 if shows_shades() else 2
            widths = [gap + max(map(len, [name, *column])) for name, column in zip(names, texts, strict=True)]
            for number, rows in enumerate(fitting(widths, width - beside)):
                if number:
                    yield []
                elif len(self.effects) > 1:
                    yield [f"{direction}: {DIRECTIONS[direction]}"]
                yield [padded(heading, beside), *(padded(names[row], widths[row], number=True) for row in rows)]
                for token, label in enumerate(labels):
                    cells = [(padded(texts[row][token], widths[row], True), effects[row][token]) for row in rows]
                    yield [padded(label, beside), *(Shaded(*cell) if cell[0].strip() else cell[0] for cell in cells)]

    def _at(self, position: int) -> dict[str, Any]:
        return {"position": position, "token": self.tokens[1][position]}


def _aligned(cell: str, width: int, number: bool) -> str:
    """A cell in its column, with its shade."""
    text = padded(visible(cell), width, number)
    return Shaded(text, cell.shade) if isinstance(cell, Shaded) else text


def _nulls(values: Numbers) -> list[list[float | None]]:
    return [[None if np.isnan(value) else float(value) for value in row] for row in values]


@takes(PatchOptions)
def patch(model: LoadedModel, a: str, options: PatchOptions) -> Patch:
    """Activation patching between texts a (clean) and b (corrupted): `.effects` of every layer and token, `.record`.

    of: "layers" (states, the embeddings first), "attention", "feed-forward" (their outputs before they are added), or
    "heads". direction: "denoise" runs b with what a has, "noise" a with what b has, "both" does both. The result is
    that of `explain`; what is not named is what the model predicts for a. Errors: BertcliError as in `explain`, for
    texts that do not differ, and for results closer than 0.01.
    """
    (view,) = patches(model, a, options, (options.of,))
    return view


def patches(
    model: LoadedModel,
    a: str,
    options: PatchOptions,
    kinds: Sequence[str],
    counting: Callable[[Sequence[Any]], Iterable[Any]] = iter,
) -> list[Patch]:
    """Patch several kinds of activations as `patch` does one; `counting` wraps the loop over layers (progress)."""
    expect_model(model)
    if not model.config.num_hidden_layers:
        raise BertcliError(f"{model.name} has no layers to patch: its vectors come from a table of words alone.")
    limit, prepared = length_limit(model, options.max_length), preparing(model, options)
    of_a, of_b = (tokens_of(model, prepared(text), options.text_pair, limit) for text in (a, options.b))
    if (of_a.ids, of_a.segments) == (of_b.ids, of_b.segments):
        raise BertcliError("The two texts have the same tokens, so there is no difference to find the place of.")
    sentence = sentence_of(model, of_a, a, options)
    result = result_of(model, sentence, options)
    same = options if sentence.mask is None else replace(options, word=result.target)
    sentences = sentence, sentence_of(model, of_b, options.b, same)
    clean, corrupted = (run_of(model, result, one) for one in sentences)
    if abs(clean.value - corrupted.value) < LEAST_DIFFERENCE:
        raise BertcliError(
            f"{result.meaning} is {clean.value:.4f} for the one text and {corrupted.value:.4f} for the other: less "
            f"than {LEAST_DIFFERENCE} apart, so there is no difference to find the place of. Ask about another result "
            "(--word, --label, --versus)."
        )
    pairs = _pairs(of_a, of_b)
    runs = {
        "denoise": (Patching(model, result, corrupted, clean), [(j, i) for i, j in pairs]),
        "noise": (Patching(model, result, clean, corrupted), pairs),
    }
    directions = [name for name in runs if options.direction in (name, "both")]
    layers = model.config.num_hidden_layers
    sites = [(kind, name, n) for kind in kinds for name in directions for n in range(layers + (kind == LAYERS))]
    grids: dict[tuple[str, str], list[Numbers]] = {}
    for kind, name, layer in counting(sites):
        run, places = runs[name]
        values = run.row(kind, layer, places, options.batch_tokens or BATCH_TOKENS)
        if kind != HEADS:
            # Columns are the tokens of b, of which only those in pairs were patched.
            spread = np.full(len(of_b.ids), np.nan)
            spread[[j for _, j in pairs]] = values
            values = spread
        grids.setdefault((kind, name), []).append(values)
    tokens = (list(of_a.pieces), list(of_b.pieces))
    shared = (a, options.b, result.target, result.meaning, clean.value, corrupted.value, tuple(pairs), tokens)
    return [Patch(*shared, kind, {name: np.array(grids[kind, name]) for name in directions}) for kind in kinds]


def _pairs(a: Tokens, b: Tokens) -> list[tuple[int, int]]:
    """Pair the positions of a and b: one to one if they have equally many tokens, else where their pieces align.

    Tokens without a partner are logged.
    """
    if len(a.ids) == len(b.ids):
        return [(i, i) for i in range(len(a.ids))]
    pairs = partners(a.pieces, b.pieces)
    alone = (
        " ".join(piece for i, piece in enumerate(tokens.pieces) if i not in {pair[side] for pair in pairs}) or "nothing"
        for side, tokens in enumerate((a, b))
    )
    some = (shorten(pieces, 100, placeholder=" …") for pieces in alone)
    logger.info(
        "the texts have %d and %d tokens, which pair up where their pieces do; without a partner, and not patched: %s "
        "of A, %s of B.", len(a.ids), len(b.ids), *some,
    )  # fmt: skip
    return pairs


def measure(
    model: LoadedModel,
    a: str,
    options: PatchOptions,
    whole: bool = False,
    counting: Callable[[Sequence[Any]], Iterable[Any]] = iter,
) -> list[Patch]:
    """Patch the kind of activation of the options, or with `whole` all kinds, for the page."""
    return patches(model, a, options, KINDS if whole else (options.of,), counting)


# ----------------------------------------------------------------------------------------------------------- the page


def draw(views: Sequence[Patch], model: str = "") -> str:
    """The page: both texts with their differing pieces marked, and a heat map for each kind and direction."""
    view = views[0]
    columns = [Column("Text"), Column("Tokens, marked where the texts differ"), Column("Result", number=True)]
    results = ("A (clean)", view.value_a), ("B (corrupted)", view.value_b)
    rows = [[name, _pieces(view, side), f"{value:.4f}"] for side, (name, value) in enumerate(results)]
    texts = table(f"Two texts; the result is {view.meaning}", columns, rows)
    grids = [_map(one, direction) for one in views for direction in one.values]
    title = f"Activation patching: {view.meaning}"
    return page(title, texts, maps(*grids), lead=MEANING, model=model)


def _pieces(view: Patch, side: int) -> Markup:
    """The tokens of one text; those whose partner in the other text differs, or is missing, are marked."""
    partners = {pair[side]: pair[1 - side] for pair in view.pairs}
    parts: list[str] = []
    for position, piece in enumerate(view.tokens[side]):
        other = partners.get(position)
        same = other is not None and view.tokens[1 - side][other] == piece
        parts += [piece if same else shaded(piece, 1.0), " "]
    return element("span", *parts)


def _map(view: Patch, direction: str) -> Markup:
    """The heat map of a kind and direction; a cell's title has its value and both texts' results.

    Layers go down, and tokens or heads across; where there are more tokens than layers, tokens go down.
    """
    effects, values = view.effects[direction], view.values[direction]
    layers = [layer_name(view.layer(row)) for row in range(len(effects))]
    turned = view.kind != HEADS and len(view.columns) > len(layers)
    if turned:
        corner, down, across, effects, values = "Token of B", view.columns, layers, effects.T, values.T
    else:
        corner, down, across = "Layer", layers, view.columns
    ends = f"{view.value_b:.4f} of B, {view.value_a:.4f} of A"
    rows = [
        [
            name,
            *(
                "" if np.isnan(effect) else shaded(f"{effect:+z.2f}", effect, title=f"{value:.4f} patched, {ends}")
                for effect, value in zip(*row, strict=True)
            ),
        ]
        for name, *row in zip(down, effects, values, strict=True)
    ]
    return table(f"{TITLES[view.kind]}: {DIRECTIONS[direction]}", [Column(corner), *map(Column, across)], rows, HEAT)

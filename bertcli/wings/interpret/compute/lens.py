"""The logit lens (nostalgebraist 2020): what the masked-language-model head would predict from each layer's state.

    p_l = softmax(MLM(state_l)),   kl = Σ p_last ln(p_last / p_l)

Layer 0 is the embeddings' output, the last layer what the model answers. The head was trained on the last layer only:
an early layer that predicts nonsense may know more than it can say through that head.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.analysis.layers import layer_name, state_name
from bertcli.analysis.texts import spelled, tokens_of
from bertcli.engine.packing import Packed, pack
from bertcli.errors import BertcliError, quoted
from bertcli.files.texts import Text, Texts, Values, from_values
from bertcli.loaded_model import LoadedModel, expect_model
from bertcli.ranking import best_first
from bertcli.report.charts import STYLE as CHARTS
from bertcli.report.charts import Curve, by_layer, charted
from bertcli.report.digits import short
from bertcli.report.documents import ByName, Document, View, print_document
from bertcli.report.figures import Panel, WithFigure, curve, heat_map
from bertcli.report.page import HEAT, LONGEST_TEXT, Markup, document_table, element, page, side_by_side, table
from bertcli.report.shades import HeatMap, Shaded
from bertcli.report.terminal import Column, visible
from bertcli.tasks.options import for_each_text, takes
from bertcli.tasks.parts.masked import no_mask
from bertcli.tasks.running.batches import NUMBERS_TOGETHER, Numbers, check_head
from bertcli.tasks.running.task import length_limit
from bertcli.tracing.dispatch import Array
from bertcli.wings.interpret.compute.part_watcher import check_size
from bertcli.wings.interpret.compute.target import id_of_word, mlm_log_probabilities
from bertcli.wings.interpret.specs.lens import LensOptions

STYLE = f"{CHARTS}td:has(> mark) {{ padding: 1px; }} td > mark {{ display: block; margin: 0; padding: .3em .4em; }}"
# Columns of the grid of best predictions in which each prediction has its probability beside it.
MOST_WITH_SHARES = 8
# Columns of the grid that leave room for a plot beside it.
MOST_BESIDE = 13
# Tokens that have a table each on the page; with more, a grid of best predictions is shown instead.
MOST_TABLES = 3
TITLE = "Logit lens: what each layer would predict"
MEANING = (
    "The residual stream after each layer goes through the model's own prediction head; layer 0 is the embeddings{}. "
    "The head was trained on the last layer only, so an early layer may know more than it can say through it."
)
NUMBERS = (
    ", rank and score are those of the last layer's best token, and KL (in nats) is the distance of a layer's "
    "prediction from the last one's"
)


@dataclass(frozen=True)
class Prediction(ByName):
    """A token with its probability: `token` is its id, `token_str` its text, as in `fill-mask`."""

    token: int
    token_str: str
    score: float


@dataclass(frozen=True)
class LayerView(ByName):
    """A layer's best predictions, best first; rank (from 1) and score of the word that is followed; kl in nats.

    That word is the last layer's best token, or the one of the options.
    """

    layer: int
    predictions: tuple[Prediction, ...]
    rank: int
    score: float
    kl: float

    @property
    def record(self) -> dict[str, Any]:
        numbers: dict[str, Any] = short({**vars(self), "predictions": [vars(token) for token in self.predictions]})
        return numbers


@dataclass(frozen=True)
class TokenView(ByName):
    """One token of the text, at `position`, through all layers."""

    position: int
    token_str: str
    layers: tuple[LayerView, ...]

    @property
    def answer(self) -> str:
        """The last layer's best token."""
        return self.layers[-1].predictions[0].token_str


@dataclass(frozen=True)
class Lens(View, WithFigure):
    """A text's masks (or all its tokens) through the layers; `every` computes the predictions whole."""

    index: int
    text: str
    masks: tuple[TokenView, ...]
    word: str | None = None
    every: Callable[[], Array] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def log_probs(self) -> Array:
        """ln p of every entry of the vocabulary: float32 [state, position, vocabulary]; state 0 is the embeddings.

        Positions are those of `masks`. Computed when it is asked for, since it is large. Errors: BertcliError for
        more than MOST_NUMBERS numbers.
        """
        assert self.every is not None
        return self.every()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of a .npz file: log_probs, and the positions and pieces of the tokens that they are of."""
        positions = np.array([mask.position for mask in self.masks], np.int64)
        tokens = np.array([mask.token_str for mask in self.masks])
        return {"log_probs": self.log_probs, "positions": positions, "tokens": tokens}

    @property
    def record(self) -> dict[str, Any]:
        masks = [{"position": mask.position, "layers": [layer.record for layer in mask.layers]} for mask in self.masks]
        named = {} if self.word is None else {"word": self.word}
        return {"index": self.index, "text": self.text, **named, "masks": masks}

    def panels(self) -> list[Panel]:
        """For each mask a curve and each layer's predictions; for many tokens a heat map of all, and a curve."""
        if len(self.masks) > MOST_TABLES:
            return [heat_map(_grid(self), scale="probability"), curve(_agreement(self))]
        panels = []
        for mask in self.masks:
            title = f"{mask.position} {mask.token_str}" if len(self.masks) > 1 else ""
            panels += [curve(_curve(mask, self.word or mask.answer), title), heat_map(_best(mask))]
        return panels

    def print(self) -> None:
        """The text, and the table."""
        print(visible(self.text))
        print()
        print_document(self.document(), "table")

    def document(self) -> Document:
        """The table that `bertcli lens` prints: layer × predictions, a block for each mask."""
        has_one_token = len(self.masks) == 1
        most_predictions = max(len(layer.predictions) for mask in self.masks for layer in mask.layers)
        columns = [] if has_one_token else [Column("Token")]
        columns.append(Column("State"))
        columns += [Column(f"Prediction {1 + number}") for number in range(most_predictions)]
        columns += [Column(name, number=True) for name in ("Rank", "Score", "KL")]
        rows, lines = [], []
        for mask in self.masks:
            for layer in mask.layers:
                row = [state_name(layer.layer), *_cells(layer)]
                if not has_one_token:
                    # A token stands in its first row only.
                    row.insert(0, "" if layer.layer else f"{mask.position} {mask.token_str}")
                rows.append(row)
                lines.append({"position": mask.position, **layer.record})
        whose = quoted(self.masks[0].answer) if has_one_token else "the last layer's best prediction for that token"
        if self.word is not None:
            whose = quoted(self.word)
        below = [f"Rank and score are those of {whose}; KL, in nats, is from the last layer's prediction to this one."]
        return Document(columns, rows, below, self.record, lines)


def _cells(layer: LayerView) -> list[str]:
    """The cells of a layer in the table: its predictions, and its numbers."""
    cells: list[str] = [Shaded(f"{one.token_str} {one.score:.1%}", one.score) for one in layer.predictions]
    return [*cells, f"{layer.rank:,}", f"{layer.score:.4f}", f"{layer.kl:.4f}"]


@takes(LensOptions)
@for_each_text
def lens(model: LoadedModel, texts: Values, options: LensOptions) -> list[Lens]:
    """Logit lens: predict from each layer's state, for each mask of each text or for every token (`all_tokens`).

    Errors: BertcliError for a model without a masked-language-model head, and for a text without a mask.
    """
    return list(measure(model, from_values(texts, options.pairs), options))


def measure(model: LoadedModel, texts: Texts, options: LensOptions) -> Iterator[Lens]:
    """Yield what `lens` returns, one text after the other."""
    expect_model(model)
    check_head(model, "mlm", "lens")
    limit = length_limit(model, options.max_length)
    mask_id = model.tokenizer.special_id("mask")
    followed = None if options.word is None else id_of_word(model, options.word)
    for index, (text, pair, *_) in enumerate(texts):
        tokens = tokens_of(model, text, pair, limit)
        positions = [position for position, id in enumerate(tokens.ids) if options.all_tokens or id == mask_id]
        if not positions and tokens.lost_masks:
            raise BertcliError(
                f"Every {model.tokenizer.mask_token} of {quoted(text)} was cut off: the model reads {limit} tokens of "
                "it (see --max-length)."
            )
        if not positions:
            raise no_mask(model, Text(text, pair), quoted(text), "write one, or look at every token (--all).")
        views = []
        batch = pack([tokens])
        of_positions = _views(model, batch, positions, options.top_k, followed)
        for position, layers in zip(positions, of_positions, strict=True):
            views.append(TokenView(position, tokens.pieces[position], tuple(layers)))
        yield Lens(index, text, tuple(views), options.word, partial(_every, model, batch, positions))


def _views(
    model: LoadedModel, batch: Packed, rows: list[int], top_k: int, followed: int | None
) -> list[list[LayerView]]:
    """The views of every layer, for each of these rows of the states: [row][layer]. followed: the id of a word."""
    states = _states(model, batch, rows)
    # Log-probabilities over the vocabulary are large: as many rows at once as fit the limit.
    step = max(1, NUMBERS_TOGETHER // model.config.vocab_size)
    views: list[list[LayerView]] = []
    for first in range(0, len(rows), step):
        span = slice(first, first + step)
        last = mlm_log_probabilities(model, states[-1][span], batch)
        by_layer = []
        for layer, state in enumerate(states):
            current = mlm_log_probabilities(model, state[span], batch)
            by_layer.append(_layer_views(model, current, last, layer, top_k, followed))
        views += map(list, zip(*by_layer, strict=True))
    return views


def _states(model: LoadedModel, batch: Packed, rows: list[int]) -> list[Array]:
    """The states of these rows after the embeddings and each layer, as heads read them: [row, hidden] each."""
    # Damaged weights overflow; the result is checked.
    with np.errstate(all="ignore"):
        *inner, last_state = [state[rows] for state in model.network.states(batch)]
        # The last state is normed already.
        return [*map(model.network.final_norm, inner), last_state]


def _every(model: LoadedModel, batch: Packed, rows: list[int]) -> Array:
    """The log-probabilities [state, row, vocabulary] of `Lens.log_probs`."""
    states = _states(model, batch, rows)
    check_size((len(states), len(rows), model.config.vocab_size), "predictions: look at fewer tokens")
    log_probs = [mlm_log_probabilities(model, state, batch).astype(np.float32) for state in states]
    return np.stack(log_probs)


def _layer_views(
    model: LoadedModel, current: Numbers, last: Numbers, layer: int, top_k: int, followed: int | None
) -> Iterator[LayerView]:
    """Yield one layer's view for each row; `current` and `last` are log-probabilities [row, vocabulary]."""
    answers = last.argmax(axis=1) if followed is None else np.full(len(last), followed)
    divergences = (np.exp(last) * (last - current)).sum(axis=1)
    for row, answer, divergence in zip(current, answers, divergences, strict=True):
        predictions = []
        for id in map(int, best_first(row, top_k)):
            predictions.append(Prediction(id, spelled(model, id), float(np.exp(row[id]))))
        yield LayerView(
            layer=layer,
            predictions=tuple(predictions),
            rank=1 + int((row > row[answer]).sum()),
            score=float(np.exp(row[answer])),
            # Rounding may give a small negative number.
            kl=max(0.0, float(divergence)),
        )


def draw(views: Sequence[Lens], model: str = "") -> str:
    """The page: a table of layers for each mask, or for many tokens a grid of each layer's best prediction."""
    only = views[0] if len(views) == 1 else None
    content: list[Markup] = []
    for view in views:
        content += _sections(view, heading=only is None)
    text = "" if only is None else only.text
    return page(TITLE, *content, lead=_lead(views), model=model, text=text, style=STYLE)


def _lead(views: Sequence[Lens]) -> str:
    has_tables = any(len(view.masks) <= MOST_TABLES for view in views)
    return MEANING.format(NUMBERS if has_tables else "")


def _caption(mask: TokenView) -> str:
    return f"Residual stream at token {mask.position}, {mask.token_str}: the answer is {mask.answer}"


def _sections(view: Lens, heading: bool) -> Iterator[Markup]:
    if heading:
        yield element("h2", f"Text {view.index}")
    if len(view.masks) > MOST_TABLES:
        grid, curve = table(*_grid(view), HEAT), charted(_agreement(view))
        columns = min(len(view.masks), len(view.masks[0].layers))
        if columns <= MOST_BESIDE:
            yield side_by_side(grid, curve, even=True)
        else:
            yield grid
            yield curve
        return
    tables = []
    for mask in view.masks:
        tables.append(document_table(_caption(mask), replace(view, masks=(mask,)).document()))
    # A shorter text of one view stands in the page's frame.
    if heading or len(view.text) > LONGEST_TEXT:
        yield element("p", view.text, class_="text", dir="auto")
    yield side_by_side([charted(_curve(mask, view.word or mask.answer)) for mask in view.masks], tables)


def _best(mask: TokenView) -> HeatMap:
    """The best predictions of each layer, shaded by their probabilities."""
    count = len(mask.layers[0].predictions)
    columns = [Column("Layer"), *(Column(f"Prediction {1 + number}") for number in range(count))]
    rows = []
    for layer in mask.layers:
        cells = [Shaded(f"{one.token_str} {one.score:.0%}", one.score) for one in layer.predictions]
        rows.append([layer_name(layer.layer), *cells])
    return HeatMap(_caption(mask), columns, rows)


def _curve(mask: TokenView, word: str) -> Curve:
    """The probability of the word that is followed at each layer."""
    shares = [layer.score for layer in mask.layers]
    return by_layer(f"Probability of {word} after each layer", f"probability of {word}", shares)


def _agreement(view: Lens) -> Curve:
    """The share of tokens whose best prediction after each layer is the last layer's already."""
    best = [[layer.predictions[0].token for layer in token.layers] for token in view.masks]
    shares = []
    for of_layer in zip(*best, strict=True):
        agreeing = [now == of_token[-1] for now, of_token in zip(of_layer, best, strict=True)]
        shares.append(sum(agreeing) / len(best))
    caption = "Share of tokens whose best prediction is already the last layer's"
    return by_layer(caption, "share with the last layer's prediction", shares)


def _grid(view: Lens) -> HeatMap:
    """A heat map, as in the literature: layers by tokens, in each cell the best prediction; turned for many tokens."""
    tokens = [f"{token.position} {token.token_str}" for token in view.masks]
    layers = [layer_name(layer) for layer in range(len(view.masks[0].layers))]
    best = [[layer.predictions[0] for layer in token.layers] for token in view.masks]
    transposed = len(tokens) > len(layers)
    if transposed:
        corner, across, down, grid = "Token", layers, tokens, best
    else:
        corner, across, down, grid = "Layer", tokens, layers, [*map(list, zip(*best, strict=True))]
    with_shares = len(across) <= MOST_WITH_SHARES
    rows = []
    for name, predictions in zip(down, grid, strict=True):
        row = [name]
        for one in predictions:
            label = f"{one.score:.0%}" if with_shares else ""
            row.append(Shaded(one.token_str, one.score, label, note=f"{one.score:.1%}"))
        rows.append(row)
    caption = "Residual stream after each layer: the best prediction at each token, shaded by its probability"
    return HeatMap(caption, [Column(corner), *map(Column, across)], rows)

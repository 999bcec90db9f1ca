"""`bertcli heads`: attention statistics of every head over texts, and head ablation (Michel, Levy and Neubig 2019).

    entropy   -Σ a ln a, in nats          distance  Σ a |query - key|, in tokens
    special, self, next, previous         the share of weight on special tokens, the token itself, its neighbors
    change    f(text, the head's output set to zero) - f(text), the mean over texts      arXiv 1905.10650

Each but `change` is a mean over all query tokens of all texts. Attention rollout follows one text's weights through all
layers (Abnar and Zuidema 2020, arXiv 2005.00928): R = A'_L ... A'_1, A' = (mean of a layer's heads + I) / 2.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.analysis.layers import parse_layer
from bertcli.analysis.texts import tokens_of
from bertcli.analysis.trace.products import encoded
from bertcli.engine.float64 import product
from bertcli.engine.packing import pack
from bertcli.errors import BertcliError
from bertcli.files.texts import Values, from_values
from bertcli.loaded_model import LoadedModel, expect_model
from bertcli.report.documents import ByName, Document, View
from bertcli.report.page import COLORS, Markup, document_table, element, html, page, shaded, side_by_side, table
from bertcli.report.shades import Shaded, print_shades
from bertcli.report.terminal import Column, folded, terminal_width, visible
from bertcli.tasks.compute.batches import BATCH_TOKENS, Numbers, check_finite
from bertcli.tasks.compute.task import length_limit
from bertcli.tasks.options import takes
from bertcli.tokens import Tokens
from bertcli.tracing.dispatch import Array, watching
from bertcli.views.compute.attention import Attention, shaded_lines
from bertcli.views.compute.parts import HEADS, WEIGHTS, PartWatcher
from bertcli.views.compute.target import Target, TokenizedText, preparing, result_of, sentence_of
from bertcli.views.heads import HeadsOptions

# Tokens of a text in the pictures of its weights.
MOST_TOKENS = 128
# Heads a layer whose pictures stand beside the numbers; with more, the pictures have the whole width.
MOST_BESIDE = 6
THUMB = (
    '<button type="button" class="thumb" title="{title}" aria-pressed="false" data-layer="{layer}" data-head="{head}">'
    "<canvas></canvas></button>"
)
MEANING = (
    "Entropy (in nats; 0 is one token only), distance (in tokens) and the shares of attention weight on special "
    "tokens, on the token itself, the next and the previous one are means over all tokens of the texts; pictures are "
    "of the first text, darker the larger a weight is. Weights say where a head looks, not what it contributes."
)
OF_CHANGE = (
    "Change is what happens to {meaning} when the head's output is set to zero: near 0, the model does without that "
    "head here, though perhaps only because another one does the same."
)
OF_ROLLOUT = (
    "Rollout multiplies the weights of all layers, each averaged with the token itself for what passes attention by; "
    "the mean is that of all heads of all layers. Raw weights and rollout often disagree, and neither says what the "
    "result depends on."
)


@dataclass(frozen=True)
class Rollout:
    """Attention rollout of one text [token, token]: how far each token (row) draws on each token (column).

    layers: through all layers. mean: the mean of all weights, to compare with. token: the row that is printed.
    """

    layers: Numbers
    mean: Numbers
    token: int

    @classmethod
    def of(cls, weights: Sequence[Numbers], token: int) -> "Rollout":
        """Compute the rollout from each layer's weights [query, key], the mean of its heads."""
        result = np.eye(len(weights[0]))
        for layer in weights:
            result = product((layer + np.eye(len(layer))) / 2, result)
        return cls(result, np.mean(weights, axis=0), token)


@dataclass(frozen=True)
class HeadRow(ByName):
    """One attention head's means over query tokens and texts; `change` is None without ablation.

    Layers and heads count from 1. `itself` is the share of weight on the token itself, "self" in a record.
    """

    layer: int
    head: int
    entropy: float
    distance: float
    special: float
    itself: float
    next: float
    previous: float
    change: float | None = None

    @property
    def record(self) -> dict[str, Any]:
        return {{"itself": "self"}.get(name, name): value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Heads(View):
    """The attention heads of a model over some texts; `meaning` is the result that was asked about, if one was.

    `weights` [layer, head, query, key] are those of the first text, whose tokens are `pieces`, for pictures: of its
    first MOST_TOKENS.
    """

    model: str
    texts: int
    heads: tuple[HeadRow, ...]
    meaning: str | None
    pieces: Sequence[str]
    weights: Array
    rollout: Rollout | None = None
    attention: Attention | None = None  # of the layer or head that was chosen
    text: str = ""  # the first one

    @property
    def record(self) -> dict[str, Any]:
        record: dict[str, Any] = {"heads": [head.record for head in self.heads]}
        if self.rollout is not None:
            record["rollout"] = self.rollout.layers.tolist()
        if self.attention is not None:
            record["attention"] = self.attention.record
        return record

    def print(self) -> None:
        """The table on standard output, or the chosen head's weights, shaded."""
        if self.attention is None:
            super().print()
            return
        width = terminal_width()
        print(folded(visible(self.attention.title), width))
        print_shades(shaded_lines(self.attention, width))

    def document(self) -> Document:
        """The table that `bertcli heads` prints: of heads, of one head's weights, or of what one token draws on."""
        if self.attention is not None:
            return self.attention.document(self.record)
        return self.of_heads() if self.rollout is None else self.of_tokens(self.rollout)

    def of_tokens(self, rollout: Rollout) -> Document:
        """The rollout's table: a row for each token that the shown token draws on."""
        columns = [Column("Token"), Column("Rollout", number=True), Column("Mean weight", number=True)]
        shares = [numbers[rollout.token].tolist() for numbers in (rollout.layers, rollout.mean)]
        rows, lines = [], []
        for position, (piece, *both) in enumerate(zip(self.pieces, *shares, strict=True)):
            cells = (Shaded(f"{share:.1%}", share / max(whole)) for share, whole in zip(both, shares, strict=True))
            rows.append([f"{position} {piece}", *cells])
            lines.append({"position": position, "token": piece, "rollout": both[0], "mean": both[1]})
        below = [f"What token {rollout.token}, {self.pieces[rollout.token]}, draws on. {OF_ROLLOUT}"]
        return Document(columns, rows, below, self.record, lines)

    def of_heads(self) -> Document:
        """The statistics' table: a row for each head."""
        names = ("Layer", "Head", "Entropy", "Distance", "Special", "Self", "Next", "Previous")
        columns = [Column(name, number=True) for name in names]
        rows = [
            [str(row.layer), str(row.head), f"{row.entropy:.3f}", f"{row.distance:.2f}"]
            + [f"{share:.1%}" for share in (row.special, row.itself, row.next, row.previous)]
            + ([] if row.change is None else [f"{row.change:+z.4f}"])
            for row in self.heads
        ]
        texts = f"{self.texts:,} text{'' if self.texts == 1 else 's'}"
        below = [
            f"{self.model}: means over the tokens of {texts}",
            "Entropy of the weights in nats; distance in tokens; shares of weight on special tokens, on the token "
            "itself, the next and the previous one.",
        ]
        if self.meaning:
            columns.append(Column("Change", number=True))
            below.append(f"Change: {self.meaning} without the head, less the result with it")
        return Document(columns, rows, below, self.record, self.record["heads"])


@takes(HeadsOptions)
def heads(model: LoadedModel, texts: Values, options: HeadsOptions) -> Heads:
    """Every attention head's entropy, distance and shares over texts; `ablate` adds the change of a result without it.

    The result is that of `explain`: a label's log-odds, the log-probability of a mask's word, a cosine. Heads are in
    the order of layers, with `ablate` those first that change most; `top_k` of them. `rollout` adds attention rollout,
    of which `token` is shown. `layer` ("3" or "3.2") adds the weights of that layer or head. Errors: BertcliError for
    no text, several with `rollout` or `layer`, a layer that is not there, and as in `explain`.
    """
    return measure(model, texts, options)


def measure(model: LoadedModel, texts: Values, options: HeadsOptions) -> Heads:
    """Compute what `heads` returns; the command calls it with its options in one dataclass."""
    expect_model(model)
    if not model.config.num_hidden_layers:
        raise BertcliError(f"{model.name} has no attention heads: its vectors come from a table of words alone.")
    limit, prepared = length_limit(model, options.max_length), preparing(model, options)
    queries = 0
    sums: list[Numbers] = []
    changes: list[Numbers] = []
    meanings: list[str] = []
    pieces: list[str] = []
    rollout: Rollout | None = None
    attention: Attention | None = None
    chosen = None if options.layer is None else parse_layer(options.layer, model.config)
    for text, pair, *_ in from_values(texts, options.pairs):
        tokens = tokens_of(model, prepared(text), pair, limit)
        queries += len(tokens.ids)
        stats = _attention_stats(model, tokens)
        if options.rollout:
            if sums:
                raise BertcliError("Rollout follows the attention of one text: give one (--rollout).")
            rollout = Rollout.of(stats.means, _token(model, tokens, options.token))
        if chosen is not None:
            if sums:
                raise BertcliError("The weights of a head are those of one text: give one (--layer).")
            attention = Attention(model.name, chosen, tokens.pieces, weights_of(model, tokens, chosen.layer))
        if not pieces:
            pieces, weights, first = list(tokens.pieces), stats.weights, text
        sums.append(stats.sums)
        if options.ablate:
            sentence = sentence_of(model, tokens, text, options)
            result = result_of(model, sentence, options)
            meanings.append(result.meaning)
            changes.append(changes_without(model, result, sentence, options.batch_tokens or BATCH_TOKENS))
    if not sums:
        raise BertcliError("There is no text to look at the heads with: give at least one.")
    means = np.sum(sums, axis=0) / queries
    check_finite(means)
    numbers = np.dstack([means, np.mean(changes, axis=0)]) if options.ablate else means
    places = np.ndindex(numbers.shape[:2])
    rows = [HeadRow(1 + layer, 1 + head, *numbers[layer, head].tolist()) for layer, head in places]
    rows.sort(key=lambda row: -abs(row.change or 0))
    different = list(dict.fromkeys(meanings))
    meaning = different[0] if different else None
    if len(different) > 1:  # of labels, or words
        meaning = f"each text's own result ({', '.join(different[:3])} …)"
    shown = tuple(rows[: options.top_k])
    return Heads(model.name, len(sums), shown, meaning, pieces, weights, rollout, attention, first)


def _token(model: LoadedModel, tokens: Tokens, asked: int | None) -> int:
    """The position of the token whose rollout is shown: `asked`, else the first mask, else 0.

    Errors: BertcliError for a position that the text does not have.
    """
    if asked is None:
        return tokens.ids.index(model.tokenizer.mask_id) if model.tokenizer.mask_id in tokens.ids else 0
    if asked >= len(tokens.ids):
        raise BertcliError(f"There is no token {asked}: the text has {len(tokens.ids)}, from 0 (--token).")
    return asked


class AttentionStats(NamedTuple):
    """Statistics of a sentence's attention weights, and the weights themselves for pictures."""

    sums: Numbers  # over queries [layer, head, measure]
    weights: Array  # [layer, head, query, key], of the first tokens
    means: list[Numbers]  # of each layer [query, key]: the mean of its heads


def _attention_stats(model: LoadedModel, tokens: Tokens) -> AttentionStats:
    special = np.array([side is None for side in tokens.sides])
    sums, weights, means = list[Numbers](), list[Array](), list[Numbers]()

    def see(kind: str, layer: int, array: Array) -> None:
        if kind == WEIGHTS:
            sums.append(measures(array[0], special).T)
            weights.append(array[0, :, :MOST_TOKENS, :MOST_TOKENS].copy())
            means.append(array[0].mean(axis=0, dtype=np.float64))

    with np.errstate(all="ignore"), watching(PartWatcher(model.network, see)):
        model.network(pack([tokens]))
    return AttentionStats(np.array(sums), np.array(weights), means)


def weights_of(model: LoadedModel, tokens: Tokens, layer: int) -> Array:
    """The attention weights of one layer (from 1) over all tokens: [head, query, key]."""
    found: list[Array] = []

    def see(kind: str, number: int, array: Array) -> None:
        if (kind, number) == (WEIGHTS, layer - 1):
            found.append(array[0].copy())

    with np.errstate(all="ignore"), watching(PartWatcher(model.network, see)):
        model.network(pack([tokens]))
    return found[0]


def measures(weights: Array, special: NDArray[np.bool_]) -> Numbers:
    """Sums over queries [measure, head] for the weights [head, query, key] of one sentence."""
    a = weights.astype(np.float64)
    places = np.arange(a.shape[-1])
    far = np.abs(places[:, None] - places[None, :])
    entropy = -(a * np.log(np.where(a > 0, a, 1.0))).sum(axis=(1, 2))
    neighbors = [np.trace(a, offset, axis1=1, axis2=2) for offset in (0, 1, -1)]
    return np.stack([entropy, np.einsum("hqk,qk->h", a, far), a[:, :, special].sum(axis=(1, 2)), *neighbors])


def changes_without(model: LoadedModel, result: Target, sentence: TokenizedText, batch_tokens: int) -> Numbers:
    """f(text, head's output zero) - f(text) for every head: [layer, head].

    The layers before are computed once; from its layer on, each head's pass is one of several copies in a batch.
    """
    count, size = model.config.num_attention_heads, len(sentence.ids)
    together = max(1, min(count, batch_tokens // size))
    value = float(result.of([sentence])[0])
    with np.errstate(all="ignore"):
        states = list(model.network.states(pack([sentence])))[:-1]
        changes = np.empty((len(states), count))
        for layer, state in enumerate(states):
            for first in range(0, count, together):
                heads = range(first, min(first + together, count))
                copies = np.tile(state, (len(heads), 1)) if layer else None  # the first layer has the pass's own
                with watching(PartWatcher(model.network, silencing(layer, heads), layer, copies)):
                    changes[layer, heads] = result.of([sentence] * len(heads)) - value
    return changes


def silencing(layer: int, heads: Sequence[int]) -> Callable[[str, int, Array], None]:
    """A `see` for PartWatcher that sets heads of one layer to zero: in sentence i of the batch heads[i]."""

    def see(kind: str, number: int, array: Array) -> None:
        if (kind, number) == (HEADS, layer):
            array[range(len(heads)), heads] = 0

    return see


def draw(view: Heads) -> str:
    """The page: a grid of heads with pictures of the first text's weights, then the tables.

    Below each picture stands the change of the result without the head, or, without ablation, the mean distance.
    """
    by_place = _by_place(view)
    rows = [[str(1 + layer), *row] for layer, row in enumerate(by_place)]
    columns = [Column("Layer"), *(Column(f"Head {1 + head}") for head in range(max(map(len, by_place))))]
    lead = MEANING
    lead = lead if view.meaning is None else f"{lead} {OF_CHANGE.format(meaning=view.meaning)} {COLORS}"
    measure = "mean distance" if view.meaning is None else "change of the result without the head"
    caption = f"Attention weights, and {measure}; choose a head to see it large"
    grid = table(caption, columns, rows, "thumbs")
    large = element("figure", id="large", aria_live="polite")
    numbers = document_table("All numbers", view.of_heads())
    pictures = view.weights.reshape(-1, *view.weights.shape[2:])
    together: list[Markup] = []
    if view.rollout is not None:
        size = len(pictures[0])
        lead = f"{lead} {OF_ROLLOUT}"
        pictures = np.concatenate([pictures, [m[:size, :size] for m in (view.rollout.layers, view.rollout.mean)]])
        names = ("Rollout", "Mean weight")
        beside = [_thumb(name, len(view.weights), place) for place, name in enumerate(names)]
        token = f"{view.rollout.token} {view.pieces[view.rollout.token]}"
        together = [
            table("All layers together", [*map(Column, names)], [beside]),
            document_table(f"What token {token} draws on", view.of_tokens(view.rollout)),
        ]
    here = files(__package__)
    style, script = (here.joinpath(f"heads.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    data = {
        "tokens": [visible(piece) for piece in view.pieces[: len(pictures[0])]],
        "heads": view.weights.shape[1],
        "weights": encoded(np.round(255 * pictures), "u1"),
        "chosen": [0, 0]
        if view.attention is None
        else [view.attention.chosen.layer - 1, (view.attention.chosen.head or 1) - 1],
    }
    title = "Attention heads: where each looks"
    title += "" if view.meaning is None else f", and {view.meaning} without it"
    many = max(map(len, by_place)) > MOST_BESIDE
    pictures_first, tables = [grid, *together[:1]], [*together[1:], numbers]
    content = [*pictures_first, side_by_side(large, tables)] if many else [side_by_side(pictures_first, large, tables)]
    return page(title, *content, lead=lead, model=view.model, text=view.text, style=style, script=script, data=data)


def _by_place(view: Heads) -> list[list[str]]:
    """The grid's cells [layer][head]: a picture and a shaded number; "" for a head that is not shown (--top-k)."""
    name = "distance" if view.meaning is None else "change"
    largest = max((abs(head[name]) for head in view.heads), default=0.0) or 1.0
    layers, heads = max(head.layer for head in view.heads), max(head.head for head in view.heads)
    rows = [[""] * heads for _ in range(layers)]
    for head in view.heads:
        text = f"{head[name]:+z.3f}" if name == "change" else f"{head[name]:.1f}"
        title = f"Layer {head.layer}, head {head.head} ({name} {text})"
        layer, number = head.layer - 1, head.head - 1
        rows[layer][number] = Markup(_thumb(title, layer, number) + shaded(text, head[name] / largest))
    return rows


def _thumb(title: str, layer: int, head: int) -> Markup:
    """A small picture of a head's weights; heads.js draws it from `data.weights`, and draws it large when chosen.

    Layer and head count from 0 here, as rows of the data do.
    """
    return html(THUMB, title=title, layer=layer, head=head)

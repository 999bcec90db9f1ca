"""`bertcli heads`: attention statistics of every head over texts, and head ablation (Michel, Levy and Neubig 2019).

    entropy   -Σ a ln a, in nats          distance  Σ a |query - key|, in tokens
    special, self, next, previous         the share of weight on special tokens, the token itself, its neighbors
    change    f(text, the head's output set to zero) - f(text), the mean over texts      arXiv 1905.10650

Each but `change` is a mean over all query tokens of all texts. Attention rollout follows one text's weights through all
layers (Abnar and Zuidema 2020, arXiv 2005.00928): R = A'_L ... A'_1, A' = (mean of a layer's heads + I) / 2.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.analysis.layers import parse_layer
from bertcli.analysis.texts import tokens_of
from bertcli.analysis.trace.products import encoded
from bertcli.engine.packing import pack
from bertcli.errors import BertcliError, check_finite, number_of
from bertcli.files.texts import Values, from_values
from bertcli.loaded_model import LoadedModel, expect_model
from bertcli.report.digits import short
from bertcli.report.documents import ByName, Document, View
from bertcli.report.figures import Panel, WithFigure
from bertcli.report.page import COLORS, Markup, document_table, element, html, page, shaded, side_by_side, table
from bertcli.report.shades import Shaded, print_shades
from bertcli.report.terminal import Column, folded, terminal_width, visible
from bertcli.tasks.options import takes
from bertcli.tasks.running.batches import BATCH_TOKENS, Numbers
from bertcli.tasks.running.task import length_limit
from bertcli.tokens import Tokens
from bertcli.tracing.dispatch import Array, watching
from bertcli.wings.interpret.compute.attention import Attention, shaded_lines
from bertcli.wings.interpret.compute.heads_figure import attention_panel, heads_panel, rollout_panels
from bertcli.wings.interpret.compute.part_watcher import HEADS, WEIGHTS, PartWatcher, check_size
from bertcli.wings.interpret.compute.target import Target, TokenizedText, preparing, result_of, sentence_of
from bertcli.wings.interpret.specs.heads import HeadsOptions

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
    "of the first text: the stronger the color, the larger the weight. Weights say where a head looks, not what it "
    "contributes."
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
            result = ((layer + np.eye(len(layer))) / 2) @ result
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
        return {{"itself": "self"}.get(name, name): short(value) for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Heads(View, WithFigure):
    """The attention heads of a model over some texts; `meaning` names the result that is measured, if there is one.

    text: the first one, whose tokens are `pieces`. pictures [layer, head, query, key]: the weights of its first
    MOST_TOKENS; `every` computes them all. attention: of the layer or head that was chosen.
    """

    model: str
    texts: int
    heads: tuple[HeadRow, ...]
    meaning: str | None
    pieces: Sequence[str]
    pictures: Array
    rollout: Rollout | None = None
    attention: Attention | None = None
    text: str = ""
    every: Callable[[], Array] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def weights(self) -> Array:
        """The first text's attention weights: float32 [layer, head, query, key]; each row of keys sums to 1.

        Of a long text computed when they are asked for. Errors: BertcliError for more than MOST_NUMBERS numbers.
        """
        if len(self.pieces) <= MOST_TOKENS:
            return self.pictures
        assert self.every is not None
        return self.every()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of a .npz file: weights (with `layer` that layer's or head's alone), tokens, and a rollout."""
        weights = self.weights if self.attention is None else self.attention.chosen_weights
        arrays: dict[str, NDArray[Any]] = {"weights": weights, "tokens": np.array([*self.pieces])}
        if self.rollout is not None:
            arrays["rollout"] = self.rollout.layers.astype(np.float32)
        return arrays

    @property
    def record(self) -> dict[str, Any]:
        record: dict[str, Any] = {"heads": [head.record for head in self.heads]}
        if self.rollout is not None:
            record["rollout"] = short(self.rollout.layers.tolist())
        if self.attention is not None:
            record["attention"] = self.attention.record
        return record

    def panels(self) -> list[Panel]:
        """The weights of the first text: of the chosen head alone, if there is one; else of every head, and a rollout.

        Below a head's picture stands the change of the result without it, or, without ablation, the mean distance.
        """
        if self.attention is not None:
            return [attention_panel(self.attention)]
        name, _ = _measured(self)
        numbers = {(head.layer, head.head): text for head, text in zip(self.heads, _numbers(self, name), strict=True)}
        panels = [heads_panel(self.pictures, self.pieces, numbers)]
        if self.rollout is not None:
            panels += rollout_panels(self.rollout.layers, self.rollout.mean, self.pieces)
        return panels

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
        through_layers = rollout.layers[rollout.token].tolist()
        mean = rollout.mean[rollout.token].tolist()
        most, most_mean = max(through_layers), max(mean)
        rows, lines = [], []
        for position, (piece, share, mean_share) in enumerate(zip(self.pieces, through_layers, mean, strict=True)):
            rows.append(
                [
                    f"{position} {piece}",
                    Shaded(f"{share:.1%}", share / most),
                    Shaded(f"{mean_share:.1%}", mean_share / most_mean),
                ]
            )
            lines.append(short({"position": position, "token": piece, "rollout": share, "mean": mean_share}))
        below = [f"What token {rollout.token}, {self.pieces[rollout.token]}, draws on. {OF_ROLLOUT}"]
        return Document(columns, rows, below, self.record, lines)

    def of_heads(self) -> Document:
        """The statistics' table: a row for each head."""
        names = ["Layer", "Head", "Entropy", "Distance", "Special", "Self", "Next", "Previous"]
        below = [
            f"{self.model}: means over the tokens of {number_of(self.texts, 'text')}",
            "Entropy of the weights in nats; distance in tokens; shares of weight on special tokens, on the token "
            "itself, the next and the previous one.",
        ]
        if self.meaning:
            names.append("Change")
            below.append(f"Change: {self.meaning} without the head, less the result with it")
        columns = [Column(name, number=True) for name in names]
        rows = [_cells(head) for head in self.heads]
        return Document(columns, rows, below, self.record, self.record["heads"])


def _cells(head: HeadRow) -> list[str]:
    """The cells of a head in the table."""
    shares = (head.special, head.itself, head.next, head.previous)
    cells = [str(head.layer), str(head.head), f"{head.entropy:.3f}", f"{head.distance:.2f}"]
    cells += [f"{share:.1%}" for share in shares]
    if head.change is not None:
        cells.append(f"{head.change:+z.4f}")
    return cells


@takes(HeadsOptions)
def heads(model: LoadedModel, texts: Values, options: HeadsOptions) -> Heads:
    """Every attention head's entropy, distance and shares over texts; `ablate` adds the change of a result without it.

    The result is that of `explain`: a label's log-odds, the log-probability of a mask's word, a cosine. Heads are in
    the order of layers, with `ablate` those first that change most; `top_k` of them. `rollout`, the position of a
    token, adds attention rollout, of which this token is shown. `layer` ("3" or "3.2") adds the weights of that
    layer or head. Errors: BertcliError for no text, several with `rollout` or `layer`, a layer that is not there,
    and as in `explain`.
    """
    return measure(model, texts, options)


def measure(model: LoadedModel, texts: Values, options: HeadsOptions) -> Heads:
    """Compute what `heads` returns; the command calls it with its options in one dataclass."""
    expect_model(model)
    if not model.config.num_hidden_layers:
        raise BertcliError(f"{model.name} has no attention heads: its vectors come from a table of words alone.")
    limit = length_limit(model, options.max_length)
    prepared = preparing(model, options)
    chosen = None if options.layer is None else parse_layer(options.layer, model.config)
    queries = 0
    sums: list[Numbers] = []
    changes: list[Numbers] = []
    meanings: list[str] = []
    rollout: Rollout | None = None
    attention: Attention | None = None
    for number, (text, pair, *_) in enumerate(from_values(texts, options.pairs)):
        tokens = tokens_of(model, prepared(text), pair, limit)
        stats = _attention_stats(model, tokens)
        if number == 0:
            first_text, pieces, pictures = text, list(tokens.pieces), stats.weights
            every = partial(_every_weight, model, tokens)
        if options.rollout is not None:
            if number:
                raise BertcliError("Rollout follows the attention of one text: give one (--rollout).")
            rollout = Rollout.of(stats.means, _token(tokens, options.rollout))
        if chosen is not None:
            if number:
                raise BertcliError("Attention weights are shown for one text (--layer): give only one.")
            attention = Attention(model.name, chosen, tokens.pieces, weights_of(model, tokens, chosen.layer))
        queries += len(tokens.ids)
        sums.append(stats.sums)
        if options.ablate:
            sentence = sentence_of(model, tokens, text, options)
            result = result_of(model, sentence, options)
            meanings.append(result.meaning)
            changes.append(changes_without(model, result, sentence, options.batch_tokens or BATCH_TOKENS))
    if not sums:
        raise BertcliError("There is no text: give at least one, for attention is measured on texts.")
    means = np.sum(sums, axis=0) / queries
    check_finite(means)
    if options.ablate:
        means = np.dstack([means, np.mean(changes, axis=0)])
    rows = []
    for layer, head in np.ndindex(means.shape[:2]):
        rows.append(HeadRow(1 + layer, 1 + head, *means[layer, head].tolist()))
    # A stable sort: without ablation rows stay in the order of layers.
    rows.sort(key=lambda row: -abs(row.change or 0))
    return Heads(
        model=model.name,
        texts=len(sums),
        heads=tuple(rows[: options.top_k]),
        meaning=_meaning(meanings),
        pieces=pieces,
        pictures=pictures,
        rollout=rollout,
        attention=attention,
        text=first_text,
        every=every,
    )


def _meaning(meanings: Sequence[str]) -> str | None:
    """The name of the measured result of all texts; of several labels or words a list that begins with three.

    None without ablation.
    """
    different = list(dict.fromkeys(meanings))
    if len(different) > 1:
        return f"each text's own result ({', '.join(different[:3])} …)"
    return different[0] if different else None


def _token(tokens: Tokens, chosen: int) -> int:
    """The position of the token whose rollout is shown. Errors: BertcliError for one that the text does not have."""
    if chosen >= len(tokens.ids):
        raise BertcliError(f"There is no token {chosen}: the text has {len(tokens.ids)}, from 0 (--rollout).")
    return chosen


class AttentionStats(NamedTuple):
    """Statistics of a sentence's attention weights, and the weights themselves for pictures.

    sums [layer, head, measure]: over queries. weights [layer, head, query, key]: of the first MOST_TOKENS. means: of
    each layer [query, key] the mean of its heads.
    """

    sums: Numbers
    weights: Array
    means: list[Numbers]


def _attention_stats(model: LoadedModel, tokens: Tokens) -> AttentionStats:
    special = np.array([side is None for side in tokens.sides])
    sums, weights, means = list[Numbers](), list[Array](), list[Numbers]()

    def see(name: str, layer: int, array: Array) -> None:
        if name == WEIGHTS:
            sums.append(measures(array[0], special).T)
            weights.append(array[0, :, :MOST_TOKENS, :MOST_TOKENS].copy())
            means.append(array[0].mean(axis=0, dtype=np.float64))

    with np.errstate(all="ignore"), watching(PartWatcher(model.network, see)):
        model.network(pack([tokens]))
    return AttentionStats(np.array(sums), np.array(weights), means)


def _every_weight(model: LoadedModel, tokens: Tokens) -> Array:
    """The weights of every layer over all tokens [layer, head, query, key]: `Heads.weights` of a long text."""
    count, length = model.config.num_attention_heads, len(tokens.ids)
    shape = (model.config.num_hidden_layers, count, length, length)
    check_size(shape, "attention weights: give a shorter text (--max-length), or one layer (--layer)")
    weights = np.zeros(shape, np.float32)

    def see(name: str, layer: int, array: Array) -> None:
        if name == WEIGHTS:
            weights[layer] = array[0]

    with np.errstate(all="ignore"), watching(PartWatcher(model.network, see)):
        model.network(pack([tokens]))
    return weights


def weights_of(model: LoadedModel, tokens: Tokens, layer: int) -> Array:
    """The attention weights of one layer (from 1) over all tokens: [head, query, key]."""
    found: list[Array] = []

    def see(name: str, number: int, array: Array) -> None:
        if (name, number) == (WEIGHTS, layer - 1):
            found.append(array[0].copy())

    with np.errstate(all="ignore"), watching(PartWatcher(model.network, see)):
        model.network(pack([tokens]))
    return found[0]


def measures(weights: Array, special: NDArray[np.bool_]) -> Numbers:
    """Sums over queries [measure, head] for the weights [head, query, key] of one sentence.

    The measures are in the order of HeadRow's fields.
    """
    a = weights.astype(np.float64)
    positions = np.arange(a.shape[-1])
    distances = np.abs(positions[:, None] - positions[None, :])
    # 0 ln 0 is 0.
    logarithms = np.log(np.where(a > 0, a, 1.0))
    entropy = -(a * logarithms).sum(axis=(1, 2))
    distance = np.einsum("hqk,qk->h", a, distances)
    on_special = a[:, :, special].sum(axis=(1, 2))
    # The weights on the key 0, 1 and -1 after the query are diagonals.
    itself, on_next, on_previous = (np.trace(a, offset, axis1=1, axis2=2) for offset in (0, 1, -1))
    return np.stack([entropy, distance, on_special, itself, on_next, on_previous])


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
                # The first layer's state is the embeddings' output, which the pass computes itself.
                copies = np.tile(state, (len(heads), 1)) if layer else None
                with watching(PartWatcher(model.network, silencing(layer, heads), layer, copies)):
                    changes[layer, heads] = result.of([sentence] * len(heads)) - value
    return changes


def silencing(layer: int, heads: Sequence[int]) -> Callable[[str, int, Array], None]:
    """A `see` for PartWatcher that sets heads of one layer to zero: in sentence i of the batch heads[i]."""

    def see(name: str, number: int, array: Array) -> None:
        if (name, number) == (HEADS, layer):
            array[range(len(heads)), heads] = 0

    return see


def draw(view: Heads) -> str:
    """The page: a grid of heads with pictures of the first text's weights, then the tables.

    Below each picture stands the change of the result without the head, or, without ablation, the mean distance.
    """
    title, lead = _about(view)
    grid = _grid(view)
    # heads.js fills it with the picture that is chosen.
    large = element("figure", id="large", aria_live="polite")
    rollout_pictures, rollout_numbers = _rollout_tables(view)
    numbers = document_table("All numbers", view.of_heads())
    pictures = [grid, *rollout_pictures]
    tables = [*rollout_numbers, numbers]
    if max(head.head for head in view.heads) > MOST_BESIDE:
        content = [side_by_side([*pictures, large], tables)]
    else:
        content = [side_by_side(pictures, large, tables)]
    style = files(__package__).joinpath("heads.css").read_text(encoding="utf-8")
    script = files(__package__).joinpath("heads.js").read_text(encoding="utf-8")
    return page(
        title,
        *content,
        lead=lead,
        model=view.model,
        text=view.text,
        style=style,
        script=script,
        data=_picture_data(view),
    )


def _about(view: Heads) -> tuple[str, str]:
    """The title of a page or figure, and what it shows."""
    lead = MEANING
    title = "Attention heads: where each looks"
    if view.meaning is not None:
        lead += f" {OF_CHANGE.format(meaning=view.meaning)} {COLORS}"
        title += f", and {view.meaning} without it"
    if view.rollout is not None:
        lead += f" {OF_ROLLOUT}"
    return title, lead


def _measured(view: Heads) -> tuple[str, str]:
    """The field whose number stands below a picture, and its name for people."""
    if view.meaning is None:
        return "distance", "mean distance"
    return "change", "change of the result without the head"


def _numbers(view: Heads, name: str) -> list[Shaded]:
    """The number of each head, shaded by its share of the largest one."""
    largest = max((abs(head[name]) for head in view.heads), default=0.0) or 1.0
    form = "+z.3f" if name == "change" else ".1f"
    return [Shaded(f"{head[name]:{form}}", head[name] / largest) for head in view.heads]


def _picture_data(view: Heads) -> dict[str, Any]:
    """The data of heads.js: the weights of all heads as bytes, layer by layer; for a rollout both its matrices."""
    pictures = view.pictures.reshape(-1, *view.pictures.shape[2:])
    size = pictures.shape[1]
    if view.rollout is not None:
        matrices = [matrix[:size, :size] for matrix in (view.rollout.layers, view.rollout.mean)]
        pictures = np.concatenate([pictures, matrices])
    return {
        "tokens": [visible(piece) for piece in view.pieces[:size]],
        "heads": view.pictures.shape[1],
        "weights": encoded(np.round(255 * pictures), "u1"),
        "chosen": _first_chosen(view),
    }


def _first_chosen(view: Heads) -> list[int]:
    """Layer and head, from 0, of the picture that is large at first: those of --layer."""
    if view.attention is None:
        return [0, 0]
    layer, head = view.attention.chosen.layer, view.attention.chosen.head or 1
    return [layer - 1, head - 1]


def _rollout_tables(view: Heads) -> tuple[list[Markup], list[Markup]]:
    """The pictures of a rollout, and its numbers; none without one."""
    if view.rollout is None:
        return [], []
    names = ("Rollout", "Mean weight")
    # They follow the pictures of the last layer's heads.
    row_of_data = len(view.pictures)
    thumbs = [_thumb(name, row_of_data, number) for number, name in enumerate(names)]
    token = f"{view.rollout.token} {view.pieces[view.rollout.token]}"
    pictures = table("All layers together", [*map(Column, names)], [thumbs])
    numbers = document_table(f"What token {token} draws on", view.of_tokens(view.rollout))
    return [pictures], [numbers]


def _grid(view: Heads) -> Markup:
    """The table of layers by heads: a picture and a shaded number each; empty for a head left out by --top-k."""
    name, measure = _measured(view)
    layers = max(head.layer for head in view.heads)
    heads = max(head.head for head in view.heads)
    rows = [[str(1 + layer)] + [""] * heads for layer in range(layers)]
    for head, text in zip(view.heads, _numbers(view, name), strict=True):
        title = f"Layer {head.layer}, head {head.head} ({name} {text})"
        thumb = _thumb(title, head.layer - 1, head.head - 1)
        # The first cell of a row is its layer's number, so heads stand where their numbers say.
        rows[head.layer - 1][head.head] = Markup(thumb + shaded(text, text.shade))
    columns = [Column("Layer"), *(Column(f"Head {1 + head}") for head in range(heads))]
    caption = f"Attention weights, and {measure}; choose a head to see it large"
    return table(caption, columns, rows, "thumbs many" if heads > MOST_BESIDE else "thumbs")


def _thumb(title: str, layer: int, head: int) -> Markup:
    """A small picture of a head's weights; heads.js draws it from `data.weights`, and draws it large when chosen.

    Layer and head count from 0 here, as rows of the data do.
    """
    return html(THUMB, title=title, layer=layer, head=head)

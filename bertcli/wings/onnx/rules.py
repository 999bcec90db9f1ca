"""The ONNX rule of every op: a function with the op's name and arguments that adds nodes and returns the result.

The exporter finds a rule by the op's name (getattr). Results have the dimensions of the op's signature, but in a padded
graph packed tokens are two dimensions, [batch, sequence]. Ops on whole sentences mask the padding (see `softmax`), and
in a packed graph they pad first.
"""

from collections.abc import Callable, Sequence
from math import pi, sqrt
from typing import Any

import numpy as np

from bertcli.engine.positions import deberta_bucket, t5_bucket
from bertcli.wings.onnx.graph import IDS, INT64, MASK, PLACES, ROWS, Band, Dim, Graph, OnnxValue, Operand

FIRST, OFFSETS = "first", "offsets"  # stand-ins for `Packed.first` and `.offsets`, which a graph does not have
LEAST_BLOCK = 64  # queries with windows that are computed together: fewer read keys more often
LEAST = float(np.finfo(np.float32).min)  # added to masked scores; -inf would give NaN where all keys are padding


def embed(table: OnnxValue, ids: OnnxValue) -> OnnxValue:
    """Gather; for the positions 0, 1, 2 … of a padded graph, slice the first rows of the table."""
    graph = table.graph
    if ids.name != positions(graph).name:
        return graph.rows(table, ids)
    return table.cut(0, [0], _length(graph)).unsqueezed(0)


def embed_counted(table: OnnxValue, ids: OnnxValue, offsets: OnnxValue, *, padding: int) -> OnnxValue:
    """Gather at p + CumSum(id ≠ p), at p where the id is p; `offsets` are the ends that every sentence has here."""
    real = _real(padded(ids), padding)
    return table.graph.rows(table, unpadded(real.node("CumSum", 1) * real + padding))


def mean_tokens(x: OnnxValue, first: OnnxValue) -> OnnxValue:
    """The mean of every sentence's tokens, which begin at `first`."""
    return _mean(x)


def last_tokens(x: OnnxValue, ids: OnnxValue, first: OnnxValue, *, padding: int) -> OnnxValue:
    """The last token of every sentence that is neither masked nor has the id of padding; else the first."""
    return _last(x, _real(ids, padding))


def scale(x: OnnxValue, *, factor: float) -> OnnxValue:
    return x * float(factor)


def drop_masks(x: OnnxValue, ids: OnnxValue, first: OnnxValue, *, mask: int, trained: float) -> OnnxValue:
    """0 for masks, else x (1 - trained) / (1 - the share of masks in its sentence)."""
    masks = padded(ids).node("Equal", mask).unsqueezed(2).cast()
    share = _mean(masks).unsqueezed(1)
    factor = masks.graph.node("Div", 1 - trained, 1.0 - share)
    return x * unpadded((1.0 - masks) * factor, 1)


def gather(x: OnnxValue, rows: OnnxValue) -> OnnxValue:
    """The first token of every sentence: the only rows that a graph can gather."""
    if rows.name != FIRST:
        raise RuntimeError("Rows were gathered that are not the first tokens of the sentences.")
    return x.node("Gather", 0, axis=1)


def add(x: OnnxValue, y: OnnxValue) -> OnnxValue:
    return x + y


def multiply(x: OnnxValue, y: OnnxValue) -> OnnxValue:
    return x * y


def add_row(x: OnnxValue, table: OnnxValue) -> OnnxValue:
    return x + table.node("Gather", 0, axis=0)


def linear(
    x: OnnxValue, weight: OnnxValue, bias: OnnxValue | None = None, *, activation: str | None = None
) -> OnnxValue:
    return project(x, x.graph.matrix(weight), bias, activation=activation)


def project(
    x: OnnxValue, weight: OnnxValue, bias: OnnxValue | None = None, *, activation: str | None = None
) -> OnnxValue:
    product = x @ weight
    return activated(product + bias if bias else product, activation)


def project_heads(x: OnnxValue, weights: OnnxValue) -> OnnxValue:
    return x @ (weights if x.graph.packed else weights.unsqueezed(1))  # [head, 1, hidden, size]: for every sentence


def experts(
    x: OnnxValue,
    shares: OnnxValue,
    inner: OnnxValue,
    outer: OnnxValue,
    bias: OnnxValue,
    *,
    top: int,
    activation: str,
) -> OnnxValue:
    """Compute all experts for every token; those that a token is not routed to have weight 0."""
    *rows, count = shares.dims
    size = inner.dims[0].size // count.size
    # An expert is kept if fewer than `top` others have larger shares.
    this, other = shares.unsqueezed(len(rows)), shares.unsqueezed(len(rows) + 1)
    larger = this.node("Greater", other).cast().node("ReduceSum", [-1], keepdims=0)
    kept = larger.node("Less", float(top)).node("Where", shares, 0.0)
    hidden = activated(x @ x.graph.matrix(inner), activation)
    flat, by_expert = [*rows, inner.dims[0]], [*rows, count, Dim(size)]
    weighted = hidden.reshaped(flat, by_expert) * kept.unsqueezed(len(rows) + 1)
    return weighted.reshaped(by_expert, flat) @ outer + bias


def scores(q: OnnxValue, k: OnnxValue, *, terms: float = 1) -> OnnxValue:
    return _scaled(q, terms) @ k.permuted(0, 1, 3, 2)


def bucket_scores(x: OnnxValue, table: OnnxValue, *, terms: int) -> OnnxValue:
    return _scaled(x, terms) @ table.permuted(1, 2, 0)


def add_by_query(
    x: OnnxValue, by_query: OnnxValue, queries: OnnxValue, keys: OnnxValue, *, buckets: int, farthest: int
) -> OnnxValue:
    """x_ij + Y_i,b(i - j); `queries` and `keys` are all positions, as in every graph."""
    return x + _by_distance(by_query, buckets, farthest, sign=-1)


def add_by_key(
    x: OnnxValue, by_key: OnnxValue, queries: OnnxValue, keys: OnnxValue, *, buckets: int, farthest: int
) -> OnnxValue:
    """x_ij + Y_j,b(i - j); `queries` and `keys` are all positions, as in every graph."""
    return x + _by_distance(by_key, buckets, farthest, sign=1).permuted(0, 1, 3, 2)  # of [batch, head, key, query]


def convolve(
    x: OnnxValue,
    weight: OnnxValue,
    bias: OnnxValue,
    first: OnnxValue,
    where: OnnxValue,
    *,
    activation: str | None = None,
) -> OnnxValue:
    """Conv along every sentence, with padding set to zero. The padded layout replaces `first` and `where`."""
    width = weight.dims[2].size
    rows = (padded(x) * tokens(x.graph)).permuted(0, 2, 1)
    pads = (width // 2, (width - 1) // 2)
    made = rows.node("Conv", weight, bias, kernel_shape=(width,), pads=pads)
    return activated(unpadded(made.permuted(0, 2, 1), weight.dims[0].size), activation)


def relative_bias(table: OnnxValue, queries: OnnxValue, keys: OnnxValue, *, farthest: int) -> OnnxValue:
    """Gather of the table's rows by the bucket of each distance, a constant; beyond `farthest` they are equal."""
    limit = farthest + 1
    buckets = t5_bucket(np.arange(-limit, limit + 1), table.dims[0].size, farthest)
    rows = _at(buckets, _distances(queries, keys), limit)
    return table.graph.rows(table, rows).node("Transpose", perm=(2, 0, 1))


def add_alibi(x: OnnxValue, queries: OnnxValue, keys: OnnxValue, *, slopes: tuple[float, ...]) -> OnnxValue:
    """x - slope · |distance|"""
    rates = -np.array(slopes, np.float32)[:, None, None]
    return x + _distances(queries, keys).node("Abs").cast() * rates


def add_bias(x: OnnxValue, bias: OnnxValue) -> OnnxValue:
    return x + bias


def rotate(
    x: OnnxValue, where: OnnxValue, *, heads: int, inverse_frequencies: tuple[float, ...], scaling: float = 1
) -> OnnxValue:
    """Rotate the halves (a, b) of every head: (a cos - b sin, b cos + a sin), by position · inverse frequency."""
    split = _by_heads(x, heads)
    half = split[-1].size // 2
    last = len(split) - 1
    angles = where.cast().unsqueezed(last - 1, last) * np.array(inverse_frequencies, np.float32)  # [tokens, 1, half]
    cos, sin = (angles.node(op_type) * float(scaling) for op_type in ("Cos", "Sin"))
    whole = x.reshaped(x.dims, split)
    a, b = whole.cut(last, [0], [half]), whole.cut(last, [half], [2 * half])
    left, right = a * cos - b * sin, b * cos + a * sin
    return left.node("Concat", right, axis=last).reshaped(split, x.dims)


def repeat_heads(x: OnnxValue, like: OnnxValue, *, heads: int, of: int) -> OnnxValue:
    """Repeat each key or value head for the query heads that share it (grouped-query attention), by Gather."""
    split = _by_heads(x, heads)
    *rows, _, size = split
    wide = x.reshaped(x.dims, split).node("Gather", [head * heads // of for head in range(of)], axis=len(rows))
    return wide.reshaped([*rows, Dim(of), size], [*rows, Dim(of * size.size)])


def within(
    x: OnnxValue, queries: OnnxValue, keys: OnnxValue, *, window_left: int | None, window_right: int | None
) -> OnnxValue:
    """Leave the scores of keys outside of windows to `softmax`; where both sides have a limit, compute few of them.

    `x` are scores as `scores` makes them. Then queries are cut into blocks, each with the keys that it sees: [batch,
    head, block, query, key]. In a text that is hardly longer than these keys the only block is all of it.
    """
    graph = x.graph
    if window_left is None or window_right is None:
        mask = _outside(_distances(queries, keys), window_left, window_right)
        graph.bands[x.name] = Band(padding(x) + mask, None)
        return x
    length, one = _length(graph), [1]
    near = window_left + window_right
    block = max(LEAST_BLOCK, near // 2)
    is_long = length.node("Greater", [block + near])
    size = is_long.node("Where", [block], length)
    seen = length.node("Min", size + near)
    count = (length + size - one).node("Div", size)
    starts = _range(count) * size
    block_queries = (starts.unsqueezed(1) + _range(size)).node("Min", length - one)
    first = (starts - [window_left]).node("Max", [0]).node("Min", length - seen)
    block_keys = first.unsqueezed(1) + _range(seen)  # [block, key]
    distances = block_queries.unsqueezed(2) - block_keys.unsqueezed(1)
    real = _mask(graph).node("Gather", block_keys, axis=1).cast().unsqueezed(1, 3)
    mask = _least(real) + _outside(distances, window_left, window_right)  # [batch, 1, block, query, key]
    left, right = (graph.made[name] for name in graph.made[x.name].inputs)
    batch, head, size_of_head, token = right.attributes["perm"]
    k = OnnxValue(graph, right.inputs[0]).permuted(batch, head, token, size_of_head)
    by_block = k.node("Gather", block_keys, axis=2).permuted(0, 1, 2, 4, 3)
    made = OnnxValue(graph, left.output).node("Gather", block_queries, axis=2) @ by_block
    graph.bands[made.name] = Band(mask, block_keys)
    return made


def softmax(x: OnnxValue) -> OnnxValue:
    """Softmax; over the keys of a sentence, after -3.4e38 was added to the scores of padding."""
    band = x.graph.bands.get(x.name)
    if band:
        masked = x + band.mask
    elif x.dims[-1].symbol:
        masked = x + padding(x)
    else:
        masked = x  # an axis of fixed size, such as experts, has no padding
    weights = masked.node("Softmax", axis=-1)
    if band:
        x.graph.bands[weights.name] = band
    return weights


def attend(weights: OnnxValue, v: OnnxValue) -> OnnxValue:
    """A V; blocks of queries with the values of their own keys are joined again, see `within`."""
    band = weights.graph.bands.get(weights.name)
    if band is None or band.keys is None:
        return weights @ v
    by_block = weights @ v.node("Gather", band.keys, axis=2)  # [batch, head, block, query, size]
    return by_block.node("Reshape", [0, 0, -1, v.dims[-1].size]).cut(2, [0], _length(v.graph))


def concat(heads: OnnxValue) -> OnnxValue:
    """Join heads: [batch, head, sequence, size] to [batch, sequence, head·size]."""
    batch, head, token, size = heads.dims
    hidden = head.size * size.size
    joined = heads.permuted(0, 2, 1, 3).reshaped([batch, token, head, size], [batch, token, Dim(hidden)])
    return unpadded(joined, hidden)


def norm(x: OnnxValue, weight: OnnxValue | None = None, bias: OnnxValue | None = None, *, eps: float) -> OnnxValue:
    scale: Operand = weight or np.ones(x.dims[-1].size, np.float32)
    return x.node("LayerNormalization", scale, *([bias] if bias else []), axis=-1, epsilon=eps)


def rms_norm(x: OnnxValue, weight: OnnxValue, *, eps: float, offset: float = 0, heads: int = 1) -> OnnxValue:
    """x / sqrt(mean of squares + eps) · (offset + weight) of every head."""
    split = _by_heads(x, heads)
    each = x.reshaped(x.dims, split)
    mean_square = (each * each).node("ReduceMean", [-1], keepdims=1)
    unit = each / (mean_square + eps).node("Sqrt")
    return (unit * (weight + float(offset) if offset else weight)).reshaped(split, x.dims)


new_norm = norm  # an op may write over its argument or not; in a graph nothing is written over


def _gelu(x: OnnxValue) -> OnnxValue:
    """Gelu; before opset 20, x/2 · (1 + erf(x / √2))"""
    if x.graph.opset >= 20:
        return x.node("Gelu")
    erf = (x * (1 / sqrt(2))).node("Erf")
    return x * 0.5 * (erf + 1.0)


def _gelu_tanh(x: OnnxValue) -> OnnxValue:
    """Gelu by tanh; before opset 20, x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))"""
    if x.graph.opset >= 20:
        return x.node("Gelu", approximate="tanh")
    tanh = ((x + x * (x * x) * 0.044715) * sqrt(2 / pi)).node("Tanh")
    return x * 0.5 * (tanh + 1.0)


def _silu(x: OnnxValue) -> OnnxValue:
    return x * x.node("Sigmoid")


ACTIVATION_RULES: dict[str | None, Callable[[OnnxValue], OnnxValue]] = {  # by their names in config.json
    None: lambda x: x, "relu": lambda x: x.node("Relu"), "tanh": lambda x: x.node("Tanh"),
    "sigmoid": lambda x: x.node("Sigmoid"),
    "gelu": _gelu, "gelu_new": _gelu_tanh, "gelu_pytorch_tanh": _gelu_tanh, "gelu_fast": _gelu_tanh,
    "silu": _silu, "swish": _silu,
}  # fmt: skip


def activated(x: OnnxValue, activation: str | None) -> OnnxValue:
    if activation not in ACTIVATION_RULES:
        raise RuntimeError(f"The activation {activation} has no ONNX rule.")
    return ACTIVATION_RULES[activation](x)


def _scaled(x: OnnxValue, terms: float) -> OnnxValue:
    return x * (1 / sqrt(terms * x.dims[-1].size))


def _by_heads(x: OnnxValue, heads: int) -> list[Dim]:
    """The dimensions of [tokens, hidden] with an axis of its own for heads."""
    *rows, hidden = x.dims
    return [*rows, Dim(heads), Dim(hidden.size // heads)]


def _by_distance(values: OnnxValue, buckets: int, farthest: int, *, sign: int) -> OnnxValue:
    """values [batch, head, row, bucket] -> [batch, head, row, column], each at the bucket of sign · (column - row).

    `values` are a product with a table, see `bucket_scores`. Instead of gathering numbers from it, which takes ONNX
    Runtime 7 ns each, gather whole rows of the table, one for each distance, and multiply by these.

    Of 2S columns, one for each distance from -(S - 1) to S, those of a row begin one earlier than those of the row
    before: as rows of 2S - 1 numbers they stand below each other.
    """
    graph, table = values.graph, values.dims[-1].size
    rows, by_bucket = graph.made[values.name].inputs
    of_buckets = graph.made[by_bucket].inputs[0]  # [bucket, head, size]
    limit = max(farthest, table) + 1  # all distances beyond have the last bucket
    length = _length(graph)
    before, double = length - [1], length + length
    narrow = double - [1]
    columns = graph.node("Range", 0, double.node("Squeeze"), 1)
    found = deberta_bucket(np.arange(-limit, limit + 1), buckets, table, farthest)
    of_distances = graph.rows(of_buckets, _at(found, (columns - before) * sign, limit)).permuted(1, 2, 0)
    spread = (OnnxValue(graph, rows) @ of_distances).node("Reshape", [0, 0, -1])
    shifted = spread.cut(2, before, before + length * narrow)
    return shifted.node("Reshape", graph.node("Concat", [0, 0, -1], narrow, axis=0)).cut(3, [0], length)


def _at(table: Any, distance: OnnxValue, limit: int) -> OnnxValue:
    """Look up distances in a constant table for -limit to limit; farther ones are clipped to its ends."""
    return distance.graph.node("Gather", table.astype(np.int64), distance.node("Clip", -limit, limit) + limit, axis=0)


def _outside(distance: OnnxValue, window_left: int | None, window_right: int | None) -> OnnxValue:
    """0, and -inf where a key is more than `window_left` before its query or more than `window_right` behind it."""
    far = [distance.node("Greater", window_left)] if window_left is not None else []
    far += [distance.node("Less", -window_right)] if window_right is not None else []
    return far[0].node("Or", *far[1:]).node("Where", -np.inf, 0.0) if far[1:] else far[0].node("Where", -np.inf, 0.0)


def _range(count: OnnxValue) -> OnnxValue:
    """0, 1, 2, …; their number is in a vector of one number."""
    return count.graph.node("Range", 0, count.node("Squeeze"), 1)


def _distances(queries: OnnxValue, keys: OnnxValue) -> OnnxValue:
    """[query, key]: query - key"""
    return queries.unsqueezed(1) - keys.unsqueezed(0)


def positions(graph: Graph) -> OnnxValue:
    """[1, sequence]: 0, 1, 2 …, which are the positions of the tokens of every sentence."""
    return _range(_length(graph)).unsqueezed(0)


def _length(graph: Graph) -> OnnxValue:
    """[1]: tokens of a sentence, with its padding."""
    return graph.node("Shape", MASK if graph.packed else IDS, start=1, end=2)


def padded(x: OnnxValue) -> OnnxValue:
    """Bring packed tokens into the padded layout: [tokens, …] -> [batch, sequence, …]; a padded graph has no others."""
    return x.node("Gather", ROWS, axis=0) if x.graph.packed else x


def unpadded(x: OnnxValue, *sizes: int) -> OnnxValue:
    """Undo `padded`; `sizes` are those of the dimensions after the tokens."""
    return x.node("Reshape", [-1, *sizes]).node("Gather", PLACES, axis=0) if x.graph.packed else x


# ----------------------------------------------------------------------------------- what reads a whole sentence


def pooled(hidden: OnnxValue, modes: Sequence[str]) -> OnnxValue:
    """[batch, sequence, hidden] -> [batch, modes · hidden]: of kinds.pooling.MODES, side by side."""
    batch, _, width = hidden.dims
    vectors, *others = (_pooled(hidden, mode) for mode in modes)
    vectors = vectors.node("Concat", *others, axis=1) if others else vectors
    return vectors.with_axes((batch,), (Dim(width.size * len(modes)),))


def _pooled(x: OnnxValue, mode: str) -> OnnxValue:
    graph = x.graph
    match mode:
        case "mean":
            return _mean(x)
        case "mean_sqrt_len":
            return _sums(x) / _counts(graph).node("Sqrt")
        case "max":
            return (x + _least(tokens(graph))).node("ReduceMax", [1], keepdims=0)
        case "cls":
            return x.node("Gather", 0, axis=1)
        case "lasttoken":
            return _last(x, _mask(graph))
        case "weightedmean":  # by the place in the sentence, from 1
            weight = ((positions(graph) + 1) * _mask(graph)).cast().unsqueezed(2)
            weighted, total = (part.node("ReduceSum", [1], keepdims=0) for part in (x * weight, weight))
            return weighted / total
    raise RuntimeError(f"The pooling {mode} has no nodes.")


def unit(x: OnnxValue, smallest: float) -> OnnxValue:
    """x / max(|x|, smallest) of every row."""
    length = x.node("ReduceL2", [1], keepdims=1)
    return (x / length.node("Max", smallest)).with_axes(*x.axes)


def first(x: OnnxValue, width: int) -> OnnxValue:
    """The first numbers of every row."""
    return x if x.dims[1].size == width else x.cut(1, [0], [width]).with_axes(x.axes[0], (Dim(width),))


def column(x: OnnxValue, number: int) -> OnnxValue:
    """[batch, sequence, number] -> [batch, sequence]: one of the numbers of every token."""
    return x.node("Gather", number, axis=2).with_axes(*x.axes[:1])


def padding(scores: OnnxValue) -> OnnxValue:
    """[batch, …, key]: 0 for tokens and -3.4e38 for padding, to be added to scores."""
    symbols = [dim.symbol for dim in scores.dims]
    between = range(symbols.index("batch") + 1, len(symbols) - 1)
    return _least(_mask(scores.graph).cast()).unsqueezed(*between)


def tokens(graph: Graph) -> OnnxValue:
    """[batch, sequence, 1]: 1 for tokens, 0 for padding."""
    return _mask(graph).cast().unsqueezed(2)


def _mask(graph: Graph) -> OnnxValue:
    """[batch, sequence]: 1 for tokens, 0 for padding."""
    return OnnxValue(graph, MASK)


def _real(ids: OnnxValue, padding: int) -> OnnxValue:
    """[batch, sequence]: 1 for tokens that are neither masked nor have the id of padding."""
    return ids.node("Equal", padding).node("Not").cast(INT64) * MASK


def _last(x: OnnxValue, real: OnnxValue) -> OnnxValue:
    """The last token of every sentence where `real` is 1."""
    places = positions(x.graph)
    last = places.node("Equal", (places * real).node("ReduceMax", [1], keepdims=1))
    return (x * last.cast().unsqueezed(2)).node("ReduceSum", [1], keepdims=0)


def _mean(x: OnnxValue) -> OnnxValue:
    """[batch, sequence, hidden] -> [batch, hidden]: the mean of a sentence's tokens; 0 for a sentence without any."""
    return _sums(x) / _counts(x.graph)


def _sums(x: OnnxValue) -> OnnxValue:
    return (x * tokens(x.graph)).node("ReduceSum", [1], keepdims=0)


def _counts(graph: Graph) -> OnnxValue:
    return tokens(graph).node("ReduceSum", [1], keepdims=0).node("Max", 1.0)


def _least(real: OnnxValue) -> OnnxValue:
    """0 where there is a 1, -3.4e38 where there is a 0."""
    return (1.0 - real) * LEAST

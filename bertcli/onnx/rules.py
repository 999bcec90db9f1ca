"""The ONNX rule of every op: the same arguments as the op's, as tensors of a graph, and the name of the result.

A result has the dimensions that the op's signature says. Packed tokens are two dimensions here, [batch, sequence], so
sentences are padded, and what reads a whole sentence has to leave the padding out: see `softmax`.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np

from bertcli.engine.positions import FARTHEST, bucket, log_bucket
from bertcli.errors import BertcliError
from bertcli.onnx.graph import FLOAT, IDS, INT64, MASK, Dim, Graph, Tensor

FIRST, OFFSETS = "first", "offsets"  # in place of tensors: where sentences begin, without and with the end of the last
LEAST = float(np.finfo(np.float32).min)  # added to what is to have no weight: with -inf, padding alone would give NaN


def positions(graph: Graph) -> str:
    """[1, sequence]: 0, 1, 2 …, which are the positions of the tokens of every sentence."""
    count = graph.once("Range", graph.integers(0), graph.once("Squeeze", _length(graph)), graph.integers(1))
    return graph.once("Unsqueeze", count, graph.integers([0]))


def embed(graph: Graph, table: Tensor, ids: Tensor) -> str:
    """Gather; of the positions 0, 1, 2 … that every sentence has, the first rows of the table."""
    if ids.name != positions(graph):
        return graph.rows(table.name, ids.name)
    rows = graph.node("Slice", table.name, graph.integers([0]), _length(graph), graph.integers([0]))
    return graph.node("Unsqueeze", rows, graph.integers([0]))


def embed_counted(graph: Graph, table: Tensor, ids: Tensor, offsets: Tensor, *, padding: int) -> str:
    """Gather at p + CumSum(id ≠ p), at p where the id is p; `offsets` are the ends that every sentence has here."""
    other = graph.node("Not", graph.node("Equal", ids.name, graph.integers(padding)))
    real = graph.node("Mul", graph.node("Cast", other, to=INT64), MASK)
    count = graph.node("Mul", graph.node("CumSum", real, graph.integers(1)), real)
    return graph.rows(table.name, graph.node("Add", count, graph.integers(padding)))


def mean_tokens(graph: Graph, x: Tensor, first: Tensor) -> str:
    """The mean of every sentence's tokens, as `first` says where they begin."""
    return mean(graph, x.name)


def last_tokens(graph: Graph, x: Tensor, ids: Tensor, first: Tensor, *, padding: int) -> str:
    """The last token of every sentence that is neither masked nor has the id of padding; else the first."""
    other = graph.node("Not", graph.node("Equal", ids.name, graph.integers(padding)))
    return _last(graph, x.name, graph.node("Mul", MASK, graph.node("Cast", other, to=INT64)))


def _last(graph: Graph, x: str, real: str) -> str:
    """The last token of every sentence that is real."""
    place = graph.node("ReduceMax", graph.node("Mul", positions(graph), real), graph.integers([1]), keepdims=1)
    last = graph.node("Equal", positions(graph), place)
    chosen = graph.node("Unsqueeze", graph.node("Cast", last, to=FLOAT), graph.integers([2]))
    return graph.node("ReduceSum", graph.node("Mul", x, chosen), graph.integers([1]), keepdims=0)


def scale(graph: Graph, x: Tensor, *, factor: float) -> str:
    return graph.node("Mul", x.name, graph.number(factor))


def drop_masks(graph: Graph, x: Tensor, ids: Tensor, first: Tensor, *, mask: int, trained: float) -> str:
    """0 for masks, else x (1 - trained) / (1 - the share of masks in its sentence)."""
    masks = graph.node("Unsqueeze", graph.node("Equal", ids.name, graph.integers(mask)), graph.integers([2]))
    flags = graph.node("Cast", masks, to=FLOAT)
    share = graph.node("Unsqueeze", mean(graph, flags), graph.integers([1]))
    factor = graph.node("Div", graph.number(1 - trained), graph.node("Sub", graph.number(1), share))
    return graph.node("Mul", x.name, graph.node("Mul", graph.node("Sub", graph.number(1), flags), factor))


def gather(graph: Graph, x: Tensor, rows: Tensor) -> str:
    """The first token of every sentence: the only rows that a graph can gather."""
    if rows.name != FIRST:
        raise RuntimeError("Rows were gathered that are not the first tokens of the sentences.")
    return graph.node("Gather", x.name, graph.integers(0), axis=1)


def add(graph: Graph, x: Tensor, y: Tensor) -> str:
    return graph.node("Add", x.name, y.name)


def multiply(graph: Graph, x: Tensor, y: Tensor) -> str:
    return graph.node("Mul", x.name, y.name)


def add_row(graph: Graph, x: Tensor, table: Tensor) -> str:
    return graph.node("Add", x.name, graph.node("Gather", table.name, graph.integers(0), axis=0))


def linear(
    graph: Graph, x: Tensor, weight: Tensor, bias: Tensor | None = None, *, activation: str | None = None
) -> str:
    return _biased(graph, graph.node("MatMul", x.name, graph.matrix(weight.name)), bias, activation)


def project(
    graph: Graph, x: Tensor, weight: Tensor, bias: Tensor | None = None, *, activation: str | None = None
) -> str:
    return _biased(graph, graph.node("MatMul", x.name, weight.name), bias, activation)


def project_heads(graph: Graph, x: Tensor, weights: Tensor) -> str:
    heads = graph.node("Unsqueeze", weights.name, graph.integers([1]))  # [head, 1, hidden, size]: for every sentence
    return graph.node("MatMul", x.name, heads)


def scores(graph: Graph, q: Tensor, k: Tensor, *, terms: float = 1) -> str:
    return graph.node("MatMul", _scaled(graph, q, terms), graph.permuted(k.name, (0, 1, 3, 2)))


def bucket_scores(graph: Graph, x: Tensor, table: Tensor, *, terms: int) -> str:
    return graph.node("MatMul", _scaled(graph, x, terms), graph.permuted(table.name, (1, 2, 0)))


def add_by_query(
    graph: Graph, x: Tensor, by_query: Tensor, queries: Tensor, keys: Tensor, *, buckets: int, farthest: int
) -> str:
    """x_ij + Y_i,b(i - j); `queries` and `keys` are all positions, as in every graph."""
    return graph.node("Add", x.name, _by_distance(graph, by_query, buckets, farthest, sign=-1))


def add_by_key(
    graph: Graph, x: Tensor, by_key: Tensor, queries: Tensor, keys: Tensor, *, buckets: int, farthest: int
) -> str:
    """x_ij + Y_j,b(i - j); `queries` and `keys` are all positions, as in every graph."""
    by_distance = _by_distance(graph, by_key, buckets, farthest, sign=1)  # [batch, head, key, query]
    return graph.node("Add", x.name, graph.permuted(by_distance, (0, 1, 3, 2)))


def convolve(
    graph: Graph, x: Tensor, weight: Tensor, bias: Tensor, first: Tensor, *, activation: str | None = None
) -> str:
    """Conv along every sentence, whose padding is zero; `first` are the rows at which sentences begin."""
    width = weight.dims[2].size
    rows = graph.permuted(graph.node("Mul", x.name, tokens(graph)), (0, 2, 1))
    pads = (width // 2, (width - 1) // 2)
    made = graph.node("Conv", rows, weight.name, bias.name, kernel_shape=(width,), pads=pads)
    return activate(graph, graph.permuted(made, (0, 2, 1)), activation)


def relative_bias(graph: Graph, table: Tensor, queries: Tensor, keys: Tensor) -> str:
    """Gather of the table's rows by the bucket of each distance, a constant; beyond FARTHEST they are equal."""
    farthest = FARTHEST + 1
    buckets = graph.constant(bucket(np.arange(-farthest, farthest + 1)).astype(np.int64))
    between = graph.node("Clip", _distances(graph, queries, keys), graph.integers(-farthest), graph.integers(farthest))
    rows = graph.node("Gather", buckets, graph.node("Add", between, graph.integers(farthest)), axis=0)
    return graph.node("Transpose", graph.rows(table.name, rows), perm=(2, 0, 1))


def add_alibi(graph: Graph, x: Tensor, queries: Tensor, keys: Tensor, *, slopes: tuple[float, ...]) -> str:
    """x - slope · |distance|"""
    distance = graph.node("Cast", graph.node("Abs", _distances(graph, queries, keys)), to=FLOAT)
    rates = graph.constant(-np.array(slopes, np.float32)[:, None, None])
    return graph.node("Add", x.name, graph.node("Mul", rates, distance))


def add_bias(graph: Graph, x: Tensor, bias: Tensor) -> str:
    return graph.node("Add", x.name, bias.name)


def rotate(
    graph: Graph,
    x: Tensor,
    where: Tensor,
    *,
    heads: int,
    rates: tuple[float, ...],
    own: tuple[Any, ...] = (),
    scaling: float = 1,
) -> str:
    """(a, b) -> (a cos - b sin, b cos + a sin) of the halves of every head, by angles p r_j.

    Errors: BertcliError where texts have rates of their own.
    """
    if own:
        raise BertcliError(
            "This rope_type turns positions by the length of each text, which an ONNX graph cannot: use NumPy."
        )
    batch, token, hidden = x.dims
    split = [batch, token, Dim(heads), Dim(hidden.size // heads)]
    half = split[-1].size // 2
    place = graph.once("Unsqueeze", graph.once("Cast", where.name, to=FLOAT), graph.integers([2, 3]))
    angles = graph.once("Mul", place, graph.constant(np.array(rates, dtype=np.float32)))  # [1, sequence, 1, half]
    cos, sin = (graph.once("Mul", graph.once(op, angles), graph.number(scaling)) for op in ("Cos", "Sin"))
    whole, last = graph.reshaped(x.name, x.dims, split), graph.integers([3])
    a = graph.node("Slice", whole, graph.integers([0]), graph.integers([half]), last)
    b = graph.node("Slice", whole, graph.integers([half]), graph.integers([2 * half]), last)
    left = graph.node("Sub", graph.node("Mul", a, cos), graph.node("Mul", b, sin))
    right = graph.node("Add", graph.node("Mul", b, cos), graph.node("Mul", a, sin))
    return graph.reshaped(graph.node("Concat", left, right, axis=3), split, x.dims)


def repeat_heads(graph: Graph, x: Tensor, like: Tensor, *, heads: int, of: int) -> str:
    """Gather of each head as often as it is shared."""
    batch, token, narrow = x.dims
    size = Dim(narrow.size // heads)
    split = graph.reshaped(x.name, x.dims, [batch, token, Dim(heads), size])
    wide = graph.node("Gather", split, graph.integers([head * heads // of for head in range(of)]), axis=2)
    return graph.reshaped(wide, [batch, token, Dim(of), size], [batch, token, Dim(of * size.size)])


def within(graph: Graph, x: Tensor, queries: Tensor, keys: Tensor, *, behind: int | None, ahead: int | None) -> str:
    """-inf where a key is too far behind or ahead of a query."""
    distance, name = _distances(graph, queries, keys), x.name
    for op, limit in (("Greater", behind), ("Less", None if ahead is None else -ahead)):
        if limit is not None:
            unseen = graph.node(op, distance, graph.integers(limit))
            name = graph.node("Where", unseen, graph.number(-np.inf), name)
    return name


def softmax(graph: Graph, x: Tensor) -> str:
    """Softmax; over the keys of a sentence, after -3.4e38 was added to the scores of padding."""
    masked = graph.node("Add", x.name, padding(graph, x.dims)) if x.dims[-1].symbol else x.name
    return graph.node("Softmax", masked, axis=-1)


def attend(graph: Graph, weights: Tensor, v: Tensor) -> str:
    return graph.node("MatMul", weights.name, v.name)


def concat(graph: Graph, heads: Tensor) -> str:
    """[batch, head, sequence, size] to [batch, sequence, head·size]"""
    batch, head, token, size = heads.dims
    together = [batch, token, Dim(head.size * size.size)]
    return graph.reshaped(graph.permuted(heads.name, (0, 2, 1, 3)), [batch, token, head, size], together)


def norm(graph: Graph, x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, *, eps: float) -> str:
    scale = weight.name if weight else graph.constant(np.ones(x.dims[-1].size, np.float32))
    return graph.node("LayerNormalization", x.name, scale, *([bias.name] if bias else []), axis=-1, epsilon=eps)


def rms_norm(graph: Graph, x: Tensor, weight: Tensor, *, eps: float, offset: float = 0, heads: int = 1) -> str:
    """x / sqrt(mean of squares + eps) · (offset + weight) of every head."""
    batch, token, hidden = x.dims
    split = [batch, token, Dim(heads), Dim(hidden.size // heads)]
    each = graph.reshaped(x.name, x.dims, split)
    mean_square = graph.node("ReduceMean", graph.node("Mul", each, each), graph.integers([-1]), keepdims=1)
    root = graph.node("Sqrt", graph.node("Add", mean_square, graph.number(eps)))
    factor = graph.node("Add", weight.name, graph.number(offset)) if offset else weight.name
    return graph.reshaped(graph.node("Mul", graph.node("Div", each, root), factor), split, x.dims)


new_norm = norm  # an op may write over its argument or not; in a graph nothing is written over


def activate(graph: Graph, x: str, activation: str | None) -> str:
    """An activation by its name in config.json."""
    if activation in ("relu", "tanh"):
        return graph.node(activation.capitalize(), x)
    if activation == "gelu":
        return _gelu(graph, x)
    if activation in ("gelu_new", "gelu_pytorch_tanh", "gelu_fast"):
        return _gelu_tanh(graph, x)
    if activation in ("silu", "swish"):
        return graph.node("Mul", x, graph.node("Sigmoid", x))
    if activation is not None:
        raise RuntimeError(f"The activation {activation} has no ONNX rule.")
    return x


def _biased(graph: Graph, x: str, bias: Tensor | None, activation: str | None) -> str:
    return activate(graph, graph.node("Add", x, bias.name) if bias else x, activation)


def _gelu(graph: Graph, x: str) -> str:
    """Gelu; before opset 20, x/2 · (1 + erf(x / √2))"""
    if graph.opset >= 20:
        return graph.node("Gelu", x)
    erf = graph.node("Erf", graph.node("Mul", x, graph.number(1 / sqrt(2))))
    return graph.node("Mul", graph.node("Mul", x, graph.number(0.5)), graph.node("Add", erf, graph.number(1)))


def _gelu_tanh(graph: Graph, x: str) -> str:
    """Gelu by tanh; before opset 20, x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))"""
    if graph.opset >= 20:
        return graph.node("Gelu", x, approximate="tanh")
    cube = graph.node("Mul", x, graph.node("Mul", x, x))
    inner = graph.node("Add", x, graph.node("Mul", cube, graph.number(0.044715)))
    tanh = graph.node("Tanh", graph.node("Mul", inner, graph.number(sqrt(2 / np.pi))))
    return graph.node("Mul", graph.node("Mul", x, graph.number(0.5)), graph.node("Add", tanh, graph.number(1)))


def _scaled(graph: Graph, x: Tensor, terms: float) -> str:
    return graph.node("Mul", x.name, graph.number(1 / sqrt(terms * x.dims[-1].size)))


def _by_distance(graph: Graph, values: Tensor, buckets: int, farthest: int, *, sign: int) -> str:
    """values [batch, head, row, bucket] -> [batch, head, row, column], each at the bucket of sign · (column - row).

    Of 2S columns, one for each distance from -(S - 1) to S, those of a row begin one earlier than those of the row
    before: as rows of 2S - 1 numbers they stand below each other.
    """
    table = values.dims[-1].size
    limit = max(farthest, table) + 1  # all distances beyond have the last bucket
    constant = graph.constant(log_bucket(np.arange(-limit, limit + 1), buckets, table, farthest).astype(np.int64))
    length, step = _length(graph), graph.integers([1])
    double = graph.once("Add", length, length)
    before, narrow = graph.once("Sub", length, step), graph.once("Sub", double, step)
    columns = graph.once("Range", graph.integers(0), graph.once("Squeeze", double), graph.integers(1))
    distance = graph.once("Mul", graph.once("Sub", columns, before), graph.integers(sign))
    near = graph.once("Clip", distance, graph.integers(-limit), graph.integers(limit))
    index = graph.once("Gather", constant, graph.once("Add", near, graph.integers(limit)), axis=0)
    spread = graph.node("Reshape", graph.node("Gather", values.name, index, axis=3), graph.integers([0, 0, -1]))
    end = graph.once("Add", before, graph.once("Mul", length, narrow))
    rows = graph.node("Slice", spread, before, end, graph.integers([2]))
    shape = graph.once("Concat", graph.integers([0, 0, -1]), narrow, axis=0)
    return graph.node("Slice", graph.node("Reshape", rows, shape), graph.integers([0]), length, graph.integers([3]))


def _distances(graph: Graph, queries: Tensor, keys: Tensor) -> str:
    """[query, key]: query - key"""
    query = graph.node("Unsqueeze", queries.name, graph.integers([1]))
    key = graph.node("Unsqueeze", keys.name, graph.integers([0]))
    return graph.node("Sub", query, key)


def _length(graph: Graph) -> str:
    """[1]: tokens of a sentence, with its padding."""
    return graph.once("Shape", IDS, start=1, end=2)


# ----------------------------------------------------------------------------------- what reads a whole sentence


def pooled(graph: Graph, hidden: Tensor, modes: Sequence[str]) -> Tensor:
    """[batch, sequence, hidden] -> [batch, modes · hidden]: of sentence.MODES, side by side."""
    batch, _, width = hidden.dims
    names = [_pooled(graph, hidden.name, mode) for mode in modes]
    name = graph.node("Concat", *names, axis=1) if len(names) > 1 else names[0]
    return Tensor(name, ((batch,), (Dim(width.size * len(names)),)))


def _pooled(graph: Graph, x: str, mode: str) -> str:
    match mode:
        case "mean":
            return mean(graph, x)
        case "mean_sqrt_len":
            return graph.node("Div", _sums(graph, x), graph.node("Sqrt", _counts(graph)))
        case "max":
            least = graph.node("Add", x, _least(graph, tokens(graph)))
            return graph.node("ReduceMax", least, graph.integers([1]), keepdims=0)
        case "cls":
            return graph.node("Gather", x, graph.integers(0), axis=1)
        case "lasttoken":
            return _last(graph, x, MASK)
        case "weightedmean":  # by the place in the sentence, from 1
            place = graph.node("Mul", graph.node("Add", positions(graph), graph.integers(1)), MASK)
            weight = graph.node("Unsqueeze", graph.node("Cast", place, to=FLOAT), graph.integers([2]))
            sums = (
                graph.node("ReduceSum", part, graph.integers([1]), keepdims=0)
                for part in (graph.node("Mul", x, weight), weight)
            )
            return graph.node("Div", *sums)
    raise RuntimeError(f"The pooling {mode} has no nodes.")


def mean(graph: Graph, x: str) -> str:
    """[batch, sequence, hidden] -> [batch, hidden]: the mean of a sentence's tokens; 0 for a sentence without any."""
    return graph.node("Div", _sums(graph, x), _counts(graph))


def unit(graph: Graph, x: Tensor, smallest: float) -> Tensor:
    """x / max(|x|, smallest) of every row."""
    length = graph.node("ReduceL2", x.name, graph.integers([1]), keepdims=1)
    return x._replace(name=graph.node("Div", x.name, graph.node("Max", length, graph.number(smallest))))


def first(graph: Graph, x: Tensor, width: int) -> Tensor:
    """The first numbers of every row."""
    if x.dims[1].size == width:
        return x
    cut = graph.node("Slice", x.name, graph.integers([0]), graph.integers([width]), graph.integers([1]))
    return Tensor(cut, (x.axes[0], (Dim(width),)))


def column(graph: Graph, x: Tensor, number: int) -> Tensor:
    """[batch, sequence, number] -> [batch, sequence]: one of the numbers of every token."""
    return Tensor(graph.node("Gather", x.name, graph.integers(number), axis=2), x.axes[:1])


def padding(graph: Graph, dims: Sequence[Dim]) -> str:
    """[batch, …, key]: 0 for tokens and -3.4e38 for padding, to be added to scores with these dimensions."""
    symbols = [dim.symbol for dim in dims]
    between = range(symbols.index("batch") + 1, len(symbols) - 1)
    return graph.once("Unsqueeze", _least(graph, _real(graph)), graph.integers([*between]))


def tokens(graph: Graph) -> str:
    """[batch, sequence, 1]: 1 for tokens, 0 for padding."""
    return graph.once("Unsqueeze", _real(graph), graph.integers([2]))


def _real(graph: Graph) -> str:
    return graph.once("Cast", MASK, to=FLOAT)


def _least(graph: Graph, real: str) -> str:
    return graph.once("Mul", graph.once("Sub", graph.number(1), real), graph.number(LEAST))


def _sums(graph: Graph, x: str) -> str:
    return graph.node("ReduceSum", graph.node("Mul", x, tokens(graph)), graph.integers([1]), keepdims=0)


def _counts(graph: Graph) -> str:
    count = graph.once("ReduceSum", tokens(graph), graph.integers([1]), keepdims=0)
    return graph.once("Max", count, graph.number(1))

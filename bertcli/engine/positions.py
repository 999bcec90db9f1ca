"""Position arithmetic of the families other than BERT: the functions behind the ops in network/position_ops.py.

RoBERTa's position ids, the buckets of relative positions (T5's and DeBERTa's differ), masks of sliding windows, rotary
angles, convolutions over neighboring tokens. The frequencies of rotary positions are in rope.py.
"""

from collections.abc import Callable
from functools import lru_cache
from math import log

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view
from numpy.typing import NDArray

from bertcli.engine import kernels
from bertcli.engine.kernels import product
from bertcli.tracing.dispatch import Array, Integers

PADDING = 16  # numbers: a line of the cache


def counted(ids: Integers, offsets: Integers, padding: int) -> Integers:
    """Number the tokens of each sentence from padding + 1, as RoBERTa does; padding tokens get `padding`.

    ids are packed; sentence i begins at `offsets[i]`.
    """
    real = ids != padding
    before = np.concatenate([np.zeros(1, dtype=np.intp), np.cumsum(real)])
    counts = before[1:] - np.repeat(before[offsets[:-1]], np.diff(offsets))
    return np.where(real, counts, 0) + padding


def by_distance(values: Callable[[Integers], Array], queries: Integers, keys: Integers) -> Array:
    """values(query - key) for every query and key: [head, distance] -> [head, query, key].

    If both are consecutive positions, as in a text without masked tokens, each row is the one before it shifted by one.
    Then `values` is called once per distance, and the result is a strided view of its values.
    """
    if _is_run(queries) and _is_run(keys):
        return sliding_window_view(values(_distances(queries, keys)), len(keys), axis=-1)[..., ::-1]
    distances = queries[:, None] - keys
    return values(distances.reshape(-1)).reshape(-1, *distances.shape)


def _is_run(positions: Integers) -> bool:
    return bool((np.diff(positions) == 1).all())


def t5_bucket(distance: Integers, buckets: int, farthest: int) -> Integers:
    """T5's bucket for each distance query - key: half of the `buckets` for each direction.

    In a direction, near distances have half of its buckets, one each; the others are the wider the farther away, and
    the last one has all distances from `farthest` on. The logarithms are float32, as in the published code.
    """
    directed = buckets // 2
    near = directed // 2
    far = np.abs(distance)
    scale = np.float32(log(farthest / near))
    wide = np.log(np.maximum(far, 1).astype(np.float32) / np.float32(near)) / scale * np.float32(directed - near)
    of_direction = np.where(far < near, far, np.minimum(near + wide.astype(np.intp), directed - 1))
    return np.where(distance < 0, directed, 0) + of_direction


def add_to_scores(scores: Array, terms: Array) -> Array:
    """Add terms [..., head, query, key] to scores in place, key by key, which is the order of the scores in memory.

    The terms are a strided view. Without this order NumPy would walk both by their axes, up to 40 times slower.
    """
    by_key = np.moveaxis(scores, -1, -3)
    np.add(by_key, np.moveaxis(terms, -1, -3), out=by_key)
    return scores


def mask_window(
    scores: Array, queries: Integers, keys: Integers, window_left: int | None, window_right: int | None
) -> Array:
    """Set scores [batch, head, query, key] to -∞, in place, where a key lies outside a query's window.

    Only the keys at both ends are looked at: every query sees those in the middle.
    """
    if len(queries) and window_left is not None:
        # Keys that at least the last query does not see.
        first_keys = slice(0, np.searchsorted(keys, queries[-1] - window_left))
        _hide(scores[..., first_keys], queries - keys[first_keys, None] > window_left)
    if len(queries) and window_right is not None:
        # Keys that at least the first query does not see.
        last_keys = slice(np.searchsorted(keys, queries[0] + window_right, "right"), len(keys))
        _hide(scores[..., last_keys], keys[last_keys, None] - queries > window_right)
    return scores


def _hide(scores: Array, unseen: NDArray[np.bool_]) -> None:
    """Set scores to -∞ where `unseen` [key, query] is true; keys come first, as in the scores' memory."""
    if unseen.size:
        np.add(scores, np.where(unseen, np.float32(-np.inf), np.float32(0)).T, out=scores)


Frequencies = tuple[float, ...]  # rotary inverse frequencies, in radians a position: one for each pair of a head


def angles(positions: Integers, inverse_frequencies: Frequencies, scaling: float = 1) -> tuple[Array, Array]:
    """Cosines and sines [size / 2, token] of position · inverse frequency, both multiplied by `scaling`."""
    longest = int(positions.max(initial=0)) + 1
    # Up to the next power of two, so that texts of many lengths share a table.
    cosines, sines = _angle_table(inverse_frequencies, 1 << (longest - 1).bit_length(), scaling)
    if len(positions) and _is_run(positions):
        rows = slice(int(positions[0]), longest)
        return cosines[:, rows], sines[:, rows]
    return cosines[:, positions], sines[:, positions]


@lru_cache(maxsize=8)
def _angle_table(inverse_frequencies: Frequencies, count: int, scaling: float) -> tuple[Array, Array]:
    """Cosines and sines [size / 2, position] for the positions 0 to count - 1."""
    radians = np.array(inverse_frequencies, dtype=np.float32)[:, None] * np.arange(count, dtype=np.float32)
    return np.cos(radians) * np.float32(scaling), np.sin(radians) * np.float32(scaling)


def rotate(x: Array, cosines: Array, sines: Array, heads: int) -> Array:
    """Rotate x [token, head·size] in place: the halves (a, b) of each head become (a cos - b sin, b cos + a sin)."""
    for head in np.split(x.T, heads):  # [size, token], where each pair's tokens are adjacent
        a, b = np.split(head, 2)
        rotated_b = b * cosines
        rotated_b += a * sines
        a *= cosines
        a -= np.multiply(b, sines, out=b)
        b[...] = rotated_b
    return x


def by_bucket(values: Array, queries: Integers, keys: Integers, buckets: int, farthest: int, *, of_keys: bool) -> Array:
    """Pick for each query and key the value at the bucket of query - key (DeBERTa's disentangled attention).

    values [batch, head, row, bucket] -> [batch, head, query, key]; rows are queries, or keys if `of_keys`.
    """
    if _is_run(queries) and _is_run(keys):
        # Pick once per distance; the result is a strided view of that, in which each query's row is shifted by one.
        index = deberta_bucket(_distances(queries, keys), buckets, values.shape[-1], farthest)
        # A row length that is a power of two would put all queries on the same cache lines.
        padded = np.append(index, index[:PADDING])
        spread = np.take(values, padded, axis=-1)[..., len(keys) - 1 :]
        row, distance = spread.strides[-2:]  # one query further is one distance more, one key further is one less
        steps = (distance, row - distance) if of_keys else (row + distance, -distance)
        shape = (*spread.shape[:-2], len(queries), len(keys))
        return as_strided(spread, shape, (*spread.strides[:-2], *steps), writeable=False)
    index = deberta_bucket(queries[:, None] - keys, buckets, values.shape[-1], farthest)
    if of_keys:
        return np.take_along_axis(values, index.T[None, None], axis=-1).swapaxes(-1, -2)
    return np.take_along_axis(values, index[None, None], axis=-1)


def _distances(queries: Integers, keys: Integers) -> Integers:
    """All distances query - key of two runs of positions, ascending."""
    return np.arange(queries[0] - keys[-1], queries[-1] - keys[0] + 1)


def deberta_bucket(distance: Integers, buckets: int, table: int, farthest: int) -> Integers:
    """DeBERTa's bucket for each distance query - key, as a row of a table with `table` rows.

    Near distances have a bucket each, farther ones share; with `buckets` 0 every distance has its own. The logarithms
    are float32, as in the published code.
    """
    bucket = distance
    if buckets > 0:
        middle = buckets // 2
        far = np.maximum(np.abs(distance), middle - 1).astype(np.float32)
        scale = np.log(np.float32((farthest - 1) / middle))
        wide = np.ceil(np.log(far / np.float32(middle)) / scale * np.float32(middle - 1)) + middle
        bucket = np.where(np.abs(distance) <= middle, distance, np.sign(distance) * wide).astype(np.intp)
    return np.clip(bucket + table // 2, 0, table - 1)


def near_buckets(table: Array, max_distance: int, buckets: int, farthest: int) -> Array:
    """Cut a table with a row for each of DeBERTa's buckets to the rows that distances up to `max_distance` need."""
    middle = len(table) // 2
    last = int(deberta_bucket(np.array(max_distance), buckets, len(table), farthest))
    each_way = last - middle + 1
    return table if each_way == middle else table[middle - each_way : middle + each_way]


def convolved(
    x: Array, weight: Array, bias: Array, first: Integers, positions: Integers, activation: str | None
) -> Array:
    """Compute the op `convolve`: one matrix product for each offset in the window, on tokens shifted by it.

    x [token, in], weight [out, in, width]; `first` is the row of each sentence's first token, and no sentence sees
    another. positions [token]: a position that a mask leaves out counts as zeros, so the rows beside it are no
    neighbors.
    """
    width = weight.shape[-1]
    middle = width // 2
    sentence = np.zeros(len(x), dtype=np.intp)
    sentence[first[1:]] = 1
    sentence = np.cumsum(sentence)  # the number of each token's sentence
    y = product(x, weight[..., middle], bias, None)
    for tap in range(width):
        offset = tap - middle
        # Without masked tokens the token at this offset is so many rows away, with some fewer rows.
        for count in range(1, abs(offset) + 1):
            shift = count if offset > 0 else -count
            rows = np.arange(max(0, -shift), len(x) - max(0, shift))
            others = rows + shift
            rows = rows[(sentence[rows] == sentence[others]) & (positions[others] - positions[rows] == offset)]
            if len(rows):
                y.T[:, rows] += product(x.T[:, rows + shift].T, weight[..., tap], None, None).T
    return kernels.activate(y, activation)

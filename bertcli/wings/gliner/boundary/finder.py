"""`BoundaryFinder`: entities by GLiNER2.5's scores of a pool of spans; `BoundaryCandidates`: scores of candidates.

Prompt, words and windows are those of GLiNER2. Of entities that overlap the library keeps those whose scores have the
largest sum, for each type by itself, as `multi_label` does here; without it, of all types together.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from bertcli.engine.packing import Packed, pack
from bertcli.engine.pauses import check_wanted
from bertcli.tokens import Tokens
from bertcli.tracing.dispatch import Array
from bertcli.wings.gliner.schema.candidates import SchemaCandidates
from bertcli.wings.gliner.schema.finder import SchemaFinder, SchemaWindow
from bertcli.wings.gliner.spans.finder import SCORES_OF_A_TOKEN, THRESHOLD, ScoredSpan, choose


@dataclass(frozen=True, eq=False, repr=False)
class BoundaryFinder(SchemaFinder):
    """Finds the spans of words that a request asks for."""

    def cost(self, text: str, tokens: Tokens) -> int:
        """The tokens of all windows, and the scores of their pools."""
        counts = [len(piece.ids) for piece in self.pieces(text, tokens)]
        around, of_pool = self.options.limit - self.room, self.settings.pool_size * len(self.options.labels)
        windows = self._slices(counts)
        in_windows = sum(around + sum(counts[some]) for some in windows)
        return in_windows + len(windows) * of_pool // SCORES_OF_A_TOKEN or len(tokens.ids)

    def logits(self, windows: Sequence[Any], hidden_states: Callable[[Packed], Array]) -> list[Array]:
        """Compute of each window [type, first word, last word, logit] of the spans of its pool.

        Types that the network says are absent have none.
        """
        network: Any = self.model.network
        packed = pack(windows)
        rows = self.rows(windows, packed.offsets[:-1].tolist())
        hidden = hidden_states(packed)
        pool, offsets, logits = network.scored(hidden, rows)
        count = len(self.types)
        absent = np.zeros((len(windows), count), np.bool_)
        if network.absence is not None:
            chances = 1 / (1 + np.exp(-network.absence(hidden, rows).astype(np.float64)))
            absent = chances.reshape(absent.shape) > self.settings.abstention_threshold
        found = []
        spans = np.searchsorted(pool.sentences, np.arange(len(windows) + 1)).tolist()
        for window, (first, last) in enumerate(pairwise(spans)):
            begin = offsets[window]
            of_span, type = np.nonzero(~np.broadcast_to(absent[window], (last - first, count)))
            of_span = of_span + first
            columns = type, pool.starts[of_span] - begin, pool.ends[of_span] - begin - 1, logits[of_span, type]
            found.append(np.stack(columns, axis=1).astype(np.float32))
        return found

    def chosen(self, spans: Sequence[ScoredSpan]) -> list[ScoredSpan]:
        """Choose spans that do not overlap, or, where entities may lie in others, do not cross."""
        if self.options.nested or self.settings.overlap_policy == "nested":
            return choose(spans, nested=True, multi_label=False)
        return heaviest(spans)

    def _above(self, window: SchemaWindow, logits: Array) -> Iterator[ScoredSpan]:
        """Yield the spans of at least the threshold."""
        threshold = THRESHOLD if self.options.threshold is None else self.options.threshold
        last = window.own - 1
        scaled = logits[:, 3].astype(np.float64) / self.settings.pair_temperature
        probabilities = 1 / (1 + np.exp(-scaled))
        for row in np.flatnonzero(probabilities >= threshold).tolist():
            type, start, end = logits[row, :3].astype(int).tolist()
            if start <= last:
                first, score = window.first, float(probabilities[row])
                yield ScoredSpan(start + first, min(end, last) + first, self.types[type].name, score)


@dataclass(frozen=True, eq=False, repr=False)
class BoundaryCandidates(SchemaCandidates):
    """Scores candidates as GLiNER2 does."""

    def logits(self, windows: Sequence[Any], hidden_states: Callable[[Packed], Array]) -> list[Array]:
        """Compute the logits of each sentence, divided by the temperature: [candidate]."""
        temperature = np.float32(self.settings.classification_temperature)
        return [logits / temperature for logits in super().logits(windows, hidden_states)]


def heaviest(spans: Sequence[ScoredSpan]) -> list[ScoredSpan]:
    """Choose spans that do not overlap and whose scores have the largest sum; in the order of the text.

    Of equal sums that of more spans.
    """
    ranked = sorted(spans, key=lambda span: (-span.score, span.start, span.end))
    distinct = {(span.start, span.end): span for span in reversed(ranked)}
    by_end = sorted(distinct.values(), key=lambda span: (span.end, span.start))
    ends = [span.end for span in by_end]
    # Of the first spans by their ends, the best sum, and the last span of it with the place of what is before.
    sums, counts = [0.0], [0]
    last: list[int | None] = [None]
    for number, span in enumerate(by_end):
        check_wanted()
        before = bisect_right(ends, span.start - 1, 0, number)
        with_span = sums[before] + span.score, counts[before] + 1
        better = with_span > (sums[number], counts[number])
        sums.append(with_span[0] if better else sums[number])
        counts.append(with_span[1] if better else counts[number])
        last.append(number if better else last[number])
    chosen = []
    place = last[-1]
    while place is not None:
        span = by_end[place]
        chosen.append(span)
        place = last[bisect_right(ends, span.start - 1, 0, place)]
    return chosen[::-1]

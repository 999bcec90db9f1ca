"""Batches without padding, each a function of (seed, step): pairs, runs of one document, and single sentences."""

from typing import NamedTuple

import numpy as np
from corpus import CLS, MASK, SEP, SPECIAL, Stream
from numpy.random import Generator
from numpy.typing import NDArray

SENTENCE_LENGTHS = range(5, 41)  # pieces of a sentence that is shown alone
BARE = 0.9  # of the training, from which on some sentences come without their full stop
ALIGN = 32  # a window moves to a sentence's start if one is this near


class Batch(NamedTuple):
    """ids, segments [batch, length]; rows [batch, 1 + masked]: column 0 is [CLS], the rest masked positions;
    targets [batch, masked] their pieces; follows [batch]: 0 follows, 1 does not; None where there are no pairs.
    """

    ids: NDArray[np.int64]
    segments: NDArray[np.int64]
    rows: NDArray[np.int64]
    targets: NDArray[np.int64]
    follows: NDArray[np.int64] | None


class Sampler:
    """Draws batches from a stream."""

    def __init__(self, stream: Stream, vocab_size: int, line_sources: set[int]) -> None:
        self.stream = stream
        self.vocab_size = vocab_size
        self.begins = np.append(0, stream.ends[:-1])
        running = ~np.isin(stream.source, list(line_sources)) & (stream.ends - self.begins > 80)
        self.runs = np.flatnonzero(running)
        self.run_ends = np.cumsum((stream.ends - self.begins)[self.runs])
        self.sentences = self._sentences()

    def _sentences(self) -> dict[int, NDArray[np.int64]]:
        starts = np.unique(self.stream.next_start).astype(np.int64)
        lengths = np.diff(starts)
        return {length: starts[:-1][lengths == length] for length in SENTENCE_LENGTHS if (lengths == length).any()}

    def _span(self, rng: Generator, length: int) -> tuple[int, int]:
        """(start, document) of a random run of pieces inside one document, at a sentence's start where one is near."""
        while True:
            place = int(rng.integers(self.run_ends[-1]))
            index = int(np.searchsorted(self.run_ends, place, "right"))
            document = int(self.runs[index])
            begin, end = int(self.begins[document]), int(self.stream.ends[document])
            if end - begin < length:
                continue
            start = min(begin + place - (int(self.run_ends[index]) - (end - begin)), end - length)
            near = int(self.stream.next_start[start])
            return (near if near - start <= ALIGN and near + length <= end else start), document

    def runs_of_text(self, rng: Generator, count: int, length: int, rate: float) -> Batch:
        """[CLS] text [SEP] of one document each; no next-sentence question."""
        ids = np.empty((count, length), np.int64)
        for row in range(count):
            start, _ = self._span(rng, length - 2)
            ids[row, 1:-1] = self.stream.ids[start : start + length - 2]
        ids[:, 0], ids[:, -1] = CLS, SEP
        return self.mask(rng, ids, np.zeros_like(ids), None, rate)

    def single_sentences(self, rng: Generator, pieces: int, rate: float, bare: bool = False) -> Batch:
        """[CLS] sentence [SEP]: sentences of one length, the length drawn by how many pieces such sentences hold.

        `bare`: without their last piece, a full stop nearly always, as people type them.
        """
        lengths = np.array(list(self.sentences))
        weight = np.array([len(self.sentences[length]) * length for length in lengths], float)
        length = int(rng.choice(lengths, p=weight / weight.sum()))
        starts = rng.choice(self.sentences[length], pieces // (length + 2))
        length -= bare
        ids = np.empty((len(starts), length + 2), np.int64)
        ids[:, 1:-1] = self.stream.ids[starts[:, None] + np.arange(length)]
        ids[:, 0], ids[:, -1] = CLS, SEP
        return self.mask(rng, ids, np.zeros_like(ids), None, rate)

    def pairs(self, rng: Generator, count: int, length: int, rate: float) -> Batch:
        """[CLS] A [SEP] B [SEP]: B is what follows A, or for every other row a run of another document."""
        ids = np.empty((count, length), np.int64)
        segments = np.zeros((count, length), np.int64)
        follows = np.arange(count) % 2
        width = length - 3
        for row in range(count):
            start, document = self._span(rng, width)
            cut = int(rng.integers(width // 3, width - width // 3))
            near = int(self.stream.next_start[start + width // 3]) - start
            later = int(self.stream.next_start[start + cut]) - start
            cut = later if later < width - width // 3 else near if near < width - width // 3 else cut
            second, other = start + cut, document
            while follows[row] and other == document:
                second, other = self._span(rng, width - cut)
            ids[row, 1 : cut + 1] = self.stream.ids[start : start + cut]
            ids[row, cut + 1] = SEP
            ids[row, cut + 2 : -1] = self.stream.ids[second : second + width - cut]
            segments[row, cut + 2 :] = 1
        ids[:, 0], ids[:, -1] = CLS, SEP
        return self.mask(rng, ids, segments, follows, rate)

    def mask(
        self,
        rng: Generator,
        ids: NDArray[np.int64],
        segments: NDArray[np.int64],
        follows: NDArray[np.int64] | None,
        rate: float,
    ) -> Batch:
        """The same share of every row is asked for: 80 % become [MASK], 10 % a random piece, 10 % stay."""
        chosen = max(1, round(rate * ids.shape[1]))
        order = rng.random(ids.shape)
        order[(ids == CLS) | (ids == SEP)] = 2
        places = np.argpartition(order, chosen - 1, axis=1)[:, :chosen]
        targets = np.take_along_axis(ids, places, 1)
        fate = rng.random(places.shape)
        other = rng.integers(len(SPECIAL), self.vocab_size, places.shape)
        shown = np.where(fate < 0.8, MASK, np.where(fate < 0.9, other, targets))
        ids = ids.copy()
        np.put_along_axis(ids, places, shown, 1)
        rows = np.concatenate([np.zeros((len(ids), 1), np.int64), places], 1)
        return Batch(ids, segments, rows, targets, follows)


def draw(sampler: Sampler, seed: int, step: int, fraction: float) -> Batch:
    """The batch of a step, about 4,096 pieces, when `fraction` of the training is over.

    One step in four shows single sentences, one in eight runs of one document, the others pairs. 64 pieces, every
    eighth 128; in the last quarter 128, every third 256. The masked share falls from 25 % to 15 %. In the last tenth
    half of the single sentences have no full stop: before, a mask at the end of a text has learned to be one.
    """
    rng = np.random.default_rng((seed, step))
    rate = 0.25 - 0.10 * fraction
    length = (64, 128)[step % 8 == 0] if fraction < 0.75 else (128, 256)[step % 3 == 0]
    kind = rng.integers(8)
    if kind < 2:
        return sampler.single_sentences(rng, 4096, rate, bare=kind == 0 and fraction > BARE)
    return (sampler.runs_of_text if kind == 2 else sampler.pairs)(rng, 4096 // length, length, rate)

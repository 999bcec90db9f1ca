"""Words in passages: BM25, and the fusion of two rankings.

    bm25(q, d) = Σ_w in q  idf(w) · f (k1 + 1) / (f + k1 (1 − b + b |d| / mean |d|)),    f: how often w is in d
    idf(w)     = ln(1 + (N − n + 1/2) / (n + 1/2)),                                      n: passages that have w

Robertson and Zaragoza 2009, with the idf of Lucene, which is never negative; fusion is that of Cormack et al. 2009.
"""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bertcli.ranking import best_first

K1, B = 1.2, 0.75
FUSION = 60  # added to ranks, so that the first places of one ranking do not decide alone
WORD = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    """The words of a text, without case."""
    return [match[0].casefold() for match in WORD.finditer(text)]


class Keywords:
    """The words of passages, counted."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._counts = [Counter(words_of(text)) for text in texts]
        self._lengths = np.array([counts.total() for counts in self._counts], np.float64)
        self._passages_with = Counter(word for counts in self._counts for word in counts)

    def idf(self, word: str) -> float:
        """Compute a word's inverse document frequency, as BM25 defines it."""
        count = self._passages_with[word]
        return float(np.log1p((len(self._counts) - count + 0.5) / (count + 0.5)))

    def bm25(self, query: str) -> NDArray[np.float64]:
        """The score of each passage; 0 where no word of the query is in it."""
        scores = np.zeros(len(self._counts))
        mean = max(float(self._lengths.mean()) if len(scores) else 0.0, 1.0)
        norms = K1 * (1 - B + B * self._lengths / mean)
        for word in words_of(query):
            if self._passages_with[word]:
                often = np.array([counts[word] for counts in self._counts], np.float64)
                scores += self.idf(word) * often * (K1 + 1) / (often + norms)
        return scores

    def has_all(self, query: str) -> NDArray[np.bool_]:
        """True for each passage with every word of the query; false for all if it has no word."""
        words = {*words_of(query)}
        return np.array([bool(words) and words <= counts.keys() for counts in self._counts], bool)


def fused(similarities: NDArray[np.float64], keywords: NDArray[np.float64]) -> NDArray[np.float64]:
    """Reciprocal rank fusion: the sum of 1 / (60 + rank); keywords rank only the passages that have one."""
    scores = np.zeros(len(similarities))
    for values, ranked in ((similarities, len(similarities)), (keywords, int((keywords > 0).sum()))):
        order = best_first(values, ranked)
        scores[order] += 1 / (FUSION + 1 + np.arange(len(order)))
    return scores

"""`SpanRows`: the rows of a packed batch that stand for words and labels, and the spans of words that are scored.

network.py computes with them; finder.py makes them of texts.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bertcli.tracing.dispatch import Integers


class SpanRows(NamedTuple):
    """The words, labels and spans of a batch. Every sentence has as many labels, and at least one word.

    words, labels   the packed rows of tokens that stand for words and for labels, ascending
    offsets         where the words of each sentence begin, and where the last ones end
    starts, ends    the first and the last word of each span, counted through the batch; those of a start by length
    sentences       the sentence of each span, ascending
    """

    words: Integers
    labels: Integers
    offsets: Integers
    starts: Integers
    ends: Integers
    sentences: Integers

    @classmethod
    def of(cls, words: Sequence[Integers], labels: Sequence[Integers], longest: int) -> "SpanRows":
        """Make the rows of sentences, each with its rows of words and of labels; spans have up to `longest` words.

        A sentence of three words has, with `longest` 2, the spans 0-0, 0-1, 1-1, 1-2 and 2-2.
        """
        counts = np.array([len(rows) for rows in words], np.intp)
        offsets = np.cumsum(np.append(0, counts))
        # For each word: its number in the batch, its sentence, the last word of that, and how many spans begin with it.
        numbers = np.arange(offsets[-1])
        sentence_of_word = np.repeat(np.arange(len(counts)), counts)
        last_of_sentence = offsets[1:][sentence_of_word] - 1
        span_counts = np.minimum(longest, last_of_sentence - numbers + 1)
        # For each span: its first word, and how many spans of that word come before it, which is its length less 1.
        starts = np.repeat(numbers, span_counts)
        first_spans = np.repeat(np.cumsum(span_counts) - span_counts, span_counts)
        ends = starts + np.arange(len(starts)) - first_spans
        sentences = np.repeat(sentence_of_word, span_counts)
        return cls(np.concatenate(words), np.concatenate(labels), offsets, starts, ends, sentences)


def rows_of_pass(ids: Integers, offsets: Integers, mark: int, longest: int) -> SpanRows:
    """Make the rows of a pass whose words are not known, such as a trace: every token counts as a word.

    Labels are the marks (id `mark`), words what follows the separator (mark + 1) up to the last token, a special one.
    Without a mark, or where sentences have different numbers of them, the first token is the label of each.
    """
    spans = [range(first, last) for first, last in pairwise(offsets.tolist())]
    marks = [np.array([row for row in rows if ids[row] == mark], np.intp) for rows in spans]
    if not spans or not len(marks[0]) or len({len(rows) for rows in marks}) > 1:
        marks = [np.array([rows[0]], np.intp) for rows in spans]
    words = []
    for rows in spans:
        separators = [row for row in rows if ids[row] == mark + 1]
        first = separators[-1] + 1 if separators else rows[0] + 1
        inside = np.arange(first, rows[-1], dtype=np.intp)
        words.append(inside if len(inside) else np.array([rows[-1]], np.intp))
    return SpanRows.of(words, marks, longest)

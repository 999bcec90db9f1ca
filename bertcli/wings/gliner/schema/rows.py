"""`SchemaRows`: the rows of a packed batch that stand for words, types and their task.

network.py computes with them; finder.py makes them of texts.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bertcli.tracing.dispatch import Integers
from bertcli.wings.gliner.spans.rows import SpanRows


class SchemaRows(NamedTuple):
    """The words, the types (or candidates) and the task of each sentence. Every sentence has as many types.

    spans   the rows of words and types, and the spans of words
    tasks   the packed row of the mark of each sentence's task, ascending
    """

    spans: SpanRows
    tasks: Integers

    @classmethod
    def of(
        cls, words: Sequence[Integers], labels: Sequence[Integers], tasks: Sequence[int], longest: int
    ) -> "SchemaRows":
        """Make the rows of sentences; spans have up to `longest` words."""
        return cls(SpanRows.of(words, labels, longest), np.array(tasks, np.intp))


def rows_of_pass(ids: Integers, offsets: Integers, task: int, label: int, separator: int, longest: int) -> SchemaRows:
    """Make the rows of a pass whose words are not known, such as a trace: every token counts as a word.

    task, label, separator: the ids of the marks of a task and of a type, and that before the text. A sentence's first
    token stands for its task if it has none, and for its only type if sentences have none, or different numbers of
    them. Words are what follows the separator; of a sentence without one, all tokens.
    """
    words, labels, tasks = list[Integers](), list[Integers](), list[int]()
    for first, last in pairwise(offsets.tolist()):
        rows = np.arange(first, last)
        of_task, of_labels, separators = (rows[ids[first:last] == id] for id in (task, label, separator))
        tasks.append(int(of_task[0]) if len(of_task) else first)
        labels.append(of_labels)
        inside = rows[rows > separators[-1]] if len(separators) else rows
        words.append(inside if len(inside) else rows[-1:])
    if not labels or not len(labels[0]) or len({len(rows) for rows in labels}) > 1:
        labels = [np.array([first], np.intp) for first in offsets[:-1].tolist()]
    return SchemaRows.of(words, labels, tasks, longest)

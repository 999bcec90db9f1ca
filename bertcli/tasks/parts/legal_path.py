"""tag --decode legal: of all sequences of labels that the scheme allows, the likeliest (Viterbi 1967).

A sequence is as likely as the product of its labels' probabilities, which the network gives of each token by itself.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from bertcli.tasks.parts.label_schemes import NO_ENTITY, LabelSet, Tag
from bertcli.tasks.running.batches import Numbers

# In place of a probability of 0, whose logarithm is none.
LEAST = 1e-300


def may_follow(before: Tag, after: Tag, labels: LabelSet) -> bool:
    """True if a scheme allows one label after another; NO_ENTITY also stands for the ends of a text.

    I and E continue an entity of their type; I may begin one if the type has no B. Where the type has E, an entity
    that has begun goes on until E. Labels alone do not tell IOB1 from IOB2: with B and I, an entity begins with B.
    """
    same = before.type == after.type and before.prefix in ("B", "I")
    if after.prefix in ("I", "E") and not same:
        may_begin = after.prefix == "I" and "B" not in labels.prefixes_of_types[after.type]
        if not may_begin:
            return False
    must_go_on = before.prefix in ("B", "I") and "E" in labels.prefixes_of_types[before.type]
    return not must_go_on or (same and after.prefix in ("I", "E"))


def legal_path(
    probabilities: Numbers,
    likeliest: Sequence[int],
    labels: LabelSet,
    in_word: Sequence[bool],
    *,
    is_first: bool = True,
    is_last: bool = True,
) -> list[int]:
    """Choose a label, by its number, for each row of probabilities [token, label].

    likeliest: the labels that are taken one by one; they stay if they are legal, or if no sequence is.
    in_word: for each token, whether it continues the word of the one before; it may then have the same label, whatever
    that is. is_first, is_last: the rows begin or end with the text; where a text is cut, an entity may go on.
    """
    tags = [labels.tags[label] for label in labels.labels]
    allowed = np.array([[may_follow(before, after, labels) for after in tags] for before in tags])
    begins = np.array([not is_first or may_follow(NO_ENTITY, tag, labels) for tag in tags])
    ends = np.array([not is_last or may_follow(tag, NO_ENTITY, labels) for tag in tags])
    steps = [allowed | np.eye(len(tags), dtype=bool) if continues else allowed for continues in in_word]
    pairs = zip(pairwise(likeliest), steps[1:], strict=True)
    if not likeliest or (
        begins[likeliest[0]] and ends[likeliest[-1]] and all(step[before, after] for (before, after), step in pairs)
    ):
        return [*likeliest]
    scores = np.log(np.maximum(probabilities.astype(np.float64), LEAST))
    # Of the best sequence that ends in each label: its score so far, and the label before its last.
    best = np.where(begins, scores[0], -np.inf)
    came_from = []
    for row, step in zip(scores[1:], steps[1:], strict=True):
        reached = np.where(step, best[:, None], -np.inf)
        came_from.append(reached.argmax(axis=0))
        best = reached.max(axis=0) + row
    best = np.where(ends, best, -np.inf)
    label = int(best.argmax())
    if best[label] == -np.inf:
        return [*likeliest]
    path = [label]
    for before in reversed(came_from):
        path.append(int(before[path[-1]]))
    return path[::-1]

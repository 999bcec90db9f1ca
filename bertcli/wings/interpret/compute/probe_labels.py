"""Check labels before a probe is made of them: as many as texts, more than one, enough texts of each for the folds."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from bertcli.errors import BertcliError, number_of, quoted
from bertcli.files.texts import Text
from bertcli.wings.interpret.compute.layer_states import names_in
from bertcli.wings.interpret.specs.probe import ProbeOptions


def is_multi_label(options: ProbeOptions) -> bool:
    """True if a text may have several labels: some label is a list. A word's tags are never lists."""
    return not options.words and any(isinstance(label, list) for label in options.labels)


def check_labels(rows: Sequence[Text], labels: Sequence[Any], words: Sequence[Any], options: ProbeOptions) -> None:
    """Raise BertcliError for labels that no probe can be made of, before any text is computed."""
    of_other_length = any(len(of_text) != len(tags) for of_text, tags in zip(words, labels, strict=False))
    if len(labels) != len(rows) or of_other_length:
        raise BertcliError(f"{len(labels)} labels do not fit {len(rows)} texts: give one for each text, or word.")
    if options.clusters is not None and len(options.clusters) != len(rows):
        raise BertcliError(f"{len(options.clusters)} clusters do not fit {len(rows)} texts: give one for each text.")
    if words or not labels:
        of_items = [[names_in(tag) for tag in tags] for tags in labels]
    else:
        of_items = [[names_in(label)] for label in labels]
    check_counts(of_items, options, is_multi_label(options))


def check_clusters(count: int, options: ProbeOptions) -> None:
    """Raise BertcliError for fewer clusters than folds."""
    if count < options.folds:
        raise BertcliError(
            f"{number_of(count, 'cluster')} cannot be divided among {options.folds} folds: give fewer folds (--folds), "
            "or a field with more values (--cluster)."
        )


def check_counts(labels: Sequence[Sequence[Sequence[str]]], options: ProbeOptions, multi_label: bool) -> None:
    """Raise BertcliError for too few labels, or too few texts for the folds; labels [text, item] are sets of names."""
    counts = Counter(name for of_text in labels for names in of_text for name in names)
    if len(counts) < 2:
        here = f"the only one here is {quoted(*counts)}" if counts else "there is none"
        raise BertcliError(f"A probe needs two labels or more, and {here}.")
    least, of = len(labels), ""
    if not options.words:
        rarest = min(sorted(counts), key=counts.__getitem__)
        least, of = counts[rarest], f" with the label {quoted(rarest)}"
    if least < options.folds:
        raise BertcliError(
            f"{number_of(least, 'text')}{of} cannot be divided among {options.folds} folds: give more texts, or fewer "
            "folds (--folds)."
        )
    everywhere = [name for name, count in counts.items() if count == len(labels)]
    if multi_label and everywhere:
        raise BertcliError(
            f"Every text has the label {quoted(everywhere[0])}, so a probe has nothing to learn: leave it out."
        )

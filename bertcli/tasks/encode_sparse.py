"""encode --sparse: a text's weight of every entry of the vocabulary."""

from dataclasses import dataclass

from bertcli.files.texts import Pairs
from bertcli.tasks.options import Prepared


@dataclass(frozen=True, eq=False)
class EncodeSparseOptions(Prepared):
    """How a text's sparse vector is made; `words`: records have the pieces of the vocabulary beside their numbers."""

    pairs: Pairs = None
    words: bool = False

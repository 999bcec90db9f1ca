"""fill-mask: the words that a model predicts for a mask."""

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass

from bertcli.files.texts import Pairs
from bertcli.tasks.options import Reading, option


@dataclass(frozen=True, eq=False)
class FillMaskOptions(Reading):
    """Which words are tried."""

    top_k: int | None = option(None, "K", "How many words per mask. (default: 5, or all targets)", least=1)
    targets: Iterable[str] | str | None = option(
        None, "A,B,C", "Rank only these words; a word of several pieces is scored as a whole.", read=str
    )
    joint: bool = option(
        False, "", "Fill all masks of a text together: row k of each is the k-th best filling, of 250 at most."
    )
    _: KW_ONLY
    pairs: Pairs = None

"""score: how probable each token of a text is, given all the others."""

from dataclasses import dataclass

from bertcli.files.texts import Pairs
from bertcli.tasks.options import Reading, option


@dataclass(frozen=True, eq=False)
class ScoreOptions(Reading):
    """What is scored."""

    pairs: Pairs = None
    target: str | None = option(None, "TEXT", "The true sentence: score only the tokens that the text has masked.")

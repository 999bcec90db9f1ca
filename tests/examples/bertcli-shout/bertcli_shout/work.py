"""The work of the task shout."""

from collections.abc import Iterator
from dataclasses import dataclass

from bertcli.files.texts import Item
from bertcli.loaded_model import LoadedModel
from bertcli.tasks.running.task import Record, RecordTask
from bertcli_shout.shout import ShoutOptions


@dataclass(frozen=True, eq=False, repr=False)
class ShoutTask(RecordTask):
    """Pieces in capitals."""

    most: int | None = None

    def records(self, items: list[Item]) -> Iterator[Record]:
        """A record for each text."""
        for item in items:
            _, *pieces, _ = item.tokens.pieces
            yield {
                "index": item.index,
                "text": item.text.text,
                "truncated": bool(item.tokens.truncated),
                "shouted": [piece.upper() for piece in pieces][: self.most],
            }


def plan(model: LoadedModel, options: ShoutOptions) -> ShoutTask:
    """Make the task from a model and its options."""
    return ShoutTask(model, options.read_options, options.most)

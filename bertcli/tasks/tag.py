"""tag: the entities of texts of any length, or the label of every piece."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

from bertcli.errors import BertcliError, shown_object
from bertcli.files.texts import Text, Texts, from_values
from bertcli.tasks.activation import activated
from bertcli.tasks.checks import check_choice, check_whole, head_of
from bertcli.tasks.entities import (
    Aggregation,
    Entity,
    Piece,
    Probabilities,
    continues,
    entities,
    merged,
    merged_pieces,
)
from bertcli.tasks.run import results
from bertcli.tasks.task import Item, Options, Reading, Record, Records, RecordStream, Task, Window
from bertcli.tokens import Tokens

if TYPE_CHECKING:
    from bertcli.model import Model

SPAN = 5  # micro-batches in a window of the run, as in classify
OUTSIDE = ("O",)


class TagOptions(Options, total=False):
    """The keywords of `tag`."""

    aggregation: Aggregation
    ignore: Iterable[str]
    stride: int | None


def tag(
    model: Model,
    texts: Iterable[str] | Texts,
    *,
    aggregation: Aggregation = "simple",
    ignore: Iterable[str] = OUTSIDE,
    stride: int | None = None,
    **options: Unpack[Options],
) -> RecordStream:
    """Records {index, text, truncated, entities: [{entity_group, score, word, start, end}, …]}.

    start and end count characters of the text. aggregation: how pieces become entities (see
    `bertcli.tasks.entities.entities`); with "none" every piece is {entity, score, index, word, start, end}, and index
    counts special tokens, too. Labels in `ignore` are left out.

    A text of more than `max_length` tokens (None: the model's limit) is read in windows of that many, of which `stride`
    (None: a quarter) overlap; of entities that overlap the longer, then the likelier one is kept. So nothing is cut.
    The other options are those of `Reading`.
    """
    head_of(model, "token_classifier", "tag")
    check_choice("aggregation", aggregation, Aggregation)
    check_whole("stride", stride)
    reading = Reading(**options, truncation="silent")
    if not isinstance(ignore, Iterable):
        raise BertcliError(f"ignore is {shown_object(ignore)}, which is no list of labels.")
    ignored = (ignore,) if isinstance(ignore, str) else tuple(ignore)
    task = _Tag(model, reading, SPAN, aggregation or "simple", ignored, stride)
    return RecordStream(results(task, from_values(texts)))


@dataclass(frozen=True, eq=False)
class _Tag(Task[Records]):
    aggregation: Aggregation
    ignore: tuple[str, ...]
    stride: int | None

    def __post_init__(self) -> None:
        super().__post_init__()
        room = self.limit - self.model.tokenizer.special_count(paired=False)
        if room < 1:
            raise BertcliError(
                f"max_length (--max-length) {self.limit} is too small: a window needs a token beside its special ones."
            )
        if not 0 <= self.overlap < room:
            raise BertcliError(
                f"stride (--stride) is {self.overlap}, but a window of {self.limit} tokens has {room} of the text: "
                f"choose 0 to {room - 1}."
            )

    @property
    def overlap(self) -> int:
        """How many tokens of a window are in the next one, too."""
        return self.limit // 4 if self.stride is None else self.stride

    def tokens(self, texts: Sequence[Text]) -> list[Tokens]:
        return self.model.tokenizer.encode([text.text for text in texts])

    def check(self, item: Item) -> None:
        if item.text.pair is not None:
            raise BertcliError(f"tag reads single texts, and {item.place} has a second one.")

    def compute(self, window: Window) -> Records:
        parts = [item.tokens.windows(self.limit, self.overlap) for item in window.items]
        found = iter(self.token_logits("token_classifier", [part for some in parts for part in some]))
        return window.records(
            self._record(item, [self._entities(item, part, activated(next(found), "softmax")) for part in some])
            for item, some in zip(window.items, parts, strict=True)
        )

    def _entities(self, item: Item, part: Tokens, probabilities: Probabilities) -> list[Entity]:
        pieces = list(self._pieces(item.text.text, part))
        rows = probabilities[[place for place, side in enumerate(part.sides) if side is not None]]
        labels, spell = self.model.config.labels, self.model.tokenizer.spelled
        return entities(pieces, rows, labels, self.aggregation, self.ignore, spell)

    def _pieces(self, text: str, part: Tokens) -> Iterator[Piece]:
        tokenizer = self.model.tokenizer
        columns = zip(part.ids, part.pieces, part.offsets, part.sides, strict=True)
        for position, (id, piece, (start, end), side) in enumerate(columns):
            if side is not None and id == tokenizer.unk_id:  # it stands for a whole word, and does not spell it
                yield Piece(part.first + position, start, end, text[start:end], False)
            elif side is not None:
                own = continues(piece, text, start, end, tokenizer.prefix)
                yield Piece(part.first + position, start, end, piece, own)

    def _record(self, item: Item, parts: list[list[Entity]]) -> Record:
        one_by_one = self.aggregation == "none"
        found = merged_pieces(parts) if one_by_one else merged(parts)
        shown = _piece if one_by_one else _group
        return {
            "index": item.index,
            "text": item.text.text,
            "truncated": item.tokens.truncated,
            "entities": [shown(entity) for entity in found],
        }


def _piece(found: Entity) -> Record:
    label, score, word, start, end, position = found
    return {"entity": label, "score": score, "index": position, "word": word, "start": start, "end": end}


def _group(found: Entity) -> Record:
    label, score, word, start, end, _ = found
    return {"entity_group": label, "score": score, "word": word, "start": start, "end": end}

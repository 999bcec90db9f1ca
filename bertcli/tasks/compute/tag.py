"""tag: the entities of texts of any length, or the label of every piece.

Pieces are put together to words, words to groups, windows to one text, as transformers' token-classification pipeline
does it, with one correction: all pieces of a group are spelled at once, so that a character that a byte-level tokenizer
has split is put together again.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bertcli.engine.pauses import check_wanted
from bertcli.errors import BertcliError
from bertcli.files.texts import Item, Text
from bertcli.loaded_model import LoadedModel
from bertcli.tasks.parts.redact import Found, Redaction, redaction_of
from bertcli.tasks.parts.scores import softmax
from bertcli.tasks.running.batches import Numbers, check_needs, logits_of_each
from bertcli.tasks.running.task import Record, RecordTask
from bertcli.tasks.tag import SPEC, Aggregation, TagOptions
from bertcli.tokens import Tokens
from bertcli.tokens.text_words import word_numbers, word_spans
from bertcli.tokens.windows import tokens_in_windows, windows_of

ROUNDING = 1e-6  # of probabilities
Spell = Callable[[Sequence[str]], str]  # what pieces spell together


def plan(model: LoadedModel, options: TagOptions) -> RecordTask:
    """The task that gives the records; BertcliError for a model without the head, and for windows that cannot be."""
    if options.labels is not None:
        from bertcli.tasks.parts.entities import check_takes_labels, plan_entities

        check_takes_labels(model, options)
        return plan_entities(model, options)
    refusal = model.readable_kind.refusal_without_labels(model.name)
    if refusal is not None:
        raise BertcliError(refusal)
    check_needs(model, SPEC.needs(options))
    ignored = (options.ignore,) if isinstance(options.ignore, str) else tuple(options.ignore)
    labels = [label for label in model.config.labels if label != "O"]
    tags = [*map(without_prefix, labels)] if has_prefixes(labels) else labels
    redaction = redaction_of(options, dict(zip(tags, tags, strict=True)), f"{model.name} has")
    return _Tag(model, options.read_options, options.aggregation or "simple", ignored, options.stride, redaction)


@dataclass(frozen=True, eq=False, repr=False)
class _Tag(RecordTask):
    aggregation: Aggregation
    ignore: tuple[str, ...]
    stride: int | None
    redaction: Redaction | None

    def __post_init__(self) -> None:
        super().__post_init__()
        room = self.limit - self.model.tokenizer.special_count(paired=False)
        if room < 1:
            raise BertcliError(f"max_length {self.limit} is too small: a window needs a token beside its special ones.")
        if not 0 <= self.overlap < room:
            raise BertcliError(
                f"stride is {self.overlap}, but a window of {self.limit} tokens has {room} of the text: "
                f"choose 0 to {room - 1}."
            )

    @property
    def overlap(self) -> int:
        """The number of tokens that a window shares with the next one."""
        return self.limit // 4 if self.stride is None else self.stride

    def tokens(self, texts: Sequence[Text]) -> list[Tokens]:
        return self.model.tokenizer.encode([text.text for text in texts])

    def check(self, item: Item) -> None:
        if item.text.pair is not None:
            raise BertcliError(f"tag reads single texts, and {item.title} has a second one.")

    def cost(self, item: Item) -> int:
        return tokens_in_windows(item.tokens, self.limit, self.overlap)

    def predictions(self, item: Item) -> int:
        """Count the labels of all tokens, or entities, of which most have several; and a long redacted word."""
        tokens = len(item.tokens.ids)
        entities = tokens if self.aggregation == "none" else 1 + tokens // 4
        return entities + (0 if self.redaction is None else self.redaction.predictions(tokens))

    def records(self, items: list[Item]) -> Iterator[Record]:
        of_items = [windows_of(item.tokens, self.limit, self.overlap) for item in items]
        all_windows = [window for windows in of_items for window in windows]
        logits = iter(logits_of_each(self.model, "token_classifier", all_windows, self.read_options.batch_tokens))
        by_piece = self.aggregation == "none"
        for item, windows in zip(items, of_items, strict=True):
            words = word_numbers(item.text.text, item.tokens)
            of_windows = [self._entities(item.text.text, window, words, softmax(next(logits))) for window in windows]
            of_text = merged_pieces(of_windows) if by_piece else merged(of_windows)
            record = {
                "index": item.index,
                "text": item.text.text,
                "truncated": item.tokens.truncated,
                "entities": list(map(_piece if by_piece else _group, of_text)),
            }
            if self.redaction is not None:
                # Of two entities that overlap, in two windows, the record has one; no part of the other stays readable.
                hidden = of_text if by_piece else [entity for of_window in of_windows for entity in of_window]
                spans = word_spans(words, item.tokens.offsets)
                prefixed = by_piece and has_prefixes(self.model.config.labels)
                entities = [_found(entity, prefixed) for entity in hidden]
                record["redacted"] = self.redaction.of(item.text.text, entities, spans)
            yield record

    def _entities(
        self, text: str, window: Tokens, words: Sequence[int | None], probabilities: Numbers
    ) -> "list[Entity]":
        """The entities of a window; `words` has the word of each token of the whole text, special tokens included."""
        check_wanted()
        tokenizer, pieces = self.model.tokenizer, []
        columns = zip(window.ids, window.pieces, window.offsets, window.sides, strict=True)
        last_word = None
        for position, (id, piece, (start, end), side) in enumerate(columns, window.first):
            if side is None:
                continue
            unknown = id == tokenizer.special_id("unk")  # it does not spell its text
            word = words[position]
            pieces.append(Piece(position, start, end, text[start:end] if unknown else piece, word == last_word))
            last_word = word
        rows = probabilities[[position for position, side in enumerate(window.sides) if side is not None]]
        labels = self.model.config.labels
        return entities(pieces, rows, labels, self.aggregation, self.ignore, tokenizer.spelled)


def _piece(entity: "Entity") -> Record:
    label, score, word, start, end, position = entity
    return {"entity": label, "score": score, "index": position, "word": word, "start": start, "end": end}


def _found(entity: "Entity", prefixed: bool) -> Found:
    label = without_prefix(entity.label) if prefixed else entity.label
    return Found(entity.start, entity.end, label, entity.score, entity.label.startswith("I-"))


def _group(entity: "Entity") -> Record:
    label, score, word, start, end, _ = entity
    return {"entity_group": label, "score": score, "word": word, "start": start, "end": end}


# ---------------------------------------------------------------------------------------------------------- entities


class Piece(NamedTuple):
    """A token that stands for text: its position among the tokens, its range of characters and its spelling.

    `continues`: it belongs to the word of the piece before it.
    """

    position: int
    start: int
    end: int
    spelling: str
    continues: bool


class Entity(NamedTuple):
    """Pieces that have one label, or one tag: a label without B- and I-; `position` is that of the first."""

    label: str
    score: float
    word: str
    start: int
    end: int
    position: int


class _Labeled(NamedTuple):
    """A piece, or all pieces of a word, with the best label and its probability."""

    label: str
    score: float
    pieces: Sequence[Piece]

    def goes_on_from(self, before: "_Labeled") -> bool:
        """True if both belong to one entity: equal tags, and no B- that begins a new one."""
        return not self.label.startswith("B-") and self.tag == before.tag

    @property
    def tag(self) -> str:
        """I-, or a label without either, continues an entity of the same tag."""
        return self.label[2:] if self.label.startswith(("B-", "I-")) else self.label


def entities(
    pieces: Sequence[Piece],
    probabilities: Numbers,
    labels: Sequence[str],
    aggregation: Aggregation,
    ignore: Collection[str],
    spell: Spell,
) -> list[Entity]:
    """The entities of a window, in order, from the probabilities [piece, label] of its pieces.

    none: every piece is an entity. simple: every piece has its best label, and neighbors of one tag are grouped. first,
    max, average: every word has its best label, and neighbors of one tag are grouped; a word's probabilities are those
    of its first piece, those of the piece with the highest one, or the mean of its pieces. At the end entities whose
    label is in `ignore` are left out.
    """
    labeled = list(_labeled(pieces, probabilities, labels, aggregation))
    alone = aggregation == "none"
    starts = []
    for number, item in enumerate(labeled):
        continues = number > 0 and item.goes_on_from(labeled[number - 1])
        if alone or not continues:
            starts.append(number)
    prefixed = has_prefixes(labels)
    bounds = pairwise([*starts, len(labeled)])
    entities = [_entity(labeled[begin:end], alone, prefixed, spell) for begin, end in bounds]
    return [entity for entity in entities if entity.label not in ignore]


def _labeled(
    pieces: Sequence[Piece], probabilities: Numbers, labels: Sequence[str], aggregation: Aggregation
) -> Iterator[_Labeled]:
    """Yield each piece with its most probable label; with the aggregations first, max and average each word."""
    by_word = aggregation in ("first", "max", "average")
    starts = []
    for number, piece in enumerate(pieces):
        continues_word = by_word and number > 0 and piece.continues
        if not continues_word:
            starts.append(number)
    for begin, end in pairwise([*starts, len(pieces)]):
        rows = probabilities[begin:end]
        row = _merged(rows, aggregation)
        # Of labels that are equally likely, but for rounding, the first piece's.
        of_first = int(rows[0].argmax())
        best = of_first if row[of_first] > row.max() - ROUNDING else int(row.argmax())
        yield _Labeled(labels[best], float(row[best]), pieces[begin:end])


def _merged(rows: Numbers, aggregation: Aggregation) -> Numbers:
    """Merge the probabilities of a word's pieces to the word's [label]; of equally certain pieces the first counts."""
    if aggregation == "average":
        return np.asarray(rows.mean(axis=0))
    certainties = rows.max(axis=1)
    most_certain = int((certainties > certainties.max() - ROUNDING).argmax()) if aggregation == "max" else 0
    return np.asarray(rows[most_certain])


def has_prefixes(labels: Iterable[str]) -> bool:
    """True if labels are of a scheme with B- or I-; where none has either, E-mail is a name like any other."""
    return any(label.startswith(("B-", "I-")) for label in labels)


def without_prefix(label: str) -> str:
    """The type of a label: what stands after its first hyphen."""
    return label.split("-", 1)[-1]


def _entity(group: list[_Labeled], alone: bool, prefixed: bool, spell: Spell) -> Entity:
    pieces = [piece for labeled in group for piece in labeled.pieces]
    label, word = group[0].label, pieces[0].spelling
    if not alone:
        # Of any prefix: E-PER and S-PER are PER, too, though they are not joined.
        label = without_prefix(label) if prefixed else label
        word = spell([piece.spelling for piece in pieces])
    score = sum(labeled.score for labeled in group) / len(group)
    return Entity(label, score, word, pieces[0].start, pieces[-1].end, pieces[0].position)


def merged(windows: Sequence[Sequence[Entity]]) -> list[Entity]:
    """The entities of a text read in overlapping windows: of two that overlap the longer, then the likelier one."""
    if len(windows) == 1:
        return list(windows[0])
    entities = [entity for window in windows for entity in window]
    kept: list[Entity] = []
    for entity in sorted(entities, key=lambda entity: entity.start):
        if not kept or not kept[-1].start <= entity.start < kept[-1].end:
            kept.append(entity)
            continue
        last = kept[-1]
        if (entity.end - entity.start, entity.score) > (last.end - last.start, last.score):
            kept[-1] = entity
    return kept


def merged_pieces(windows: Sequence[Sequence[Entity]]) -> list[Entity]:
    """Merge windows in which every piece is an entity: a piece in two windows has the likelier label."""
    likeliest: dict[int, Entity] = {}
    for entity in (entity for window in windows for entity in window):
        if entity.position not in likeliest or entity.score > likeliest[entity.position].score:
            likeliest[entity.position] = entity
    return [likeliest[position] for position in sorted(likeliest)]

"""tag: the entities of texts of any length, or the label of every piece.

Pieces are put together to words, words to groups, windows to one text, as transformers' token-classification pipeline
does it, with two corrections: all pieces of a group are spelled at once, so that a character that a byte-level
tokenizer has split is put together again; entities in BIOES and BILOU are those of the scheme (label_schemes.py).
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bertcli.engine.pauses import check_wanted
from bertcli.errors import BertcliError
from bertcli.files.texts import Failure, Item, Text
from bertcli.loaded_model import LoadedModel
from bertcli.tasks.parts.label_schemes import OUTSIDE, LabelSet, Tag
from bertcli.tasks.parts.legal_path import legal_path
from bertcli.tasks.parts.redact import Found, Redaction, redaction_of
from bertcli.tasks.parts.scores import softmax
from bertcli.tasks.parts.tagged_words import with_words
from bertcli.tasks.running.batches import Numbers, check_needs, logits_of_each
from bertcli.tasks.running.task import Record, RecordTask
from bertcli.tasks.tag import SPEC, Aggregation, Decode, TagOptions
from bertcli.tokens import Tokens
from bertcli.tokens.text_words import word_numbers, word_spans
from bertcli.tokens.windows import tokens_in_windows, windows_of
from bertcli.tokens.word_places import WordPlaces

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
    types = LabelSet(model.config.labels).types
    redaction = redaction_of(options, dict(zip(types, types, strict=True)), f"{model.name} has")
    labelling = Labelling(options.aggregation or "simple", options.decode or "argmax", ignored)
    return _Tag(model, options.read_options, labelling, options.stride, redaction)


@dataclass(frozen=True, eq=False, repr=False)
class _Tag(RecordTask):
    labelling: "Labelling"
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

    @cached_property
    def labels(self) -> LabelSet:
        """The model's labels, and how they are written."""
        return LabelSet(self.model.config.labels)

    @property
    def overlap(self) -> int:
        """The number of tokens that a window shares with the next one."""
        return self.limit // 4 if self.stride is None else self.stride

    def tokens(self, texts: Sequence[Text]) -> list[Tokens]:
        return self.model.tokenizer.encode([text.text for text in texts])

    def check(self, item: Item) -> None:
        if item.text.pair is not None:
            raise BertcliError(f"tag reads single texts, and {item.title} has a second one.")
        if self.redaction is not None:
            self.redaction.check(item)

    def cost(self, item: Item) -> int:
        return tokens_in_windows(item.tokens, self.limit, self.overlap)

    def predictions(self, item: Item) -> int:
        """Count the labels of all tokens, or entities, of which most have several; and a long redacted word."""
        tokens = len(item.tokens.ids)
        entities = tokens if self.labelling.by_piece else 1 + tokens // 4
        return entities + (0 if self.redaction is None else self.redaction.predictions(tokens))

    def records(self, items: list[Item]) -> Iterator[Record]:
        of_items = [windows_of(item.tokens, self.limit, self.overlap) for item in items]
        all_windows = [window for windows in of_items for window in windows]
        logits = iter(logits_of_each(self.model, "token_classifier", all_windows, self.read_options.batch_tokens))
        by_piece = self.labelling.by_piece
        for item, windows in zip(items, of_items, strict=True):
            words = word_numbers(item.text.text, item.tokens)
            of_windows, labelled = [], []
            for number, window in enumerate(windows):
                pieces, rows = self._pieces(item.text.text, window, words, softmax(next(logits)))
                ends = Ends(number == 0, number == len(windows) - 1)
                spell = self.model.tokenizer.spelled
                of_windows.append(entities(pieces, rows, self.labels, self.labelling, spell, ends))
                if item.text.words is not None:
                    labelled.append(first_pieces(pieces, rows, self.labels, self.labelling, ends))
            of_text = merged_pieces(of_windows) if by_piece else merged(of_windows)
            record = {
                "index": item.index,
                "text": item.text.text,
                "truncated": item.tokens.truncated,
                **with_words(item, self.redaction, partial(tags_of_words, windows=labelled)),
                "entities": list(map(_piece if by_piece else _group, of_text)),
            }
            if self.redaction is not None:
                # Of two entities that overlap, in two windows, the record has one; no part of the other stays readable.
                hidden = [entity for of_window in of_windows for entity in of_window]
                spans = word_spans(words, item.tokens.offsets)
                found = [_found(entity) for entity in hidden if entity.tag.is_entity]
                record = self.redaction.applied(record, item, found, spans)
            yield record

    def failed(self, failure: Failure) -> Record:
        return failure.record() if self.redaction is None else self.redaction.failed(failure)

    def _pieces(
        self, text: str, window: Tokens, words: Sequence[int | None], probabilities: Numbers
    ) -> "tuple[list[Piece], Numbers]":
        """The tokens of a window that stand for text, with their rows of probabilities [token, label].

        words: the word of each token of the whole text, special tokens included.
        """
        check_wanted()
        tokenizer, pieces = self.model.tokenizer, list[Piece]()
        columns = zip(window.ids, window.pieces, window.offsets, window.sides, strict=True)
        last_word = None
        for position, (id, piece, (start, end), side) in enumerate(columns, window.first):
            if side is None:
                continue
            unknown = id == tokenizer.special_id("unk")  # it does not spell its text
            word = words[position]
            pieces.append(Piece(position, start, end, text[start:end] if unknown else piece, word == last_word))
            last_word = word
        of_text = [position for position, side in enumerate(window.sides) if side is not None]
        return pieces, probabilities[of_text]


def _piece(entity: "Entity") -> Record:
    label, score, word, start, end, position, _ = entity
    return {"entity": label, "score": score, "index": position, "word": word, "start": start, "end": end}


def _found(entity: "Entity") -> Found:
    return Found(entity.start, entity.end, entity.tag.type, entity.score, entity.tag.continues)


def _group(entity: "Entity") -> Record:
    label, score, word, start, end, *_ = entity
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
    """Pieces of one entity, or outside of any; `position` and `tag` are those of the first.

    label: as a record has it: a piece's own, of several pieces their type.
    """

    label: str
    score: float
    word: str
    start: int
    end: int
    position: int
    tag: Tag


class Labelling(NamedTuple):
    """What a request says of labels: how tokens become entities, how labels are chosen, and which are left out."""

    aggregation: Aggregation = "simple"
    decode: Decode = "argmax"
    ignore: Collection[str] = ("O",)

    @property
    def by_piece(self) -> bool:
        """True if every piece is an entity of its own."""
        return self.aggregation == "none"


class Ends(NamedTuple):
    """Which ends of a text a window has."""

    first: bool
    last: bool


WHOLE = Ends(first=True, last=True)


class _Labeled(NamedTuple):
    """A piece, or all pieces of a word, with the best label and its probability."""

    label: str
    tag: Tag
    score: float
    pieces: Sequence[Piece]

    def goes_on_from(self, before: "_Labeled") -> bool:
        """True if both belong to one entity; a label that all pieces of a word have is one label, unless it is B-."""
        in_word = self.pieces[0].continues and self.label == before.label and self.tag.prefix != "B"
        return in_word or self.tag.goes_on_from(before.tag)


def entities(
    pieces: Sequence[Piece],
    probabilities: Numbers,
    labels: LabelSet,
    labelling: Labelling,
    spell: Spell,
    ends: Ends = WHOLE,
) -> list[Entity]:
    """The entities of a window, in order, from the probabilities [piece, label] of its pieces.

    none: every piece is an entity. simple: every piece has its best label, and neighbors of one entity are grouped.
    first, max, average: every word has its best label, and neighbors of one entity are grouped; a word's probabilities
    are those of its first piece, those of the piece with the highest one, or the mean of its pieces. At the end
    entities whose label is in `ignore` are left out; a type that is called O is none of them.
    """
    labeled = _labeled(pieces, probabilities, labels, labelling, ends)
    alone = labelling.by_piece
    starts = []
    for number, item in enumerate(labeled):
        continues = number > 0 and item.goes_on_from(labeled[number - 1])
        if alone or not continues:
            starts.append(number)
    bounds = pairwise([*starts, len(labeled)])
    entities = [_entity(labeled[begin:end], alone, spell) for begin, end in bounds]
    return [entity for entity in entities if not _is_ignored(entity, labelling.ignore)]


def _is_ignored(entity: Entity, ignore: Collection[str]) -> bool:
    is_type_called_o = entity.label == OUTSIDE and entity.tag.is_entity
    return entity.label in ignore and not is_type_called_o


def _labeled(
    pieces: Sequence[Piece], probabilities: Numbers, labels: LabelSet, labelling: Labelling, ends: Ends
) -> list[_Labeled]:
    """Give each piece its label; with the aggregations first, max and average each word."""
    by_word = labelling.aggregation in ("first", "max", "average")
    starts = []
    for number, piece in enumerate(pieces):
        continues_word = by_word and number > 0 and piece.continues
        if not continues_word:
            starts.append(number)
    merged_rows, chosen = [], []
    bounds = [*pairwise([*starts, len(pieces)])]
    for begin, end in bounds:
        rows = probabilities[begin:end]
        row = _merged(rows, labelling.aggregation)
        # Of labels that are equally likely, but for rounding, the first piece's.
        of_first = int(rows[0].argmax())
        chosen.append(of_first if row[of_first] > row.max() - ROUNDING else int(row.argmax()))
        merged_rows.append(row)
    if labelling.decode == "legal" and chosen:
        in_word = [pieces[begin].continues for begin in starts]
        chosen = legal_path(np.stack(merged_rows), chosen, labels, in_word, is_first=ends.first, is_last=ends.last)
    labeled = []
    for (begin, end), row, number in zip(bounds, merged_rows, chosen, strict=True):
        label = labels.labels[number]
        labeled.append(_Labeled(label, labels.tags[label], float(row[number]), pieces[begin:end]))
    return labeled


def _merged(rows: Numbers, aggregation: Aggregation) -> Numbers:
    """Merge the probabilities of a word's pieces to the word's [label]; of equally certain pieces the first counts."""
    if aggregation == "average":
        return np.asarray(rows.mean(axis=0))
    certainties = rows.max(axis=1)
    most_certain = int((certainties > certainties.max() - ROUNDING).argmax()) if aggregation == "max" else 0
    return np.asarray(rows[most_certain])


def _entity(group: list[_Labeled], alone: bool, spell: Spell) -> Entity:
    pieces = [piece for labeled in group for piece in labeled.pieces]
    label, tag, word = group[0].label, group[0].tag, pieces[0].spelling
    if not alone:
        label = tag.type or label
        word = spell([piece.spelling for piece in pieces])
    score = sum(labeled.score for labeled in group) / len(group)
    return Entity(label, score, word, pieces[0].start, pieces[-1].end, pieces[0].position, tag)


def first_pieces(
    pieces: Sequence[Piece], probabilities: Numbers, labels: LabelSet, labelling: Labelling, ends: Ends
) -> list[Entity]:
    """The pieces of a window with their labels; with the aggregations first, max, average each word's first alone."""
    labeled = _labeled(pieces, probabilities, labels, labelling, ends)
    return [_entity([one._replace(pieces=one.pieces[:1])], True, "".join) for one in labeled]


def tags_of_words(words: Sequence[str], windows: Sequence[Sequence[Entity]]) -> list[str]:
    """The label of each word: that of its first piece, which models are trained with; O for a word without pieces."""
    places, tags = WordPlaces(words), dict[int, str]()
    for piece in merged_pieces(windows):
        tags.setdefault(places.number(piece.start, piece.end), piece.label)
    return [tags.get(number, OUTSIDE) for number in range(len(words))]


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

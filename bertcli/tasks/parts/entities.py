"""tag --labels: entities of any type, found by GLiNER's scores of every span of words for every label.

A window is what the library computes for a text: `<<ENT>> label … <<SEP>>`, then words. The library cuts a text after
`max_len` words; here a longer one is read in windows that share words, a span has the highest of its scores, and spans
are chosen for the whole text at once, as the library chooses them in its part of it.
"""

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from bertcli.engine.packing import pack
from bertcli.engine.pauses import check_wanted
from bertcli.errors import BertcliError, quoted
from bertcli.files.texts import Item, Text
from bertcli.kinds.spans.rows import SpanRows
from bertcli.loaded_model import LoadedModel
from bertcli.network.module import parameters
from bertcli.tasks.parts.redact import Found, Redaction
from bertcli.tasks.running.batches import Numbers, check_finite, check_head, hidden_states, in_micro_batches
from bertcli.tasks.running.task import Record, RecordTask, length_limit
from bertcli.tasks.tag import GLINER, TagOptions, labels_of
from bertcli.tokens import Tokens
from bertcli.tokens.words import Word, is_run, split_words
from bertcli.tracing.dispatch import Array, Integers

logger = logging.getLogger("bertcli")
THRESHOLD = 0.5  # the library's
# Tokens of a window of a backbone that has no positions, and whose tokenizer sets no limit: 384 words seldom have more
# than 1,000 tokens, and attention to 4,096 takes 1.6 GB with 12 heads.
MOST_TOKENS = 4096
# Scores of spans that take about as long as a token of a small model.
SCORES_OF_A_TOKEN = 16
# Between two looks at whether they are still wanted.
SPANS_BETWEEN_LOOKS = 1000


class Prompt(NamedTuple):
    """The tokens before a text, and the positions among them of the tokens whose states stand for the labels."""

    ids: list[int]
    labels: list[int]


class WordPieces(NamedTuple):
    """A word of a text, and the ids of its tokens."""

    word: Word
    ids: list[int]


@dataclass(frozen=True, eq=False, repr=False)
class SpanWindow:
    """Some words of a text behind the prompt, as a sentence of a batch.

    first: the number of its first word. words, labels: the positions of the tokens that stand for words and labels.
    """

    ids: list[int]
    segments: list[int]
    first: int
    words: Integers
    labels: Integers


class ScoredSpan(NamedTuple):
    """A span of words, the last included, with its label and probability."""

    start: int
    end: int
    label: str
    score: float


def plan_entities(model: LoadedModel, options: TagOptions) -> RecordTask:
    """Make the task of a GLiNER model. Errors: BertcliError for labels and windows that cannot be."""
    labels = labels_of(options)
    redaction = None
    if options.redact:
        only = (options.only,) if isinstance(options.only, str) else options.only
        redaction = Redaction(options.redact_with, None if only is None else frozenset(only))
    threshold = THRESHOLD if options.threshold is None else options.threshold
    return _Entities(
        model, options.read_options, labels, threshold, options.nested, options.multi_label, options.stride, redaction
    )


def first_window(model: LoadedModel, text: str, labels: Iterable[str]) -> tuple[SpanWindow, tuple[str, ...]]:
    """Make the first window of a text behind its labels, for a pass that is looked at; the labels, each once.

    Errors: BertcliError for a model without the head, no labels, and a text without words.
    """
    check_head(model, "spans", "trace --labels", GLINER)
    task = plan_entities(model, TagOptions(labels=labels))
    assert isinstance(task, _Entities)
    (item,) = task.window([Text(text)], 0).items
    windows = task.windows(item)
    if not windows:
        raise BertcliError(f"{quoted(text)} has no words, so there is nothing to compute.")
    first = windows[0]
    if len(windows) > 1:
        logger.warning("the text is read in %d windows, of which this is the first.", len(windows))
    in_window = len(first.words)
    tokens = sum(len(piece.ids) for piece in _pieces(item)[:in_window])
    if tokens > in_window:
        logger.info(
            "%d words have %d tokens: here each token counts as a word, and tag takes the first of a word.",
            in_window, tokens,
        )  # fmt: skip
    return first, task.labels


@dataclass(frozen=True, eq=False, repr=False)
class _Entities(RecordTask):
    labels: tuple[str, ...]
    threshold: float
    nested: bool
    multi_label: bool
    stride: int | None
    redaction: Redaction | None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.room < 1:
            raise BertcliError(
                f"The labels take {len(self.prompt_of_labels.ids):,} tokens, and a window has {self.limit:,} with the "
                "text: give fewer labels, shorter ones, or a larger max_length."
            )
        if self.stride is not None and self.stride >= self.room:
            raise BertcliError(
                f"stride is {self.stride}, but a window of {self.limit} tokens has {self.room} of the text: "
                f"choose 0 to {self.room - 1}."
            )

    @property
    def settings(self) -> Any:
        """The model's GlinerSettings."""
        layout = self.model.layout
        assert layout is not None
        assert layout.type_settings is not None
        return layout.type_settings

    @cached_property
    def limit(self) -> int:
        """The number of tokens of a window, with the labels: the tokenizer's limit, else the backbone's.

        A backbone without embeddings of positions (DeBERTa-v3, ModernBERT) has none, as in the library.
        """
        max_length = self.read_options.max_length
        if any("P" in parameter.symbols for parameter in parameters(self.model.network)):
            return length_limit(self.model, max_length)
        model_limit = self.model.tokenizer.model_max_length or MOST_TOKENS
        if max_length is not None and max_length > model_limit:
            raise BertcliError(
                f"max_length (--max-length) is {max_length}, more than the {model_limit} tokens of this model."
            )
        return model_limit if max_length is None else max_length

    @cached_property
    def room(self) -> int:
        """The number of tokens that a window has for the text."""
        special = self.model.tokenizer.special_count(paired=False)
        return self.limit - special - len(self.prompt_of_labels.ids)

    @cached_property
    def prompt_of_labels(self) -> Prompt:
        """The prompt, the same for every text. Errors: BertcliError if the tokenizer does not know the mark."""
        settings, tokenizer = self.settings, self.model.tokenizer
        words = [word for label in self.labels for word in (settings.ent_token, label)]
        (tokens,) = tokenizer.encode_words([[*words, settings.sep_token]])
        side = tokens.template().sides[0]
        ids, owners = side.ids, side.word_ids
        marks = [owners.index(number) for number in range(0, len(words), 2) if number in owners]
        expected = int(self.model.config.label_mark)  # type: ignore[attr-defined]  # of a GLiNER model
        if len(marks) != len(self.labels) or any(ids[mark] != expected for mark in marks):
            id = tokenizer.id_of(settings.ent_token)
            raise BertcliError(
                f"The tokenizer of {self.model.name} has {quoted(settings.ent_token)} as {id}, and its "
                f"gliner_config.json says {expected} (class_token_index): they do not belong together."
            )
        return Prompt(ids, [mark + (not settings.embed_ent_token) for mark in marks])

    # -------------------------------------------------------------------------------------------------- tokens

    def tokens(self, texts: Sequence[Text]) -> list[Tokens]:
        words = [[word.text for word in split_words(text.text)] for text in texts]
        if any(is_run(word) for of_text in words for word in of_text):
            self._note_of_runs  # noqa: B018  # said once
        return self.model.tokenizer.encode_words(words)

    @cached_property
    def _note_of_runs(self) -> None:
        logger.info(
            "some texts are written without spaces between words (Chinese, Japanese, Thai …): GLiNER takes what stands "
            "between two spaces or signs for one word, so it cannot find an entity inside. Put spaces between the "
            "words first."
        )

    def check(self, item: Item) -> None:
        if item.text.pair is not None:
            raise BertcliError(f"tag reads single texts, and {item.title} has a second one.")

    def cost(self, item: Item) -> int:
        counts = [len(one.ids) for one in _pieces(item)]
        around = self.limit - self.room
        tokens = spans = 0
        for some in self._slices(counts):
            tokens += around + sum(counts[some])
            spans += (some.stop - some.start) * self.settings.max_width
        # Each span has a score for each label.
        return tokens + spans * len(self.labels) // SCORES_OF_A_TOKEN or len(item.tokens.ids)

    def predictions(self, item: Item) -> int:
        words = len(_pieces(item))
        redacted = 0 if self.redaction is None else self.redaction.predictions(words)
        # A span may have every label, or its best alone.
        of_labels = words * len(self.labels) // (4 if self.multi_label else 100)
        return 1 + words // 4 + of_labels + redacted

    def _slices(self, counts: Sequence[int]) -> list[slice]:
        return word_windows(counts, self.settings.max_len, self.room, self.stride)

    def _window(self, pieces: Sequence[WordPieces], first: int) -> SpanWindow:
        """Put words behind the prompt; a word of more tokens than there is room is cut."""
        prompt, last_piece = self.prompt_of_labels, self.settings.subtoken_pooling == "last"
        inner, words = [*prompt.ids], []
        for _, ids in pieces:
            kept = ids[: self.room]
            words.append(len(inner) + (len(kept) - 1 if last_piece else 0))
            inner += kept
        ids, segments, before = self.model.tokenizer.around(inner)
        return SpanWindow(ids, segments, first, np.array(words) + before, np.array(prompt.labels) + before)

    # ------------------------------------------------------------------------------------------------- records

    def records(self, items: list[Item]) -> Iterator[Record]:
        windows = [self.windows(item) for item in items]
        logits = iter(self.logits([window for some in windows for window in some]))
        for item, some in zip(items, windows, strict=True):
            pieces = _pieces(item)
            check_wanted()
            candidates = [span for window in some for span in self._candidates(window, next(logits))]
            found = choose(highest(candidates), nested=self.nested, multi_label=self.multi_label)
            text = item.text.text
            entities = [_entity(text, pieces, span) for span in found]
            cut = any(len(one.ids) > self.room for one in pieces)
            record = {"index": item.index, "text": text, "truncated": cut, "entities": entities}
            if self.redaction is not None:
                hidden = (Found(one["start"], one["end"], one["entity_group"], one["score"]) for one in entities)
                record["redacted"] = self.redaction.of(text, hidden, [(one.word.start, one.word.end) for one in pieces])
            yield record

    def windows(self, item: Item) -> list[SpanWindow]:
        """Split a text into windows; none for a text without words."""
        pieces = _pieces(item)
        return [self._window(pieces[some], some.start) for some in self._slices([len(one.ids) for one in pieces])]

    def logits(self, windows: list[SpanWindow]) -> list[Array]:
        """Compute the logits of each window: [span, label], spans in the order of `SpanRows`."""
        network: Any = self.model.network
        longest: int = self.settings.max_width

        def run(batch: list[int]) -> list[Array]:
            some = [windows[index] for index in batch]
            packed = pack(some)
            firsts = packed.offsets[:-1].tolist()
            rows = SpanRows.of(
                [window.words + first for window, first in zip(some, firsts, strict=True)],
                [window.labels + first for window, first in zip(some, firsts, strict=True)],
                longest,
            )
            logits: Array = network.spans(hidden_states(self.model, packed), rows)
            check_finite(logits)
            bounds = np.searchsorted(rows.sentences, np.arange(len(some) + 1)).tolist()
            return [logits[first:last] for first, last in pairwise(bounds)]

        keys = [tuple(window.words.tolist()) for window in windows]  # equal tokens may be those of other words
        return in_micro_batches(windows, self.read_options.batch_tokens, run, keys)

    def _candidates(self, window: SpanWindow, logits: Array) -> Iterator[ScoredSpan]:
        """Yield the spans above the threshold, in the library's order: by start, length, label.

        Where a span has one label, that is its best: a worse one of the same span can never be chosen.
        """
        check_wanted()
        probabilities: Numbers = 1 / (1 + np.exp(-logits.astype(np.float64)))
        if not self.multi_label:
            best = probabilities.argmax(axis=1, keepdims=True)
            probabilities = np.where(np.arange(probabilities.shape[1]) == best, probabilities, -1)
        rows = SpanRows.of([window.words], [window.labels], self.settings.max_width)
        for span, label in np.argwhere(probabilities > self.threshold).tolist():
            start, end = int(rows.starts[span]) + window.first, int(rows.ends[span]) + window.first
            yield ScoredSpan(start, end, self.labels[label], float(probabilities[span, label]))


def _pieces(item: Item) -> list[WordPieces]:
    """List the words of a text that have tokens. The library keeps others, and then takes words for their neighbors."""
    words, side = split_words(item.text.text), item.tokens.template().sides[0]
    ids: list[list[int]] = [[] for _ in words]
    for id, number in zip(side.ids, side.word_ids, strict=True):
        if number is not None:
            ids[number].append(id)
    return [WordPieces(word, some) for word, some in zip(words, ids, strict=True) if some]


def _entity(text: str, pieces: Sequence[WordPieces], span: ScoredSpan) -> Record:
    start, end = pieces[span.start].word.start, pieces[span.end].word.end
    return {"entity_group": span.label, "score": span.score, "word": text[start:end], "start": start, "end": end}


def word_windows(counts: Sequence[int], most: int, room: int, stride: int | None) -> list[slice]:
    """Split words with so many tokens each into windows of at most `most` words and `room` tokens.

    Neighbors share as many words as have `stride` tokens; None: a quarter of a window's words.
    """
    windows, first = list[slice](), 0
    # The tokens before each word, and those of all words.
    before = [0, *accumulate(counts)]
    while first < len(counts):
        fitting = bisect_right(before, before[first] + room) - 1
        last = min(max(fitting, first + 1), first + most, len(counts))
        windows.append(slice(first, last))
        if last == len(counts):
            break
        shared = last - (last - first) // 4 if stride is None else bisect_left(before, before[last] - stride)
        first = max(shared, first + 1)
    return windows


def highest(candidates: Sequence[ScoredSpan]) -> list[ScoredSpan]:
    """Keep each span with a label once, with the highest of its scores in several windows."""
    best: dict[tuple[int, int, str], ScoredSpan] = {}
    for number, span in enumerate(candidates):
        if number % SPANS_BETWEEN_LOOKS == 0:
            check_wanted()
        key = span[:3]
        if key not in best or span.score > best[key].score:
            best[key] = span
    return list(best.values())


def choose(candidates: Sequence[ScoredSpan], *, nested: bool, multi_label: bool) -> list[ScoredSpan]:
    """Choose spans by score, each unless it overlaps one that was chosen; in the order of the text.

    nested: a span may lie inside another. multi_label: a span may have several labels.
    """
    kept = list[ScoredSpan]()
    taken = set[tuple[int, int]]()
    # Of what was chosen: its words; where a span ends that begins at a word, and begins that ends there.
    covered = set[int]()
    furthest: dict[int, int] = {}
    earliest: dict[int, int] = {}
    for number, span in enumerate(sorted(candidates, key=lambda span: -span.score)):
        if number % SPANS_BETWEEN_LOOKS == 0:
            check_wanted()
        start, end = span.start, span.end
        if (start, end) in taken:
            if multi_label:
                kept.append(span)
            continue
        if nested:
            # One that begins or ends inside this span, and is not inside it.
            meets = any(furthest.get(word, end) > end for word in range(start + 1, end + 1))
            meets = meets or any(earliest.get(word, start) < start for word in range(start, end))
        else:
            meets = any(word in covered for word in range(start, end + 1))
        if not meets:
            taken.add((start, end))
            covered.update(range(start, end + 1))
            furthest[start] = max(end, furthest.get(start, end))
            earliest[end] = min(start, earliest.get(end, start))
            kept.append(span)
    return sorted(kept, key=lambda span: span.start)

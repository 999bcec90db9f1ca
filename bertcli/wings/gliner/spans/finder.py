"""`SpanFinder`: entities by GLiNER's scores of every span of words for every label.

A window is what the library computes for a text: `<<ENT>> label … <<SEP>>`, then words. The library cuts a text after
`max_len` words; here a longer one is read in windows that share words, a span has the highest of its scores, and spans
are chosen for the whole text at once, as the library chooses them in its part of it.
"""

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from bertcli.engine.packing import Packed, pack
from bertcli.engine.pauses import check_wanted
from bertcli.errors import BertcliError, quoted
from bertcli.kinds.entities import FinderOptions, LabelledSpan
from bertcli.kinds.opened import Opened
from bertcli.tokens import Tokens
from bertcli.tokens.words import Word
from bertcli.tracing.dispatch import Array, Integers
from bertcli.wings.gliner.spans.rows import SpanRows
from bertcli.wings.gliner.spans.words import is_run, split_words

logger = logging.getLogger("bertcli")
THRESHOLD = 0.5  # the library's
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


@dataclass(frozen=True, eq=False, repr=False)
class SpanFinder:
    """Finds the spans of words that a request asks for.

    Errors: BertcliError for labels that leave no room for the text, and windows that cannot share so many tokens.
    """

    settings: Any  # GlinerSettings; of another kind its own
    model: Opened
    options: FinderOptions

    def __post_init__(self) -> None:
        limit, stride = self.options.limit, self.options.stride
        if self.room < 1:
            raise BertcliError(
                f"The labels take {len(self.prompt_of_labels.ids):,} tokens, and a window has {limit:,} with the text: "
                "give fewer labels, shorter ones, or a larger max_length."
            )
        if stride is not None and stride >= self.room:
            raise BertcliError(
                f"stride is {stride}, but a window of {limit} tokens has {self.room} of the text: "
                f"choose 0 to {self.room - 1}."
            )

    @property
    def labels_named(self) -> Mapping[str, str]:
        """Each label as it was given."""
        return {label: label for label in self.options.labels}

    @cached_property
    def room(self) -> int:
        """The number of tokens that a window has for the text."""
        special = self.model.tokenizer.special_count(paired=False)
        return self.options.limit - special - len(self.prompt_of_labels.ids)

    @cached_property
    def prompt_of_labels(self) -> Prompt:
        """The prompt, the same for every text. Errors: BertcliError if the tokenizer does not know the mark."""
        settings, tokenizer = self.settings, self.model.tokenizer
        words = [word for label in self.options.labels for word in (settings.ent_token, label)]
        (tokens,) = tokenizer.encode_words([[*words, settings.sep_token]])
        side = tokens.template().sides[0]
        ids, owners = side.ids, side.word_ids
        marks = [owners.index(number) for number in range(0, len(words), 2) if number in owners]
        config: Any = self.model.config
        expected = int(config.label_mark)
        if len(marks) != len(self.options.labels) or any(ids[mark] != expected for mark in marks):
            id = tokenizer.id_of(settings.ent_token)
            raise BertcliError(
                f"The tokenizer of {self.model.name} has {quoted(settings.ent_token)} as {id}, and its "
                f"gliner_config.json says {expected} (class_token_index): they do not belong together."
            )
        return Prompt(ids, [mark + (not settings.embed_ent_token) for mark in marks])

    # -------------------------------------------------------------------------------------------------- tokens

    def split(self, text: str) -> list[Word]:
        """Split a text into words."""
        return split_words(text)

    def pieces(self, text: str, tokens: Tokens) -> list[WordPieces]:
        """List the words of a text that have tokens.

        The library keeps others, and then takes words for their neighbors.
        """
        words, side = self.split(text), tokens.template().sides[0]
        ids: list[list[int]] = [[] for _ in words]
        for id, number in zip(side.ids, side.word_ids, strict=True):
            if number is not None:
                ids[number].append(id)
        return [WordPieces(word, some) for word, some in zip(words, ids, strict=True) if some]

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """Tokenize texts word by word; a note is logged once if a word may be a sentence."""
        words = [[word.text for word in self.split(text)] for text in texts]
        if any(is_run(word) for of_text in words for word in of_text):
            self._note_runs()
        return self.model.tokenizer.encode_words(words)

    @cached_property
    def _notes(self) -> list[str]:
        """What a note has been logged of; one is enough."""
        return []

    def _note_runs(self) -> None:
        if "runs" in self._notes:
            return
        self._notes.append("runs")
        logger.info(
            "some texts are written without spaces between words (Chinese, Japanese, Thai …): GLiNER takes what stands "
            "between two spaces or signs for one word, so it cannot find an entity inside. Put spaces between the "
            "words first."
        )

    def words(self, text: str, tokens: Tokens) -> list[tuple[int, int]]:
        """The characters of each word that has tokens."""
        return [(piece.word.start, piece.word.end) for piece in self.pieces(text, tokens)]

    def cost(self, text: str, tokens: Tokens) -> int:
        """The tokens of all windows, and the scores of their spans."""
        counts = [len(piece.ids) for piece in self.pieces(text, tokens)]
        around = self.options.limit - self.room
        in_windows = spans = 0
        for some in self._slices(counts):
            in_windows += around + sum(counts[some])
            spans += (some.stop - some.start) * self.settings.max_width
        # Each span has a score for each label.
        return in_windows + spans * len(self.options.labels) // SCORES_OF_A_TOKEN or len(tokens.ids)

    def is_cut(self, text: str, tokens: Tokens) -> bool:
        """True if a word has more tokens than a window has room for."""
        return any(len(piece.ids) > self.room for piece in self.pieces(text, tokens))

    def windows(self, text: str, tokens: Tokens) -> Sequence[SpanWindow]:
        """Split a text into windows; none for a text without words."""
        pieces = self.pieces(text, tokens)
        slices = self._slices([len(piece.ids) for piece in pieces])
        return [self._window(pieces[some], some.start) for some in slices]

    def _slices(self, counts: Sequence[int]) -> list[slice]:
        return word_windows(counts, self.settings.max_len, self.room, self.options.stride)

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

    # ------------------------------------------------------------------------------------------------- spans

    def key(self, window: Any) -> Hashable:
        """Equal tokens may be those of other words."""
        return tuple(window.words.tolist())

    def logits(self, windows: Sequence[Any], hidden_states: Callable[[Packed], Array]) -> list[Array]:
        """Compute the logits of each window: [span, label], spans in the order of `SpanRows`."""
        network: Any = self.model.network
        packed = pack(windows)
        firsts = packed.offsets[:-1].tolist()
        rows = SpanRows.of(
            [window.words + first for window, first in zip(windows, firsts, strict=True)],
            [window.labels + first for window, first in zip(windows, firsts, strict=True)],
            self.settings.max_width,
        )
        logits: Array = network.spans(hidden_states(packed), rows)
        bounds = np.searchsorted(rows.sentences, np.arange(len(windows) + 1)).tolist()
        return [logits[first:last] for first, last in pairwise(bounds)]

    def entities(
        self, text: str, tokens: Tokens, windows: Sequence[Any], logits: Iterator[Array]
    ) -> list[LabelledSpan]:
        """Choose spans among those above the threshold, and give their characters."""
        check_wanted()
        candidates = [span for window in windows for span in self._candidates(window, next(logits))]
        chosen = choose(highest(candidates), nested=self.options.nested, multi_label=self.options.multi_label)
        words = self.words(text, tokens)
        return [LabelledSpan(words[span.start][0], words[span.end][1], span.label, span.score) for span in chosen]

    def _candidates(self, window: SpanWindow, logits: Array) -> Iterator[ScoredSpan]:
        """Yield the spans above the threshold, in the library's order: by start, length, label.

        Where a span has one label, that is its best: a worse one of the same span can never be chosen.
        """
        check_wanted()
        threshold = THRESHOLD if self.options.threshold is None else self.options.threshold
        probabilities: Any = 1 / (1 + np.exp(-logits.astype(np.float64)))
        if not self.options.multi_label:
            best = probabilities.argmax(axis=1, keepdims=True)
            probabilities = np.where(np.arange(probabilities.shape[1]) == best, probabilities, -1)
        rows = SpanRows.of([window.words], [window.labels], self.settings.max_width)
        for span, label in np.argwhere(probabilities > threshold).tolist():
            start, end = int(rows.starts[span]) + window.first, int(rows.ends[span]) + window.first
            yield ScoredSpan(start, end, self.options.labels[label], float(probabilities[span, label]))


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

"""`SchemaFinder`: entities by GLiNER2's scores of every span of words for every type.

As in spans/, a text that is too long for a window is read in windows that share words. The library reads a text whole,
whatever its length; in a window that ends within a text a full stop follows, as in a part that the library cuts.

The library chooses spans for each type by itself: so does `multi_label` here. Without it, no entity overlaps another of
any type.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bertcli.engine.packing import Packed, pack
from bertcli.engine.pauses import check_wanted
from bertcli.errors import BertcliError, quoted
from bertcli.kinds.entities import LabelledSpan
from bertcli.tokens import Tokens
from bertcli.tokens.words import Word
from bertcli.tracing.dispatch import Array
from bertcli.wings.gliner.schema.rows import SchemaRows
from bertcli.wings.gliner.schema.settings import BEFORE_TEXT, DESCRIPTION, ENTITY, TASK
from bertcli.wings.gliner.schema.words import END, ENDS, read_words
from bertcli.wings.gliner.spans.finder import (
    THRESHOLD,
    Prompt,
    ScoredSpan,
    SpanFinder,
    SpanWindow,
    WordPieces,
    choose,
    highest,
    word_windows,
)
from bertcli.wings.gliner.spans.rows import SpanRows

ANY_NUMBER = 1 << 30  # of words in a window: only its tokens are counted


class NamedType(NamedTuple):
    """A type of entities, or a candidate: its name, and what it is, which may be empty."""

    name: str
    description: str

    @classmethod
    def of(cls, given: str) -> "NamedType":
        """Read "person: somebody's name", or a name alone."""
        name, mark, description = given.partition(": ")
        return cls(name.strip(), description.strip()) if mark and name.strip() else cls(given, "")


@dataclass(frozen=True, eq=False, repr=False)
class SchemaWindow(SpanWindow):
    """A window of which the first label is the mark of the task.

    own: the number of its words, without a full stop where the text is cut.
    """

    own: int


@dataclass(frozen=True, eq=False, repr=False)
class SchemaFinder(SpanFinder):
    """Finds the spans of words that a request asks for. A label may be described: "person: somebody's name"."""

    mark: ClassVar[str] = ENTITY
    task: str = "entities"

    @cached_property
    def types(self) -> tuple[NamedType, ...]:
        """The types that are asked for. Errors: BertcliError for a name that has several descriptions."""
        types = tuple(map(NamedType.of, self.options.labels))
        names = [type.name for type in types]
        for name in names:
            if names.count(name) > 1:
                raise BertcliError(f"The label {quoted(name)} occurs more than once: leave all but one out.")
        return types

    @property
    def labels_named(self) -> Mapping[str, str]:
        """The name of each type, by itself and for the words with which it was given."""
        given = zip(self.options.labels, self.types, strict=True)
        return {type.name: type.name for type in self.types} | {label: type.name for label, type in given}

    @cached_property
    def prompt_of_labels(self) -> Prompt:
        """The prompt, the same for every text; its first label is the mark of the task."""
        described = [f" {DESCRIPTION} {name}: {text}" for name, text in self.types if text]
        task = self.task + "".join(described)
        named = [word for type in self.types for word in (self.mark, type.name)]
        words = ["(", TASK, task, "(", *named, ")", ")", BEFORE_TEXT]
        (tokens,) = self.model.tokenizer.encode_words([words])
        side = tokens.template().sides[0]
        marks = [1, *range(4, 4 + len(named), 2)]
        return Prompt(side.ids, [side.word_ids.index(number) for number in marks])

    @cached_property
    def full_stop(self) -> list[WordPieces]:
        """The sign that follows a window that ends within a text."""
        (tokens,) = self.model.tokenizer.encode_words([[END]])
        ids = tokens.template().sides[0].ids
        return [WordPieces(Word(END, 0, 0), list(ids))] if len(ids) else []

    @cached_property
    def room(self) -> int:
        """The number of tokens that a window has for the text: there are no special tokens around it."""
        return self.options.limit - len(self.prompt_of_labels.ids) - sum(len(piece.ids) for piece in self.full_stop)

    # ------------------------------------------------------------------------------------------------------ words

    def split(self, text: str) -> list[Word]:
        """Split a text into words, which may end in a sign that is put after it; none for a text without words."""
        words = read_words(text)
        return words if words[0].start < len(text) else []

    def words(self, text: str, tokens: Tokens) -> list[tuple[int, int]]:
        """The characters of each word of the text that has tokens."""
        of_text, _ = self.parted(text, tokens)
        return [(piece.word.start, min(piece.word.end, len(text))) for piece in of_text]

    def parted(self, text: str, tokens: Tokens) -> tuple[list[WordPieces], list[WordPieces]]:
        """The words of a text that have tokens, and the sign after them, if it is a word of its own."""
        pieces = self.pieces(text, tokens)
        count = sum(piece.word.start < len(text) for piece in pieces)
        return pieces[:count], pieces[count:]

    def windows(self, text: str, tokens: Tokens) -> Sequence[SchemaWindow]:
        """Split a text into windows; none for a text without words. There is room for the sign after each."""
        of_text, after = self.parted(text, tokens)
        windows = []
        for some in self._slices([len(piece.ids) for piece in of_text]):
            words = of_text[some]
            if some.stop == len(of_text):
                windows.append(self.window([*words, *after], some.start, []))
            else:
                ends = words[-1].word.text.endswith(ENDS)
                windows.append(self.window(words, some.start, [] if ends else self.full_stop))
        return windows

    def _slices(self, counts: Sequence[int]) -> list[slice]:
        return word_windows(counts, ANY_NUMBER, self.room, self.options.stride)

    def window(self, words: Sequence[WordPieces], first: int, sign: Sequence[WordPieces]) -> SchemaWindow:
        """Put words, and a sign that is not the text's, behind the prompt; a word that there is no room for is cut."""
        inner, positions = [*self.prompt_of_labels.ids], []
        for _, ids in (*words, *sign):
            positions.append(len(inner))
            inner += ids[: self.room]
        labels, segments = np.array(self.prompt_of_labels.labels), [0] * len(inner)
        return SchemaWindow(inner, segments, first, np.array(positions), labels, len(words))

    # ------------------------------------------------------------------------------------------------------ spans

    def rows(self, windows: Sequence[Any], firsts: Sequence[int]) -> SchemaRows:
        """The rows of windows of which each begins at a row of a batch."""
        words = [window.words + first for window, first in zip(windows, firsts, strict=True)]
        labels = [window.labels + first for window, first in zip(windows, firsts, strict=True)]
        tasks = [int(of_window[0]) for of_window in labels]
        return SchemaRows.of(words, [of_window[1:] for of_window in labels], tasks, self.settings.max_width)

    def logits(self, windows: Sequence[Any], hidden_states: Callable[[Packed], Array]) -> list[Array]:
        """Compute the logits of each window: [span, type]; of no span where the network counts no entities."""
        network: Any = self.model.network
        packed = pack(windows)
        rows = self.rows(windows, packed.offsets[:-1].tolist())
        hidden = hidden_states(packed)
        counts = network.instances(hidden, rows).argmax(axis=1)
        logits: Array = network.spans(hidden, rows)
        bounds = np.searchsorted(rows.spans.sentences, np.arange(len(windows) + 1)).tolist()
        some = zip(pairwise(bounds), counts.tolist(), strict=True)
        return [logits[first : last if count else first] for (first, last), count in some]

    def entities(
        self, text: str, tokens: Tokens, windows: Sequence[Any], logits: Iterator[Array]
    ) -> list[LabelledSpan]:
        """Choose spans among those of at least the threshold, and give their characters."""
        check_wanted()
        candidates = highest([span for window in windows for span in self._above(window, next(logits))])
        among = [candidates]
        if self.options.multi_label:
            among = [[span for span in candidates if span.label == type.name] for type in self.types]
        chosen = [span for spans in among for span in self.chosen(spans)]
        words = self.words(text, tokens)
        # A span that ends in the sign after the text ends with the text's last word.
        last = len(words) - 1
        inside = highest([span._replace(end=min(span.end, last)) for span in chosen if span.start <= last])
        inside.sort(key=lambda span: span.start)
        return [LabelledSpan(words[span.start][0], words[span.end][1], span.label, span.score) for span in inside]

    def chosen(self, spans: Sequence[ScoredSpan]) -> list[ScoredSpan]:
        """Choose spans by score, each unless it overlaps one that was chosen."""
        return choose(spans, nested=self.options.nested, multi_label=False)

    def _above(self, window: SchemaWindow, logits: Array) -> Iterator[ScoredSpan]:
        """Yield the spans of at least the threshold, by start, length, type."""
        if not len(logits):
            return
        threshold = THRESHOLD if self.options.threshold is None else self.options.threshold
        probabilities: Any = 1 / (1 + np.exp(-logits.astype(np.float64)))
        rows = SpanRows.of([window.words], [window.labels[1:]], self.settings.max_width)
        last = window.own - 1
        for span, type in np.argwhere(probabilities >= threshold).tolist():
            start, end = int(rows.starts[span]), min(int(rows.ends[span]), last)
            if start <= last:
                first, score = window.first, float(probabilities[span, type])
                yield ScoredSpan(start + first, end + first, self.types[type].name, score)

"""keywords: the words and phrases of a text whose vectors are nearest to the text's.

    score(c) = cos(v(c), v(text)),    v: the model's vector of a text, as `encode` has it

After Sharma and Li 2019 and KeyBERT (Grootendorst 2020). With diversity d keywords are chosen one after the other, each
the c with the largest (1 − d) score(c) − d max_k cos(v(c), v(k)) over the keywords k so far: maximal marginal relevance
(Carbonell and Goldstein 1998), as KeyBERT has it.
"""

import logging
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from bertcli.engine.pauses import check_wanted
from bertcli.errors import BertcliError, number_of, quoted
from bertcli.files.texts import CHARACTERS_A_TOKEN, Item, Text
from bertcli.loaded_model import LoadedModel
from bertcli.ranking import ROUNDING, best_first
from bertcli.tasks.compute import encode
from bertcli.tasks.compute.encode import EncodeTask
from bertcli.tasks.encode import EncodeOptions
from bertcli.tasks.running.batches import Numbers
from bertcli.tasks.running.task import Progress, Record, Records, RecordTask, length_limit
from bertcli.tokens import Tokens
from bertcli.tokens.plain_words import stands_alone, words_of
from bertcli.tokens.words import Word
from bertcli.wings.keywords.keywords import ENGLISH, LONGEST, NONE, KeywordsOptions
from bertcli.wings.keywords.stop_words import ENGLISH_STOP_WORDS, StopWordCount, folded

logger = logging.getLogger("bertcli")

ENOUGH_TO_REFUSE = 1 << 20  # tokens: a server computes no more for a request
SHORTEST = 1e-12  # a vector of this length or less is that of no token


class Keyphrase(NamedTuple):
    """A word or phrase of a text, at its first place."""

    text: str
    start: int
    end: int


class Phrase(NamedTuple):
    """A candidate that is given: its words without case, and what stands before, between and after them."""

    words: tuple[str, ...]
    between: tuple[str, ...]


def plan(model: LoadedModel, options: KeywordsOptions) -> "KeywordsTask":
    """Make the task. Errors: BertcliError for a model without vectors of texts, and for candidates without words."""
    limit = length_limit(model, options.max_length)
    read_options = options.read_options
    encoder = encode.plan_dense(model, EncodeOptions(chunk=limit, batch_tokens=read_options.batch_tokens))
    words: frozenset[str] = frozenset()
    if options.stop_words == ENGLISH:
        words = ENGLISH_STOP_WORDS
    elif options.stop_words != NONE:
        words = frozenset(folded(word) for word in options.stop_words)
    given = None if options.candidates is None else tuple(map(_phrase, options.candidates))
    return KeywordsTask(
        model,
        read_options,
        encoder,
        options.top_k,
        options.sizes,
        options.diversity,
        words,
        given,
        asks_language=options.stop_words == ENGLISH and given is None,
    )


@dataclass(frozen=True, eq=False, repr=False)
class KeywordsTask(RecordTask):
    """The task of `keywords`.

    sizes: the fewest words of a candidate, and the most. given: candidates in place of all words. asks_language: say
    that the built-in stop words are English where the texts seem not to be.
    """

    encoder: EncodeTask
    top_k: int
    sizes: tuple[int, ...]
    diversity: float | None
    stop_words: frozenset[str]
    given: tuple[Phrase, ...] | None
    asks_language: bool

    def tokens(self, texts: Sequence[Text]) -> list[Tokens]:
        return self.model.tokenizer.encode([text.text for text in texts])

    def check(self, item: Item) -> None:
        if item.text.pair is not None:
            raise BertcliError(f"keywords reads single texts, and {item.title} has a second one.")

    def cost(self, item: Item) -> int:
        special = self.model.tokenizer.special_count(paired=False)
        cost, characters = len(item.tokens.ids), 0
        for candidate in self._candidates(item.text.text):
            cost += special + 1
            characters += len(candidate.text)
            # More phrases would take seconds to tell apart, of a request that is refused.
            if cost + characters // CHARACTERS_A_TOKEN > ENOUGH_TO_REFUSE:
                break
        return cost + characters // CHARACTERS_A_TOKEN

    def predictions(self, item: Item) -> int:
        return max(1, sum(1 for _ in islice(self._candidates(item.text.text), self.top_k)))

    def records(self, items: list[Item]) -> Iterator[Record]:
        of_items = [self.candidates(item.text.text) for item in items]
        # A text without candidates needs no vector; a word of several texts needs one.
        texts = [item.text.text for item, candidates in zip(items, of_items, strict=True) if candidates]
        words = list(dict.fromkeys(candidate.text for candidates in of_items for candidate in candidates))
        of_texts = iter(self.directions(texts))
        vectors = self.directions(words)
        row_of = {word: number for number, word in enumerate(words)}
        for item, candidates in zip(items, of_items, strict=True):
            keywords: list[Record] = []
            if candidates:
                rows = vectors[[row_of[candidate.text] for candidate in candidates]]
                scores = np.clip(rows @ next(of_texts), -1.0, 1.0)
                for number in self.chosen(scores, rows):
                    text, start, end = candidates[number]
                    keywords.append({"keyword": text, "score": float(scores[number]), "start": start, "end": end})
            yield {**item.named, "text": item.text.text, "truncated": False, "keywords": keywords}

    def chosen(self, scores: Numbers, directions: Numbers) -> list[int]:
        """The numbers of the keywords among the candidates, best first."""
        if self.diversity is None:
            return best_first(scores, self.top_k).tolist()  # type: ignore[no-any-return]
        numbers = diverse(scores, directions, self.top_k, self.diversity)
        order = best_first(scores[numbers])
        return [numbers[place] for place in order]

    def directions(self, texts: Sequence[str]) -> Numbers:
        """The vectors of texts [text, width], each of length 1; 0 for a text without tokens.

        That of a long text is the mean of its windows', by their numbers of tokens.
        """
        sums = np.zeros((len(texts), self.encoder.width))
        if not texts:
            return sums
        group = self.encoder.tokenize_group([*map(Text, texts)], 0)
        vectors = np.asarray(self.encoder.compute(group).vectors)
        for item, vector in zip(group.items, vectors, strict=True):
            sums[item.index] += len(item.tokens.ids) * vector.astype(np.float64)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        sums /= np.where(lengths > SHORTEST, lengths, 1.0)
        return sums

    def candidates(self, text: str) -> list[Keyphrase]:
        """The different candidates of a text, each at its first place, in the order of the text."""
        return list(self._candidates(text))

    def _candidates(self, text: str) -> Iterator[Keyphrase]:
        words = words_of(text)
        places = self._phrases(text, words) if self.given is None else self._given(text, words, self.given)
        known: set[str] = set()
        for start, end in places:
            spelled = " ".join(text[start:end].split())
            without_case = folded(spelled)
            if without_case not in known:
                known.add(without_case)
                yield Keyphrase(spelled, start, end)

    def _phrases(self, text: str, words: Sequence[Word]) -> Iterator[tuple[int, int]]:
        """Yield the places of words in a row, as many as `sizes` says, that begin and end with no stop word."""
        fewest, most = self.sizes[0], self.sizes[-1]
        for first, word in enumerate(words):
            if folded(word.text) in self.stop_words:
                continue
            for last in range(first, min(first + most, len(words))):
                if last > first and text[words[last - 1].end : words[last].start].strip():
                    break
                begin, end = word.start, words[last].end
                one_letter = last == first and end - begin == 1 and not stands_alone(text[begin])
                if last - first + 1 >= fewest and folded(words[last].text) not in self.stop_words and not one_letter:
                    yield begin, end

    def _given(self, text: str, words: Sequence[Word], given: Iterable[Phrase]) -> Iterator[tuple[int, int]]:
        """Yield the places of the candidates that are given."""
        by_words: dict[tuple[str, ...], list[Phrase]] = {}
        for phrase in given:
            by_words.setdefault(phrase.words, []).append(phrase)
        sizes = sorted({len(phrase) for phrase in by_words})
        for first in range(len(words)):
            for size in sizes:
                here = words[first : first + size]
                for phrase in by_words.get(tuple(folded(word.text) for word in here), ()):
                    place = _place(phrase, text, here)
                    if place is not None:
                        yield place

    def reorder_results(
        self, computed: Generator[Records, None, None], start: Progress
    ) -> Generator[Records, None, None]:
        counted = StopWordCount()
        for result in computed:
            yield result
            if self.asks_language:
                counted.add([record["text"] or "" for record in result.records()])
        if counted.are_of_another_language:
            logger.warning(
                "the built-in stop words are English, and the texts have only %d of them in %s: for texts in another "
                "language give its stop words (--stop-words FILE, or none).",
                counted.stop_words,
                number_of(counted.words, "word"),
            )


def diverse(scores: Numbers, directions: Numbers, count: int, diversity: float) -> list[int]:
    """Choose keywords by maximal marginal relevance, the one with the highest score first."""
    chosen = [int(best_first(scores, 1)[0])]
    nearest = directions @ directions[chosen[0]]
    for _ in range(min(count, len(scores)) - 1):
        check_wanted()
        relevance = (1 - diversity) * scores - diversity * nearest
        relevance[chosen] = -np.inf
        best = int(np.flatnonzero(relevance >= relevance.max() - ROUNDING)[0])
        chosen.append(best)
        nearest = np.maximum(nearest, directions @ directions[best])
    return chosen


# ------------------------------------------------------------------------------------------------ candidates given


def _phrase(text: str) -> Phrase:
    """Take a candidate apart. Errors: BertcliError for one without words, or with too many."""
    words = words_of(text)
    if not 1 <= len(words) <= LONGEST:
        why = f"is longer than {LONGEST} words" if words else "has no word"
        raise BertcliError(f"The candidate {quoted(text)} {why}: leave it out (candidates, --candidates).")
    ends, starts = [0, *(word.end for word in words)], [*(word.start for word in words), len(text)]
    between = tuple(" ".join(text[end:start].split()) for end, start in zip(ends, starts, strict=True))
    return Phrase(tuple(folded(word.text) for word in words), between)


def _place(phrase: Phrase, text: str, words: Sequence[Word]) -> tuple[int, int] | None:
    """The place of a phrase in a text where its words are these; None if other signs stand between or around them."""
    before, *inner, after = phrase.between
    for sign, word, following in zip(inner, words, words[1:], strict=False):
        if " ".join(text[word.end : following.start].split()) != sign:
            return None
    start, end = words[0].start - len(before), words[-1].end + len(after)
    if start < 0 or text[start : words[0].start] != before or text[words[-1].end : end] != after:
        return None
    return start, end

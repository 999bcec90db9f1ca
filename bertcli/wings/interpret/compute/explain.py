"""Occlusion: how much each word of a text contributes to a result (Li, Monroe and Jurafsky 2016, arXiv 1612.08220).

    contribution(word) = f(text) - f(text with the word's tokens replaced by [MASK], or left out)

n + 1 passes for n words, computed in batches. Contributions are not shares of a whole: they need not add up to f(text).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from logging import getLogger
from typing import Any

from bertcli.analysis.texts import tokens_of
from bertcli.errors import BertcliError, number_of, quoted
from bertcli.files.texts import Text, Texts, Values, from_values
from bertcli.kinds.max_sim import MaxSim
from bertcli.loaded_model import LoadedModel, expect_model
from bertcli.report.digits import short
from bertcli.report.documents import ByName, Document, View, print_document
from bertcli.report.figures import Panel, WithFigure, bars
from bertcli.report.page import Markup, document_table, element, marked, page, shaded, side_by_side
from bertcli.report.shades import Mark, print_marked
from bertcli.report.tables import cell
from bertcli.report.terminal import Column
from bertcli.tasks.compute.classify import chosen_head
from bertcli.tasks.compute.encode import EncodeTask
from bertcli.tasks.compute.rank import ApartRankTask
from bertcli.tasks.options import for_each_text, takes
from bertcli.tasks.parts.label_logits import label_reading
from bertcli.tasks.rank import RankOptions
from bertcli.tasks.running.batches import Numbers, in_micro_batches
from bertcli.tasks.running.task import length_limit
from bertcli.tokens import Tokens
from bertcli.tokens.text_words import word_numbers
from bertcli.wings.interpret.compute.target import Target, TokenizedText, preparing, result_of, sentence_of
from bertcli.wings.interpret.specs.explain import ExplainOptions

MEANING = (
    "A word's contribution is the result for the text less the result for the text without the word: blue words speak "
    "for it, red ones against it. It shows what the model does when that one word is missing, not why; words that only "
    "matter together can each show nothing, and contributions do not add up to the result."
)
MATCHES = (
    "A token of the query contributes its product with the token of the document that it is nearest to, its match: "
    "blue tokens add to the score, red ones take from it. Nothing is left out, and contributions add up to the score."
)
logger = getLogger("bertcli")


@dataclass(frozen=True)
class Contribution(ByName):
    """The contribution of a word, characters `start` to `end` of the text, to the result.

    side: 1 for a word of the second text. match: in late interaction the token of the document that this one of the
    query is nearest to.
    """

    word: str
    start: int
    end: int
    contribution: float
    side: int = 0
    match: str | None = None


@dataclass(frozen=True)
class Explanation(View, WithFigure):
    """The result for a text (`value`), what it is (`meaning`), and what each word contributes, in order.

    probability: the one that the value stands for, if it does.
    """

    index: int
    text: str
    text_pair: str | None
    target: str
    meaning: str
    value: float
    words: tuple[Contribution, ...]
    probability: float | None = None

    @property
    def record(self) -> dict[str, Any]:
        """The explanation as a JSON record; a pair's words have a `side`, 0 or 1."""
        names = ["word", "start", "end", "contribution"]
        record: dict[str, Any] = {"index": self.index, "text": self.text}
        if self.text_pair is not None:
            record["text_pair"] = self.text_pair
            names.append("side")
        if self.late:
            names.append("match")
        record |= {"target": self.target, "value": short(self.value)}
        record["words"] = [{name: short(word[name]) for name in names} for word in self.words]
        return record

    @property
    def late(self) -> bool:
        """True in late interaction (ColBERT): words are the query's tokens, each matched with one of the document."""
        return any(word.match is not None for word in self.words)

    @property
    def result(self) -> str:
        """The line with the result: its name, its value, and the probability that it stands for, if any."""
        named = "" if self.probability is None else f", a probability of {self.probability:.1%}"
        return f"{self.meaning}: {cell(self.value)}{named}"

    @property
    def shares(self) -> list[float]:
        """Each word's contribution divided by the sum of all absolute contributions, with its sign."""
        total = sum(abs(word.contribution) for word in self.words) or 1.0
        return [word.contribution / total for word in self.words]

    @property
    def shades(self) -> list[float]:
        """Each word's shade, from -1 to 1: the contribution divided by the largest absolute one."""
        largest = max((abs(word.contribution) for word in self.words), default=0.0) or 1.0
        return [word.contribution / largest for word in self.words]

    def document(self) -> Document:
        """The table that `bertcli explain` prints below the shaded text."""
        columns = [Column("Word"), Column("Contribution", number=True), Column("Share", number=True)]
        if self.late:
            columns.append(Column("Match"))
        rows = []
        for word, share in zip(self.words, self.shares, strict=True):
            row = [word.word, f"{word.contribution:+z.4f}", f"{share:+.1%}"]
            if self.late:
                row.append(word.match or "")
            rows.append(row)
        return Document(columns, rows, [self.result], self.record, self.record["words"])

    def print(self) -> None:
        """Print the text with its words shaded, or without color with numbers behind them, and the table."""
        for text, words in self.texts():
            print_marked(text, _marks(words, ".2f"))
        print()
        print_document(self.document(), "table")

    def panels(self) -> list[Panel]:
        """A bar for each word."""
        names = [word.word if word.match is None else f"{word.word} → {word.match}" for word in self.words]
        return [bars(names, [word.contribution for word in self.words], f"contribution to {self.meaning}")]

    def texts(self) -> list[tuple[str, "ShadedWords"]]:
        """The text, and its pair if there is one, each with its words and their shades."""
        texts = [self.text] if self.text_pair is None else [self.text, self.text_pair]
        found = []
        for side, text in enumerate(texts):
            words = []
            for word, shade in zip(self.words, self.shades, strict=True):
                # A special token of late interaction has a contribution, but no place in the text.
                is_in_text = word.end > word.start
                if is_in_text and word.side == side:
                    words.append((word, shade))
            found.append((text, words))
        return found


ShadedWords = list[tuple[Contribution, float]]


def _marks(words: ShadedWords, form: str) -> list[Mark]:
    """Words as marks of their text, titled with their contributions in this form."""
    return [Mark(word.start, word.end, shade, title=f"{word.contribution:+{form}}") for word, shade in words]


@takes(ExplainOptions)
@for_each_text
def explain(model: LoadedModel, texts: Values, options: ExplainOptions) -> list[Explanation]:
    """Occlusion: measure what each word of each text adds to a result, as `.words`, `.value`, `.target`, `.record`.

    The result is the log-odds of `label` (default: the label predicted), the log-probability of `word` (default:
    the best one) at the text's mask, or the cosine with the text `contrast`; in late interaction the score of text
    and pair, to which each token of the text adds its product with its `match`, the pair's token that it is nearest
    to. method: "mask" puts [MASK] in a word's place, "delete" leaves it out. Errors: BertcliError for a missing
    head, an unknown label or word, and a text that has no mask, or several, where a word is asked about.
    """
    return list(measure(model, from_values(texts, options.pairs), options))


def measure(model: LoadedModel, texts: Texts, options: ExplainOptions) -> Iterator[Explanation]:
    """Yield what `explain` returns, one text after the other."""
    expect_model(model)
    names_result = (options.label, options.word, options.contrast) != (None, None, None)
    match = model.kind.matched_tokens(names_result=names_result)
    if match is not None:
        yield from _matched(model, match, texts, options)
        return
    max_length = options.max_length
    if options.word is None and options.contrast is None:
        max_length, _ = label_reading(model, chosen_head(model, None), max_length)
    limit = length_limit(model, max_length)
    prepared = preparing(model, options)
    for index, (text, pair, *_) in enumerate(texts):
        whole = prepared(text)
        prompt_length = len(whole) - len(text)
        tokens = tokens_of(model, whole, pair, limit)
        sentence = sentence_of(model, tokens, text, options)
        result = result_of(model, sentence, options)
        value = float(result.of([sentence])[0])
        words = _words(model, tokens, [whole, pair or ""], prompt_length)
        occluded = [_without(model, sentence, positions, options.method == "mask") for _, positions in words]
        values = _values(result, occluded, options.batch_tokens)
        contributions = []
        for (word, _), value_without in zip(words, values, strict=True):
            contributions.append(replace(word, contribution=float(value - value_without)))
        yield Explanation(
            index=index,
            text=text,
            text_pair=pair,
            target=result.target,
            meaning=result.meaning,
            value=value,
            words=tuple(contributions),
            probability=None if result.probability is None else result.probability(value),
        )


def _matched(model: LoadedModel, match: MaxSim, texts: Texts, options: ExplainOptions) -> Iterator[Explanation]:
    """Explain the score of late interaction, which is a sum over the query's tokens: no word needs to be removed."""
    ranking = RankOptions(max_length=options.max_length, batch_tokens=options.batch_tokens)
    task = ApartRankTask.of(model, ranking, match)
    queries = task.queries
    assert isinstance(queries, EncodeTask)
    assert queries.token_vectors is not None
    tokens = queries.token_vectors.tokens
    if (options.label, options.word, options.contrast, options.method) != (None, None, None, "mask"):
        raise BertcliError(
            "The score of late interaction is explained without masking or deleting words: leave out label, word, "
            "contrast and method (--label, --word, --contrast, --method)."
        )
    for index, text in enumerate(texts):
        if text.pair is None:
            raise BertcliError("Give a query and a document to explain how they match (--text-pair).")
        (item,) = task.tokenize_group([text], index).items
        if item.tokens.lost:
            lost = "1 was" if item.tokens.lost == 1 else f"{item.tokens.lost} were"
            logger.warning(
                "the document %s was cut to %s; %s lost.", quoted(text.pair), number_of(task.limit, "token"), lost
            )
        ((of_query, of_document, document),) = task.compared([item])
        matching = match.matching(of_query, of_document, document.tokens.pieces)
        (query,) = queries.items([(index, Text(text.text))])
        prompt_length = len(queries.prompt)
        # A query is filled up with mask tokens, which count as the others do and are nowhere in the text.
        filled = tokens.filled(query.tokens)
        spans = query.tokens.offsets
        words = []
        for position, product, piece in zip(tokens.scored(filled), *matching, strict=True):
            start, end = spans[position] if position < len(spans) else (0, 0)
            start, end = max(0, start - prompt_length), max(0, end - prompt_length)
            words.append(Contribution(filled.pieces[position], start, end, product, match=piece))
        yield Explanation(index, text.text, text.pair, "score", "the score", sum(matching.products), tuple(words))


def _words(
    model: LoadedModel, tokens: Tokens, texts: Sequence[str], prompt: int
) -> list[tuple[Contribution, list[int]]]:
    """The words of a text and its pair (`word_numbers`), in order, each with its tokens' positions.

    Special tokens belong to no word, and what words contribute is not known yet. Of the first text, `prompt` characters
    at the beginning do not count.
    """
    tokenizer = model.tokenizer
    special = {tokenizer.special_id(role) for role in ("cls", "sep", "pad", "mask")}
    positions_of: dict[tuple[int, int], list[int]] = {}
    for side, text in enumerate(texts):
        for position, word in enumerate(word_numbers(text, tokens, side)):
            if word is not None and tokens.ids[position] not in special:
                positions_of.setdefault((side, word), []).append(position)
    words = []
    for (side, _), positions in positions_of.items():
        spans = [tokens.offsets[position] for position in positions]
        start = min(begin for begin, _ in spans)
        end = max(end for _, end in spans)
        # Some tokenizers count the space before a word as part of it.
        text = texts[side][start:end].lstrip()
        if side == 0:
            end -= prompt
        is_in_prompt = end < len(text)
        if text and not is_in_prompt:
            words.append((Contribution(text, end - len(text), end, 0.0, side), positions))
    return words


def _without(model: LoadedModel, sentence: TokenizedText, positions: list[int], masked: bool) -> TokenizedText:
    """The sentence with a word's tokens replaced by the mask token, or left out."""
    if masked:
        mask = model.tokenizer.special_id("mask")
        if mask is None:
            raise BertcliError(
                "The vocabulary has no mask token to put in a word's place: leave words out (--method delete)."
            )
        ids = [mask if position in positions else id for position, id in enumerate(sentence.ids)]
        return sentence._replace(ids=ids)
    kept = [position for position in range(len(sentence.ids)) if position not in positions]
    ids = [sentence.ids[position] for position in kept]
    segments = [sentence.segments[position] for position in kept]
    target_mask = None if sentence.mask is None else kept.index(sentence.mask)
    return TokenizedText(ids, segments, target_mask)


def _values(result: Target, sentences: list[TokenizedText], batch_tokens: int | None) -> list[float]:
    """The result of each sentence, several in a batch."""

    def of(batch: Sequence[int]) -> Numbers:
        return result.of([sentences[number] for number in batch])

    masks = [sentence.mask for sentence in sentences]
    return in_micro_batches(sentences, batch_tokens, of, masks)


def draw(views: Sequence[Explanation], model: str = "") -> str:
    """The page: the texts with their words shaded, and beside each the table of contributions."""
    content: list[Markup] = []
    for view in views:
        content += _sections(view, heading=len(views) > 1)
    title, lead, text = _about(views)
    return page(title, *content, lead=lead, model=model, text=text)


def _about(views: Sequence[Explanation]) -> tuple[str, str, str]:
    """The title of a page or figure, what it shows, and the text if there is only one."""
    only = views[0] if len(views) == 1 else None
    text = "" if only is None else only.text
    if any(view.late for view in views):
        return "Late interaction: which token matched which", MATCHES, text
    result = "each result" if only is None else only.meaning
    return f"Occlusion: which words speak for {result}", MEANING, text


def _capitalized(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _sections(view: Explanation, heading: bool) -> Iterator[Markup]:
    """One text's part of the page."""
    if heading:
        yield element("h2", f"Text {view.index}")
    legend = shaded(f"for {view.target}", 1), " ", shaded(f"against {view.target}", -1)
    picture = [
        element("p", _capitalized(view.result)),
        element("p", *legend, class_="legend-of-marks"),
    ]
    picture += [marked(text, _marks(words, "z.4f")) for text, words in view.texts()]
    yield side_by_side(picture, document_table("Words in order", view.document()))

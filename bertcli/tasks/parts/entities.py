"""tag --labels: entities of types that a request names, as the model's kind finds them.

`Kind.entity_finder` gives the finder; here its entities become records, and are redacted.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from bertcli.engine.packing import Packed, Sentence
from bertcli.errors import BertcliError, check_finite
from bertcli.extensions.of_kinds import fitting
from bertcli.files.texts import Failure, Item, Text
from bertcli.kinds.entities import EntityFinder, FinderOptions, LabelledSpan
from bertcli.loaded_model import LoadedModel
from bertcli.network.module import parameters
from bertcli.tasks.parts.redact import Found, Redaction, redaction_of
from bertcli.tasks.parts.tagged_words import bio_tags, with_words
from bertcli.tasks.running.batches import heads_of, hidden_states, in_micro_batches
from bertcli.tasks.running.task import Record, RecordTask, length_limit
from bertcli.tasks.tag import SPEC, TagOptions, labels_of
from bertcli.tokens import Tokens
from bertcli.tracing.dispatch import Array

logger = logging.getLogger("bertcli")
# Tokens of a window of a backbone that has no positions, and whose tokenizer sets no limit: 384 words seldom have more
# than 1,000 tokens, and attention to 4,096 takes 1.6 GB with 12 heads.
MOST_TOKENS = 4096


def check_takes_labels(model: LoadedModel, options: TagOptions) -> None:
    """Raise BertcliError for a model that has labels of its own, and finds no entities of named types."""
    has_labels = model.readable_kind.refusal_without_labels(model.name) is None
    if has_labels:
        task = SPEC.needs(options).task
        such = fitting(task)
        raise BertcliError(
            f"{task} needs a model that finds entities of types that you name, and {model.name} does not; "
            f"{heads_of(model)}. Choose one that does{'' if such is None else f', such as {such}'}."
        )


def window_limit(model: LoadedModel, max_length: int | None) -> int:
    """Return the number of tokens of a text with the labels before it: the tokenizer's limit, else the backbone's.

    A backbone without embeddings of positions (DeBERTa-v3, ModernBERT) has none, as in the libraries.
    """
    if any("P" in parameter.symbols for parameter in parameters(model.network)):
        return length_limit(model, max_length)
    model_limit = model.tokenizer.model_max_length or MOST_TOKENS
    if max_length is not None and max_length > model_limit:
        raise BertcliError(
            f"max_length (--max-length) is {max_length}, more than the {model_limit} tokens of this model."
        )
    return model_limit if max_length is None else max_length


def plan_entities(model: LoadedModel, options: TagOptions) -> "EntitiesTask":
    """Make the task. Errors: BertcliError for a model without a finder, and labels and windows that cannot be."""
    return EntitiesTask(model, options.read_options, options)


@dataclass(frozen=True, eq=False, repr=False)
class EntitiesTask(RecordTask):
    """Entities of the types in `options`."""

    options: TagOptions

    def __post_init__(self) -> None:
        super().__post_init__()
        # Made now, so that labels and windows that cannot be are an error before any work.
        _ = self.redaction

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The types of entities, each once."""
        return labels_of(self.options)

    @property
    def has_one_label(self) -> bool:
        """True if a word is in one entity at most, so that a tag says which."""
        return not self.options.nested and not self.options.multi_label

    @cached_property
    def finder(self) -> EntityFinder:
        """The finder of entities, which the model's kind makes."""
        options = self.options
        asked = FinderOptions(
            self.labels, options.threshold, options.nested, options.multi_label, self.limit, options.stride
        )
        return self.model.kind.entity_finder(self.model, asked)

    @cached_property
    def redaction(self) -> Redaction | None:
        """What is replaced; None without --redact. The finder leaves out what scores too little."""
        redaction = redaction_of(self.options, self.finder.labels_named, "labels (--labels) name")
        return None if redaction is None else redaction._replace(threshold=None)

    @cached_property
    def limit(self) -> int:
        """The number of tokens of a window, with the labels."""
        return window_limit(self.model, self.read_options.max_length)

    def tokens(self, texts: Sequence[Text]) -> list[Tokens]:
        return self.finder.tokens([text.text for text in texts])

    def check(self, item: Item) -> None:
        if item.text.pair is not None:
            raise BertcliError(f"tag reads single texts, and {item.title} has a second one.")
        if self.redaction is not None:
            self.redaction.check(item)

    def cost(self, item: Item) -> int:
        return self.finder.cost(item.text.text, item.tokens)

    def predictions(self, item: Item) -> int:
        words = len(self.finder.words(item.text.text, item.tokens))
        redacted = 0 if self.redaction is None else self.redaction.predictions(words)
        # A span may have every label, or its best alone.
        of_labels = words * len(self.labels) // (4 if self.options.multi_label else 100)
        return 1 + words // 4 + of_labels + redacted

    def records(self, items: list[Item]) -> Iterator[Record]:
        windows_of_items = [self.windows(item) for item in items]
        logits = iter(self.logits([window for windows in windows_of_items for window in windows]))
        for item, windows in zip(items, windows_of_items, strict=True):
            text, tokens = item.text.text, item.tokens
            labelled = self.finder.entities(text, tokens, windows, logits)
            entities = [_entity(text, entity) for entity in labelled]
            is_cut = self.finder.is_cut(text, tokens)
            of_words = {}
            if self.has_one_label:
                of_words = with_words(item, self.redaction, partial(bio_tags, entities=labelled))
            record = {"index": item.index, "text": text, "truncated": is_cut, **of_words, "entities": entities}
            if self.redaction is not None:
                hidden = (Found(*entity) for entity in labelled)
                record = self.redaction.applied(record, item, hidden, self.finder.words(text, tokens))
            yield record

    def failed(self, failure: Failure) -> Record:
        return failure.record() if self.redaction is None else self.redaction.failed(failure)

    def windows(self, item: Item) -> Sequence[Sentence]:
        """Split a text into windows; none for a text without words."""
        return self.finder.windows(item.text.text, item.tokens)

    def logits(self, windows: Sequence[Sentence]) -> list[Array]:
        """Compute the logits of each window, in micro-batches."""

        def states(packed: Packed) -> Array:
            return hidden_states(self.model, packed)

        def run(batch: list[int]) -> list[Array]:
            logits = self.finder.logits([windows[index] for index in batch], states)
            for of_window in logits:
                check_finite(of_window)
            return logits

        keys = [self.finder.key(window) for window in windows]
        return in_micro_batches(windows, self.read_options.batch_tokens, run, keys)


def _entity(text: str, entity: LabelledSpan) -> Record:
    start, end, label, score = entity
    return {"entity_group": label, "score": score, "word": text[start:end], "start": start, "end": end}

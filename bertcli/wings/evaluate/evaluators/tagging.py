"""Evaluator of `tag`: precision, recall and F1 of entities, right in extent and type, as seqeval's strict mode.

A model that labels tokens gives a tag for each word. One that takes types of entities gives those that are asked for:
of `labels`, else of the types in the data. Labels without prefixes (PER, NOUN), on either side, are spans of equal
labels.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bertcli.errors import BertcliError, quoted
from bertcli.files.labelled.fields import (
    NOTHING,
    TAGS,
    TEXT,
    WORDS,
    FieldSpec,
    read_texts,
    tagged_words,
)
from bertcli.files.labelled.rows import Flags
from bertcli.files.texts import Text
from bertcli.model import Model
from bertcli.statistics import metrics
from bertcli.statistics.intervals import FigureFacts
from bertcli.statistics.label_figures import without_rare_labels
from bertcli.statistics.metrics import Figures, Numbers
from bertcli.tasks.parts.label_schemes import (
    LIKE_A_TAG,
    NO_ENTITY,
    OUTSIDE,
    EntitySpan,
    LabelSet,
    Tag,
    Tags,
    entities,
    open_scheme,
)
from bertcli.wings.evaluate.evaluators.classification import MACRO_F1
from bertcli.wings.evaluate.evaluators.evaluator import F1, Evaluator, FigureSpec, RowShape
from bertcli.wings.evaluate.load.given_spans import EntitiesOfText, entities_of_text, read_spans
from bertcli.wings.evaluate.load.labelled import Labelled, texts_of
from bertcli.wings.evaluate.options import Evaluate
from bertcli.wings.evaluate.outcome import Details, Names, Outcome, usable

logger = logging.getLogger("bertcli")
# What is said of tags without prefixes: neighbors of one name are one entity.
PLAIN = "plain labels"
# What else is asked of tag: what --redact hides, beside the text.
REDACTED: dict[str, Any] = {"redact": True, "keep_text": True}


class TaggedRows(NamedTuple):
    """The true and found entities of each row, the model's records, and which rows have true ones that it can find.

    parts: what entities count in each row, its words or its characters; joiner: what is between these.
    """

    true: Sequence[set[EntitySpan]]
    found: Sequence[set[EntitySpan]]
    records: Sequence[Mapping[str, Any]]
    readable: Flags
    parts: Sequence[Sequence[str]]
    joiner: str
    right_words: Sequence[int] = ()

    def in_characters(self, row: int) -> list[EntitySpan]:
        """The true entities of a row, in characters of its text."""
        if not self.joiner:
            return sorted(self.true[row], key=lambda span: span.start)
        bounds = word_bounds(self.parts[row])
        spans = (EntitySpan(type, bounds[first][0], bounds[last - 1][1]) for type, first, last in self.true[row])
        return sorted(spans, key=lambda span: span.start)


class Hiding(NamedTuple):
    """What --redact would hide of the true entities of a text: characters, without blanks, of how many; and the rest.

    readable: {label, entity, readable} of each entity of which something stays.
    """

    covered: int
    letters: int
    readable: list[dict[str, str]]


def hiding_of(text: str, spans: Iterable[EntitySpan], hidden: Iterable[Mapping[str, Any]]) -> Hiding:
    """Compare true entities with the ranges that are hidden, whatever their labels."""
    is_hidden = [False] * len(text)
    for part in hidden:
        is_hidden[part["start"] : part["end"]] = [True] * (part["end"] - part["start"])
    places: set[int] = set()
    readable = []
    for type, start, end in spans:
        places |= {place for place in range(start, end) if not text[place].isspace()}
        left = "".join(" " if is_hidden[place] else text[place] for place in range(start, end)).split()
        if left:
            readable.append({"label": type, "entity": text[start:end], "readable": " ".join(left)})
    return Hiding(sum(is_hidden[place] for place in places), len(places), readable)


def evaluate(model: Model, data: Labelled, options: Evaluate) -> list[Outcome]:
    """Tag the words of each sentence: a text is its words with a space between.

    Errors: BertcliError for `labels` or `threshold` with a model whose labels are its own.
    """
    # A model without labels of its own says so.
    names_types = model.readable_kind.refusal_without_labels(model.name) is not None
    if not names_types and (options.labels is not None or options.threshold is not None):
        raise BertcliError(f"{model.name} has labels of its own: labels and threshold are for models that take types.")
    in_characters = any(isinstance(row.label, EntitiesOfText) for row in data.rows)
    if in_characters:
        rows = _by_characters(model, data, options, names_types)
    elif names_types:
        rows = _by_spans(model, data, options)
    else:
        rows = _by_tags(model, data, options)
    right = [of_true & of_found for of_true, of_found in zip(rows.true, rows.found, strict=True)]
    types = sorted({entity.type for spans in (*rows.true, *rows.found) for entity in spans})
    right_counts, found_counts, true_counts = (count_by_type(some, types) for some in (right, rows.found, rows.true))
    hiding = [
        hiding_of(row.text, rows.in_characters(number), record.get("hidden", ()))
        for number, (row, record) in enumerate(zip(data.rows, rows.records, strict=True))
    ]
    hidden = [np.array([of_row.covered for of_row in hiding], float), np.array([h.letters for h in hiding], float)]
    of_words = []
    if not in_characters:
        of_words = [np.array(rows.right_words, float), np.array([len(row.label.words) for row in data.rows], float)]
    spelled = partial(_spelled, joiner=rows.joiner)
    return [
        Outcome(
            name=model.name,
            figures_from=figures,
            arrays=[right_counts, found_counts, true_counts, *hidden, *of_words],
            columns=types,
            facts=type_facts,
            details=type_details,
            usable=usable(rows.records) & rows.readable,
            badness=(found_counts + true_counts - 2 * right_counts).sum(axis=1),
            expected=[spelled(*row) for row in zip(rows.true, rows.parts, strict=True)],
            found=[spelled(*row) for row in zip(rows.found, rows.parts, strict=True)],
            readable=[of_row.readable for of_row in hiding],
        )
    ]


def _by_tags(model: Model, data: Labelled, options: Evaluate) -> TaggedRows:
    """Compare the tag of each word, for a model that labels tokens."""
    words = [row.label.words for row in data.rows]
    of_model = LabelSet(model.config.labels)
    of_data = _labels_of_data(data, options, of_model)
    own_names = {label for label, tag in of_model.tags.items() if not tag.prefix}
    names = options.rename_label or {}
    read = partial(_read_tags, types=of_model.types, names=names, labels=of_data, own_names=own_names)
    gold, readable = data.left_out.read_or_skip(data.rows, read, list[Tag]())
    texts = texts_of([row._replace(words=row.label.words) for row in data.rows])
    records = model.tag(texts, aggregation="none", ignore=(), **REDACTED, **options.window_options)
    predicted = [_tags(row, record, of_model) for row, record in zip(data.rows, records, strict=True)]

    scheme = options.scheme or of_data.closed_scheme or open_scheme(gold)
    # Labels alone do not tell IOB1 from IOB2.
    model_scheme = of_model.closed_scheme or open_scheme(predicted)
    note = "tags are read as %s in the data, as %s in what %s says (--scheme: the data's)."
    in_model = model_scheme if of_model.has_prefixes else PLAIN
    logger.info(note, scheme if of_data.has_prefixes else PLAIN, in_model, model.name)

    true = [entities(tags, scheme) for tags in gold]
    found = [entities(tags, model_scheme) for tags in predicted]
    right_words = []
    for true_tags, found_tags in zip(gold, predicted, strict=True):
        pairs = zip(true_tags, found_tags, strict=False)
        right_words.append(sum(one.type == other.type for one, other in pairs))
    return TaggedRows(true, found, records, readable, words, " ", right_words)


def _by_spans(model: Model, data: Labelled, options: Evaluate) -> TaggedRows:
    """Compare the characters of entities, for a model that takes types: its words may be others than the data's."""
    names = options.rename_label or {}
    labels = options.labels
    of_data = _labels_of_data(data, options)
    if labels is None:
        labels = sorted({names.get(type, type) for type in of_data.types} - {OUTSIDE})
        if not labels:
            raise BertcliError("The data have no entities, so no type to look for: name some, in Python (labels=).")
        logger.info("looking for the types in the data: %s .", ", ".join(labels))
    read = partial(_read_tags, types=labels, names=names, labels=of_data)
    gold, readable = data.left_out.read_or_skip(data.rows, read, list[Tag]())
    records = model.tag(data.texts, labels=labels, threshold=options.threshold, **REDACTED, **options.window_options)

    scheme = options.scheme or of_data.closed_scheme or open_scheme(gold)
    in_data = scheme if of_data.has_prefixes else PLAIN
    logger.info("tags are read as %s in the data (--scheme chooses another).", in_data)
    true, found, right_words = [], [], []
    for row, tags, record in zip(data.rows, gold, records, strict=True):
        bounds = word_bounds(row.label.words)
        spans = entities(tags, scheme)
        true.append({EntitySpan(type, bounds[first][0], bounds[last - 1][1]) for type, first, last in spans})
        said = record.get("entities", ())
        found.append({EntitySpan(one["entity_group"], one["start"], one["end"]) for one in said})
        said_of = [""] * len(bounds)
        for one in said:
            for number, (start, end) in enumerate(bounds):
                if start < one["end"] and one["start"] < end:
                    said_of[number] = one["entity_group"]
        right_words.append(sum(tag.type == type for tag, type in zip(tags, said_of, strict=False)))
    return TaggedRows(true, found, records, readable, [row.text for row in data.rows], "", right_words)


def _by_characters(model: Model, data: Labelled, options: Evaluate, names_types: bool) -> TaggedRows:
    """Compare characters, for data that give entities as such; a model that labels tokens groups them as tag does.

    names_types: the model finds the types that are asked for.
    """
    names = options.rename_label or {}
    in_data = {names.get(span.label, span.label) for row in data.rows for span in row.label.spans} - {OUTSIDE}
    types = (options.labels or sorted(in_data)) if names_types else LabelSet(model.config.labels).types
    if names_types and not types:
        raise BertcliError("The data have no entities, so no type to look for: name some, in Python (labels=).")

    def read(row: Text) -> set[EntitySpan]:
        spans = set()
        for start, end, type, _ in row.label.spans:
            named = names.get(type, type)
            if named == OUTSIDE and type in names:
                continue
            if named not in types:
                raise _lacking(named, types)
            spans.add(EntitySpan(named, start, end))
        return spans

    true, readable = data.left_out.read_or_skip(data.rows, read, set[EntitySpan]())
    asked: dict[str, Any] = {"labels": types, "threshold": options.threshold} if names_types else {}
    records = model.tag(data.texts, **asked, **REDACTED, **options.window_options)
    found = [
        {EntitySpan(one["entity_group"], one["start"], one["end"]) for one in record.get("entities", ())}
        for record in records
    ]
    return TaggedRows(true, found, records, readable, [row.text for row in data.rows], "")


def _lacking(type: str, types: Iterable[str]) -> ValueError:
    return ValueError(
        f"the type {quoted(type)} is not one of this model's: {', '.join(sorted(types))} "
        "(--rename-label A=B says which one is meant, A=O that it is none)."
    )


def _labels_of_data(data: Labelled, options: Evaluate, of_model: LabelSet | None = None) -> LabelSet:
    """The data's labels, read as the model's if it has them all: a few rows do not show every prefix.

    With a scheme that is asked for, labels that all look like tags are tags: S-PER alone, where entities are words.
    """
    names = {tag for row in data.rows for tag in row.label.tags}
    if of_model is not None and names <= {*of_model.labels}:
        return of_model
    look_so = all(LIKE_A_TAG.fullmatch(name) for name in names - {OUTSIDE})
    return LabelSet(sorted(names), all_are_tags=look_so and options.scheme is not None)


def word_bounds(words: Sequence[str]) -> list[tuple[int, int]]:
    """The first character of each word, and the one after its last, in a text that has a space between them."""
    bounds, begin = [], 0
    for word in words:
        bounds.append((begin, begin + len(word)))
        begin += len(word) + 1
    return bounds


def figures(
    types: Names,
    counts: Numbers,
    right: Numbers,
    found: Numbers,
    true: Numbers,
    covered: Numbers | None = None,
    letters: Numbers | None = None,
    right_words: Numbers | None = None,
    words: Numbers | None = None,
) -> Figures:
    """Micro averages, macro F1 and F1 by type, from counts [text, type] of entities: right, found, true.

    covered, letters [text]: the characters of true entities that --redact would hide, and all. right_words, words
    [text]: the words with the right type (or none), and all; accuracy is their share.
    """
    sums = metrics.Sums(counts @ right, counts @ found, counts @ true)
    precision, recall, f1 = sums.together.scores
    _, _, f1_of_types = sums.scores
    shares = {}
    if covered is not None and letters is not None:
        shares["covered"] = metrics.ratio(counts @ covered, counts @ letters)
    if right_words is not None and words is not None:
        shares["accuracy"] = metrics.ratio(counts @ right_words, counts @ words)
    return {
        "f1": f1,
        "precision": precision,
        "recall": recall,
        "macro_f1": sums.averages()["macro_f1"],
        **shares,
        **{f"f1:{type}": of_type for type, of_type in zip(types, f1_of_types.T, strict=True)},
    }


def type_facts(
    types: Names,
    right: Numbers,
    found: Numbers,
    true: Numbers,
    covered: Numbers | None = None,
    letters: Numbers | None = None,
    right_words: Numbers | None = None,
    words: Numbers | None = None,
) -> FigureFacts:
    """Say which figures can have no interval: F1 of types that are rare, or on which no error is seen."""
    no_interval = without_rare_labels(types, found, true, "entities")
    wrong = (found + true - 2 * right).sum(axis=0)
    for type, errors in zip(types, wrong, strict=True):
        if not errors:
            no_interval[f"f1:{type}"] = "every entity is found and right, so resampling shows no errors"
    if covered is not None and letters is not None and np.array_equal(covered, letters):
        no_interval["covered"] = "every character is hidden, so resampling shows none that is not"
    if right_words is not None and words is not None and np.array_equal(right_words, words):
        no_interval["accuracy"] = "every word has the right type, so resampling shows no errors"
    return FigureFacts(no_interval=no_interval, bias_corrected=("macro_f1",))


def type_details(types: Names, right: Numbers, found: Numbers, true: Numbers, *others: Numbers) -> Details:
    """The figures of each type. Entities of one sentence are not independent, so that recall has no Wilson interval."""
    once = np.ones((1, len(right)))
    sums = metrics.Sums(once @ right, once @ found, once @ true)
    return Details(sums.by_label(types))


def count_by_type(sentences: Iterable[Iterable[EntitySpan]], types: Sequence[str]) -> Numbers:
    """Count the entities of each type [sentence, type]."""
    rows = []
    for spans in sentences:
        counts = Counter(entity.type for entity in spans)
        rows.append([counts[type] for type in types])
    return np.array(rows, float)


def _read_tags(
    row: Text,
    types: Collection[str],
    names: Mapping[str, str],
    labels: LabelSet,
    own_names: Collection[str] = (),
) -> list[Tag]:
    """The tags of a row with types as the model calls them; own_names: its labels without a prefix.

    Errors: ValueError for a type that it lacks, and for a label without a prefix among others that have one.
    """
    tags: list[Tag] = []
    for label in row.label.tags:
        tag = labels.tags[label]
        type = names.get(tag.type, tag.type)
        # --rename-label A=O says that A is no entity; a type that the data call O themselves (B-O) is one.
        if not tag.is_entity or (type == OUTSIDE and tag.type in names):
            tags.append(NO_ENTITY)
            continue
        is_name = label in own_names or LIKE_A_TAG.fullmatch(label) is not None
        if labels.has_prefixes and not tag.prefix and not is_name:
            raise ValueError(f"the tag {quoted(label)} is neither O nor like B-PER.")
        if type not in types:
            raise _lacking(type, types)
        tags.append(Tag(tag.prefix, type))
    return tags


def _tags(row: Text, record: Mapping[str, Any], labels: LabelSet) -> Tags:
    """The tag of each word as tag says it; O for a word without pieces, and for all of a row that could not be used."""
    said = record.get("tags", [OUTSIDE] * len(row.label.words))
    return [labels.tags.get(tag, NO_ENTITY) for tag in said]


def _spelled(spans: Iterable[EntitySpan], parts: Sequence[str], joiner: str) -> str:
    """Entities as people read them: "Angela Merkel (PER); Paris (LOC)"."""
    ordered = sorted(spans, key=lambda entity: entity.start)
    texts = [f"{joiner.join(parts[entity.start : entity.end])} ({entity.type})" for entity in ordered]
    return "; ".join(texts) or "none"


# ------------------------------------------------------------------------------------------------------------- the task


def read_tags(value: Any) -> list[str]:
    """A list of tags: all like B-PER, or plain names; the evaluator, which sees all rows, tells which."""
    tags = read_texts(value)
    for tag in tags:
        if not tag.strip():
            raise ValueError(f"{quoted(tag)} is no tag.")
    return tags


def named(data: Labelled) -> list[str]:
    """The figures of these tags: one for each type of entity that is true."""
    in_characters = [row.label.spans for row in data.rows if isinstance(row.label, EntitiesOfText)]
    if in_characters:
        types = tuple({span.label for spans in in_characters for span in spans})
    else:
        types = LabelSet(sorted({tag for row in data.rows for tag in row.label.tags})).types
    unknown = {"f1:TYPE"} | ({"accuracy"} if in_characters else set())
    return [name for name in FIGURES if name not in unknown] + [f"f1:{type}" for type in sorted(types)]


FIGURES = {
    "f1": F1,
    "precision": FigureSpec("share of the entities found that are right, in extent and type"),
    "recall": FigureSpec("share of the true entities that are found, in extent and type"),
    "macro_f1": MACRO_F1,
    "covered": FigureSpec("share of the characters of true entities that tag --redact hides, without --only"),
    "accuracy": FigureSpec("share of words whose type is right"),
    "f1:TYPE": FigureSpec("F1 of the entities of one type"),
}
EVALUATORS = {
    "tag": Evaluator(
        unit="sentences",
        fields=(
            WORDS,
            NOTHING,
            FieldSpec(TAGS, read_tags),
        ),
        figures=FIGURES,
        evaluate=evaluate,
        named=named,
        place=2,
        parts=tagged_words,
        other_shapes=(
            RowShape((TEXT, NOTHING, FieldSpec(("entities", "ents", "spans"), read_spans)), entities_of_text),
        ),
        options=("scheme", "labels", "threshold", "rename_label"),
    ),
}

"""Evaluator of `tag`: precision, recall and F1 of entities, right in extent and type, as seqeval's strict mode.

A model that labels tokens gives a tag for each word. A GLiNER model gives entities of the types that are asked for:
those of `labels`, else those in the data. Labels without prefixes (PER, NOUN), on either side, are spans of equal
labels.
"""

import logging
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from bertcli.errors import BertcliError, quoted
from bertcli.files.texts import Text
from bertcli.model import Model
from bertcli.wings.evaluate import metrics
from bertcli.wings.evaluate.bootstrap import FigureFacts
from bertcli.wings.evaluate.evaluators.classification import MACRO_F1, without_rare_labels
from bertcli.wings.evaluate.evaluators.evaluator import ACCURACY, F1, Evaluator, FigureSpec
from bertcli.wings.evaluate.load.fields import NOTHING, TAG, FieldSpec, read_texts, tagged_words
from bertcli.wings.evaluate.load.labelled import Flags, Labelled
from bertcli.wings.evaluate.metrics import Figures, Numbers
from bertcli.wings.evaluate.options import Evaluate
from bertcli.wings.evaluate.outcome import Details, Names, Outcome, usable
from bertcli.wings.evaluate.word_places import WordPlaces

logger = logging.getLogger("bertcli")
Tags = Sequence[str]
# Schemes in which a tag says where an entity ends.
CLOSED = ("BIOES", "BILOU")
# BILOU's prefixes are written as those of BIOES.
TO_BIOES = str.maketrans("LU", "ES")
# The first of the characters that stand for types: private ones, which occur in no pattern.
FIRST_TYPE = 0xE000
# An entity, in tags that are a prefix and a character for their type; seqeval's strict mode, Nakayama 2018.
SCHEMES = {
    # An entity begins with I; with B only where one of its type ends just before: I-X I-X B-X is two entities. As in
    # seqeval, a single B is no entity where a B of another type follows: of I-X B-X B-Y the first alone is an entity.
    "IOB1": r"I(.)(?:I\1)*|(?<=[IB](.))B\2(?:(?:I\2)+|(?!B(?!\2)))",
    "IOB2": r"B(.)(?:I\1)*",
    "BIOES": r"S.|B(.)(?:I\1)*E\1",
}
# Tags without prefixes: neighbors of one name are one entity.
PLAIN = "plain labels"
# What the only type is called, where tags are prefixes alone: B, I, O.
ONLY_TYPE = "entity"
SCHEMES["BILOU"] = SCHEMES["BIOES"]  # L and U are written E and S before entities are looked for


class EntitySpan(NamedTuple):
    """An entity: its type, its first word, and the word after its last; of a GLiNER model, characters for words."""

    type: str
    start: int
    end: int


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
    right_words: Sequence[int]


def form_of(labels: Iterable[str]) -> str:
    """Tell how labels are written: "typed" (B-PER), "untyped" (B, I), or PLAIN (PER, NOUN, E-mail)."""
    names = {*labels} - {"O"}
    # Every scheme has B or I, so a name that only looks like a tag (E-mail) does not make one.
    if any(TAG.fullmatch(name) and name[0] in "BI" for name in names):
        return "typed"
    if names & {"B", "I"} and names <= {*"BIESLU"}:
        return "untyped"
    return PLAIN


def written(tag: str, form: str) -> str:
    """The tag with a prefix and a type, or for PLAIN the name as it is.

    Errors: ValueError for a tag of another form.
    """
    if form == PLAIN or tag == "O":
        return tag
    if form == "untyped":
        return f"{tag}-{ONLY_TYPE}"
    if not TAG.fullmatch(tag):
        raise ValueError(f"the tag {quoted(tag)} is neither O nor like B-PER.")
    return tag


def type_of(tag: str, form: str) -> str:
    """The type of a tag that `written` gives; O for none."""
    return tag if form == PLAIN or tag == "O" else tag[2:]


def entities(tags: Tags, scheme: str) -> set[EntitySpan]:
    """The entities of a sentence, from the tag of each word."""
    if scheme == PLAIN:
        spans, first = set(), 0
        for name, same in groupby(tags):
            last = first + len([*same])
            if name != "O":
                spans.add(EntitySpan(name, first, last))
            first = last
        return spans
    types = sorted({tag[2:] for tag in tags})
    # Two characters a word, so that a regular expression can find entities.
    written = ""
    for tag in tags:
        prefix = tag[0].translate(TO_BIOES)
        written += prefix + chr(FIRST_TYPE + types.index(tag[2:]))
    spans = set()
    for match in re.finditer(SCHEMES[scheme], written):
        type = types[ord(match[0][1]) - FIRST_TYPE]
        spans.add(EntitySpan(type, match.start() // 2, match.end() // 2))
    return spans


def scheme_of(sentences: Iterable[Tags]) -> str:
    """Tell the scheme of tags.

    BILOU has L or U, and BIOES has E or S. Without these it is IOB1 if entities begin, but none with B (which in IOB1
    only parts neighbors of one type), else IOB2.
    """
    prefixes = set()
    # Of tags that begin an entity in any scheme: the one before is of another type, or none.
    first_prefixes = set()
    for tags in sentences:
        for before, tag in zip(["O", *tags], tags, strict=False):
            if tag == "O":
                continue
            prefixes.add(tag[0])
            if before[2:] != tag[2:]:
                first_prefixes.add(tag[0])
    if prefixes & {"L", "U"}:
        return "BILOU"
    if prefixes & {"E", "S"}:
        return "BIOES"
    return "IOB1" if first_prefixes == {"I"} else "IOB2"


def evaluate(model: Model, data: Labelled, options: Evaluate) -> list[Outcome]:
    """Tag the words of each sentence: a text is its words with a space between.

    Errors: BertcliError for `labels` or `threshold` with a model whose labels are its own.
    """
    # A model without labels of its own says so.
    names_types = model.readable_kind.refusal_without_labels(model.name) is not None
    if not names_types and (options.labels is not None or options.threshold is not None):
        raise BertcliError(f"{model.name} has labels of its own: labels and threshold are for GLiNER models.")
    rows = _by_spans(model, data, options) if names_types else _by_tags(model, data, options)
    right = [of_true & of_found for of_true, of_found in zip(rows.true, rows.found, strict=True)]
    types = sorted({entity.type for spans in (*rows.true, *rows.found) for entity in spans})
    right_counts, found_counts, true_counts = (count_by_type(some, types) for some in (right, rows.found, rows.true))
    word_counts = np.array([len(row.label.words) for row in data.rows], float)
    spelled = partial(_spelled, joiner=rows.joiner)
    return [
        Outcome(
            name=model.name,
            figures_from=figures,
            arrays=[right_counts, found_counts, true_counts, np.array(rows.right_words, float), word_counts],
            columns=types,
            facts=type_facts,
            details=type_details,
            usable=usable(rows.records) & rows.readable,
            badness=(found_counts + true_counts - 2 * right_counts).sum(axis=1),
            expected=[spelled(*row) for row in zip(rows.true, rows.parts, strict=True)],
            found=[spelled(*row) for row in zip(rows.found, rows.parts, strict=True)],
        )
    ]


def _by_tags(model: Model, data: Labelled, options: Evaluate) -> TaggedRows:
    """Compare the tag of each word, for a model that labels tokens."""
    words = [row.label.words for row in data.rows]
    labels = model.config.labels
    model_form, form = form_of(labels), _form_of_data(data, options, labels)
    types = {type_of(_model_tag(label, model_form), model_form) for label in labels if label != "O"}
    read = partial(_renamed, types=types, names=options.rename_label or {}, form=form)
    gold, readable = data.left_out.read_or_skip(data.rows, read, list[str]())
    records = model.tag(data.texts, aggregation="none", ignore=(), **options.window_options)
    predicted = [
        _tags(of_row, record.get("entities", ()), model_form) for of_row, record in zip(words, records, strict=True)
    ]

    scheme = PLAIN if form == PLAIN else options.scheme or scheme_of(gold)
    if model_form == PLAIN:
        model_scheme = PLAIN
    else:
        model_scheme = scheme_of([[_model_tag(label, model_form) for label in labels]])
        if model_scheme not in CLOSED:
            # Labels alone do not tell IOB1 from IOB2.
            model_scheme = scheme_of(predicted)
    note = "tags are read as %s in the data, as %s in what %s says (--scheme: the data's)."
    logger.info(note, scheme, model_scheme, model.name)

    true = [entities(tags, scheme) for tags in gold]
    found = [entities(tags, model_scheme) for tags in predicted]
    right_words = []
    for true_tags, found_tags in zip(gold, predicted, strict=True):
        pairs = zip(true_tags, found_tags, strict=False)
        right_words.append(sum(type_of(one, form) == type_of(other, model_form) for one, other in pairs))
    return TaggedRows(true, found, records, readable, words, " ", right_words)


def _by_spans(model: Model, data: Labelled, options: Evaluate) -> TaggedRows:
    """Compare the characters that entities cover, for a GLiNER model: its words may be others than the data's."""
    names = options.rename_label or {}
    labels = options.labels
    form = _form_of_data(data, options)
    if labels is None:
        in_data = set()
        for row in data.rows:
            for tag in row.label.tags:
                is_of_form = form != "typed" or TAG.fullmatch(tag)
                type = type_of(written(tag, form), form) if is_of_form else "O"
                in_data.add(names.get(type, type))
        labels = sorted(in_data - {"O"})
        if not labels:
            raise BertcliError("The data have no entities, so no type to look for: name some, in Python (labels=).")
        logger.info("looking for the types in the data: %s .", ", ".join(labels))
    read = partial(_renamed, types=labels, names=names, form=form)
    gold, readable = data.left_out.read_or_skip(data.rows, read, list[str]())
    records = model.tag(data.texts, labels=labels, threshold=options.threshold, **options.window_options)

    scheme = PLAIN if form == PLAIN else options.scheme or scheme_of(gold)
    logger.info("tags are read as %s in the data (--scheme chooses another).", scheme)
    true, found, right_words = [], [], []
    for row, tags, record in zip(data.rows, gold, records, strict=True):
        bounds = word_bounds(row.label.words)
        spans = entities(tags, scheme)
        true.append({EntitySpan(type, bounds[first][0], bounds[last - 1][1]) for type, first, last in spans})
        said = record.get("entities", ())
        found.append({EntitySpan(one["entity_group"], one["start"], one["end"]) for one in said})
        said_of = ["O"] * len(bounds)
        for one in said:
            for number, (start, end) in enumerate(bounds):
                if start < one["end"] and one["start"] < end:
                    said_of[number] = one["entity_group"]
        right_words.append(sum(type_of(tag, form) == said for tag, said in zip(tags, said_of, strict=False)))
    return TaggedRows(true, found, records, readable, [row.text for row in data.rows], "", right_words)


def _form_of_data(data: Labelled, options: Evaluate, labels: Iterable[str] = ()) -> str:
    """As `form_of`. Where every entity is one word (S-PER alone), the scheme asked for or the model's labels tell."""
    names = {tag for row in data.rows for tag in row.label.tags} - {"O"}
    form = form_of(names)
    are_tags = bool(names) and all(TAG.fullmatch(name) for name in names)
    of_the_model = names <= {*labels} and form_of(labels) == "typed"
    return "typed" if are_tags and (options.scheme or of_the_model) else form


def _model_tag(label: str, form: str) -> str:
    """A label of the model as `written`; one without a prefix beside others that have it begins with I-."""
    is_plain = form == "typed" and label != "O" and not TAG.fullmatch(label)
    return f"I-{label}" if is_plain else written(label, form)


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
    right_words: Numbers | None = None,
    words: Numbers | None = None,
) -> Figures:
    """Micro averages, macro F1 and F1 by type, from counts [text, type] of entities: right, found, true.

    right_words, words [text]: the words with the right type (or none), and all; accuracy is their share.
    """
    sums = metrics.Sums(counts @ right, counts @ found, counts @ true)
    precision, recall, f1 = sums.together.scores
    _, _, f1_of_types = sums.scores
    accuracy = {}
    if right_words is not None and words is not None:
        accuracy["accuracy"] = metrics.ratio(counts @ right_words, counts @ words)
    return {
        "f1": f1,
        "precision": precision,
        "recall": recall,
        "macro_f1": sums.averages()["macro_f1"],
        **accuracy,
        **{f"f1:{type}": of_type for type, of_type in zip(types, f1_of_types.T, strict=True)},
    }


def type_facts(
    types: Names,
    right: Numbers,
    found: Numbers,
    true: Numbers,
    right_words: Numbers | None = None,
    words: Numbers | None = None,
) -> FigureFacts:
    """Say which figures can have no interval: F1 of types that are rare, or on which no error is seen."""
    no_interval = without_rare_labels(types, found, true, "entities")
    wrong = (found + true - 2 * right).sum(axis=0)
    for type, errors in zip(types, wrong, strict=True):
        if not errors:
            no_interval[f"f1:{type}"] = "every entity is found and right, so resampling shows no errors"
    if right_words is not None and words is not None and np.array_equal(right_words, words):
        no_interval["accuracy"] = "every word has the right type, so resampling shows no errors"
    return FigureFacts(no_interval=no_interval, bias_corrected=("macro_f1",))


def type_details(types: Names, right: Numbers, found: Numbers, true: Numbers, *of_words: Numbers) -> Details:
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


def _renamed(row: Text, types: Collection[str], names: Mapping[str, str], form: str) -> list[str]:
    """The tags of a row with types as the model calls them. Errors: ValueError for a type that it lacks."""
    tags: list[str] = []
    for as_given in row.label.tags:
        tag = written(as_given, form)
        is_outside = tag == "O"
        type = type_of(tag, form)
        type = names.get(type, type)
        # --rename-label A=O says that A is no entity; a type that the data call O themselves (B-O) is one.
        if is_outside or (type == "O" and type_of(tag, form) in names):
            tags.append("O")
            continue
        if type not in types:
            raise ValueError(
                f"the type {quoted(type)} is not one of this model's: {', '.join(sorted(types))} "
                "(--rename-label A=B says which one is meant, A=O that it is none)."
            )
        tags.append(type if form == PLAIN else tag[:2] + type)
    return tags


def _tags(words: Sequence[str], pieces: Iterable[Any], form: str) -> Tags:
    """The tag of each word: that of its first piece; O for a word without pieces."""
    places = WordPlaces(words)
    tags: dict[int, str] = {}
    for piece in pieces:
        number = places.number(piece["start"], piece["end"])
        tags.setdefault(number, _model_tag(piece["entity"], form))
    return [tags.get(number, "O") for number in range(len(words))]


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
    types = {tag[2:] for row in data.rows for tag in row.label.tags if tag != "O"}
    return [name for name in FIGURES if name != "f1:TYPE"] + [f"f1:{type}" for type in sorted(types)]


FIGURES = {
    "f1": F1,
    "precision": FigureSpec("share of the entities found that are right, in extent and type"),
    "recall": FigureSpec("share of the true entities that are found, in extent and type"),
    "macro_f1": MACRO_F1,
    "accuracy": ACCURACY,
    "f1:TYPE": FigureSpec("F1 of the entities of one type"),
}
EVALUATORS = {
    "tag": Evaluator(
        unit="sentences",
        fields=(
            FieldSpec(("tokens", "words"), read_texts),
            NOTHING,
            FieldSpec(("tags", "ner_tags", "labels"), read_tags),
        ),
        figures=FIGURES,
        evaluate=evaluate,
        named=named,
        place=2,
        parts=tagged_words,
        options=("scheme", "labels", "threshold", "rename_label"),
    ),
}

"""Evaluator of `bertscore`: how much a text says what its references say, by the similarity of their tokens.

x, y: the normalized states, after one layer, of the tokens of a candidate and of a reference; w: the tokens' weights.

    precision = Σ w(x) maxᵧ x·y / Σ w(x)        recall = Σ w(y) maxₓ x·y / Σ w(y)        f1 = 2 P R / (P + R)

Zhang et al. 2020, arXiv 1904.09675, as `bert-score` 0.3.13 computes it beside transformers 4: the special tokens weigh
nothing, but may be the most similar ones; idf (--idf) is that of the references; a text without tokens scores 0; of
several references the best precision, recall and f1 count; a baseline (--baseline) is taken off last.
"""

import csv
import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli._version import __version__
from bertcli.engine.packing import Packed
from bertcli.errors import BertcliError, check_finite, number_of
from bertcli.files.labelled.fields import NOTHING, FieldSpec, Parts, Row, read_text, read_texts
from bertcli.files.texts import Item
from bertcli.model import Model
from bertcli.statistics.intervals import FigureFacts
from bertcli.tasks.options import Truncation
from bertcli.tasks.running.batches import hidden_states, in_packed_batches
from bertcli.tasks.running.run import results
from bertcli.tasks.running.task import Record, RecordTask
from bertcli.tokens import Tokenizer, Tokens, refuse_long
from bertcli.tokens.settings import read_settings
from bertcli.tracing.dispatch import Array
from bertcli.wings.evaluate.evaluators.evaluator import F1, Evaluator, FigureSpec
from bertcli.wings.evaluate.load.labelled import Labelled, Rated
from bertcli.wings.evaluate.options import Evaluate
from bertcli.wings.evaluate.outcome import Names, Outcome, mean_facts, means_of, usable

Numbers = NDArray[np.float64]
SCALES = "Each model's scores have a scale of their own: compare texts by one model, not models by their scores."
FIGURES = ("precision", "recall", "f1")
HEADER = ["LAYER", "P", "R", "F"]  # of a file of baselines
# What bert-score 0.3.13 calls itself in the line that its users cite.
VERSION = "0.3.12"
# Tokens of a text that bert-score takes for empty: the two special ones.
EMPTY = 2
# Tokenizers before whose texts bert-score puts a space, so that the first word is as any other.
SPACE_FIRST = ("roberta", "gpt2")
# Tokenizers that have no [CLS] and [SEP] in transformers unless their files name them: what they put around a text,
# such as T5's </s>, weighs as much as any token.
WITHOUT_SPECIAL = ("t5", "mt5", "umt5", "gemma", "qwen2", "pretrained", "tokenizersbackend")
TOGETHER = 1000  # references tokenized at a time
# The layer that the metric's authors choose for a model (bert_score.utils.model2layers): the one whose F1 correlates
# best with people's judgements of translations (WMT16). Models of families that bertcli does not run are left out.
LAYERS = {
    "bert-base-uncased": 9,
    "bert-large-uncased": 18,
    "bert-base-cased-finetuned-mrpc": 9,
    "bert-base-multilingual-cased": 9,
    "bert-base-chinese": 8,
    "roberta-base": 10,
    "roberta-large": 17,
    "roberta-large-mnli": 19,
    "roberta-base-openai-detector": 7,
    "roberta-large-openai-detector": 15,
    "allenai/scibert_scivocab_uncased": 8,
    "allenai/scibert_scivocab_cased": 9,
    "nfliu/scibert_basevocab_uncased": 9,
    "distilroberta-base": 5,
    "distilbert-base-uncased": 5,
    "distilbert-base-uncased-distilled-squad": 4,
    "distilbert-base-multilingual-cased": 5,
    "albert-base-v1": 10,
    "albert-large-v1": 17,
    "albert-xlarge-v1": 16,
    "albert-xxlarge-v1": 8,
    "albert-base-v2": 9,
    "albert-large-v2": 14,
    "albert-xlarge-v2": 13,
    "albert-xxlarge-v2": 8,
    "xlm-roberta-base": 9,
    "xlm-roberta-large": 17,
    "google/electra-small-generator": 9,
    "google/electra-small-discriminator": 11,
    "google/electra-base-generator": 10,
    "google/electra-base-discriminator": 9,
    "google/electra-large-generator": 18,
    "google/electra-large-discriminator": 14,
    "google/bert_uncased_L-2_H-128_A-2": 1,
    "google/bert_uncased_L-2_H-256_A-4": 1,
    "google/bert_uncased_L-2_H-512_A-8": 1,
    "google/bert_uncased_L-2_H-768_A-12": 2,
    "google/bert_uncased_L-4_H-128_A-2": 3,
    "google/bert_uncased_L-4_H-256_A-4": 3,
    "google/bert_uncased_L-4_H-512_A-8": 3,
    "google/bert_uncased_L-4_H-768_A-12": 3,
    "google/bert_uncased_L-6_H-128_A-2": 5,
    "google/bert_uncased_L-6_H-256_A-4": 5,
    "google/bert_uncased_L-6_H-512_A-8": 5,
    "google/bert_uncased_L-6_H-768_A-12": 5,
    "google/bert_uncased_L-8_H-128_A-2": 7,
    "google/bert_uncased_L-8_H-256_A-4": 7,
    "google/bert_uncased_L-8_H-512_A-8": 6,
    "google/bert_uncased_L-8_H-768_A-12": 7,
    "google/bert_uncased_L-10_H-128_A-2": 8,
    "google/bert_uncased_L-10_H-256_A-4": 8,
    "google/bert_uncased_L-10_H-512_A-8": 9,
    "google/bert_uncased_L-10_H-768_A-12": 8,
    "google/bert_uncased_L-12_H-128_A-2": 10,
    "google/bert_uncased_L-12_H-256_A-4": 11,
    "google/bert_uncased_L-12_H-512_A-8": 10,
    "google/bert_uncased_L-12_H-768_A-12": 9,
    "t5-small": 6,
    "t5-base": 11,
    "t5-large": 23,
    "vinai/bertweet-base": 9,
    "microsoft/deberta-base": 9,
    "microsoft/deberta-base-mnli": 9,
    "microsoft/deberta-large": 16,
    "microsoft/deberta-large-mnli": 18,
    "microsoft/deberta-xlarge": 18,
    "microsoft/deberta-xlarge-mnli": 40,
    "microsoft/mpnet-base": 8,
    "SpanBERT/spanbert-base-cased": 8,
    "SpanBERT/spanbert-large-cased": 17,
    "ProsusAI/finbert": 10,
    "Vamsi/T5_Paraphrase_Paws": 12,
    "ramsrigouthamg/t5_paraphraser": 11,
    "microsoft/deberta-v2-xlarge": 10,
    "microsoft/deberta-v2-xlarge-mnli": 17,
    "microsoft/deberta-v2-xxlarge": 21,
    "microsoft/deberta-v2-xxlarge-mnli": 22,
    "google/mt5-small": 8,
    "google/mt5-base": 11,
    "google/mt5-large": 19,
    "google/mt5-xl": 24,
    "princeton-nlp/unsup-simcse-bert-base-uncased": 10,
    "princeton-nlp/unsup-simcse-bert-large-uncased": 18,
    "princeton-nlp/unsup-simcse-roberta-base": 8,
    "princeton-nlp/unsup-simcse-roberta-large": 13,
    "princeton-nlp/sup-simcse-bert-base-uncased": 10,
    "princeton-nlp/sup-simcse-bert-large-uncased": 18,
    "princeton-nlp/sup-simcse-roberta-base": 10,
    "princeton-nlp/sup-simcse-roberta-large": 16,
    "dbmdz/bert-base-turkish-cased": 10,
    "dbmdz/distilbert-base-turkish-cased": 4,
    "microsoft/deberta-v3-xsmall": 10,
    "microsoft/deberta-v3-small": 4,
    "microsoft/deberta-v3-base": 9,
    "microsoft/mdeberta-v3-base": 10,
    "microsoft/deberta-v3-large": 12,
    "khalidalt/DeBERTa-v3-large-mnli": 18,
}
logger = logging.getLogger("bertcli")


# ----------------------------------------------------------------------------------------------------- what is compared


class Layer(NamedTuple):
    """The layer whose states are compared, and the model's name as it is cited."""

    number: int
    cited: str


def layer_of(model: Model, asked: int | None) -> Layer:
    """The layer: the one that is asked for (--layer), or that of LAYERS. Errors: BertcliError if there is none."""
    last = model.config.num_hidden_layers
    if not model.config.contextual or not last:
        raise BertcliError(
            f"bertscore compares tokens in their context, and {model.name} has no layers: choose another."
        )
    end = PurePath(model.name).name
    # A model keeps its name under another owner, and in a folder.
    known = next((name for name in LAYERS if model.name == name), None)
    known = known or next((name for name in LAYERS if PurePath(name).name == end), None)
    cited = known or (end if os.path.isdir(model.name) else model.name)
    if asked is None:
        if known is None:
            raise BertcliError(
                f"The authors of bertscore choose no layer for {model.name}: give one of its layers, 1 to {last} "
                "(--layer)."
            )
        asked = LAYERS[known]
        logger.info("bertscore compares the states after layer %d, the authors' choice for %s (--layer).", asked, known)
    number = asked + last + 1 if asked < 0 else asked
    if not 0 <= number <= last:
        raise BertcliError(
            f"There is no layer {asked} (--layer): {model.name} has layers 1 to {last}; 0 is the embeddings."
        )
    if model.engine.name != "numpy" and number != last:
        raise BertcliError(
            f"{model.engine.title} gives the states of the last layer only, and layer {number} is asked for: use "
            f"--engine numpy, or --layer {last}."
        )
    return Layer(number, cited)


def read_baseline(file: str, layer: int) -> Numbers:
    """Precision, recall and F1 of unrelated texts at a layer, as the authors' files have them: LAYER,P,R,F.

    Errors: BertcliError for another file, and for one without this layer.
    """
    try:
        with open(file, encoding="utf-8", newline="") as lines:
            header, *rows = [row for row in csv.reader(lines) if row]
        numbers = {int(row[0]): np.array([*map(float, row[1:])]) for row in rows}
    except OSError as error:
        raise BertcliError(f"{file} cannot be read (--baseline): {error.strerror}.") from None
    except (ValueError, IndexError, csv.Error):
        header, numbers = [], {}
    if header != HEADER or any(row.shape != (3,) or not (row < 1).all() for row in numbers.values()):
        raise BertcliError(
            f"{file} is no file of baselines (--baseline): it needs the columns {','.join(HEADER)}, and numbers below "
            "1, as in bert-score's rescale_baseline."
        )
    if layer not in numbers:
        raise BertcliError(f"{file} has no baseline for layer {layer} (--baseline): it has {_span(numbers)}.")
    return numbers[layer]


def _span(numbers: Mapping[int, Any]) -> str:
    return f"layers {min(numbers)} to {max(numbers)}" if numbers else "none"


# ---------------------------------------------------------------------------------------------------------- the metric


class Weighed(NamedTuple):
    """A text's normalized states [token, hidden], and the weight of each token."""

    states: Array
    weights: Numbers


def scores(candidate: Weighed, reference: Weighed) -> Numbers:
    """Precision, recall and F1 of a candidate: NaN where every weight is 0, which makes F1 0."""
    similarities = candidate.states @ reference.states.T
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.float64(candidate.weights @ similarities.max(axis=1)) / candidate.weights.sum()
        recall = np.float64(reference.weights @ similarities.max(axis=0)) / reference.weights.sum()
        f1 = np.nan_to_num(2 * precision * recall / (precision + recall), nan=0.0)
    if EMPTY in (len(candidate.states), len(reference.states)):
        precision = recall = np.float64(0)
    return np.array([precision, recall, f1])


@dataclass(frozen=True, eq=False, repr=False)
class ScoreTask(RecordTask):
    """A task that scores the candidates of a row against its references: {index, scores [candidate][3], cut, empty}."""

    batches_per_group = 1  # a row has more texts than the one that is counted
    layer: int
    space_first: bool
    # Of ids; others have `weight`.
    weights: Mapping[int, float]
    weight: float

    def tokenized(self, texts: Iterable[str]) -> list[Tokens]:
        """The tokens of texts, cut at the limit."""
        return tokenized(self.model.tokenizer, texts, self.space_first, self.limit)

    def check(self, item: Item) -> None:
        """Raise BertcliError for a text that is far too long, and, if texts may not be cut, for one of the row that is.

        The item itself, the first candidate, is checked by the base class.
        """
        rated: Rated = item.text.label
        for text in (*rated.candidates, *rated.references):
            refuse_long(text, item.text.location or item.title)
        if self.read_options.truncation == "error" and any(
            tokens.truncated for tokens in self.tokenized((*rated.candidates, *rated.references))
        ):
            raise BertcliError(f"A text of {item.title} has more than {self.limit} tokens: shorten it.")

    def records(self, items: list[Item]) -> Iterator[Record]:
        rows: list[Rated] = [item.text.label for item in items]
        texts = [*dict.fromkeys(text for row in rows for side in row for text in side)]
        tokens = dict(zip(texts, self.tokenized(texts), strict=True))
        states = in_packed_batches([*tokens.values()], self.read_options.batch_tokens, self.states)
        of_text = {
            text: Weighed(state, self.weights_of(tokens[text].ids)) for text, state in zip(texts, states, strict=True)
        }
        for item, row in zip(items, rows, strict=True):
            best = []
            for candidate in row.candidates:
                of_references = [scores(of_text[candidate], of_text[reference]) for reference in row.references]
                best.append(np.max(of_references, axis=0))
            of_row = [tokens[text] for side in row for text in side]
            cut = any(each.truncated for each in of_row)
            empty = any(len(each.ids) == EMPTY for each in of_row)
            yield {**item.named, "scores": best, "cut": cut, "empty": empty}

    def weights_of(self, ids: Sequence[int]) -> Numbers:
        """The weight of each token."""
        return np.array([self.weights.get(id, self.weight) for id in ids], np.float64)

    def states(self, packed: Packed) -> list[Array]:
        """The normalized states after the layer, of each text [token, hidden]. Errors: BertcliError for NaN."""
        network = self.model.network
        if self.layer == self.model.config.num_hidden_layers:
            state = hidden_states(self.model, packed)
        else:
            (inner,) = islice(network.states(packed), self.layer, self.layer + 1)
            # bert-score cuts the layers off, and so it keeps a norm that comes after them.
            state = network.final_norm(inner)
            check_finite(state)
        unit = state / np.linalg.norm(state, axis=1, keepdims=True)
        return np.split(unit, packed.offsets[1:-1])


def tokenized(tokenizer: Tokenizer, texts: Iterable[str], space_first: bool, limit: int) -> list[Tokens]:
    """The tokens of texts as bert-score has them: without the spaces around a text, cut at the limit."""
    stripped = [text.strip() for text in texts]
    return tokenizer.encode([f" {text}" if text and space_first else text for text in stripped], None, limit)


def idf(documents: Iterable[Sequence[int]]) -> tuple[dict[int, float], float]:
    """The weight of each id, ln((N + 1) / (df + 1)), and of those in none of N documents."""
    frequency: Counter[int] = Counter()
    total = 0
    for ids in documents:
        frequency.update({*ids})
        total += 1
    weights = {id: float(np.log((total + 1) / (count + 1))) for id, count in frequency.items()}
    return weights, float(np.log(total + 1))


# ----------------------------------------------------------------------------------------------------------- evaluator


def evaluate(model: Model, data: Labelled, options: Evaluate) -> list[Outcome]:
    """Score each system's candidates against the references."""
    layer = layer_of(model, options.layer)
    baseline = None if options.baseline is None else read_baseline(options.baseline, layer.number)
    task = _task(model, data, options, layer.number)
    records: list[Record] = []
    for block in results(task, data.texts):
        records += block.records()
    _log_cut_and_empty(records, options, task.limit)
    systems = options.candidate_column or [""]
    nothing = np.full((len(systems), len(FIGURES)), np.nan)
    every = np.array([record.get("scores", nothing) for record in records])
    if baseline is not None:
        every = (every - baseline) / (1 - baseline)
    cited = citation(layer, options)
    several = len(systems) > 1
    return [
        _outcome(
            f"{model.name}, {system}" if several else model.name, data, number, every[:, number], usable(records), cited
        )
        for number, system in enumerate(systems)
    ]


def _task(model: Model, data: Labelled, options: Evaluate, layer: int) -> ScoreTask:
    tokenizer, config = model.tokenizer, model.config
    # The tokenizer's own limit, whatever a sentence model sets.
    longest = min(tokenizer.model_max_length or config.max_tokens, config.max_tokens)
    # What is cut is counted here, references included.
    truncation: Truncation = "error" if options.truncation == "error" else "silent"
    read_options = replace(options.read_options, max_length=options.max_length or longest, truncation=truncation)
    assert model.layout is not None
    settings = read_settings(model.layout.tokenizer)
    specials: list[int | None] = []
    for role in ("cls", "sep"):
        named = settings.named.get(role)
        by_class = None if settings.class_name in WITHOUT_SPECIAL else tokenizer.special_id(role)
        specials.append(by_class if named is None else tokenizer.id_of(named))
    weights, weight = {id: 0.0 for id in specials if id is not None}, 1.0
    task = ScoreTask(model, read_options, layer, settings.class_name in SPACE_FIRST, weights, weight)
    if not options.idf:
        return task
    references = [text for row in data.rows for text in row.label.references]
    groups = (references[first : first + TOGETHER] for first in range(0, len(references), TOGETHER))
    weights, weight = idf(tokens.ids for group in groups for tokens in task.tokenized(group))
    return replace(task, weights=weights, weight=weight)


def _log_cut_and_empty(records: Sequence[Record], options: Evaluate, limit: int) -> None:
    cut, empty = (sum(record.get(key, False) for record in records) for key in ("cut", "empty"))
    rows = number_of(len(records), "row")
    if empty:
        logger.info("%s of %s: a candidate or a reference has no tokens, and scores 0.", f"{empty:,}", rows)
    if cut and options.truncation == "warn":
        logger.warning(
            "%s of %s: a candidate or a reference has more than %d tokens, and is cut there as bert-score cuts it "
            "(--max-length).", f"{cut:,}", rows, limit,
        )  # fmt: skip


def citation(layer: Layer, options: Evaluate) -> str:
    """The line that says how a score was made: bert-score's, with bertcli in the place of transformers."""
    weighed = "idf" if options.idf else "no-idf"
    rescaled = "" if options.baseline is None else "-custom-rescaled"
    return f"{layer.cited}_L{layer.number}_{weighed}_version={VERSION}(bertcli={__version__}){rescaled}"


def _outcome(
    name: str, data: Labelled, number: int, of_rows: Numbers, usable: NDArray[np.bool_], cited: str
) -> Outcome:
    precision, recall, f1 = of_rows.T
    texts = [row.label.candidates[number] for row in data.rows]
    undefined = int(np.isnan(of_rows[usable]).any(axis=1).sum())
    if undefined:
        logger.info(
            "%s: the precision or recall of %s is not defined, since idf is 0 for every token; its F1 counts as 0.",
            name, number_of(undefined, "text"),
        )  # fmt: skip
    values = {"f1": f1, "precision": precision, "recall": recall}
    columns = zip(data.rows, texts, precision, recall, f1, strict=True)
    return Outcome(
        name=name,
        **{**means_of(values), "facts": score_facts},
        usable=usable,
        badness=np.nan_to_num(1 - f1),
        expected=[" / ".join(row.label.references) for row in data.rows],
        found=[f"F1 {score:.4f}" for score in f1],
        texts=texts,
        signature=cited,
        of_texts=[
            {"place": row.location, "candidate": text}
            | {key: None if np.isnan(value) else float(value) for key, value in zip(FIGURES, numbers, strict=True)}
            for row, text, *numbers in columns
        ],
    )


def score_facts(columns: Names, values: Numbers) -> FigureFacts:
    """Say that a few rows may decide these means: a text without tokens scores 0, far from all others."""
    return replace(mean_facts(columns, values), losses=FIGURES)


def read_references(value: Any) -> list[str]:
    """A text, or a list of at least one."""
    texts = read_texts(value)
    if not texts:
        raise ValueError("there is no reference to compare with.")
    return texts


def parts(row: Row) -> Parts:
    """A row's first candidate, labelled with all candidates and the references."""
    return row.text, None, Rated([row.text, *row.others], row.second)


EVALUATORS = {
    # SummEval has decoded and references, WMT mt and ref, the library evaluate predictions and references.
    "bertscore": Evaluator(
        unit="texts",
        fields=(
            FieldSpec(
                ("candidate", "prediction", "predictions", "hypothesis", "hyp", "mt", "decoded", "output"), read_text
            ),
            FieldSpec(("reference", "references", "ref", "refs"), read_references),
            NOTHING,
        ),
        figures={
            "f1": F1,
            "precision": FigureSpec("mean similarity of the candidate's tokens to the nearest of the reference"),
            "recall": FigureSpec("mean similarity of the reference's tokens to the nearest of the candidate"),
        },
        evaluate=evaluate,
        parts=parts,
        options=("candidate_column", "layer", "idf", "baseline"),
        fitting="roberta-large, its authors' choice for English",
    ),
}

"""The result that explain, heads --ablate and patch measure: one number a text, from a prediction head or a vector.

label   ln(p / (1 - p)), the log-odds of a label        (for regression the output itself; a reranker's score is one)
word    ln p(word | rest), the log-probability of a word at the text's mask
contrast  the cosine of the text's vector with that of another text, as `encode` gives them
"""

import logging
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bertcli.analysis.texts import spelled, tokens_of
from bertcli.engine.packing import Packed, pack
from bertcli.errors import BertcliError, check_finite, quoted
from bertcli.kinds.vectors import unit
from bertcli.tasks.compute.classify import chosen_head, labels_of, own_activation
from bertcli.tasks.compute.encode import plan_dense
from bertcli.tasks.encode import EncodeOptions
from bertcli.tasks.parts.label_logits import check_label_head, label_logits, label_reading
from bertcli.tasks.parts.pair_logits import logits_by_modules
from bertcli.tasks.parts.prepared import prepare
from bertcli.tasks.parts.scores import sigmoid
from bertcli.tasks.running.batches import Numbers, check_head, hidden_states
from bertcli.tokens import Tokens
from bertcli.tracing.dispatch import Array
from bertcli.wings.interpret.options import TargetOptions

if TYPE_CHECKING:
    from bertcli.loaded_model import LoadedModel

logger = logging.getLogger("bertcli")


class TokenizedText(NamedTuple):
    """A text's tokens. mask: the position of the mask whose word is the target; None for other targets."""

    ids: list[int]
    segments: list[int]
    mask: int | None = None


class Target(NamedTuple):
    """A number for every sentence. target: its label, word, or other text; meaning: its name in full.

    `of` gives the numbers [sentence] of sentences that are computed as one packed batch; `probability` what a number
    stands for, if it is the logarithm of a probability or of odds.
    """

    target: str
    meaning: str
    of: Callable[[Sequence[TokenizedText]], Numbers]
    probability: Callable[[float], float] | None = None


def preparing(model: "LoadedModel", options: TargetOptions) -> Callable[[str], str]:
    """A function that prepends the model's prompt: a sentence model's for a cosine, or else a cross-encoder's."""
    if options.contrast is not None:
        prompt = prepare(model, EncodeOptions()).prompt
    elif options.word is not None:
        prompt = ""
    else:
        _, prompt = label_reading(model, chosen_head(model, None), None)
    return lambda text: prompt + text


def sentence_of(model: "LoadedModel", tokens: Tokens, text: str, options: TargetOptions) -> TokenizedText:
    """Make a TokenizedText of tokens, with the position of its mask if the target is a word.

    Errors: BertcliError for several masks, or none where a word is asked about.
    """
    _check_mask(model, tokens, text, options)
    if not _asks_for_word(model, tokens, options):
        return TokenizedText(tokens.ids, tokens.segments)
    mask = model.tokenizer.mask_token
    positions = [i for i, id in enumerate(tokens.ids) if id == model.tokenizer.mask_id]
    if len(positions) != 1:
        raise BertcliError(f"{quoted(text)} has {len(positions)} {mask}: write one, where a word is to be predicted.")
    return TokenizedText(tokens.ids, tokens.segments, positions[0])


def _check_mask(model: "LoadedModel", tokens: Tokens, text: str, options: TargetOptions) -> None:
    """Raise BertcliError for another model's mask token in a text that has none of this model's."""
    names_other = options.label is not None or options.contrast is not None or _has_own_labels(model)
    if names_other or "mlm" not in model.heads or model.tokenizer.special_id("mask") in tokens.ids:
        return
    written, mask = model.tokenizer.other_mask(text), model.tokenizer.mask_token
    if written is not None:
        raise BertcliError(f"{quoted(text)} has {written}, and the mask token of {model.name} is {mask}: write {mask}.")


def _asks_for_word(model: "LoadedModel", tokens: Tokens, options: TargetOptions) -> bool:
    """True if the target is a word at a mask: one is named, or nothing is named and the text has a mask."""
    if options.word is not None or options.label is not None or options.contrast is not None:
        return options.word is not None
    return not _has_own_labels(model) and "mlm" in model.heads and model.tokenizer.special_id("mask") in tokens.ids


def _has_own_labels(model: "LoadedModel") -> bool:
    """True if labels were given with the model: these are explained unless another result is named."""
    return model.readable_kind.label_scores("classifier") is not None


def result_of(model: "LoadedModel", sentence: TokenizedText, options: TargetOptions) -> Target:
    """The Target for these options; a label or word that they do not name is the one the model predicts here.

    Errors: BertcliError for a missing head, and an unknown label or word.
    """
    if options.contrast is not None:
        return _cosine(model, options.contrast)
    if sentence.mask is not None:
        return _log_probability(model, sentence, options.word)
    scored = model.pair_scores
    if scored is not None and options.label is None:
        return Target("score", "the score", lambda sentences: logits_by_modules(model, scored, pack(sentences))[:, 0])
    return _log_odds(model, sentence, options.label)


def _log_odds(model: "LoadedModel", sentence: TokenizedText, label: str | None) -> Target:
    """x_label - ln Σ exp(x_other), the log-odds of a softmax; with a sigmoid, and for regression, x_label itself."""
    head = chosen_head(model, None)
    check_label_head(model, head, "A label's log-odds (--contrast TEXT looks at a cosine)")
    labels = labels_of(model, head)
    if label is not None and label not in labels:
        raise BertcliError(f"There is no label {quoted(label)}; this model's are {', '.join(map(quoted, labels))}.")
    if label is None:
        predicted = label_logits(model, head, pack([sentence]))[0].argmax()
        column = int(predicted)
    else:
        column = labels.index(label)
    activation = "softmax" if head == "nsp" else own_activation(model)

    def of(sentences: Sequence[TokenizedText]) -> Numbers:
        outputs = label_logits(model, head, pack(sentences))
        result: Numbers = outputs[:, column]
        if activation == "softmax":
            others = np.delete(outputs, column, axis=1)
            result = result - np.logaddexp.reduce(others, axis=1)
        return result

    target = labels[column]
    if activation not in ("softmax", "sigmoid"):
        return Target(target, f"the output {target}", of)
    return Target(target, f"the log-odds of {target}", of, lambda odds: float(sigmoid(np.array(odds))))


def id_of_word(model: "LoadedModel", word: str) -> int:
    """The id of a word that is one piece of the vocabulary. Errors: BertcliError for any other."""
    pieces = model.tokenizer.pieces_of(word)
    if len(pieces) != 1 or pieces[0] == model.tokenizer.special_id("unk"):
        raise BertcliError(f"{quoted(word)} is not one piece of the vocabulary: choose a word that is.")
    return pieces[0]


def logit_difference(model: "LoadedModel", word: str, foil: str) -> Target:
    """x_word - x_foil at the mask, which is ln p(word) - ln p(foil): how much the model prefers the one word."""
    at_mask, id, other = _predicting(model), id_of_word(model, word), id_of_word(model, foil)

    def of(sentences: Sequence[TokenizedText]) -> Numbers:
        values = at_mask(sentences)
        return values[:, id] - values[:, other]

    return Target(f"{word} - {foil}", f"the logit difference of {word} and {foil} at the mask", of)


def _predicting(model: "LoadedModel") -> Callable[[Sequence[TokenizedText]], Numbers]:
    """A function that gives ln p over the vocabulary at the mask of each sentence: [sentence, vocabulary]."""
    check_head(model, "mlm", "The log-probability of a word at a mask")

    def at_mask(sentences: Sequence[TokenizedText]) -> Numbers:
        batch = pack(sentences)
        rows = batch.first + np.array([sentence.mask for sentence in sentences])
        return mlm_log_probabilities(model, hidden_states(model, batch, rows), batch)

    return at_mask


def _log_probability(model: "LoadedModel", sentence: TokenizedText, word: str | None) -> Target:
    """x_word - ln Σ exp(x), where x = MLM(hidden state of the mask)."""
    at_mask = _predicting(model)

    if word is None:
        pieces: tuple[int, ...] = (int(at_mask([sentence])[0].argmax()),)
    else:
        pieces = (id_of_word(model, word),)
    (id,) = pieces
    target = word or spelled(model, id)
    meaning = f"the log-probability of {target} at the mask"
    return Target(target, meaning, lambda sentences: at_mask(sentences)[:, id], math.exp)


def mlm_log_probabilities(model: "LoadedModel", states: Array, batch: Packed) -> Numbers:
    """ln p over the vocabulary [row, vocabulary], from rows of states that the masked-language-model head reads."""
    with np.errstate(all="ignore"):
        values: Numbers = model.network.predict("mlm", states, batch).astype(np.float64)
    check_finite(values)
    values -= np.logaddexp.reduce(values, axis=1, keepdims=True)
    return values


def _cosine(model: "LoadedModel", other: str) -> Target:
    """cos(v, w), where w is the vector of the other text."""
    task = plan_dense(model, EncodeOptions())

    def vectors(sentences: Sequence[TokenizedText | Tokens]) -> Array:
        """Vectors of length 1 [sentence, width], pooled as the checkpoint's files have it, else by the mean."""
        return unit(np.stack([*task.vectors(pack(sentences))]))

    vector = vectors([tokens_of(model, task.prompt + other)])[0]
    return Target(other, f"the cosine with {other!r}", lambda sentences: vectors(sentences).astype(np.float64) @ vector)

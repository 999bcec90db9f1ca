"""Activation patching: which layer and token carry the difference between the results of two texts.

Text B (the corrupted one) is run again with one activation of text A (the clean one). An activation is the state after
a layer at one token, the output of attention or feed-forward there, or an attention head's output:

    effect = (m_patched - m_B) / (m_A - m_B)        0: nothing of the difference, 1: all of it

m is the result that `explain` measures, too. That is "denoise"; "noise" runs A with an activation of B, and measures
how much of the result this one activation can spoil. Vig et al. 2020 (arXiv 2004.12265), Meng et al. 2022 (arXiv
2202.05262), Zhang and Nanda 2024 (arXiv 2309.16042). The table of effects is in patch_result.py.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from textwrap import shorten
from typing import Any, NamedTuple

import numpy as np

from bertcli.analysis.texts import partners, tokens_of
from bertcli.errors import BertcliError, check_finite
from bertcli.loaded_model import LoadedModel, expect_model
from bertcli.report.page import HEAT, Markup, element, maps, page, shaded, table
from bertcli.report.terminal import Column
from bertcli.tasks.options import takes
from bertcli.tasks.running.batches import BATCH_TOKENS, Numbers
from bertcli.tasks.running.task import length_limit
from bertcli.tokens import Tokens
from bertcli.tracing.dispatch import Array, watching
from bertcli.wings.interpret.compute.part_watcher import HEADS, LAYERS, PATCHED_PLACES, PartWatcher
from bertcli.wings.interpret.compute.patch_result import Patch
from bertcli.wings.interpret.compute.target import (
    Target,
    TokenizedText,
    logit_difference,
    preparing,
    result_of,
    sentence_of,
)
from bertcli.wings.interpret.specs.patch import PatchOptions

# Least difference of the two results: effects are shares of it, and below this their third digit would be noise.
LEAST_DIFFERENCE = 0.01
MEANING = (
    "An effect is the share of the difference between the two results that one patched activation carries: 0 is "
    "nothing of it, 1 all of it; effects below 0 (red) and above 1 happen. An effect of 0 does not show that an "
    "activation has no part in the result: it may matter together with others."
)
logger = logging.getLogger("bertcli")
# Positions in the text that is run (base), and in the one whose activations are taken (source).
Pairs = Sequence[tuple[int, int]]


# ----------------------------------------------------------------------------------------------- one place of a pass


class TextRun(NamedTuple):
    """A text's pass: its result, and its activations by name and layer, [token, hidden] or of heads [head, …]."""

    sentence: TokenizedText
    value: float
    activations: dict[tuple[str, int], Array]


def run_of(model: LoadedModel, result: Target, sentence: TokenizedText) -> TextRun:
    """Run a text and keep a copy of every activation that can be patched."""
    activations: dict[tuple[str, int], Array] = {}

    def keep(name: str, layer: int, array: Array) -> None:
        if name == HEADS:
            # The batch has one sentence.
            activations[name, layer] = array[0].copy()
        elif name in PATCHED_PLACES:
            activations[name, layer] = array.copy()

    # Damaged weights overflow; the result is checked.
    with np.errstate(all="ignore"), watching(PartWatcher(model.network, keep, whole=True)):
        value = float(result.of([sentence])[0])
    check_finite(np.array(value))
    return TextRun(sentence, value, activations)


class Patching(NamedTuple):
    """The text that is run again (`base`), and the one whose activations are put into it (`source`).

    denoise: base is the corrupted text, source the clean one; noise: the other way round.
    """

    model: LoadedModel
    result: Target
    base: TextRun
    source: TextRun

    def values(self, of: str, layer: int, copies: Sequence[Pairs], heads: Sequence[int] = ()) -> Numbers:
        """The result [copy] of copies of the base, each patched at its own pairs of positions, and in its own head.

        All copies are one batch. It begins at the patched layer, with the base's state there: earlier layers compute
        what they did in the base's own pass.
        """
        size = len(self.base.sentence.ids)
        activation = self.source.activations[of, layer]

        def put(name: str, number: int, array: Array) -> None:
            if (name, number) != (of, layer):
                return
            for copy, pairs in enumerate(copies):
                for base_position, source_position in pairs:
                    if of == HEADS:
                        head = heads[copy]
                        array[copy, head, base_position] = activation[head, source_position]
                    else:
                        # Copies lie end to end.
                        array[copy * size + base_position] = activation[source_position]

        state = np.tile(self.base.activations[LAYERS, layer], (len(copies), 1))
        with np.errstate(all="ignore"), watching(PartWatcher(self.model.network, put, layer, state, whole=True)):
            return self.result.of([self.base.sentence] * len(copies))

    def row(self, of: str, layer: int, pairs: Pairs, batch_tokens: int) -> Numbers:
        """The results of one layer's patches: one for each pair [pair], or of heads one for each head [head]."""
        heads: Sequence[int] = ()
        # A state is patched at one token at a time, a head at all tokens.
        copies: Sequence[Pairs] = [[pair] for pair in pairs]
        if of == HEADS:
            heads = range(self.model.config.num_attention_heads)
            copies = [pairs for _ in heads]
        step = max(1, batch_tokens // len(self.base.sentence.ids))
        results = []
        for first in range(0, len(copies), step):
            batch = slice(first, first + step)
            results.append(self.values(of, layer, copies[batch], heads[batch]))
        return np.concatenate(results)


# --------------------------------------------------------------------------------------------------- the whole of it


@takes(PatchOptions)
def patch(model: LoadedModel, a: str, options: PatchOptions) -> Patch:
    """Activation patching between texts a (clean) and b (corrupted): `.effects` of every layer and token, `.record`.

    of: "layers" (states, the embeddings first), "attention", "feed-forward" (their outputs before they are added), or
    "heads". direction: "denoise" runs b with what a has, "noise" a with what b has, "both" does both. The result is
    that of `explain`; what is not named is what the model predicts for a. Errors: BertcliError as in `explain`, for
    texts that do not differ, and for results closer than 0.01.
    """
    (view,) = measure(model, a, options)
    return view


def patches(
    model: LoadedModel,
    a: str,
    options: PatchOptions,
    activations: Sequence[str],
    counting: Callable[[Sequence[Any]], Iterable[Any]] = iter,
) -> list[Patch]:
    """Patch several activations as `patch` does one; `counting` wraps the loop over layers (progress).

    Errors: BertcliError for texts that do not differ, and for results closer than LEAST_DIFFERENCE.
    """
    expect_model(model)
    if not model.config.num_hidden_layers:
        raise BertcliError(f"{model.name} has no layers to patch: its vectors come from a table of words alone.")
    limit = length_limit(model, options.max_length)
    prepared = preparing(model, options)
    tokens_a = tokens_of(model, prepared(a), options.text_pair, limit)
    tokens_b = tokens_of(model, prepared(options.b), options.text_pair, limit)
    if (tokens_a.ids, tokens_a.segments) == (tokens_b.ids, tokens_b.segments):
        raise BertcliError("The two texts have the same tokens, so there is no difference to locate.")
    sentence_a = sentence_of(model, tokens_a, a, options)
    if options.word is not None and options.foil is not None:
        result = logit_difference(model, options.word, options.foil)
    else:
        result = result_of(model, sentence_a, options)
    # At a mask, both texts are asked about the word that was found for a.
    options_b = options if sentence_a.mask is None or options.word else replace(options, word=result.target)
    sentence_b = sentence_of(model, tokens_b, options.b, options_b)
    clean = run_of(model, result, sentence_a)
    corrupted = run_of(model, result, sentence_b)
    if abs(clean.value - corrupted.value) < LEAST_DIFFERENCE:
        raise BertcliError(
            f"{result.meaning} is {clean.value:.4f} for the one text and {corrupted.value:.4f} for the other: less "
            f"than {LEAST_DIFFERENCE} apart, so there is no difference to locate. Choose another result "
            "(--word, --label, --contrast)."
        )
    pairs = _pairs(tokens_a, tokens_b)
    pairs_of_b = [(in_b, in_a) for in_a, in_b in pairs]
    patchings = {
        "denoise": (Patching(model, result, corrupted, clean), pairs_of_b),
        "noise": (Patching(model, result, clean, corrupted), pairs),
    }
    directions = [name for name in patchings if options.direction in (name, "both")]
    sites = []
    for of in activations:
        # There is one state more than layers: the embeddings.
        rows = model.config.num_hidden_layers + (of == LAYERS)
        sites += [(of, direction, row) for direction in directions for row in range(rows)]
    grids: dict[tuple[str, str], list[Numbers]] = {}
    for of, direction, row in counting(sites):
        patching, positions = patchings[direction]
        values = patching.row(of, row, positions, options.batch_tokens or BATCH_TOKENS)
        if of != HEADS:
            # Columns are the tokens of b, of which only those in pairs were patched.
            of_tokens = np.full(len(tokens_b.ids), np.nan)
            of_tokens[[in_b for _, in_b in pairs]] = values
            values = of_tokens
        grids.setdefault((of, direction), []).append(values)
    return [
        Patch(
            a=a,
            b=options.b,
            target=result.target,
            meaning=result.meaning,
            value_a=clean.value,
            value_b=corrupted.value,
            pairs=tuple(pairs),
            tokens=(list(tokens_a.pieces), list(tokens_b.pieces)),
            of=of,
            values={direction: np.array(grids[of, direction]) for direction in directions},
        )
        for of in activations
    ]


def _pairs(a: Tokens, b: Tokens) -> list[tuple[int, int]]:
    """Pair the positions of a and b: one to one if they have equally many tokens, else where their pieces align."""
    if len(a.ids) == len(b.ids):
        return [(i, i) for i in range(len(a.ids))]
    return partners(a.pieces, b.pieces)


def _note_tokens_alone(view: Patch) -> None:
    """Log which tokens of two texts of other lengths have no partner."""
    tokens_a, tokens_b = view.tokens
    if len(tokens_a) == len(tokens_b):
        return
    alone = []
    for side, tokens in enumerate(view.tokens):
        with_partner = {pair[side] for pair in view.pairs}
        pieces = [piece for position, piece in enumerate(tokens) if position not in with_partner]
        alone.append(shorten(" ".join(pieces) or "none", 100, placeholder=" …"))
    logger.info(
        "the texts have %d and %d tokens. Tokens that only one of them has are not patched: %s of A, %s of B.",
        len(tokens_a),
        len(tokens_b),
        *alone,
    )


def measure(
    model: LoadedModel,
    a: str,
    options: PatchOptions,
    whole: bool = False,
    counting: Callable[[Sequence[Any]], Iterable[Any]] = iter,
) -> list[Patch]:
    """Patch the activation that the options name, or with `whole` all, for the page."""
    views = patches(model, a, options, PATCHED_PLACES if whole else (options.of,), counting)
    _note_tokens_alone(views[0])
    return views


# -------------------------------------------------------------------------------------------- the page, and the figure


def draw(views: Sequence[Patch], model: str = "") -> str:
    """The page: both texts with their differing pieces marked, and a heat map for each activation and direction."""
    view = views[0]
    columns = [Column("Text"), Column("Tokens, marked where the texts differ"), Column("Result", number=True)]
    results = ("A (clean)", view.value_a), ("B (corrupted)", view.value_b)
    rows = [[name, _pieces(view, side), f"{value:.4f}"] for side, (name, value) in enumerate(results)]
    lengths = [element("p", line) for line in view.lengths]
    texts = table(f"Two texts; the result is {view.meaning}", columns, rows)
    grids = [table(*one.heat_map(direction), HEAT) for one in views for direction in one.values]
    return page(_title(view), texts, *lengths, maps(*grids), lead=MEANING, model=model)


def _title(view: Patch) -> str:
    return f"Activation patching: {view.meaning}"


def _pieces(view: Patch, side: int) -> Markup:
    """The tokens of one text; those that differ from the other text's are marked."""
    shaded_words: list[str] = []
    for piece, is_equal in _compared(view, side):
        shaded_words += [piece if is_equal else shaded(piece, 1.0), " "]
    return element("span", *shaded_words)


def _compared(view: Patch, side: int) -> Iterator[tuple[str, bool]]:
    """The tokens of one text, each with False if its partner in the other text differs, or is missing."""
    other_side = 1 - side
    partner_of = {pair[side]: pair[other_side] for pair in view.pairs}
    for position, piece in enumerate(view.tokens[side]):
        partner = partner_of.get(position)
        yield piece, partner is not None and view.tokens[other_side][partner] == piece

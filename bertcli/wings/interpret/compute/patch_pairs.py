"""The mean over many pairs of texts of what patch.py measures of one, with intervals.

    effect[layer, column] = 1/n Σ_pairs (m_patched - m_B) / (m_A - m_B)

A column is a head; or a position, where all texts have the same number of tokens; else what a token is: before, at,
between or after the tokens that differ, the mask, or a special token (Meng et al. 2022 average over such groups). The
interval is the bootstrap of evaluate: pairs are drawn with replacement.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from bertcli.analysis.layers import layer_name
from bertcli.errors import BertcliError, number_of, quoted
from bertcli.loaded_model import LoadedModel
from bertcli.report.page import HEAT, element, maps, page, table
from bertcli.report.shades import HeatMap, Shaded
from bertcli.report.terminal import Column
from bertcli.tasks.options import takes
from bertcli.tasks.running.batches import Numbers
from bertcli.wings.evaluate.bootstrap import Figure, FigureFacts, Resampling, estimate
from bertcli.wings.evaluate.metrics import Figures
from bertcli.wings.evaluate.report.drawing import figure as figure_of
from bertcli.wings.evaluate.report.drawing import heat_map, sentence, stacked
from bertcli.wings.interpret.compute.effects import DIRECTIONS, EffectGrid, nulls, runs_of
from bertcli.wings.interpret.compute.parts import HEADS, PATCHED_PLACES
from bertcli.wings.interpret.compute.patch import (
    AFTER,
    BEFORE,
    BETWEEN,
    DIFFERENT,
    MEANING,
    TITLES,
    NoDifference,
    Patch,
    patches,
)
from bertcli.wings.interpret.compute.target import is_one_piece
from bertcli.wings.interpret.pairs import ASKED, TextPair, as_pairs
from bertcli.wings.interpret.specs.patch import PatchOptions, PatchPairsOptions

By = Literal["head", "position", "role"]
# Effects of all pairs that differ by less are equal, as are those of a state that no token before it has changed.
NO_SPREAD = 1e-3
SAME = "the same in all pairs"
# Pairs that the page lists.
MOST_LISTED = 100
NOT_ONE_PIECE = "a word that is not one piece of the vocabulary"
logger = logging.getLogger("bertcli")


class PairResult(NamedTuple):
    """One pair's part of the mean: its texts, and the results of both."""

    a: str
    b: str
    value_a: float
    value_b: float


@dataclass(frozen=True)
class PatchPairs(EffectGrid):
    """The mean of the effects of patching over pairs of texts: `of` is what is patched, as the option has it.

    by: what a column is. columns: the names of the columns. figures: by direction the mean effect with its interval
    [layer][column]; its n is the number of pairs that have such a token. results: of each pair. left_out: by reason the
    number of pairs that are no part of the mean. meaning: the name of the result, for people.
    """

    meaning: str
    of: str
    by: By
    names: tuple[str, ...]
    lengths: tuple[int, ...]
    results: tuple[PairResult, ...]
    left_out: Mapping[str, int]
    figures: Mapping[str, Sequence[Sequence[Figure]]]

    @cached_property
    def effects(self) -> dict[str, Numbers]:
        """The mean effects by direction [layer, column]; NaN where no pair has such a token."""
        return self._grids(lambda figure: figure.value)

    @property
    def columns(self) -> Sequence[str]:
        """The names of the columns: heads, positions, or what a token is."""
        return self.names

    @property
    def value_a(self) -> float:
        """The mean result of the clean texts."""
        return float(np.mean([pair.value_a for pair in self.results]))

    @property
    def value_b(self) -> float:
        """The mean result of the corrupted texts."""
        return float(np.mean([pair.value_b for pair in self.results]))

    @property
    def record(self) -> dict[str, Any]:
        """The means as a JSON record: effects, low and high [layer, column], null where there is none."""
        record: dict[str, Any] = {
            "pairs": len(self.results),
            "left_out": dict(self.left_out),
            "result": self.meaning,
            "value_a": self.value_a,
            "value_b": self.value_b,
            "by": self.by,
            "columns": [*self.names],
            "n": [figure.n for figure in next(iter(self.figures.values()))[0]],
        }
        low = self._grids(lambda figure: figure.low)
        high = self._grids(lambda figure: figure.high)
        for number, (direction, effects) in enumerate(self.effects.items()):
            grids = {"effects": effects, "low": low[direction], "high": high[direction]}
            in_record = {name: {self.of: nulls(grid)} for name, grid in grids.items()}
            if number:
                record["noise"] = in_record
            else:
                record |= in_record
        if reasons := self._reasons():
            record["no_interval"] = reasons
        return record

    def _grids(self, number: Callable[[Figure], float | None]) -> dict[str, Numbers]:
        """A number of each figure by direction [layer, column]; NaN for None."""
        return {
            direction: np.array([[number(figure) for figure in row] for row in rows], np.float64)
            for direction, rows in self.figures.items()
        }

    def _reasons(self) -> list[str]:
        """Why figures have no interval, each reason once; that of the commonest first."""
        figures = [figure for rows in self.figures.values() for row in rows for figure in row]
        return [reason for reason, _ in Counter(figure.reason for figure in figures if figure.reason).most_common()]

    def cell(self, direction: str, row: int, column: int) -> str:
        """The mean effect, and its interval in brackets."""
        figure = self.figures[direction][row][column]
        if np.isnan(figure.value):
            return ""
        interval = "" if figure.low is None else f" {_interval(figure)}"
        return Shaded(f"{figure.value:+z.2f}{interval}", figure.value)

    def line(self, direction: str, row: int, column: int) -> dict[str, Any]:
        """One mean as a line of a .csv file."""
        figure = self.figures[direction][row][column]
        line: dict[str, Any] = {"of": self.of, "direction": direction, "layer": self.layer(row)}
        if self.by == "head":
            line["head"] = 1 + column
        elif self.by == "position":
            line |= {"position": column, "token": self.names[column].partition(" ")[2]}
        else:
            line["tokens"] = self.names[column]
        effect = None if np.isnan(figure.value) else figure.value
        return {**line, "effect": effect, "low": figure.low, "high": figure.high, "n": figure.n}

    def below(self, turned: bool = False) -> list[str]:
        """The lines below the table: what is averaged, what was left out, both results, how to read a cell."""
        lines = [self.averaged]
        if self.left_out:
            reasons = "; ".join(f"{count:,} with {why}" for why, count in self.left_out.items())
            total = sum(self.left_out.values())
            lines.append(f"{total:,} of {number_of(total + len(self.results), 'pair')} left out: {reasons}.")
        lines.append(
            f"{self.meaning[0].upper()}{self.meaning[1:]}: on average {self.value_a:.4f} of A, {self.value_b:.4f} of B."
        )
        lines.append(f"Effect: 0 nothing, 1 all of the difference ({runs_of(self.effects)}).")
        return [*lines, *self._of_intervals(turned)]

    @property
    def averaged(self) -> str:
        """The line that says what a cell is the mean of."""
        count = number_of(len(self.results), "pair")
        if self.by == "head":
            return f"Means over {count}, of one head at all tokens."
        if self.by == "position":
            return f"Means over {count}, position by position: all texts have {self.lengths[0]} tokens."
        fewer = [
            f"{figure.n:,} for {name}"
            for name, figure in zip(self.names, next(iter(self.figures.values()))[0], strict=True)
            if figure.n < len(self.results)
        ]
        with_fewer = (
            f" Fewer pairs have such tokens: {', '.join(fewer)} (tokens without a partner are not patched)."
            if fewer
            else ""
        )
        return (
            f"Means over {count}. Texts have {min(self.lengths)} to {max(self.lengths)} tokens, so positions cannot be "
            f"averaged: a column is the mean of a text's tokens before, among ({DIFFERENT}) or after those that "
            f"differ.{with_fewer}"
        )

    def _of_intervals(self, turned: bool) -> list[str]:
        """What is in brackets, or where the intervals are, or why there are none."""
        reasons = self._reasons()
        figures = [figure for rows in self.figures.values() for row in rows for figure in row]
        # Where all pairs have the same effect the mean says it all.
        why = "; ".join(reason for reason in reasons if reason != SAME) or SAME
        if all(figure.low is None for figure in figures):
            return [f"No intervals: {why}."]
        what = "95 % confidence intervals, of resampled pairs"
        others = "" if why == SAME else f" Effects without one: {why}."
        if turned:
            return [f"-o FILE.csv, .json or .html, or a wider terminal, shows {what}.{others}"]
        return [f"In brackets: {what}.{others}"]


def _interval(figure: Figure) -> str:
    return f"[{figure.low:z.2f}, {figure.high:z.2f}]"


# ----------------------------------------------------------------------------------------------------------- the means


@takes(PatchPairsOptions)
def patch_pairs(model: LoadedModel, pairs: Sequence[Sequence[str | None]], options: PatchPairsOptions) -> PatchPairs:
    """The mean of `patch` over pairs of texts, with intervals: `.effects` [layer, column], `.columns`, `.record`.

    pairs: (clean, corrupted) texts, or (clean, corrupted, word, foil). Columns are heads; positions, if all texts have
    the same number of tokens; else what a token is: before, at (different), between or after what differs, the mask, a
    special token. Pairs without a difference are left out, and counted by reason. Errors: BertcliError as in `patch`,
    and where no pair is left.
    """
    (view,) = measure(model, as_pairs(pairs), options)
    return view


def measure(
    model: LoadedModel,
    pairs: Sequence[TextPair],
    options: PatchPairsOptions,
    whole: bool = False,
    counting: Callable[[Sequence[Any]], Iterable[Any]] = iter,
) -> list[PatchPairs]:
    """Patch each pair, and average: the activation that the options name, or with `whole` all, for the page."""
    activations = PATCHED_PLACES if whole else (options.of,)
    _note_own_fields(options, pairs)
    kept: list[list[Patch]] = []
    left_out: Counter[str] = Counter()
    for number, pair in enumerate(counting(pairs)):
        own = _own(options, pair)
        if any(not is_one_piece(model, own[name]) for name in ("word", "foil") if name in own):
            left_out[NOT_ONE_PIECE] += 1
            continue
        try:
            asked = PatchOptions(**{**vars(options), **own, "b": pair.b})
            kept.append(patches(model, pair.a, asked, activations))
        except NoDifference as error:
            left_out[error.why] += 1
        except BertcliError as error:
            # What is wrong with the model, or with an option, is not the file's fault.
            if not own and not any(quoted(text) in str(error) for text in (pair.a, pair.b)):
                raise
            raise BertcliError(f"{pair.location or f'Pair {number}'}: {error}") from None
    if not kept:
        reasons = "; ".join(f"{count:,} with {why}" for why, count in left_out.items())
        raise BertcliError(f"None of the {number_of(len(pairs), 'pair')} shows a difference to locate: {reasons}.")
    return [_mean([views[i] for views in kept], options, left_out) for i in range(len(activations))]


def _note_own_fields(options: PatchPairsOptions, pairs: Sequence[TextPair]) -> None:
    """Log what becomes of the fields that say for a pair what it is asked about."""
    own = " and ".join(name for name in ASKED if any(getattr(pair, name) is not None for pair in pairs))
    if own and _names_result(options):
        logger.info("the fields %s are not used, since an option says what all pairs are asked about.", own)
    elif own:
        logger.info("each pair is asked about its own %s.", own)


def _names_result(options: PatchPairsOptions) -> bool:
    """True if the options say what all pairs are asked about."""
    return (options.label, options.word, options.contrast) != (None, None, None)


def _own(options: PatchPairsOptions, pair: TextPair) -> dict[str, str]:
    """What the pair itself is asked about, where the options ask about nothing."""
    if _names_result(options):
        return {}
    return {name: value for name in ASKED if (value := getattr(pair, name)) is not None}


def _mean(views: Sequence[Patch], options: PatchPairsOptions, left_out: Mapping[str, int]) -> PatchPairs:
    """The mean of what was patched in each pair."""
    of = views[0].of
    lengths = tuple(len(tokens) for view in views for tokens in view.tokens)
    by: By = "head" if of == HEADS else "position" if len({*lengths}) == 1 else "role"
    names = _column_names(views, by)
    figures = {}
    for direction in views[0].values:
        grids = np.stack([_columns(view, direction, by, names) for view in views])
        figures[direction] = _figures(grids)
    return PatchPairs(
        meaning=_meaning(views, options),
        of=of,
        by=by,
        names=names,
        lengths=lengths,
        results=tuple(PairResult(view.a, view.b, view.value_a, view.value_b) for view in views),
        left_out=left_out,
        figures=figures,
    )


def _meaning(views: Sequence[Patch], options: PatchPairsOptions) -> str:
    """The name of the result: that of all pairs, or of what each has of its own."""
    meanings = {view.meaning for view in views}
    if len(meanings) == 1:
        return meanings.pop()
    if all(meaning.startswith("the logit difference") for meaning in meanings):
        return "the logit difference of each pair's word and foil at the mask"
    if all(meaning.endswith(" at the mask") for meaning in meanings):
        return "the log-probability at the mask of each pair's word (by default the best for A)"
    what = "log-odds" if all(meaning.startswith("the log-odds") for meaning in meanings) else "output"
    return f"the {what} of each pair's label (by default the one predicted for A)"


def _column_names(views: Sequence[Patch], by: By) -> tuple[str, ...]:
    """The names of the columns of the means."""
    if by == "head":
        return tuple(views[0].columns)
    if by == "position":
        pieces = [{*of_position} for of_position in zip(*(view.tokens[1] for view in views), strict=True)]
        # A token is named where all pairs have the same one.
        return tuple(f"{i} {min(names) if len(names) == 1 else '…'}" for i, names in enumerate(pieces))
    seen = dict.fromkeys(role for view in views for role in view.roles)
    first = [name for name in dict.fromkeys(view.roles[0] for view in views) if name not in (BEFORE, DIFFERENT, AFTER)]
    usual = [name for name in (BEFORE, DIFFERENT, BETWEEN, AFTER) if name in seen]
    return (*first, *usual, *(name for name in seen if name not in first and name not in usual))


def _columns(view: Patch, direction: str, by: By, names: Sequence[str]) -> Numbers:
    """One pair's effects in the columns of the means [layer, column]; NaN for what the pair has not."""
    effects = view.effects[direction]
    if by != "role":
        return effects
    columns = np.full((len(effects), len(names)), np.nan)
    for column, name in enumerate(names):
        patched = [i for i, role in enumerate(view.roles) if role == name and np.isfinite(effects[0, i])]
        if patched:
            columns[:, column] = effects[:, patched].mean(axis=1)
    return columns


def _figures(grids: Numbers) -> list[list[Figure]]:
    """The mean and its interval of each cell, from the effects [pair, layer, column]."""
    pairs, rows, columns = grids.shape
    values = grids.reshape(pairs, rows * columns)
    known = np.isfinite(values)
    filled = np.where(known, values, 0)
    names = [str(cell) for cell in range(rows * columns)]

    def means(counts: Numbers) -> Figures:
        weights = counts @ known
        sums = counts @ filled
        of_cells = np.divide(sums, weights, out=np.full(sums.shape, np.nan), where=weights > 0)
        return dict(zip(names, of_cells.T, strict=True))

    reasons = {}
    for cell, name in enumerate(names):
        of_cell = values[known[:, cell], cell]
        if len(of_cell) > 1 and np.ptp(of_cell) < NO_SPREAD:
            reasons[name] = SAME
    counts = {name: int(known[:, cell].sum()) for cell, name in enumerate(names)}
    facts = FigureFacts(no_interval=reasons, counts=counts)
    figures = estimate(means, facts, Resampling(pairs), "pairs")
    return [[figures[str(row * columns + column)] for column in range(columns)] for row in range(rows)]


# -------------------------------------------------------------------------------------------- the page, and the figure


def draw(views: Sequence[PatchPairs], model: str = "") -> str:
    """The page: what is averaged, a heat map with intervals for each activation and direction, and the pairs."""
    view = views[0]
    lines = [element("p", line) for line in view.below()]
    grids = [table(*_map(each, direction), HEAT) for each in views for direction in each.figures]
    columns = [Column("A (clean)"), Column("B (corrupted)"), Column("Result of A", True), Column("Result of B", True)]
    rows = [[pair.a, pair.b, f"{pair.value_a:.4f}", f"{pair.value_b:.4f}"] for pair in view.results[:MOST_LISTED]]
    listed = f"the first {MOST_LISTED} of {len(view.results):,} pairs" if len(view.results) > MOST_LISTED else "Pairs"
    pairs = table(f"{listed[0].upper()}{listed[1:]}; the result is {view.meaning}", columns, rows)
    return page(_title(view), *lines, maps(*grids), pairs, lead=MEANING, model=model)


def figure(views: Sequence[PatchPairs], model: str = "") -> str:
    """What is averaged, and a heat map with intervals for each direction, as a figure."""
    parts = [stacked([sentence(line) for line in views[0].below()])]
    parts += [heat_map(_map(each, direction)) for each in views for direction in each.figures]
    return figure_of(_title(views[0]), parts, lead=MEANING, model=model)


def _title(view: PatchPairs) -> str:
    return f"Activation patching, means over {number_of(len(view.results), 'pair')}: {view.meaning}"


def _map(view: PatchPairs, direction: str) -> HeatMap:
    """The heat map of an activation and direction: layers go down, or tokens where there are more of them."""
    figures = view.figures[direction]
    corner, across = "Layer", view.columns
    down: Sequence[str] = [layer_name(view.layer(row)) for row in range(len(figures))]
    if view.by != "head" and len(across) > len(down):
        corner, across, down = "Token", down, across
        figures = [*zip(*figures, strict=True)]

    def cell(figure: Figure) -> str:
        if np.isnan(figure.value):
            return ""
        label = "" if figure.low is None else _interval(figure)
        return Shaded(f"{figure.value:+z.2f}", figure.value, label=label, note=f"of {number_of(figure.n, 'pair')}")

    rows = [[name, *map(cell, row)] for name, row in zip(down, figures, strict=True)]
    columns = [Column(corner), *map(Column, across)]
    return HeatMap(f"{TITLES[view.of]}: {DIRECTIONS[direction]}", columns, rows)

"""fill-mask: the words a model predicts for a mask."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bertcli.errors import BertcliError
from bertcli.inputs import Texts, from_values
from bertcli.model import Model
from bertcli.tasks.candidates import Candidate, Target, find_targets, joint_fillings, rank
from bertcli.tasks.checks import check_count, head_of
from bertcli.tasks.items import START, Item, Reading, Records, RecordStream, Tally, Truncation, Window
from bertcli.tasks.masked import Blank
from bertcli.tasks.run import results
from bertcli.tasks.windows import Task
from bertcli.tokens import Tokenizer

SPAN = 16  # micro-batches in a window
TOP_K = 5


def fill_mask(
    model: Model,
    texts: Iterable[str] | Texts,
    pairs: Iterable[str | None] | str | None = None,
    *,
    top_k: int | None = None,
    targets: Sequence[str] | str | None = None,
    joint: bool = False,
    max_length: int | None = None,
    truncation: Truncation = "warn",
    batch_tokens: int | None = None,
    keep_going: bool = False,
    workers: int | None = None,
    start: Tally = START,
) -> RecordStream:
    """Records {index, text, truncated, masks: [{position, predictions: [{score, token, token_str, sequence}, …]}, …]}.

    The `top_k` (None: 5, or all targets) most probable pieces for every mask, independently. `targets` ranks only these
    words (a list, or a comma-separated string); one of several pieces is scored as a whole, with `pieces` and a list
    for `token`. With `joint` the masks of a text are filled together: prediction k of every mask belongs to the k-th
    best filling, and has its score.
    `workers`: processes that share the work (see `bertcli.tasks.run`).
    """
    check_count("top_k", top_k)
    head_of(model, "mlm", "fill-mask")
    mask = model.tokenizer.mask_id
    wanted = None if targets is None else find_targets(model, targets)
    count = top_k or (TOP_K if wanted is None else len(wanted))
    reading = Reading(max_length, truncation, batch_tokens, keep_going, start)
    task = _FillMask(model, reading, SPAN, mask, wanted, count, joint)
    return RecordStream(results(task, from_values(texts, pairs), workers))


@dataclass(frozen=True, eq=False)
class _FillMask(Task[Records]):
    mask: int
    targets: dict[Target, str] | None  # and how each is spelled
    top_k: int
    joint: bool

    def compute(self, window: Window) -> Records:
        blanks = [self._blank(item) for item in window.items]
        if self.joint:
            ranked = [joint_fillings(self.model, blank, self.targets, self.top_k, self.reading) for blank in blanks]
        else:
            ranked = rank(self.model, blanks, self.targets, self.top_k, self.reading)
        filled = zip(window.items, blanks, ranked, strict=True)
        return window.records(self._record(item, blank, candidates) for item, blank, candidates in filled)

    def check(self, item: Item) -> None:
        """Raise BertcliError for a text without a mask, with masks that were cut off, or too long for the targets."""
        blank = self._blank(item)
        longest = max(map(len, self.targets or [(self.mask,)]))
        growth = (longest - 1) * (len(blank.positions) if self.joint else 1)
        positions = self.model.config.max_position_embeddings
        if len(blank.ids) + growth > positions:
            raise BertcliError(
                f"A target of {longest} pieces makes {item.place} longer than this model's {positions} positions: "
                "shorten the text or set max_length (--max-length)."
            )

    def _blank(self, item: Item) -> Blank:
        name = self.model.tokenizer.mask_token
        if item.tokens.lost_masks:
            raise BertcliError(
                f"{item.tokens.lost_masks} {name} of {item.place} lie beyond the cut: shorten the text or raise "
                "max_length (--max-length)."
            )
        positions = [position for position, id in enumerate(item.tokens.ids) if id == self.mask]
        if not positions:
            raise BertcliError(f"There is no {name} in {item.place}: write {name} where a word is to be predicted.")
        return Blank(item.tokens.ids, item.tokens.segments, positions)

    def _record(self, item: Item, blank: Blank, ranked: list[list[Candidate]]) -> dict[str, Any]:
        """`ranked` holds every mask's candidates, filled in one by one or (joint) those of the same rank together."""
        words = [[self._word(candidate) for candidate in candidates] for candidates in ranked]
        masks = []
        for which, (position, candidates) in enumerate(zip(blank.positions, ranked, strict=True)):
            predictions = []
            for place, candidate in enumerate(candidates):
                together = range(len(words)) if self.joint else (which,)
                sequence = put_in(
                    item, {blank.positions[i]: words[i][place] for i in together}, position, self.model.tokenizer
                )
                predictions.append({**self._prediction(candidate, words[which][place]), "sequence": sequence})
            masks.append({"position": position, "predictions": predictions})
        return {"index": item.index, "text": item.text.text, "truncated": item.tokens.truncated, "masks": masks}

    def _word(self, candidate: Candidate) -> str:
        return self.targets[candidate.ids] if self.targets else self.model.tokenizer.piece(candidate.ids[0])

    def _prediction(self, candidate: Candidate, word: str) -> dict[str, Any]:
        found: dict[str, Any] = {"score": math.exp(candidate.log_probability)}
        if len(candidate.ids) == 1:
            return {**found, "token": candidate.ids[0], "token_str": word}
        pieces = [self.model.tokenizer.piece(id) for id in candidate.ids]
        return {**found, "token": list(candidate.ids), "token_str": word, "pieces": pieces}


def put_in(item: Item, words: dict[int, str], position: int, tokenizer: Tokenizer) -> str:
    """The text (or the pair, if the mask is in it) with masks replaced by words, by position; the rest is unchanged.

    A continuation piece that follows a letter is joined to it, without its `##`.
    """
    sides, offsets = item.tokens.sides, item.tokens.offsets
    side = sides[position]
    text = (item.text.pair if side == 1 else item.text.text) or ""
    for place in sorted((place for place in words if sides[place] == side), reverse=True):
        start, end = offsets[place]
        inside = text.find(tokenizer.mask_token, start, end)  # a mask token may include the spaces around it
        if inside >= 0:
            start, end = inside, inside + len(tokenizer.mask_token)
        glued = start > 0 and not text[start - 1].isspace()
        word = tokenizer.joined(["", words[place]]) if glued else words[place]
        text = text[:start] + word + text[end:]
    return text

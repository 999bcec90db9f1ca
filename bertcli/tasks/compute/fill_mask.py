"""fill-mask: the words a model predicts for a mask, one mask at a time or all masks of a text together."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from bertcli.errors import BertcliError
from bertcli.files.texts import Item
from bertcli.loaded_model import LoadedModel
from bertcli.tasks.fill_mask import SPEC, FillMaskOptions
from bertcli.tasks.parts.masked import MaskedSentence, no_mask, note_other_mask
from bertcli.tasks.parts.words_at_mask import Target, WordAtMask, best_words
from bertcli.tasks.running.batches import check_needs
from bertcli.tasks.running.task import Record, RecordTask
from bertcli.tokens import Spelling

TOP_K = 5
MOST_TOGETHER = 250  # joint fillings: a thousand beginnings with a thousand words each are compared for every mask


def plan(model: LoadedModel, options: FillMaskOptions) -> RecordTask:
    """The task that gives the records.

    Errors: BertcliError for targets that the model cannot spell, and for a head or mask that it lacks.
    """
    check_needs(model, SPEC.needs(options))
    _ = model.tokenizer.mask_id  # an error now if there is none
    targets = None
    if options.targets is not None:
        from bertcli.tasks.parts.targets import find_targets

        targets = find_targets(model, options.targets)
    count = int(options.top_k or (TOP_K if targets is None else len(targets)))
    if options.joint and count > MOST_TOGETHER:
        raise BertcliError(
            f"--joint gives at most {MOST_TOGETHER} fillings, and {count:,} are asked for: choose a smaller "
            "top_k (--top-k), or fill each mask alone."
        )
    return _FillMask(model, options.read_options, targets, count, options.joint)


def own_masks(model: LoadedModel, item: Item) -> MaskedSentence:
    """Find the masks in a text. Errors: BertcliError if it has none, or if some were cut off."""
    name, mask = model.tokenizer.mask_token, model.tokenizer.mask_id
    if item.tokens.lost_masks:
        raise BertcliError(
            f"{item.tokens.lost_masks} {name} of {item.title} beyond the cut: shorten the text or raise "
            "max_length (--max-length)."
        )
    positions = [position for position, id in enumerate(item.tokens.ids) if id == mask]
    if not positions:
        raise no_mask(model, item.text, item.title, f"write {name} where a word is to be predicted.")
    return MaskedSentence(item.tokens.ids, item.tokens.segments, positions)


@dataclass(frozen=True, eq=False, repr=False)
class _FillMask(RecordTask):
    batches_per_group = 16  # more texts of like length to compute together; each leaves only a few predictions
    targets: dict[Target, Spelling] | None
    top_k: int
    joint: bool

    def check(self, item: Item) -> None:
        """Raise BertcliError for a text without a mask, with masks that were cut off, or too long for the targets."""
        sentence = own_masks(self.model, item)
        note_other_mask(self.model, item.text, self._noted)
        longest = max(map(len, self.targets or [()]))
        growth = (longest - 1) * (len(sentence.positions) if self.joint else 1)
        positions = self.model.config.max_tokens
        if len(sentence.ids) + growth > positions:
            raise BertcliError(
                f"A target of {longest} pieces makes {item.title} longer than this model's {positions} positions: "
                "shorten the text or set max_length (--max-length)."
            )

    @cached_property
    def _noted(self) -> set[str]:
        """Mask tokens of other models that a warning has named: a set to fill, since the fields are frozen."""
        return set()

    def cost(self, item: Item) -> int:
        """Count the text once, and once for each mask and piece of a longer target, or for each beam (joint)."""
        masks = item.tokens.ids.count(self.model.tokenizer.mask_id)
        steps = sum(len(target) for target in self.targets or () if len(target) > 1)
        if self.joint:
            from bertcli.tasks.parts.joint import beam_width

            return len(item.tokens.ids) * masks * beam_width(self.top_k) * (1 + steps)
        return len(item.tokens.ids) * (1 + masks * steps)

    def predictions(self, item: Item) -> int:
        """Count the predictions: each repeats the text, and counts once for each 1,000 characters of it."""
        masks = item.tokens.ids.count(self.model.tokenizer.mask_id)
        return masks * self.top_k * (1 + len(item.text.text) // 1000)

    def records(self, items: list[Item]) -> Iterator[Record]:
        sentences = [own_masks(self.model, item) for item in items]
        batch_tokens = self.read_options.batch_tokens
        if self.joint:
            from bertcli.tasks.parts.joint import joint_fillings

            ranked = [
                joint_fillings(self.model, sentence, self.targets, self.top_k, batch_tokens) for sentence in sentences
            ]
        else:
            ranked = best_words(self.model, sentences, self.targets, self.top_k, batch_tokens)
        return map(self._record, items, sentences, ranked)

    def _record(self, item: Item, sentence: MaskedSentence, ranked: list[list[WordAtMask]]) -> Record:
        """`ranked` holds every mask's words, filled in one by one or (joint) those of the same rank together."""
        spelled = [[self._spelling(word) for word in words] for words in ranked]
        spans = mask_spans(item, sentence.positions, self.model.tokenizer.mask_token)
        masks = []
        for mask, (position, words) in enumerate(zip(sentence.positions, ranked, strict=True)):
            predictions = []
            for rank, word in enumerate(words):
                together = range(len(spelled)) if self.joint else (mask,)
                sequence = put_in(item, [(spans[i], spelled[i][rank]) for i in together], spans[mask].side)
                predictions.append({**self._prediction(word, spelled[mask][rank].alone), "sequence": sequence})
            masks.append({"position": position, "predictions": predictions})
        return {"index": item.index, "text": item.text.text, "truncated": item.tokens.truncated, "masks": masks}

    def _spelling(self, word: WordAtMask) -> Spelling:
        tokenizer = self.model.tokenizer
        return self.targets[word.ids] if self.targets else tokenizer.spelling([tokenizer.piece(word.ids[0])])

    def _prediction(self, word: WordAtMask, spelled: str) -> Record:
        record: Record = {"score": math.exp(word.log_probability)}
        if len(word.ids) == 1:
            return {**record, "token": word.ids[0], "token_str": spelled}
        pieces = [self.model.tokenizer.piece(id) for id in word.ids]
        return {**record, "token": list(word.ids), "token_str": spelled, "pieces": pieces}


class MaskSpan(NamedTuple):
    """The range of characters of a mask in the text (side 0) or its pair (side 1), end exclusive."""

    start: int
    end: int
    side: int | None


def mask_spans(item: Item, positions: Sequence[int], mask: str) -> list[MaskSpan]:
    """Find the characters of the masks at these tokens, without the spaces that a mask token may include."""
    sides, offsets = item.tokens.sides, item.tokens.offsets
    spans = []
    for position in positions:
        (start, end), side = offsets[position], sides[position]
        inside = ((item.text.pair if side == 1 else item.text.text) or "").find(mask, start, end)
        spans.append(MaskSpan(start, end, side) if inside < 0 else MaskSpan(inside, inside + len(mask), side))
    return spans


def put_in(item: Item, words: Sequence[tuple[MaskSpan, Spelling]], side: int | None) -> str:
    """The text, or (side 1) its pair, with its masks replaced by words; the rest is unchanged."""
    text = (item.text.pair if side == 1 else item.text.text) or ""
    for span, word in sorted((pair for pair in words if pair[0].side == side), reverse=True):
        glued = span.start > 0 and not text[span.start - 1].isspace()
        text = text[: span.start] + (word.following if glued else word.alone.lstrip()) + text[span.end :]
    return text

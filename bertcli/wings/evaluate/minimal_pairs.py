"""Score minimal pairs: which of two similar texts is likelier for a model, by sums of log-probabilities.

    pll           all tokens, each masked by itself                             Salazar et al. 2020
    within-word   with the later pieces of a word masked, too                   Kauf and Ivanova 2023, arXiv 2305.10588
    shared        only the pieces that both texts have, each masked by itself   Nangia et al. 2020, arXiv 2010.00133

The last is the metric of CrowS-Pairs. It measures which wording is likelier, not how a model built on it behaves.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from bertcli.errors import BertcliError
from bertcli.files.texts import Item, Text
from bertcli.ranking import ROUNDING
from bertcli.tasks.parts.guesses import Guess, guesses, scored
from bertcli.tasks.running.task import Record, RecordTask
from bertcli.tokens import Tokens

Metric = Literal["pll", "within-word", "shared"]


@dataclass(frozen=True, eq=False, repr=False)
class PairsTask(RecordTask):
    """A task that scores the two texts of a pair separately."""

    batches_per_group = 1  # each token of a text makes another sentence to compute
    metric: Metric

    def tokens(self, texts: Sequence[Text]) -> list[Tokens]:
        return self._alone([text.text for text in texts])

    def _alone(self, texts: list[str]) -> list[Tokens]:
        return self.model.tokenizer.encode(texts, [None] * len(texts), self.limit)

    def check(self, item: Item) -> None:
        """Raise BertcliError for a text without a second one, and where one of them is too long to be compared."""
        if item.text.pair is None:
            raise BertcliError(f"{item.title} has no second text to compare it with (--pair-column).")
        if item.tokens.truncated or self._alone([item.text.pair])[0].truncated:
            raise BertcliError(
                f"A text of {item.title} has more than {self.limit} tokens, and a comparison of cut texts means "
                "nothing: shorten it."
            )

    def cost(self, item: Item) -> int:
        """Each text once for each of its tokens; the second has about as many as the first."""
        return 2 * len(item.tokens.ids) ** 2

    def records(self, items: list[Item]) -> Iterator[Record]:
        seconds = self._alone([item.text.pair or "" for item in items])
        of_items = [self._sides(item.tokens, second) for item, second in zip(items, seconds, strict=True)]
        every = [guess for sides in of_items for some in sides for guess in some]
        log_probs = iter(scored(self.model, every, self.read_options.batch_tokens))
        for item, sides in zip(items, of_items, strict=True):
            first, second = (math.fsum(sum(next(log_probs)) for _ in some) for some in sides)
            equal = abs(first - second) <= ROUNDING * max(abs(first), abs(second))
            yield {
                **item.named,
                "text": item.text.text,
                "text_pair": item.text.pair,
                "score": first,
                "pair_score": second,
                "preferred": None if equal else "text" if first > second else "text_pair",
            }

    def _sides(self, first: Tokens, second: Tokens) -> tuple[list[Guess], list[Guess]]:
        sides = [guesses(self.model, tokens, self.metric == "within-word") for tokens in (first, second)]
        if self.metric == "shared":
            blocks = SequenceMatcher(None, first.ids, second.ids).get_matching_blocks()
            kept = [{block[side] + i for block in blocks for i in range(block.size)} for side in (0, 1)]
            sides = [
                [guess for guess in some if guess.sentence.positions[0] in places]
                for some, places in zip(sides, kept, strict=True)
            ]
        return sides[0], sides[1]

"""Run sentences through a model and its heads, in micro-batches.

Micro-batches keep a layer's working set inside the processor's cache. Results do not depend on how sentences are
batched, beyond 2e-6 of a vector's largest number.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from copy import deepcopy
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bertcli.engine.packing import LEAST_TOKENS, Packed, Sentence, pack
from bertcli.engine.pauses import between_batches
from bertcli.engine.threads import each_or_whole, thread_count
from bertcli.errors import BertcliError, check_finite
from bertcli.loaded_model import LoadedModel
from bertcli.models.registry import family
from bertcli.network.heads import HEADS, OF_TOKENS
from bertcli.tasks.registry import Needs
from bertcli.tracing.dispatch import Array, Integers

R = TypeVar("R")
Numbers = NDArray[np.float64]

BATCH_TOKENS = 1536  # at 128 tokens a text 1.07 times as fast as 1,000, and 1.9 times as fast as 6,000
NUMBERS_TOGETHER = 1 << 22  # logits over the vocabulary held at a time: 16 MB, 137 tokens at BERT's vocabulary


def check_needs(model: LoadedModel, needs: Needs) -> None:
    """Raise BertcliError if a task's head is missing."""
    if needs.head is not None:
        check_head(model, needs.head, needs.task, needs.fitting)


def check_head(model: LoadedModel, head: str, task: str, fitting: str = "") -> None:
    """Raise BertcliError, with the heads that the model has, if a head is missing; `fitting` is a model to suggest."""
    if getattr(model.network, head, None) is not None:
        return
    # What the family says is of its plain models: one with heads of its own kind was made for what these are for.
    own = model.readable_kind.commands_of_heads
    hint = None if own else family(model.config.model_type).hints.get(head)
    if hint is None and fitting:
        hint = f"Choose a model that has one, such as {fitting}."
    raise BertcliError(
        f"{task} needs a {HEADS[head].title}, which {model.name} does not have; {heads_of(model)}."
        + ("" if hint is None else f" {hint}")
    )


def heads_of(model: LoadedModel) -> str:
    """Say which heads a model has, and what those with a command of their own are for."""
    of_heads = {name: head.command for name, head in HEADS.items() if head.command}
    commands = of_heads | {**model.readable_kind.commands_of_heads}
    heads = [f"{name} (for {commands[name]})" if name in commands else name for name in model.heads]
    return f"its heads: {', '.join(heads) or 'none'}"


# ------------------------------------------------------------------------------------------------------ micro-batches


def micro_batches(indices: Iterable[int], lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Group indices of `lengths`, so that each group has at most `batch_tokens` tokens, or a single sentence."""
    batch: list[int] = []
    total = 0
    for index in indices:
        if batch and total + lengths[index] > batch_tokens:
            yield batch
            batch, total = [], 0
        batch.append(index)
        total += lengths[index]
    if batch:
        yield batch


def even_batches(lengths: Sequence[int], batch_tokens: int) -> list[list[int]]:
    """Make micro-batches of about equal size, in a number that keeps all cores busy; shortest texts first."""
    total, cores = sum(lengths), thread_count()
    rounds = max(1, -(-10 * total // (9 * cores * batch_tokens)))  # a tenth below the limit, as texts are not cut
    count = max(1, min(rounds * cores, total // LEAST_TOKENS))
    shares: list[list[int]] = [[] for _ in range(count)]
    before = 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        middle = 2 * before + lengths[index]
        shares[min(count - 1, middle * count // max(1, 2 * total))].append(index)
        before += lengths[index]
    return [batch for share in shares for batch in micro_batches(share, lengths, batch_tokens)]


def in_micro_batches(
    sentences: Sequence[Sentence],
    batch_tokens: int | None,
    run: Callable[[list[int]], Iterable[R]],
    extra_keys: Sequence[Hashable] | None = None,
) -> list[R]:
    """Call `run` with the indices of one micro-batch at a time, and return the result of each sentence, in order.

    Of equal sentences with equal `extra_keys` only the first is computed; the others get copies of its result.
    """
    extras = [None] * len(sentences) if extra_keys is None else extra_keys
    keys = [
        (tuple(sentence.ids), tuple(sentence.segments), extra)
        for sentence, extra in zip(sentences, extras, strict=True)
    ]
    firsts: dict[Hashable, int] = {}
    first_of = [firsts.setdefault(key, index) for index, key in enumerate(keys)]
    distinct, results = [*firsts.values()], dict[int, R]()

    def work(batch: list[int]) -> None:
        indices = [distinct[number] for number in batch]
        results.update(zip(indices, run(indices), strict=True))

    batches = even_batches([len(sentences[index].ids) for index in distinct], batch_tokens or BATCH_TOKENS)
    batches.reverse()  # one core each, the short ones last to fill the gaps
    pause = between_batches.get()
    together = len(batches) if pause is None else thread_count()
    with np.errstate(all="ignore"):  # damaged weights overflow; the result is checked, and reported in one line
        for start in range(0, len(batches), max(1, together)):
            if pause is not None:
                pause()
            each_or_whole(work, batches[start : start + together])
    return [results[first] if first == index else deepcopy(results[first]) for index, first in enumerate(first_of)]


def in_packed_batches(
    sentences: Sequence[Sentence], batch_tokens: int | None, run: Callable[[Packed], Iterable[R]]
) -> list[R]:
    """Call `run` with one packed micro-batch at a time, and return the result of each sentence, in order."""
    return in_micro_batches(sentences, batch_tokens, lambda batch: run(pack([sentences[i] for i in batch])))


# ---------------------------------------------------------------------------------------------------- what heads say


def hidden_states(model: LoadedModel, batch: Packed, rows: Integers | None = None) -> Array:
    """Compute the last layer's output [token, hidden], or only `rows` of it. Errors: BertcliError for NaN, infinity."""
    hidden = model.hidden_states(batch, rows)
    check_finite(hidden)
    return hidden


def logits(model: LoadedModel, head: str, batch: Packed) -> Array:
    """Compute a head's output: classifier [batch, label], token_classifier [token, label], pooler [batch, H] …

    The caller has checked that the model has the head (`check_head`). Errors: BertcliError for NaN and infinity.
    """
    network = model.network
    values: Array = network.predict(head, hidden_states(model, batch, network.input_rows(head, batch)), batch)
    check_finite(values)
    return values


def logits_of_each(
    model: LoadedModel, head: str, sentences: Sequence[Sentence], batch_tokens: int | None
) -> list[Numbers]:
    """Compute a head's output for each sentence: [output], or [token, output] for a head that reads every token."""

    def run(packed: Packed) -> Iterable[Numbers]:
        rows = logits(model, head, packed).astype(np.float64)
        return np.split(rows, packed.offsets[1:-1]) if head in OF_TOKENS else rows

    return in_packed_batches(sentences, batch_tokens, run)

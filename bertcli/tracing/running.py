"""One whole pass to trace: of a text, of random ids, or of shapes only."""

from __future__ import annotations

import logging
from typing import NamedTuple

import numpy as np

from bertcli.bert import outputs
from bertcli.memory import shape_only
from bertcli.model import Model
from bertcli.packing import Packed, SameLength
from bertcli.parts import Integers
from bertcli.tracing.watcher import Keep, Trace, trace

SEED = 0  # of random ids: the same every time
logger = logging.getLogger("bertcli")


class Pass(NamedTuple):
    """The input of a pass: the ids, segments and pieces of sentences of equal length."""

    ids: Integers  # [batch, token]
    segments: Integers
    pieces: list[str]  # of the first sentence; for random ids, their numbers


def pass_of_text(model: Model, text: str, pair: str | None = None) -> Pass:
    """A text as the model reads it; one that is too long is cut, with a warning."""
    from bertcli.tasks.windows import length_limit  # imports the tokenizer, which random ids do not need

    limit = length_limit(model, None)
    (tokens,) = model.tokenizer.encode([text], None if pair is None else [pair], limit)
    if tokens.lost:
        logger.warning("the text was cut to %d tokens; %d were lost.", limit, tokens.lost)
    return Pass(np.array([tokens.ids]), np.array([tokens.segments]), list(tokens.pieces))


def random_pass(model: Model, batch: int, sequence: int) -> Pass:
    """Random token ids, the same every time; BertcliError for a size that is not possible."""
    model.config.check_input(batch, sequence)
    ids = np.random.default_rng(SEED).integers(0, model.config.vocab_size, (batch, sequence))
    return Pass(ids, np.zeros_like(ids), [f"#{id}" for id in ids[0]])


def run(model: Model, given: Pass, *, time: bool = False, stats: bool = False, keep: Keep | None = None) -> Trace:
    """The trace of a real pass through the encoder and every head."""
    with trace(model, time=time, stats=stats, keep=keep) as found:
        model.outputs(given.ids, given.segments)
    return found


def run_shapes(model: Model, batch: int, sequence: int) -> Trace:
    """The same with shapes only: no memory, no time, whatever the sizes."""
    model.config.check_input(batch, sequence)
    rows = batch * sequence
    ids = shape_only((rows,), np.intp)
    whole = SameLength(batch, slice(0, rows), slice(0, rows))
    with trace(model) as found:
        outputs(model.network, Packed(ids, ids, ids, np.arange(batch + 1) * sequence, (whole,)))
    return found

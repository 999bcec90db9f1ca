"""Masked words and next sentences together: the loop, its schedule, its checkpoints and its scores."""

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from batches import Batch, Sampler, draw
from network import Bert, Shape
from optimizer import Optimizer
from torch import Tensor

WARM_UP = 0.03  # of the training
PAIR_WEIGHT = 0.5


@dataclass(frozen=True)
class Plan:
    """How long to train: by steps, or else by minutes of training, in which case the schedule follows the clock."""

    minutes: float
    steps: int | None
    seed: int

    def fraction(self, step: int, seconds: float) -> float:
        """The share of the training that is over, 0 to 1."""
        return step / self.steps if self.steps else seconds / (60 * self.minutes)

    def relative_rate(self, fraction: float) -> float:
        """Linear warm-up, then linear to zero."""
        return min(fraction / WARM_UP, (1 - fraction) / (1 - WARM_UP)) if fraction < 1 else 0.0


class Scores(NamedTuple):
    """On held-out documents; accuracies in 0 to 1, losses in nats."""

    words: float
    words_loss: float
    follows: float | None


def tensors(batch: Batch) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None]:
    follows = None if batch.follows is None else torch.from_numpy(batch.follows)
    ids, segments, rows, targets = (torch.from_numpy(array) for array in batch[:4])
    return ids, segments, rows, targets, follows


def loss_of(network: Bert, batch: Batch) -> tuple[Tensor, Tensor | None]:
    """(mean MLM cross-entropy, mean next-sentence cross-entropy or None)."""
    ids, segments, rows, targets, follows = tensors(batch)
    x = network(ids, segments, rows)
    words = F.cross_entropy(network.words_of(x[:, 1:].flatten(0, 1)).float(), targets.flatten())
    return words, None if follows is None else F.cross_entropy(network.follows(x[:, 0]), follows)


@torch.no_grad()
def score(network: Bert, sampler: Sampler, kind: str, length: int, batches: int, seed: int = 12345) -> Scores:
    """MLM at 15 % (80-10-10) and, where kind is "pairs", NSP; the windows are the same whatever the network is."""
    network.eval()
    right = asked = paired = followed = 0
    total = 0.0
    for index in range(batches):
        rng = np.random.default_rng((seed, index))
        draw_batch = sampler.pairs if kind == "pairs" else sampler.runs_of_text
        ids, segments, rows, targets, follows = tensors(draw_batch(rng, 8192 // length, length, 0.15))
        x = network(ids, segments, rows)
        logits = network.words_of(x[:, 1:].flatten(0, 1)).float()
        total += float(F.cross_entropy(logits, targets.flatten(), reduction="sum"))
        right += int((logits.argmax(-1) == targets.flatten()).sum())
        asked += targets.numel()
        if follows is not None:
            followed += int((network.follows(x[:, 0]).argmax(-1) == follows).sum())
            paired += len(follows)
    network.train()
    return Scores(right / asked, total / asked, followed / paired if paired else None)


def save(path: Path, network: Bert, optimizer: Optimizer, step: int, seconds: float, pieces: int) -> None:
    """Written beside and renamed, so that a stop at any moment leaves a whole checkpoint."""
    beside = path.with_suffix(".part")
    state = {"network": network.state_dict(), "optimizer": optimizer.state()}
    torch.save({**state, "step": step, "seconds": seconds, "pieces": pieces}, beside)
    os.replace(beside, path)


def pretrain(train: Sampler, held_out: Sampler, shape: Shape, plan: Plan, checkpoint: Path) -> Bert:
    """The trained network; goes on from the checkpoint where there is one."""
    network = Bert(shape, plan.seed)
    optimizer = Optimizer(network)
    step, pieces, before = 0, 0, 0.0
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        network.load_state_dict(saved["network"])
        optimizer.load(saved["optimizer"])
        step, pieces, before = saved["step"], saved["pieces"], saved["seconds"]
    else:
        network.start_from_counts(train.stream.ids, plan.seed)
    began, told, told_pieces, kept = time.monotonic(), time.monotonic(), pieces, time.monotonic()
    words_mean, pair_mean = 0.0, 0.7
    while (fraction := plan.fraction(step, before + time.monotonic() - began)) < 1:
        batch = draw(train, plan.seed, step, fraction)
        words, follows = loss_of(network, batch)
        (words if follows is None else words + PAIR_WEIGHT * follows).backward()  # type: ignore[no-untyped-call]
        optimizer.step(plan.relative_rate(fraction))
        step, pieces = step + 1, pieces + batch.ids.size
        words_mean += (words.item() - words_mean) * (0.02 if words_mean else 1)
        pair_mean += 0 if follows is None else 0.02 * (follows.item() - pair_mean)
        now = time.monotonic()
        seconds = before + now - began
        if step % 100 == 0:
            speed = (pieces - told_pieces) / (now - told)
            told, told_pieces = now, pieces
            left = seconds * (1 - fraction) / max(fraction, 1e-6) / 60
            print(
                f"step {step}  {pieces / 1e6:.2f} M pieces  {speed:,.0f}/s  words {words_mean:.3f}  "
                f"next {pair_mean:.3f}  {fraction:.1%}, {left:.0f} min left",
                file=sys.stderr,
                flush=True,
            )
        if step % 2000 == 0:
            print(f"held out at {step}: {score(network, held_out, 'pairs', 128, 12)}", file=sys.stderr, flush=True)
        if now - kept > 120:
            save(checkpoint, network, optimizer, step, seconds, pieces)
            kept = now
    save(checkpoint, network, optimizer, step, before + time.monotonic() - began, pieces)
    return network


def settle_places(network: Bert, train: Sampler, seed: int, known: int = 128, steps: int = 400) -> None:
    """Trains the position vectors from `known` on, and nothing else, on texts of full length.

    They were seen only in the last quarter, at falling rates; they start again from the vectors `known` places
    earlier. Everything the network says about shorter texts stays as it is.
    """
    for parameter in network.parameters():
        parameter.requires_grad_(parameter is network.places)
    with torch.no_grad():
        network.places[known:] = network.places[:known]
    optimizer = torch.optim.Adam([network.places], lr=0, betas=(0.9, 0.98))
    kept = network.places[:known].detach().clone()
    for step in range(steps):
        batch = train.runs_of_text(np.random.default_rng((seed, 1, step)), 16, 2 * known, 0.15)
        loss_of(network, batch)[0].backward()  # type: ignore[no-untyped-call]
        optimizer.param_groups[0]["lr"] = 4e-3 * (1 - step / steps)
        optimizer.step()
        with torch.no_grad():
            network.places[:known] = kept
        network.places.grad = None
    for parameter in network.parameters():
        parameter.requires_grad_(True)

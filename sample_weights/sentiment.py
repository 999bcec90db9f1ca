"""Fine-tuning for sentiment: several seeds from one network, their weights averaged, the choice made on dev."""

import copy
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from corpus import CLS, MASK, PAD, SEP, labeled
from network import Bert
from numpy.random import Generator
from tokenizers import Tokenizer
from torch import Tensor, nn

LONGEST = 128
BATCH = 32


@dataclass(frozen=True)
class FineTuning:
    """What was tried and kept; hidden is the share of pieces shown as [MASK], a cheap augmentation."""

    epochs: int = 4
    rate: float = 1e-4
    drop: float = 0.1
    hidden: float = 0.1
    smoothing: float = 0.1
    decay: float = 0.01


class Classifier(nn.Module):
    """softmax of (W pooled + b): 0 = negative, 1 = positive."""

    def __init__(self, network: Bert, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.network = copy.deepcopy(network)
        self.weight = nn.Parameter(torch.randn(2, network.shape.hidden_size) * 0.02)
        self.bias = nn.Parameter(torch.zeros(2))

    def forward(self, ids: Tensor, drop: float = 0.0) -> Tensor:
        """Logits [batch, 2] of ids [batch, length], padded with [PAD]."""
        first = torch.zeros(len(ids), 1, dtype=torch.long)
        x = self.network(ids, torch.zeros_like(ids), first, ids != PAD, drop)
        pooled = F.dropout(self.network.pooled(x[:, 0]), drop, self.training)
        return F.linear(pooled, self.weight, self.bias)


@dataclass(frozen=True)
class Rows:
    """Labeled texts as ids with [CLS] and [SEP]."""

    ids: list[list[int]]
    labels: list[int]


def read(folder: Path, part: str, tokenizer: Tokenizer) -> Rows:
    texts, labels = labeled(folder, part)
    encoded = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    return Rows([[CLS, *one.ids[: LONGEST - 2], SEP] for one in encoded], labels)


def padded(rows: Rows, chosen: np.ndarray) -> tuple[Tensor, Tensor]:
    longest = max(len(rows.ids[index]) for index in chosen)
    ids = torch.full((len(chosen), longest), PAD)
    for place, index in enumerate(chosen):
        ids[place, : len(rows.ids[index])] = torch.tensor(rows.ids[index])
    return ids, torch.tensor([rows.labels[index] for index in chosen])


def batches_of(rows: Rows, rng: Generator) -> list[np.ndarray]:
    """An epoch's batches: shuffled, of similar lengths within a batch, in shuffled order."""
    order = rng.permutation(len(rows.ids))
    batches: list[np.ndarray] = []
    for start in range(0, len(order), 16 * BATCH):
        pool = sorted(order[start : start + 16 * BATCH], key=lambda index: len(rows.ids[index]))
        batches += [np.array(pool[place : place + BATCH]) for place in range(0, len(pool), BATCH)]
    return [batches[place] for place in rng.permutation(len(batches))]


def fine_tune(network: Bert, rows: Rows, settings: FineTuning, seed: int) -> Classifier:
    """One classifier: AdamW, 10 % warm-up, linear to zero."""
    model = Classifier(network, seed)
    model.train()
    rng = np.random.default_rng(seed)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=settings.rate, betas=(0.9, 0.98), weight_decay=settings.decay, fused=True
    )
    total = settings.epochs * len(batches_of(rows, np.random.default_rng(0)))
    step = 0
    for _ in range(settings.epochs):
        for chosen in batches_of(rows, rng):
            ids, labels = padded(rows, chosen)
            ids[(torch.from_numpy(rng.random(ids.shape)) < settings.hidden) & (ids > MASK)] = MASK
            loss = F.cross_entropy(model(ids, settings.drop), labels, label_smoothing=settings.smoothing)
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for group in optimizer.param_groups:
                group["lr"] = settings.rate * min(step / (0.1 * total), (1 - step / total) / 0.9)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
    return model


@torch.no_grad()
def confusion(model: Classifier, rows: Rows) -> np.ndarray:
    """counts[true, predicted], both 0 = negative, 1 = positive."""
    model.eval()
    counts = np.zeros((2, 2), int)
    for chosen in np.array_split(np.arange(len(rows.ids)), max(1, len(rows.ids) // 64)):
        ids, labels = padded(rows, chosen)
        np.add.at(counts, (labels.numpy(), model(ids).argmax(-1).numpy()), 1)
    return counts


def accuracy(counts: np.ndarray) -> float:
    return float(np.trace(counts) / counts.sum())


def average(models: list[Classifier]) -> Classifier:
    """One classifier whose every weight is the mean of the others' (a model soup)."""
    mean = copy.deepcopy(models[0])
    states = [model.state_dict() for model in models]
    mean.load_state_dict({name: sum(state[name] for state in states) / len(states) for name in states[0]})
    return mean


def _fine_tuned(network: Bert, rows: Rows, settings: FineTuning, seed: int) -> dict[str, np.ndarray]:
    """fine_tune on one core, the weights as arrays, which go between processes without shared memory."""
    torch.set_num_threads(1)
    return {name: tensor.numpy() for name, tensor in fine_tune(network, rows, settings, seed).state_dict().items()}


def best_classifier(
    network: Bert, folder: Path, tokenizer: Tokenizer, settings: FineTuning, seeds: int, processes: int
) -> Classifier:
    """The best on dev of the single seeds and of the averages of the weights of the best 2, 3, ... of them."""
    train, dev = read(folder, "train", tokenizer), read(folder, "dev", tokenizer)
    models = []
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        work = [pool.submit(_fine_tuned, network, train, settings, seed) for seed in range(seeds)]
        for seed, done in enumerate(work):
            model = Classifier(network, seed)
            model.load_state_dict({name: torch.from_numpy(array) for name, array in done.result().items()})
            models.append((accuracy(confusion(model, dev)), model))
            print(f"sentiment seed {seed}: dev {models[-1][0]:.4f}", file=sys.stderr, flush=True)
    models.sort(key=lambda pair: -pair[0])
    candidates = [models[0]]
    for count in range(2, seeds + 1):
        mean = average([model for _, model in models[:count]])
        candidates.append((accuracy(confusion(mean, dev)), mean))
        print(f"sentiment average of the best {count}: dev {candidates[-1][0]:.4f}", file=sys.stderr, flush=True)
    return max(candidates, key=lambda pair: pair[0])[1]

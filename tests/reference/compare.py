"""bertcli against transformers, live, on every head × activation × dtype × naming style and on real sizes.

`python tests/reference/compare.py [--every N] [--base]`, in an environment with torch, transformers and bertcli.
Prints, for each kind of output, the largest absolute difference between the two and of each from transformers in
float64. Exits with 1 when the two differ by more than 1e-5, unless bertcli is within that of float64, or not much
further from it than transformers: at base size the log-probabilities of either are off by more than 1e-5.
"""

import argparse
import itertools
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from helpers.checkpoints import ACTIVATIONS, DTYPES, HEADS, NAMINGS, make
from reference import cases, oracle
from reference.outputs import Outputs, of_bertcli

import bertcli

BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
        "max_position_embeddings": 512, "vocab_size": 30522}  # fmt: skip
BIASES = ("predictions", "decoder", "both", "differ")
SIZES: tuple[dict[str, int], ...] = (
    {},
    cases.ODD,
    cases.NARROW,
    {"hidden_size": 128, "num_attention_heads": 2, "intermediate_size": 512},
)


def every_checkpoint() -> list[cases.Checkpoint]:
    """The full product, with sizes, decoders and biases going round."""
    product = itertools.product(HEADS, ACTIVATIONS, DTYPES, NAMINGS)
    return [
        {"head": head, "hidden_act": act, "dtype": dtype, "naming": naming, "seed": 1000 + k, "sizes": SIZES[k % 4],
         "tied": ("absent", "stored", "untied")[k % 3], "decoder_bias": BIASES[k // 3 % 4],
         "num_labels": 1 + k % 4, "shards": 2 * (k % 5 == 0), "position_ids_buffer": k % 7 == 0,
         "config": {"layer_norm_eps": (1e-12, 1e-5)[k % 2]}}
        for k, (head, act, dtype, naming) in enumerate(product)
    ]  # fmt: skip


class Gap(NamedTuple):
    """max |one - other|, over everything of a kind"""

    both: float = 0.0
    ours: float = 0.0  # from float64
    theirs: float = 0.0  # from float64

    def worst(self, other: "Gap") -> "Gap":
        return Gap(*(max(pair) for pair in zip(self, other, strict=True)))

    @property
    def acceptable(self) -> bool:
        return min(self.both, self.ours) <= 1e-5 or self.ours <= 1.5 * self.theirs


def differences(folder: Path, checkpoint: cases.Checkpoint, lengths: tuple[int, ...], salt: int) -> dict[str, Gap]:
    """The gap of each part of Outputs, and of `forward`, which takes the batch padded."""
    path = make(folder, **checkpoint)
    model, ours_model = oracle.load(path, checkpoint["head"]), bertcli.load(path)
    batch = cases.mixed_batch(model.config.vocab_size, model.config.type_vocab_size, salt, lengths)
    theirs, ours = oracle.outputs(model, batch), of_bertcli(ours_model, batch)
    exact = oracle.outputs(model.double(), batch)
    found = {"forward": gap(ours_model.forward(*batch)[batch.mask == 1], theirs.states[-1], exact.states[-1])}
    for name in Outputs._fields:
        values = [getattr(outputs, name) for outputs in (ours, theirs, exact)]
        if (values[0] is None) != (values[1] is None):
            raise ValueError(f"{checkpoint}: only one side has {name}")
        if values[0] is not None:
            found[name] = gap(*values)
    return found


def gap(ours: Any, theirs: Any, exact: Any) -> Gap:
    """Three arrays of one shape, compared."""
    assert ours.shape == theirs.shape == exact.shape, (ours.shape, theirs.shape)
    pairs = ((ours, theirs), (ours, exact), (theirs, exact))
    return Gap(*(float(np.abs(one.astype(np.float64) - other).max()) for one, other in pairs))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="run every N-th of the 560 configurations")
    parser.add_argument("--base", action="store_true", help="run BERT-base sizes too (a minute, 2 GB)")
    choice = parser.parse_args()
    lengths_of = itertools.cycle(cases.MIXES)
    runs = [("small", checkpoint, next(lengths_of)) for checkpoint in every_checkpoint()[:: choice.every]]
    if choice.base:
        for head, act, dtype in (("pretraining", "gelu", "F32"), ("classifier", "gelu_new", "F16")):
            checkpoint = {"head": head, "sizes": BASE, "hidden_act": act, "dtype": dtype, "seed": 5}
            runs.append(("base", checkpoint, (9, 128, 512, 2)))
    worst: dict[str, Gap] = defaultdict(Gap)
    where: dict[str, cases.Checkpoint] = {}
    for salt, (size, checkpoint, lengths) in enumerate(runs):
        with tempfile.TemporaryDirectory() as folder:
            for part, found in differences(Path(folder), checkpoint, lengths, salt).items():
                name = f"{size} {part}"
                if found.ours >= worst[name].ours:
                    where[name] = checkpoint
                worst[name] = worst[name].worst(found)
    print(f"{'':26}ours-theirs  ours-float64  theirs-float64")
    for name, found in worst.items():
        print(f"{name:26}{found.both:<13.3g}{found.ours:<14.3g}{found.theirs:.3g}")
    failed = [name for name, found in worst.items() if not found.acceptable]
    for name in failed:
        print(f"{name} is off most on {where[name]}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())

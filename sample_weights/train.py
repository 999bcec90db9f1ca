"""Train the two bundled models from a folder of texts.

    python sample_weights/train.py TEXTS --work SCRATCH             pre-train, fine-tune, export, score
    python sample_weights/train.py TEXTS --work SCRATCH --evaluate  only score the models that are there

Needs torch, tokenizers and safetensors. Stopped at any moment, the same command goes on from the last checkpoint
in SCRATCH.
"""

import argparse
from pathlib import Path

import corpus
import torch
from batches import Sampler
from evaluate import evaluate
from export import export_masked_words, export_sentiment
from network import Shape
from pretrain import Plan, pretrain, settle_places
from sentiment import FineTuning, best_classifier


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path, help="folder of *.txt or *.txt.xz, and sentiment/{train,dev,test}.tsv")
    parser.add_argument("--work", type=Path, required=True, help="scratch folder: piece ids, checkpoints")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="where the two model folders go")
    parser.add_argument("--minutes", type=float, default=109, help="pre-training time; the schedule follows the clock")
    parser.add_argument("--steps", type=int, help="pre-training steps instead of minutes, exactly repeatable")
    parser.add_argument("--sentiment-seeds", type=int, default=4, help="classifiers trained, then averaged")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--evaluate", action="store_true", help="train nothing, score the models in --out")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    torch.set_num_threads(options.threads)
    shape = Shape()
    tokenizer, train, held_out, names = corpus.prepare(options.texts, options.work / "cache", shape.vocab_size)
    lines = {names.index(name) for name in names if name.startswith((corpus.UNRELATED_LINES, "sentiment"))}
    if not options.evaluate:
        samplers = [Sampler(stream, shape.vocab_size, lines) for stream in (train, held_out)]
        plan = Plan(options.minutes, options.steps, options.seed)
        network = pretrain(*samplers, shape, plan, options.work / "pretrain.pt")
        settle_places(network, samplers[0], options.seed)
        export_masked_words(options.out, network, tokenizer)
        model = best_classifier(
            network, options.texts, tokenizer, FineTuning(), options.sentiment_seeds, options.threads
        )
        export_sentiment(options.out, model, tokenizer)
    evaluate(options.out, options.texts, held_out, names, lines)


if __name__ == "__main__":
    main()

"""Train bert-mini-sentence: the bundled network learns the vectors of a teacher, all-MiniLM-L6-v2.

    python sample_weights/distill.py TEXTS --teacher FOLDER --work SCRATCH             train, export, score
    python sample_weights/distill.py TEXTS --teacher FOLDER --work SCRATCH --evaluate  only score what is there

Needs torch, safetensors and bertcli. Two things are learned at once: the teacher's vectors, as far as 256 of their 384
directions hold them (`directions`), and the cosines of all pairs of a batch. Vectors of the teacher that are in SCRATCH
are used again; another process may still be adding to them.
"""

import argparse
import json
import math
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import numpy as np
import torch
from corpus import CLS, PAD, SEP
from export import export_tokenizer, read_masked_words, write_json, write_weights
from network import Bert, config, hugging_face_names
from numpy.typing import NDArray
from optimizer import Optimizer
from sentences import WIDTH, collect, cosines, search, spearman, teach, triplets
from tokenizers import Tokenizer
from torch import Tensor

import bertcli

HERE = Path(__file__).parent
NAME = "bert-mini-sentence"
LENGTH = 64  # pieces of a text in training; texts are short
BATCH, POOL = 256, 16  # texts a step; batches that are sorted by length together
WARM_UP = 0.03  # of the time
COSINES = 8.0  # weight of the cosines' squared error beside that of the vectors
DISTRACTORS = 5_000  # other sentences among which a paraphrase is searched


class Lessons(NamedTuple):
    """Texts as ids, and the teacher's vectors [text, 384] of those that it has done, memory-mapped."""

    ids: list[NDArray[np.uint16]]
    vectors: NDArray[np.float16]


def read_lessons(tokenizer: Tokenizer, texts: list[str], file: Path) -> Lessons:
    done = file.stat().st_size // (2 * WIDTH)
    vectors = np.memmap(file, np.float16, "r", shape=(done, WIDTH))
    encoded = tokenizer.encode_batch_fast(texts[:done], add_special_tokens=False)
    return Lessons([np.array([CLS, *one.ids[: LENGTH - 2], SEP], np.uint16) for one in encoded], vectors)


def directions(vectors: NDArray[np.float16], width: int) -> Tensor:
    """[384, width]: the directions in which the teacher's vectors vary most, by an SVD of the first 40,000."""
    _, strength, right = np.linalg.svd(vectors[:40_000].astype(np.float32), full_matrices=False)
    kept = (strength[:width] ** 2).sum() / (strength**2).sum()
    print(f"{width} of {WIDTH} directions hold {kept:.4f} of the squared length", flush=True)
    return torch.from_numpy(right[:width].T.copy())


def sentence_vectors(network: Bert, ids: Tensor) -> Tensor:
    """The mean over the tokens of the last layer, of length 1: [text, hidden] of ids [text, token]."""
    mask = ids != PAD
    every = torch.arange(ids.shape[1]).expand(ids.shape)
    states = network(ids, torch.zeros_like(ids), every, mask) * mask[..., None]
    return torch.nn.functional.normalize(states.sum(1), dim=-1)


def batches(lessons: Lessons, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """An epoch's batches: texts of about one length together, in random order."""
    order = rng.permutation(len(lessons.ids))
    found: list[NDArray[np.int64]] = []
    for start in range(0, len(order), BATCH * POOL):
        pool = np.array(sorted(order[start : start + BATCH * POOL], key=lambda i: len(lessons.ids[i])))
        found += np.array_split(pool, max(1, len(pool) // BATCH))
    return [found[i] for i in rng.permutation(len(found))]


def train(network: Bert, tokenizer: Tokenizer, texts: list[str], file: Path, minutes: float, seed: int) -> None:
    """Until the time is up, with what the teacher has done when an epoch begins; the rate falls with the clock."""
    rng = np.random.default_rng(seed)
    network.train()
    optimizer = Optimizer(network)
    begun, step, seen, onto = monotonic(), 0, 0, None
    while True:
        lessons = read_lessons(tokenizer, texts, file)
        onto = directions(lessons.vectors, network.shape.hidden_size) if onto is None else onto
        for chosen in batches(lessons, rng):
            share = (monotonic() - begun) / (60 * minutes)
            if share >= 1:
                return
            ids = torch.full((len(chosen), max(len(lessons.ids[i]) for i in chosen)), PAD)
            for row, i in enumerate(chosen):
                ids[row, : len(lessons.ids[i])] = torch.from_numpy(lessons.ids[i].astype(np.int64))
            wanted = torch.from_numpy(lessons.vectors[chosen].astype(np.float32))
            found = sentence_vectors(network, ids)
            target = torch.nn.functional.normalize(wanted @ onto, dim=-1)
            direct = (1 - (found * target).sum(-1)).mean()
            among = (found @ found.T - wanted @ wanted.T).square().mean()
            (direct + COSINES * among).backward()  # type: ignore[no-untyped-call]
            optimizer.step(min(share / WARM_UP, (1 + math.cos(math.pi * share)) / 2))
            step, seen = step + 1, seen + len(chosen)
            if step % 100 == 0:
                print(
                    f"{share:.3f} of the time, step {step}, {seen} texts of {len(lessons.ids)}: "
                    f"1 - cosine {direct.item():.4f}, error of cosines {among.item() ** 0.5:.4f}",
                    flush=True,
                )
            if step % 1000 == 0:
                torch.save(network.state_dict(), file.with_name("student.pt"))


def export(out: Path, network: Bert, tokenizer: Tokenizer) -> Path:
    """OUT/bert-mini-sentence, a BertModel without pooler as sentence-transformers lays it out: mean, length 1."""
    folder = out / NAME
    (folder / "1_Pooling").mkdir(parents=True, exist_ok=True)
    names = hugging_face_names(network).items()
    kept = {name.removeprefix("bert."): x for name, x in names if name.startswith("bert.") and ".pooler." not in name}
    write_weights(folder, kept)
    write_json(folder / "config.json", config(network.shape, "BertModel"))
    export_tokenizer(folder, tokenizer, network.shape.max_position_embeddings)
    kinds = {"0": ("", "Transformer"), "1": ("1_Pooling", "Pooling"), "2": ("2_Normalize", "Normalize")}
    modules = [
        {"idx": int(idx), "name": idx, "path": path, "type": f"sentence_transformers.models.{kind}"}
        for idx, (path, kind) in kinds.items()
    ]
    write_json(folder / "modules.json", modules)
    hidden = network.shape.hidden_size
    write_json(
        folder / "1_Pooling" / "config.json", {"word_embedding_dimension": hidden, "pooling_mode_mean_tokens": True}
    )
    longest = network.shape.max_position_embeddings
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": longest, "do_lower_case": False})
    write_json(folder / "config_sentence_transformers.json", {"similarity_fn_name": "cosine"})
    return folder


def evaluate(models: dict[str, str], pairs: list[tuple[str, str]], others: list[str]) -> None:
    """Prints the scores of each model, beside the teacher's."""
    loaded = {name: bertcli.load(path) for name, path in models.items()}
    wanted = cosines(loaded["teacher"], pairs)
    for name, model in loaded.items():
        first, ten = search(model, others)
        agreement = spearman(cosines(model, pairs), wanted)
        scores = {"triplets": triplets(model), "first": first, "first ten": ten, "agreement": round(agreement, 4)}
        print(name, json.dumps(scores), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path, help="folder of *.txt or *.txt.xz, and sentiment/train.tsv")
    parser.add_argument("--teacher", required=True, help="folder of all-MiniLM-L6-v2")
    parser.add_argument("--work", type=Path, required=True, help="scratch folder: the teacher's vectors, checkpoints")
    parser.add_argument("--out", type=Path, default=HERE, help="where the model's folder goes")
    parser.add_argument("--minutes", type=float, default=60, help="training time, without the teacher's")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--evaluate", action="store_true", help="train nothing, score the model in --out")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    options.work.mkdir(parents=True, exist_ok=True)
    texts, pairs = collect(options.texts, options.seed)
    if not options.evaluate:
        teach(options.teacher, texts, options.work / "vectors.f16")
        network = read_masked_words(HERE)
        network.kind = torch.bfloat16
        tokenizer = Tokenizer.from_file(str(HERE / "bert-mini-mlm" / "tokenizer.json"))
        train(network, tokenizer, texts, options.work / "vectors.f16", options.minutes, options.seed)
        export(options.out, network, tokenizer)
    others = [text for pair in pairs for text in pair][:DISTRACTORS]
    models = {"teacher": options.teacher, "before": str(HERE / "bert-mini-mlm"), "student": str(options.out / NAME)}
    evaluate(models, pairs, others)


if __name__ == "__main__":
    main()

"""Every number of the model card, from the exported folders in float32."""

import json
from pathlib import Path

import numpy as np
import torch
from batches import Sampler
from corpus import MASK, Stream
from export import MASKED_WORDS, read_masked_words, read_sentiment
from network import Bert
from pretrain import score
from sentiment import accuracy, confusion, read
from tokenizers import Tokenizer

CLOZE = Path(__file__).parent.parent / "tests" / "data" / "cloze.jsonl"
BATCHES = 32  # of 8,192 pieces: 2,048 windows of 128, 38,912 masked pieces; a quarter of it for the side numbers


def of_source(stream: Stream, number: int) -> Stream:
    """The documents of one file, as a stream of their own."""
    begins = np.append(0, stream.ends[:-1])
    chosen = np.flatnonzero(stream.source == number)
    pieces = np.concatenate([np.arange(begins[document], stream.ends[document]) for document in chosen])
    starts = np.where(stream.next_start[pieces] == pieces, np.arange(len(pieces)), len(pieces)).astype(np.int32)
    following = np.append(np.minimum.accumulate(starts[::-1])[::-1], np.int32(len(pieces)))
    ends = np.cumsum(stream.ends[chosen] - begins[chosen])
    return Stream(stream.ids[pieces], ends, following, stream.source[chosen])


@torch.no_grad()
def cloze(network: Bert, tokenizer: Tokenizer) -> tuple[int, int, int]:
    """(sentences, an accepted word in first place, an accepted word in the top five)."""
    rows = [json.loads(line) for line in CLOZE.read_text(encoding="utf-8").splitlines()]
    first = five = 0
    for row in rows:
        encoded = tokenizer.encode(row["text"])
        ids = torch.tensor([encoded.ids])
        place = torch.tensor([[encoded.ids.index(MASK)]])
        logits = network.words_of(network(ids, torch.zeros_like(ids), place)[0])
        words = [tokenizer.id_to_token(index) for index in logits[0].topk(5).indices.tolist()]
        first += words[0] in row["accepted"]
        five += any(word in row["accepted"] for word in words)
    return len(rows), first, five


def evaluate(out: Path, texts: Path, held_out: Stream, names: list[str], lines: set[int]) -> None:
    """Prints the scores of the two models in OUT."""
    network = read_masked_words(out)
    tokenizer = Tokenizer.from_file(str(out / MASKED_WORDS / "tokenizer.json"))
    vocab_size = network.shape.vocab_size
    sampler = Sampler(held_out, vocab_size, lines)
    for kind, length, share in (
        ("runs", 128, 1),
        ("pairs", 128, 1),
        ("runs", 64, 4),
        ("runs", 256, 4),
        ("pairs", 64, 4),
    ):
        words, loss, follows = score(network, sampler, kind, length, BATCHES // share)
        pairs = "" if follows is None else f", next sentence {follows:.4f}"
        print(f"held out, {kind} of {length}: words {words:.4f}, loss {loss:.4f}{pairs}", flush=True)
    for number, name in enumerate(names):
        if number not in lines and (held_out.source == number).any():
            part = Sampler(of_source(held_out, number), vocab_size, lines)
            words, loss, _ = score(network, part, "runs", 128, BATCHES // 4)
            print(f"held out, {name}, runs of 128: words {words:.4f}, loss {loss:.4f}", flush=True)
    count, first, five = cloze(network, tokenizer)
    print(f"cloze: {count} sentences, first {first} ({first / count:.1%}), top five {five} ({five / count:.1%})")
    model = read_sentiment(out)
    for part_name in ("dev", "test"):
        counts = confusion(model, read(texts, part_name, tokenizer))
        print(f"sentiment {part_name}: accuracy {accuracy(counts):.4f}, [true, predicted] {counts.tolist()}")

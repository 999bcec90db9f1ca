"""Record what explain, lens, heads and diff are compared with: `python tests/reference/record_views.py`.

Needs PyTorch and transformers (recorded with transformers 5.23.0, torch 2.13.0). Passes are run one by one; words are
those of the fast tokenizer; a head is silenced by a hook in front of the attention's output projection.
"""
# mypy: disable-error-code="import-not-found"

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoTokenizer

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from helpers.checkpoints import make  # noqa: E402
from reference import oracle  # noqa: E402
from reference.lines import compact  # noqa: E402
from reference.view_cases import LABELS, MASKED, MASKS, OTHER, PAIR, TEXTS, VECTORS  # noqa: E402

Record = dict[str, Any]


def forward(model: Any, ids: list[int], segments: list[int], **options: Any) -> Any:
    """One pass of one sentence."""
    with torch.inference_mode():
        return model(input_ids=torch.tensor([ids]), token_type_ids=torch.tensor([segments]), **options)


def log_odds(model: Any, label: int) -> Any:
    def value(ids: list[int], segments: list[int], at: int | None = None) -> float:
        probabilities = torch.softmax(forward(model, ids, segments).logits[0].double(), -1)
        return float(torch.log(probabilities[label] / (1 - probabilities[label])))

    return value


def log_probability(model: Any, word: int) -> Any:
    def value(ids: list[int], segments: list[int], at: int | None = None) -> float:
        return float(torch.log_softmax(forward(model, ids, segments).logits[0, at].double(), -1)[word])

    return value


def cosine(model: Any, other: list[int]) -> Any:
    def vector(ids: list[int], segments: list[int]) -> Any:
        return forward(model, ids, segments).last_hidden_state[0].double().mean(0)

    def value(ids: list[int], segments: list[int], at: int | None = None) -> float:
        return float(torch.cosine_similarity(vector(ids, segments), vector(other, [0] * len(other)), dim=0))

    return value


def occlusion(tokenizer: Any, texts: tuple[str, ...], value: Any, mask: int | None = None) -> Record:
    """f(text), and for each word f(text) - f(text without it), with [MASK] and left out."""
    encoded = tokenizer(*texts)
    ids, segments = encoded["input_ids"], encoded["token_type_ids"]
    at = None if mask is None else ids.index(mask)
    words: dict[tuple[int, int], list[int]] = {}
    for i, (side, word) in enumerate(zip(encoded.sequence_ids(), encoded.word_ids(), strict=True)):
        if side is not None and word is not None and i != at:
            words.setdefault((side, word), []).append(i)
    whole, found = value(ids, segments, at), []
    for (side, _), places in words.items():
        masked = [tokenizer.mask_token_id if i in places else id for i, id in enumerate(ids)]
        kept = [i for i in range(len(ids)) if i not in places]
        left = value([ids[i] for i in kept], [segments[i] for i in kept], None if at is None else kept.index(at))
        start, end = encoded.token_to_chars(places[0]).start, encoded.token_to_chars(places[-1]).end
        found.append({"side": side, "start": start, "end": end, "mask": whole - value(masked, segments, at),
                      "delete": whole - left})  # fmt: skip
    return {"value": whole, "words": found}


def lens(model: Any, tokenizer: Any, text: str) -> list[Record]:
    """What each layer's state at the mask would predict."""
    ids = tokenizer(text)["input_ids"]
    at = ids.index(tokenizer.mask_token_id)
    with torch.inference_mode():
        states = forward(model, ids, [0] * len(ids), output_hidden_states=True).hidden_states
        logs = [torch.log_softmax(model.cls(state)[0, at].double(), -1) for state in states]
    last = logs[-1]
    answer = int(last.argmax())
    return [
        {
            "best": torch.topk(one, 3).indices.tolist(),
            "scores": torch.topk(one, 3).values.exp().tolist(),
            "rank": 1 + int((one > one[answer]).sum()),
            "score": float(one[answer].exp()),
            "kl": float((last.exp() * (last - one)).sum()),
        }
        for one in logs
    ]


def heads(model: Any, tokenizer: Any, texts: tuple[str, ...]) -> list[Record]:
    """Each head's means over the query tokens of all texts, and the mean change of the first label's log-odds."""
    layers = model.bert.encoder.layer
    count, size = model.config.num_attention_heads, model.config.hidden_size // model.config.num_attention_heads
    sums = np.zeros((len(layers), count, 6))
    changes = np.zeros((len(layers), count))
    queries, value = 0, log_odds(model, 0)
    for text in texts:
        encoded = tokenizer(text, return_special_tokens_mask=True)
        ids, special = encoded["input_ids"], np.array(encoded["special_tokens_mask"], bool)
        queries += len(ids)
        weights = forward(model, ids, [0] * len(ids), output_attentions=True).attentions
        for layer, (one, block) in enumerate(zip(weights, layers, strict=True)):
            a = one[0].double().numpy()
            i, j = np.indices(a.shape[1:])
            sums[layer] += np.stack(
                [-(a * np.log(a)).sum((1, 2)), (a * abs(i - j)).sum((1, 2)), a[:, :, special].sum((1, 2)),
                 (a * (j == i)).sum((1, 2)), (a * (j == i + 1)).sum((1, 2)), (a * (j == i - 1)).sum((1, 2))], 1
            )  # fmt: skip
            for head in range(count):

                def silence(module: Any, given: tuple[Any, ...], head: int = head) -> tuple[Any, ...]:
                    without = given[0].clone()
                    without[..., head * size : (head + 1) * size] = 0
                    return (without,)

                hook = block.attention.output.dense.register_forward_pre_hook(silence)
                silenced = value(ids, [0] * len(ids))
                hook.remove()
                changes[layer, head] += (silenced - value(ids, [0] * len(ids))) / len(texts)
    names = ("entropy", "distance", "special", "self", "next", "previous")
    return [
        {"layer": layer, "head": head, **dict(zip(names, (sums[layer, head] / queries).tolist(), strict=True)),
         "change": changes[layer, head]}
        for layer in range(len(layers)) for head in range(count)
    ]  # fmt: skip


def rollout(model: Any, tokenizer: Any, text: str) -> Any:
    """Abnar and Zuidema's product of layers, [token][token], and the mean of all weights."""
    ids = tokenizer(text)["input_ids"]
    layers = [one[0].double().mean(0) for one in forward(model, ids, [0] * len(ids), output_attentions=True).attentions]
    product = torch.eye(len(ids), dtype=torch.float64)
    for layer in layers:
        product = (0.5 * layer + 0.5 * torch.eye(len(ids), dtype=torch.float64)) @ product
    return {"rollout": product.tolist(), "mean": torch.stack(layers).mean(0).tolist()}


def main() -> None:
    with tempfile.TemporaryDirectory() as root:
        folders = {name: make(Path(root) / name, **case) for name, case in
                   (("labels", LABELS), ("masks", MASKS), ("vectors", VECTORS))}  # fmt: skip
        labels, masks = oracle.load(folders["labels"], "classifier"), oracle.load(folders["masks"], "mlm")
        vectors, tokenizer = oracle.load(folders["vectors"], "model"), AutoTokenizer.from_pretrained(folders["labels"])
        word, other = tokenizer.convert_tokens_to_ids("poured"), tokenizer(OTHER)["input_ids"]
        records: Record = {
            "labels": [
                [occlusion(tokenizer, (text,), log_odds(labels, label)) for label in range(3)] for text in TEXTS
            ],
            "pair": occlusion(tokenizer, PAIR, log_odds(labels, 1)),
            "word": occlusion(tokenizer, (MASKED,), log_probability(masks, word), tokenizer.mask_token_id),
            "cosine": occlusion(tokenizer, (TEXTS[0],), cosine(vectors, other)),
            "lens": lens(masks, tokenizer, MASKED),
            "heads": heads(labels, tokenizer, TEXTS),
            "rollout": rollout(labels, tokenizer, TEXTS[0]),
        }
        ids = tokenizer(TEXTS[2])["input_ids"]
        states = forward(vectors, ids, [0] * len(ids), output_hidden_states=True).hidden_states
        arrays = {f"hidden_states.{i}": state.numpy() for i, state in enumerate(states)}
    text = json.dumps(compact(records), indent=None, separators=(",", ":"))
    (HERE / "views.json").write_text(text.replace("]},", "]},\n") + "\n", encoding="utf-8")
    np.savez_compressed(HERE / "views.npz", **arrays)


if __name__ == "__main__":
    main()

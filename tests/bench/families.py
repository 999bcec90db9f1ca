"""Newer families at their published widths, with a few layers, beside transformers: one forward call on one thread."""

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from helpers.family_checkpoints import architecture, make_family

import bertcli
from bertcli.engine.threads import set_thread_count

Record = dict[str, Any]
SHAPES = ((1, 16), (8, 128), (1, 1024))


class Width(NamedTuple):
    family: str
    sizes: dict[str, int]
    config: Mapping[str, Any] = MappingProxyType({})


WIDTHS = {
    "qwen3": Width(
        "qwen3", {"H": 1024, "F": 3072, "A": 16, "Q": 2048, "M": 1024, "D": 128, "L": 2, "P": 2048},
        {"num_key_value_heads": 8, "head_dim": 128},
    ),
    "gemma3_text": Width(
        "gemma3_text", {"H": 640, "F": 2048, "A": 4, "Q": 1024, "M": 256, "D": 256, "L": 4, "P": 2048},
        {"num_key_value_heads": 1, "head_dim": 256, "query_pre_attn_scalar": 256, "sliding_window": 512,
         "sliding_window_pattern": 6, "use_bidirectional_attention": False},
    ),
    "deberta": Width("deberta", {"H": 768, "E": 768, "F": 3072, "A": 12, "L": 2, "P": 1024, "R": 1024},
                     {"max_relative_positions": 1024}),
    "jina_bert": Width("jina_bert", {"H": 768, "F": 3072, "A": 12, "L": 2, "P": 2048}),
}  # fmt: skip


def families(quick: bool, published: Path | None) -> Iterator[Record]:
    """The processor time of transformers over that of bertcli, medians of pairs that are measured in turn.

    JinaBERT's peer is its published code (see alibi_oracle.py), where its folder is given.
    """
    torch = import_module("torch")
    torch.set_num_threads(1)
    set_thread_count(1)
    for name, width in WIDTHS.items():
        if name == "jina_bert" and published is None:
            continue
        with TemporaryDirectory() as folder:
            sizes = {"V": 2000, **width.sizes}
            path = make_family(Path(folder) / "model", width.family, sizes=sizes, config=width.config)
            ours, theirs = bertcli.load(path), peer(path, width.family, published)
        for batch, tokens in SHAPES:
            ids = np.random.default_rng(0).integers(5, 2000, (batch, tokens))
            calls = {"bertcli": partial(ours.forward, ids), "peer": partial(theirs, torch.from_numpy(ids))}
            apart = np.abs(calls["bertcli"]() - calls["peer"]()).max()
            count = max(3, min(60, 20_000 // (batch * tokens))) // (3 if quick else 1)
            pairs = [{who: processor_time(call) for who, call in calls.items()} for _ in range(count)]
            ratio = median(pair["peer"] / pair["bertcli"] for pair in pairs)
            best = {f"{who} ms": round(min(pair[who] for pair in pairs) * 1e3, 1) for who in calls}
            yield {"what": f"{name} ({batch}, {tokens})", "ratio": round(ratio, 2), **best, "apart": f"{apart:.0e}"}


def peer(path: Path, family: str, published: Path | None) -> Callable[[Any], Any]:
    """The last hidden states of transformers' model, attention as it chooses, or of the published code."""
    torch, transformers = import_module("torch"), import_module("transformers")
    if family == "jina_bert":
        from reference import alibi_oracle

        alibi_oracle.PUBLISHED = published
        model = alibi_oracle.load(path, "model", "jina")
    else:
        model = getattr(transformers, architecture(family, "model")).from_pretrained(path, dtype=torch.float32).eval()

    def forward(ids: Any) -> Any:
        with torch.inference_mode():
            mask = torch.ones_like(ids)
            found = model(input_ids=ids, attention_mask=mask)
        states = found.hidden_states[-1] if family == "jina_bert" else found.last_hidden_state
        return states.numpy()

    return forward


def processor_time(call: Callable[[], Any]) -> float:
    """Seconds of this process that a call takes."""
    begin = time.process_time()
    call()
    return time.process_time() - begin

"""Record what `patch` is compared with: `python tests/reference/record_patch.py`, with this repository importable.

Needs PyTorch and transformers (recorded with transformers 5.23.0, torch 2.13.0). One pass for each number, with a hook
that replaces a state, a sub-layer's output or a head's by what the other text has there. Only ids are bertcli's.
"""
# mypy: disable-error-code="import-not-found"

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]

from reference.lines import compact  # noqa: E402
from reference.patch_cases import TYPES, A, B, folder_of  # noqa: E402

import bertcli  # noqa: E402

transformers.logging.set_verbosity_error()
torch.set_num_threads(1)


class Place(NamedTuple):
    """A module whose output (or, of heads, input) is replaced."""

    module: Any
    of_input: bool = False


def places(model: Any, family: str) -> dict[str, list[Place]]:
    """Where each kind of part is made, layer by layer."""
    base = model.model if family == "modernbert" else getattr(model, family)
    if family == "modernbert":
        layers = list(base.layers)
        attention, feed_forward = [layer.attn.Wo for layer in layers], [layer.mlp for layer in layers]
    else:
        layers = list(base.encoder.layer)
        attention = [layer.attention.output.dense for layer in layers]
        feed_forward = [layer.output.dense for layer in layers]
    return {
        "layers": [Place(base.embeddings), *map(Place, layers)],
        "attention": [*map(Place, attention)],
        "feed-forward": [*map(Place, feed_forward)],
        "heads": [Place(module, True) for module in attention],
    }


def first(value: Any) -> Any:
    return value[0] if isinstance(value, tuple) else value


def run(model: Any, ids: list[int], place: Place | None, change: Callable[[Any], Any]) -> Any:
    """The logits of one pass, with what `change` makes of a place's value (None: as it is)."""

    def hook(module: Any, given: Any, made: Any = None) -> Any:
        value = given if made is None else made
        new = change(first(value))
        if new is None:
            return None
        return (new, *value[1:]) if isinstance(value, tuple) else new

    kind = None if place is None else "register_forward_pre_hook" if place.of_input else "register_forward_hook"
    handle = None if place is None or kind is None else getattr(place.module, kind)(hook)
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([ids])).logits[0].double()
    if handle:
        handle.remove()
    return logits


def patched(
    model: Any, places_of: dict[str, list[Place]], base: list[int], giver: list[int], position: int, word: int
) -> Any:
    """The values of the base with what the giver has, by kind: [layer][position], or of heads [layer][head]."""
    heads = model.config.num_attention_heads
    size = model.config.hidden_size // heads

    def value(place: Place | None, change: Callable[[Any], Any]) -> float:
        return float(torch.log_softmax(run(model, base, place, change)[position], -1)[word])

    found: dict[str, Any] = {"value": value(None, lambda x: None)}
    for kind, row in places_of.items():
        found[kind] = []
        for place in row:
            kept: list[Any] = []
            run(model, giver, place, lambda x, kept=kept: kept.append(x.clone()))  # type: ignore[misc]
            spans = (
                [(slice(None), slice(h * size, (h + 1) * size)) for h in range(heads)]
                if kind == "heads"
                else [(i, slice(None)) for i in range(len(base))]
            )

            def change(x: Any, span: Any, kept: list[Any] = kept) -> Any:
                new = x.clone()
                new[0][span] = kept[0][0][span]
                return new

            found[kind].append([value(place, lambda x, s=span: change(x, s)) for span in spans])  # type: ignore[misc]
    return found


def main() -> None:
    records = {}
    with tempfile.TemporaryDirectory() as root:
        for family in TYPES:
            folder = folder_of(Path(root) / family, family)
            tokenizer = bertcli.load(folder).tokenizer
            texts = [text.format(mask=tokenizer.mask_token) for text in (A, B)]
            a, b = (tokenizer.encode([text])[0].ids for text in texts)
            kind = transformers.AutoModelForMaskedLM
            model = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
            assert tokenizer.mask_id is not None
            position = b.index(tokenizer.mask_id)
            word = int(run(model, a, None, lambda x: None)[position].argmax())
            records[family] = {
                name: patched(model, places(model, family), base, giver, position, word)
                for name, base, giver in (("denoise", b, a), ("noise", a, b))
            } | {"word": word}
    text = json.dumps(compact(records), separators=(",", ":")).replace("]],", "]],\n")
    (HERE / "patch.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

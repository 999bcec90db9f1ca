"""Small random folders of GLiNER2's models, as the library saves them."""

from pathlib import Path
from typing import Any

import numpy as np
from helpers.checkpoint_files import narrow, write_safetensors
from helpers.checkpoints import weights
from helpers.gliner import write_backbone, write_tokenizer
from helpers.json_files import write_json

# The tokens that GLiNER2 adds to a backbone's, in this order.
OWN = (
    "[SEP_STRUCT]", "[SEP_TEXT]", "[P]", "[C]", "[E]", "[R]", "[L]", "[EXAMPLE]", "[OUTPUT]", "[DESCRIPTION]",
)  # fmt: skip
LABELS = ("drink", "capital city", "Person")
DESCRIBED = ("drink: tea, coffee or milk", "capital city", "Person: somebody's name")
CANDIDATES = ("sport", "hot drinks", "Politics")
DESCRIBED_CANDIDATES = ("sport", "hot drinks: tea and coffee", "Politics")
TASK = "topic"
TEXTS = (
    "She poured a cup of hot coffee in Paris, and he drank the tea!",
    "Berlin",
    "the unbelievable king-queen of the river: a well_known man (he said) bought coffee and sold milk. ",
    "you & I: 1,000 cups by ann@lee.org or @ann_lee9 at https://tea.org/cups",
    "",
    "ein Café mit e\u0301 und \u00bd \U0001f375 北京",
)
LONG = " ".join(TEXTS[:4] * 4)  # more tokens than the configuration of a small DeBERTa has positions
# Threshold and policy of the library: greedily for each type; entities inside others; all that are above.
MODES: dict[str, tuple[float, str | None]] = {
    "flat": (0.5, None), "surer": (0.9, None), "nested": (0.5, "nested"), "all": (0.5, "allow"),
}  # fmt: skip
CASES: dict[str, dict[str, Any]] = {
    "deberta-v2": {},
    "deberta-v2.first": {"counting_layer": "count_lstm", "max_width": 3},
    "bert": {"backbone": "bert"},
    "modernbert": {"backbone": "modernbert", "counting_layer": None, "max_width": None, "span_head": {"max_width": 5}},
}  # fmt: skip


def write_gliner2(
    folder: Path, backbone: str = "deberta-v2", *, tokenizer: bool = True, counted: int | None = None, **settings: Any
) -> Path:
    """A folder of GLiNER2; returns it. tokenizer: its file has GLiNER2's own tokens. counted: how many instances the
    network counts in every text. settings: over config.json's, or taken out where the value is None.
    """
    folder.mkdir(parents=True, exist_ok=True)
    size = write_tokenizer(folder, backbone, OWN if tokenizer else ())
    rows = size + (0 if tokenizer else len(OWN))
    encoder, stored = write_backbone(folder, backbone, rows)
    written = {
        "model_type": "extractor", "architectures": ["Extractor"], "model_name": f"small-{backbone}", "max_width": 4,
        "counting_layer": "count_lstm_v2", "token_pooling": "first", "transformers_version": "4.57.1",
    }  # fmt: skip
    written = {key: value for key, value in (written | settings).items() if value is not None}
    tensors = {f"encoder.{name}": values for name, values in stored.items()}
    shapes = head_shapes(int(encoder["hidden_size"]), str(written.get("counting_layer", "count_lstm")))
    # Queries are halved, so that logits are about as large as a trained model's.
    of_queries = ("count_embed.projector.2", "count_embed.transformer.out_projector.4")
    halved = {name: values * (0.5 if name.startswith(of_queries) else 1) for name, values in weights(shapes).items()}
    heads = {name: narrow(values, "F32") for name, values in halved.items()}
    if counted is not None:
        heads["count_pred.2.bias"] = np.where(np.arange(20) == counted, np.float32(99), np.float32(0))
    typed = {name: ("F32", np.ascontiguousarray(values)) for name, values in (tensors | heads).items()}
    write_safetensors(folder / "model.safetensors", typed)
    (folder / "encoder_config").mkdir(exist_ok=True)
    write_json(folder / "encoder_config" / "config.json", encoder)
    write_json(folder / "config.json", written)
    return folder


def head_shapes(hidden: int, counting: str) -> dict[str, tuple[int, ...]]:
    """The tensors beside the backbone's, as GLiNER2's library names them."""
    shapes: dict[str, tuple[int, ...]] = {}

    def linear(name: str, outputs: int, inputs: int) -> None:
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = (outputs, inputs), (outputs,)

    spans = "span_rep.span_rep_layer."
    for name, ends in {"project_start": 1, "project_end": 1, "out_project": 2}.items():
        linear(f"{spans}{name}.0", 4 * hidden, ends * hidden)
        linear(f"{spans}{name}.3", hidden, 4 * hidden)
    for name, outputs in (("classifier", 1), ("count_pred", 20)):
        linear(f"{name}.0", 2 * hidden, hidden)
        linear(f"{name}.2", outputs, 2 * hidden)
    shapes["count_embed.pos_embedding.weight"] = (20, hidden)
    for source in ("ih", "hh"):
        shapes[f"count_embed.gru.weight_{source}_l0"] = (3 * hidden, hidden)
        shapes[f"count_embed.gru.bias_{source}_l0"] = (3 * hidden,)
    if counting == "count_lstm":
        linear("count_embed.projector.0", 4 * hidden, 2 * hidden)
        linear("count_embed.projector.2", hidden, 4 * hidden)
        return shapes
    linear("count_embed.transformer.in_projector", 128, hidden)
    for number in range(2):
        layer = f"count_embed.transformer.transformer.layers.{number}."
        shapes[f"{layer}self_attn.in_proj_weight"] = (384, 128)
        shapes[f"{layer}self_attn.in_proj_bias"] = (384,)
        linear(f"{layer}self_attn.out_proj", 128, 128)
        linear(f"{layer}linear1", 256, 128)
        linear(f"{layer}linear2", 128, 256)
        for norm in ("norm1", "norm2"):
            shapes[f"{layer}{norm}.weight"] = shapes[f"{layer}{norm}.bias"] = (128,)
    linear("count_embed.transformer.out_projector.0", hidden, 128 + hidden)
    linear("count_embed.transformer.out_projector.2", hidden, hidden)
    linear("count_embed.transformer.out_projector.4", hidden, hidden)
    return shapes

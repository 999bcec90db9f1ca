"""JinaBERT v2, the same for code, and MosaicBERT in PyTorch: what their code of their own computes, written down anew.

transformers has none of them. Formulas and names are those of jina-bert-implementation, jina-bert-v2-qk-post-norm and
bert_layers.py of MosaicBERT and DNABERT-2, as published; modules have the names that files have.

With the folder `PUBLISHED` the encoders are the published ones instead: its files jina.py, code.py and mosaic.py hold
`Encoder(config)`, with these names, and `states(encoder, x, mask)`, the states after each layer. Both give the same.
"""

# mypy: disable-error-code="import-not-found,misc"

import runpy
from math import floor, log2, sqrt
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from helpers.json_files import read_json
from torch import nn

PUBLISHED: Path | None = None
DEFAULTS = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "attn_implementation": "torch"}
ACTIVATIONS = {"geglu": nn.GELU(), "reglu": nn.ReLU()}


def slopes(heads: int) -> list[float]:
    """One for each head, as its authors' code has it."""
    if log2(heads).is_integer():
        start = 2 ** (-(2 ** -(log2(heads) - 3)))
        return [start * start**i for i in range(heads)]
    closest = 2 ** floor(log2(heads))
    return slopes(closest) + slopes(2 * closest)[0::2][: heads - closest]


def named(**parts: nn.Module) -> nn.Module:
    """A module of these parts."""
    return nn.ModuleDict(parts)


class Layer(nn.Module):
    """One of the dialects "jina", "code" and "mosaic"."""

    def __init__(self, config: Any, dialect: str) -> None:
        super().__init__()
        hidden, inner = config.hidden_size, config.intermediate_size
        self.dialect, self.heads, self.act = dialect, config.num_attention_heads, ACTIVATIONS[config.feed_forward_type]

        def norm() -> nn.Module:
            return nn.LayerNorm(hidden, eps=config.layer_norm_eps)

        if dialect == "mosaic":
            own = {"Wqkv": nn.Linear(hidden, 3 * hidden)}
        else:
            own = {name: nn.Linear(hidden, hidden) for name in ("query", "key", "value")}
        if dialect == "code":
            own |= {"layer_norm_q": norm(), "layer_norm_k": norm()}
            self.layer_norm_1, self.layer_norm_2 = norm(), norm()
            self.mlp = named(
                up_gated_layer=nn.Linear(hidden, 2 * inner, bias=False), down_layer=nn.Linear(inner, hidden)
            )
        else:
            self.mlp = named(
                gated_layers=nn.Linear(hidden, 2 * inner, bias=False), wo=nn.Linear(inner, hidden), layernorm=norm()
            )
        self.attention = named(self=named(**own), output=named(dense=nn.Linear(hidden, hidden), LayerNorm=norm()))

    def forward(self, x: Any, bias: Any) -> Any:
        own, output = self.attention["self"], self.attention["output"]
        if self.dialect == "mosaic":
            q, k, v = own["Wqkv"](x).chunk(3, dim=-1)
        else:
            q, k, v = own["query"](x), own["key"](x), own["value"](x)
        if self.dialect == "code":
            q, k = own["layer_norm_q"](q), own["layer_norm_k"](k)
        q, k, v = (t.view(*t.shape[:2], self.heads, -1).transpose(1, 2) for t in (q, k, v))
        weights = torch.softmax(q @ k.transpose(-1, -2) / sqrt(q.shape[-1]) + bias, dim=-1)
        z = (weights @ v).transpose(1, 2).reshape(x.shape)
        attended = output["LayerNorm"](output["dense"](z) + x)
        if self.dialect == "code":
            attended = self.layer_norm_1(x + attended)
            plain, gated = self.mlp["up_gated_layer"](attended).chunk(2, dim=-1)
            return self.layer_norm_2(attended + self.mlp["down_layer"](plain * self.act(gated)))
        gated, plain = self.mlp["gated_layers"](attended).chunk(2, dim=-1)
        return self.mlp["layernorm"](self.mlp["wo"](self.act(gated) * plain) + attended)


class Model(nn.Module):
    """The base model and one head, with the outputs that transformers' models have."""

    def __init__(self, config: Any, head: str, dialect: str) -> None:
        super().__init__()
        hidden, vocabulary, eps = config.hidden_size, config.vocab_size, config.layer_norm_eps
        self.config, self.head = config, head
        own = None if PUBLISHED is None else runpy.run_path(str(PUBLISHED / f"{dialect}.py"))
        self.states = None if own is None else own["states"]
        layers = nn.ModuleList(Layer(config, dialect) for _ in range(config.num_hidden_layers)) if own is None else None
        self.bert = named(
            embeddings=named(
                word_embeddings=nn.Embedding(vocabulary, hidden),
                token_type_embeddings=nn.Embedding(config.type_vocab_size, hidden),
                LayerNorm=nn.LayerNorm(hidden, eps=eps),
            ),
            encoder=named(layer=layers) if own is None else own["Encoder"](config),
        )
        if head in ("model", "classifier"):
            self.bert["pooler"] = named(dense=nn.Linear(hidden, hidden))
        if head in ("classifier", "token_classifier"):
            self.classifier = nn.Linear(hidden, config.num_labels)
        if head == "mlm":
            transform = named(dense=nn.Linear(hidden, hidden), LayerNorm=nn.LayerNorm(hidden, eps=eps))
            self.cls = named(predictions=named(transform=transform))
            self.cls["predictions"].bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, input_ids: Any, attention_mask: Any = None, token_type_ids: Any = None, **_: Any) -> Any:
        parts, where = self.bert["embeddings"], torch.arange(input_ids.shape[1], device=input_ids.device)
        segments = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        x = parts["LayerNorm"](parts["word_embeddings"](input_ids) + parts["token_type_embeddings"](segments))
        apart = (where[:, None] - where).abs()
        bias = -torch.tensor(slopes(self.config.num_attention_heads), device=x.device)[:, None, None] * apart
        if attention_mask is not None:
            bias = bias + (1.0 - attention_mask[:, None, None, :].float()) * torch.finfo(torch.float32).min
        states = [x]
        if self.states is not None:
            mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
            states += self.states(self.bert["encoder"], x, mask)
        else:
            for layer in self.bert["encoder"]["layer"]:
                states.append(layer(states[-1], bias))
        last = states[-1]
        found: dict[str, Any] = {"hidden_states": states}
        if "pooler" in self.bert:
            found["pooler_output"] = torch.tanh(self.bert["pooler"]["dense"](last[:, 0]))
        if self.head == "classifier":
            found["logits"] = self.classifier(found["pooler_output"])
        elif self.head == "token_classifier":
            found["logits"] = self.classifier(last)
        elif self.head == "mlm":
            transform = self.cls["predictions"]["transform"]
            hidden = transform["LayerNorm"](nn.functional.gelu(transform["dense"](last)))
            found["logits"] = hidden @ parts["word_embeddings"].weight.T + self.cls["predictions"].bias
        return SimpleNamespace(**found)


def load(folder: Any, head: str, dialect: str) -> Model:
    """A checkpoint whose tensors are exactly those of the model, in float32."""

    from safetensors.torch import load_file

    model = Model(SimpleNamespace(**DEFAULTS, **read_json(folder / "config.json")), head, dialect)
    tensors = {
        name if name.startswith(("bert.", "cls.", "classifier.")) else f"bert.{name}": tensor.float()
        for name, tensor in load_file(folder / "model.safetensors").items()
    }
    model.load_state_dict(tensors)
    model.eval()
    return model

"""NomicBERT with experts (nomic-embed-text-v2-moe) in PyTorch: what its published code computes, written down anew.

transformers lacks it. Names are those of its files. Every second layer has a router, whose softmax gives a share for
each expert; of the two largest, as they are, the experts' outputs are summed, and one bias is added.
"""

# mypy: disable-error-code="import-not-found,misc"

from types import SimpleNamespace
from typing import Any

import torch
from helpers.json_files import read_json
from torch import nn
from torch.nn.functional import gelu


def named(**parts: nn.Module) -> nn.Module:
    """A module of these parts."""
    return nn.ModuleDict(parts)


class Weights(nn.Module):
    """Parameters without a layer."""

    def __init__(self, **shapes: tuple[int, ...]) -> None:
        super().__init__()
        for name, shape in shapes.items():
            self.register_parameter(name, nn.Parameter(torch.zeros(shape)))


class Experts(Weights):
    """Their inner and outer rows, one expert after the other, and the bias."""

    def __init__(self, hidden: int, rows: int) -> None:
        super().__init__(bias=(hidden,))
        self.mlp = Weights(w1=(rows, hidden), w2=(rows, hidden))


class Layer(nn.Module):
    def __init__(self, config: Any, number: int) -> None:
        super().__init__()
        hidden, inner, eps = config.n_embd, config.n_inner, config.layer_norm_epsilon
        self.config = config
        self.has_experts = number % config.moe_every_n_layers == 1
        self.attn = named(Wqkv=nn.Linear(hidden, 3 * hidden), out_proj=nn.Linear(hidden, hidden))
        self.norm1, self.norm2 = nn.LayerNorm(hidden, eps=eps), nn.LayerNorm(hidden, eps=eps)
        if self.has_experts:
            router = named(layer=nn.Linear(hidden, config.num_experts, bias=False))
            self.mlp = named(router=router, experts=Experts(hidden, inner * config.num_experts))
        else:
            self.mlp = named(fc1=nn.Linear(hidden, inner), fc2=nn.Linear(inner, hidden))

    def forward(self, x: Any, mask: Any) -> Any:
        heads = self.config.n_head
        q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in self.attn["Wqkv"](x).chunk(3, dim=-1))
        q, k = self.turned(q), self.turned(k)
        weights = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + mask, dim=-1)
        z = (weights @ v).transpose(1, 2).flatten(2)
        x = self.norm1(x + self.attn["out_proj"](z))
        return self.norm2(x + (self.mixed(x) if self.has_experts else self.mlp["fc2"](gelu(self.mlp["fc1"](x)))))

    def turned(self, x: Any) -> Any:
        size = x.shape[-1]
        rates = 1 / self.config.rotary_emb_base ** (torch.arange(0, size, 2, device=x.device) / size)
        angles = torch.arange(x.shape[-2], device=x.device)[:, None] * rates
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], dim=-1)

    def mixed(self, x: Any) -> Any:
        count = self.config.num_experts
        shares = torch.softmax(self.mlp["router"]["layer"](x), dim=-1)
        chosen = torch.topk(shares, self.config.moe_top_k, dim=-1)
        kept = torch.zeros_like(shares).scatter(-1, chosen.indices, chosen.values)
        experts = self.mlp["experts"]
        inner, outer = (w.unflatten(0, (count, -1)) for w in (experts.mlp.w1, experts.mlp.w2))
        each = torch.einsum("bsh,efh->bsef", x, inner)
        outputs = torch.einsum("bsef,efh->bseh", gelu(each), outer)
        return (outputs * kept[..., None]).sum(dim=2) + experts.bias


class Model(nn.Module):
    """The base model, with the outputs that transformers' models have."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        self.embeddings = named(
            word_embeddings=nn.Embedding(config.vocab_size, config.n_embd),
            token_type_embeddings=nn.Embedding(config.type_vocab_size, config.n_embd),
        )
        self.emb_ln = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.encoder = named(layers=nn.ModuleList(Layer(config, n) for n in range(config.n_layer)))

    def forward(self, input_ids: Any, attention_mask: Any = None, **_: Any) -> Any:
        segments = self.embeddings["token_type_embeddings"](torch.zeros_like(input_ids))
        states = [self.emb_ln(self.embeddings["word_embeddings"](input_ids) + segments)]
        seen = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        mask = (1.0 - seen[:, None, None, :].float()) * torch.finfo(torch.float32).min
        for layer in self.encoder["layers"]:
            states.append(layer(states[-1], mask))
        return SimpleNamespace(hidden_states=states)


def load(folder: Any) -> Model:
    """A checkpoint whose tensors are exactly those of the model, in float32."""
    from safetensors.torch import load_file

    model = Model(SimpleNamespace(**read_json(folder / "config.json")))
    tensors = load_file(folder / "model.safetensors").items()
    model.load_state_dict({name.removeprefix("nomic_bert."): tensor.float() for name, tensor in tensors})
    model.eval()
    return model

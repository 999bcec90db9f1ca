"""BERT for training on a CPU: stacked weights, bfloat16 products, the last layer only for the rows that are used."""

from dataclasses import asdict, dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Shape:
    """The sizes, in config.json's words."""

    vocab_size: int = 8192
    hidden_size: int = 256
    num_hidden_layers: int = 4
    num_attention_heads: int = 4
    intermediate_size: int = 1024
    max_position_embeddings: int = 256
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12


class Bert(nn.Module):
    """BERT with post-norm layers; the matrices of all layers in three stacked parameters, each a Muon batch.

    attention [layer, 4, hidden, hidden] (query, key, value, output), up [layer, inner, hidden],
    down [layer, hidden, inner]; vectors and sums between the layers are float32, products bfloat16.
    """

    def __init__(self, shape: Shape, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.shape = shape
        self.kind = torch.bfloat16  # of the products; scores and exports are computed in float32
        layers, hidden, inner = shape.num_hidden_layers, shape.hidden_size, shape.intermediate_size

        def normal(*size: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(*size) * 0.02)

        self.words = normal(shape.vocab_size, hidden)
        self.places = normal(shape.max_position_embeddings, hidden)
        self.segments = normal(shape.type_vocab_size, hidden)
        self.attention = normal(layers, 4, hidden, hidden)
        self.up = normal(layers, inner, hidden)
        self.down = normal(layers, hidden, inner)
        self.attention_bias = nn.Parameter(torch.zeros(layers, 4, hidden))
        self.up_bias = nn.Parameter(torch.zeros(layers, inner))
        self.down_bias = nn.Parameter(torch.zeros(layers, hidden))
        self.norm_weight = nn.Parameter(torch.ones(2 * layers + 2, hidden))  # embeddings, two a layer, MLM transform
        self.norm_bias = nn.Parameter(torch.zeros(2 * layers + 2, hidden))
        self.pooler = normal(hidden, hidden)
        self.pooler_bias = nn.Parameter(torch.zeros(hidden))
        self.transform = normal(hidden, hidden)
        self.transform_bias = nn.Parameter(torch.zeros(hidden))
        self.decoder_bias = nn.Parameter(torch.zeros(shape.vocab_size))
        self.pair = normal(2, hidden)
        self.pair_bias = nn.Parameter(torch.zeros(2))

    def norm(self, x: Tensor, index: int) -> Tensor:
        """Layer norm number `index` of x [..., hidden], in float32 like the sums between the layers."""
        return F.layer_norm(x, x.shape[-1:], self.norm_weight[index], self.norm_bias[index], self.shape.layer_norm_eps)

    def forward(
        self, ids: Tensor, segments: Tensor, rows: Tensor, mask: Tensor | None = None, drop: float = 0
    ) -> Tensor:
        """ids, segments [batch, length]; rows [batch, chosen] -> last layer's vectors [batch, chosen, hidden].

        Only the chosen rows are queries in the last layer, which spares most of its work and changes nothing.
        mask [batch, length] is False on padding; drop is the dropout of the sums, for fine-tuning.
        """
        heads = self.shape.num_attention_heads
        kind = self.kind
        x = F.embedding(ids, self.words) + self.places[: ids.shape[1]] + F.embedding(segments, self.segments)
        x = F.dropout(self.norm(x, 0), drop, self.training)
        matrices, ups, downs = (stack.to(kind).unbind() for stack in (self.attention, self.up, self.down))
        biases, up_biases, down_biases = (
            stack.to(kind).unbind() for stack in (self.attention_bias, self.up_bias, self.down_bias)
        )
        away = None if mask is None else torch.where(mask, 0.0, -1e4).to(kind)[:, None, None, :]
        for layer in range(self.shape.num_hidden_layers):
            matrix, bias = matrices[layer], biases[layer]
            hidden = x.shape[-1]
            low = x.to(kind)
            if layer == self.shape.num_hidden_layers - 1:
                key, value = F.linear(low, matrix[1:3].flatten(0, 1), bias[1:3].flatten()).chunk(2, -1)
                x = x.gather(1, rows[..., None].expand(-1, -1, hidden))
                query = F.linear(x.to(kind), matrix[0], bias[0])
            else:
                query, key, value = F.linear(low, matrix[:3].flatten(0, 1), bias[:3].flatten()).chunk(3, -1)
            query, key, value = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in (query, key, value))
            scores = query @ (key.transpose(-1, -2) * (hidden // heads) ** -0.5)
            weights = (scores if away is None else scores + away).softmax(-1)
            mixed = (weights @ value).transpose(1, 2).flatten(2)
            added = F.dropout(F.linear(mixed, matrix[3], bias[3]), drop, self.training)
            x = self.norm(x + added, 2 * layer + 1)
            inner = F.gelu(F.linear(x.to(kind), ups[layer], up_biases[layer]))
            added = F.dropout(F.linear(inner, downs[layer], down_biases[layer]), drop, self.training)
            x = self.norm(x + added, 2 * layer + 2)
        return x

    def words_of(self, x: Tensor) -> Tensor:
        """MLM logits [row, vocabulary] of last-layer rows x [row, hidden]; the decoder is the word embedding."""
        kind = self.kind
        x = F.gelu(F.linear(x.to(kind), self.transform.to(kind), self.transform_bias.to(kind))).float()
        x = self.norm(x, 2 * self.shape.num_hidden_layers + 1).to(kind)
        return F.linear(x, self.words.to(kind), self.decoder_bias.to(kind))

    def pooled(self, first: Tensor) -> Tensor:
        """tanh(W x + b) of the vectors at [CLS], [batch, hidden], in float32."""
        return torch.tanh(F.linear(first, self.pooler, self.pooler_bias))

    def follows(self, first: Tensor) -> Tensor:
        """Next-sentence logits [batch, 2]; 0 = the second text follows the first."""
        return F.linear(self.pooled(first), self.pair, self.pair_bias)

    def start_from_counts(self, ids: np.ndarray, seed: int) -> None:
        """Word vectors by PPMI and SVD into the embedding (standard deviation 0.02), log frequencies into the bias."""
        vectors, log_frequency = word_vectors(ids, self.shape.vocab_size, self.shape.hidden_size, seed)
        with torch.no_grad():
            self.words.copy_(vectors)
            self.decoder_bias.copy_(log_frequency)


def word_vectors(ids: np.ndarray, vocabulary: int, size: int, seed: int) -> tuple[Tensor, Tensor]:
    """([vocabulary, size], [vocabulary]): truncated SVD of max(0, log(p(w,c) / (p(w) q(c)))), q ~ counts^0.75."""
    counts = np.zeros(vocabulary * vocabulary, np.float32)
    for start in range(0, len(ids), 20_000_000):
        flat = ids[start : start + 20_000_000].astype(np.int64)
        for distance in range(1, 6):
            pairs = flat[:-distance] * vocabulary + flat[distance:]
            counts += np.bincount(pairs, minlength=counts.size).astype(np.float32) / distance
    table = counts.reshape(vocabulary, vocabulary)
    table += table.T.copy()
    word = table.sum(1) + 1e-3
    context = word**0.75
    with np.errstate(divide="ignore"):
        table = np.log(table) - np.log(word)[:, None] - np.log(context / context.sum())[None, :]
    torch.manual_seed(seed)
    left, scale, _ = torch.svd_lowrank(torch.from_numpy(np.maximum(table, 0)), q=size + 32, niter=3)
    vectors = left[:, :size] * scale[:size].sqrt()
    frequency = np.bincount(ids, minlength=vocabulary).astype(np.float32) + 1
    return vectors / vectors.std() * 0.02, torch.from_numpy(np.log(frequency / frequency.sum()))


def hugging_face_names(network: Bert) -> dict[str, Tensor]:
    """Views of the weights under the names of transformers' BertForPreTraining."""
    layers = network.shape.num_hidden_layers
    named: dict[str, Tensor] = {
        "bert.embeddings.word_embeddings.weight": network.words,
        "bert.embeddings.position_embeddings.weight": network.places,
        "bert.embeddings.token_type_embeddings.weight": network.segments,
        "bert.pooler.dense.weight": network.pooler,
        "bert.pooler.dense.bias": network.pooler_bias,
        "cls.predictions.transform.dense.weight": network.transform,
        "cls.predictions.transform.dense.bias": network.transform_bias,
        "cls.predictions.bias": network.decoder_bias,
        "cls.seq_relationship.weight": network.pair,
        "cls.seq_relationship.bias": network.pair_bias,
    }
    norms = ["bert.embeddings.LayerNorm"]
    for layer in range(layers):
        start = f"bert.encoder.layer.{layer}."
        for index, part in enumerate(("self.query", "self.key", "self.value", "output.dense")):
            named[f"{start}attention.{part}.weight"] = network.attention[layer, index]
            named[f"{start}attention.{part}.bias"] = network.attention_bias[layer, index]
        named[f"{start}intermediate.dense.weight"] = network.up[layer]
        named[f"{start}intermediate.dense.bias"] = network.up_bias[layer]
        named[f"{start}output.dense.weight"] = network.down[layer]
        named[f"{start}output.dense.bias"] = network.down_bias[layer]
        norms += [f"{start}attention.output.LayerNorm", f"{start}output.LayerNorm"]
    for index, name in enumerate([*norms, "cls.predictions.transform.LayerNorm"]):
        named[f"{name}.weight"], named[f"{name}.bias"] = network.norm_weight[index], network.norm_bias[index]
    return named


def config(shape: Shape, architecture: str) -> dict[str, object]:
    """config.json of a model of this shape."""
    return {
        "architectures": [architecture],
        "model_type": "bert",
        **asdict(shape),
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "initializer_range": 0.02,
        "pad_token_id": 0,
        "position_embedding_type": "absolute",
        "tie_word_embeddings": True,
        "torch_dtype": "float16",
    }

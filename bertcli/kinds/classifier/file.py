"""A classifier of your own: a linear map of one layer's pooled states, in a small safetensors file.

    logits = W v + b        v: the states of one layer, pooled to a vector (scaled to length 1 if `normalize`)

`bertcli probe -o` writes the file, and MODEL+FILE names a model with it, wherever a model is named. It holds two
tensors, `weight` [label, width] and `bias` [label] in float32, in which the standardization of the features is folded
in, and metadata, all of them texts:

    labels            a JSON list of names, in the order of the rows of `weight`
    problem_type      single_label_classification (softmax) or multi_label_classification (sigmoid)
    layer, pooling    which states are read: 0 is the embeddings; pooling modes are joined by commas
    normalize         true or false
    prompt, prompt_tokens, max_length   how texts are prepared: prompt_tokens at the beginning are not pooled
    model, digest     the model's name, and a digest of the weights and the tokenizer that give these states
    figures, C, bertcli, numpy          for people: how good it was on its folds, and what made it

A classifier fits no other model, so one whose digest differs is refused. Files are untrusted: whatever does not have
exactly this form is refused in one line.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError, quoted
from bertcli.folder.files import open_regular, parse_json, read_bytes
from bertcli.kinds.vectors import pool, unit
from bertcli.network.heads import Network
from bertcli.network.module import parameters
from bertcli.tracing.dispatch import Array, Integers
from bertcli.weights.digest import key_of
from bertcli.weights.tensors import HEADER_LIMIT, open_file

if TYPE_CHECKING:
    from bertcli.tokens import Tokenizer

ENDING = ".safetensors"
LARGEST_FILE = 64_000_000  # bytes: 15,000 labels at 1,024 features
MOST_LABELS = 100_000
POOLINGS = ("mean", "cls", "max", "lasttoken", "mean_sqrt_len", "weightedmean")
FIELDS = {
    "format", "labels", "problem_type", "layer", "pooling", "normalize", "prompt", "prompt_tokens", "max_length",
    "model", "digest",
}  # fmt: skip
SINGLE, MULTIPLE = "single_label_classification", "multi_label_classification"
# Tokenizers differ in their tokens for these: case, accents, numbers, other scripts, rare words.
SENTENCES = ("The café's 12,345 Unbelievable films!", "naïve  ÅNGSTRÖM — 東京 Москва", "x_y = f(z); #tag @me")


@dataclass(frozen=True, eq=False)
class Classifier:
    """A linear classifier: its weights, its labels, and the states that it reads.

    weight [label, width], bias [label]. `file` is the path that it was read from; `made` holds the metadata for people:
    figures, C, versions.
    """

    weight: Array = field(repr=False)
    bias: Array = field(repr=False)
    labels: tuple[str, ...]
    multi_label: bool
    layer: int
    pooling: tuple[str, ...]
    normalize: bool
    prompt: str
    prompt_tokens: int
    max_length: int
    model: str
    digest: str
    made: Mapping[str, str] = field(default_factory=dict)
    file: str = ""

    @property
    def problem_type(self) -> str:
        """The problem_type, as in config.json."""
        return MULTIPLE if self.multi_label else SINGLE

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata that `probe -o` writes into the file."""
        return {
            "format": "bertcli.classifier",
            "labels": json.dumps(self.labels),
            "problem_type": self.problem_type,
            "layer": str(self.layer),
            "pooling": ",".join(self.pooling),
            "normalize": json.dumps(self.normalize),
            "prompt": self.prompt,
            "prompt_tokens": str(self.prompt_tokens),
            "max_length": str(self.max_length),
            "model": self.model,
            "digest": self.digest,
            **self.made,
        }

    @property
    def figures(self) -> dict[str, Any]:
        """Accuracy and so on over the folds, as `probe` reports them; empty where the file has none."""
        figures = parse_json(self.made.get("figures", "{}").encode(), Path(self.file))
        return figures if isinstance(figures, dict) else {}

    def refusal(self, model: str, digest: str, layers: int, hidden_size: int) -> str | None:
        """Explain why a model cannot use this classifier: its digest, layer or width differs; None if it can."""
        expected = hidden_size * len(self.pooling)
        if digest != self.digest:
            return (
                f"{self.file} was made for {quoted(self.model)}, and {model} has other weights or another tokenizer: "
                "give that model (-m BASE+FILE), or make a classifier for this one (bertcli probe -o)."
            )
        if self.layer > layers or self.weight.shape[1] != expected:
            return (
                f"{self.file} reads layer {self.layer} and vectors of {self.weight.shape[1]} numbers, but {model} has "
                f"{layers} layers and vectors of {expected}: the file is damaged, make it again (bertcli probe -o)."
            )
        return None

    def logits(self, states: Array, offsets: Integers) -> NDArray[np.float64]:
        """Compute the logits [text, label] from the states [token, hidden] of packed texts after the layer."""
        pooled = [pool(states, offsets, mode, self.prompt_tokens) for mode in self.pooling]
        vectors = np.concatenate(pooled, axis=1)
        if self.normalize:
            vectors = unit(vectors)
        # Without BLAS, whose order of summation depends on how many texts there are.
        products = np.einsum("td,ld->tl", vectors, self.weight, dtype=np.float64)
        return np.asarray(products + self.bias)


def digest_of(network: Network, tokenizer: "Tokenizer") -> str:
    """Digest what a model's states depend on: the weights outside its prediction heads, and the tokens of SENTENCES.

    Names of files and models, and heads, do not count: an encoder has the same digest under any of them.
    """
    weights = [weight for weight in parameters(network) if weight.path.split(".")[0] not in network.heads]
    states = {weight.path: weight.array for weight in weights}
    return key_of(states, [_tokens(tokenizer, sentence) for sentence in SENTENCES])


def _tokens(tokenizer: "Tokenizer", sentence: str) -> object:
    """Tokenize a sentence to ids and segments; None if the tokenizer (ESM's) has no piece for some of it."""
    try:
        (tokens,) = tokenizer.encode([sentence])
    except BertcliError:
        return None
    return tokens.ids, tokens.segments


def read_classifier(file: str | Path) -> Classifier:
    """Read the classifier in a file. Errors: BertcliError for anything that `probe -o` does not write."""
    path = Path(file)
    if path.is_dir() or path.suffix.lower() != ENDING:
        raise BertcliError(f"{path} is no classifier: give the {ENDING} file that bertcli probe -o wrote.")
    if not path.exists():
        raise BertcliError(f"There is no classifier {path}: bertcli probe -o writes one.")
    with open_regular(path) as stream:
        size = stream.seek(0, 2)
    if size > LARGEST_FILE:
        raise _refusal(path, f"has {size:,} bytes, and a classifier at most {LARGEST_FILE:,}")
    tensors, texts = open_file(path), _metadata(path)
    if texts.get("format") != "bertcli.classifier" or {*tensors} != {"weight", "bias"}:
        raise BertcliError(f"{path} holds no classifier: give the file that bertcli probe -o wrote.")
    weight, bias = (tensors[name].float32() for name in ("weight", "bias"))
    labels = _labels(texts.get("labels"), path)
    if weight.ndim != 2 or weight.shape[0] != len(labels) or weight.shape[1] == 0 or bias.shape != (len(labels),):
        shapes = f"weight {list(weight.shape)} and bias {list(bias.shape)}"
        raise _refusal(path, f"has {len(labels)} labels, which {shapes} do not fit")
    if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
        raise _refusal(path, "holds NaN or infinite numbers")
    pooling = tuple(texts.get("pooling", "").split(","))
    if not {*pooling} <= {*POOLINGS}:
        raise _refusal(path, f"has the pooling {quoted(','.join(pooling))}")
    return Classifier(
        weight=np.array(weight),  # not a view of the file, which may be written again meanwhile
        bias=np.array(bias),
        labels=labels,
        multi_label=_one_of(texts, "problem_type", (SINGLE, MULTIPLE), path) == MULTIPLE,
        layer=_whole(texts, "layer", path),
        pooling=pooling,
        normalize=_one_of(texts, "normalize", ("false", "true"), path) == "true",
        prompt=texts.get("prompt", ""),
        prompt_tokens=_whole(texts, "prompt_tokens", path),
        max_length=_whole(texts, "max_length", path, least=1),
        model=texts.get("model", ""),
        digest=texts.get("digest", ""),
        made={name: text for name, text in texts.items() if name not in FIELDS},
        file=str(path),
    )


def _metadata(path: Path) -> dict[str, str]:
    """Read the metadata in the header; `open_file` has already checked that the header is valid JSON."""
    with open_regular(path) as stream:
        length = int.from_bytes(read_bytes(stream, 8, path), "little")
        header = parse_json(read_bytes(stream, min(length, HEADER_LIMIT), path), path)
    texts = header.get("__metadata__") or {}
    return {str(name): str(text) for name, text in texts.items()}


def _labels(text: str | None, path: Path) -> tuple[str, ...]:
    labels = parse_json((text or "null").encode("utf-8", "surrogatepass"), path)
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise _refusal(path, f"has the labels {quoted(labels)}, which are no list of names")
    if not 2 <= len(labels) <= MOST_LABELS or len({*labels}) < len(labels):
        raise _refusal(path, f"has {len(labels)} labels, and needs 2 to {MOST_LABELS:,} different ones")
    return tuple(labels)


def _one_of(texts: Mapping[str, str], name: str, values: tuple[str, ...], path: Path) -> str:
    if texts.get(name) not in values:
        raise _refusal(path, f"has the {name} {quoted(texts.get(name))}")
    return texts[name]


def _whole(texts: Mapping[str, str], name: str, path: Path, least: int = 0) -> int:
    text = texts.get(name, "")
    # Ten digits and more are no layer, nor a number of tokens.
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text) >= least):
        raise _refusal(path, f"has the {name} {quoted(text)}")
    return int(text)


def _refusal(path: Path, what: str) -> BertcliError:
    return BertcliError(f"{path} {what}: it is no sound classifier, make it again (bertcli probe -o).")

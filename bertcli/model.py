"""A model to work with: from a folder or hub id, or a variant without weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bertcli.bert import Bert, Outputs, outputs
from bertcli.checkpoint import TensorUse, open_checkpoint
from bertcli.config import TEXTBOOK, BertConfig, parse_heads, read_config, variant_config
from bertcli.errors import BertcliError
from bertcli.packing import Integers, Packed, pack_padded
from bertcli.parts import Array, watched
from bertcli.textbook import Textbook
from bertcli.tree import Request, Source, build

if TYPE_CHECKING:
    from bertcli.sentence import SentenceConfig
    from bertcli.tokens import Tokenizer

DEFAULT_MODEL = "bert-mini-mlm"


@dataclass(frozen=True, eq=False)
class Model:
    """A network with what belongs to it: configuration, tokenizer, the folder it came from.

    Safe to share between threads. Pickles as its folder, not its weights.
    """

    config: BertConfig
    heads: tuple[str, ...]
    network: Bert | Textbook
    name: str
    path: Path | None = None
    uses: tuple[TensorUse, ...] = ()
    notes: tuple[str, ...] = ()
    has_weights: bool = True

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The checkpoint's tokenizer, opened on first use."""
        from bertcli.tokens import Tokenizer  # the tokenizers package is imported by commands that read text only

        return Tokenizer.open(self._folder(), self.config)

    @cached_property
    def sentence(self) -> SentenceConfig:
        """What the checkpoint's sentence-transformers files say of pooling, normalisation and limits."""
        from bertcli.sentence import read_sentence_config

        return read_sentence_config(self._folder())

    def forward(self, ids: ArrayLike, segments: ArrayLike | None = None, mask: ArrayLike | None = None) -> Array:
        """Hidden states of the last layer: int [batch, token] -> float32 [batch, token, hidden].

        `mask` is 1 for tokens that count (default: all); rows where it is 0 come back as zeros.
        """
        batch, rows, shape = self._packed(ids, segments, mask)
        with np.errstate(all="ignore"):  # damaged weights show in the result; callers who care test it
            hidden = self._runnable()(batch)
        if watched() and hidden.strides == (0, 0):  # a dry run: there is nothing to put back in place
            return np.broadcast_to(hidden[:1], (*shape, self.config.hidden_size))
        states = np.zeros((*shape, self.config.hidden_size), dtype=np.float32)
        states.reshape(-1, self.config.hidden_size)[rows] = hidden
        return states

    def outputs(self, ids: ArrayLike, segments: ArrayLike | None = None) -> Outputs:
        """A whole pass, every head included: hidden states and MLM logits are [batch, token, …], the others [batch, …].

        `forward` runs the encoder alone; this is what `bertcli trace` shows.
        """
        batch, _, shape = self._packed(ids, segments, None)
        network = self._runnable()
        with np.errstate(all="ignore"):
            found = outputs(network, batch)
        mlm = None if found.mlm is None else found.mlm.reshape(*shape, -1)
        return found._replace(hidden=found.hidden.reshape(*shape, -1), mlm=mlm)

    def _packed(
        self, ids: ArrayLike, segments: ArrayLike | None, mask: ArrayLike | None
    ) -> tuple[Packed, Integers, tuple[int, int]]:
        token_ids = _integers("ids", ids, self.config.vocab_size)
        if token_ids.ndim != 2 or token_ids.shape[1] > self.config.max_position_embeddings:
            raise BertcliError(
                f"ids have shape {token_ids.shape}; a batch is [batch, token] with at most "
                f"{self.config.max_position_embeddings} tokens."
            )
        kinds = np.zeros_like(token_ids) if segments is None else _integers("segments", segments, self.config.type_vocab_size)
        seen = np.ones(token_ids.shape, dtype=bool) if mask is None else np.asarray(mask) != 0
        for name, array in (("segments", kinds), ("mask", seen)):
            if array.shape != token_ids.shape:
                raise BertcliError(f"{name} have shape {array.shape}, but ids have shape {token_ids.shape}.")
        batch, rows = pack_padded(token_ids, kinds, seen)
        return batch, rows, (token_ids.shape[0], token_ids.shape[1])

    def _runnable(self) -> Bert | Textbook:
        if not self.has_weights and not watched():
            raise BertcliError(f"'{self.name}' has no weights to run; trace it, or load a checkpoint.")
        return self.network

    def _folder(self) -> Path:
        if self.path is None:
            raise BertcliError(f"'{self.name}' is a variant without a tokenizer; load a checkpoint to work on text.")
        return self.path

    def __reduce__(self) -> tuple[Any, ...]:
        if self.path is None:
            raise TypeError("a variant is not a file to pickle the path of; call bertcli.variant() where it is needed")
        return load, (str(self.path),)


def load(
    model: str | Path | None = None,
    *,
    revision: str | None = None,
    cache_dir: str | Path | None = None,
    offline: bool = False,
    progress: bool = False,
    heads: str | None = None,
) -> Model:
    """A model from a folder or hub id (cache first, then download); without one, the bundled sample."""
    from bertcli.hub import find_model, sample

    if model is None:
        folder = sample(DEFAULT_MODEL)
    else:
        folder = find_model(str(model), revision=revision, cache_dir=cache_dir, offline=offline, progress=progress)
    opened = open_checkpoint(folder, heads)
    return Model(
        opened.config, opened.heads, opened.network, str(model or DEFAULT_MODEL), folder, opened.uses, tuple(opened.notes)
    )


def variant(
    name: str = "base",
    *,
    config: str | Path | BertConfig | None = None,
    heads: str | Iterable[str] = "pooler",
    vocab_size: int | None = None,
    num_labels: int | None = None,
    weights: Mapping[str, ArrayLike] | int | None = None,
) -> Model:
    """A model by the name of its variant, or by a config.json: no weights, so nothing to run but all to count and trace.

    `weights` gives it some: a mapping from the paths `bertcli.params` lists to arrays, or a seed for random ones.
    """
    if config is None:
        settings = variant_config(name)
    else:
        settings = config if isinstance(config, BertConfig) else read_config(Path(config))
        name = settings.model_type if isinstance(config, BertConfig) else str(config)
    if vocab_size is not None:
        settings = replace(settings, vocab_size=vocab_size)
    if num_labels is not None:
        settings = replace(settings, num_labels=num_labels, id2label={})
    chosen = parse_heads(heads if isinstance(heads, str) else tuple(heads))
    source = _weights(weights)
    network: Bert | Textbook
    if settings.model_type == TEXTBOOK:
        network = build(_textbook_kind(chosen), settings, source, chosen)
    else:
        network = build(Bert, settings, source, chosen)
    return Model(settings, chosen, network, name, has_weights=weights is not None)


def _textbook_kind(heads: tuple[str, ...]) -> type[Textbook]:
    for head in heads:
        if head not in ("pooler", "mlm"):
            raise BertcliError(f"The textbook model has no {head} head; it has pooler and mlm.")
    return Textbook


def _weights(weights: Mapping[str, ArrayLike] | int | None) -> Source:
    """A source of arrays: of shapes alone (zero strides, no memory), of a mapping, or of a random generator."""
    arrays: dict[str, Array] = {}
    generator = np.random.default_rng(weights) if isinstance(weights, int) else None

    def make(request: Request) -> Array:
        if weights is None:
            return np.broadcast_to(np.zeros((), dtype=np.float32), request.shape)
        if generator is not None:
            return generator.normal(0, 0.02, request.shape).astype(np.float32)
        return _given(weights, request)

    def source(request: Request) -> Array:
        tied = request.tied and not (isinstance(weights, Mapping) and request.path in weights)
        array = arrays[request.tied] if tied and request.tied else make(request)
        array.flags.writeable = False
        arrays[request.path] = array
        return array

    return source


def _given(weights: Any, request: Request) -> Array:
    if request.path not in weights:
        raise BertcliError(f"The weights lack '{request.path}' of shape {request.shape}.")
    array = np.array(weights[request.path], dtype=np.float32)
    if array.shape != request.shape:
        raise BertcliError(f"The weight '{request.path}' has shape {array.shape}; it should be {request.shape}.")
    return array


def _integers(name: str, values: ArrayLike, limit: int) -> Integers:
    array = np.asarray(values)
    if array.size == 0:
        return array.astype(np.intp)
    if array.dtype.kind not in "iu":
        raise BertcliError(f"{name} are of type {array.dtype}; they must be whole numbers.")
    if array.min() < 0 or array.max() >= limit:
        raise BertcliError(f"{name} must lie between 0 and {limit - 1}; found {array.min()} to {array.max()}.")
    return array.astype(np.intp)

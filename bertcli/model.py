"""A model to work with: a network with its configuration and tokenizer, from a folder or Hub id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bertcli.bert import Bert, Outputs, outputs
from bertcli.checkpoint import TensorUse, open_checkpoint
from bertcli.config import BertConfig
from bertcli.errors import BertcliError
from bertcli.memory import is_shape_only, shape_only
from bertcli.packing import Part
from bertcli.padded import packed_batch
from bertcli.parts import Array, watched
from bertcli.products import each_or_whole, in_row_parts, scatter_rows
from bertcli.textbook import Textbook
from bertcli.untrusted import shown_object

if TYPE_CHECKING:
    from bertcli.sentence import SentenceConfig
    from bertcli.tasks import Stream
    from bertcli.tasks.items import Truncation
    from bertcli.tokens import Tokenizer

DEFAULT_MODEL = "bert-mini-mlm"
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt")


@dataclass(frozen=True, eq=False)
class Model:
    """A network with its configuration, tokenizer and the folder it came from.

    Safe to share between threads. Pickles as its path, not its weights. `options` of a method are those of the function
    of that name in `bertcli.tasks`. Errors: BertcliError for a missing head (encode needs none) or an unusable text.
    """

    config: BertConfig
    heads: tuple[str, ...]
    network: Bert | Textbook = field(repr=False)
    name: str
    path: Path | None = None  # absolute: some files are read only when first needed
    uses: tuple[TensorUse, ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()
    has_weights: bool = True
    as_stored: bool = field(default=False, init=False, repr=False)  # opening `path` gives the same model again

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The checkpoint's tokenizer, opened on first use."""
        from bertcli.tokens import Tokenizer  # only commands that read text import the tokenizers package

        return Tokenizer.open(self._folder(), self.config)

    @cached_property
    def sentence(self) -> SentenceConfig:
        """What the checkpoint's sentence-transformers files say about pooling, normalisation and limits."""
        from bertcli.sentence import read_sentence_config

        return read_sentence_config(self._folder())

    def forward(self, ids: ArrayLike, segments: ArrayLike | None = None, mask: ArrayLike | None = None) -> Array:
        """Hidden states of the last layer: int [batch, token] -> float32 [batch, token, hidden].

        `mask` is 1 for tokens to attend to (default: all); rows where it is 0 are returned as zeros.
        """
        batch, rows, shape = packed_batch(self.config, ids, segments, mask)
        network = self._runnable()
        states = np.zeros((*shape, self.config.hidden_size), dtype=np.float32)
        if not len(rows):
            return states
        flat = states.reshape(-1, self.config.hidden_size)

        def run(part: Part) -> None:
            scatter_rows(network(part.batch), flat, rows[part.rows])

        with np.errstate(all="ignore"):  # damaged weights show in the result; callers who care check it
            parts = batch.parts()
            if not watched():
                each_or_whole(run, parts)
                return states
            with in_row_parts([part.rows for part in parts]):
                hidden = network(batch)
        if is_shape_only(hidden):  # there are no numbers to put back in place
            return shape_only((*shape, self.config.hidden_size))
        scatter_rows(hidden, flat, rows)
        return states

    def outputs(self, ids: ArrayLike, segments: ArrayLike | None = None) -> Outputs:
        """A whole pass with every head: hidden states and MLM logits are [batch, token, …], the others [batch, …].

        `forward` runs only the encoder; this is what `bertcli trace` shows.
        """
        batch, rows, shape = packed_batch(self.config, ids, segments, None)
        network = self._runnable()
        if not len(rows):
            raise BertcliError(f"ids have shape {shape}, so there are no tokens to run.")
        with np.errstate(all="ignore"):
            found = outputs(network, batch)
        mlm = None if found.mlm is None else found.mlm.reshape(*shape, -1)
        return found._replace(hidden=found.hidden.reshape(*shape, -1), mlm=mlm)

    def encode(
        self,
        texts: Iterable[str],
        pairs: Iterable[str | None] | str | None = None,
        pooling: str = "auto",
        layer: int | Sequence[int] = -1,
        normalize: bool | None = None,
        max_length: int | None = None,
        batch_tokens: int | None = None,
        workers: int | None = None,
        truncation: Truncation = "warn",
    ) -> Array:
        """One vector per text: float32 [text, width].

        pooling: "auto" (the checkpoint's own, else mean), "mean", "cls", "max" or "pooler". layer: 0 for the
        embeddings, N for encoder layer N, negative from the end; several are concatenated. normalize: to length 1;
        None for what the checkpoint says. truncation of more than `max_length` tokens: "warn", "silent", "error".
        batch_tokens: computed together; workers: processes that share the texts. Neither changes a result.
        """
        from bertcli.tasks import encode  # imported late: counting and tracing need not wait for tasks

        how = {"pooling": pooling, "layer": layer, "normalize": normalize, "truncation": truncation}
        return encode(self, texts, pairs, **how, max_length=max_length, batch_tokens=batch_tokens, workers=workers)

    def encode_blocks(
        self, texts: Iterable[str], pairs: Iterable[str | None] | str | None = None, **options: Any
    ) -> Stream:
        """The same as a stream of blocks in input order, so that nothing has to fit in memory.

        A block has `items`, `vectors` and `records()`; see `bertcli.tasks.encode_blocks` for pooling "none" and others.
        """
        from bertcli.tasks import encode_blocks

        return encode_blocks(self, texts, pairs, **options)

    def classify(
        self,
        texts: Iterable[str],
        pairs: Iterable[str | None] | str | None = None,
        top_k: int | None = None,
        **options: Any,
    ) -> list[dict[str, Any]]:
        """Records {index, text, text_pair, truncated, labels: [{label, score}, …]}, best label first."""
        from bertcli.tasks import classify

        return list(classify(self, texts, pairs, top_k=top_k, **options))

    def fill_mask(
        self, texts: Iterable[str], top_k: int | None = None, targets: Sequence[str] | None = None, **options: Any
    ) -> list[dict[str, Any]]:
        """Records {index, text, truncated, masks: [{position, predictions: [{score, token, token_str, …}, …]}, …]}."""
        from bertcli.tasks import fill_mask

        return list(fill_mask(self, texts, top_k=top_k, targets=targets, **options))

    def score(self, texts: Iterable[str], **options: Any) -> list[dict[str, Any]]:
        """Records {index, text, truncated, tokens: [{token, log_prob}, …], loss, pseudo_perplexity}."""
        from bertcli.tasks import score

        return list(score(self, texts, **options))

    def _runnable(self) -> Bert | Textbook:
        if not self.has_weights and not watched():
            raise BertcliError(f"'{self.name}' has no weights, so it cannot be run; trace it, or load a checkpoint.")
        return self.network

    def _folder(self) -> Path:
        if self.path is None:
            raise BertcliError(f"'{self.name}' is a variant without a tokenizer; load a checkpoint to work on text.")
        return self.path

    def __reduce__(self) -> tuple[Any, ...]:
        if not self.as_stored:
            raise TypeError("a model pickles as its path, which does not work for a variant or a modified model")
        return partial(load, heads=",".join(self.heads) or "none"), (str(self.path),)


def expect_model(given: object) -> None:
    """Raise BertcliError for anything but a Model, such as a name that has not been loaded."""
    if not isinstance(given, Model):
        raise BertcliError(f"{shown_object(given)} is not a model; create one: bertcli.load(…) or bertcli.variant(…).")


def load(
    model: str | Path | None = None,
    *,
    revision: str | None = None,
    cache_dir: str | Path | None = None,
    offline: bool = False,
    progress: bool = False,
    heads: str | None = None,
    text: bool = True,
) -> Model:
    """A model from a folder or Hub id (cache first, then download); without either, the bundled sample.

    `heads` keeps only these, as in "mlm,nsp". With `text` the tokenizer, if there is one, is opened too, so that one
    that does not fit the weights is an error now, not in the middle of a run. Errors: BertcliError.
    """
    from bertcli.hub import find_model, sample

    if model is None:
        folder = sample(DEFAULT_MODEL)
    else:
        folder = find_model(str(model), revision=revision, cache_dir=cache_dir, offline=offline, progress=progress)
    opened = open_checkpoint(folder, heads)
    name = str(model or DEFAULT_MODEL)
    path, notes = folder.resolve(), tuple(opened.notes)
    found = Model(opened.config, opened.heads, opened.network, name, path, opened.uses, notes)
    object.__setattr__(found, "as_stored", True)
    if text and any((folder / file).exists() for file in TOKENIZER_FILES):
        found.tokenizer  # noqa: B018
    return found

"""An opened model: a network with its configuration, its tokenizer and its sentence settings, ready to compute.

model.py adds the tasks as methods, engines.py says which engine computes. Not here: how a folder is found
(folder/hub.py), and how it becomes a network (weights/loading.py).
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from bertcli.engine.kernels import scatter_rows
from bertcli.engine.packing import MicroBatch, Packed
from bertcli.engine.product_rules import by_library, divided_by_library
from bertcli.engine.threads import each_or_whole
from bertcli.engines import NUMPY, EngineChoice
from bertcli.errors import BertcliError, check_type, names_checked, number_of, quoted, quoted_object
from bertcli.models.config import Config
from bertcli.network import heads as network_heads
from bertcli.network.heads import OF_TOKENS, Network
from bertcli.network.module import parameters
from bertcli.tracing.dispatch import Array, Integers, is_shape_only, watched

if TYPE_CHECKING:
    from bertcli.engine.padded_batch import Padded
    from bertcli.folder.files import Folder
    from bertcli.folder.layout import Layout
    from bertcli.kinds.kind import Kind
    from bertcli.kinds.pair_scores import PairScores
    from bertcli.network.after_pooling import Dense, LayerNorm
    from bertcli.tokens import Tokenizer
    from bertcli.weights.loading import TensorUse

logger = logging.getLogger("bertcli")


class OtherEngine(Protocol):
    """Computes the hidden states of one network instead of NumPy: what `open_engine` of an engine's module makes."""

    @property
    def network(self) -> Network:
        """The network whose hidden states it computes."""

    @property
    def precision(self) -> str:
        """The type of numbers that it multiplies: float32, int8."""

    def hidden_states(self, batch: Packed) -> Array:
        """Hidden states of the last layer [token, hidden] of packed sentences."""

    def exact_enough(self, model: "LoadedModel") -> Self:
        """Return an engine whose vectors are near NumPy's on the model's own tokens: this one, if it always is.

        Errors: BertcliError for vectors too far from them, unless `model.engine.force` is set.
        """


class Original(NamedTuple):
    """The parts of a model as read from its folder; `as_stored` compares them to find changes."""

    config: Config
    heads: tuple[str, ...]
    network: Network
    name: str


@dataclass(frozen=True, eq=False, repr=False)
class LoadedModel:
    """A network with its configuration, its tokenizer and the layout of its folder; `Model` adds the tasks' methods.

    Safe to share between threads. Pickles as its path, not its weights. Errors: BertcliError for a missing tokenizer.
    """

    config: Config
    heads: tuple[str, ...]
    network: Network
    name: str
    # Its paths are absolute: some files are read only when first needed.
    layout: "Layout | None" = None
    tensor_uses: "tuple[TensorUse, ...]" = ()
    notes: tuple[str, ...] = ()
    has_weights: bool = True
    engine: EngineChoice = NUMPY
    other_engine: OtherEngine | None = None  # computes hidden states of `original.network`
    original: Original | None = None
    # That of the folder, if it is open already. A changed copy of a model keeps it, or has another.
    opened_tokenizer: "Tokenizer | None" = None
    opened_kind: "Kind | None" = None  # likewise

    def __repr__(self) -> str:
        config = self.config
        layers = number_of(config.num_hidden_layers, "layer")
        computes = self.engine.name if self.has_weights else "no weights"
        family = config.title.removeprefix("a ")
        return f"{type(self).__name__}({self.name!r}, {family}, {layers} × {config.hidden_size}, {computes})"

    @classmethod
    @names_checked
    def load(
        cls,
        model: str | Path | None = None,
        *,
        revision: str | None = None,
        cache_dir: str | Path | None = None,
        offline: bool = False,
        progress: bool = False,
        heads: str | None = None,
        text: bool = True,
        engine: str = "numpy",
        device: str = "cpu",
        adapter: str | Path | None = None,
        force: bool = False,
        prompt_name: str | None = None,
    ) -> Self:
        """Load a model from a folder or Hub id (cache first, then download); without either, the bundled sample.

            revision     a branch, tag or commit on the Hub (default: main)
            heads        keep only these prediction heads, as in "mlm,nsp" (default: all that are stored)
            text         open the tokenizer at once, so that one that does not fit the weights is an error now
            engine       "numpy"; "onnx": ONNX Runtime runs the encoder; "onnx-int8": in int8, which is less exact
            device       of ONNX Runtime: one that `bertcli doctor` lists
            force        accept int8 even if its vectors are far from float32's
            adapter      the folder or Hub id of a LoRA adapter to apply to the model
            prompt_name  without an adapter, the name of a prompt that chooses one of those in the folder, such as
                         "retrieval.query"

        Errors: BertcliError.
        """
        from bertcli.folder.hub import Source  # late: a variant has no files

        check_type("heads", heads, Iterable)
        choice = EngineChoice(engine, device, force)
        choice.check()
        source = Source(model, revision, adapter, prompt_name, cache_dir, offline, progress)
        folder = source.find()
        return cls.open(folder, source.name, heads=heads, engine=choice, text=text)

    @classmethod
    @names_checked
    def variant(
        cls,
        name: str = "base",
        *,
        config: str | Path | Config | None = None,
        heads: str | Iterable[str] | None = None,
        vocab_size: int | None = None,
        num_labels: int | None = None,
        sizes: Mapping[str, int] | None = None,
        weights: Mapping[str, ArrayLike] | int | None = None,
    ) -> Self:
        """Make a model from a variant's name or a config.json; without `weights` it can be counted and traced, not run.

            config       the path of a config.json, or a configuration such as BertConfig, instead of a name
            heads        a list of the family's heads, or "mlm,nsp", or "none" (default: those of the classes that
                         config.json names, else the pooler)
            vocab_size, num_labels   override the configuration's
            sizes        override any others, by their keys in config.json
            weights      arrays by the paths that `bertcli.params` lists, or a seed for random ones

        Errors: BertcliError for an unknown name or head, an impossible configuration, and weights of wrong shapes or
        paths.
        """
        from bertcli.variants import build_variant  # late: a checkpoint does not need it

        built = build_variant(name, config, heads, vocab_size, num_labels, sizes, weights)
        return cls(*built, has_weights=weights is not None)

    @classmethod
    def open(
        cls,
        folder: "Folder",
        name: str,
        *,
        heads: str | None = None,
        engine: EngineChoice = NUMPY,
        text: bool = True,
    ) -> Self:
        """Open a checkpoint's folder; `heads` keeps only these, and `text` also opens the tokenizer, if there is one.

        Errors: BertcliError for whatever is wrong with the files, and a classifier that was made for another model.
        """
        from bertcli.engine.memory import keep_memory
        from bertcli.folder.layout import Layout
        from bertcli.weights.loading import open_checkpoint  # late: a variant has no files

        layout = Layout(folder)
        checkpoint = open_checkpoint(layout, heads)
        keep_memory()
        config, network = checkpoint.config, checkpoint.network
        reads_text = text and layout.has_tokenizer
        # Some files are read only when they are needed, which may be in another working directory.
        layout = Layout(folder.resolved())
        # Now, so that an error in it does not interrupt a run.
        tokenizer = _open_tokenizer(layout, config) if reads_text else None
        original = Original(config, checkpoint.heads, network, name)
        opened = cls(
            *original,
            layout=layout,
            tensor_uses=checkpoint.tensor_uses,
            notes=tuple(checkpoint.notes),
            engine=engine,
            original=original,
            opened_tokenizer=tokenizer,
        )
        if folder.classifier is not None:
            opened = opened._with_own_labels()
        return opened if engine.name == "numpy" else opened._with_engine()

    def _with_engine(self) -> Self:
        """Have hidden states computed by the engine. Errors: BertcliError for one that cannot be used."""
        assert self.path is not None
        open_engine = self.engine.opener()
        other: OtherEngine = open_engine(self.engine.name, self.network, self.path, self.config, self.engine.device)
        computed = replace(self, other_engine=other)
        if self.opened_tokenizer is None:
            return computed
        return replace(computed, other_engine=other.exact_enough(computed))

    def _with_own_labels(self) -> Self:
        """Take over the labels that were given with the model. Errors: BertcliError if they are for another."""
        own = self.kind.own_labels(self)
        labelled = replace(
            self.config,
            num_labels=len(own.labels),
            id2label=dict(enumerate(own.labels)),
            problem_type=own.problem_type,
        )
        heads = tuple(dict.fromkeys([*self.heads, own.head]))
        # The head in whose place they are would give its own scores these names.
        network = replace(self.network, **{own.head: None}) if own.head in self.network.heads else self.network
        return replace(
            self,
            config=labelled,
            heads=heads,
            network=network,
            notes=(*self.notes, *own.notes),
            original=Original(labelled, heads, network, self.name),
            opened_tokenizer=self.tokenizer,
            opened_kind=self.kind,
        )

    # ------------------------------------------------------------------------------------------------- what it computes

    @names_checked
    def forward(self, ids: ArrayLike, segments: ArrayLike | None = None, mask: ArrayLike | None = None) -> Array:
        """Hidden states of the last layer: int [batch, token] -> float32 [batch, token, hidden].

        `mask` is 1 for tokens to attend to (default: all); rows where it is 0 are returned as zeros.
        """
        batch, rows, shape = self.padded(ids, segments, mask)
        states = np.zeros((*shape, self.config.hidden_size), dtype=np.float32)

        def run(part: MicroBatch) -> None:
            hidden = self.hidden_states(part.batch)
            if not is_shape_only(hidden):  # a model without weights has no numbers to copy
                scatter_rows(hidden, states.reshape(-1, self.config.hidden_size), rows[part.rows])

        # Another engine divides the work among its own threads, and a watcher must see one pass.
        divided = self.other_engine is None and not watched()
        library = divided and divided_by_library(len(rows))
        parts = batch.micro_batches() if divided and not library else [MicroBatch(batch, slice(len(rows)))]
        # Damaged weights show in the result; callers who care check it.
        with np.errstate(all="ignore"), by_library(library):
            each_or_whole(run, parts if len(rows) else [])
        return states

    @names_checked
    def outputs(self, ids: ArrayLike, segments: ArrayLike | None = None) -> dict[str, Array]:
        """Run a whole pass with every head, as `bertcli trace` shows it; `forward` runs only the encoder.

        "hidden", "pooled" if there is a pooler, and the logits of each other head by its name. Hidden states and the
        logits of heads that read every token are [batch, token, …].
        """
        batch, rows, shape = self.padded(ids, segments, None)
        if not len(rows):
            raise BertcliError(f"ids have shape {shape}, so there are no tokens to run.")
        with np.errstate(all="ignore"):
            flat = network_heads.outputs(self.network, batch)
        of_tokens = {"hidden", *OF_TOKENS}
        return {name: x.reshape(*shape, -1) if name in of_tokens else x for name, x in flat.items()}

    def hidden_states(self, batch: Packed, rows: Integers | None = None) -> Array:
        """Hidden states of the last layer [token, hidden], or only some `rows` (ascending), from the engine.

        NumPy computes a watched pass, and a network that has replaced the checkpoint's, which no other engine knows.
        """
        other = self.other_engine
        if other is None or watched() or self.network is not other.network:
            return self.network(batch, rows)
        hidden = other.hidden_states(batch)
        return hidden if rows is None else hidden[rows]

    def padded(self, ids: ArrayLike, segments: ArrayLike | None, mask: ArrayLike | None) -> "Padded":
        """Check and pack a padded batch. Errors: BertcliError."""
        if not self.has_weights and not watched():
            raise BertcliError(f"'{self.name}' has no weights, so it cannot be run; trace it, or load a checkpoint.")
        from bertcli.engine.padded_batch import Padded  # late: the tasks pack their batches themselves

        config = self.config
        return Padded.of(ids, segments, mask, config.max_tokens, config.vocab_size, config.segment_count)

    # -------------------------------------------------------------------------------------------------------- its parts

    @cached_property
    def tokenizer(self) -> "Tokenizer":
        """The checkpoint's tokenizer, opened on first use."""
        if self.opened_tokenizer is not None:
            return self.opened_tokenizer
        if self.layout is None:
            raise BertcliError(f"'{self.name}' is a variant without a tokenizer; load a checkpoint to work on text.")
        return _open_tokenizer(self.layout, self.config)

    @cached_property
    def kind(self) -> "Kind":
        """What the model gives, with its sentence settings (pooling, normalization, prompts); a variant has none."""
        if self.opened_kind is not None:
            return self.opened_kind
        if self.layout is None:
            from bertcli.kinds.kind import Kind

            return Kind()
        from bertcli.kinds.read import read_kind

        return read_kind(self.layout)

    @property
    def readable_kind(self) -> "Kind":
        """What the model gives; what any network gives, where bertcli refuses the folder's settings for vectors."""
        from bertcli.kinds.kind import Kind

        try:
            return self.kind
        except BertcliError:
            return Kind()

    @cached_property
    def pair_scores(self) -> "PairScores | None":
        """The steps from a pair's hidden states to its logits; None if the classification head has them."""
        return self.kind.pair_scores(self)

    def layers_after(self) -> "Mapping[str, Dense | LayerNorm]":
        """The folder's layers after the network, by path; none, with a log line, if bertcli refuses one."""
        try:
            return self.kind.layers
        except BertcliError as error:  # encode and rank refuse such modules; the network is whole without them
            logger.info("%s: what comes after the network does not run: %s", self.name, error)
            return {}

    def note_layers_after(self, verb: str) -> None:
        """Log that a folder's layers after the network are not `verb` ("compared"): a pass ends before them."""
        if layers := self.layers_after():
            count = sum(weights.array.size for layer in layers.values() for weights in parameters(layer))
            logger.info("%s: the layers after the network (%s parameters) are not %s.", self.name, f"{count:,}", verb)

    @property
    def folder(self) -> "Folder | None":
        """The folder that the model was loaded from; None for a variant."""
        return None if self.layout is None else self.layout.folder

    @property
    def path(self) -> Path | None:
        """The folder's absolute path."""
        return None if self.folder is None else self.folder.path

    @property
    def files_read(self) -> list[Path]:
        """The files of the network and the sentence settings, and any others that were read so far."""
        if self.folder is None:
            return []
        _ = self.kind  # reads the sentence settings and the weights of Dense layers, if nothing has yet
        return self.folder.files_read

    # ----------------------------------------------------------------------------------------- the same model otherwise

    def called(self, name: str) -> Self:
        """Return the model under another name, by which messages and pages call it, as a server's clients do."""
        original = None if self.original is None else self.original._replace(name=name)
        return replace(self, name=name, original=original)

    def for_prompt(self, name: str | None) -> Self:
        """Return the model with the adapter or the route that a prompt's name chooses; mostly it is this model.

        A folder may have an adapter for each task ("retrieval.query"), a Router a network for queries.
        Another one is opened when it is first asked for. Errors: BertcliError, too, for a model that was changed.
        """
        folder = None if self.layout is None else self.layout.for_prompt(name)
        if folder is None:
            return self
        if not self.as_stored:
            raise BertcliError(
                f"'{self.name}' is not as bertcli.load() opened it, so it has no other adapter and no other route: "
                f"give another name of a prompt than {quoted(name)}."
            )
        # An adapter's folder is the last of those that are read.
        chosen = (folder.route, folder.paths[-1])
        if chosen not in self._other_ways:
            if folder.adapter is not None:
                logger.info("the prompt's name %s chooses the adapter %s.", quoted(name), folder.adapter.path.name)
            self._other_ways[chosen] = type(self).open(folder, self.name, engine=self.engine)
        return self._other_ways[chosen]

    @cached_property
    def _other_ways(self) -> dict[tuple[str, Path], Self]:
        """The models with another route or another task's adapter, by the route and the adapter's folder."""
        return {}

    @property
    def as_stored(self) -> bool:
        """True if opening `path` gives the same model again: false for a variant, and for a modified model."""
        original = self.original
        return (
            original is not None
            and self.config is original.config
            and self.heads is original.heads
            and self.network is original.network
            and self.name is original.name
        )

    def __reduce__(self) -> tuple[Any, ...]:
        if not self.as_stored:
            raise TypeError("a model pickles as its path, which does not work for a variant or a modified model")
        loaded = [head for head in self.heads if getattr(self.network, head, None) is not None]
        heads = ",".join(loaded) or "none"
        opening = partial(type(self).open, heads=heads, engine=self.engine)
        return opening, (self.folder, self.name)


def _open_tokenizer(layout: "Layout", config: Config) -> "Tokenizer":
    from bertcli.tokens import Tokenizer  # only commands that read text import the tokenizers package

    return Tokenizer.open(layout, config)


def expect_model(value: object) -> None:
    """Raise BertcliError if the value is no model, such as the name of one."""
    if not isinstance(value, LoadedModel):
        raise BertcliError(f"{quoted_object(value)} is not a model; create one: bertcli.load(…) or bertcli.variant(…).")

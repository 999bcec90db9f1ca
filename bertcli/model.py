"""A model to work with: from a folder or Hub id (`load`), or without weights from a variant's name (`variant`)."""

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from bertcli.engine.seam import Array, shape_only
from bertcli.errors import PATH, BertcliError, check_choice, check_count, check_kind, shown, shown_object
from bertcli.files.texts import Values, from_values
from bertcli.models.config import Config, renamed
from bertcli.models.registry import family, named_heads, parse_heads, variant_config
from bertcli.network.module import Request, build
from bertcli.opened import Engine, EngineName, Opened, Precision
from bertcli.tasks.answer import AnswerOptions
from bertcli.tasks.classify import ClassifyOptions
from bertcli.tasks.encode import EncodeOptions
from bertcli.tasks.encode_sparse import EncodeSparseOptions
from bertcli.tasks.fill_mask import FillMaskOptions
from bertcli.tasks.options import Reading
from bertcli.tasks.rank import RankOptions
from bertcli.tasks.registry import compute, page_of
from bertcli.tasks.score import ScoreOptions
from bertcli.tasks.tag import TagOptions

if TYPE_CHECKING:
    from bertcli.tasks.compute.encode import Block
    from bertcli.tasks.compute.sparse_vectors import SparseVector
    from bertcli.tasks.compute.task import Record

DEFAULT_MODEL = "bert-mini-mlm"


P = ParamSpec("P")
M = TypeVar("M")
T = TypeVar("T")
W = TypeVar("W")
R = TypeVar("R")


def takes(options: Callable[P, W]) -> Callable[[Callable[[M, T, W], R]], Callable[Concatenate[M, T, P], R]]:
    """A method of texts and a task's options, as one that takes these options by name."""

    def decorate(method: Callable[[M, T, W], R]) -> Callable[Concatenate[M, T, P], R]:
        own, of_options = signature(method), signature(options).parameters.values()
        leading = list(own.parameters.values())[:2]
        whole = own.replace(parameters=[*leading, *of_options])
        make: Callable[..., W] = options

        @wraps(method)
        def taking(*values: Any, **named: Any) -> R:
            arguments = whole.bind(*values, **named).arguments
            model, texts = (arguments.pop(parameter.name) for parameter in leading)
            return method(model, texts, make(**arguments))

        taking.__signature__ = whole  # type: ignore[attr-defined]  # what help() and notebooks show
        return taking

    return decorate


@dataclass(frozen=True, eq=False)
class Model(Opened):
    """An opened model with the tasks as methods, whose keywords are the options in `bertcli.tasks`.

    Errors: BertcliError for a missing head (encode needs none) or an unusable text.
    """

    @takes(EncodeOptions)
    def encode(self, texts: Values, wanted: EncodeOptions) -> Array:
        """One vector per text: float32 [text, width]. With `chunk` a longer text has several, one after the other.

        Errors: BertcliError for pooling "none" and keep_going, which need `encode_blocks`, too.
        """
        from bertcli.tasks.compute.encode import encode

        return encode(self, texts, wanted)

    @takes(EncodeOptions)
    def encode_blocks(self, texts: Values, wanted: EncodeOptions) -> "Generator[Block, None, None]":
        """The same as a stream of blocks in input order, so that nothing has to fit in memory.

        A block has `items`, which say what each vector is of, `vectors`, `failures` and `records()`.
        """
        return self._results(texts, wanted)

    @takes(EncodeSparseOptions)
    def encode_sparse(self, texts: Values, wanted: EncodeSparseOptions) -> "list[SparseVector]":
        """SPLADE: of each text the entries of the vocabulary whose weight is not 0, as (indices, values)."""
        return [vector for block in self._results(texts, wanted) for vector in block.vectors]

    @takes(ClassifyOptions)
    def classify(self, texts: Values, wanted: ClassifyOptions) -> "list[Record]":
        """Records {index, text, text_pair, truncated, labels: [{label, score}, …]}, best label first.

        The record of a text whose true label is given also has `true_label`. The head is "classifier" if there is one,
        else "nsp", whose labels are is_next and not_next and which needs pairs. Activations by default: softmax;
        sigmoid for a multi-label or single-label classifier; none for regression; a cross-encoder's own.
        """
        return self._records(texts, wanted)

    @takes(FillMaskOptions)
    def fill_mask(self, texts: Values, wanted: FillMaskOptions) -> "list[Record]":
        """Records {index, text, truncated, masks: [{position, predictions: [{score, token, token_str, …}, …]}, …]}.

        The `top_k` most probable pieces for every mask, independently. A target of several pieces is scored as a whole,
        with `pieces` and a list for `token`. With `joint` the masks of a text are filled together: prediction k of
        every mask belongs to the k-th best filling, and has its score; `top_k` is then 250 at most.
        """
        return self._records(texts, wanted)

    @takes(ScoreOptions)
    def score(self, texts: Values, wanted: ScoreOptions) -> "list[Record]":
        """Records {index, text, truncated, tokens: [{token, log_prob}, …], loss, pseudo_perplexity}.

        For a text without tokens: [], None and None. Each token except [CLS] and [SEP] is masked in a pass of its own.
        With `target`, the true sentence, only the masks in the text are predicted, all in one pass: the training loss
        of a masked language model.
        """
        return self._records(texts, wanted)

    @takes(TagOptions)
    def tag(self, texts: Values, wanted: TagOptions) -> "list[Record]":
        """Records {index, text, truncated, entities: [{entity_group, score, word, start, end}, …]}.

        start and end count characters of the text; with aggregation "none" every piece is {entity, score, index, word,
        start, end}, and index counts special tokens, too. A text of more than `max_length` tokens is read in windows,
        of which `stride` tokens overlap; of entities that overlap the longer, then the likelier one is kept.
        """
        return self._records(texts, wanted)

    @takes(AnswerOptions)
    def answer(self, questions: Values, wanted: AnswerOptions) -> "list[Record]":
        """Records {index, question, context, answers: [{score, start, end, answer}, …]}, best answer first.

        start and end count characters of the context, which is read in windows, as in `tag`, and never cut.
        """
        return self._records(questions, wanted)

    @takes(RankOptions)
    def rank(self, query: str | Iterable[str], wanted: RankOptions) -> "list[Record]":
        """Records {query, corpus_id, score, text}, best first; corpus_id is the number of the document.

        query: one for all documents; or as many as documents, where those of a query stand together and are ranked
        among each other. The activation is the checkpoint's own, else the sigmoid.
        """
        from bertcli.tasks.compute.rank import pairs_of

        return self._records(pairs_of(query, wanted.documents), wanted)

    def _records(self, texts: Values, wanted: Reading) -> "list[Record]":
        return [record for block in self._results(texts, wanted) for record in block.records]

    def _results(self, texts: Values, wanted: Reading) -> Generator[Any, None, None]:
        """What the work of the options' page makes of the texts."""
        from bertcli.tasks.compute.run import results

        page = page_of(wanted)
        second = getattr(wanted, page.reads.second) if page.reads.second else None
        return results(compute(page).plan(self, wanted), from_values(texts, second))


def expect_model(value: object) -> None:
    """Raise BertcliError for anything but a Model, such as a name that has not been loaded."""
    if not isinstance(value, Model):
        raise BertcliError(f"{shown_object(value)} is not a model; create one: bertcli.load(…) or bertcli.variant(…).")


def load(
    model: str | Path | None = None,
    *,
    revision: str | None = None,
    cache_dir: str | Path | None = None,
    offline: bool = False,
    progress: bool = False,
    heads: str | None = None,
    text: bool = True,
    engine: EngineName = "numpy",
    precision: Precision = "float32",
    device: str = "cpu",
) -> Model:
    """A model from a folder or Hub id (cache first, then download); without either, the bundled sample.

    `heads` keeps only these, as in "mlm,nsp". With `text` the tokenizer, if there is one, is opened too, so that one
    that does not fit the weights is an error now, not in the middle of a run. With engine "onnx", ONNX Runtime runs the
    encoder, in float32 or with int8 matrices, on a device of `bertcli doctor`'s list. Errors: BertcliError.
    """
    from bertcli.checkpoint.folder import Folder
    from bertcli.checkpoint.hub import find_model, sample

    check_kind("heads", heads, Iterable)
    check_choice("engine", engine, EngineName)
    check_choice("precision", precision, Precision)
    if engine == "numpy" and (precision, device) != ("float32", "cpu"):
        raise BertcliError("NumPy computes in float32 on the processor: for others use ONNX Runtime (--engine onnx).")
    if model is None:
        folder = Folder(sample(DEFAULT_MODEL))
    else:
        folder = find_model(str(model), revision=revision, cache_dir=cache_dir, offline=offline, progress=progress)
    name = str(model or DEFAULT_MODEL)
    return Model.at(folder, name, heads=heads, engine=Engine(engine, precision, device), text=text)


def variant(
    name: str = "base",
    *,
    config: str | Path | Config | None = None,
    heads: str | Iterable[str] | None = None,
    vocab_size: int | None = None,
    num_labels: int | None = None,
    sizes: Mapping[str, int] | None = None,
    weights: Mapping[str, ArrayLike] | int | None = None,
) -> Model:
    """A model from a variant's name or a config.json; without `weights` it can be counted and traced, but not run.

    config: the path of a config.json, or a configuration such as BertConfig, instead of a name. heads: any that
    models of the family have, as a list or as "mlm,nsp"; or "none" (default: those of the classes that config.json
    names, else the pooler). vocab_size, num_labels: override the configuration's; sizes: any others, by their keys in
    config.json. weights: a mapping from the paths that `bertcli.params` lists to arrays, or a seed for random ones.
    Errors: BertcliError for an unknown name or head, an impossible configuration, and weights of wrong shapes or paths.
    """
    check_kind("name", name, str)
    check_kind("heads", heads, Iterable)
    check_kind("sizes", sizes, Mapping)
    if config is None:
        settings = variant_config(name)
    elif isinstance(config, Config):
        settings, name = config, config.model_type
    else:
        check_kind("config", config, PATH)
        file = Path(config) / "config.json" if Path(config).is_dir() else Path(config)
        if not file.exists():
            raise BertcliError(f"{file} is missing: give the path of an existing config.json.")
        from bertcli.checkpoint.loading import read_config

        settings, name = read_config(file), str(config)
    changed: dict[str, Any] = renamed(sizes or {}, settings.names)
    counted = [item.name for item in fields(settings) if isinstance(getattr(settings, item.name), int)]
    for key in changed:
        if key not in counted:
            kind = settings.model_type
            keys = ", ".join(map(settings.key, counted))
            raise BertcliError(f"{shown(settings.key(key))} is no size of a {kind} model: choose from {keys}.")
    if vocab_size is not None:
        changed["vocab_size"] = vocab_size
    if num_labels is not None:
        changed |= {"num_labels": num_labels, "id2label": {}}
    settings = replace(settings, **changed)
    source = MadeWeights(weights)
    member = family(settings.model_type)
    if heads is None:
        has_pooler = member.base_pooler and "pooler" in member.head_names
        heads = named_heads(settings, member) or (["pooler"] if has_pooler else [])
    chosen = parse_heads(heads if isinstance(heads, str) else tuple(heads), member)
    network = build(member.network, settings, source, chosen)
    source.check_used()
    return Model(settings, chosen, network, name, has_weights=weights is not None)


class MadeWeights:
    """The source of arrays for `build`: without `weights` shapes that need no memory, with a seed random numbers.

    Else those of a mapping from path to array; a tied one that is not given is the one that it is tied to.
    """

    def __init__(self, weights: Mapping[str, ArrayLike] | int | None) -> None:
        if not isinstance(weights, Mapping):
            check_count("The seed (weights)", weights, least=0)
        self.weights = weights
        self.made: dict[str, Array] = {}
        self._random = np.random.default_rng(weights) if isinstance(weights, int | np.integer) else None

    def __call__(self, request: Request) -> Array:
        has_own = isinstance(self.weights, Mapping) and request.path in self.weights
        array = self.made[request.tied] if request.tied and not has_own else self._make(request)
        array.flags.writeable = False
        self.made[request.path] = array
        return array

    def check_used(self) -> None:
        """Raise BertcliError for a path in the mapping that the network has not asked for."""
        for path in self.weights if isinstance(self.weights, Mapping) else ():
            if path not in self.made:
                raise BertcliError(
                    f"The weights have {shown(path)}, which this model does not have: see bertcli.params."
                )

    def _make(self, request: Request) -> Array:
        if self._random is not None:
            return self._random.normal(0, 0.02, request.shape).astype(np.float32)
        if not isinstance(self.weights, Mapping):
            return shape_only(request.shape)
        if request.path not in self.weights:
            raise BertcliError(f"The weights lack '{request.path}' of shape {request.shape}.")
        array = np.array(self.weights[request.path], dtype=np.float32)
        if array.shape != request.shape:
            raise BertcliError(f"The weight '{request.path}' has shape {array.shape}; it should be {request.shape}.")
        return array

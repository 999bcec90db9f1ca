"""The names of the package for type checkers and editors, made by tests/helpers/stubs.py: do not edit."""

from bertcli import functional as functional
from bertcli._version import __version__ as __version__
from bertcli.analysis.params import params as params
from bertcli.analysis.trace import trace as trace
from bertcli.errors import BertcliError as BertcliError
from bertcli.files.texts import Pairs, Value, Values
from bertcli.kinds.sparse_vectors import SparseVector
from bertcli.loaded_model import LoadedModel
from bertcli.model import Model as OpenedModel
from bertcli.models.bert import BertConfig as BertConfig
from bertcli.tasks.compute.encode import Block
from bertcli.tasks.limits import DoorLimits
from bertcli.tracing.dispatch import Array
from bertcli.wings.evaluate.evaluation import Evaluation
from bertcli.wings.interpret.compute.diff import Diff, Weights
from bertcli.wings.interpret.compute.explain import Explanation
from bertcli.wings.interpret.compute.heads import Heads
from bertcli.wings.interpret.compute.lens import Lens
from bertcli.wings.interpret.compute.patch_result import Patch
from bertcli.wings.interpret.compute.probe_result import Probe
from bertcli.wings.onnx.export import Exported
from collections.abc import Generator, Iterable, Mapping, Sequence
from numpy import dtype, ndarray
from pathlib import Path
from typing import Any, Literal, overload

__all__ = [
    "BertConfig",
    "BertcliError",
    "Model",
    "__version__",
    "diff",
    "evaluate",
    "explain",
    "functional",
    "heads",
    "lens",
    "load",
    "params",
    "patch",
    "probe",
    "search",
    "search_files",
    "trace",
    "variant",
]

class Model(OpenedModel):
    """An opened model with a method for every task, whose keywords are the options in `bertcli.tasks`."""

    @overload
    def answer(  # type: ignore[overload-overlap]
        self: Model,
        questions: Value,
        contexts: Pairs = None,
        top_k: int | None = None,
        max_answer_length: int | None = None,
        no_answer: bool = False,
        score: Literal["probability", "logits"] = "probability",
        *,
        max_length: int | None = None,
        keep_going: bool = False,
        batch_tokens: int | None = None,
        workers: int | Literal["auto"] | None = None,
        stride: int | None = None,
    ) -> dict[str, Any]:
        """Records {index, question, context, answers: [{score, start, end, answer}, …]}, best answer first."""
    @overload
    def answer(
        self: Model,
        questions: Values,
        contexts: Pairs = None,
        top_k: int | None = None,
        max_answer_length: int | None = None,
        no_answer: bool = False,
        score: Literal["probability", "logits"] = "probability",
        *,
        max_length: int | None = None,
        keep_going: bool = False,
        batch_tokens: int | None = None,
        workers: int | Literal["auto"] | None = None,
        stride: int | None = None,
    ) -> list[dict[str, Any]]:
        """Records {index, question, context, answers: [{score, start, end, answer}, …]}, best answer first."""

    @overload
    def classify(  # type: ignore[overload-overlap]
        self: Model,
        texts: Value,
        pairs: Pairs = None,
        top_k: int | None = None,
        head: Literal["classifier", "nsp"] | None = None,
        activation: Literal["softmax", "sigmoid", "none"] | None = None,
        candidates: Iterable[str] | str | None = None,
        template: str | None = None,
        multi_label: bool = False,
        choices: Iterable[str] | None = None,
        *,
        max_length: int | None = None,
        truncation: Literal["warn", "error", "silent"] = "warn",
        keep_going: bool = False,
        batch_tokens: int | None = None,
        workers: int | Literal["auto"] | None = None,
    ) -> dict[str, Any]:
        """Records {index, text, text_pair, truncated, labels: [{label, score}, …]}, best label first."""
    @overload
    def classify(
        self: Model,
        texts: Values,
        pairs: Pairs = None,
        top_k: int | None = None,
        head: Literal["classifier", "nsp"] | None = None,
        activation: Literal["softmax", "sigmoid", "none"] | None = None,
        candidates: Iterable[str] | str | None = None,
        template: str | None = None,
        multi_label: bool = False,
        choices: Iterable[str] | None = None,
        *,
        max_length: int | None = None,
        truncation: Literal["warn", "error", "silent"] = "warn",
        keep_going: bool = False,
        batch_tokens: int | None = None,
        workers: int | Literal["auto"] | None = None,
    ) -> list[dict[str, Any]]:
        """Records {index, text, text_pair, truncated, labels: [{label, score}, …]}, best label first."""

    def encode(
        self,
        texts: Values,
        pairs: Pairs = None,
        pooling: Literal["auto", "mean", "cls", "max", "lasttoken", "pooler", "none"] | None = "auto",
        layer: int | Sequence[int] = -1,
        normalize: bool | None = None,
        *,
        max_length: int | None = None,
        truncation: Literal["warn", "error", "silent"] = "warn",
        keep_going: bool = False,
        batch_tokens: int | None = None,
        workers: int | Literal["auto"] | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        chunk: int | Sequence[int] | None = None,
        truncate_dim: int | None = None,
    ) -> Array:
        """One vector per text: float32 [text, width]; [width] for one text that is no list."""

    def encode_blocks(
        self,
        texts: Values,
        pairs: Pairs = None,
        pooling: Literal["auto", "mean", "cls", "max", "lasttoken", "pooler", "none"] | None = "auto",
        layer: int | Sequence[int] = -1,
        normalize: bool | None = None,
        *,
        max_length: int | None = None,
        truncation: Literal["warn", "error", "silent"] = "warn",
        keep_going: bool = False,
        batch_tokens: int | None = None,
        workers: int | Literal["auto"] | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        chunk: int | Sequence[int] | None = None,
        truncate_dim: int | None = None,
        sparse: bool = False,
        words: bool = False,
    ) -> Generator[Block, None, None]:
        """Encode texts as a stream of blocks in input order, so that nothing has to fit in memory."""

    @overload
    def encode_sparse(  # type: ignore[overload-overlap]
        self,
        texts: Value,
        pairs: Pairs = None,
        *,
        max_length: int | None = None,
        truncation: Literal["warn", "error", "silent"] = "warn",
        keep_going: bool = False,
        batch_tokens: int | None = None,
        workers: int | Literal["auto"] | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        chunk: int | Sequence[int] | None = None,
        words: bool = False,
    ) -> SparseVector:
        """Encode each text as a sparse vector (SPLADE): (indices, values) of the vocabulary entries other than 0."""
    @overload
    def encode_sparse(
        self,
        texts: Values,
        pairs: Pairs = None,
        *,
        max_length: int | None = None,
        truncation: Literal["warn", "error", "silent"] = "warn",
        keep_going: bool = False,
        batch_tokens: int | None = None,
        workers: int | Literal["auto"] | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        chunk: int | Sequence[int] | None = None,
        words: bool = False,
    ) -> list[SparseVector]:
        """Encode each text as a sparse vector (SPLADE): (indices, values) of the vocabulary entries other than 0."""

    def export(
        model: LoadedModel,
        target: str | Path,
        *,
        head: str | None = None,
        pooling: Literal["auto", "mean", "cls", "max", "lasttoken", "pooler", "none"] | None = None,
        normalize: bool | None = None,
        opset: int = 20,
        precision: Literal["float32", "float16", "int8", "int8-stored"] = "float32",
        verify: bool | None = None,
    ) -> Exported:
        """Write an ONNX file (.onnx), or a folder that other libraries can open: the method `export` of a model."""

    @overload
    def fill_mask(  # type: ignore[overload-overlap]
        self: Model,
        texts: Value,
        top_k: int | None = None,
        targets: Iterable[str] | str | None = None,
        joint: bool = False,
        *,
        max_length: int | None = None,
        truncation: Literal["warn", "error", "silent"] = "warn",
        keep_going: bool = False,
        batch_tokens: int | None = None,
        workers: int | Literal["auto"] | None = None,
        pairs: Pairs = None,
    ) -> dict[str, Any]:
        """Records {index, text, truncated, masks: [{position, predictions: [{score, token, token_str, …}, …]}, …]}."""
    @overload
    def fill_mask(
        self: Model,
        texts: Values,
        top_k: int | None = None,
        targets: Iterable[str] | str | None = None,
        joint: bool = False,
        *,
        max_length: int | None = None,
        truncation: Literal["warn", "error", "silent"] = "warn",
        keep_going: bool = False,
        batch_tokens: int | None = None,
        workers: int | Literal["auto"] | None = None,
        pairs: Pairs = None,
    ) -> list[dict[str, Any]]:
        """Records {index, text, truncated, masks: [{position, predictions: [{score, token, token_str, …}, …]}, …]}."""

    @overload
    def keywords(  # type: ignore[overload-overlap]
        self: Model,
        texts: Value,
        *,
        max_length: int | None = None,
        keep_going: bool = False,
        batch_tokens: int | None = None,
        workers: int | Literal["auto"] | None = None,
        top_k: int = 5,
        ngrams: int | Sequence[int] = 1,
        diversity: float | None = None,
        stop_words: Iterable[str] | str = "english",
        candidates: Iterable[str] | None = None,
    ) -> dict[str, Any]:
        """Records {index, text, truncated, keywords: [{keyword, score, start, end}, …]}, best keyword first."""
    @overload
    def keywords(
        self: Model,
        texts: Values,
        *,
        max_length: int | None = None,
        keep_going: bool = False,
        batch_tokens: int | None = None,
        workers: int | Literal["auto"] | None = None,
        top_k: int = 5,
        ngrams: int | Sequence[int] = 1,
        diversity: float | None = None,
        stop_words: Iterable[str] | str = "english",
        candidates: Iterable[str] | None = None,
    ) -> list[dict[str, Any]]:
        """Records {index, text, truncated, keywords: [{keyword, score, start, end}, …]}, best keyword first."""

    def rank(
        self,
        query: str | Iterable[str],
        documents: Iterable[str] | None = None,
        top_k: int | None = None,
        *,
        max_length: int | None = None,
        truncation: Literal["warn", "error", "silent"] = "warn",
        keep_going: bool = False,
        batch_tokens: int | None = None,
        workers: int | Literal["auto"] | None = None,
    ) -> list[dict[str, Any]]:
        """Records {query, corpus_id, score, text}, best first; corpus_id is the number of the document."""

    @overload
    def score(  # type: ignore[overload-overlap]
        self: Model,
        texts: Value,
        pairs: Pairs = None,
        target: str | None = None,
        within_word: bool = False,
        *,
        max_length: int | None = None,
        truncation: Literal["warn", "error", "silent"] = "warn",
        keep_going: bool = False,
        batch_tokens: int | None = None,
        workers: int | Literal["auto"] | None = None,
    ) -> dict[str, Any]:
        """Records {index, text, truncated, tokens: [{token, log_prob}, …], loss, pseudo_perplexity}."""
    @overload
    def score(
        self: Model,
        texts: Values,
        pairs: Pairs = None,
        target: str | None = None,
        within_word: bool = False,
        *,
        max_length: int | None = None,
        truncation: Literal["warn", "error", "silent"] = "warn",
        keep_going: bool = False,
        batch_tokens: int | None = None,
        workers: int | Literal["auto"] | None = None,
    ) -> list[dict[str, Any]]:
        """Records {index, text, truncated, tokens: [{token, log_prob}, …], loss, pseudo_perplexity}."""

    @overload
    def tag(  # type: ignore[overload-overlap]
        self: Model,
        texts: Value,
        *,
        max_length: int | None = None,
        keep_going: bool = False,
        batch_tokens: int | None = None,
        workers: int | Literal["auto"] | None = None,
        stride: int | None = None,
        aggregation: Literal["none", "simple", "first", "max", "average"] = "simple",
        decode: Literal["argmax", "legal"] = "argmax",
        ignore: Iterable[str] = ...,
        labels: Iterable[str] | None = None,
        nested: bool = False,
        multi_label: bool = False,
        redact: bool = False,
        redact_with: str | None = None,
        only: Iterable[str] | None = None,
        keep_text: bool = False,
        threshold: float | None = None,
    ) -> dict[str, Any]:
        """Records {index, text, truncated, entities: [{entity_group, score, word, start, end}, …]}."""
    @overload
    def tag(
        self: Model,
        texts: Values,
        *,
        max_length: int | None = None,
        keep_going: bool = False,
        batch_tokens: int | None = None,
        workers: int | Literal["auto"] | None = None,
        stride: int | None = None,
        aggregation: Literal["none", "simple", "first", "max", "average"] = "simple",
        decode: Literal["argmax", "legal"] = "argmax",
        ignore: Iterable[str] = ...,
        labels: Iterable[str] | None = None,
        nested: bool = False,
        multi_label: bool = False,
        redact: bool = False,
        redact_with: str | None = None,
        only: Iterable[str] | None = None,
        keep_text: bool = False,
        threshold: float | None = None,
    ) -> list[dict[str, Any]]:
        """Records {index, text, truncated, entities: [{entity_group, score, word, start, end}, …]}."""

load = Model.load
variant = Model.variant

def diff(
    model: LoadedModel,
    other: LoadedModel | str | Path | Mapping[str, ndarray[tuple[Any, ...], dtype[Any]]],
    texts: str | Iterable[str] | None = None,
    *,
    tolerance: float = 0.0001,
    max_length: int | None = None,
) -> Diff | Weights:
    """Compare two models, or a model and stored arrays (by name, or a .npz or .safetensors file), on the same texts."""

def evaluate(
    data: str | Path,
    models: Model | str | Path | Iterable[Model | str | Path],
    *,
    max_length: int | None = None,
    truncation: Literal["warn", "error", "silent"] = "warn",
    keep_going: bool = False,
    batch_tokens: int | None = None,
    workers: int | Literal["auto"] | None = None,
    task: Literal["sts", "pairs", "triplets", "retrieval", "rank", "classification", "tag", "answer", "fill-mask", "score", "minimal-pairs", "bertscore"] | None = None,
    column: str | None = None,
    pair_column: str | None = None,
    label_column: str | None = None,
    no_header: bool = False,
    delimiter: str | None = None,
    rename_label: dict[str, str] | None = None,
    labels: list[str] | None = None,
    threshold: float | None = None,
    scheme: Literal["IOB1", "IOB2", "BIOES", "BILOU"] | None = None,
    split: str = "test",
    run: str | None = None,
    vectors: str | None = None,
    identical_ids: bool = False,
    by: str | None = None,
    cluster: str | None = None,
    metric: Literal["pll", "within-word", "shared"] | None = None,
    candidate_column: list[str] | None = None,
    layer: int | None = None,
    idf: bool = False,
    baseline: str | None = None,
    k: list[int] | None = None,
    truncate_dim: list[int] | None = None,
    dtype: list[str] | None = None,
    at_least: tuple[str, float] | None = None,
) -> Evaluation:
    """Evaluate models on labelled texts as `bertcli evaluate` does: `.record` has what it writes as JSON."""

@overload
def explain(  # type: ignore[overload-overlap]
    model: LoadedModel,
    texts: Value,
    pairs: Pairs = None,
    *,
    max_length: int | None = None,
    label: str | None = None,
    word: str | None = None,
    contrast: str | None = None,
    batch_tokens: int | None = None,
    method: Literal["mask", "delete"] = "mask",
) -> Explanation:
    """Occlusion: measure what each word of each text adds to a result, as `.words`, `.value`, `.target`, `.record`."""
@overload
def explain(
    model: LoadedModel,
    texts: Values,
    pairs: Pairs = None,
    *,
    max_length: int | None = None,
    label: str | None = None,
    word: str | None = None,
    contrast: str | None = None,
    batch_tokens: int | None = None,
    method: Literal["mask", "delete"] = "mask",
) -> list[Explanation]:
    """Occlusion: measure what each word of each text adds to a result, as `.words`, `.value`, `.target`, `.record`."""

def heads(
    model: LoadedModel,
    texts: Values,
    pairs: Pairs = None,
    *,
    max_length: int | None = None,
    label: str | None = None,
    word: str | None = None,
    contrast: str | None = None,
    batch_tokens: int | None = None,
    ablate: bool = False,
    top_k: int | None = None,
    layer: str | None = None,
    rollout: int | None = None,
) -> Heads:
    """Every attention head's entropy, distance and shares over texts; `ablate` adds the change of a result without it."""

@overload
def lens(  # type: ignore[overload-overlap]
    model: LoadedModel,
    texts: Value,
    pairs: Pairs = None,
    *,
    max_length: int | None = None,
    top_k: int = 3,
    word: str | None = None,
    all_tokens: bool = False,
) -> Lens:
    """Logit lens: predict from each layer's state, for each mask of each text or for every token (`all_tokens`)."""
@overload
def lens(
    model: LoadedModel,
    texts: Values,
    pairs: Pairs = None,
    *,
    max_length: int | None = None,
    top_k: int = 3,
    word: str | None = None,
    all_tokens: bool = False,
) -> list[Lens]:
    """Logit lens: predict from each layer's state, for each mask of each text or for every token (`all_tokens`)."""

def patch(
    model: LoadedModel,
    a: str,
    b: str = "",
    *,
    max_length: int | None = None,
    label: str | None = None,
    word: str | None = None,
    contrast: str | None = None,
    batch_tokens: int | None = None,
    text_pair: str | None = None,
    of: Literal["layers", "attention", "feed-forward", "heads"] = "layers",
    foil: str | None = None,
    direction: Literal["denoise", "noise", "both"] = "denoise",
) -> Patch:
    """Activation patching between texts a (clean) and b (corrupted): `.effects` of every layer and token, `.record`."""

def probe(
    model: LoadedModel,
    texts: Any,
    labels: Any = ...,
    pairs: Pairs = None,
    *,
    max_length: int | None = None,
    truncation: Literal["warn", "error", "silent"] = "warn",
    keep_going: bool = False,
    batch_tokens: int | None = None,
    workers: int | Literal["auto"] | None = None,
    clusters: Any = None,
    words: bool = False,
    folds: int = 5,
    layer: int | None = None,
    pooling: Literal["auto", "mean", "cls", "max", "lasttoken"] | None = None,
    normalize: bool = False,
    save: str | None = None,
) -> Probe:
    """Linear probes of every layer, trained on these labels: `.layers`, `.best`, `.record`, `.save(file)`."""

def search(
    queries: str | Iterable[str],
    vectors: str | Path,
    *,
    model: LoadedModel | str | Path | None = None,
    texts: str | Path | None = None,
    column: str | None = None,
    id_column: str | None = None,
    top_k: int = 10,
    **options: Any,
) -> list[dict[str, Any]]:
    """Records {query, nearest: [{row, score, id, text}, …]}: the rows of a file of vectors nearest to each query."""

def search_files(
    queries: str | Iterable[str],
    files: str | Path | Sequence[str | Path],
    *,
    model: LoadedModel | str | Path | None = None,
    column: str | None = None,
    index: str | Path | None = None,
    sparse: bool = False,
    hybrid: bool = False,
    rerank: LoadedModel | str | Path | None = None,
    top_k: int = 10,
    keep: bool = False,
    limits: DoorLimits = ...,
    **options: Any,
) -> list[dict[str, Any]]:
    """Records {query, file, line, score, text}: the passages of files nearest to each query, best first."""

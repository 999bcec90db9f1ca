"""Read the sentence settings of a folder: the steps from a network's output to a vector, or to the score of a pair.

Source of the files' meaning: the modules of sentence-transformers 2 to 6. The settings of each type of module are read
in `pooling`, `sparse`, `layers` and `late_interaction`.
"""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from bertcli.errors import check_choice, quoted
from bertcli.folder.files import unusable
from bertcli.folder.layout import MASK, MODULES_FILE, SCORES, SENTENCE, Layout, ModuleEntry
from bertcli.sentence.pooling import DEFAULT_POOLING, PoolingSettings, read_pooling
from bertcli.sentence.sparse import SparsePooling, read_sparse

if TYPE_CHECKING:
    from bertcli.network.after_pooling import Dense, LayerNorm
    from bertcli.folder.late_interaction import LateInteraction
    from bertcli.sentence.layers import LogitScore
    from bertcli.sentence.token_layers import TokenLayers

logger = logging.getLogger("bertcli")

Similarity = Literal["cosine", "dot", "euclidean", "manhattan"]

UNSPECIFIED = "since the checkpoint specifies no pooling"
UNASKED = "since this cached copy has no modules.json, which the Hub may have"


class SentenceConfig(NamedTuple):
    """The steps from token vectors to a sentence vector: pool, apply `dense` in turn, normalize, truncate.

    A cross-encoder made of modules has `scores` or `next_token` instead of `dense`. In a late-interaction model `dense`
    and `normalize` apply to the vectors of tokens, and `prompt` is the documents'.
    """

    pooling: tuple[str, ...] = ()  # several modes are concatenated; empty if the folder does not specify it
    normalize: bool = False
    dense: "tuple[Dense, ...]" = ()
    reason: str = f"{DEFAULT_POOLING[0]}, {UNSPECIFIED}"  # for the user: the pooling, and where it comes from
    prompts: Mapping[str, str] = {}
    prompt: str = ""  # put before every text unless another of `prompts` is asked for
    include_prompt: bool = True  # the prompt's tokens are pooled, too
    truncate_dim: int | None = None  # keep only the first numbers of a vector (Matryoshka); None keeps all
    sparse: SparsePooling | None = None  # for SPLADE models
    scores: "tuple[Dense | LayerNorm, ...]" = ()  # from the pooled vector of a pair to its logits
    next_token: "LogitScore | None" = None  # a pair's logit is computed from the logits of the next token
    routed: bool = False  # these settings are those of a Router's route for documents
    similarity: str = "cosine"  # the function that compares two vectors
    late: "LateInteraction | None" = None
    tokens: "TokenLayers | None" = None  # of bge-m3, which gives a dense vector unless asked for another output

    @property
    def pooling_or_default(self) -> tuple[str, ...]:
        """The pooling modes; DEFAULT_POOLING if the folder specifies none."""
        return self.pooling or DEFAULT_POOLING

    @property
    def compared(self) -> str:
        """The similarity function for vectors of whole texts. Errors: BertcliError for an unknown one."""
        how = "cosine" if self.sparse or self.late else self.similarity
        check_choice("similarity", how, Similarity)
        return how

    @property
    def interaction(self) -> "LateInteraction | None":
        """The settings of late interaction, a ColBERT model's or bge-m3's; None for other models."""
        return self.tokens.interaction if self.tokens is not None else self.late

    @property
    def gives_sparse(self) -> bool:
        """True for a model of sparse vectors, and for bge-m3."""
        return self.sparse is not None or (self.tokens is not None and self.tokens.sparse is not None)

    @property
    def ranks(self) -> bool:
        """True if modules compute the scores of pairs; false if a classification head does, or nothing."""
        return bool(self.scores) or self.next_token is not None


def read_sentence_config(layout: Layout) -> SentenceConfig:
    """Read the sentence-transformers files of a folder; without them, return the defaults.

    Errors: BertcliError naming the file, if it is damaged, has a module or mode that bertcli does not support, or sizes
    that do not match.
    """
    reader = _ModuleReader(layout)
    for module in layout.modules:
        reader.read(module)
    sentence = reader.config._replace(similarity=_similarity(layout, reader.config))
    if layout.task_adapters:
        sentence = sentence._replace(pooling=("lasttoken",), reason="lasttoken, as in jina-embeddings-v5's own code")
    _check_task(layout, sentence)
    if reader.output == SCORES:
        return sentence._replace(scores=tuple(reader.layers))
    if any(module.type == "LayerNorm" for module in layout.modules):
        raise unusable(layout.folder.file(MODULES_FILE), "lists a LayerNorm, which only a cross-encoder may have")
    if sentence.late is not None and not layout.module_types:
        return sentence._replace(dense=(_projection(layout, sentence.late),))
    sentence = sentence._replace(dense=tuple(reader.layers))
    if layout.has_token_layers and sentence.sparse is None and sentence.late is None and not sentence.ranks:
        return _with_token_layers(layout, sentence)
    return sentence


class _ModuleReader:
    """Reads one module after the other into `config`, and the layers after pooling into `layers`.

    width: the length of the last module's vector; None if unknown. output: the last Dense layer's module_output_name.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.layers: list[Any] = []
        self.width: int | None = None
        self.output = ""
        prompts, prompt = layout.prompts
        late = read_late(layout)
        if late is not None:
            prompts = {**prompts, "query": late.query.prompt, "document": late.document.prompt}
            prompt = late.document.prompt
        self.input_name = SENTENCE if late is None else "token_embeddings"
        self.config = SentenceConfig(
            reason=f"{DEFAULT_POOLING[0]}, {UNSPECIFIED if layout.is_known else UNASKED}",
            normalize=late is not None and MASK not in layout.module_types,  # PyLate and Stanford always do
            prompts=prompts,
            prompt=prompt,
            truncate_dim=layout.settings.positive("truncate_dim"),
            routed=layout.is_routed,
            late=late,
        )

    def read(self, module: ModuleEntry) -> None:
        """Read the settings of a module. Readers of rare layers are imported late."""
        folder = self.layout.folder.within(module.path)
        match module.type:
            case "Pooling":
                self._pool(read_pooling(folder.object("config.json")), module)
            case "StaticEmbedding":
                self._change(pooling=DEFAULT_POOLING, reason="mean of the rows of a static model's table")
            case "SpladePooling":
                self._change(sparse=read_sparse(folder, self.layout))
            case "LogitScore":
                from bertcli.sentence.layers import read_logit_score

                self._change(next_token=read_logit_score(folder))
            case "Dense":
                from bertcli.sentence.layers import read_dense

                dense, self.output = read_dense(folder, self.width, self.input_name)
                self.width = len(dense.weight)
                self.layers.append(dense)
            case "LayerNorm":
                from bertcli.sentence.layers import read_norm

                self.layers.append(read_norm(folder, self.width))
            case "Normalize":
                folder.optional("config.json").one_of("module_input_name", (self.input_name,))
                self._change(normalize=True)

    def _pool(self, pooling: PoolingSettings, module: ModuleEntry) -> None:
        self.width = pooling.width
        reason = f"{' + '.join(pooling.modes)}, from {module.path}/config.json"
        self._change(pooling=pooling.modes, include_prompt=pooling.include_prompt, reason=reason)

    def _change(self, **values: Any) -> None:
        self.config = self.config._replace(**values)


def _similarity(layout: Layout, sentence: SentenceConfig) -> str:
    """Read similarity_fn_name, whether bertcli supports it or not; default: "dot" for SPLADE, else "cosine"."""
    named = layout.settings.get("similarity_fn_name")
    if named is not None:
        return quoted(named).strip("'")
    return "dot" if sentence.sparse is not None else "cosine"


def _check_task(layout: Layout, sentence: SentenceConfig) -> None:
    """Refuse modules that do not fit the network's transformer_task."""
    task = layout.limits.task
    needed = {"text-generation": sentence.next_token is not None}  # no other module reads its logits
    if task:
        needed["fill-mask"] = sentence.sparse is not None
    if any((task == name) != is_needed for name, is_needed in needed.items()):
        raise unusable(
            layout.folder.file(MODULES_FILE), f"lists modules that do not fit the transformer_task {quoted(task)}"
        )


def _projection(layout: Layout, late: "LateInteraction") -> "Dense":
    """Read the projection of Stanford ColBERT models, which have no modules; log if their settings are absent."""
    from bertcli.folder.late_interaction import METADATA
    from bertcli.sentence.layers import read_projection

    projection = read_projection(layout.folder)
    if not layout.folder.file(METADATA).exists() and not layout.is_pylate:
        logger.info(
            "%s has no %s: queries get %d tokens, as in ColBERT, and documents are cut at the model's limit.",
            layout.folder.path,
            METADATA,
            late.query.length,
        )
    return projection


def _with_token_layers(layout: Layout, sentence: SentenceConfig) -> SentenceConfig:
    """The settings of bge-m3; one without modules.json pools as FlagEmbedding does, which saved it."""
    from bertcli.sentence.token_layers import read_token_layers  # few checkpoints have them

    if not layout.entries:
        reason = "cls, as FlagEmbedding pools models that have such layers beside them"
        sentence = sentence._replace(pooling=("cls",), normalize=True, reason=reason)
    return sentence._replace(tokens=read_token_layers(layout))


def read_late(layout: Layout) -> "LateInteraction | None":
    """Read the settings of queries and documents of a late-interaction model; None for any other model."""
    if not layout.is_late:
        return None
    from bertcli.folder.late_interaction import late_interaction  # few checkpoints are of that type

    return late_interaction(layout)

"""What a sentence-transformers folder specifies besides the network: pooling, what follows it, prompts, scores.

Source of the files' meaning: the modules of sentence-transformers 2 to 6.
"""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from bertcli.errors import BertcliError, check_choice, shown
from bertcli.folder.files import Folder, JsonSettings, unusable
from bertcli.folder.layout import MASK, MODULES_FILE, SCORES, SENTENCE, Layout

if TYPE_CHECKING:
    from bertcli.network.after_pooling import Dense, LayerNorm
    from bertcli.sentence.late_interaction import LateInteraction
    from bertcli.sentence.layers import LogitScore

logger = logging.getLogger("bertcli")

# In the order in which the modes flagged in older folders are concatenated.
FLAGS = {
    "pooling_mode_cls_token": "cls", "pooling_mode_max_tokens": "max", "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len", "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}  # fmt: skip
MODES = tuple(FLAGS.values())

Similarity = Literal["cosine", "dot", "euclidean", "manhattan"]

# What pools token vectors where the files of a model do not say it, as in sentence-transformers. It is said only here.
DEFAULT_POOLING = ("mean",)
UNSPECIFIED = "since the checkpoint specifies no pooling"
UNASKED = "but nobody asked the Hub whether the model says otherwise"


class SparsePooling(NamedTuple):
    """SPLADE: a text's weight of each vocabulary entry is the `max` or the `sum` over its tokens' logits.

    The logits first go through ln(1 + relu(x)) (`relu`), or through that and once more ln(1 + x) (`log1p_relu`).
    """

    strategy: str = "max"
    activation: str = "relu"
    most: int | None = None  # weights that are kept, the largest


class SentenceConfig(NamedTuple):
    """How token vectors become a sentence vector: pooled (several modes: concatenated), `dense` in turn, normalized.

    `pooling` is empty if the folder does not specify it; `reason` tells the user the choice and where it comes from.
    Only `truncate_dim` numbers of the result are kept; None keeps all. `sparse` is set for a model of sparse vectors.
    `prompt` is prepended to every text unless another of `prompts` is asked for; without `include_prompt` its tokens
    are left out of the pooling.
    A cross-encoder made of modules has `scores` in place of `dense`: the layers from the pooled vector of a pair to its
    logits; or `next_token`, which takes them from those of the next token. `routed`: it is the route for documents of a
    Router. `similarity` is what compares vectors. `late` is set for a late-interaction model, of which `dense`
    and `normalize` are for the vectors of tokens, and `prompt` is that of documents.
    """

    pooling: tuple[str, ...] = ()
    normalize: bool = False
    dense: "tuple[Dense, ...]" = ()
    reason: str = f"{DEFAULT_POOLING[0]}, {UNSPECIFIED}"
    prompts: Mapping[str, str] = {}
    prompt: str = ""
    include_prompt: bool = True
    truncate_dim: int | None = None
    sparse: SparsePooling | None = None
    scores: "tuple[Dense | LayerNorm, ...]" = ()
    next_token: "LogitScore | None" = None
    routed: bool = False
    similarity: str = "cosine"
    late: "LateInteraction | None" = None

    @property
    def pooling_or_default(self) -> tuple[str, ...]:
        """The modes that pool token vectors, whether the folder specifies them or not."""
        return self.pooling or DEFAULT_POOLING

    @property
    def compared(self) -> str:
        """What compares vectors of whole texts; BertcliError for what sentence-transformers does not have."""
        how = "cosine" if self.sparse or self.late else self.similarity
        check_choice("similarity", how, Similarity)
        return how

    @property
    def ranks(self) -> bool:
        """Whether modules give the scores of pairs, and not a classifier of the network."""
        return bool(self.scores) or self.next_token is not None


def read_sentence_config(layout: Layout) -> SentenceConfig:
    """What the folder's sentence-transformers files say; the defaults if there are none.

    Errors: BertcliError naming the file, if it is damaged, has a module or mode that bertcli does not support, or sizes
    that do not match.
    """
    folder = layout.folder
    prompts, prompt = layout.prompts
    task, late = layout.limits.task, read_late(layout)
    if late is not None:
        prompts = {**prompts, "query": late.query.prompt, "document": late.document.prompt}
        prompt = late.document.prompt
    sentence = SentenceConfig(
        reason=f"{DEFAULT_POOLING[0]}, {UNSPECIFIED if layout.is_known else UNASKED}",
        normalize=late is not None and MASK not in layout.kinds,
        prompts=prompts,
        prompt=prompt,
        truncate_dim=layout.settings.positive("truncate_dim"),
        routed=layout.is_routed,
        late=late,
    )
    layers: list[Any] = []
    modules, size, output = layout.modules, None, ""
    input_name = SENTENCE if late is None else "token_embeddings"
    for module in modules:
        at = folder.within(module.path)
        if module.kind == "Pooling":
            settings = at.object("config.json")
            modes, size = _read_pooling(settings)
            sentence = sentence._replace(
                pooling=modes,
                include_prompt=settings.flag("include_prompt", True),
                reason=f"{' + '.join(modes)}, from {module.path}/config.json",
            )
        elif module.kind == "StaticEmbedding":
            sentence = sentence._replace(pooling=("mean",), reason="mean of the rows of a static model's table")
        elif module.kind == "SpladePooling":
            sentence = sentence._replace(sparse=_read_sparse(at, layout))
        elif module.kind == "LogitScore":
            from bertcli.sentence.layers import read_logit_score

            sentence = sentence._replace(next_token=read_logit_score(at))
        elif module.kind == "Dense":
            from bertcli.sentence.layers import read_dense  # which few folders have

            dense, output = read_dense(at, size, input_name)
            size = len(dense.weight)
            layers.append(dense)
        elif module.kind == "LayerNorm":
            from bertcli.sentence.layers import read_norm

            layers.append(read_norm(at, size))
        elif module.kind == "Normalize":
            at.optional("config.json").one_of("module_input_name", (input_name,))
            sentence = sentence._replace(normalize=True)
    similarity = layout.settings.get("similarity_fn_name")
    if similarity is not None:
        sentence = sentence._replace(similarity=shown(similarity).strip("'"))
    elif sentence.sparse is not None:
        sentence = sentence._replace(similarity="dot")
    tasks = {"text-generation": sentence.next_token is not None}  # whose logits no other module reads
    if task:
        tasks["fill-mask"] = sentence.sparse is not None
    if any((task == name) != wanted for name, wanted in tasks.items()):
        raise unusable(
            folder.file(MODULES_FILE), f"lists modules that do not go with the transformer_task {shown(task)}"
        )
    if output == SCORES:
        return sentence._replace(scores=tuple(layers))
    if late is not None and not layout.kinds:
        from bertcli.sentence.late_interaction import METADATA
        from bertcli.sentence.layers import read_projection

        layers = [read_projection(folder)]
        if not folder.file(METADATA).exists() and not layout.is_pylate:
            cut = "documents are cut at the model's limit"
            logger.info("%s is absent: queries have %d tokens, as ColBERT's; %s.", METADATA, late.query.length, cut)
    if any(module.kind == "LayerNorm" for module in modules):
        raise unusable(folder.file(MODULES_FILE), "lists a LayerNorm, which only a cross-encoder may have")
    return sentence._replace(dense=tuple(layers))


def read_late(layout: Layout) -> "LateInteraction | None":
    """How a late-interaction model reads queries and documents; None for any other model."""
    if not layout.is_late:
        return None
    from bertcli.sentence.late_interaction import late_interaction  # few checkpoints are of that kind

    return late_interaction(layout)


def _read_pooling(config: JsonSettings) -> tuple[tuple[str, ...], int | None]:
    """The modes in the order of their concatenation, and the length of the result if the file states it."""
    modes = config.get("pooling_mode")
    if modes is None:
        modes = [mode for key, mode in FLAGS.items() if config.flag(key, False)] or [*DEFAULT_POOLING]
    modes = [modes] if isinstance(modes, str) else modes
    if not isinstance(modes, list) or not modes:
        raise BertcliError(f"{config.file} has the pooling_mode {shown(modes)}: fetch the model again.")
    modes = ["mean_sqrt_len" if mode == "mean_sqrt_len_tokens" else mode for mode in modes]
    for mode in modes:
        if mode not in MODES:
            raise unusable(config.file, f"asks for the pooling {shown(mode)}; bertcli supports {', '.join(MODES)}")
    size = config.positive("embedding_dimension") or config.positive("word_embedding_dimension")
    return tuple(modes), size and size * len(modes)


def _read_sparse(at: Folder, layout: Layout) -> SparsePooling:
    config = at.object("config.json")
    return SparsePooling(
        config.one_of("pooling_strategy", ("max", "sum")),
        config.one_of("activation_function", ("relu", "log1p_relu")),
        layout.settings.positive("max_active_dims"),
    )

"""Read the sentence settings of a folder: the steps from a network's output to a vector, or to the score of a pair.

Source of the files' meaning: the modules of sentence-transformers 2 to 6. The settings of a single module are read in
pooling.py, sparse.py and layers.py. Nothing is computed here: tasks/compute/ applies the settings.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bertcli.errors import check_choice, quoted
from bertcli.folder.files import Folder, unusable
from bertcli.folder.late_interaction import METADATA, LateInteraction
from bertcli.folder.layout import Layout
from bertcli.folder.modules import MASK, MODULES_FILE, SCORES, SENTENCE, ModuleEntry
from bertcli.folder.prompts import NAMES_OF_ROLE, Role
from bertcli.network.after_pooling import Dense, LayerNorm
from bertcli.sentence.layers import LogitScore, read_dense, read_logit_score, read_norm, read_projection
from bertcli.sentence.pooling import DEFAULT_POOLING, read_pooling
from bertcli.sentence.sparse import SparsePooling, read_sparse
from bertcli.sentence.token_layers import TokenLayers, read_token_layers

logger = logging.getLogger("bertcli")

Similarity = Literal["cosine", "dot", "euclidean", "manhattan"]

UNSPECIFIED = "since the checkpoint specifies no pooling"
UNASKED = "since this cached copy has no modules.json, which the Hub may have"
OF_JINA = "lasttoken, as in jina-embeddings-v5's own code"
OF_FLAG_EMBEDDING = "cls, as FlagEmbedding pools models that have such layers beside them"


class SentenceConfig(NamedTuple):
    """The steps from token vectors to a sentence vector: pool, apply `dense` in turn, normalize, truncate.

    A cross-encoder made of modules has `scores` or `next_token` instead of `dense`. In a late-interaction model `dense`
    and `normalize` apply to the vectors of tokens, and `prompt` is the documents'.
    """

    pooling: tuple[str, ...] = ()  # several modes are concatenated; empty if the folder does not specify it
    normalize: bool = False
    dense: tuple[Dense, ...] = ()
    reason: str = f"{DEFAULT_POOLING[0]}, {UNSPECIFIED}"  # for the user: the pooling, and where it comes from
    prompts: Mapping[str, str] = {}
    prompt: str = ""  # put before every text unless another of `prompts` is asked for
    include_prompt: bool = True  # the prompt's tokens are pooled, too
    truncate_dim: int | None = None  # keep only the first numbers of a vector (Matryoshka); None keeps all
    sparse: SparsePooling | None = None  # for SPLADE models
    scores: tuple[Dense | LayerNorm, ...] = ()  # from the pooled vector of a pair to its logits
    next_token: LogitScore | None = None  # a pair's logit is computed from the logits of the next token
    routed: bool = False  # these settings are those of a Router's route for documents
    similarity: str = "cosine"  # the function that compares two vectors
    late: LateInteraction | None = None
    tokens: TokenLayers | None = None  # of bge-m3, which gives a dense vector unless asked for another output

    def prompt_name(self, role: Role) -> str | None:
        """The name of the prompt that a text of a role gets, or of its route of a Router; None for the default prompt.

        Whatever compares texts asks this: commands, methods, routes of the server. A user may name another prompt.
        """
        if role == "query" and self.routed:
            return "query"
        return next((name for name in NAMES_OF_ROLE[role] if name in self.prompts), None)

    def prompt_text(self, name: str | None) -> str:
        """The prompt of a name that the model has; of None the default prompt."""
        return self.prompt if name is None else self.prompts[name]

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
    def interaction(self) -> LateInteraction | None:
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
    sentence = reader.config
    sentence = sentence._replace(similarity=_similarity(layout, sentence))
    if layout.task_adapters:
        sentence = sentence._replace(pooling=("lasttoken",), reason=OF_JINA)
    _check_task(layout, sentence)
    if reader.output == SCORES:
        return sentence._replace(scores=tuple(reader.layers))
    if "LayerNorm" in layout.module_types:
        raise unusable(_modules_file(layout), "lists a LayerNorm, which only a cross-encoder may have")
    if sentence.late is not None and not layout.module_types:
        return sentence._replace(dense=(_projection(layout, sentence.late),))
    sentence = sentence._replace(dense=tuple(reader.layers))
    only_pools = sentence.sparse is None and sentence.late is None and not sentence.ranks
    return _with_token_layers(layout, sentence) if layout.token_layers and only_pools else sentence


class _ModuleReader:
    """Reads one module after the other.

    config   the settings so far; the layers are not in it, since the last of them decides what they are for
    layers   the layers after the network, or after pooling
    width    the length of the last module's vector; None if unknown
    output   the module_output_name of the last Dense layer: SCORES in a cross-encoder
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.layers: list[Any] = []
        self.width: int | None = None
        self.output = ""
        late = layout.late
        # The modules of a late-interaction model work on the vectors of tokens.
        self.input_name = SENTENCE if late is None else "token_embeddings"
        self.config = SentenceConfig(
            reason=f"{DEFAULT_POOLING[0]}, {UNSPECIFIED if layout.is_known else UNASKED}",
            prompts=layout.prompts.named,
            prompt=layout.prompts.default,
            truncate_dim=layout.settings.positive("truncate_dim"),
            routed=layout.router is not None,
        )
        if late is not None:
            self._change(
                # PyLate and Stanford always normalize; a MultiVectorEncoder lists a module for it.
                normalize=MASK not in layout.module_types,
                prompts={**layout.prompts.named, "query": late.query.prompt, "document": late.document.prompt},
                prompt=late.document.prompt,
                late=late,
            )

    def read(self, module: ModuleEntry) -> None:
        """Read the settings of a module."""
        folder = self.layout.folder.within(module.path)
        match module.type:
            case "Pooling":
                self._read_pooling(folder, module.path)
            case "StaticEmbedding":
                self._change(pooling=DEFAULT_POOLING, reason="mean of the rows of a static model's table")
            case "SpladePooling":
                self._change(sparse=read_sparse(folder, self.layout))
            case "LogitScore":
                self._change(next_token=read_logit_score(folder))
            case "Dense":
                dense, self.output = read_dense(folder, self.width, self.input_name)
                self.width = len(dense.weight)
                self.layers.append(dense)
            case "LayerNorm":
                self.layers.append(read_norm(folder, self.width))
            case "Normalize":
                folder.optional("config.json").one_of("module_input_name", (self.input_name,))
                self._change(normalize=True)

    def _read_pooling(self, folder: Folder, path: str) -> None:
        """Read a Pooling module; `path` is its folder within the model's, for the user."""
        pooling = read_pooling(folder.object("config.json"))
        self.width = pooling.width
        reason = f"{' + '.join(pooling.modes)}, from {path}/config.json"
        self._change(pooling=pooling.modes, include_prompt=pooling.include_prompt, reason=reason)

    def _change(self, **values: Any) -> None:
        """Replace fields of the settings."""
        self.config = self.config._replace(**values)


def _modules_file(layout: Layout) -> Path:
    """The path of modules.json, for messages."""
    return layout.folder.file(MODULES_FILE)


def _similarity(layout: Layout, sentence: SentenceConfig) -> str:
    """Read similarity_fn_name, supported or not: `SentenceConfig.compared` refuses. Default: "dot" for SPLADE."""
    named = layout.settings.get("similarity_fn_name")
    if named is not None:
        return quoted(named).strip("'")
    return "dot" if sentence.sparse is not None else "cosine"


def _check_task(layout: Layout, sentence: SentenceConfig) -> None:
    """Refuse modules that do not fit the network's transformer_task."""
    task = layout.limits.task
    # LogitScore reads the logits of a language model, and no other module does.
    fits = (task == "text-generation") == (sentence.next_token is not None)
    # SPLADE folders of older versions name no task.
    if task and (task == "fill-mask") != (sentence.sparse is not None):
        fits = False
    if not fits:
        raise unusable(_modules_file(layout), f"lists modules that do not fit the transformer_task {quoted(task)}")


def _projection(layout: Layout, late: LateInteraction) -> Dense:
    """Read the projection of Stanford ColBERT models, which have no modules; log if their settings are absent."""
    projection = read_projection(layout.folder)
    if not late.is_stated:
        logger.info(
            "%s has no %s: queries get %d tokens, as in ColBERT, and documents are cut at the model's limit.",
            layout.folder.path,
            METADATA,
            late.query.length,
        )
    return projection


def _with_token_layers(layout: Layout, sentence: SentenceConfig) -> SentenceConfig:
    """Add the layers of bge-m3; without modules.json it pools as FlagEmbedding does, which saved it."""
    if not layout.module_types:
        sentence = sentence._replace(pooling=("cls",), normalize=True, reason=OF_FLAG_EMBEDDING)
    return sentence._replace(tokens=read_token_layers(layout))

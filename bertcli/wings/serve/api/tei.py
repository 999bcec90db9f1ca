"""The routes of text-embeddings-inference (TEI): vectors, rankings, labels, tokens, /info."""

from typing import Any, NotRequired

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from bertcli._version import __version__
from bertcli.engine.pauses import check_wanted
from bertcli.errors import quoted
from bertcli.files.texts import Text
from bertcli.tasks.limits import check_texts
from bertcli.tokens import Tokens
from bertcli.wings.serve.api.cohere import Ranking, rerank
from bertcli.wings.serve.api.tasks import TextsRequest, answer_texts, request_model
from bertcli.wings.serve.connections import MOST_CONNECTIONS
from bertcli.wings.serve.embedding import (
    EMBEDDERS,
    Inputs,
    PromptedRequest,
    TokenVectors,
    Vector,
    VectorRequest,
    cosines,
)
from bertcli.wings.serve.exchange import Exchange
from bertcli.wings.serve.ranking import RANKERS, Documents, RankingRequest
from bertcli.wings.serve.requests import Listed, Refusal, RequestModel, either
from bertcli.wings.serve.routes import paths_for, route
from bertcli.wings.serve.served_model import Served

# The keys of /info that TEI has; the others are of bertcli.
TEI_KEYS = (
    "model_id",
    "model_sha",
    "model_dtype",
    "served_model_name",
    "model_type",
    "max_input_length",
)


# Entries of sparse vectors: as many are converted in less than a millisecond, which may hold up the event loop.
FEW_ENTRIES = 256


class TeiEmbedRequest(VectorRequest):
    inputs: Inputs = Field(validation_alias=either("inputs", "input"), description="A text, or a list of texts.")


class SparseRequest(PromptedRequest):
    inputs: Inputs = Field(validation_alias=either("inputs", "input"), description="A text, or a list of texts.")


class RerankRequest(RankingRequest):
    documents: Documents = Field(validation_alias=either("texts", "documents"), description="The texts.")
    return_documents: bool = Field(
        False,
        validation_alias=either("return_text", "return_documents"),
        description="Return the texts, too.",
    )


class Sentences(BaseModel):
    """A sentence, and the sentences with which it is compared."""

    model_config = ConfigDict(strict=True, frozen=True)
    source_sentence: str
    sentences: Listed[str]


class SimilarityRequest(PromptedRequest):
    inputs: Sentences = Field(description="A sentence, and others to compare with it.")
    dimensions: int | None = Field(
        None,
        ge=1,
        validation_alias=either("dimensions", "truncate_dim"),
        description="Compare only this many numbers of each vector.",
    )


class SparseEntry(TypedDict):
    index: int
    value: float


class TeiRankedText(TypedDict):
    index: int
    score: float
    text: NotRequired[str]


class Token(TypedDict):
    id: int
    text: str
    special: bool
    start: int | None
    stop: int | None


class TokenizeRequest(RequestModel):
    inputs: str | Listed[str] = Field(description="A text, or a list of texts.")
    add_special_tokens: bool = Field(True, description="List special tokens such as [CLS] and [SEP], too.")
    prompt_name: str | None = Field(None, description="Put the model's prompt of this name before each text.")


class DecodeRequest(RequestModel):
    ids: Listed[int] | Listed[Listed[int]] = Field(description="Token ids of one text, or a list of them for several.")
    skip_special_tokens: bool = Field(True, description="Leave out special tokens such as [CLS] and [SEP].")


# ---------------------------------------------------------------------------------------------------------- vectors


@route("/embed", uses=EMBEDDERS)
async def embed(exchange: Exchange, request: TeiEmbedRequest) -> list[Vector]:
    """Vectors, in the shape of text-embeddings-inference."""
    return [*await request.vectors_of(exchange, request.inputs, True)]


@route("/embed_all", uses=("tokens",))
async def embed_all(exchange: Exchange, request: TeiEmbedRequest) -> list[TokenVectors]:
    """A vector for every token."""
    return await request.vectors_of(exchange, request.inputs, None, pooling="none")


@route("/embed_sparse", uses=("encode-sparse",))
async def embed_sparse(exchange: Exchange, request: SparseRequest) -> list[list[SparseEntry]]:
    """Sparse vectors: the entries of the vocabulary with a weight above 0."""
    vectors = await request.values_of(exchange, request.inputs, "encode-sparse")
    entries = sum(len(vector.indices) for vector in vectors)
    # An entry is small beside a label, which has a name.
    limit = 10 * (exchange.cost.limits.predictions or 0)
    if entries > limit:
        why = f"The vectors have {entries:,} entries, more than {limit:,}"
        raise Refusal(422, f"{why}: send fewer texts at once.", code="too_many")
    exchange.cost.predictions += entries

    def convert() -> list[list[SparseEntry]]:
        answers: list[list[SparseEntry]] = []
        for vector in vectors:
            pairs = zip(vector.indices.tolist(), vector.values, strict=True)
            answers.append([{"index": index, "value": value} for index, value in pairs])
        return answers

    return await exchange.in_thread(convert, unless=entries <= FEW_ENTRIES)


@route("/similarity", uses=EMBEDDERS)
async def similarity(exchange: Exchange, request: SimilarityRequest) -> list[float]:
    """The cosine of a sentence with each of the others."""
    texts = [request.inputs.source_sentence, *request.inputs.sentences]
    vectors = await request.values_of(exchange, texts, normalize=True, truncate_dim=request.dimensions)
    first, *others = vectors
    return cosines(first, others)


# --------------------------------------------------------------------------------------------- rankings and labels


@route("/rerank", uses=(*RANKERS,))
async def rerank_texts(exchange: Exchange, request: RerankRequest) -> list[TeiRankedText] | Ranking:
    """Texts, best first, in the shape of text-embeddings-inference; of Jina for a request with `documents`."""
    if "documents" in exchange.body:
        return await rerank(exchange, request)
    results: list[TeiRankedText] = []
    for index, score, text in await request.ranked(exchange):
        result: TeiRankedText = {"index": index, "score": score}
        if request.return_documents:
            result["text"] = text
        results.append(result)
    return results


@route("/predict", uses=("classify",), request=request_model("classify"))
async def predict(exchange: Exchange, request: TextsRequest) -> Any:
    """All labels, best first, in the shape of text-embeddings-inference."""
    match request.inputs:
        # Two texts are a pair here; a list of texts is a list of lists.
        case [str(first), str(second)]:
            request = request.model_copy(update={"inputs": {"text": first, "text_pair": second}})
    return await answer_texts(exchange, request)


# ---------------------------------------------------------------------------------------------------- the tokenizer


@route("/tokenize")
async def tokenize(exchange: Exchange, request: TokenizeRequest) -> list[list[Token]]:
    """The tokens of texts, with their places in the text as characters."""
    prompts = exchange.served.kind.prompts
    prompt = ""
    if request.prompt_name:
        if request.prompt_name not in prompts:
            names = ", ".join(prompts) or "none"
            why = f"prompt_name: the model has no prompt {quoted(request.prompt_name)}; it has {names}."
            raise Refusal(422, why, "prompt_name", "unusable")
        prompt = prompts[request.prompt_name]
    texts = [prompt + text for text in exchange.as_list(request.inputs)]
    check_texts([*map(Text, texts)], exchange.cost.limits)

    def answer() -> list[list[Token]]:
        # A Router's queries may have another tokenizer, whose model is opened for them.
        tokenizer = exchange.served.model.for_prompt(request.prompt_name).tokenizer
        answers: list[list[Token]] = []
        for text in texts:
            check_wanted()
            (tokens,) = tokenizer.encode([text])
            exchange.cost.answer(len(tokens.ids))
            answers.append(_described(tokens, request.add_special_tokens))
        return answers

    return await exchange.while_wanted(answer)


def _described(tokens: Tokens, with_special: bool) -> list[Token]:
    described: list[Token] = []
    for id, piece, side, (start, stop) in zip(tokens.ids, tokens.pieces, tokens.sides, tokens.offsets, strict=True):
        # A token of neither text is special.
        if side is not None:
            described.append({"id": id, "text": piece, "special": False, "start": start, "stop": stop})
        elif with_special:
            described.append({"id": id, "text": piece, "special": True, "start": None, "stop": None})
    return described


@route("/decode")
async def decode(exchange: Exchange, request: DecodeRequest) -> list[str]:
    """The texts of token ids."""
    tokenizer, ids = exchange.served.model.tokenizer, request.ids
    texts_ids: list[Any] = [*ids] if ids and isinstance(ids[0], list) else [ids]
    left_out: set[int | None] = set()
    if request.skip_special_tokens:
        left_out = {tokenizer.special_id(role) for role in ("mask", "cls", "sep", "pad", "unk")}

    def spell() -> list[str]:
        texts: list[str] = []
        for text_ids in texts_ids:
            check_wanted()
            if not all(0 <= id < tokenizer.vocab_size for id in text_ids):
                raise Refusal(422, f"ids must be from 0 to {tokenizer.vocab_size - 1}.", "ids", "wrong_shape")
            texts.append(tokenizer.spelled([tokenizer.piece(id) for id in text_ids if id not in left_out]))
        return texts

    exchange.cost.answer(sum(map(len, texts_ids)))
    return await exchange.while_wanted(spell)


# ------------------------------------------------------------------------------------------- the models and limits


class ModelAbout(TypedDict):
    model_id: str
    model_sha: str | None
    model_dtype: str
    served_model_name: str
    model_type: dict[str, Any]
    max_input_length: int


class ServedAbout(ModelAbout):
    uses: list[str]
    routes: list[str]
    ranks_by: str | None
    pooling: list[str]
    prompts: dict[str, str]
    dimensions: int | None
    mask_token: str | None


class About(ModelAbout):
    max_concurrent_requests: int
    max_queue_tokens: int
    max_batch_tokens: int
    max_batch_requests: int | None
    max_client_batch_size: int
    auto_truncate: bool
    tokenization_workers: int
    version: str
    models: list[ServedAbout]


@route("/info")
async def info(exchange: Exchange) -> About:
    """Models, limits, version."""
    limits = exchange.service.limits
    models = [about(served) for served in exchange.service.models]
    first, *_ = models
    answer: Any = {
        **{key: value for key, value in first.items() if key in TEI_KEYS},
        "max_concurrent_requests": MOST_CONNECTIONS,
        "max_queue_tokens": limits.max_queue_tokens,
        "max_batch_tokens": limits.batch_tokens,
        "max_batch_requests": None,
        "max_client_batch_size": limits.door.texts,
        "auto_truncate": limits.truncation == "auto",
        # TEI's key; no client is known that reads it.
        "tokenization_workers": 2,
        "version": __version__,
        "models": models,
    }
    typed: About = answer
    return typed


def about(served: Served) -> ServedAbout:
    """The record of `/info` about a model, with TEI's keys first."""
    model, kind = served.model, served.kind
    # In the Hub's cache the folder of a snapshot is called like its commit.
    is_snapshot = model.path is not None and model.path.parent.name == "snapshots"
    return {
        "model_id": served.name,
        "model_sha": model.path.name if model.path is not None and is_snapshot else None,
        "model_dtype": "float32" if model.other_engine is None else model.other_engine.precision,
        "served_model_name": served.name,
        "model_type": _model_type(served),
        "max_input_length": served.task_of("encode", pooling="mean").limit,
        "uses": [*served.uses],
        "routes": paths_for(served),
        "ranks_by": next((how for ranker, how in RANKERS.items() if ranker in served.uses), None),
        "pooling": [*kind.pooling],
        "prompts": dict(kind.prompts),
        "dimensions": served.width,
        "mask_token": served.mask_token,
    }


def _model_type(served: Served) -> dict[str, Any]:
    """TEI's `model_type`: the type of model, with its pooling or its labels; none where a request names them."""
    use = served.main_use
    pooling = {
        "encode": "+".join(served.kind.pooling_or_default),
        "late": "none",
        "encode-sparse": "splade",
    }
    if use in pooling:
        return {"embedding": {"pooling": pooling[use]}}
    name = {"rank": "reranker", "classify": "classifier"}.get(use, use)
    has_labels = use in ("rank", "classify", "tag") and "entities" not in served.uses
    labels = {str(index): label for index, label in enumerate(served.model.config.labels if has_labels else ())}
    indices = {label: int(index) for index, label in labels.items()}
    return {name: {"id2label": labels, "label2id": indices}}

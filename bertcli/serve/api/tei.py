"""The routes of text-embeddings-inference."""

from typing import Any, NotRequired

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from bertcli._version import __version__
from bertcli.serve.api.cohere import Ranking, rerank
from bertcli.serve.api.tasks import TextsRequest, answer_texts, request_model
from bertcli.serve.embedding import EMBEDDERS, Inputs, TokenVectors, Vector, VectorRequest, cosines
from bertcli.serve.exchange import Exchange
from bertcli.serve.ranking import RANKERS, Documents, RankingRequest
from bertcli.serve.requests import Listed, Refusal, RequestModel, either
from bertcli.serve.routes import paths_for, route
from bertcli.serve.served import Served
from bertcli.serve.stream import Abandoned
from bertcli.tokens import Tokens

TEI_KEYS = ("model_id", "model_sha", "model_dtype", "served_model_name", "model_type", "max_input_length")


class TeiEmbedRequest(VectorRequest):
    inputs: Inputs = Field(validation_alias=either("inputs", "input"), description="A text, or several.")


class RerankRequest(RankingRequest):
    documents: Documents = Field(validation_alias=either("texts", "documents"), description="The texts.")
    return_documents: bool = Field(
        False, validation_alias=either("return_text", "return_documents"),
        description="Whether the answer has the texts.",
    )  # fmt: skip


class Sentences(BaseModel):
    """A sentence, and those that it is compared with."""

    model_config = ConfigDict(strict=True, frozen=True)
    source_sentence: str
    sentences: Listed[str]


class SimilarityRequest(VectorRequest):
    inputs: Sentences = Field(description="A sentence and others.")


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
    inputs: str | Listed[str] = Field(description="A text, or several.")
    add_special_tokens: bool = Field(True, description="Whether [CLS], [SEP] and their like are among them.")
    prompt_name: str | None = Field(None, description="The model's prompt of this name is put before each text.")


class DecodeRequest(RequestModel):
    ids: Listed[int] | Listed[Listed[int]] = Field(description="Ids of the vocabulary, of one text or of several.")
    skip_special_tokens: bool = Field(True, description="Whether [CLS], [SEP] and their like are left out.")


# ---------------------------------------------------------------------------------------------------------- vectors


@route("/embed", uses=EMBEDDERS)
async def embed(exchange: Exchange, request: TeiEmbedRequest) -> list[Vector]:
    """Vectors, as text-embeddings-inference gives them."""
    return [*await request.vectors_of(exchange, request.inputs, True)]


@route("/embed_all", uses=("tokens",))
async def embed_all(exchange: Exchange, request: TeiEmbedRequest) -> list[TokenVectors]:
    """A vector for every token."""
    return await request.values_of(exchange, request.inputs, pooling="none")


@route("/embed_sparse", uses=("encode-sparse",))
async def embed_sparse(exchange: Exchange, request: TeiEmbedRequest) -> list[list[SparseEntry]]:
    """The weights of the vocabulary's entries."""
    rows = await request.values_of(exchange, request.inputs, "encode-sparse")
    entries = sum(len(row.indices) for row in rows)
    limit = 10 * exchange.service.limits.max_predictions  # an entry is two numbers
    if entries > limit:
        raise Refusal(
            422, f"The vectors have {entries:,} entries, more than {limit:,}: ask for fewer.", code="too_many"
        )
    exchange.predictions += entries

    def named() -> list[list[SparseEntry]]:
        return [
            [{"index": index, "value": value} for index, value in zip(row.indices.tolist(), row.values, strict=True)]
            for row in rows
        ]

    return await exchange.in_thread(named, whether=entries > 256)


@route("/similarity", uses=EMBEDDERS)
async def similarity(exchange: Exchange, request: SimilarityRequest) -> list[float]:
    """The cosine of a sentence with each of others."""
    texts = [request.inputs.source_sentence, *request.inputs.sentences]
    first, *others = await request.values_of(exchange, texts, normalize=True)
    return cosines(first, others)


# --------------------------------------------------------------------------------------------- rankings and labels


@route("/rerank", uses=(*RANKERS,))
async def rerank_texts(exchange: Exchange, request: RerankRequest) -> list[TeiRankedText] | Ranking:
    """Texts, best first, as text-embeddings-inference ranks them; `documents`, as Jina does."""
    if "documents" in exchange.body:  # Jina's clients ask there, too
        return await rerank(exchange, request)
    results: list[TeiRankedText] = []
    for index, score, text in await request.ranked(exchange):
        results.append({"index": index, "score": score})
        if request.return_documents:
            results[-1]["text"] = text
    return results


@route("/predict", uses=("classify",), request=request_model("classify"))
async def predict(exchange: Exchange, request: TextsRequest) -> Any:
    """All labels, best first, as text-embeddings-inference has them."""
    match request.inputs:
        case [str(first), str(second)]:  # a pair
            request = request.model_copy(update={"inputs": {"text": first, "text_pair": second}})
    return await answer_texts(exchange, request)


# ---------------------------------------------------------------------------------------------------- the tokenizer


@route("/tokenize")
async def tokenize(exchange: Exchange, request: TokenizeRequest) -> list[list[Token]]:
    """The tokens of texts."""
    prompts, tokenizer = exchange.served.sentence.prompts, exchange.served.model.tokenizer
    if request.prompt_name and request.prompt_name not in prompts:
        names = ", ".join(prompts) or "none"
        raise Refusal(422, f"prompt_name: the model has no such prompt; it has {names}.", "prompt_name", "unusable")
    prompt = prompts[request.prompt_name] if request.prompt_name else ""
    texts = [prompt + text for text in exchange.listed(request.inputs)]
    exchange.check_texts(texts)

    def answer() -> list[list[Token]]:
        answers: list[list[Token]] = []
        for text in texts:
            if exchange.over:
                raise Abandoned
            (tokens,) = tokenizer.encode([text])
            exchange.count_predictions(len(tokens.ids))
            answers.append(described(tokens))
        return answers

    def described(tokens: Tokens) -> list[Token]:
        found: list[Token] = []
        for id, piece, side, (start, stop) in zip(tokens.ids, tokens.pieces, tokens.sides, tokens.offsets, strict=True):
            if side is None and not request.add_special_tokens:
                continue
            special = side is None
            found.append(
                {
                    "id": id,
                    "text": piece,
                    "special": special,
                    "start": None if special else start,
                    "stop": None if special else stop,
                }
            )
        return found

    return await exchange.in_thread(answer)


@route("/decode")
async def decode(exchange: Exchange, request: DecodeRequest) -> list[str]:
    """The texts of tokens."""
    tokenizer, ids = exchange.served.model.tokenizer, request.ids
    every: list[Any] = [*ids] if ids and isinstance(ids[0], list) else [ids]
    roles = ("mask", "cls", "sep", "pad", "unk") if request.skip_special_tokens else ()
    left_out = {tokenizer.special_id(role) for role in roles}

    def texts() -> list[str]:
        if not all(0 <= id < tokenizer.vocab_size for ids in every for id in ids):
            raise Refusal(422, f"ids: there are ids from 0 to {tokenizer.vocab_size - 1}.", "ids", "wrong_shape")
        return [tokenizer.spelled([tokenizer.piece(id) for id in ids if id not in left_out]) for ids in every]

    exchange.count_predictions(sum(map(len, every)))
    return await exchange.in_thread(texts)


# ------------------------------------------------------------------------------------------------- what is served


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


class About(ModelAbout):
    max_concurrent_requests: int
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
    limits, models = exchange.service.limits, [*map(about, exchange.service.models)]
    first = {key: value for key, value in models[0].items() if key in TEI_KEYS}
    shared = {
        "max_concurrent_requests": limits.max_queue_tokens, "max_batch_tokens": limits.batch_tokens,
        "max_batch_requests": None, "max_client_batch_size": limits.max_inputs,
        "auto_truncate": limits.truncation == "auto", "tokenization_workers": 2, "version": __version__,
    }  # fmt: skip
    told: Any = {**first, **shared, "models": models}
    answer: About = told
    return answer


def about(served: Served) -> ServedAbout:
    """The record of `/info` about a model, with the keys of text-embeddings-inference first."""
    model, sentence, use = served.model, served.sentence, served.uses[0]
    labels = {str(i): label for i, label in enumerate(model.config.labels)}
    by_labels = {"id2label": labels, "label2id": {label: int(i) for i, label in labels.items()}}
    pooling = {"encode": "+".join(sentence.pooling_or_default), "late": "none", "encode-sparse": "splade"}
    kind = {"rank": "reranker", "classify": "classifier"}.get(use, use)
    path = model.path
    return {
        "model_id": served.name,
        "model_sha": path.name if path is not None and path.parent.name == "snapshots" else None,
        "model_dtype": model.engine.precision,
        "served_model_name": served.name,
        "model_type": {"embedding": {"pooling": pooling[use]}} if use in pooling else {kind: by_labels},
        "max_input_length": served.plan("encode", pooling="mean").limit,
        "uses": [*served.uses],
        "routes": paths_for(served),
        "ranks_by": next((how for ranker, how in RANKERS.items() if ranker in served.uses), None),
        "pooling": [*sentence.pooling],
        "prompts": dict(sentence.prompts),
        "dimensions": served.width,
    }

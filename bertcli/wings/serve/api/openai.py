"""OpenAI's embeddings and its list of models."""

from base64 import b64encode
from typing import Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from bertcli.errors import quoted
from bertcli.tracing.dispatch import Array
from bertcli.wings.serve.embedding import EMBEDDERS, Inputs, Vector, VectorRequest, WithCuts
from bertcli.wings.serve.exchange import Exchange, Usage
from bertcli.wings.serve.requests import Refusal, either
from bertcli.wings.serve.routes import route
from bertcli.wings.serve.served_model import Served


class EmbeddingsRequest(VectorRequest):
    input: Inputs = Field(
        validation_alias=either("input", "inputs"),
        description="A text or a list of texts; with serve --token-ids also as ids of the model's vocabulary.",
    )
    encoding_format: Literal["float", "base64"] = Field("float", description="base64: float32, little-endian.")


class Embedding(TypedDict):
    object: Literal["embedding"]
    index: int
    embedding: Vector | str


class Embeddings(WithCuts):
    object: Literal["list"]
    data: list[Embedding]
    model: str
    usage: Usage


class ListedModel(TypedDict):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ListedModels(TypedDict):
    object: Literal["list"]
    data: list[ListedModel]


@route("/v1/embeddings", "/embeddings", uses=EMBEDDERS)
async def embeddings(exchange: Exchange, request: EmbeddingsRequest) -> Embeddings:
    """Vectors, in the shape of OpenAI."""
    vectors = await request.vectors_of(exchange, request.input, None)
    encoded: list[Any] = [*vectors]
    if request.encoding_format == "base64":
        encoded = [*map(in_base64, vectors)]
    data = [Embedding(object="embedding", index=index, embedding=one) for index, one in enumerate(encoded)]
    return {"object": "list", "data": data, "model": exchange.served.name, "usage": exchange.usage}


def in_base64(vector: Array) -> str:
    """A vector as base64 of float32, little-endian. openai-python sends for this by default."""
    return b64encode(vector.astype("<f4").tobytes()).decode("ascii")


@route("/v1/models")
async def models(exchange: Exchange) -> ListedModels:
    """The models, in the shape of OpenAI."""
    return {
        "object": "list",
        "data": [_entry(exchange, served) for served in exchange.service.models],
    }


@route("/v1/models/{model:path}")
async def one_model(exchange: Exchange) -> ListedModel:
    """One model, in the shape of OpenAI."""
    name = exchange.request.path_params["model"]
    for served in exchange.service.named(name):
        return _entry(exchange, served)
    raise Refusal(
        404,
        f"The model {quoted(name)} is not served: GET /v1/models lists the models.",
        "model",
        "not_found",
    )


def _entry(exchange: Exchange, served: Served) -> ListedModel:
    return {
        "id": served.name,
        "object": "model",
        "created": exchange.service.begun,
        "owned_by": "bertcli",
    }

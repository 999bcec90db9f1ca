"""Cohere's embeddings (version 2) and rerank; Jina's rerank has the same route and fields."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, NotRequired
from uuid import uuid4

import numpy as np
from pydantic import BeforeValidator, Field
from typing_extensions import TypedDict

from bertcli.tracing.dispatch import Array
from bertcli.wings.serve.api.openai import in_base64
from bertcli.wings.serve.embedding import EMBEDDERS, Vector, VectorRequest, WithCuts
from bertcli.wings.serve.exchange import Exchange, Usage
from bertcli.wings.serve.ranking import RANKERS, RankingRequest
from bertcli.wings.serve.requests import Listed
from bertcli.wings.serve.routes import route

EmbeddingType = Literal["float", "int8", "uint8", "binary", "ubinary", "base64"]


def _whole_numbers(vector: Array) -> Any:
    """Quantize a vector to int8, scaled so that its largest number is 127 or -127: scaling does not change cosines."""
    largest = float(np.abs(vector).max(initial=0.0))
    scale = 127 / largest if largest else 0.0
    return np.rint(vector * scale).astype(np.int8)


def _signs(vector: Array) -> Any:
    """A bit for each number, 1 if it is above zero; the first one is the highest bit of its byte."""
    return np.packbits(vector > 0)


# Cohere's embedding types, each with a function of a vector in float32.
EMBEDDING_TYPES: dict[EmbeddingType, Callable[[Array], Any]] = {
    "float": lambda vector: vector,
    "int8": _whole_numbers,
    "uint8": lambda vector: (_whole_numbers(vector).astype(np.int16) + 128).astype(np.uint8),
    # As Cohere has it: the byte of ubinary less 128, not the same bits read as int8.
    "binary": lambda vector: (_signs(vector).astype(np.int16) - 128).astype(np.int8),
    "ubinary": _signs,
    "base64": in_base64,
}


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


class EmbedRequest(VectorRequest):
    texts: Listed[str] = Field(description="The texts.")
    embedding_types: Listed[EmbeddingType] = Field(
        ["float"],
        description="Types of the vectors; int8 is scaled vector by vector, binary has the signs.",
    )
    truncate: Annotated[Literal["NONE", "START", "END"], BeforeValidator(_upper)] = Field(  # type: ignore[assignment]
        "END", description="The end at which a text that is too long is cut; NONE refuses it."
    )
    output_dimension: int | None = Field(None, ge=1, description="Another name of dimensions.")
    max_tokens: int | None = Field(None, ge=1, description="Another name of truncate_prompt_tokens.")

    @property
    def plain(self) -> VectorRequest:
        """This request with the fields' names of the other APIs."""
        # Cohere's default is END. For a request without the field `--truncation` decides.
        truncate = self.truncate != "NONE" if "truncate" in self.model_fields_set else None
        return VectorRequest(
            model=self.model,
            prompt_name=self.prompt_name,
            input_type=self.input_type,
            normalize=self.normalize,
            truncate=truncate,
            truncation_direction="left" if self.truncate == "START" else self.truncation_direction,
            dimensions=self.output_dimension or self.dimensions,
            truncate_prompt_tokens=self.max_tokens or self.truncate_prompt_tokens,
        )


class EmbeddingsByType(TypedDict, total=False):
    float: list[Vector]
    int8: list[Vector]
    uint8: list[Vector]
    binary: list[Vector]
    ubinary: list[Vector]
    base64: list[str]


class BilledUnits(TypedDict, total=False):
    input_tokens: int
    search_units: int


class ApiVersion(TypedDict):
    version: str


class Meta(TypedDict):
    api_version: ApiVersion
    billed_units: BilledUnits


class Embedded(WithCuts):
    id: str
    response_type: Literal["embeddings_by_type"]
    embeddings: EmbeddingsByType
    texts: list[str]
    meta: Meta


class RankedText(TypedDict):
    text: str


class Ranked(TypedDict):
    index: int
    relevance_score: float
    document: NotRequired[RankedText]


class Ranking(WithCuts):
    id: str
    model: str
    results: list[Ranked]
    usage: Usage
    meta: Meta


@route("/v2/embed", uses=EMBEDDERS)
async def embed(exchange: Exchange, request: EmbedRequest) -> Embedded:
    """Vectors, in the shape of version 2 of Cohere's API."""
    vectors = await request.plain.vectors_of(exchange, list(request.texts), None)

    def convert() -> EmbeddingsByType:
        by_type: Any = {}
        # Each type once, however often the request names it.
        for name in dict.fromkeys(request.embedding_types):
            by_type[name] = [*map(EMBEDDING_TYPES[name], vectors)]
        embeddings: EmbeddingsByType = by_type
        return embeddings

    return {
        "id": str(uuid4()),
        "response_type": "embeddings_by_type",
        "embeddings": await exchange.in_thread(convert, unless=exchange.is_short),
        "texts": request.texts,
        "meta": _meta(input_tokens=exchange.tokens),
    }


@route("/v1/rerank", "/v2/rerank", uses=(*RANKERS,))
async def rerank(exchange: Exchange, request: RankingRequest) -> Ranking:
    """Documents, best first, in the shape of Jina and Cohere."""
    results: list[Ranked] = []
    for index, score, text in await request.ranked(exchange):
        result: Ranked = {"index": index, "relevance_score": score}
        if request.return_documents:
            result["document"] = {"text": text}
        results.append(result)
    return {
        "id": str(uuid4()),
        "model": exchange.served.name,
        "results": results,
        "usage": exchange.usage,
        "meta": _meta(search_units=1),
    }


def _meta(**units: int) -> Meta:
    billed: Any = units
    return {"api_version": {"version": "2"}, "billed_units": billed}

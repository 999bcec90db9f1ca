"""Ollama's embeddings; its other routes do not exist here."""

from time import perf_counter_ns

from pydantic import Field

from bertcli.wings.serve.embedding import EMBEDDERS, Inputs, Vector, VectorRequest, WithCuts
from bertcli.wings.serve.exchange import Exchange
from bertcli.wings.serve.requests import either
from bertcli.wings.serve.routes import route


class OllamaRequest(VectorRequest):
    input: Inputs = Field(validation_alias=either("input", "inputs"), description="A text, or a list of texts.")


class OllamaEmbeddings(WithCuts):
    model: str
    embeddings: list[Vector]
    # Nanoseconds.
    total_duration: int
    load_duration: int
    prompt_eval_count: int


@route("/api/embed", uses=EMBEDDERS)
async def embed(exchange: Exchange, request: OllamaRequest) -> OllamaEmbeddings:
    """Vectors, in the shape of Ollama."""
    begun = perf_counter_ns()
    vectors = await request.vectors_of(exchange, request.input, True)
    return {
        "model": exchange.served.name,
        "embeddings": vectors,
        "total_duration": perf_counter_ns() - begun,
        "load_duration": 0,
        "prompt_eval_count": exchange.tokens,
    }

"""Requests for vectors, for the routes of every API: fields, prompts by role, texts that were cut."""

from collections.abc import Sequence
from typing import Annotated, Any, NotRequired

import numpy as np
from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict

from bertcli.files.texts import Text
from bertcli.serve.exchange import Exchange
from bertcli.serve.requests import Listed, Refusal, TruncatingRequest
from bertcli.serve.served import Served
from bertcli.tracing.dispatch import Array

EMBEDDERS = ("encode",)
PROMPTS = {"query": ("query",), "document": ("document", "passage"), "passage": ("passage", "document")}  # by role
Vector = Annotated[Any, WithJsonSchema({"type": "array", "items": {"type": "number"}})]  # an array of float32
TokenVectors = Annotated[
    Any, WithJsonSchema({"type": "array", "items": {"type": "array", "items": {"type": "number"}}})
]
Inputs = str | Listed[str] | Listed[int] | Listed[Listed[int]]


class CutText(TypedDict):
    """A text that was cut: its number, its tokens, and how many of them were read."""

    index: int
    tokens: int
    kept: int


class WithCuts(TypedDict):
    """Base of answers with a list of the texts that were cut, if any were."""

    truncated: NotRequired[list[CutText]]


class VectorRequest(TruncatingRequest):
    """A request for vectors."""

    prompt_name: str | None = Field(None, description="The model's prompt of this name is put before each text.")
    input_type: str | None = Field(
        None, description="query or document: which of the model's prompts is put before each text, if it has such."
    )
    truncate_prompt_tokens: int | None = Field(
        None, ge=-1, description="Cut texts to so many tokens; -1: as many as the model reads."
    )
    dimensions: int | None = Field(
        None, ge=1, description="Only so many numbers of each vector, normalized afterwards."
    )
    normalize: bool | None = Field(None, description="Scale vectors to length 1.")

    async def vectors_of(self, exchange: Exchange, inputs: Inputs, normalize: bool | None) -> list[Array]:
        """Each text's vector; `normalize` where the request leaves it open."""
        scaled = self.normalize if self.normalize is not None else self.dimensions is not None or normalize
        return await self.values_of(exchange, inputs, normalize=scaled, truncate_dim=self.dimensions)

    async def values_of(self, exchange: Exchange, inputs: Inputs, task: str = "encode", **options: Any) -> list[Any]:
        """What a task gives for each text: of encode a vector, with `pooling` "none" those of its tokens."""
        of_one_text = isinstance(inputs, list) and inputs and isinstance(inputs[0], int)
        texts = exchange.listed([inputs] if of_one_text else inputs)
        ids: list[list[int]] | None = None
        if not isinstance(texts[0], str):
            ids = texts
            if not exchange.service.limits.token_ids:
                why = "token ids of another vocabulary; in LangChain: check_embedding_ctx_length=False. Ids of this "
                raise Refusal(422, f"{why}model's own vocabulary need serve --token-ids.", "input", "token_ids")
            texts = [""] * len(ids)
        prompt = prompt_of(exchange.served, self.input_type) if self.prompt_name is None else self.prompt_name
        length = self.truncate_prompt_tokens
        made = [*map(Text, texts)]
        return await exchange.values(self, task, made, length=length, ids=ids, prompt_name=prompt, **options)


def prompt_of(served: Served, input_type: str | None) -> str | None:
    """The name of the model's prompt, or of its Router's route, for an `input_type` such as "search_query"."""
    role = (input_type or "").replace("_", ".").rpartition(".")[2].lower()  # search_query, retrieval.query
    if role == "query" and (served.sentence.late is not None or served.sentence.routed):
        return role
    return next((name for name in PROMPTS.get(role, ()) if name in served.sentence.prompts), None)


def cosines(one: Array, others: Sequence[Array]) -> list[float]:
    """The cosines of a vector with others; all must have length 1."""
    return [float(other.astype(np.float64) @ one) for other in others]

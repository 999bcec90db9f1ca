"""Fields and answers that the routes for vectors share, whatever their API; the routes are in `api/`."""

from collections.abc import Sequence
from typing import Annotated, Any, NotRequired

import numpy as np
from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict

from bertcli.files.texts import Text
from bertcli.folder.prompts import Role
from bertcli.report.digits import short
from bertcli.tracing.dispatch import Array
from bertcli.wings.serve.exchange import Exchange
from bertcli.wings.serve.requests import Listed, Refusal, TruncatingRequest, either
from bertcli.wings.serve.served_model import Served

# Uses of models that give vectors.
EMBEDDERS = ("encode",)
# The role of a text by the last word of an `input_type`: "search_query", "retrieval.query" or "query".
ROLES: dict[str, Role] = {"query": "query", "document": "document", "passage": "document"}
VECTOR_SCHEMA = {"type": "array", "items": {"type": "number"}}
# An array of float32, [hidden]; and [token, hidden].
Vector = Annotated[Any, WithJsonSchema(VECTOR_SCHEMA)]
TokenVectors = Annotated[Any, WithJsonSchema({"type": "array", "items": VECTOR_SCHEMA})]
# A text, texts, the token ids of a text, those of several.
Inputs = str | Listed[str] | Listed[int] | Listed[Listed[int]]
NO_TOKEN_IDS = (
    "The input is token ids, and this server takes texts (LangChain: check_embedding_ctx_length=False). "
    "If the ids are of this model's own vocabulary, start the server with --token-ids."
)


class CutText(TypedDict):
    """A text that was cut: its number, its tokens, and how many of them were read."""

    index: int
    tokens: int
    kept: int


class WithCuts(TypedDict):
    """Base of answers; they list the texts that were cut, if any were."""

    truncated: NotRequired[list[CutText]]


class PromptedRequest(TruncatingRequest):
    """A request about texts that may have one of the model's prompts before them."""

    prompt_name: str | None = Field(None, description="Put the model's prompt of this name before each text.")
    input_type: str | None = Field(
        None,
        description="query or document: put the model's prompt for it before each text, if the model has one.",
    )
    truncate_prompt_tokens: int | None = Field(
        None,
        ge=-1,
        validation_alias=either("truncate_prompt_tokens", "max_length"),
        description="Cut texts to this many tokens; -1: to the most that the model reads.",
    )

    async def values_of(self, exchange: Exchange, inputs: Inputs, task: str = "encode", **options: Any) -> list[Any]:
        """The task's result for each text: of encode a vector; with `pooling` "none" a vector for each token.

        Errors: Refusal for token ids, where the server takes none; those of `Exchange.values`.
        """
        is_one_texts_ids = isinstance(inputs, list) and inputs and isinstance(inputs[0], int)
        given = exchange.as_list([inputs] if is_one_texts_ids else inputs)
        if isinstance(given[0], str):
            ids = None
            texts = [Text(text) for text in given]
        else:
            # A client that sends ids has mostly tokenized with OpenAI's vocabulary, which would give wrong vectors.
            if not exchange.service.limits.token_ids:
                raise Refusal(422, NO_TOKEN_IDS, "input", "token_ids")
            ids = given
            texts = [Text("")] * len(given)
        prompt = self.prompt_name
        if prompt is None:
            prompt = prompt_of(exchange.served, self.input_type)
        length = self.truncate_prompt_tokens
        return await exchange.values(self, task, texts, length=length, ids=ids, prompt_name=prompt, **options)


class VectorRequest(PromptedRequest):
    """A request for vectors."""

    dimensions: int | None = Field(
        None,
        ge=1,
        validation_alias=either("dimensions", "truncate_dim"),
        description="Keep only this many numbers of each vector, then normalize.",
    )
    normalize: bool | None = Field(None, description="Scale vectors to length 1.")

    async def vectors_of(self, exchange: Exchange, inputs: Inputs, normalize: bool | None, **options: Any) -> list[Any]:
        """The vector of each text. normalize: for a request that does not say; None leaves it to the model.

        options: more options of encode.
        """
        if self.normalize is not None:
            normalize = self.normalize
        elif self.dimensions is not None:
            # The first numbers of a vector of length 1 have another length.
            normalize = True
        return await self.values_of(exchange, inputs, normalize=normalize, truncate_dim=self.dimensions, **options)


def prompt_of(served: Served, input_type: str | None) -> str | None:
    """The name of the model's prompt, or of its Router's route, for an `input_type`; None if it has none."""
    word = (input_type or "").replace("_", ".").rpartition(".")[2].lower()
    return served.kind.prompt_name(ROLES.get(word, "text"))


def cosines(one: Array, others: Sequence[Array]) -> list[float]:
    """The cosines of a vector with others, -1 to 1. All must have length 1, which float32 may exceed by a digit."""
    exact = [float(np.clip(other.astype(np.float64) @ one, -1, 1)) for other in others]
    written: list[float] = short(exact)
    return written

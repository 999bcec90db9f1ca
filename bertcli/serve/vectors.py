"""Routes that give vectors."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from time import perf_counter_ns
from typing import Any, Literal, TypedDict

import numpy as np

from bertcli.files.texts import Text
from bertcli.serve.fields import Refused, asked
from bertcli.serve.served import Served
from bertcli.serve.service import Answer, Ask, Asked, Reading, route
from bertcli.tracing.dispatch import Array

EMBEDDERS = ("encode",)
PROMPTS = {"query": ("query",), "document": ("document", "passage"), "passage": ("passage", "document")}  # by role


@dataclass(frozen=True, kw_only=True)
class Embedding(Reading):
    """A request for vectors, as OpenAI, text-embeddings-inference and Ollama have them."""

    input: str | list[str] | list[int] | list[list[int]] = asked("A text, or several.", MISSING, "inputs")
    prompt_name: str | None = asked("The model's prompt of this name is put before each text.", None)
    input_type: str | None = asked("query or document: which of the model's prompts, if it has such.", None)
    truncate_prompt_tokens: int | None = asked("Cut to so many tokens; -1: as many as the model reads.", None, least=-1)
    dimensions: int | None = asked("Only so many numbers of each vector, normalized afterwards.", None, least=1)
    normalize: bool | None = asked("Scale vectors to length 1.", None)
    encoding_format: Literal["float", "base64"] = asked("base64: float32, little-endian.", "float")

    async def vectors(self, ask: Ask, task: str = "encode", **options: Any) -> list[Any]:
        """What the task gives for each text: of encode a vector, with `pooling` "none" those of its tokens."""
        texts = listed(self.input)
        if not isinstance(texts[0], str):
            why = "token ids of another vocabulary; in LangChain: check_embedding_ctx_length=False"
            raise Refused(422, why, "input", "token_ids")
        own = prompt_of(ask.served, self.input_type) if self.prompt_name is None else self.prompt_name
        length = self.truncate_prompt_tokens
        return await ask.values(self, task, [*map(Text, texts)], length=length, prompt_name=own, **options)

    async def rows(self, ask: Ask, normalize: bool | None) -> Sequence[Any]:
        """Each text's vector in the form that is asked for; `normalize` where the request leaves it open."""
        wanted = self.normalize if self.normalize is not None else self.dimensions is not None or normalize
        vectors = await self.vectors(ask, normalize=wanted, truncate_dim=self.dimensions)
        if self.encoding_format == "float":
            return vectors
        return [b64encode(vector.astype("<f4").tobytes()).decode("ascii") for vector in vectors]


@route("/v1/embeddings", "/embeddings", uses=EMBEDDERS)
async def embeddings(ask: Ask, wanted: Embedding) -> Answer:
    """Vectors, as OpenAI gives them."""
    rows = await wanted.rows(ask, None)
    data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
    return {"object": "list", "data": data, "model": ask.served.name, "usage": ask.usage}


@route("/embed", uses=EMBEDDERS)
async def embed(ask: Ask, wanted: Embedding) -> Answer:
    """Vectors, as text-embeddings-inference gives them."""
    return await wanted.rows(ask, True)


@route("/api/embed", uses=EMBEDDERS)
async def ollama(ask: Ask, wanted: Embedding) -> Answer:
    """Vectors, as Ollama gives them."""
    begun, rows = perf_counter_ns(), await wanted.rows(ask, True)
    durations = {"total_duration": perf_counter_ns() - begun, "load_duration": 0}
    return {"model": ask.served.name, "embeddings": rows, **durations, "prompt_eval_count": ask.tokens}


@route("/embed_all", uses=("tokens",))
async def embed_all(ask: Ask, wanted: Embedding) -> Answer:
    """A vector for every token."""
    return await wanted.vectors(ask, pooling="none")


@route("/embed_sparse", uses=("encode-sparse",))
async def embed_sparse(ask: Ask, wanted: Embedding) -> Answer:
    """SPLADE's weights of the vocabulary's entries."""
    return [
        [{"index": i, "value": x} for i, x in zip(row.indices.tolist(), shortest(row.values), strict=True)]
        for row in await wanted.vectors(ask, "encode-sparse")
    ]


class Sentences(TypedDict):
    """A sentence, and those that it is compared with."""

    source_sentence: str
    sentences: list[str]


@dataclass(frozen=True, kw_only=True)
class Similarity(Asked):
    inputs: Sentences = asked("A sentence and others.")


@route("/similarity", uses=EMBEDDERS)
async def similarity(ask: Ask, wanted: Similarity) -> Answer:
    """The cosine of a sentence with each of others."""
    texts = [wanted.inputs["source_sentence"], *wanted.inputs["sentences"]]
    first, *others = await Embedding(input=texts).vectors(ask, normalize=True)
    return [float(other.astype(np.float64) @ first) for other in others]


def prompt_of(served: Served, input_type: str | None) -> str | None:
    """The name of the model's prompt, or of its way, for queries or documents, as clients call them; None for none."""
    role = (input_type or "").replace("_", ".").rpartition(".")[2].lower()  # search_query, retrieval.query
    if role == "query" and (served.own.late is not None or served.own.routed):
        return role
    return next((name for name in PROMPTS.get(role, ()) if name in served.own.prompts), None)


def listed(value: Any) -> list[Any]:
    """Several values, of which there may be a single one. Errors: Refused for none, or an empty text alone."""
    if value in ("", []):
        raise Refused(400, "There is no text: the input is empty.", code="empty")
    return value if isinstance(value, list) else [value]


def shortest(vectors: Array) -> list[Any]:
    """float32 as the numbers of fewest digits that are read back as the same, in lists within lists as the axes are.

    Those below 1e-13 and above 1e6 may have more than they need.
    """
    exact = vectors.astype(np.float64)
    # Times this power of ten, which is exact, a number has nine digits before its point. Nine are always enough, and no
    # fewer than six have to be tried: a number of five, rounded to six, is the same.
    nine = 10.0 ** np.clip(8 - np.floor(np.log10(np.maximum(np.abs(exact), 1e-30))), 3, 22)
    rounded = [np.rint(exact * scale) / scale for scale in (nine / 1000, nine / 100, nine / 10, nine)]
    return list(np.select([choice.astype(np.float32) == vectors for choice in rounded], rounded, exact).tolist())

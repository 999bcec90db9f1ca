"""Routes that give vectors."""

from base64 import b64encode
from dataclasses import dataclass, replace
from time import perf_counter_ns
from typing import Any, Literal

import numpy as np

from bertcli.engine.seam import Array
from bertcli.files.texts import Text
from bertcli.serve.ask import Ask
from bertcli.serve.fields import Refused, described
from bertcli.serve.served import Served

Answer = Any  # what json.dumps takes, and vectors of float32
MODEL = "The model's name; where it is not served, the first served model that fits answers."


@dataclass(frozen=True)
class Embedding:
    """A request for vectors, as OpenAI, text-embeddings-inference and Ollama have them."""

    input: str | list[str] | list[int] | list[list[int]] = described("A text, or several.", other=("inputs",))
    model: str | None = described(MODEL, None)
    prompt_name: str | None = described("The model's prompt of this name is put before each text.", None)
    input_type: str | None = described("query or document: which of the model's prompts, if it has such.", None)
    truncate: bool | None = described("Whether a text that is too long is cut, or refused.", None)
    truncation_direction: Literal["right", "left"] = described("Where it is cut: right, the end.", "right")
    truncate_prompt_tokens: int | None = described("Cut texts to so many tokens.", None, least=1)
    dimensions: int | None = described("Only so many numbers of each vector, normalized afterwards.", None, least=1)
    normalize: bool | None = described("Scale vectors to length 1.", None)
    encoding_format: Literal["float", "base64"] = described("base64: float32, little-endian.", "float")


async def vectors(ask: Ask, served: Served, wanted: Embedding, pooling: str | None = None) -> list[Any]:
    """The vector of each text, or with `pooling` "none" those of its tokens."""
    refuse_left(wanted.truncation_direction)
    options: dict[str, Any] = {"pooling": pooling}
    if wanted.normalize is not None or wanted.dimensions is not None:
        options["normalize"] = wanted.normalize if wanted.normalize is not None else True
    truncate = wanted.truncate
    if wanted.truncate_prompt_tokens is not None:
        options["max_length"], truncate = wanted.truncate_prompt_tokens, True
    name = wanted.prompt_name if wanted.prompt_name is not None else prompt_of(served, wanted.input_type)
    options |= {"prompt_name": name, "truncate_dim": wanted.dimensions}
    given = {key: value for key, value in options.items() if value is not None}
    return await ask.values(served, "embed", texts_of(wanted), given, truncate=truncate)


def refuse_left(direction: str) -> None:
    """Refuse a request to cut texts at their beginning."""
    if direction == "left":
        raise Refused(422, "This server cuts texts at their end (truncation_direction).", "truncation_direction")


def prompt_of(served: Served, role: str | None) -> str | None:
    """The name of the model's prompt for queries or documents, as clients call them; None if it has none such."""
    kind = (role or "").replace("_", ".").rpartition(".")[2].lower()  # search_query, retrieval.query
    names = {"query": ("query",), "document": ("document", "passage"), "passage": ("passage", "document")}.get(kind, ())
    return next((name for name in names if name in served.own.prompts), None)


def texts_of(wanted: Embedding) -> list[Text]:
    """The texts of a request. Errors: Refused for ids of tokens."""
    texts = listed(wanted.input)
    if any(not isinstance(text, str) for text in texts):
        why = "input holds token ids of another vocabulary; send texts (LangChain: check_embedding_ctx_length=False)."
        raise Refused(422, why, "input", "token_ids")
    return [Text(text) for text in texts]


async def embeddings(ask: Ask, served: Served, use: str, wanted: Embedding) -> Answer:
    data = [
        {"object": "embedding", "index": index, "embedding": _embedding(vector, wanted.encoding_format)}
        for index, vector in enumerate(await vectors(ask, served, wanted))
    ]
    return {"object": "list", "data": data, "model": served.name, "usage": usage(ask)}


async def embed(ask: Ask, served: Served, use: str, wanted: Embedding) -> Answer:
    wanted = replace(wanted, normalize=wanted.normalize is not False)
    return [_embedding(vector, wanted.encoding_format) for vector in await vectors(ask, served, wanted)]


async def ollama(ask: Ask, served: Served, use: str, wanted: Embedding) -> Answer:
    begun = perf_counter_ns()
    rows = await embed(ask, served, use, wanted)
    durations = {"total_duration": perf_counter_ns() - begun, "load_duration": 0}
    return {"model": served.name, "embeddings": rows, **durations, "prompt_eval_count": ask.tokens}


async def embed_all(ask: Ask, served: Served, use: str, wanted: Embedding) -> Answer:
    if served.own.late is not None and wanted.input_type is not None:
        role = "query" if wanted.input_type.lower().endswith("query") else "document"
        wanted = replace(wanted, prompt_name=role)
    return await vectors(ask, served, wanted, "none")


async def embed_sparse(ask: Ask, served: Served, use: str, wanted: Embedding) -> Answer:
    name = wanted.prompt_name if wanted.prompt_name is not None else prompt_of(served, wanted.input_type)
    options = {} if name is None else {"prompt_name": name}
    found = await ask.values(served, "sparse", texts_of(wanted), options, truncate=wanted.truncate)
    return [
        [{"index": i, "value": x} for i, x in zip(vector.indices.tolist(), shortest(vector.values), strict=True)]
        for vector in found
    ]


@dataclass(frozen=True)
class Sentences:
    source_sentence: str = described("The sentence that others are compared with.")
    sentences: list[str] = described("The others.")


@dataclass(frozen=True)
class Similarity:
    inputs: Sentences = described("A sentence and others.")
    model: str | None = described(MODEL, None)


async def similarity(ask: Ask, served: Served, use: str, wanted: Similarity) -> Answer:
    source, others = wanted.inputs.source_sentence, wanted.inputs.sentences
    found = np.stack(await vectors(ask, served, Embedding([source, *others], normalize=True)))
    return (found[1:].astype(np.float64) @ found[0]).tolist()


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


def _embedding(vector: Array, form: str) -> Any:
    return b64encode(vector.astype("<f4").tobytes()).decode("ascii") if form == "base64" else vector


def listed(value: Any) -> list[Any]:
    """Several values, of which there may be a single one. Errors: Refused for none, or an empty text alone."""
    if value in ("", []):
        raise Refused(400, "There is no text: the input is empty.", code="empty")
    return value if isinstance(value, list) else [value]


def usage(ask: Ask) -> dict[str, int]:
    return {"prompt_tokens": ask.tokens, "total_tokens": ask.tokens}

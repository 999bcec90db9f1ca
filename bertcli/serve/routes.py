"""What can be asked: each route with the fields it takes, the models it is for, and what makes its answer.

The forms are those that clients know: OpenAI's embeddings, Jina's and Cohere's rerank, text-embeddings-inference,
Ollama, and the pipelines of transformers, as `huggingface_hub.InferenceClient` asks for them.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from bertcli.serve.ask import Ask
from bertcli.serve.fields import Refused, described
from bertcli.serve.pipelines import Asked, predict, same_name, zero_shot
from bertcli.serve.rankings import Ranking, rerank, rerank_texts
from bertcli.serve.served import Served
from bertcli.serve.vectors import (
    MODEL,
    Answer,
    Embedding,
    Similarity,
    embed,
    embed_all,
    embed_sparse,
    embeddings,
    listed,
    ollama,
    similarity,
)


class Route(NamedTuple):
    """Paths, what they take, the uses of a model they are for (best first), what answers, and what it is, in words."""

    paths: tuple[str, ...]
    wanted: type[Any]
    uses: tuple[str, ...]
    answer: Callable[[Ask, Served, str, Any], Awaitable[Answer]]
    summary: str


@dataclass(frozen=True)
class Tokenize:
    inputs: str | list[str] = described("A text, or several.")
    model: str | None = described(MODEL, None)
    add_special_tokens: bool = described("Whether [CLS], [SEP] and their like are among them.", True)
    prompt_name: str | None = described("The model's prompt of this name is put before each text.", None)


@dataclass(frozen=True)
class Decode:
    ids: list[int] | list[list[int]] = described("Ids of the vocabulary, of one text or of several.")
    model: str | None = described(MODEL, None)
    skip_special_tokens: bool = described("Whether [CLS], [SEP] and their like are left out.", True)


async def tokenize(ask: Ask, served: Served, use: str, wanted: Tokenize) -> Answer:
    prompts = {"": "", **served.own.prompts}
    if (wanted.prompt_name or "") not in prompts:
        raise Refused(
            422, f"prompt_name: the model has no such prompt; it has {', '.join(served.own.prompts) or 'none'}."
        )
    prompt = prompts[wanted.prompt_name or ""]

    def tokens() -> Answer:
        return [
            [
                {"id": id, "text": piece, "special": side is None, "start": side and start, "stop": side and end}
                for id, piece, (start, end), side in zip(
                    every.ids, every.pieces, every.offsets, [None if one is None else True for one in every.sides],
                    strict=True,
                )
                if wanted.add_special_tokens or side
            ]
            for every in served.model.tokenizer.encode([prompt + text for text in listed(wanted.inputs)])
        ]  # fmt: skip

    return await ask.apart(tokens)


async def decode(ask: Ask, served: Served, use: str, wanted: Decode) -> Answer:
    tokenizer, ids = served.model.tokenizer, wanted.ids
    every: list[Any] = [*ids] if ids and isinstance(ids[0], list) else [ids]

    def texts() -> Answer:
        special = {tokenizer.special_id(role) for role in ("mask", "cls", "sep", "pad", "unk")}
        return [
            tokenizer.spelled([tokenizer.piece(id) for id in ids if not (wanted.skip_special_tokens and id in special)])
            for ids in every
        ]

    size = tokenizer.vocab_size
    if not all(0 <= id < size for ids in every for id in ids):
        raise Refused(422, f"ids: there are ids from 0 to {size - 1}.", "ids", "wrong_shape")
    return await ask.apart(texts)


# --------------------------------------------------------------------------------------------------------- all of them

EMBEDDERS, RANKERS = ("embed",), ("rank", "late", "embed")
ANYTHING = ("embed", "classify", "rank", "fill-mask", "tag", "answer", "late", "sparse")

ROUTES = (
    Route(("/v1/embeddings", "/embeddings"), Embedding, EMBEDDERS, embeddings, "Vectors, as OpenAI gives them."),
    Route(("/embed",), Embedding, EMBEDDERS, embed, "Vectors, as text-embeddings-inference gives them."),
    Route(("/embed_all",), Embedding, ("tokens",), embed_all, "A vector for every token."),
    Route(("/embed_sparse",), Embedding, ("sparse",), embed_sparse, "SPLADE's weights of the vocabulary's entries."),
    Route(("/api/embed",), Embedding, EMBEDDERS, ollama, "Vectors, as Ollama gives them."),
    Route(("/similarity",), Similarity, EMBEDDERS, similarity, "The cosine of a sentence with each of others."),
    Route(("/rerank",), Ranking, RANKERS, rerank_texts, "Texts, best first, as text-embeddings-inference ranks them."),
    Route(
        ("/v1/rerank", "/v2/rerank"), Ranking, RANKERS, rerank, "Documents, best first, as Jina and Cohere rank them."
    ),
    Route(
        ("/predict",), Asked, ("classify",), predict, "All labels, best first, as text-embeddings-inference has them."
    ),
    Route(("/classify",), Asked, ("classify",), same_name, "Labels, best first."),
    Route(("/zero-shot",), Asked, ("zero-shot",), zero_shot, "How far a text entails each of your labels."),
    Route(("/fill-mask",), Asked, ("fill-mask",), same_name, "Words for masks."),
    Route(("/score",), Asked, ("score",), same_name, "The log-probability of each token."),
    Route(("/tag",), Asked, ("tag",), same_name, "Entities, or tokens with labels."),
    Route(("/answer",), Asked, ("answer",), same_name, "Answers in a context."),
    Route(("/tokenize",), Tokenize, ANYTHING, tokenize, "The tokens of texts."),
    Route(("/decode",), Decode, ANYTHING, decode, "The texts of tokens."),
)


def route_at(path: str) -> Route:
    return next(route for route in ROUTES if path in route.paths)

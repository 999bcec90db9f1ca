"""What can be asked: each route with the fields it takes, the models it is for, and how its answer is made.

The forms are those that clients know: OpenAI's embeddings, Jina's and Cohere's rerank, text-embeddings-inference,
Ollama, and the pipelines of transformers, as `huggingface_hub.InferenceClient` asks for them.
"""

from base64 import b64encode
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, fields, replace
from time import perf_counter_ns
from typing import Any, Literal, NamedTuple
from uuid import uuid4

import numpy as np

from bertcli.engine.seam import Array
from bertcli.files.texts import Text
from bertcli.order import best_first
from bertcli.serve.ask import Ask
from bertcli.serve.fields import Refused, described
from bertcli.serve.served import TASKS, Served
from bertcli.tasks.compute.rank import LOGIT

Answer = Any  # what json.dumps takes
Role = Literal["query", "document"]
MODEL = "The model's name; where it is not served, the first served model that fits answers."


class Route(NamedTuple):
    """Paths, what they take, the uses of a model they are for (best first), what answers, and what it is, in words."""

    paths: tuple[str, ...]
    wanted: type[Any]
    uses: tuple[str, ...]
    answer: Callable[[Ask, Served, str, Any], Awaitable[Answer]]
    summary: str


# ------------------------------------------------------------------------------------------------------------ vectors


@dataclass(frozen=True)
class Embedding:
    """What all requests for vectors may say."""

    model: str | None = described(MODEL, None)
    prompt_name: str | None = described("The model's prompt of this name is put before each text.", None)
    input_type: str | None = described("query or document: which of the model's prompts, if it has such.", None)
    truncate: bool | None = described("Whether a text that is too long is cut, or refused.", None)
    truncation_direction: Literal["right", "left"] = described("Where it is cut: right, the end.", "right")
    truncate_prompt_tokens: int | None = described("Cut texts to so many tokens.", None, least=1)
    dimensions: int | None = described("Only so many numbers of each vector, normalized afterwards.", None, least=1)
    normalize: bool | None = described("Scale vectors to length 1.", None)
    encoding_format: Literal["float", "base64"] = described("base64: float32, little-endian.", "float")


@dataclass(frozen=True, kw_only=True)
class Embeddings(Embedding):
    """OpenAI's request."""

    input: str | list[str] | list[int] | list[list[int]] = described("A text, or several.")


@dataclass(frozen=True, kw_only=True)
class Embed(Embedding):
    """That of text-embeddings-inference."""

    inputs: str | list[str] = described("A text, or several.")


@dataclass(frozen=True)
class OllamaEmbed:
    """Ollama's."""

    input: str | list[str] = described("A text, or several.")
    model: str | None = described(MODEL, None)
    truncate: bool | None = described("Whether a text that is too long is cut, or refused.", None)
    dimensions: int | None = described("Only so many numbers of each vector, normalized afterwards.", None, least=1)


async def vectors(
    ask: Ask, served: Served, texts: Sequence[str], wanted: Embedding, pooling: str | None = None
) -> list[Any]:
    """The vector of each text, or with `pooling` "none" those of its tokens."""
    refuse_left(wanted.truncation_direction)
    options: dict[str, Any] = {"pooling": pooling}
    if wanted.normalize is not None or wanted.dimensions is not None:
        options["normalize"] = wanted.normalize if wanted.normalize is not None else True
    truncate = wanted.truncate
    if wanted.truncate_prompt_tokens is not None:
        options["max_length"], truncate = wanted.truncate_prompt_tokens, True
    name = wanted.prompt_name if wanted.prompt_name is not None else _prompt(served, wanted.input_type)
    options |= {"prompt_name": name, "truncate_dim": wanted.dimensions}
    given = {key: value for key, value in options.items() if value is not None}
    return await ask.values(served, "embed", [Text(text) for text in texts], given, truncate=truncate)


def refuse_left(direction: str) -> None:
    """Refuse a request to cut texts at their beginning."""
    if direction == "left":
        raise Refused(422, "This server cuts texts at their end (truncation_direction).", "truncation_direction")


def _prompt(served: Served, role: str | None) -> str | None:
    """The name of the model's prompt for queries or documents, as clients call them; None if it has none such."""
    kind = (role or "").replace("_", ".").rpartition(".")[2].lower()  # search_query, retrieval.query
    names = {"query": ("query",), "document": ("document", "passage"), "passage": ("passage", "document")}.get(kind, ())
    return next((name for name in names if name in served.own.prompts), None)


async def embeddings(ask: Ask, served: Served, use: str, wanted: Embeddings) -> Answer:
    texts = listed(wanted.input)
    if any(not isinstance(text, str) for text in texts):
        why = (
            "input holds token ids of another vocabulary; send texts (in LangChain: check_embedding_ctx_length=False)."
        )
        raise Refused(422, why, "input", "token_ids")
    found = await vectors(ask, served, texts, wanted)
    data = [
        {"object": "embedding", "index": index, "embedding": _embedding(vector, wanted.encoding_format)}
        for index, vector in enumerate(found)
    ]
    return {"object": "list", "data": data, "model": served.name, "usage": usage(ask)}


async def embed(ask: Ask, served: Served, use: str, wanted: Embed) -> Answer:
    normalize = True if wanted.normalize is None else wanted.normalize
    found = await vectors(ask, served, listed(wanted.inputs), replace(wanted, normalize=normalize))
    return [_embedding(vector, wanted.encoding_format) for vector in found]


async def embed_all(ask: Ask, served: Served, use: str, wanted: Embed) -> Answer:
    name = wanted.prompt_name
    if served.own.late is not None and wanted.input_type is not None:
        name = "query" if wanted.input_type.lower().endswith("query") else "document"
    found = await vectors(ask, served, listed(wanted.inputs), replace(wanted, prompt_name=name), pooling="none")
    return [[shortest(vector) for vector in of_text] for of_text in found]


async def embed_sparse(ask: Ask, served: Served, use: str, wanted: Embed) -> Answer:
    name = wanted.prompt_name if wanted.prompt_name is not None else _prompt(served, wanted.input_type)
    options = {} if name is None else {"prompt_name": name}
    texts = [Text(text) for text in listed(wanted.inputs)]
    found = await ask.values(served, "sparse", texts, options, truncate=wanted.truncate)
    return [
        [
            {"index": index, "value": value}
            for index, value in zip(vector.indices.tolist(), shortest(vector.values), strict=True)
        ]
        for vector in found
    ]


async def ollama(ask: Ask, served: Served, use: str, wanted: OllamaEmbed) -> Answer:
    options = Embed(inputs=wanted.input, truncate=wanted.truncate, dimensions=wanted.dimensions, normalize=True)
    begun = perf_counter_ns()
    found = await vectors(ask, served, listed(wanted.input), options)
    return {
        "model": served.name,
        "embeddings": [shortest(vector) for vector in found],
        "total_duration": perf_counter_ns() - begun,
        "load_duration": 0,
        "prompt_eval_count": ask.tokens,
    }


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
    found = np.stack(await vectors(ask, served, [source, *others], Embed(inputs=source, normalize=True)))
    return (found[1:].astype(np.float64) @ found[0]).tolist()


def shortest(vector: Array) -> list[float]:
    """float32 as the numbers with the fewest decimals that are nearest to them."""
    return list(map(float, vector.astype("U")))


def _embedding(vector: Array, form: str) -> Any:
    return b64encode(vector.astype("<f4").tobytes()).decode("ascii") if form == "base64" else shortest(vector)


def listed(value: Any) -> list[Any]:
    """Several values, of which there may be a single one. Errors: Refused for none, or an empty text alone."""
    if value in ("", []):
        raise Refused(400, "There is no text: the input is empty.", code="empty")
    return value if isinstance(value, list) else [value]


def usage(ask: Ask) -> dict[str, int]:
    return {"prompt_tokens": ask.tokens, "total_tokens": ask.tokens}


# ------------------------------------------------------------------------------------------------------------ rankings


@dataclass(frozen=True)
class Document:
    text: str = described("The document.")


@dataclass(frozen=True)
class Ranking:
    """What both kinds of rerank may say."""

    query: str = described("What documents are ranked for.")
    model: str | None = described(MODEL, None)
    top_n: int | None = described("Only so many of the best.", None, least=1)
    raw_scores: bool = described("The model's numbers as they are, not between 0 and 1.", False)
    truncate: bool | None = described("Whether a text that is too long is cut, or refused.", None)
    truncation_direction: Literal["right", "left"] = described("Where it is cut: right, the end.", "right")
    max_tokens_per_doc: int | None = described("Cut query and document to so many tokens.", None, least=3)


@dataclass(frozen=True, kw_only=True)
class Rerank(Ranking):
    """Jina's and Cohere's request."""

    documents: list[str | Document] = described("The documents.")
    return_documents: bool = described("Whether the answer has the documents' texts.", False)


@dataclass(frozen=True, kw_only=True)
class RerankTexts(Ranking):
    """That of text-embeddings-inference; with documents in place of texts it is Jina's."""

    texts: list[str] | None = described("The documents.", None)
    documents: list[str | Document] | None = described("The documents, as Jina's clients call them.", None)
    return_text: bool = described("Whether the answer has the documents' texts.", False)
    return_documents: bool = described("The same, as Jina's clients call it.", False)


async def rerank(ask: Ask, served: Served, use: str, wanted: Rerank) -> Answer:
    documents = [one if isinstance(one, str) else one.text for one in wanted.documents]
    scores, best = await ranked(ask, served, use, wanted, documents)
    results: list[dict[str, Any]] = [{"index": index, "relevance_score": scores[index]} for index in best]
    if wanted.return_documents:
        results = [{**result, "document": {"text": documents[result["index"]]}} for result in results]
    meta = {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}}
    return {"id": str(uuid4()), "model": served.name, "results": results, "usage": usage(ask), "meta": meta}


async def rerank_texts(ask: Ask, served: Served, use: str, wanted: RerankTexts) -> Answer:
    if wanted.documents is not None:
        shared = {item.name: getattr(wanted, item.name) for item in fields(Ranking)}
        documents = wanted.documents
        return await rerank(
            ask, served, use, Rerank(**shared, documents=documents, return_documents=wanted.return_documents)
        )
    if wanted.texts is None:
        raise Refused(422, "texts is missing.", "texts", "missing")
    scores, best = await ranked(ask, served, use, wanted, wanted.texts)
    results = [{"index": index, "score": scores[index]} for index in best]
    return (
        [{**result, "text": wanted.texts[int(result["index"])]} for result in results]
        if wanted.return_text
        else results
    )


async def ranked(
    ask: Ask, served: Served, use: str, wanted: Ranking, documents: Sequence[str]
) -> tuple[list[float], list[int]]:
    """Each document's score, and their numbers, best first; of equal ones the earlier first.

    A cross-encoder's logit, as a sigmoid; in late interaction the mean, over the query's tokens, of the largest cosine
    with one of the document; else the cosine of query and document. Cosines below 0 are 0. raw_scores: as they are.
    """
    refuse_left(wanted.truncation_direction)
    listed(wanted.query)
    listed([*documents])
    truncate, limits = wanted.truncate, dict[str, Any]()
    if wanted.max_tokens_per_doc is not None:
        truncate, limits = True, {"max_length": wanted.max_tokens_per_doc}
    if use == "rank":
        texts = [Text(wanted.query, document) for document in documents]
        records = await ask.values(served, "rank", texts, limits, truncate=truncate)
        numbers = np.array([record[LOGIT] for record in records])
        shown = numbers if wanted.raw_scores else 1 / (1 + np.exp(-numbers))
    else:
        numbers = await _cosines(ask, served, use, wanted.query, documents, truncate, limits)
        shown = numbers if wanted.raw_scores else np.maximum(numbers, 0)
    return shown.tolist(), [int(index) for index in best_first(numbers, wanted.top_n)]


async def _cosines(
    ask: Ask,
    served: Served,
    use: str,
    query: str,
    documents: Sequence[str],
    truncate: bool | None,
    limits: dict[str, Any],
) -> Any:
    options: dict[str, Any] = {"pooling": "none"} if use == "late" else {"normalize": True}

    async def found(texts: Sequence[str], role: str, reported: bool, **more: Any) -> list[Any]:
        name = role if use == "late" else _prompt(served, role)
        prompt = {} if name is None else {"prompt_name": name}
        every = [Text(text) for text in texts]
        return await ask.values(
            served, "embed", every, {**options, **prompt, **more}, truncate=truncate, reported=reported
        )

    (asked,) = await found([query], "query", False)
    rows = await found(documents, "document", True, **limits)
    if use == "late":
        return np.array([(asked @ row.T).max(axis=1).mean(dtype=np.float64) if len(row) else 0.0 for row in rows])
    return np.stack(rows).astype(np.float64) @ asked


# -------------------------------------------------------------------------------------------------------------- tokens


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


# ------------------------------------------------------------------------------------------- the pipelines' tasks


@dataclass(frozen=True)
class Asked:
    """Texts, and the options of the command of that name, as Python or transformers call them."""

    inputs: str | list[str] | dict[str, Any] | list[dict[str, Any]] | list[list[str]] | list[list[list[str]]] = (
        described("A text, or several; {question, context} for answer, {text, text_pair} for a pair.")
    )
    parameters: dict[str, Any] | None = described("Options of the command.", None)
    model: str | None = described(MODEL, None)
    raw_scores: bool = described("The numbers before the softmax or sigmoid.", False)
    truncate: bool | None = described("Whether a text that is too long is cut, or refused.", None)


SYNONYMS = {  # what transformers' pipelines call our options
    "candidate_labels": "candidates", "hypothesis_template": "template", "function_to_apply": "activation",
    "aggregation_strategy": "aggregation", "ignore_labels": "ignore", "max_answer_len": "max_answer_length",
    "handle_impossible_answer": "no_answer", "doc_stride": "stride", "max_seq_len": "max_length",
}  # fmt: skip
OURS = {"keep_going", "workers", "batch_tokens", "truncation", "pairs", "contexts", "choices"}  # not a request's


def options_of(task: str, wanted: Asked) -> dict[str, Any]:
    """The task's options that a request gives; others, and null, are ignored."""
    names = {item.name for item in fields(TASKS[task][1]) if item.init} - OURS
    given = {SYNONYMS.get(name, name): value for name, value in (wanted.parameters or {}).items() if value is not None}
    options = {
        name: tuple(value) if isinstance(value, list) else value for name, value in given.items() if name in names
    }
    return {**options, "activation": "none"} if wanted.raw_scores and "activation" in names else options


def texts_of(inputs: Any) -> tuple[list[Text], bool]:
    """The texts, perhaps with second ones, and whether there is a single one that is no list."""
    single = not isinstance(inputs, list)
    values = listed(inputs)
    texts = []
    for index, value in enumerate(values):
        if isinstance(value, dict):
            first, second = value.get("text", value.get("question")), value.get("text_pair", value.get("context"))
        else:
            first, second = (value, None) if isinstance(value, str) else (*value, None, None)[:2]
        if (
            not isinstance(first, str)
            or not isinstance(second, str | None)
            or (isinstance(value, list) and len(value) > 2)
        ):
            raise Refused(422, f"inputs[{index}] is neither a text nor a pair of texts.", "inputs", "wrong_shape")
        texts.append(Text(first, second))
    return texts, single


async def _records(ask: Ask, served: Served, task: str, wanted: Asked) -> tuple[list[dict[str, Any]], bool]:
    texts, single = texts_of(wanted.inputs)
    records = await ask.values(served, task, texts, options_of(task, wanted), truncate=wanted.truncate)
    return records, single


def _one(values: list[Any], single: bool) -> Answer:
    return values[0] if single else values


async def fill_mask(ask: Ask, served: Served, use: str, wanted: Asked) -> Answer:
    records, single = await _records(ask, served, "fill-mask", wanted)
    return _one([_one([mask["predictions"] for mask in r["masks"]], len(r["masks"]) == 1) for r in records], single)


async def tag(ask: Ask, served: Served, use: str, wanted: Asked) -> Answer:
    records, single = await _records(ask, served, "tag", wanted)
    return _one([record["entities"] for record in records], single)


async def answer(ask: Ask, served: Served, use: str, wanted: Asked) -> Answer:
    records, single = await _records(ask, served, "answer", wanted)
    several = int((wanted.parameters or {}).get("top_k") or 1) > 1
    return _one([record["answers"] if several else record["answers"][0] for record in records], single)


async def classify(ask: Ask, served: Served, use: str, wanted: Asked) -> Answer:
    if (wanted.parameters or {}).get("candidate_labels", (wanted.parameters or {}).get("candidates")) is not None:
        return await zero_shot(ask, served, use, wanted)
    records, single = await _records(ask, served, "classify", wanted)
    return _one([record["labels"] for record in records], single)


async def predict(ask: Ask, served: Served, use: str, wanted: Asked) -> Answer:
    """As text-embeddings-inference has it: a list of two texts is a pair."""
    inputs = wanted.inputs
    if isinstance(inputs, list) and len(inputs) == 2 and all(isinstance(text, str) for text in inputs):
        return await classify(ask, served, use, replace(wanted, inputs={"text": inputs[0], "text_pair": inputs[1]}))
    return await classify(ask, served, use, wanted)


async def zero_shot(ask: Ask, served: Served, use: str, wanted: Asked) -> Answer:
    if "candidates" not in options_of("classify", wanted):
        raise Refused(422, "parameters.candidate_labels is missing.", "parameters.candidate_labels", "missing")
    records, single = await _records(ask, served, "classify", wanted)
    shaped = [
        {
            "sequence": record["text"],
            "labels": [label["label"] for label in record["labels"]],
            "scores": [label["score"] for label in record["labels"]],
        }
        for record in records
    ]
    return _one(shaped, single)


async def score(ask: Ask, served: Served, use: str, wanted: Asked) -> Answer:
    records, single = await _records(ask, served, "score", wanted)
    return _one(records, single)


# --------------------------------------------------------------------------------------------------------- all of them

EMBEDDERS, RANKERS = ("embed",), ("rank", "late", "embed")
ANYTHING = ("embed", "classify", "rank", "fill-mask", "tag", "answer", "late", "sparse")

ROUTES = (
    Route(("/v1/embeddings", "/embeddings"), Embeddings, EMBEDDERS, embeddings, "Vectors, as OpenAI gives them."),
    Route(("/embed",), Embed, EMBEDDERS, embed, "Vectors, as text-embeddings-inference gives them."),
    Route(("/embed_all",), Embed, ("tokens",), embed_all, "A vector for every token."),
    Route(("/embed_sparse",), Embed, ("sparse",), embed_sparse, "SPLADE's weights of the vocabulary's entries."),
    Route(("/api/embed",), OllamaEmbed, EMBEDDERS, ollama, "Vectors, as Ollama gives them."),
    Route(("/similarity",), Similarity, EMBEDDERS, similarity, "The cosine of a sentence with each of others."),
    Route(
        ("/rerank",), RerankTexts, RANKERS, rerank_texts, "Texts, best first, as text-embeddings-inference ranks them."
    ),
    Route(
        ("/v1/rerank", "/v2/rerank"), Rerank, RANKERS, rerank, "Documents, best first, as Jina and Cohere rank them."
    ),
    Route(
        ("/predict",), Asked, ("classify",), predict, "All labels, best first, as text-embeddings-inference has them."
    ),
    Route(("/classify",), Asked, ("classify",), classify, "Labels, best first."),
    Route(("/zero-shot",), Asked, ("zero-shot",), zero_shot, "How far a text entails each of your labels."),
    Route(("/fill-mask",), Asked, ("fill-mask",), fill_mask, "Words for masks."),
    Route(("/score",), Asked, ("score",), score, "The log-probability of each token."),
    Route(("/tag",), Asked, ("tag",), tag, "Entities, or tokens with labels."),
    Route(("/answer",), Asked, ("answer",), answer, "Answers in a context."),
    Route(("/tokenize",), Tokenize, ANYTHING, tokenize, "The tokens of texts."),
    Route(("/decode",), Decode, ANYTHING, decode, "The texts of tokens."),
)
PIPELINES = {  # the tasks of `huggingface_hub.InferenceClient`, with the routes that answer them
    "feature-extraction": "/embed", "sentence-similarity": "/similarity", "text-classification": "/predict",
    "zero-shot-classification": "/zero-shot", "fill-mask": "/fill-mask", "token-classification": "/tag",
    "question-answering": "/answer", "text-ranking": "/rerank",
}  # fmt: skip
OF_USE = {
    "embed": "feature-extraction", "classify": "text-classification", "rank": "text-classification",
    "fill-mask": "fill-mask", "tag": "token-classification", "answer": "question-answering",
}  # fmt: skip


def route_at(path: str) -> Route:
    return next(route for route in ROUTES if path in route.paths)


def pipeline_of(body: dict[str, Any], served: Served) -> str:
    """Which task a request is for that names none: what it holds tells, or else what the model was made for."""
    inputs, parameters = body.get("inputs"), body.get("parameters")
    if isinstance(parameters, dict) and parameters.get("candidate_labels") is not None:
        return "zero-shot-classification"
    if isinstance(inputs, dict) and "source_sentence" in inputs:
        return "sentence-similarity"
    if isinstance(inputs, dict) and "question" in inputs:
        return "question-answering"
    use = next((use for use in served.uses if use in OF_USE), None)
    if use is None:
        raise Refused(422, served.refusal("a task of transformers' pipelines"), code="wrong_model")
    return OF_USE[use]


def as_pipeline(task: str, answer: Answer) -> Answer:
    """An answer as InferenceClient parses it: a classifier's in one list more, a candidate with its score."""
    if task == "text-classification":
        return answer if answer and isinstance(answer[0], list) else [answer]
    if task == "zero-shot-classification" and isinstance(answer, dict):
        pairs = zip(answer["labels"], answer["scores"], strict=True)
        return [{"label": label, "score": score} for label, score in pairs]
    return answer

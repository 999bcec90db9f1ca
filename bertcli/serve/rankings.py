"""Routes that rank documents for a query."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import uuid4

import numpy as np

from bertcli.files.texts import Text
from bertcli.order import best_first
from bertcli.serve.ask import Ask
from bertcli.serve.fields import described
from bertcli.serve.served import Served
from bertcli.serve.vectors import MODEL, Answer, listed, prompt_of, refuse_left, usage
from bertcli.tasks.compute.rank import LOGIT


@dataclass(frozen=True)
class Document:
    text: str = described("The document.")


@dataclass(frozen=True)
class Ranking:
    """A request to rank documents, as Jina, Cohere and text-embeddings-inference have it."""

    query: str = described("What documents are ranked for.")
    documents: list[str | Document] = described("The documents.", other=("texts",))
    model: str | None = described(MODEL, None)
    top_n: int | None = described("Only so many of the best.", None, least=1)
    return_documents: bool = described("Whether the answer has the documents' texts.", False, other=("return_text",))
    raw_scores: bool = described("The model's numbers as they are, not between 0 and 1.", False)
    truncate: bool | None = described("Whether a text that is too long is cut, or refused.", None)
    truncation_direction: Literal["right", "left"] = described("Where it is cut: right, the end.", "right")
    max_tokens_per_doc: int | None = described("Cut query and document to so many tokens.", None, least=3)

    @property
    def texts(self) -> list[str]:
        """The documents' texts."""
        return [one if isinstance(one, str) else one.text for one in self.documents]


async def rerank(ask: Ask, served: Served, use: str, wanted: Ranking) -> Answer:
    scores, best = await ranked(ask, served, use, wanted, wanted.texts)
    results: list[dict[str, Any]] = [{"index": index, "relevance_score": scores[index]} for index in best]
    if wanted.return_documents:
        results = [{**result, "document": {"text": wanted.texts[result["index"]]}} for result in results]
    meta = {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}}
    return {"id": str(uuid4()), "model": served.name, "results": results, "usage": usage(ask), "meta": meta}


async def rerank_texts(ask: Ask, served: Served, use: str, wanted: Ranking) -> Answer:
    scores, best = await ranked(ask, served, use, wanted, wanted.texts)
    results: list[dict[str, Any]] = [{"index": index, "score": scores[index]} for index in best]
    return [{**one, "text": wanted.texts[one["index"]]} for one in results] if wanted.return_documents else results


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
        name = role if use == "late" else prompt_of(served, role)
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

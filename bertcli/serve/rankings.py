"""Routes that rank documents for a query."""

from dataclasses import MISSING, dataclass
from typing import Any, TypedDict
from uuid import uuid4

import numpy as np

from bertcli.files.texts import Text
from bertcli.order import best_first
from bertcli.serve.fields import asked
from bertcli.serve.service import Answer, Ask, Reading, route
from bertcli.serve.vectors import listed, prompt_of
from bertcli.tasks.compute.batches import Numbers
from bertcli.tasks.compute.rank import LOGIT
from bertcli.tasks.compute.scores import sigmoid

RANKERS = {"rank": "cross-encoder", "late": "late interaction", "encode": "cosine"}  # the uses that can, best first


class Document(TypedDict):
    """A document."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Ranking(Reading):
    """A request to rank documents, as Jina, Cohere and text-embeddings-inference have it."""

    query: str = asked("What documents are ranked for.")
    documents: list[str | Document] = asked("The documents.", MISSING, "texts")
    top_n: int | None = asked("Only so many of the best.", None, least=1)
    return_documents: bool = asked("Whether the answer has the documents' texts.", False, "return_text")
    raw_scores: bool = asked("The model's numbers as they are, not between 0 and 1.", False)
    max_tokens_per_doc: int | None = asked("Cut query and document to so many tokens.", None, least=3)

    async def ranked(self, ask: Ask) -> list[tuple[int, float, str]]:
        """Each document's number, score and text, best first; of equal ones the earlier first.

        A cross-encoder's logit, as a sigmoid; in late interaction the mean, over the query's tokens, of the largest
        cosine with one of the document; else the cosine of query and document. Cosines below 0 are 0. raw_scores: as
        they are.
        """
        listed(self.query)
        texts = [one if isinstance(one, str) else one["text"] for one in listed(self.documents)]
        numbers = await (self._logits(ask, texts) if ask.use == "rank" else self._cosines(ask, texts))
        scores = sigmoid(numbers) if ask.use == "rank" else np.clip(numbers, 0, 1)
        shown = (numbers if self.raw_scores else scores).tolist()
        return [(int(index), shown[index], texts[index]) for index in best_first(numbers, self.top_n)]

    async def _logits(self, ask: Ask, texts: list[str]) -> Numbers:
        pairs = [Text(self.query, text) for text in texts]
        records = await ask.values(self, "rank", pairs, length=self.max_tokens_per_doc)
        return np.array([record[LOGIT] for record in records])

    async def _cosines(self, ask: Ask, texts: list[str]) -> Numbers:
        async def found(texts: list[str], role: str, **more: Any) -> list[Any]:
            form: Any = {"pooling": "none"} if ask.use == "late" else {"normalize": True}
            name = prompt_of(ask.served, role)
            return await ask.values(self, "encode", [*map(Text, texts)], prompt_name=name, **form, **more)

        (query,) = await found([self.query], "query", reported=False)
        rows = await found(texts, "document", length=self.max_tokens_per_doc)
        if ask.use == "late":
            return np.array([(query @ row.T).max(axis=1).mean(dtype=np.float64) if len(row) else 0.0 for row in rows])
        return np.array([row.astype(np.float64) @ query for row in rows])


@route("/v1/rerank", "/v2/rerank", uses=(*RANKERS,))
async def rerank(ask: Ask, wanted: Ranking) -> Answer:
    """Documents, best first, as Jina and Cohere rank them."""
    results: list[Answer] = [
        {"index": index, "relevance_score": score, **({"document": {"text": text}} if wanted.return_documents else {})}
        for index, score, text in await wanted.ranked(ask)
    ]
    meta = {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}}
    return {"id": str(uuid4()), "model": ask.served.name, "results": results, "usage": ask.usage, "meta": meta}


@route("/rerank", uses=(*RANKERS,))
async def rerank_texts(ask: Ask, wanted: Ranking) -> Answer:
    """Texts, best first, as text-embeddings-inference ranks them."""
    if "documents" in ask.body:  # Jina's clients ask there, too
        return await rerank(ask, wanted)
    return [
        {"index": index, "score": score, **({"text": text} if wanted.return_documents else {})}
        for index, score, text in await wanted.ranked(ask)
    ]

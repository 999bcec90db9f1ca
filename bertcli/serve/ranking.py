"""Requests to rank documents, for the routes of every API: fields, the kind of model, the scores."""

from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from bertcli.files.texts import Text
from bertcli.ranking import best_first
from bertcli.serve.embedding import prompt_of
from bertcli.serve.exchange import Exchange
from bertcli.serve.requests import Listed, TruncatingRequest, either
from bertcli.tasks.compute.batches import Numbers
from bertcli.tasks.compute.rank import LOGIT
from bertcli.tasks.compute.scores import sigmoid

RANKERS = {"rank": "cross-encoder", "late": "late interaction", "encode": "cosine"}  # the uses that can, best first


class RerankDocument(BaseModel):
    """A document of a rerank request."""

    model_config = ConfigDict(strict=True, frozen=True)
    text: str


Documents = Listed[str | RerankDocument]


class RankingRequest(TruncatingRequest):
    """A request to rank documents."""

    query: str = Field(description="What documents are ranked for.")
    documents: Documents = Field(validation_alias=either("documents", "texts"), description="The documents.")
    top_n: int | None = Field(None, ge=1, description="Only so many of the best.")
    return_documents: bool = Field(
        False, validation_alias=either("return_documents", "return_text"),
        description="Whether the answer has the documents' texts.",
    )  # fmt: skip
    raw_scores: bool = Field(False, description="The model's numbers as they are, not between 0 and 1.")
    combine: dict[str, float] | None = Field(
        None, description='Of bge-m3: weights of its scores, as in {"dense": 0.4, "sparse": 0.2, "late": 0.4}.'
    )
    max_tokens_per_doc: int | None = Field(None, ge=3, description="Cut query and document to so many tokens.")

    async def ranked(self, exchange: Exchange) -> list[tuple[int, float, str]]:
        """Each document's number, score and text, best first; of equal ones the earlier first.

        A cross-encoder's logit, as a sigmoid; in late interaction the mean, over the query's tokens, of the largest
        cosine with one of the document; else the cosine of query and document. Cosines below 0 are 0. raw_scores: as
        they are. combine: the mean of bge-m3's scores, within 0 and 1, too, unless they are asked for raw.
        """
        exchange.listed(self.query)
        texts = [one if isinstance(one, str) else one.text for one in exchange.listed(self.documents)]
        crossed = exchange.use == "rank"
        asked = crossed or self.combine is not None
        numbers = await (self._logits(exchange, texts) if asked else self._cosines(exchange, texts))
        scores = sigmoid(numbers) if crossed else np.clip(numbers, 0, 1)
        given = (numbers if self.raw_scores else scores).tolist()
        return [(int(index), given[index], texts[index]) for index in best_first(numbers, self.top_n)]

    async def _logits(self, exchange: Exchange, texts: list[str]) -> Numbers:
        pairs = [Text(self.query, text) for text in texts]
        form: dict[str, Any] = {} if self.combine is None else {"combine": self.combine}
        records = await exchange.values(self, "rank", pairs, length=self.max_tokens_per_doc, **form)
        return np.array([record[LOGIT] for record in records])

    async def _cosines(self, exchange: Exchange, texts: list[str]) -> Numbers:
        late = exchange.use == "late"
        form: dict[str, Any] = {"pooling": "none"} if late else {"normalize": True}
        (query,) = await exchange.values(
            self, "encode", [Text(self.query)], prompt_name=prompt_of(exchange.served, "query"), reported=False, **form
        )
        rows = await exchange.values(
            self, "encode", [*map(Text, texts)], prompt_name=prompt_of(exchange.served, "document"),
            length=self.max_tokens_per_doc, **form,
        )  # fmt: skip

        def compared() -> Numbers:
            if not late:
                return np.array([row.astype(np.float64) @ query for row in rows])
            return np.array([(query @ row.T).max(axis=1).mean(dtype=np.float64) if len(row) else 0.0 for row in rows])

        return await exchange.in_thread(compared)

"""Fields and scores that the routes for ranking share, whatever their API; the routes are in `api/`."""

from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from bertcli.engine.pauses import check_wanted
from bertcli.files.texts import Text
from bertcli.ranking import best_first
from bertcli.report.digits import short
from bertcli.tasks.compute.rank import LOGIT
from bertcli.tasks.parts.scores import sigmoid
from bertcli.tasks.running.batches import Numbers
from bertcli.tracing.dispatch import Array
from bertcli.wings.serve.embedding import prompt_of
from bertcli.wings.serve.exchange import Exchange
from bertcli.wings.serve.requests import Listed, Refusal, TruncatingRequest, either

# Uses of models that can rank, best first, with the words of /info for how they do.
RANKERS = {"rank": "cross-encoder", "late": "late interaction", "encode": "cosine"}


class RerankDocument(BaseModel):
    """A document of a rerank request."""

    model_config = ConfigDict(strict=True, frozen=True)
    text: str


Documents = Listed[str | RerankDocument]


class RankedDocument(NamedTuple):
    """A document in a ranking. document: its index in the request."""

    document: int
    score: float
    text: str


class RankingRequest(TruncatingRequest):
    """A request to rank documents."""

    query: str = Field(description="The query for which the documents are ranked.")
    documents: Documents = Field(validation_alias=either("documents", "texts"), description="The documents.")
    top_n: int | None = Field(
        None,
        ge=1,
        validation_alias=either("top_n", "top_k"),
        description="Return only this many documents, the best.",
    )
    return_documents: bool = Field(
        False, validation_alias=either("return_documents", "return_text"),
        description="Return the documents' texts, too.",
    )  # fmt: skip
    raw_scores: bool = Field(
        False,
        description="Return the model's own scores (logits, cosines), not numbers between 0 and 1.",
    )
    max_tokens_per_doc: int | None = Field(
        None,
        ge=3,
        validation_alias=either("max_tokens_per_doc", "max_length"),
        description="Cut each document to this many tokens; for a cross-encoder they include the query's.",
    )

    async def ranked(self, exchange: Exchange) -> list[RankedDocument]:
        """Rank the documents, best first; of equal ones the earlier comes first.

        The score of a cross-encoder is the sigmoid of its logit; of a late-interaction model the mean over the query's
        tokens of the largest cosine with a token of the document; of other models the cosine of query and document.
        Cosines are clipped to 0 to 1. raw_scores: neither sigmoid nor clipping.
        """
        if not self.query:
            raise Refusal(400, "The query is empty: send a text.", "query", "empty")
        documents = exchange.as_list(self.documents)
        texts = [one if isinstance(one, str) else one.text for one in documents]
        is_cross_encoder = exchange.use == "rank"
        if is_cross_encoder:
            raw = await self._pair_scores(exchange, texts)
        else:
            raw = await self._cosines(exchange, texts)
        if self.raw_scores:
            scores = raw
        elif is_cross_encoder:
            scores = sigmoid(raw)
        else:
            scores = np.clip(raw, 0, 1)
        # By the raw scores, of which several may be clipped to the same number.
        order = best_first(raw, self.top_n)
        return [RankedDocument(int(index), short(float(scores[index])), texts[index]) for index in order]

    async def _pair_scores(self, exchange: Exchange, texts: list[str]) -> Numbers:
        """The scores of the task rank, which reads query and document together: [document]."""
        pairs = [Text(self.query, text) for text in texts]
        records = await exchange.values(self, "rank", pairs, length=self.max_tokens_per_doc)
        return np.array([record[LOGIT] for record in records])

    async def _cosines(self, exchange: Exchange, texts: list[str]) -> Numbers:
        """The cosine of each document with the query, by tokens in late interaction: [document]."""
        late = exchange.use == "late"
        options: dict[str, Any] = {"pooling": "none"} if late else {"normalize": True}
        # A query that was cut is not reported, since cuts are listed by the documents' indices.
        (query,) = await exchange.values(
            self,
            "encode",
            [Text(self.query)],
            prompt_name=prompt_of(exchange.served, "query"),
            reported=False,
            **options,
        )
        rows = await exchange.values(
            self,
            "encode",
            [Text(text) for text in texts],
            prompt_name=prompt_of(exchange.served, "document"),
            length=self.max_tokens_per_doc,
            **options,
        )

        def compare() -> Numbers:
            compared = []
            for row in rows:
                check_wanted()
                compared.append(_late_cosine(query, row) if late else float(row.astype(np.float64) @ query))
            return np.clip(compared, -1, 1)

        return await exchange.while_wanted(compare)


def _late_cosine(query: Array, document: Array) -> float:
    """The mean over the query's tokens of the largest cosine with a token of the document, both [token, hidden]."""
    if not len(document):
        return 0.0
    return float((query @ document.T).max(axis=1).mean(dtype=np.float64))

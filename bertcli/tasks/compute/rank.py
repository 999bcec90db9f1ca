"""rank: documents in the order in which a model finds them relevant to a query.

score = activation(logit for the pair of query and document), or the kind's `relevance` of what is encoded apart
"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from logging import getLogger
from typing import Any

import numpy as np

from bertcli.errors import BertcliError, quoted
from bertcli.files.texts import Failure, Item, Text, Texts, from_values
from bertcli.folder.prompts import Role
from bertcli.kinds.layers import read_pair_activation
from bertcli.kinds.relevance import RelevanceScore
from bertcli.loaded_model import LoadedModel
from bertcli.ranking import best_first
from bertcli.tasks.compute import encode
from bertcli.tasks.encode import EncodeOptions
from bertcli.tasks.parts.pair_logits import logits_of_pairs
from bertcli.tasks.parts.prepared import for_queries, for_role
from bertcli.tasks.parts.prepared_task import PreparedTask
from bertcli.tasks.parts.scores import SCORE_FUNCTIONS
from bertcli.tasks.rank import SPEC, RankOptions
from bertcli.tasks.running.batches import check_needs
from bertcli.tasks.running.task import START, Progress, Record, Records, RecordTask, TokenizedGroup, query_prompt
from bertcli.tokens.chat import chat_template_of

logger = getLogger("bertcli")
LOGIT = "logit"  # what records are ordered by, in no result: near 1 unequal scores differ by less than rounding


def pairs_of(query: str | Iterable[str], documents: Iterable[str] | None) -> Texts:
    """Make the pairs to rank: one query with every document, or a query for each document; equal queries are adjacent.

    Documents are ranked among those of the same query. Errors: BertcliError for no documents.
    """
    if documents is None:
        raise BertcliError("There are no documents to rank.")
    if isinstance(query, str):
        return with_query(query, from_values(documents))
    return from_values(query, documents)


def plan(model: LoadedModel, options: RankOptions) -> "RankTask":
    """Make the task. Errors: BertcliError for a model that cannot score pairs."""
    relevance = model.kind.relevance
    if relevance is not None:
        return ApartRankTask.of(model, options, relevance)
    scored = model.pair_scores
    if scored is None:
        # Labels that were given with the model are counted below, as its own are.
        if model.kind.label_scores("classifier") is None:
            check_needs(model, SPEC.needs(options))
        _check_template(model)
    outputs = model.config.num_labels if scored is None else scored.outputs
    if outputs != 1:
        raise BertcliError(
            f"rank needs a classifier with one output, and {model.name} has {outputs} labels: classify gives their "
            "scores for pairs (--text-pair or --pair-column)."
        )
    activation = read_pair_activation(model.layout)
    return RankTask(model, options.read_options, activation, options.top_k, prompt=query_prompt(model))


def _check_template(model: LoadedModel) -> None:
    """Refuse a chat template without modules.json: whether pairs go through it is then not known."""
    if model.layout is not None and not model.layout.module_types and chat_template_of(model.layout.transformer):
        raise BertcliError(
            f"{model.name} has a chat template and no modules.json that says whether pairs go through it: save the "
            "model with CrossEncoder.save_pretrained, or remove the template to have pairs read as they are."
        )


def with_query(query: str, documents: Texts) -> Texts:
    """Pair a query with each document; location and error are the document's."""
    return replace(documents, change=lambda text: text._replace(text=query, pair=None if text.error else text.text))


class ByQuery(Texts):
    """Pairs of query and document, in groups that end where a query's documents do, unless all are of one query.

    Errors: BertcliError for a query that comes again after another one, since its ranking would be in two parts.
    """

    def __init__(self, pairs: Texts) -> None:
        super().__init__(pairs, pairs.waiting, pairs.files, pairs.share_read, pairs.at_hand, way_on=pairs.way_on)

    def __iter__(self) -> Iterator[Text]:
        """The pairs; a row that cannot be read counts as one of the query before it."""
        query: str | None = None
        earlier: set[str] = set()
        for text in super().__iter__():
            if text.error:
                yield text._replace(text=text.text or query or "")
                continue
            if text.text != query:
                if text.text in earlier:
                    raise BertcliError(
                        f"{text.location or 'The documents'}: the query {quoted(text.text)} comes again after "
                        "another one; sort the rows by query."
                    )
                query = text.text
                earlier.add(query)
            yield text

    def is_empty(self, text: Text) -> bool:
        """True if the document is empty."""
        return text.pair is not None and not text.pair.strip()

    def grouped(self, tokens: int, span: int) -> Iterator[list[Text]]:
        waiting_texts: list[Text] = []
        for group in super().grouped(tokens, span):
            waiting_texts += group
            # Where the last query's rows begin: more of them may follow.
            begin = len(waiting_texts)
            while begin > 0 and waiting_texts[begin - 1].text == waiting_texts[-1].text:
                begin -= 1
            yield waiting_texts[: begin or len(waiting_texts)]
            waiting_texts = waiting_texts[begin:] if begin else []
        if waiting_texts:
            yield waiting_texts


@dataclass(frozen=True, eq=False, repr=False)
class RankTask(RecordTask):
    """Pairs of query and document; `activation` is one of SCORE_FUNCTIONS in tasks/parts/scores.py."""

    activation: str
    top_k: int | None  # of each query's documents; None: all

    def order_groups(self, texts: Texts) -> Texts:
        return ByQuery(texts)

    def reorder_results(
        self, computed: Generator[Records, None, None], start: Progress
    ) -> Generator[Records, None, None]:
        """Yield a query's records, best first, once a block begins with another query, so that none can follow."""
        waiting: list[Record] = []
        emitted = reached = start
        with closing(computed):
            for block in computed:
                records = block.records()
                if waiting and records and records[0]["query"] != waiting[-1]["query"]:
                    emitted = reached
                    yield Records(emitted, _without_logits(waiting))
                    waiting = []
                waiting = list(_ordered([*waiting, *records], self.top_k))
                reached = block.progress
                # No records yet, but progress to show.
                yield Records(emitted, [], reached.texts - emitted.texts)
        if waiting:
            yield Records(reached, _without_logits(waiting))

    def check(self, item: Item) -> None:
        if item.text.pair is None:
            raise BertcliError(f"{item.title} has a query, but no document to rank.")

    def records(self, items: list[Item]) -> Iterator[Record]:
        activate = SCORE_FUNCTIONS[self.activation]
        for item, logit in zip(items, self.logits(items), strict=True):
            (score,) = activate(np.array([logit]))
            yield {
                "query": item.text.text,
                "corpus_id": item.index,
                "score": float(score),
                "text": item.text.pair,
                # Removed again: records are ordered by it, since scores near 1 may be equal where logits are not.
                LOGIT: logit,
            }

    def logits(self, items: list[Item]) -> Iterator[float]:
        """Yield each pair's score before the activation, by which they are sorted."""
        for logits in logits_of_pairs(self.model, [item.tokens for item in items], self.read_options.batch_tokens):
            yield float(logits[0])

    def failed(self, failure: Failure) -> Record:
        text = failure.text
        return {"query": text.text, "corpus_id": failure.index, "text": text.pair, "error": failure.error}


@dataclass(frozen=True, eq=False, repr=False)
class ApartRankTask(RankTask):
    """Rank by vectors: documents and queries have theirs apart, and a text that is too long is cut by itself."""

    queries: PreparedTask[Any]
    documents: PreparedTask[Any]
    relevance: RelevanceScore

    @classmethod
    def of(cls, model: LoadedModel, options: RankOptions, relevance: RelevanceScore) -> "ApartRankTask":
        """Make the task; queries and documents have the model's prompts for them.

        Queries have the model's own limit, and no warning, since `check` and `compared` report cuts.
        """
        read_options = vars(options.read_options)
        of_queries = read_options | {"max_length": None, "keep_going": False, "truncation": "silent"}
        documents = _encoding(model, relevance, "document", read_options)
        queries = _encoding(model, relevance, "query", of_queries)
        note = relevance.note(queries.summary, documents.summary)
        if note:
            logger.info("%s.", note)
        return cls(model, documents.read_options, "identity", options.top_k, queries, documents, relevance)

    @cached_property
    def _warned(self) -> set[str]:
        """Queries whose truncation was reported: each is reported once."""
        return set()

    def items(self, numbered: Sequence[tuple[int, Text]]) -> list[Item]:
        """The documents, each with the text that it belongs to."""
        documents = [(index, Text(text.pair or "")) for index, text in numbered]
        items = []
        for item, (_, text) in zip(self.documents.items(documents), numbered, strict=True):
            items.append(replace(item, text=text))
        return items

    def check(self, item: Item) -> None:
        """Raise BertcliError for a query that cannot be used, too."""
        super().check(item)
        (query,) = self.queries.tokenize_group([item.text._replace(pair=None)], item.index).items
        if query.tokens.truncated and self.read_options.truncation == "error":
            limit = self.queries.limit
            raise BertcliError(
                f"The query of {item.title} has {limit + query.tokens.lost} tokens, more than {limit}: shorten it, or "
                'let it be cut (truncation="warn").'
            )

    def compared(self, items: list[Item]) -> Iterator[tuple[Any, Any, Item]]:
        """Yield for each document the vectors of its query, its own, and the document."""
        texts = list(dict.fromkeys(item.text.text for item in items))
        queries = self.queries.tokenize_group([Text(text) for text in texts], 0)
        for text, item in zip(texts, queries.items, strict=True):
            if item.tokens.truncated and self.read_options.truncation == "warn" and text not in self._warned:
                limit = self.queries.limit
                logger.warning("the query %s was cut to %d tokens, as many as the model reads.", quoted(text), limit)
                self._warned.add(text)
        query_of = dict(zip(texts, self.queries.compute(queries).vectors, strict=True))
        documents = self.documents.compute(TokenizedGroup(items, [], START))
        for item, vectors in zip(documents.items, documents.vectors, strict=True):
            yield query_of[item.text.text], vectors, item

    def logits(self, items: list[Item]) -> Iterator[float]:
        for query, document, item in self.compared(items):
            yield self.relevance.score(query, document, item.tokens.pieces)


def _encoding(
    model: LoadedModel, relevance: RelevanceScore, role: Role, read_options: Mapping[str, Any]
) -> PreparedTask[Any]:
    """Make the task that encodes the texts of a role as the relevance needs them."""
    options = EncodeOptions(**relevance.options, **read_options)
    asked = for_queries(model, options) if role == "query" else for_role(model, role, options)
    return encode.plan(model, asked)


def _ordered(records: list[Record], top_k: int | None) -> Iterator[Record]:
    """Yield each query's records, best first, then those of documents that could not be used."""
    for _, of_query in groupby(records, key=lambda record: record["query"]):
        # Equal scores stay in the order of the documents.
        by_document = sorted(of_query, key=lambda record: int(record["corpus_id"]))
        scored = [record for record in by_document if "error" not in record]
        logits = np.array([record[LOGIT] for record in scored])
        for position in best_first(logits, top_k):
            yield scored[position]
        yield from (record for record in by_document if "error" in record)


def _without_logits(records: list[Record]) -> list[Record]:
    """Remove the field that only orders records."""
    return [{name: value for name, value in record.items() if name != LOGIT} for record in records]

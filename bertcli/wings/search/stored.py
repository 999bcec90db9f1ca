"""search among stored vectors: the rows of a file nearest to each query, with what is known of their texts."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple, Self, get_args

from bertcli.errors import BertcliError, number_of, quoted
from bertcli.files.read.inputs import rows_in
from bertcli.files.read.row_columns import columns_named
from bertcli.files.read.vector_reader import StoredVectors
from bertcli.files.search import Nearest
from bertcli.files.texts import Text, Texts
from bertcli.loaded_model import LoadedModel
from bertcli.report.digits import at_least, short
from bertcli.tasks.compute.encode import SETTINGS, EncodeSteps, encode
from bertcli.tasks.encode import EncodeOptions, Pooling
from bertcli.tasks.parts.made_alike import check_made_alike, settings_of, unfit_prompt
from bertcli.tasks.parts.prepared import for_role, note_prompts, prepare
from bertcli.tasks.running.task import Record
from bertcli.wings.search.nearest import nearest
from bertcli.wings.search.spec import STORED, SearchOptions

logger = logging.getLogger("bertcli")


class SearchedVectors(NamedTuple):
    """A file of vectors, and the texts of its rows; whole: the texts that its rows may be parts of."""

    stored: StoredVectors
    texts: Texts | None
    whole: bool = False

    @classmethod
    def alone(cls, stored: StoredVectors) -> Self:
        """Vectors without a file of their texts; a Parquet file has them beside the vectors."""
        if "text" not in stored.arrays:
            return cls(stored, None)
        id_column = "id" if "id" in stored.arrays else None
        return cls(stored, rows_in([str(stored.file)], columns_named(id=id_column), keep_going=True))

    def records(
        self, model: LoadedModel, queries: Sequence[str], search: SearchOptions, options: EncodeOptions
    ) -> list[Record]:
        """Records {query, nearest: [{row, score, …}, …]}, best row first."""
        model = model.for_prompt(options.prompt_name)
        # A Router may have another network for the queries.
        encoder = model.for_prompt(model.kind.prompt_name("document"))
        settings = settings_of(encoder, self.stored)
        measure = model.kind.compared
        if measure != "cosine":
            logger.info("vectors are compared by %s, as the checkpoint specifies.", measure)
        if settings is not None:
            if model.kind.routes.has_query_network:
                check_made_alike(encoder, self.stored)
            else:
                options = _as_stored(model, options, settings)
            if (unfit := unfit_prompt(model, self.stored, settings)) is not None:
                logger.warning("%s; the query is compared with them all the same.", unfit)
        if not queries:
            return []
        asked = for_role(model, "query", options)
        if settings is not None:
            note_prompts(prepare(model, asked).prompt, settings.get("prompt", ""))
        vectors = encode(model, queries, asked)
        neighbors = nearest(vectors, self.stored, search.top_k, measure)
        known = self._known(neighbors)
        records = []
        for query, rows, scores in zip(queries, neighbors.rows.tolist(), neighbors.scores.tolist(), strict=True):
            best = [(row, score) for row, score in zip(rows, scores, strict=True) if at_least(score, search.min_score)]
            hits = [{"row": row, "score": short(score), **known[row]} for row, score in best]
            records.append({"query": query, STORED.rows_of: hits})
        return records

    def _known(self, neighbors: Nearest) -> dict[int, dict[str, Any]]:
        """Look up the rows that are nearest: the chunk, if a row is one, then id and text."""
        stored, whole = self.stored, self.whole
        rows = sorted({*neighbors.rows.reshape(-1).tolist()})
        last_row = neighbors.of - 1
        # The index of the last row's text gives the number of texts.
        *origins, last_origin = stored.origins([*rows, last_row], neighbors.of) or [{}] * (len(rows) + 1)
        if whole:
            numbers = [origin.get("index", row) for row, origin in zip(rows, origins, strict=True)]
            count = last_origin.get("index", last_row) + 1
        else:
            numbers, count = rows, neighbors.of
        texts: Mapping[int, Text] = {}
        if self.texts:
            of_texts = "" if count == neighbors.of else f" of {number_of(count, 'text')}"
            contents = f"{stored.file} has {number_of(neighbors.of, 'row')}{of_texts}"
            texts = _numbered(self.texts, set(numbers), count, contents)
        known: dict[int, dict[str, Any]] = {}
        for row, number, origin in zip(rows, numbers, origins, strict=True):
            hit: dict[str, Any] = dict(origin)
            if number in texts:
                text = texts[number]
                if text.id is not None:
                    hit["id"] = text.id
                # A chunk's row has the characters of the chunk.
                hit["text"] = text.text[origin.get("start") : origin.get("end")] if whole else text.text
            known[row] = hit
        return known


def _as_stored(model: LoadedModel, options: EncodeOptions, settings: Mapping[str, Any]) -> EncodeOptions:
    """Adjust the options, so that a query's vector is made with the settings of the stored ones.

    An option that is given must say the same. Errors: BertcliError naming one that does not.
    """
    given = {field.name for field in fields(options) if getattr(options, field.name) != field.default}
    stored = {name: settings[name] for name in SETTINGS if name not in given}
    # A pooling that no option names is the model's own.
    if stored.get("pooling") not in get_args(Pooling):
        stored.pop("pooling", None)
    # The width, which is last, follows from the others.
    for names in (SETTINGS[:-1], SETTINGS):
        options = replace(options, **{name: stored[name] for name in names if name in stored})
        made = EncodeSteps.make(model, options).settings
        for name in names:
            if made[name] != settings[name]:
                option = f"--{name.replace('_', '-')}"
                raise BertcliError(
                    f"The stored vectors were made with {option} {quoted(settings[name])}, but the query with "
                    f"{quoted(made[name])}: leave out {option}, or encode the texts again."
                )
    return options


def _numbered(source: Texts, numbers: Collection[int], count: int, contents: str) -> dict[int, Text]:
    """The texts of these numbers; BertcliError when there are not as many as the file was made from."""
    texts, number = {}, 0
    for number, text in enumerate(source, 1):
        if number - 1 in numbers:
            texts[number - 1] = text
    if number != count:
        raise BertcliError(
            f"{contents} and its texts' file {number_of(number, 'text')}: give the file it was made from."
        )
    return texts

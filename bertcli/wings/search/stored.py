"""search: the texts nearest to a query, among the vectors in a file."""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_args

from bertcli.errors import BertcliError, check_count, check_names, number_of, quoted
from bertcli.files.read.inputs import from_files
from bertcli.files.read.vector_reader import StoredVectors
from bertcli.files.search import Nearest, nearest, open_vectors
from bertcli.files.texts import Text, Texts
from bertcli.loaded_model import LoadedModel
from bertcli.tasks.compute.encode import SETTINGS, Plan, encode
from bertcli.tasks.encode import EncodeOptions, Pooling
from bertcli.tasks.options import declared
from bertcli.tasks.parts.made_alike import settings_of, unfit_prompt
from bertcli.tasks.parts.prepared import for_role
from bertcli.tasks.registry import SENTENCE_SAMPLE
from bertcli.tasks.running.task import Record

logger = logging.getLogger("bertcli")


def search(
    queries: str | Iterable[str],
    vectors: str | Path,
    *,
    model: LoadedModel | str | Path | None = None,
    texts: str | Path | None = None,
    column: str | None = None,
    id_column: str | None = None,
    top_k: int = 10,
    **options: Any,
) -> list[Record]:
    """Records {query, nearest: [{row, score, id, text}, …]}: the rows of a file of vectors nearest to each query.

    vectors: a file that encode has written. model: what made them, opened or to be opened (default: the bundled one).
    texts: a file of the texts that they were made of, with the names of its fields; a Parquet file of vectors may hold
    them itself. `id` and `text` are absent where they are not known; of a part of a text there are index, chunk, start
    and end. options: as of `Model.encode`; options that are stored with the vectors need not be repeated.

    Errors: BertcliError for vectors that were made otherwise.
    """
    check_names("search()", options, [item.name for item in declared(EncodeOptions)])
    check_count("top_k", top_k)
    stored = open_vectors(str(vectors))
    source = stored_texts(stored)
    if texts is not None:
        source = from_files([str(texts)], column, id_column=id_column, keep_going=True)
    prompt_name = options.get("prompt_name")
    opened = (
        model if isinstance(model, LoadedModel) else LoadedModel.load(model or SENTENCE_SAMPLE, prompt_name=prompt_name)
    )
    query_texts = [queries] if isinstance(queries, str) else [*queries]
    return found(opened, query_texts, stored, source, EncodeOptions(**options), top_k, whole=texts is not None)


def found(
    model: LoadedModel,
    queries: Sequence[str],
    stored: StoredVectors,
    source: Texts | None,
    options: EncodeOptions,
    top_k: int,
    *,
    whole: bool,
) -> list[Record]:
    """The records of `search`; `source` holds the texts of the rows, or (whole) those that rows may be parts of."""
    model = model.for_prompt(options.prompt_name)
    settings = settings_of(model, stored)
    measure = model.kind.compared
    if measure != "cosine":
        logger.info("vectors are compared by %s, as the checkpoint specifies.", measure)
    if settings is not None:
        options = _as_stored(model, options, settings)
        if (unfit := unfit_prompt(model, stored, settings)) is not None:
            logger.warning("%s; the query is compared with them all the same.", unfit)
    options = for_role(model, "query", options)
    neighbors = nearest(encode(model, queries, options), stored, top_k, measure)
    hits = _hits(neighbors, stored, source, whole)
    records = []
    for query, rows, scores in zip(queries, neighbors.rows.tolist(), neighbors.scores.tolist(), strict=True):
        found = [{"row": row, "score": score, **hits[row]} for row, score in zip(rows, scores, strict=True)]
        records.append({"query": query, "nearest": found})
    return records


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
        made = Plan.make(model, options).settings
        for name in names:
            if made[name] != settings[name]:
                option = f"--{name.replace('_', '-')}"
                raise BertcliError(
                    f"The stored vectors were made with {option} {quoted(settings[name])}, but the query with "
                    f"{quoted(made[name])}: leave out {option}, or encode the texts again."
                )
    return options


def stored_texts(stored: StoredVectors) -> Texts | None:
    """Read the texts beside the vectors in a Parquet file; None if it has none."""
    if "text" not in stored.arrays:
        return None
    return from_files([str(stored.file)], id_column="id" if "id" in stored.arrays else None, keep_going=True)


def _hits(neighbors: Nearest, stored: StoredVectors, source: Texts | None, whole: bool) -> dict[int, dict[str, Any]]:
    """Look up the rows that were found: the chunk, if a row is one, then id and text; `whole`: every row is a text."""
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
    if source:
        of_texts = "" if count == neighbors.of else f" of {number_of(count, 'text')}"
        contents = f"{stored.file} has {number_of(neighbors.of, 'row')}{of_texts}"
        texts = _texts(source, set(numbers), count, contents)
    hits: dict[int, dict[str, Any]] = {}
    for row, number, origin in zip(rows, numbers, origins, strict=True):
        hit: dict[str, Any] = dict(origin)
        if number in texts:
            text = texts[number]
            if text.id is not None:
                hit["id"] = text.id
            # A chunk's row has the characters of the chunk.
            hit["text"] = text.text[origin.get("start") : origin.get("end")] if whole else text.text
        hits[row] = hit
    return hits


def _texts(source: Texts, numbers: Collection[int], count: int, contents: str) -> dict[int, Text]:
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

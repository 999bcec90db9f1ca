"""search: the texts nearest to a query, among the vectors in a file."""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_args

from bertcli.errors import BertcliError, check_count, check_names, number_of, quoted
from bertcli.files.read.inputs import from_files
from bertcli.files.read.vector_reader import MODEL, StoredVectors
from bertcli.files.search import Nearest, nearest, open_vectors
from bertcli.files.texts import Text, Texts
from bertcli.files.write.resumable_output import signature
from bertcli.loaded_model import LoadedModel
from bertcli.tasks.compute.encode import SETTINGS, Plan, encode
from bertcli.tasks.compute.task import Record
from bertcli.tasks.encode import EncodeOptions, Pooling
from bertcli.tasks.options import declared
from bertcli.tasks.registry import SENTENCE_SAMPLE

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
    and end. options: as of `Model.encode`; what the file says of its vectors need not be repeated.

    Errors: BertcliError for vectors that were made otherwise.
    """
    check_names("search()", options, [item.name for item in declared(EncodeOptions)])
    check_count("top_k", top_k)
    stored = open_vectors(str(vectors))
    source = stored_texts(stored)
    if texts is not None:
        source = from_files([str(texts)], column, id_column=id_column, keep_going=True)
    opened = model if isinstance(model, LoadedModel) else LoadedModel.load(model or SENTENCE_SAMPLE)
    asked = [queries] if isinstance(queries, str) else [*queries]
    return found(opened, asked, stored, source, EncodeOptions(**options), top_k, whole=texts is not None)


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
    settings, how = settings_of(model, stored), model.sentence.compared
    if how != "cosine":
        logger.info("vectors are compared by %s, as the checkpoint specifies.", how)
    options = options if settings is None else _as_stored(model, options, settings)
    neighbors = nearest(encode(model, queries, options), stored, top_k, how)
    hits = _hits(neighbors, stored, source, whole)
    every = zip(queries, neighbors.rows.tolist(), neighbors.scores.tolist(), strict=True)
    return [
        {
            "query": query,
            "nearest": [{"row": row, "score": score, **hits[row]} for row, score in zip(rows, scores, strict=True)],
        }
        for query, rows, scores in every
    ]


def _as_stored(model: LoadedModel, options: EncodeOptions, settings: Mapping[str, Any]) -> EncodeOptions:
    """Adjust the options, so that a query's vector is made with the settings of the stored ones.

    An option that is given must say the same. Errors: BertcliError naming one that does not.
    """
    given = {field.name for field in fields(options) if getattr(options, field.name) != field.default}
    stored = {name: settings[name] for name in SETTINGS if name not in given}
    if stored.get("pooling") not in get_args(Pooling):  # the model's own
        stored.pop("pooling", None)
    for names in (SETTINGS[:-1], SETTINGS):  # the width follows from the others
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


def check_made_alike(model: LoadedModel, stored: StoredVectors) -> None:
    """Raise BertcliError for vectors of another model, or made with other options than the model's own."""
    settings, own = settings_of(model, stored), Plan.make(model, EncodeOptions()).settings
    for name in SETTINGS:
        if settings is not None and own[name] != settings[name]:
            raise BertcliError(
                f"{stored.file} was made with --{name.replace('_', '-')} {quoted(settings[name])}, and not with "
                f"{quoted(own[name])}, which is this model's: encode the texts again."
            )


def stored_texts(stored: StoredVectors) -> Texts | None:
    """Read the texts beside the vectors in a Parquet file; None if it has none."""
    if "text" not in stored.arrays:
        return None
    return from_files([str(stored.file)], id_column="id" if "id" in stored.arrays else None, keep_going=True)


def settings_of(model: LoadedModel, stored: StoredVectors) -> dict[str, Any] | None:
    """Read the settings that made the vectors; refuse another model's, and log if the file has no settings."""
    own, other, settings = (
        signature(model.name, model.files_read),
        stored.notes.get(MODEL),
        stored.settings,
    )
    if other is not None and own.split()[-1] != other.split()[-1]:
        raise BertcliError(
            f"{stored.file} was made by another model, {quoted(other)}, not by {quoted(own)}: give that one (-m), or "
            "encode the texts again."
        )
    if other is None or settings is None:
        logger.warning(
            "%s does not say which model and options made its vectors: make sure that they are those of this command.",
            stored.file,
        )
    return settings


def _hits(neighbors: Nearest, stored: StoredVectors, source: Texts | None, whole: bool) -> dict[int, dict[str, Any]]:
    """Look up the rows that were found: the chunk, if a row is one, then id and text; `whole`: every row is a text."""
    rows = sorted({*neighbors.rows.reshape(-1).tolist()})
    *origins, last = stored.origins([*rows, neighbors.of - 1], neighbors.of) or [{}] * (len(rows) + 1)
    numbers = [origin.get("index", row) if whole else row for row, origin in zip(rows, origins, strict=True)]
    count = last.get("index", neighbors.of - 1) + 1 if whole else neighbors.of
    of_texts = "" if count == neighbors.of else f" of {number_of(count, 'text')}"
    contents = f"{stored.file} has {number_of(neighbors.of, 'row')}{of_texts}"
    texts = _texts(source, set(numbers), count, contents) if source else {}
    hits: dict[int, dict[str, Any]] = {}
    for row, number, origin in zip(rows, numbers, origins, strict=True):
        hits[row] = {**origin}
        if number in texts:
            text, id = texts[number].text, texts[number].id
            part = slice(origin.get("start"), origin.get("end")) if whole else slice(None)
            hits[row] |= {**({} if id is None else {"id": id}), "text": text[part]}
    return hits


def _texts(source: Texts, numbers: Collection[int], count: int, contents: str) -> dict[int, Text]:
    """The texts of these numbers; BertcliError when there are not as many as the file was made from."""
    texts, number = {}, 0
    for number, text in enumerate(source, 1):
        if number - 1 in numbers:
            texts[number - 1] = text
    if number != count:
        raise BertcliError(f"{contents} and --texts {number_of(number, 'text')}: give the file it was made from.")
    return texts

"""Search from Python: `bertcli.search` among stored vectors, and `bertcli.search_files`."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bertcli.errors import check_names
from bertcli.files.read.inputs import rows_in
from bertcli.files.read.passages import searched_files
from bertcli.files.read.row_columns import columns_named
from bertcli.files.search import open_vectors
from bertcli.loaded_model import LoadedModel
from bertcli.tasks.limits import NO_LIMITS, DoorLimits
from bertcli.tasks.options import declared
from bertcli.tasks.running.task import Record
from bertcli.wings.search.files import Passages
from bertcli.wings.search.index import KeptVectors
from bertcli.wings.search.spec import QueryOptions, SearchOptions
from bertcli.wings.search.stored import SearchedVectors

MOST_KEPT = 256 << 20  # bytes of vectors in memory
# What calls with `keep` keep, by the name of the index.
KEPT: dict[str | None, KeptVectors] = {}


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
    query = _query_options("search()", options)
    asked = SearchOptions(column=column, id_column=id_column, top_k=top_k)
    stored = open_vectors(str(vectors))
    if texts is None:
        searched = SearchedVectors.alone(stored)
    else:
        source = rows_in([str(texts)], columns_named(column, id_column), keep_going=True)
        searched = SearchedVectors(stored, source, whole=True)
    return searched.records(_opened(model, asked.sample, query.prompt_name), _as_list(queries), asked, query)


def search_files(
    queries: str | Iterable[str],
    files: str | Path | Sequence[str | Path],
    *,
    model: LoadedModel | str | Path | None = None,
    column: str | None = None,
    index: str | Path | None = None,
    sparse: bool = False,
    hybrid: bool = False,
    rerank: LoadedModel | str | Path | None = None,
    top_k: int = 10,
    keep: bool = False,
    limits: DoorLimits = NO_LIMITS,
    **options: Any,
) -> list[Record]:
    """Records {query, file, line, score, text}: the passages of files nearest to each query, best first.

    files: names, or patterns such as "docs/**/*.md", of the endings that `bertcli search -i` reads. model: opened or
    to be opened (default: the bundled one). column: the field of rows that holds the text. index: a file that keeps
    the vectors, so that only files that have changed are encoded. sparse: compare sparse vectors. hybrid: rank by
    keywords (BM25), too. rerank: a reranker that orders the 50 best. keep: keep the vectors in memory (256 MB at most),
    so that the next call encodes only files that have changed. limits: the bounds of a door. options: as of
    `Model.encode`.

    Errors: BertcliError for what cannot be read, or is not given as the model needs it.
    """
    query = _query_options("search_files()", options)
    kept = None if index is None else str(index)
    asked = SearchOptions(column=column, index=kept, sparse=sparse, hybrid=hybrid, top_k=top_k)
    patterns = [files] if isinstance(files, str | Path) else files
    names = searched_files([str(pattern) for pattern in patterns], column)
    opened = _opened(model, asked.sample, query.prompt_name)
    reranker = None if rerank is None else _opened(rerank)
    in_memory = KEPT.setdefault(kept, KeptVectors(kept, MOST_KEPT)) if keep else None
    passages = Passages(opened, names, asked, query, in_memory, limits)
    return [hit.record for hits in passages.hits(_as_list(queries), reranker) for hit in hits]


def _query_options(caller: str, options: Mapping[str, Any]) -> QueryOptions:
    check_names(caller, options, [item.name for item in declared(QueryOptions)])
    return QueryOptions(**options)


def _opened(model: LoadedModel | str | Path | None, sample: str = "", prompt_name: str | None = None) -> LoadedModel:
    return model if isinstance(model, LoadedModel) else LoadedModel.load(model or sample, prompt_name=prompt_name)


def _as_list(queries: str | Iterable[str]) -> list[str]:
    return [queries] if isinstance(queries, str) else [*queries]

"""The file that `search --index` keeps: the vectors of files' passages, by a digest of each file.

A .safetensors file, whatever its name:

    embeddings   float32 [part, width]   a vector for each part of a passage
    spans        int32 [part, 3]         the number of the passage in its file, and the part's first and last character
    index        JSON (metadata)         what made the vectors, and of each file digest, path and number of parts

It holds no texts: these are read from the files, whose digests say that they are still the same.
"""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError
from bertcli.files.arrays import Stored, open_safetensors, write_safetensors
from bertcli.files.write.resumable_output import save

FORMAT = "bertcli search index 1"
Spans = NDArray[np.int32]
Vectors = NDArray[np.float32]


class FileVectors(NamedTuple):
    """The parts of a file's passages, each [passage, start, end], and their vectors; `path` is the whole path."""

    path: str
    spans: Spans
    vectors: Vectors


class Made(NamedTuple):
    """The origin of vectors: the model's signature (name and digest), and the settings."""

    model: str
    settings: Mapping[str, Any]


def read_index(file: str, made: Made) -> dict[str, FileVectors]:
    """Read the entries of an index, by the files' digests; none if the index does not exist yet.

    Errors: BertcliError for a file that is no index or damaged, and for one whose vectors were made otherwise.
    """
    path = Path(file)
    if path.suffix == ".bin":
        raise BertcliError(f"{file}: choose a name for the index that does not end in .bin (--index).")
    if not path.exists():
        return {}
    try:
        readers = open_safetensors(path)
        described = json.loads(str(readers["index"]()))
        if described["format"] != FORMAT:
            raise ValueError(described["format"])
        model, settings = str(described["model"]), dict(described["settings"])
        entries = _entries(described["files"], readers["spans"](), readers["embeddings"]())
    except (BertcliError, OSError, ValueError, KeyError, TypeError):
        raise BertcliError(
            f"{file} is damaged, or no index of bertcli search: delete it, or give another name (--index)."
        ) from None
    if model.split()[-1] != made.model.split()[-1]:
        raise BertcliError(
            f"{file} was made by another model, {model}, not by {made.model}: give that one (-m), or another --index."
        )
    for name, value in made.settings.items():
        if settings.get(name) != value:
            raise BertcliError(
                f"{file} was made with {name} {settings.get(name)!r}, and this command has {value!r}: give the same "
                "options, or another --index."
            )
    return entries


def _entries(files: Any, spans: Spans, vectors: Vectors) -> dict[str, FileVectors]:
    """The parts of each file. Errors: ValueError, KeyError, TypeError for what does not fit together."""
    if spans.shape != (len(vectors), 3) or spans.dtype != np.int32 or vectors.dtype != np.float32 or vectors.ndim != 2:
        raise ValueError("arrays")
    entries: dict[str, FileVectors] = {}
    end = 0
    for one in files:
        begin, end = end, end + int(one["parts"])
        if not begin <= end <= len(vectors):
            raise ValueError("parts")
        entries[str(one["digest"])] = FileVectors(str(one["path"]), spans[begin:end], vectors[begin:end])
    if end != len(vectors):
        raise ValueError("parts")
    return entries


def write_index(file: str, made: Made, entries: Mapping[str, FileVectors], width: int) -> None:
    """Write an index: beside it first, then in its place. Errors: BertcliError."""
    files = [{"digest": digest, "path": entry.path, "parts": len(entry.spans)} for digest, entry in entries.items()]
    described = {"format": FORMAT, "model": made.model, "settings": made.settings, "files": files}
    count = sum(len(entry.spans) for entry in entries.values())
    arrays = [
        Stored("embeddings", "<f4", (count, width), [entry.vectors for entry in entries.values()]),
        Stored("spans", "<i4", (count, 3), [entry.spans for entry in entries.values()]),
        Stored.text("index", json.dumps(described)),
    ]
    stream = io.BytesIO()
    write_safetensors(stream, arrays)
    save(file, stream.getvalue())

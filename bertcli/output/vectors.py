"""Vectors in files of arrays, written as they come: .npy, .npz, .safetensors.

How many rows there are is known at the end, so each format's header is written first with room for it, then again.
"""

from __future__ import annotations

import io
import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bertcli.output.files import Replacement, check_output

Vectors = NDArray[np.floating[Any]]

ENDINGS = (".npy", ".npz", ".safetensors")
RAGGED_ENDINGS = (".npz", ".safetensors")  # a .npy file holds one array
HEADER = 512  # bytes of a .safetensors header: enough for two arrays of any size


class Stream(Protocol):
    """A file that can go back to its beginning."""

    def write(self, data: bytes, /) -> Any: ...

    def seek(self, offset: int, /) -> Any: ...


class VectorFile:
    """Appends rows to one float32 array [row, width]; `finish` says how many there were.

    ragged: a text may have any number of rows, and an int64 array `offsets` tells the texts apart: text i is rows
    offsets[i] to offsets[i + 1].
    """

    def __init__(self, stream: Stream, width: int, ragged: bool) -> None:
        self._stream = stream
        self._width = width
        self._offsets = [0] if ragged else None
        self.rows = 0
        stream.write(self.header())

    def append(self, block: Vectors | Sequence[Vectors]) -> None:
        """Vectors [text, width], or (ragged) an array [token, width] for each text."""
        for part in [block] if isinstance(block, np.ndarray) else block:
            self._stream.write(np.ascontiguousarray(part, dtype="<f4").tobytes())
            self.rows += len(part)
            if self._offsets is not None:
                self._offsets.append(self.rows)

    def finish(self) -> None:
        """Write what follows the rows, and the header as it should be."""
        self._stream.seek(0)
        self._stream.write(self.header())

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self._width

    @property
    def offsets(self) -> NDArray[np.int64] | None:
        return None if self._offsets is None else np.array(self._offsets, dtype="<i8")

    def header(self) -> bytes:
        raise NotImplementedError


class NumpyFile(VectorFile):
    """The .npy format, version 1.0; NumPy leaves room in its header for an array to grow."""

    def header(self) -> bytes:
        return _numpy_header("<f4", self.shape)


class SafetensorsFile(VectorFile):
    """The .safetensors format: length of the header, JSON header padded with spaces, arrays end to end."""

    def __init__(self, stream: Stream, width: int, ragged: bool, name: str) -> None:
        self._name = name
        super().__init__(stream, width, ragged)

    def finish(self) -> None:
        if self.offsets is not None:
            self._stream.write(self.offsets.tobytes())
        super().finish()

    def header(self) -> bytes:
        end = 4 * self.rows * self._width
        arrays = {self._name: {"dtype": "F32", "shape": self.shape, "data_offsets": [0, end]}}
        if self.offsets is not None:
            count = len(self.offsets)
            arrays["offsets"] = {"dtype": "I64", "shape": (count,), "data_offsets": [end, end + 8 * count]}
        text = json.dumps(arrays).encode().ljust(HEADER)
        return len(text).to_bytes(8, "little") + text


@contextmanager
def vector_output(file: str, width: int, *, name: str = "embeddings", ragged: bool = False) -> Iterator[VectorFile]:
    """`with vector_output(…) as vectors:` — a file of one array `name`, and of `offsets` when it is ragged."""
    ending = check_output(file, RAGGED_ENDINGS if ragged else ENDINGS)
    with Replacement(file) as output:
        if ending == ".safetensors":
            vectors: VectorFile = SafetensorsFile(output, width, ragged, name)
            yield vectors
            vectors.finish()
        elif ending == ".npy":
            vectors = NumpyFile(output, width, ragged)
            yield vectors
            vectors.finish()
        else:
            with tempfile.TemporaryFile(dir=Path(file).resolve().parent) as spool:
                vectors = NumpyFile(spool, width, ragged)
                yield vectors
                vectors.finish()
                spool.seek(0)
                _write_zip(output, name, spool, vectors.offsets)


def _write_zip(stream: Any, name: str, body: IO[bytes], offsets: NDArray[np.int64] | None) -> None:
    """The .npz format: an uncompressed zip of .npy files, the same bytes for the same arrays."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
            shutil.copyfileobj(body, member, 1 << 20)
        if offsets is not None:
            archive.writestr(zipfile.ZipInfo("offsets.npy"), _numpy_header("<i8", (len(offsets),)) + offsets.tobytes())


def _numpy_header(descr: str, shape: tuple[int, ...]) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": descr, "fortran_order": False, "shape": shape})
    return stream.getvalue()

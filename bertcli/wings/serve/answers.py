"""Write answers as JSON with orjson: float32 with the fewest digits that read back as the same number."""

from collections.abc import Iterator
from math import isfinite
from typing import Any

import numpy as np
import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bertcli.errors import damaged

# Values of JSON, and arrays of float32, whole numbers and bytes.
Answer = Any
# Values written at a time: orjson holds the interpreter's lock for less than a millisecond.
TOGETHER = 2000
# Bytes of an answer that are sent at a time.
CHUNK = 262_144
OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS


class LongResponse(Response):
    """An answer that is sent in chunks: a long one at once is copied several times while others wait."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for start in range(0, len(self.body), CHUNK):
            chunk = bytes(self.body[start : start + CHUNK])
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def written(answer: Answer) -> bytes:
    """The bytes of an answer as JSON, written in pieces, between which other threads can run.

    Errors: BertcliError for a number that is not finite, which orjson would write as null.
    """
    return b"".join(_pieces(answer))


def _pieces(value: Answer) -> Iterator[bytes]:
    if isinstance(value, dict) and _size(value) > TOGETHER:
        yield b"{"
        for number, (key, one) in enumerate(value.items()):
            if number:
                yield b","
            yield orjson.dumps(str(key)) + b":"
            yield from _pieces(one)
        yield b"}"
    elif isinstance(value, list | tuple) and _size(value) > TOGETHER:
        yield b"["
        for number, group in enumerate(_groups(value)):
            if number:
                yield b","
            if len(group) == 1:
                (large_value,) = group
                yield from _pieces(large_value)
            else:
                # Without the brackets that orjson puts around the group.
                yield _dumped(group)[1:-1]
        yield b"]"
    else:
        yield _dumped(value)


def _groups(values: Any) -> Iterator[list[Any]]:
    """Group consecutive values to about TOGETHER numbers and words; a large value is a group by itself."""
    group: list[Any] = []
    size = 0
    for value in values:
        value_size = _size(value)
        if group and size + value_size > TOGETHER:
            yield group
            group, size = [], 0
        group.append(value)
        size += value_size
    if group:
        yield group


def _size(value: Answer) -> int:
    """The approximate number of numbers and words in a value; counting stops where it is large enough."""
    if isinstance(value, np.ndarray):
        return int(value.size)
    if isinstance(value, str):
        return 1 + len(value) // 16
    if not isinstance(value, dict | list | tuple):
        return 1
    entries = value.values() if isinstance(value, dict) else value
    size = len(value)
    for entry in entries:
        if size > TOGETHER:
            break
        size += _size(entry)
    return size


def _dumped(value: Answer) -> bytes:
    content = orjson.dumps(value, _plain, OPTIONS)
    # orjson writes NaN and infinity as null.
    if b"null" in content and not _is_finite(value):
        raise damaged()
    return content


def _is_finite(value: Answer) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    if isinstance(value, np.ndarray):
        return bool(np.isfinite(value).all())
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_finite, value))
    return True


def _plain(value: Any) -> Any:
    """The `default` of orjson: convert arrays that it does not take, not contiguous or of another type."""
    if isinstance(value, np.ndarray):
        contiguous = np.ascontiguousarray(value)
        return contiguous if contiguous is not value else value.tolist()
    raise TypeError(f"JSON has no {type(value).__name__}")

"""Write answers as JSON with orjson: float32 with the fewest digits that read back as the same number."""

from math import isfinite
from typing import Any

import numpy as np
import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bertcli.errors import NotFinite

# Values of JSON, and arrays of float32, whole numbers and bytes.
Answer = Any
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
    """The bytes of an answer as JSON. Errors: BertcliError for a number that is not finite."""
    content = orjson.dumps(answer, _plain, OPTIONS)
    # orjson writes NaN and infinity as null.
    if b"null" in content and not _is_finite(answer):
        raise NotFinite
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

"""Records written to a file as they come: .jsonl has one object per line, .json one array."""

from __future__ import annotations

from collections.abc import Iterable

from bertcli.output.draft import Draft
from bertcli.output.records import Record, as_json


class RecordFile:
    """`append(records)`, and at the end `finish`; a resumed draft keeps its earlier records."""

    def __init__(self, draft: Draft, ending: str) -> None:
        self._draft = draft
        self._part = draft.part()
        self._array = ending == ".json"

    def append(self, records: Iterable[Record]) -> None:
        """Write records after those already there."""
        with self._draft.failures():
            for record in records:
                self._part.write(self._begin() + as_json(record) + (b"" if self._array else b"\n"))

    def finish(self) -> dict[str, str]:
        """Write the end of the file; the result is for `Draft.publish`."""
        with self._draft.failures():
            if self._array:
                self._part.write(b"\n]\n" if self._part.size else b"[]\n")
        return {"": ""}

    def _begin(self) -> bytes:
        return b"" if not self._array else b",\n" if self._part.size else b"[\n"

"""The zip format, uncompressed and 64-bit, as .npz files use it; headers can be written before their contents."""

from __future__ import annotations

import struct
from typing import NamedTuple

VERSION = 45  # 4.5: ZIP64
MIDNIGHT = (1980 - 1980) << 9 | 1 << 5 | 1  # 1 January 1980 as a DOS date: the same bytes every time
SAYS_64 = 0xFFFFFFFF  # "see the 64-bit number"


class Member(NamedTuple):
    """A file in the archive: where its header begins, and what is known about its contents once written."""

    name: str
    offset: int
    size: int = 0
    crc: int = 0

    def header(self) -> bytes:
        """What precedes the contents; its length does not depend on their size."""
        name = self.name.encode()
        fixed = struct.pack(
            "<4s5H3I2H", b"PK\x03\x04", VERSION, 0, 0, 0, MIDNIGHT, self.crc, SAYS_64, SAYS_64, len(name), 20
        )
        return fixed + name + struct.pack("<2H2Q", 1, 16, self.size, self.size)

    def entry(self) -> bytes:
        """Its entry in the directory."""
        name = self.name.encode()
        fixed = struct.pack(
            "<4s6H3I5H2I", b"PK\x01\x02", VERSION, VERSION, 0, 0, 0, MIDNIGHT, self.crc, SAYS_64, SAYS_64, len(name),
            28, 0, 0, 0, 0o600 << 16, SAYS_64,
        )  # fmt: skip
        return fixed + name + struct.pack("<2H3Q", 1, 24, self.size, self.size, self.offset)


def directory(members: list[Member], start: int) -> bytes:
    """The end of an archive whose members end at `start`."""
    entries = b"".join(member.entry() for member in members)
    count, size = len(members), len(entries)
    end64 = struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, VERSION, VERSION, 0, 0, count, count, size, start)
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, start + size, 1)
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, count, count, size, min(start, SAYS_64), 0)
    return entries + end64 + locator + end

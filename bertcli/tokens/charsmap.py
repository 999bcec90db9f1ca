"""Check a sentencepiece model's precompiled_charsmap: a damaged one would abort the process inside the library."""

import numpy as np


def check_charsmap(data: bytes) -> None:
    """Raise ValueError for a map of characters with references outside itself.

    Layout: the size of a trie (4 bytes), the trie (a double array of 4-byte units), and the replacement texts, each
    with a zero at its end. A unit holds its letter, the distance to its children, and a bit that is set if one child is
    a number: the begin of the replacement. Source: spm_precompiled.
    """
    size = int.from_bytes(data[:4], "little")
    if len(data) < 4 or size % 4 or not size or 4 + size > len(data):
        raise ValueError("is cut off")
    texts = data[4 + size :]
    try:
        str(texts, "utf-8")
    except UnicodeDecodeError:
        raise ValueError("holds texts that are not UTF-8") from None
    units = np.frombuffer(data, "<u4", size // 4, 4)
    # Units with the highest bit are numbers. The root is read whatever it holds.
    inner = np.union1d([0], np.flatnonzero(units < 1 << 31))
    distances = (units[inner] >> 10).astype(np.int64) << ((units[inner] & 512) >> 6)
    bases = inner ^ distances
    if (bases | 255).max(initial=0) >= len(units):
        raise ValueError("leads outside itself")
    begins = units[bases[units[inner] & 256 > 0]] & 0x7FFFFFFF
    if begins.max(initial=0) >= max(1, len(texts)):
        raise ValueError("leads outside its texts")
    first = np.frombuffer(texts, np.uint8)[begins] if len(begins) else np.empty(0, np.uint8)
    if (first & 0xC0 == 0x80).any():
        raise ValueError("leads into the middle of a character")

"""A sentencepiece model (`.model`), read as data: bytes -> pieces and the map of characters.

The file is a protocol buffer: a row of fields, each with a tag (number · 8 + wire type) and a value. Wire type 0 is a
whole number in groups of 7 bits, the lowest first, whose highest bit says that more follow; 2 is a length and so many
bytes, perhaps a message of its own; 5 is four bytes. The fields that matter, after sentencepiece_model.proto:

    1 pieces, one each:   1 text, 2 score (a float), 3 type (1 if left out)
    2 trainer_spec:       3 model_type (1, Unigram, if left out), 40 unk_id (0 if left out)
    3 normalizer_spec:    2 precompiled_charsmap
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import NamedTuple

Value = int | bytes | float

CONTROL, USER_DEFINED = 3, 4  # types of pieces: special tokens, and others that are never split
UNIGRAM = 1
NUMBER, BYTES, FLOAT = 0, 2, 5  # wire types


class Piece(NamedTuple):
    """A piece's text, its log-probability, and its type."""

    text: str
    score: float
    type: int


class Model(NamedTuple):
    """The pieces in order of id, the id of the unknown one, and the map of characters (b"" for none)."""

    pieces: list[Piece]
    unk_id: int
    charsmap: bytes


def parse_model(data: bytes) -> Model:
    """What a `.model` file holds. Errors: ValueError for a damaged one, and for any kind of model but Unigram."""
    pieces: list[Piece] = []
    specs: dict[int, dict[int, Value]] = {2: {}, 3: {}}
    for number, value in _fields(data):
        if number == 1:
            pieces.append(_piece(value))
        elif number in specs:
            specs[number].update(_fields(_bytes(value)))
    kind, unk_id, charsmap = specs[2].get(3, UNIGRAM), specs[2].get(40, 0), specs[3].get(2, b"")
    if kind != UNIGRAM:
        raise ValueError("it is no Unigram model" + ", but one of byte pairs" * (kind == 2))
    if not isinstance(unk_id, int) or unk_id >= len(pieces):
        raise ValueError(f"its unknown piece is number {unk_id!r} of {len(pieces)}")
    return Model(pieces, unk_id, _bytes(charsmap))


def _piece(message: Value) -> Piece:
    fields = dict(_fields(_bytes(message)))
    text, score, kind = _bytes(fields.get(1, b"")).decode(), fields.get(2, 0.0), fields.get(3, 1)
    if not text or not isinstance(score, float) or not math.isfinite(score) or not isinstance(kind, int):
        raise ValueError(f"a piece is {text!r:.99} with the score {score!r:.99}")
    return Piece(text, score, kind)


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a number stands where bytes belong")
    return value


def _fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """The number and value of each field in a message."""
    place = 0
    while place < len(data):
        tag, place = _number(data, place)
        value: Value
        if tag & 7 == NUMBER:
            value, place = _number(data, place)
        elif tag & 7 == BYTES:
            size, place = _number(data, place)
            value, place = data[place : place + size], place + size
        elif tag & 7 == FLOAT and place + 4 <= len(data):
            (value,), place = struct.unpack_from("<f", data, place), place + 4
        else:
            raise ValueError(f"no field ends with byte {place}")
        if place > len(data):
            raise ValueError("it ends within a field")
        yield tag >> 3, value


def _number(data: bytes, place: int) -> tuple[int, int]:
    """The whole number at a place, and the place after it."""
    if place < len(data) and data[place] < 128:  # most are this short
        return data[place], place + 1
    value = 0
    for i, byte in enumerate(data[place : place + 10]):
        value |= (byte & 127) << 7 * i
        if byte < 128:
            return value, place + i + 1
    raise ValueError("it ends within a number")

"""Damage of every kind to documents and bytes, and lines of text that mean harm: hypothesis strategies."""

import copy
import json
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

Files = Mapping[str, bytes]

whole = st.integers(-3, 40) | st.sampled_from([2**31 - 1, 2**31, 2**32, 2**53, 2**62, 2**63, 2**64, 10**30, 10**400])
strings = st.text(max_size=6) | st.sampled_from(
    [*"abcdef", "", "F32", "F16", "I64", "[CLS]", "[MASK]", "##", "gelu", "..", "/etc/passwd", "a" * 3000, "\x1b[2J\n",
     "1_Pooling", "BertModel"]
)  # fmt: skip
scalars = st.none() | st.booleans() | whole | st.floats() | strings
odd_values: st.SearchStrategy[Any] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(strings, inner, max_size=4), max_leaves=6
)


@st.composite
def edited(draw: st.DrawFn, document: Any) -> Any:
    """The document with up to three of its values replaced, removed, or joined by another."""
    document = copy.deepcopy(document)
    for _ in range(draw(st.integers(0, 3))):
        node = document
        while True:
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            key = draw(st.sampled_from(keys)) if keys else None
            child = None if key is None else node[key]
            if not isinstance(child, dict | list) or not child or draw(st.integers(0, 3)) == 0:
                break
            node = child
        action = draw(st.sampled_from(["replace", "remove", "add"]))
        if action == "remove" and key is not None:
            del node[key]
        elif isinstance(node, dict):
            node[draw(strings) if action == "add" or key is None else key] = draw(odd_values)
        elif action == "add" or key is None:
            node.append(draw(odd_values))
        else:
            node[key] = draw(odd_values)
    return document


@st.composite
def damaged(draw: st.DrawFn, data: bytes, often: int = 2) -> bytes:
    """The bytes; one time in `often` with a few changed, cut out, put in or said twice."""
    if draw(st.integers(1, often)) > 1:
        return data
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        size = draw(st.integers(0, 8) | st.integers(0, len(data)))
        data = (
            data[:at]
            + draw(st.binary(max_size=8) | st.just(data[at : at + size]))
            + data[at + draw(st.integers(0, size)) :]
        )
    return data


@st.composite
def json_files(draw: st.DrawFn, files: Files, names: tuple[str, ...]) -> Files:
    """The files, of which those with these names hold edited JSON, at times damaged or gone."""
    found = dict(files)
    for name in names:
        if draw(st.integers(0, 20)) == 0:
            del found[name]
        elif len(names) == 1 or draw(st.booleans()):
            text = json.dumps(draw(edited(json.loads(files[name]))), ensure_ascii=draw(st.booleans()))
            found[name] = draw(damaged(text.encode("utf-8", "surrogatepass"), often=6))
    return found


SNIPPETS = [
    *(b"\n", b"\r\n", b"\r", b",", b"\t", b'"', b'""', b"{", b"}", b'{"text": "', b'"}', b'{"text": "a"}\n', b"text"),
    *(b"text\n", b"id,text\n", b"id\ttext\n", b"1,", b"\xef\xbb\xbf", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x00"),
    *(
        b"\\ud800",
        b"[" * 500,
        b"9" * 5000,
        b'{"text": null}\n',
        b'{"text": ',
        b"9" * 400,
        b'"id": ',
        b"a word",
        "é😀\u2028\x85".encode(),
        b"x" * 3000,
    ),
]
contents = st.lists(st.sampled_from(SNIPPETS) | st.binary(max_size=6), max_size=12).map(b"".join)
headed = st.tuples(st.sampled_from([b"", b"text\n", b"id,text\n", b"id\ttext\r\n", b'"text"\n']), contents).map(
    b"".join
)

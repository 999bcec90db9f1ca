"""What is fuzzed: for each reader of bertcli, files from strangers, and what must hold whatever is in them.

A case is a folder's files; reading it gives a result or a BertcliError of one short line, and nothing else.
"""

import gzip
import io
import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from fuzz.damage import Files, contents, damaged, edited, headed, json_files, strings
from fuzz.vectors import read_vectors, vector_cases
from helpers.checkpoint_files import Dense, Sentence
from helpers.checkpoints import make
from helpers.opened_folders import sentence_of, tokenizer_of
from helpers.reading import from_files
from hypothesis import strategies as st
from reference.vocabulary_cases import MODELS

import bertcli
from bertcli.errors import BertcliError
from bertcli.files.texts import Text
from bertcli.folder.files import Folder
from bertcli.weights.loading import read_config
from bertcli.weights.tensors import open_tensors

TEXTS = ["The cat sat on the mat.", "", "[MASK] é中国😀\x00", "a" * 300]
LONGEST_MESSAGE = 2000  # letters: the longest true one tells how to convert a pickle


class Part(NamedTuple):
    """Cases (a folder's files) and what reads such a folder."""

    cases: st.SearchStrategy[Files]
    read: Callable[[Path], object]


# -------------------------------------------------------------------------------------------------- a model's folder


def _folder(**options: Any) -> dict[str, bytes]:
    """The files of a small checkpoint, by their names in it."""
    with tempfile.TemporaryDirectory() as folder:
        made = make(folder, sizes={"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}, **options)
        return {str(path.relative_to(made)): path.read_bytes() for path in made.rglob("*") if path.is_file()}


WITH_JSON = _folder(
    head="classifier",
    tokenizer="json",
    vocabulary=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##a", "cat", "the"],
)
WITH_VOCABULARY = _folder(tokenizer="vocab")
SHARDED = _folder(shards=2)
SENTENCE = _folder(sentence=Sentence(pooling=("mean", "cls"), normalize=True, dense=(Dense(4),), max_seq_length=9))
SENTENCEPIECE = {"xlm-roberta": "sentencepiece.bpe.model", "albert": "spiece.model", "deberta-v2": "spm.model"}
WITH_MERGES = {
    "vocab.json": b'{"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4, "t": 5, "h": 6, "th": 7, "\\u0120": 8}',
    "merges.txt": b"#version: 0.2\nt h\n",
}
SENTENCE_NAMES = ("modules.json", "sentence_bert_config.json", "1_Pooling/config.json", "2_Dense/config.json")


@st.composite
def vocabulary_files(draw: st.DrawFn) -> Files:
    """vocab.txt with damage, tokenizer_config.json and special_tokens_map.json edited."""
    words = json.dumps({"mask_token": "[MASK]", "cls_token": {"content": "[CLS]", "lstrip": True}}).encode()
    config = WITH_VOCABULARY["tokenizer_config.json"].replace(b"{", b'{"unk_token": "[UNK]", ', 1)
    files = {
        "tokenizer_config.json": config,
        "special_tokens_map.json": words,
        "vocab.txt": WITH_VOCABULARY["vocab.txt"],
    }
    found = dict(draw(json_files(files, ("tokenizer_config.json", "special_tokens_map.json"))))
    return found | {"vocab.txt": draw(damaged(files["vocab.txt"]))}


def model_files(kind: str, name: str) -> st.SearchStrategy[Files]:
    """A damaged sentencepiece model, of a family that has one."""
    config = json.dumps({"model_type": kind}).encode()
    return damaged((MODELS / name).read_bytes(), often=1).map(lambda data: {"config.json": config, name: data})


@st.composite
def byte_pair_files(draw: st.DrawFn) -> Files:
    """vocab.json edited, and merges.txt with damage."""
    found = dict(draw(json_files({"vocab.json": WITH_MERGES["vocab.json"]}, ("vocab.json",))))
    merges = draw(damaged(WITH_MERGES["merges.txt"]))
    return found | {"config.json": b'{"model_type": "roberta"}', "merges.txt": merges}


@st.composite
def safetensors_files(draw: st.DrawFn) -> Files:
    """A header whose tensors lie behind one another, edited, before data that is rarely of another size."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}} if draw(st.booleans()) else {}
    end = 0
    for name in draw(st.lists(st.text("abc.", max_size=3) | strings, max_size=4, unique=True)):
        dtype, shape = (
            draw(st.sampled_from(["F32", "F16", "BF16", "F64", "I64", "BOOL", "F8_E4M3"])),
            draw(st.lists(st.integers(0, 4), max_size=3)),
        )
        size = {"F32": 4, "F64": 8, "I64": 8, "BOOL": 1, "F8_E4M3": 1}.get(dtype, 2) * int(np.prod(shape))
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(draw(edited(header) if draw(st.booleans()) else st.just(header))).encode()
    length = draw(st.sampled_from([len(text)] * 20 + [10**15, len(text) + 1]) | st.integers(0, 2**64 - 1))
    data = draw(st.binary(min_size=end, max_size=end + draw(st.sampled_from([0, 0, 0, 5]))))
    return {"model.safetensors": draw(damaged(length.to_bytes(8, "little") + text + data, often=4))}


def read_tensors(folder: Path) -> None:
    """Every byte of every tensor lies in the file."""
    tensors = open_tensors(Folder(folder))
    sizes = {file: file.stat().st_size for file in {tensor.file for tensor in tensors.values()}}
    assert sum(tensor.nbytes for tensor in tensors.values()) <= sum(sizes.values())
    for tensor in tensors.values():
        assert len(tensor.array.tobytes()) == tensor.nbytes
        try:
            tensor.float32()
        except BertcliError:
            assert tensor.dtype not in ("F32", "F16", "BF16", "F64")


def read_settings(folder: Path) -> None:
    """A configuration that is accepted is one whose parameters can be counted."""
    config = read_config(folder / "config.json")
    if config.num_hidden_layers <= 12:
        assert bertcli.params(bertcli.variant(config=config)).total_params > 0


def read_words(folder: Path) -> None:
    """A tokenizer that opens gives tokens within its vocabulary, and within the limit."""
    tokenizer = tokenizer_of(folder)
    for pairs, limit in ((None, None), (TEXTS[::-1], 12)):
        for tokens in tokenizer.encode(TEXTS, pairs, limit):
            assert len(tokens.ids) == len(tokens.segments) == len(tokens.pieces) == len(tokens.offsets)
            assert limit is None or len(tokens.ids) <= limit


def read_model(folder: Path) -> None:
    """A model that loads has finite vectors of the width it promises."""
    model = bertcli.load(folder)
    vectors = model.encode(["a cat", ""])
    assert vectors.shape[0] == 2
    assert np.isfinite(vectors).all()


# ------------------------------------------------------------------------------------------------------ sentence files


def input_files(ending: str) -> st.SearchStrategy[Files]:
    plain = headed if ending in ("csv", "tsv") else contents
    return plain.map(lambda data: {f"t.{ending}": data})


def gzip_files() -> st.SearchStrategy[Files]:
    packed = st.lists(headed, min_size=1, max_size=3).map(
        lambda parts: b"".join(gzip.compress(part, mtime=0) for part in parts)
    )
    name = st.sampled_from(["t.txt.gz", "t.jsonl.gz", "t.csv.gz"])
    return st.tuples(name, packed.flatmap(damaged)).map(lambda pair: dict([pair]))


def read_texts(folder: Path) -> None:
    """Rows that can be used are texts; without keep_going it is the same rows up to the first that cannot."""
    (file,) = folder.iterdir()
    kept: list[Text] = []
    failure = None
    try:
        kept.extend(from_files([str(file)], keep_going=True))
    except BertcliError as error:
        failure = str(error)
    for row in kept:
        assert row.error is None or (row.text == "" and len(row.error) < LONGEST_MESSAGE)
        row.text.encode("utf-8")
    bad = next((i for i, row in enumerate(kept) if row.error), None)
    strict, first = [], None
    try:
        for row in from_files([str(file)]):
            strict.append(row)
    except BertcliError as error:
        first = str(error)
    assert first == (failure if bad is None else kept[bad].error)
    assert strict == kept[:bad] or failure
    with suppress(BertcliError):  # such as for a table without this column
        list(from_files([str(file)], keep_going=True, id_column="id"))
    if failure:
        raise BertcliError(failure)


def parquet_parts() -> dict[str, Part]:
    """Parquet files of several kinds, damaged; nothing where pyarrow is not installed."""
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        return {}
    table = arrow.table({"id": range(40), "text": [None if i == 7 else f"text {i % 9}" for i in range(40)]})
    files = []
    for options in ({}, {"compression": "none", "use_dictionary": False}, {"compression": "gzip", "row_group_size": 9}):
        stream = io.BytesIO()
        parquet.write_table(table, stream, **options)
        files.append(stream.getvalue())
    return {
        "parquet": Part(
            st.sampled_from(files).flatmap(lambda d: damaged(d, 1)).map(lambda d: {"t.parquet": d}), read_texts
        )
    }


JSON_NAMES = ("tokenizer.json", "tokenizer_config.json")
PARTS = {
    "safetensors": Part(safetensors_files(), read_tensors),
    "index": Part(json_files(SHARDED, ("model.safetensors.index.json",)), read_tensors),
    "config": Part(json_files({"config.json": WITH_JSON["config.json"]}, ("config.json",)), read_settings),
    "tokenizer.json": Part(json_files({name: WITH_JSON[name] for name in JSON_NAMES}, JSON_NAMES), read_words),
    "vocab.txt": Part(vocabulary_files(), read_words),
    **{kind: Part(model_files(kind, name), read_words) for kind, name in SENTENCEPIECE.items()},
    "merges.txt": Part(byte_pair_files(), read_words),
    "sentence": Part(json_files(SENTENCE, SENTENCE_NAMES), lambda path: sentence_of(path)),
    "model": Part(json_files(WITH_JSON, ("config.json",)), read_model),
    **{ending: Part(input_files(ending), read_texts) for ending in ("txt", "jsonl", "csv", "tsv")},
    "gz": Part(gzip_files(), read_texts),
    **parquet_parts(),
    **{name: Part(cases, read_vectors) for name, cases in vector_cases().items()},
}

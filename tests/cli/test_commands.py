"""What run commands say of texts and models, whatever they read and write; that is in tests/files/test_every_*.py."""

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.batches import compute_together
from helpers.checkpoint_files import Dense
from helpers.checkpoints import Sentence, make
from helpers.json_files import write_json, write_json_lines
from helpers.lines import write_lines
from helpers.near import assert_near
from helpers.terminal import bertcli, wrong_usage
from safetensors.numpy import load_file

import bertcli as library
from bertcli.errors import BertcliError

COMMANDS = ("encode", "classify", "fill-mask", "score", "tokenize")
TEXTS = ("The [MASK] sat on the mat.", 'A "[MASK]", of tea\t—  中国😀', "[MASK]")
PAIR = "It was hot."
LONG = "The cat sat on the mat, and she drank hot tea with milk. " * 3


@pytest.fixture
def model(made: Made) -> Path:
    return made(head="pretraining", seed=7)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_same_records_as_from_python(command: str, model: Path, tmp_path: Path) -> None:
    loaded = library.load(model)
    calls: dict[str, Callable[[], list[Any]]] = {
        "encode": lambda: loaded.encode(TEXTS, PAIR).tolist(),
        "classify": lambda: list(loaded.classify(TEXTS, PAIR)),
        "fill-mask": lambda: list(loaded.fill_mask(TEXTS)),
        "score": lambda: list(loaded.score(TEXTS)),
        "tokenize": lambda: [tokens.ids for tokens in loaded.tokenizer.encode(TEXTS)],
    }
    file = tmp_path / "in.jsonl"
    pair = {"text_pair": PAIR} if command in ("encode", "classify") else {}
    write_json_lines(file, ({"text": text, **pair} for text in TEXTS))
    second = ["--pair-column", "text_pair"] if command == "classify" else []
    printed = bertcli(command, "-m", model, "-i", file, *second, "--format", "jsonl")
    assert "中国😀" in printed.out
    field = {"encode": "embedding", "tokenize": "ids"}.get(command)
    found = [record[field] for record in printed.records] if field else printed.records
    if command == "encode":
        # Printed are the fewest digits that read back as the float32.
        found = np.array(found, np.float32).tolist()
    assert calls[command]() == found


# ------------------------------------------------------------------------------------------------------ what is in them


def test_commands_records_of_encode(model: Path) -> None:
    (record,) = bertcli("encode", "-m", model, "unbelievable", "--format", "jsonl").records
    assert (record["tokens"], record["truncated"], len(record["embedding"])) == (5, False, 32)
    (record,) = bertcli("encode", "-m", model, "tea", "--pooling", "none", "--format", "jsonl").records
    assert list(record) == ["index", "text", "tokens", "truncated", "embeddings"]
    assert record["tokens"] == ["[CLS]", "tea", "[SEP]"]
    assert np.shape(record["embeddings"]) == (3, 32)
    cut = bertcli("encode", "-m", model, "a b c d", "--max-length", "4", "--format", "jsonl")
    assert (cut.records[0]["tokens"], cut.records[0]["truncated"]) == (4, True)


def test_commands_records_of_tokenize(model: Path) -> None:
    (record,) = bertcli("tokenize", "-m", model, "Unbelievable", "--text-pair", "tea", "--format", "jsonl").records
    assert record["tokens"] == ["[CLS]", "un", "##believ", "##able", "[SEP]", "tea", "[SEP]"]
    assert record["segments"] == [0, 0, 0, 0, 0, 1, 1]
    assert record["offsets"] == [[0, 0], [0, 2], [2, 8], [8, 12], [0, 0], [0, 3], [0, 0]]
    assert len(record["ids"]) == 7
    long = bertcli("tokenize", "-m", model, "tea " * 100, "--format", "jsonl").records[0]["ids"]
    assert len(long) == 102


def test_commands_tokenize_needs_neither_weights_nor_a_configuration(model: Path, tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_bytes((model / "vocab.txt").read_bytes())
    assert bertcli("tokenize", "-m", tmp_path, "tea", "--format", "jsonl").records[0]["tokens"][1] == "tea"


@pytest.mark.parametrize("layer", ["0", "-1,-2"])
def test_commands_layers_of_encode(layer: str, model: Path) -> None:
    (record,) = bertcli("encode", "-m", model, "tea", "--layer", layer, "--format", "jsonl").records
    numbers = [int(number) for number in layer.split(",")]
    assert np.array_equal(np.float32(record["embedding"]), library.load(model).encode("tea", layer=numbers))


# --------------------------------------------------------------------------------------------------- files of arrays


def read_arrays(file: Path) -> dict[str, Any]:
    if file.suffix == ".npy":
        return {"embeddings": np.load(file)}
    if file.suffix == ".safetensors":
        return load_file(file)
    with np.load(file) as arrays:
        return dict(arrays)


@pytest.mark.parametrize("ending", ["npy", "npz", "safetensors"])
def test_commands_of_no_texts_write_no_vectors(ending: str, model: Path, tmp_path: Path) -> None:
    file = tmp_path / f"v.{ending}"
    result = bertcli("encode", "-m", model, "-o", file, stdin="")
    assert (result.status, result.out) == (0, "")
    array = read_arrays(file)["embeddings"]
    assert (array.dtype, array.shape) == (np.float32, (0, 32))


def test_commands_similarity_of_the_nearest_texts_is_a_row_a_pair(model: Path, tmp_path: Path) -> None:
    texts = ["tea", "milk", "a cup of tea", "water", "tea", "sand and sea"]
    file = tmp_path / "texts.csv"
    write_lines(file, ["review", *texts])
    source = ["similarity", "-m", str(model), "-i", str(file), "--column", "review"]
    whole = np.array([record["cosine"] for record in bertcli(*source, "--format", "jsonl").records])
    np.fill_diagonal(whole, -2)
    records = bertcli(*source, "--top-k", "2", "--format", "jsonl").records
    assert [list(record) for record in records] == [["row", "other", "score", "text", "other_text"]] * 12
    for row in range(len(texts)):
        best = [record for record in records if record["row"] == row]
        assert [record["score"] for record in best] == pytest.approx(np.sort(whole[row])[::-1][:2])
        assert [record["other_text"] for record in best] == [texts[record["other"]] for record in best]
    assert (records[0]["other"], records[0]["score"]) == (4, pytest.approx(1))
    least = float(np.sort(whole.ravel())[-3])
    pairs = bertcli(*source, "--top-k", "5", "--min-score", str(least), "--format", "jsonl").records
    assert {(pair["row"], pair["other"]) for pair in pairs} == {*zip(*np.nonzero(whole >= least), strict=True)}
    target = tmp_path / "pairs.csv"
    assert bertcli(*source, "--top-k", "1", "-o", target).status == 0
    assert target.read_text(encoding="utf-8").startswith("row,other,score,text,other_text\n0,4,")


def test_commands_similarity_refuses_pairs_that_are_no_rows(model: Path, tmp_path: Path) -> None:
    command = ["similarity", "-m", str(model), *TEXTS]
    wrong_usage(*command, "--min-score", "0.5", why="give --top-k, too")
    wrong_usage(*command, "--top-k", "2", "--chunk", "8", why="whole texts are compared")
    wrong_usage(*command, "--top-k", "2", "-o", tmp_path / "c.npy", why="a pair is a row")


def test_commands_similarity_says_what_many_cosines_take(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertcli.cli.similarity.MANY", 3)
    done = bertcli("similarity", "-m", model, *TEXTS)
    assert "Note: 3 × 3 cosines take 36 bytes; --top-k gives those of the nearest texts alone." in done.err
    file = tmp_path / "in.txt"
    file.write_text("tea\nmilk\nwater\nsand\n", encoding="utf-8")
    assert "Note: 4 × 4 cosines take 64 bytes" in bertcli("similarity", "-m", model, "-i", file).err
    assert "cosines take" not in bertcli("similarity", "-m", model, *TEXTS, "--top-k", "1").err


# ------------------------------------------------------------------------------------------- notes, warnings, no texts


@pytest.mark.parametrize(
    ("line", "head"),
    [
        ("encode", "model"),
        ("encode --chunk 8", "pretraining"),
        ("encode --sparse", "pretraining"),
        ("classify --text-pair tea", "classifier"),
        ("fill-mask", "pretraining"),
        ("tag", "token_classifier"),
        ("answer --context 'She drank tea.'", "qa"),
    ],
)
def test_commands_parquet_has_the_same_types_without_rows(line: str, head: str, made: Made, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    schemas = []
    for texts in ("", "She drank [MASK].\n"):
        file = tmp_path / "v.parquet"
        assert bertcli(*shlex.split(line), "-m", made(head=head, seed=7), "-o", file, stdin=texts).status == 0
        assert bool(len(parquet.read_table(file))) == bool(texts)
        schemas.append(parquet.read_schema(file))
    assert schemas[0] == schemas[1]


def test_commands_dash_is_a_text_and_where_standard_input_is_read_is_told(model: Path) -> None:
    result = bertcli("encode", "-m", model, "--format", "jsonl", "-", stdin="not read")
    assert [record["text"] for record in result.records] == ["-"]
    assert "use -i - to read standard input." in result.err


def test_commands_bundled_model_is_named(model: Path, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    sentiment = made(head="classifier")
    monkeypatch.setattr("bertcli.folder.hub.sample", lambda name: sentiment if name == "bert-mini-sentiment" else model)
    for line, name in (
        ("classify tea", "bert-mini-sentiment"),
        ("classify --head nsp tea --text-pair x", "bert-mini-mlm"),
        ("fill-mask [MASK]", "bert-mini-mlm"),
        ("encode tea", "bert-mini-sentence"),
        ("encode --sparse tea", "bert-mini-mlm"),
        ("score tea", "bert-mini-mlm"),
        ("tokenize tea", "bert-mini-mlm"),
    ):
        result = bertcli(*line.split())
        assert result.status == 0, result.err
        assert name in result.err.splitlines()[0]


def test_commands_pooling_and_its_reason_are_told(model: Path, made: Made) -> None:
    assert "pooling mean, since the checkpoint specifies no pooling" in bertcli("encode", "-m", model, "tea").err
    other = made(sentence=Sentence(pooling=("cls",), normalize=True))
    assert "pooling cls, from 1_Pooling/config.json" in bertcli("encode", "-m", other, "tea").err
    assert "pooling max, as requested" in bertcli("encode", "-m", other, "tea", "--pooling", "max").err


def test_commands_say_once_how_many_texts_are_cut(model: Path) -> None:
    """A record says which; refusing them, or saying nothing, is for Python (truncation)."""
    texts = ["tea", "a b c", "a b c d"]
    result = bertcli("score", "-m", model, "--max-length", "4", *texts, "--format", "json")
    assert result.err == (
        "Warning: 2 of 3 texts had more than 4 tokens and lost 3 "
        "(see max_length and truncation; of a command --max-length).\n"
    )
    assert [record["truncated"] for record in result.json] == [False, True, True]
    with pytest.raises(BertcliError, match=r"text 1 \('a b c'\) has 5 tokens"):
        library.load(model).score(texts, max_length=4, truncation="error")


def test_commands_what_is_left_out_of_the_vectors_of_tokens_is_said(made: Made) -> None:
    folder = made(sentence=Sentence(("mean",), "legacy", normalize=True, dense=(Dense(16),)))
    said = bertcli("encode", "-m", folder, "tea", "--pooling", "none").err
    assert "without the checkpoint's Dense layers and normalization" in said


def test_commands_tokenize_says_what_encode_does_before_it(tmp_path: Path) -> None:
    folder = make(tmp_path / "m", sentence=Sentence(do_lower_case=True), lower_case=False)
    (folder / "config_sentence_transformers.json").write_text(
        '{"default_prompt_name": "query", "prompts": {"query": "search: "}}'
    )
    said = bertcli("tokenize", "-m", folder, "tea").err
    assert "encode puts the prompt 'search: ' before a text; these tokens are without it" in said
    assert "encode" not in bertcli("tokenize", "-m", make(tmp_path / "n"), "tea").err


@pytest.mark.parametrize("ending", ["npz", "safetensors", "parquet"])
def test_commands_chunks_are_named_in_files(
    ending: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text that cannot be used has a row, too."""
    compute_together(20, monkeypatch)
    source, target = tmp_path / "in.jsonl", tmp_path / f"v.{ending}"
    rows = [{"text": "tea"}, {"text": 7}, {"text": LONG}]
    write_json_lines(source, rows)
    command = ["encode", "-m", str(model), "-i", str(source), "--chunk", "16,4", "--keep-going"]
    records = bertcli(*command, "--format", "jsonl").records
    assert [record["index"] for record in records] == [0, 1] + [2] * (len(records) - 2)
    assert len(records) > 4
    failed = {"chunk": 0, "start": 0, "end": 0}
    named = [tuple((failed | record)[name] for name in ("index", *failed)) for record in records]
    assert bertcli(*command, "-o", target).status == 1
    if ending == "parquet":
        found = pytest.importorskip("pyarrow.parquet").read_table(target).to_pylist()
        assert [tuple(row[name] for name in ("index", *failed)) for row in found] == named
        assert [row["text"] for row in found] == [record["text"] for record in records]
        vectors = [row["embedding"] for row in found]
        assert [vector is None for vector in vectors] == [row["error"] is not None for row in found]
        assert vectors.pop(1) is None
    else:
        arrays = read_arrays(target)
        assert [*zip(*(arrays[name].tolist() for name in ("index", *failed)), strict=True)] == named
        vectors = arrays["embeddings"].tolist()
        assert not any(vectors.pop(1))
    of_records = [record["embedding"] for record in records if "error" not in record]
    assert_near(vectors, of_records, 1e-6)


def test_commands_chunks_are_compared(model: Path, tmp_path: Path) -> None:
    command = ["encode", "-m", str(model), "tea", LONG, "--chunk", "16,4"]
    records = bertcli(*command, "--format", "jsonl").records
    compared = bertcli("similarity", *command[1:], "--format", "json")
    assert [(one["index"], one["chunk"]) for one in compared.json] == [
        (record["index"], record["chunk"]) for record in records
    ]
    heads = bertcli("similarity", *command[1:]).out.splitlines()[0].split()
    assert heads == ["index", "text", "0.0", *(f"1.{number}" for number in range(len(records) - 1))]
    for wrong in (["-o", tmp_path / "v.npy"], ["--pooling", "none"]):
        wrong_usage(*command, *wrong, why="a part of a text has one vector (no --pooling none), and a .npy file cannot")
    wrong_usage(*command, "--chunk", "x", why="--chunk: give whole numbers")


@pytest.mark.parametrize("given", ["arguments", "file", "pipe"])
def test_commands_similarity_of_many_texts_goes_to_a_file(
    given: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertcli.cli.similarity.MOST_SHOWN", 3)
    lines, file = ["tea", "milk", "water", "sand"], tmp_path / "in.txt"
    write_lines(file, lines)
    arguments: list[str | Path] = ["similarity", "-m", model]
    arguments += lines if given == "arguments" else ["-i", file] if given == "file" else []
    stdin = file.read_text(encoding="utf-8") if given == "pipe" else None
    assert "more than 3 texts are only written to a file: -o FILE.npy" in bertcli(*arguments, stdin=stdin).error
    assert bertcli(*arguments, "-o", tmp_path / "v.npy", stdin=stdin).status == 0
    assert np.load(tmp_path / "v.npy").shape == (4, 4)


def test_commands_say_which_texts_are_empty(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text('text\nthe cat\n""\ntea\n" "\n')
    two = bertcli("score", "-m", model, "-i", file, "--format", "json")
    assert two.err == f"Note: 2 of 4 texts are empty; the first: {file}, line 3.\n"
    assert [record["text"] for record in two.json] == ["the cat", "", "tea", " "]
    one = bertcli("score", "-m", model, "tea", "", "--format", "json")
    assert one.err == "Note: 1 of 2 texts is empty: text 1.\n"
    assert bertcli("tokenize", "-m", model, "tea", "", "--format", "json").err == one.err


@pytest.mark.parametrize("command", ["score", "tokenize", "encode"])
def test_commands_say_that_there_are_no_texts(command: str, model: Path, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("text\n")
    result = bertcli(command, "-m", model, "-i", file, "--format", "json")
    assert result.err.endswith(f"Note: there are no texts in {file}.\n")
    assert result.json == []
    piped = bertcli(command, "-m", model, "--format", "jsonl", stdin="")
    assert piped.err.endswith("Note: there are no texts in the input.\n")
    assert piped.out == ""
    nothing = bertcli(command, "-m", model, "-i", os.devnull)  # a table
    assert nothing.status == 0
    assert nothing.err.endswith("Note: there are no texts in the input.\n")


def test_encode_names_chunk_where_texts_were_cut(model: Path) -> None:
    short = bertcli("encode", "-m", model, "--max-length", "4", "a b c d", "--format", "json").err
    assert "of a command --max-length; encode --chunk makes several vectors of a long text)." in short
    assert "--chunk" not in bertcli("score", "-m", model, "--max-length", "4", "a b c d").err


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_commands_read_a_pair_where_records_have_it(ending: str, made: Made, tmp_path: Path) -> None:
    """A field text_pair, as records of pairs have it, is the second text of a row without another."""
    model, file = made(head="classifier"), tmp_path / f"pairs.{ending}"
    pair = ("the king drank tea", "the queen sold bread")
    if ending == "jsonl":
        write_json(file, {"text": pair[0], "text_pair": pair[1]})
    elif ending == "csv":
        file.write_text(f"text,text_pair\n{pair[0]},{pair[1]}\n", encoding="utf-8")
    else:
        parquet = pytest.importorskip("pyarrow.parquet")
        arrow = pytest.importorskip("pyarrow")
        parquet.write_table(arrow.table({"text": [pair[0]], "text_pair": [pair[1]]}), file)
    wanted = bertcli("classify", "-m", model, pair[0], "--text-pair", pair[1], "--format", "jsonl").out
    assert json.loads(wanted)["text_pair"] == pair[1]
    assert bertcli("classify", "-m", model, "-i", file, "--format", "jsonl").out == wanted
    tagged = bertcli("tokenize", "-m", model, "-i", file, "--format", "jsonl").records[0]
    assert 1 in tagged["segments"]


def test_the_list_of_models_ends_with_its_last_row(tmp_path: Path) -> None:
    assert bertcli("info", "--cache-dir", tmp_path).out.endswith("Transformer, Pooling, Normalize\n")

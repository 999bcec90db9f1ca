"""Every run command with texts from arguments, files and pipes, alone and in pairs, into every form of output."""

import csv
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.batches import compute_together
from helpers.checkpoint_files import Dense
from helpers.checkpoints import Sentence, make
from helpers.crashes import crashing
from helpers.terminal import bertcli, continued, wrong_usage
from safetensors.numpy import load_file

import bertcli as library
from bertcli.errors import BertcliError

COMMANDS = ("encode", "classify", "fill-mask", "score", "tokenize")
TEXTS = ("The [MASK] sat on the mat.", 'A "[MASK]", of tea\t—  中国😀', "[MASK]")
PAIR = "It was hot."
KEYS = {
    "encode": ["index", "text", "tokens", "truncated", "embedding"],
    "classify": ["index", "text", "text_pair", "truncated", "labels"],
    "fill-mask": ["index", "text", "truncated", "masks"],
    "score": ["index", "text", "truncated", "tokens", "loss", "pseudo_perplexity"],
    "tokenize": ["index", "text", "tokens", "ids", "segments", "offsets"],
}
PAIRED = ("classify", "tokenize")  # that have --text-pair


@pytest.fixture
def model(made: Made) -> Path:
    return made(head="pretraining", seed=7)


def write_jsonl(file: Path, texts: tuple[str, ...], pair: str | None, second: str) -> None:
    lines = [json.dumps({"text": text, second: pair}) + "\n" for text in texts]
    file.write_text("".join(lines), encoding="utf-8")


def write_table(file: Path, texts: tuple[str, ...], pair: str | None, second: str, delimiter: str) -> None:
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter).writerows([("id", "said", second), *((7, text, pair) for text in texts)])
    file.write_bytes(stream.getvalue().encode())


def feed(
    form: str, texts: tuple[str, ...], pair: str | None, folder: Path, second: str = "text_pair"
) -> tuple[list[str], str | None]:
    """Arguments and standard input that bring these texts to a command; `second`: the field of their pairs in rows."""
    file = folder / f"input.{form}"
    named = [] if pair is None or second == "text_pair" else ["--pair-column", second]
    by_option = ["--text-pair", pair] if pair else []
    match form:
        case "arguments":
            return [*texts, *by_option], None
        case "stdin":
            return by_option, "".join(text + "\n" for text in texts)
        case "dash":
            return ["-i", "-", *by_option], "\r\n".join(texts)
        case "txt":
            file.write_text("\n".join(texts), encoding="utf-8")
            return ["--input", str(file), *by_option], None
        case "jsonl":
            write_jsonl(file, texts, pair, second)
            return ["-i", str(file), *named], None
        case _:
            write_table(file, texts, pair, second, "," if form == "csv" else "\t")
            return ["-i", str(file), "--column", "said", *named], None


ROWS = ("jsonl", "csv", "tsv")
FORMS = ("arguments", "stdin", "dash", "txt", *ROWS)


@pytest.mark.parametrize(
    ("command", "form", "pair"),
    [(command, form, None) for command in COMMANDS for form in FORMS]
    # Without an option for them, pairs are in rows.
    + [(command, form, PAIR) for command in COMMANDS for form in (FORMS if command in PAIRED else ROWS)],
)
def test_commands_texts_from_everywhere(
    command: str, form: str, pair: str | None, model: Path, made: Made, tmp_path: Path
) -> None:
    if command == "classify" and pair is None:  # the next-sentence head of the other checkpoint needs pairs
        model = made(head="classifier")
    arguments, stdin = feed(form, TEXTS, pair, tmp_path, "second" if command == "classify" else "text_pair")
    result = bertcli(command, "-m", model, "--format", "jsonl", *arguments, stdin=stdin)
    assert result.status == 0, result.err
    assert [record["text"] for record in result.records] == list(TEXTS)
    assert [record["index"] for record in result.records] == [0, 1, 2]
    assert all(list(record) == KEYS[command] for record in result.records)
    expected, _ = feed("jsonl" if pair and command not in PAIRED else "arguments", TEXTS, pair, tmp_path)
    assert result.records == bertcli(command, "-m", model, "--format", "jsonl", *expected).records


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_same_records_in_every_form(command: str, model: Path, tmp_path: Path) -> None:
    arguments = [command, "-m", str(model), *TEXTS, *(["--text-pair", PAIR] if command in PAIRED else [])]
    lines = bertcli(*arguments, "--format", "jsonl").records
    assert json.loads(bertcli(*arguments, "--format", "json").out) == lines
    for ending in ("json", "jsonl"):
        file = tmp_path / f"out.{ending}"
        file.write_text("old", encoding="utf-8")
        result = bertcli(*arguments, "-o", file)
        assert (result.status, result.out) == (0, "")
        text = file.read_text(encoding="utf-8")
        assert (json.loads(text) if ending == "json" else [json.loads(line) for line in text.splitlines()]) == lines
        assert "中国😀" in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.json", "out.jsonl"]


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
    texts, _ = feed("jsonl", TEXTS, PAIR if command in ("encode", "classify") else None, tmp_path)
    records = bertcli(command, "-m", model, *texts, "--format", "jsonl").records
    field = {"encode": "embedding", "tokenize": "ids"}.get(command)
    found = [record[field] for record in records] if field else records
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


def test_commands_options_of_fill_mask(model: Path) -> None:
    text = "The [MASK] and [MASK]."
    (record,) = bertcli("fill-mask", "-m", model, text, "--top-k", "2", "--format", "jsonl").records
    assert [len(mask["predictions"]) for mask in record["masks"]] == [2, 2]
    assert list(record["masks"][0]["predictions"][0]) == ["score", "token", "token_str", "sequence"]
    (record,) = bertcli("fill-mask", "-m", model, text, "--targets", "tea, unbelievable", "--format", "jsonl").records
    assert {one["token_str"] for one in record["masks"][1]["predictions"]} == {"tea", "unbelievable"}
    (record,) = bertcli("fill-mask", "-m", model, text, "--joint", "--format", "jsonl").records
    assert "[MASK]" not in record["masks"][0]["predictions"][0]["sequence"]


def test_commands_options_of_classify(made: Made) -> None:
    model = made(head="classifier", id2label={0: "bad", 1: "good", 2: "so-so"})
    (record,) = bertcli("classify", "-m", model, "tea", "--top-k", "1", "--format", "jsonl").records
    assert len(record["labels"]) == 1
    assert record["text_pair"] is None
    (record,) = bertcli("classify", "-m", model, "tea", "--activation", "none", "--format", "jsonl").records
    assert sum(label["score"] for label in record["labels"]) != pytest.approx(1)


def test_commands_target_of_score(model: Path) -> None:
    arguments = ["score", "-m", str(model), "The [MASK] sat", "--target", "The cat sat", "--format", "jsonl"]
    (record,) = bertcli(*arguments).records
    assert [token["token"] for token in record["tokens"]] == ["cat"]
    assert record["loss"] == pytest.approx(-record["tokens"][0]["log_prob"])


@pytest.mark.parametrize("layer", ["0", "-1", "0,1,2", "-1,-2"])
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
@pytest.mark.parametrize("texts", [(), ("tea",), TEXTS])
def test_commands_vectors_in_files(texts: tuple[str, ...], ending: str, model: Path, tmp_path: Path) -> None:
    file = tmp_path / f"v.{ending}"
    result = bertcli("encode", "-m", model, "-o", file, stdin="".join(text + "\n" for text in texts))
    assert (result.status, result.out) == (0, "")
    arrays = read_arrays(file)
    array = arrays.pop("embeddings")
    assert {name: str(one).split()[0] for name, one in arrays.items()} == (
        {"model": model.name, "settings": '{"pooling":'} if ending == "npz" else {}
    )
    assert (array.dtype, array.shape) == (np.float32, (len(texts), 32))
    assert np.array_equal(array, library.load(model).encode(texts))


@pytest.mark.parametrize("ending", ["npz", "safetensors"])
def test_commands_vectors_of_tokens_in_files(ending: str, model: Path, tmp_path: Path) -> None:
    file = tmp_path / f"v.{ending}"
    assert bertcli("encode", "-m", model, *TEXTS, "--pooling", "none", "-o", file).status == 0
    arrays = read_arrays(file)
    (block,) = library.load(model).encode_blocks(TEXTS, pooling="none")
    for start, end, vectors in zip(arrays["offsets"], arrays["offsets"][1:], block.vectors, strict=False):
        assert np.array_equal(arrays["embeddings"][start:end], vectors)
    assert len(arrays["offsets"]) == len(TEXTS) + 1


def test_commands_similarity(model: Path, tmp_path: Path) -> None:
    arguments = ["similarity", "-m", str(model), *TEXTS]
    records = bertcli(*arguments, "--format", "jsonl").records
    assert [list(record) for record in records] == [["index", "text", "cosine"]] * 3
    assert [record["cosine"][record["index"]] for record in records] == [1.0] * 3
    table = bertcli(*arguments)
    assert f"{records[0]['cosine'][1]:.4f}" in table.out
    bertcli(*arguments, "-o", tmp_path / "c.npy")
    assert np.allclose(np.load(tmp_path / "c.npy"), [record["cosine"] for record in records])


def test_commands_similarity_of_the_nearest_texts_is_a_row_a_pair(model: Path, tmp_path: Path) -> None:
    texts = ["tea", "milk", "a cup of tea", "water", "tea", "sand and sea"]
    file = tmp_path / "texts.csv"
    file.write_text("".join(f"{text}\n" for text in ["review", *texts]), encoding="utf-8")
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


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("format", "expected"), [("json", "[]\n"), ("jsonl", "")])
def test_commands_no_texts_give_an_empty_result(command: str, format: str, expected: str, model: Path) -> None:
    result = bertcli(command, "-m", model, "--format", format, stdin="")
    assert (result.status, result.out) == (0, expected)
    assert bertcli(command, "-m", model, stdin="").status == 0


@pytest.mark.parametrize(
    ("command", "head", "options"),
    [
        ("encode", "model", []),
        ("encode", "pretraining", ["--chunk", "8"]),
        ("encode", "pretraining", ["--sparse"]),
        ("classify", "classifier", ["--text-pair", "tea"]),
        ("fill-mask", "pretraining", []),
        ("tag", "token_classifier", []),
        ("answer", "qa", ["--context", "She drank tea."]),
    ],
)
def test_commands_parquet_has_the_same_types_without_rows(
    command: str, head: str, options: list[str], made: Made, tmp_path: Path
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    schemas = []
    for texts in ("", "She drank [MASK].\n"):
        file = tmp_path / "v.parquet"
        assert bertcli(command, "-m", made(head=head, seed=7), *options, "-o", file, stdin=texts).status == 0
        assert bool(len(parquet.read_table(file))) == bool(texts)
        schemas.append(parquet.read_schema(file))
    assert schemas[0] == schemas[1]


def test_commands_dash_is_a_text_and_where_standard_input_is_read_is_told(model: Path) -> None:
    result = bertcli("encode", "-m", model, "--format", "jsonl", "-", stdin="not read")
    assert [record["text"] for record in result.records] == ["-"]
    assert "use -i - to read standard input." in result.err


def test_commands_empty_text_is_a_text(model: Path) -> None:
    for command in ("encode", "score", "tokenize"):
        assert len(bertcli(command, "-m", model, "--format", "jsonl", stdin="\n\n").records) == 2


def test_commands_bundled_model_is_named(model: Path, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    sentiment = made(head="classifier")
    monkeypatch.setattr("bertcli.folder.hub.sample", lambda name: sentiment if name == "bert-mini-sentiment" else model)
    for arguments, name in (
        (["classify", "tea"], "bert-mini-sentiment"),
        (["classify", "--head", "nsp", "tea", "--text-pair", "x"], "bert-mini-mlm"),
        (["fill-mask", "[MASK]"], "bert-mini-mlm"),
        (["encode", "tea"], "bert-mini-sentence"),
        (["encode", "--sparse", "tea"], "bert-mini-mlm"),
        (["score", "tea"], "bert-mini-mlm"),
        (["tokenize", "tea"], "bert-mini-mlm"),
    ):
        result = bertcli(*arguments)
        assert result.status == 0, result.err
        assert name in result.err.splitlines()[0]


def test_commands_model_may_come_from_the_environment(model: Path) -> None:
    result = bertcli("score", "tea", environment={"BERTCLI_MODEL": str(model)})
    assert (result.status, result.err) == (0, "")


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
    assert [record["truncated"] for record in json.loads(result.out)] == [False, True, True]
    with pytest.raises(BertcliError, match=r"text 1 \('a b c'\) has 5 tokens"):
        library.load(model).score(texts, max_length=4, truncation="error")


@pytest.mark.parametrize(("batch_tokens", "options"), [(1, []), (7, []), (1536, ["--threads", "1"])])
def test_commands_work_options_change_nothing(
    batch_tokens: int, options: list[str], model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["score", "-m", str(model), "The cat sat", "tea", "--format", "jsonl"]
    expected = bertcli(*arguments).records
    assert [record["text"] for record in expected] == ["The cat sat", "tea"]
    compute_together(batch_tokens, monkeypatch)
    found = bertcli(*arguments, *options).records
    assert not options or found == expected
    for one, other in zip(expected, found, strict=True):
        assert [token["token"] for token in one["tokens"]] == [token["token"] for token in other["tokens"]]
        scores = [token["log_prob"] for token in other["tokens"]]
        assert [token["log_prob"] for token in one["tokens"]] == pytest.approx(scores, abs=1e-5)
        assert one["loss"] == pytest.approx(other["loss"], abs=1e-5)


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


def test_commands_chunks_are_named_in_every_form(model: Path, tmp_path: Path) -> None:
    text = "The cat sat on the mat, and she drank hot tea with milk. " * 3
    command = ["encode", "-m", str(model), "tea", text, "--chunk", "16,4"]
    records = bertcli(*command, "--format", "jsonl").records
    assert [record["index"] for record in records] == [0] + [1] * (len(records) - 1)
    assert len(records) > 3
    target = tmp_path / "v.npz"
    assert bertcli(*command, "-o", target).status == 0
    with np.load(target) as file:
        arrays = dict(file)
    for name in ("index", "chunk", "start", "end"):
        assert arrays[name].tolist() == [record[name] for record in records]
    np.testing.assert_allclose(arrays["embeddings"], [record["embedding"] for record in records], rtol=0, atol=1e-6)
    compared = bertcli("similarity", *command[1:], "--format", "json")
    assert [(one["index"], one["chunk"]) for one in json.loads(compared.out)] == [
        (record["index"], record["chunk"]) for record in records
    ]
    heads = bertcli("similarity", *command[1:]).out.splitlines()[0].split()
    assert heads == ["index", "text", "0.0", *(f"1.{number}" for number in range(len(records) - 1))]
    for wrong in (["-o", tmp_path / "v.npy"], ["--pooling", "none"]):
        wrong_usage(*command, *wrong, why="a part of a text has one vector (no --pooling none), and a .npy file cannot")
    wrong_usage(*command, "--chunk", "x", why="--chunk: give whole numbers")


def test_commands_a_run_in_chunks_is_resumed_to_the_same_bytes(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertcli.files.write.resumable_output.SHORTEST_SEGMENT", 0.0)
    compute_together(60, monkeypatch)
    source, whole, target = tmp_path / "in.txt", tmp_path / "w.npz", tmp_path / "v.npz"
    source.write_text("The cat sat on the mat, and she drank hot tea with milk.\n" * 40, encoding="utf-8")
    command = ["encode", "-m", str(model), "-i", str(source), "--chunk", "8,2"]
    assert bertcli(*command, "-o", whole).status == 0
    with crashing(60):
        bertcli(*command, "-o", target, "--resume")
    assert not target.exists()
    other = [argument.replace("8,2", "9") for argument in command]
    assert "--chunk was 8,2 and is now 9" in bertcli(*other, "-o", target, "--resume").error
    assert continued(*command, "-o", target, "--resume").status == 0
    assert target.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("given", ["arguments", "file", "pipe"])
def test_commands_similarity_of_many_texts_goes_to_a_file(
    given: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertcli.cli.similarity.MOST_SHOWN", 3)
    lines, file = ["tea", "milk", "water", "sand"], tmp_path / "in.txt"
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
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
    assert [record["text"] for record in json.loads(two.out)] == ["the cat", "", "tea", " "]
    one = bertcli("score", "-m", model, "tea", "", "--format", "json")
    assert one.err == "Note: 1 of 2 texts is empty: text 1.\n"
    assert bertcli("tokenize", "-m", model, "tea", "", "--format", "json").err == one.err


@pytest.mark.parametrize("command", ["score", "tokenize", "encode"])
def test_commands_say_that_there_are_no_texts(command: str, model: Path, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("text\n")
    result = bertcli(command, "-m", model, "-i", file, "--format", "json")
    assert result.err.endswith(f"Note: there are no texts in {file}.\n")
    assert json.loads(result.out) == []
    piped = bertcli(command, "-m", model, "--format", "json", stdin="")
    assert piped.err.endswith("Note: there are no texts in the input.\n")
    nothing = bertcli(command, "-m", model, "-i", os.devnull, "--format", "json")
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
        file.write_text(json.dumps({"text": pair[0], "text_pair": pair[1]}) + "\n", encoding="utf-8")
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

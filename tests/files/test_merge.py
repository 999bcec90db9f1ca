"""Files of shards become one: byte for byte that of the run without shards, or one line that names what is wrong."""

import json
import random
import re
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from conftest import Made
from helpers.crashes import crashing
from helpers.terminal import bertcli

from bertcli.report.written import size_on_disk

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "drank", "hot", "tea", "with", "[MASK]", "while", "rain"]
Arguments = list[str | Path]


@pytest.fixture
def model(made: Made) -> Path:
    return made(head="pretraining", seed=7)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    choose = random.Random(0)
    path = tmp_path / "in.jsonl"
    rows = ({"id": i, "text": " ".join(choose.choices(WORDS, k=choose.randint(0, 30)))} for i in range(40))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def sharded(arguments: Arguments, folder: Path, ending: str, count: int = 7) -> str:
    """Make all shards; the pattern of their names."""
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    for number in range(count):
        done = bertcli(*arguments, "-o", folder / f"v.{ending}", "--shard", f"{number}/{count}")
        assert done.status in (0, 1), done.err
    return str(folder / f"v-*-of-{count:05}.{ending}")


def same_as_whole(arguments: Arguments, folder: Path, ending: str, count: int = 7) -> None:
    pattern = sharded(arguments, folder, ending, count)
    whole, target = folder / f"whole.{ending}", folder / f"v.{ending}"
    bertcli(*arguments, "-o", whole)
    assert not target.exists()
    result = bertcli("merge", pattern, "-o", target)
    assert result.status == 0, result.err
    shards = "1 shard is" if count == 1 else f"{count} shards are"
    assert (
        result.err == f"Wrote {target} ({size_on_disk(target.stat().st_size)}).\nNote: {shards} joined into {target}.\n"
    )
    assert target.read_bytes() == whole.read_bytes()
    lists = [Path(f"{file}.errors.jsonl") for file in (whole, target)]
    assert lists[0].exists() == lists[1].exists()
    assert not lists[0].exists() or lists[0].read_bytes() == lists[1].read_bytes()


@pytest.mark.parametrize("count", [3, 11], ids=["3 shards", "more shards than texts"])
@pytest.mark.parametrize(
    ("ending", "command"),
    [
        ("npy", "encode"),
        ("npz", "encode --dtype int8 --pooling none"),
        ("npz", "encode --sparse"),
        ("npz", "encode --chunk 8,2"),
        ("safetensors", "encode --pooling none"),
        ("parquet", "encode --id-column id --dtype int8"),
        ("parquet", "encode --chunk 8,2"),
        ("parquet", "encode --sparse"),
        ("json", "score"),
        ("jsonl", "encode"),
    ],
)
def test_merged_shards_are_the_file_of_the_run_without(
    ending: str, command: str, count: int, model: Path, source: Path, tmp_path: Path
) -> None:
    texts = 8 if count == 11 else 12 if command == "score" else 40  # a pass for each token takes long
    source.write_text("".join(source.read_text("utf-8").splitlines(keepends=True)[:texts]), encoding="utf-8")
    same_as_whole([*command.split(), "-m", model, "-i", source, "--batch-tokens", "20"], tmp_path, ending, count)


def test_shards_are_merged_by_their_numbers_not_in_the_order_given(model: Path, source: Path, tmp_path: Path) -> None:
    arguments: Arguments = ["score", "-m", model, "-i", source]
    sharded(arguments, tmp_path, "jsonl", 3)
    parts = [tmp_path / f"v-{number:05}-of-00003.jsonl" for number in (2, 0, 1)]
    whole, target = tmp_path / "whole.jsonl", tmp_path / "v.jsonl"
    bertcli(*arguments, "-o", whole)
    assert bertcli("merge", *parts, "-o", target).status == 0
    assert target.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "jsonl"])
def test_merged_shards_of_several_files_have_the_labels_of_all_texts(
    ending: str, made: Made, source: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text('{"id": "x", "text": "tea"}\n{"text": 1, "id": 2}\n' * 9, encoding="utf-8")
    arguments: Arguments = ["classify", "-m", made(head="classifier"), "-i", source, "-i", other]
    same_as_whole([*arguments, "--id-column", "id", "--keep-going", "--batch-tokens", "20"], tmp_path, ending)


@pytest.mark.parametrize("ending", ["npy", "safetensors", "parquet"])
def test_merged_shards_have_the_errors_of_all(ending: str, model: Path, source: Path, tmp_path: Path) -> None:
    lines = source.read_text("utf-8").splitlines()
    lines[3] = lines[30] = "nonsense"
    source.write_text("\n".join(lines), encoding="utf-8")
    arguments: Arguments = ["encode", "-m", model, "-i", source, "--keep-going", "--batch-tokens", "20"]
    same_as_whole(arguments, tmp_path, ending)
    source.write_text("\n".join(lines[4:30]), encoding="utf-8")
    (tmp_path / f"v.{ending}").unlink()
    same_as_whole(arguments, tmp_path, ending)  # and remove the list of those before


@pytest.mark.parametrize("queries", [1, 5])
def test_merged_shards_keep_the_documents_of_a_query_together(queries: int, made: Made, tmp_path: Path) -> None:
    source, model = tmp_path / "in.jsonl", made(head="classifier", id2label={0: "relevant"})
    rows = [{"q": f"query {i * queries // 40}", "text": " ".join(WORDS[: i % 13])} for i in range(40)]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    arguments: Arguments = ["rank", "-m", model, "-i", source, "--batch-tokens", "20"]
    same_as_whole([*arguments, "--query-column", "q"], tmp_path, "jsonl", 4)
    (tmp_path / "v.jsonl").unlink()
    same_as_whole([*arguments, "tea"], tmp_path, "jsonl", 4)


def test_shards_are_contiguous_and_about_equal(model: Path, source: Path, tmp_path: Path) -> None:
    sharded(["encode", "-m", model, "-i", source, "--batch-tokens", "20"], tmp_path, "jsonl", 3)
    parts = [
        [json.loads(line)["index"] for line in (tmp_path / f"v-{i:05}-of-00003.jsonl").read_text().splitlines()]
        for i in range(3)
    ]
    assert [*chain(*parts)] == list(range(40))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("workers", ["1", "2"])
def test_shards_of_a_small_file_have_as_many_texts_as_each_other(workers: str, model: Path, tmp_path: Path) -> None:
    choose = random.Random(3)
    source = tmp_path / "in.txt"
    source.write_text("".join(f"{' '.join(choose.choices(WORDS[:11], k=choose.randint(1, 40)))}\n" for _ in range(200)))
    arguments: Arguments = ["encode", "-m", model, "-i", source, "--workers", workers, "--max-length", "12"]
    same_as_whole(arguments, tmp_path, "jsonl", 3)
    counts = [(tmp_path / f"v-{i:05}-of-00003.jsonl").read_bytes().count(b"\n") for i in range(3)]
    assert counts == [67, 67, 66]
    lost = [bertcli(*arguments, "--shard", f"{i}/3", "--format", "jsonl").err for i in range(3)]
    whole = bertcli(*arguments, "--format", "jsonl").err
    told = [[int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", one)] for one in (*lost, whole)]
    assert [sum(numbers) for numbers in zip(*(one[:2] for one in told[:3]), strict=True)] == told[3][:2]


def test_shard_of_arguments(model: Path) -> None:
    given = ["encode", "-m", str(model), "--batch-tokens", "4", *WORDS, "--format", "jsonl", "--shard"]
    texts = [[record["text"] for record in bertcli(*given, f"{i}/2").records] for i in range(2)]
    assert texts[0] + texts[1] == WORDS
    assert all(texts)


def test_shard_resumes_its_own_part_only(
    model: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertcli.files.write.resumable_output.SHORTEST_SEGMENT", 0.0)
    arguments: Arguments = ["encode", "-m", model, "-i", source, "--batch-tokens", "20", "--resume"]
    with crashing(30):
        bertcli(*arguments, "-o", tmp_path / "v.npy", "--shard", "1/2")
    assert (tmp_path / ".v-00001-of-00002.npy.parts" / "000000.npz").exists()
    text = source.read_text("utf-8")
    source.write_text(text + text, encoding="utf-8")
    error = bertcli(*arguments, "-o", tmp_path / "v.npy", "--shard", "1/2").error
    assert "Cannot resume" in error
    assert "the input has changed" in error
    source.write_text(text, encoding="utf-8")
    result = bertcli(*arguments, "-o", tmp_path / "v.npy", "--shard", "1/2")
    assert result.status == 0
    assert "there is no progress" not in result.err
    same_as_whole(arguments, tmp_path, "npy", 2)


# ---------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("shard", ["7/7", "-1/7", "1", "a/b", "0/0", "1/7/9", "0/100000"])
def test_shard_that_is_none_is_wrong_usage(shard: str, model: Path, tmp_path: Path) -> None:
    result = bertcli("encode", "-m", model, "tea", "--shard", shard)
    assert result.status == 2
    assert "0 ≤ I < N" in result.err


def test_shard_of_a_pipe_or_a_page_is_refused(model: Path, source: Path, made: Made, tmp_path: Path) -> None:
    assert "so --shard needs the texts" in bertcli("encode", "-m", model, "--shard", "0/2", stdin="tea\n").error
    page = ("tag", "-m", made(head="token_classifier"), "-i", source, "-o", tmp_path / "x.html", "--shard", "0/2")
    assert bertcli(*page).status == 2


def test_merge_names_what_is_wrong_and_writes_nothing(model: Path, made: Made, source: Path, tmp_path: Path) -> None:
    arguments: Arguments = ["encode", "-m", model, "-i", source, "--batch-tokens", "20"]
    pattern, target = sharded(arguments, tmp_path, "npy", 3), tmp_path / "all.npy"
    first, second = (tmp_path / f"v-{i:05}-of-00003.npy" for i in (0, 1))
    target.write_bytes(b"old")

    def refusal(*files: str | Path, to: Path = target) -> str:
        error = bertcli("merge", *files, "-o", to).error
        assert target.read_bytes() == b"old"
        return error

    assert "Shards are missing: 1/3, 2/3." in refusal(first)
    assert f"There is no file {tmp_path / 'gone.npy'}." in refusal(tmp_path / "gone.npy")
    assert f"{first} and {first} are the same shard, 0/3" in refusal(first, pattern)
    assert "cannot be merged into a .npz file" in refusal(pattern, to=tmp_path / "all.npz")
    assert "the ending must be one of .json, .jsonl, .csv, .tsv, .parquet, .npy" in refusal(
        pattern, to=tmp_path / "a.txt"
    )
    content, note = second.read_bytes(), Path(f"{second}.shard")
    second.write_bytes(content[:-1] + b"?")
    assert f"{second} or its list of errors has changed: run shard 1/3 again" in refusal(pattern)
    second.write_bytes(content)
    listed = Path(f"{second}.errors.jsonl")
    listed.write_text("{}\n")
    assert f"{second} or its list of errors has changed: run shard 1/3 again" in refusal(pattern)
    listed.unlink()
    known = note.read_bytes()
    for damage, what in ((b"{}", "is damaged"), (b"{", "is damaged"), (None, "is not a whole shard")):
        note.unlink() if damage is None else note.write_bytes(damage)
        assert what in refusal(pattern)
    note.write_bytes(known)
    other = [*arguments[:2], made(head="pretraining", seed=8), *arguments[3:]]
    bertcli(*other, "-o", tmp_path / "v.npy", "--shard", "1/3")
    assert f"{second} is of another run than {first}: the model has changed." in refusal(pattern)
    bertcli(*arguments, "-o", tmp_path / "v.npy", "--shard", "1/3", "--pooling", "cls")
    assert "--pooling was auto and is now cls" in refusal(pattern)
    bertcli(*arguments, "-o", tmp_path / "v.npy", "--shard", "1/3")
    assert bertcli("merge", tmp_path / "v-0*", "-o", target).status == 0  # with the notes beside them
    assert len(np.load(target)) == 40

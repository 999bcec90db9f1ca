"""What goes wrong: one line, the right status, nothing printed, nothing left behind, nothing lost."""

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from conftest import Made
from helpers.batches import compute_together
from helpers.checkpoints import damaged, make
from helpers.crashes import full_disk
from helpers.json_files import read_json
from helpers.terminal import bertcli, wrong_usage

from bertcli.cli.app import application

COMMANDS = ("encode", "classify", "fill-mask", "score", "tokenize")


@pytest.fixture
def model(made: Made) -> Path:
    return made(head="pretraining", seed=7)


@pytest.mark.parametrize("command", ["encode", "tokenize"])
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("--format xml tea", "'--format': 'xml' is not one of 'table', 'json', 'jsonl', 'csv', 'markdown'."),
        ("--no-such-option tea", "No such option: --no-such-option"),
        ("tea -i x.txt", "--input: give texts or --input, not both."),
        ("tea --column a", "--column: this needs named fields"),
        ("-i x.txt --column a", "--column: this needs named fields"),
        ("", "TEXT: give a text, a file with --input, or pipe texts in, one per line."),
    ],
)
def test_errors_wrong_usage(command: str, arguments: str, why: str, model: Path) -> None:
    result = wrong_usage(command, "-m", model, *arguments.split(), why=why)
    assert result.err.startswith(f"Usage: bertcli {command} ")
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("encode x --pooling sum", "'--pooling': 'sum' is not one of 'auto', 'mean'"),
        ("encode x --layer a", "--layer: give whole numbers, as in -1 or 0,6,12."),
        ("encode x --layer ''", "--layer: give whole numbers, as in -1 or 0,6,12."),
        ("encode x --chunk a", "--chunk: give whole numbers, as in 256 or 256,32."),
        ("encode -i x.jsonl --id-column id -o x.npy", "--id-column: a .npy file cannot hold ids"),
        ("encode x --max-length many", "'--max-length': 'many' is not a valid int."),
        ("encode x --threads 0", "'--threads': 0 is not in the range x>=1."),
        ("fill-mask '[MASK]' --top-k 0", "'--top-k': 0 is not in the range x>=1."),
        ("classify x --head mlm", "'--head': 'mlm' is not one of 'classifier', 'nsp'."),
        ("classify x --activation relu", "'--activation': 'relu' is not one of 'softmax', 'sigmoid'"),
        ("no-such-command", "No such command 'no-such-command'."),
    ],
)
def test_errors_wrong_usage_of_one_command(line: str, why: str) -> None:
    assert "Note:" not in wrong_usage(*shlex.split(line), why=why).err  # no model was looked for


@pytest.mark.parametrize(("command", "wanted"), [("encode", "text"), ("neighbors", "word")])
def test_errors_without_a_text_the_way_out_is_told(command: str, wanted: str, model: Path) -> None:
    assert f"give a {wanted}, a file with --input, or pipe {wanted}s in" in bertcli(command, "-m", model).said


@pytest.mark.parametrize("command", ["encode", "tokenize", "params"])
def test_errors_empty_name_is_no_model(command: str) -> None:
    result = bertcli(command, "-m", "", *([] if command == "params" else ["tea"]))
    assert "'' is neither a folder nor a Hub id" in result.error


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("encode x --layer 3", "no layer 3"),
        ("fill-mask '[MASK]' --targets '☃☃'", "unknown to the vocabulary"),
        ("fill-mask '[MASK]' --targets 'tea,\udcff'", "half a surrogate pair"),
        ("classify x", "This model has no classifier. Its next-sentence head needs a second text"),
        ("classify x --head nsp", "Error: The next-sentence head needs a second text"),
        (
            "encode x -o x.txt",
            "the ending must be one of .json, .jsonl, .csv, .tsv, .md, .parquet, .npy, .npz, .safetensors",
        ),
        ("score x -o x.npy", "the ending must be one of .json, .jsonl"),
        (
            "encode x --pooling none -o x.npy",
            "the ending must be one of .json, .jsonl, .csv, .tsv, .md, .parquet, .npz",
        ),
        ("encode x -o nowhere/x.json", "there is no folder"),
        ("score -i nowhere.txt", "Cannot read nowhere.txt"),
        ("score -i x.doc", "the ending of an input file"),
        ("score 'a\udcff'", "not UTF-8"),
    ],
)
def test_errors_what_cannot_be_done_is_said_in_one_line(
    line: str, message: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in bertcli(*shlex.split(line), "-m", model).error
    assert list(tmp_path.iterdir()) == []


def pair_for(command: str) -> list[str]:
    """What a second text is given by, which the next-sentence head needs."""
    return ["--text-pair", "b"] if command == "classify" else []


@pytest.mark.parametrize("command", ["encode", "classify"])
@pytest.mark.parametrize("output", ["table", "json", "jsonl", "file.json", "file.jsonl"])
def test_errors_bad_line_ends_everything(command: str, output: str, model: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "in.txt", tmp_path / output
    source.write_bytes(b"a [MASK]\n" * 3 + b"\xff\n")
    if "." in output:
        target.write_text("old", encoding="utf-8")
    arguments = ["-o", str(target)] if "." in output else ["--format", output]
    result = bertcli(command, "-m", model, "-i", source, *pair_for(command), *arguments)
    assert f"{source}, line 4: not UTF-8" in result.error
    if "." in output:
        assert target.read_text(encoding="utf-8") == "old"
    assert len(list(tmp_path.iterdir())) == (2 if "." in output else 1)


@pytest.mark.parametrize("command", COMMANDS)
def test_errors_texts_are_not_written_over(command: str, model: Path, tmp_path: Path) -> None:
    source, link = tmp_path / "in.jsonl", tmp_path / "link.jsonl"
    source.write_text('{"text": "a [MASK]"}\n', encoding="utf-8")
    link.symlink_to(source)
    for given, target in ((source, source), (tmp_path / "i?.jsonl", link)):
        result = bertcli(command, "-m", model, "-i", given, *pair_for(command), "-o", target)
        assert f"Cannot write {target}: the texts are read from it" in result.error
    assert source.read_text(encoding="utf-8") == '{"text": "a [MASK]"}\n'


@pytest.mark.parametrize(
    ("line", "is_read"),
    [
        ("search tea -i vectors.parquet -o vectors.parquet", "the texts are"),
        ("search tea -i a.txt -i pairs.csv -o pairs.csv", "the texts are"),
        ("search --query-file pairs.csv -i a.txt -o pairs.csv", "--query-file is"),
        ("evaluate pairs.csv -o pairs.csv", "the texts are"),
        ("probe -i pairs.csv -o pairs.csv", "the texts are"),
        ("evaluate pairs.csv -o link.csv", "the texts are"),
        ("keywords tea --candidates pairs.csv -o ./pairs.csv", "--candidates is"),
        ("keywords tea --stop-words pairs.csv -o ./pairs.csv", "--stop-words is"),
        ("fill-mask 'hot [MASK]' --targets pairs.csv -o pairs.csv", "--targets is"),
        ("search tea -i a.txt --index pairs.csv -o pairs.csv", "--index is"),
    ],
)
def test_errors_no_file_that_an_option_reads_is_written_over(
    line: str, is_read: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "pairs.csv", "vectors.parquet"):
        Path(name).write_text("a,b\n", encoding="utf-8")
    Path("link.csv").symlink_to("pairs.csv")
    *_, target = words = shlex.split(line)
    error = bertcli(*words).error
    assert error == f"Error: Cannot write {target}: {is_read} read from it; choose another --output."
    assert Path(target).read_text(encoding="utf-8") == "a,b\n"


def test_errors_no_file_that_is_taken_as_a_text_is_written_over(tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text("a,b\n", encoding="utf-8")
    for command in ("encode", "rank", "answer", "search", "neighbors", "tokenize"):
        error = bertcli(command, file, "-o", file).error
        assert error == f"Error: Cannot write {file}: an argument names it, too; choose another --output."
    assert file.read_text(encoding="utf-8") == "a,b\n"


def test_errors_no_file_of_a_folder_and_no_index_is_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("beir", "qrels").mkdir(parents=True)
    for name in ("beir/corpus.jsonl", "beir/queries.jsonl", "beir/qrels/test.tsv", "a.txt"):
        Path(name).write_text("{}\n", encoding="utf-8")
        if name != "a.txt":
            error = bertcli("evaluate", "beir", "-o", name).error
            assert error == f"Error: Cannot write {name}: the texts are read from it; choose another --output."
            assert Path(name).read_text(encoding="utf-8") == "{}\n"
    # Of a model, too, whatever the command does with it.
    Path("model", "1_Pooling").mkdir(parents=True)
    for name in ("model/config.json", "model/1_Pooling/config.json", "model/vocab.txt", "model/model.safetensors"):
        Path(name).write_text("{}", encoding="utf-8")
        for command in (
            ("params", "-m", "./model"),
            ("encode", "tea", "-m", "bert-mini-sentence+./model"),
            ("diff", "./model", "tea"),
        ):
            error = bertcli(*command, "-o", name).error
            assert error == f"Error: Cannot write {name}: the model is read from it; choose another --output.", command
        assert Path(name).read_text(encoding="utf-8") == "{}"
    # Neither is there yet.
    error = bertcli("search", "tea", "-i", "a.txt", "--index", "x.json", "-o", "./x.json").error
    assert error == "Error: Cannot write ./x.json: --index is kept in it; choose another --output."
    assert not Path("x.json").exists()


def test_errors_stream_of_lines_may_hold_what_came_before_the_bad_one(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is read to its end before any work, which a pipe cannot be."""
    compute_together(10, monkeypatch)
    source, lines = tmp_path / "in.txt", b"tea\n" * 300 + b"\xff\n"
    source.write_bytes(lines)
    arguments = ("encode", "-m", model, "--format", "jsonl", "-i")
    of_file, of_pipe = bertcli(*arguments, source), bertcli(*arguments, "-", stdin=lines)
    for result in (of_file, of_pipe):
        assert result.status == 1
        assert result.err.count("Error: ") == 1
    assert of_file.records == []
    assert 0 < len(of_pipe.records) <= 300


def test_errors_output_that_is_a_folder(model: Path, tmp_path: Path) -> None:
    (tmp_path / "x.json").mkdir()
    assert "that is not a file" in bertcli("score", "-m", model, "x", "-o", tmp_path / "x.json").error


def test_errors_link_is_followed_and_permissions_stay(model: Path, tmp_path: Path) -> None:
    target, link = tmp_path / "real.json", tmp_path / "link.json"
    target.write_text("old", encoding="utf-8")
    target.chmod(0o600)
    link.symlink_to(target)
    assert bertcli("score", "-m", model, "tea", "-o", link).status == 0
    assert link.is_symlink()
    assert read_json(target)[0]["text"] == "tea"
    assert target.stat().st_mode & 0o777 == 0o600


def test_errors_file_that_is_protected_stays(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "x.json"
    target.write_text("old", encoding="utf-8")
    allowed = os.access  # who runs the tests may be allowed everything
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != target and allowed(path, mode))
    assert "write-protected" in bertcli("score", "-m", model, "tea", "-o", target).error
    assert target.read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize("ending", ["json", "jsonl", "npy", "safetensors", "npz"])
def test_errors_full_disk(ending: str, model: Path, tmp_path: Path) -> None:
    target = tmp_path / f"x.{ending}"
    target.write_text("old", encoding="utf-8")
    with full_disk(200):
        error = bertcli("encode", "-m", model, "tea", "milk", "-o", target).error
    assert f"Cannot write {target}: No space left on device" in error
    assert target.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_errors_bug_is_one_line_too_unless_asked(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertcli.tasks.compute.score.plan", lambda *arguments, **options: 1 / 0)
    assert "Unexpected error, ZeroDivisionError" in bertcli("score", "-m", model, "tea").error
    result = bertcli("score", "-m", model, "tea", "--debug")
    assert result.status == 1
    assert "Traceback" in result.err
    assert result.err.splitlines()[-1].startswith("Error: ")


@pytest.mark.parametrize(
    ("raised", "status", "err"),
    [
        (KeyboardInterrupt(), 130, ""),
        (MemoryError(), 1, "Error: There is not enough memory"),
        (RecursionError("deep"), 1, "Error: Unexpected error, RecursionError"),
        (ImportError("no libfoo.so.1"), 1, "Error: A package cannot be imported (no libfoo.so.1)"),
    ],
)
def test_errors_other_ends(
    raised: BaseException, status: int, err: str, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise raised

    monkeypatch.setattr("bertcli.tasks.compute.score.plan", interrupted)
    result = bertcli("score", "-m", model, "tea")
    assert (result.status, result.out) == (status, "")
    assert result.err.startswith(err)


def test_errors_name_with_a_line_break_stays_in_one_line(model: Path) -> None:
    assert "a b.txt" in bertcli("score", "-m", model, "-i", "a\nb.txt").error


@pytest.mark.parametrize("command", ["encode", "fill-mask", "score"])
def test_errors_weights_that_are_not_finite(command: str, tmp_path: Path) -> None:
    folder = damaged(tmp_path / "model", float("nan"))
    for output in (["--format", "json"], ["--format", "jsonl"], []):
        assert "the weights are damaged" in bertcli(command, "-m", folder, "a [MASK]", *output).error


@pytest.mark.parametrize("output", [[], ["--format", "csv"], ["--format", "json"]], ids=str)
def test_errors_attention_that_is_not_finite(
    output: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = damaged(tmp_path / "model", float("nan"), "bert.encoder.layer.0.output.LayerNorm.bias")
    assert "the weights are damaged" in bertcli("heads", "-m", folder, "tea", "--layer", "2", *output).error
    assert [*tmp_path.iterdir()] == [folder]


def test_errors_models_that_cannot_be_opened(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "gone"):
        assert str(folder) in bertcli("score", "-m", folder, "--offline", "tea").error
    for command, way_out in (
        ("score", "give the folder of a model"),
        ("tokenize", "has no tokenizer: neither tokenizer.json nor"),
    ):
        assert way_out in bertcli(command, "-m", tmp_path, "tea").error
    make(tmp_path / "foreign", config={"model_type": "longformer"})
    assert "longformer" in bertcli("score", "-m", tmp_path / "foreign", "tea").error


def examples(command: str = "") -> list[str]:
    """The examples in the help of a command, or of all."""
    texts = [one.callback.__doc__ or "" for one in application(command).registered_commands]
    lines = [line.strip() for text in texts for line in text.splitlines()]
    return [line for line in lines if line.startswith("bertcli ")]


@pytest.mark.parametrize("command", [str(one.name) for one in application().registered_commands])
def test_errors_help_cuts_no_example_in_a_terminal_of_80_columns(command: str) -> None:
    lines = bertcli(command, "--help", environment={"COLUMNS": "80"}).out.splitlines()
    assert {*examples(command)} <= {line.strip() for line in lines}


NEEDS_MORE = re.compile(r" -m | -i |--config|\||my-|\.svg|doctor|serve|evaluate")  # than what is bundled, or do not end


@pytest.mark.parametrize("example", [line for line in examples() if not NEEDS_MORE.search(line)])
def test_errors_no_example_of_the_help_has_any(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = bertcli(*shlex.split(example)[1:])
    assert (result.status, "Error" in result.err) == (0, False)


@pytest.mark.parametrize("option", ["--id-column", "--column"])
@pytest.mark.parametrize("ending", [".jsonl", ".csv"])
def test_errors_missing_field_names_its_option(made: Made, tmp_path: Path, option: str, ending: str) -> None:
    file = tmp_path / f"in{ending}"
    file.write_text('{"text": "tea"}\n' if ending == ".jsonl" else "text\ntea\n")
    error = bertcli("encode", "-m", made(), "-i", file, option, "nowhere", "--format", "jsonl").error
    assert f"{option})" in error


def test_errors_layer_of_thousands_of_digits(made: Made) -> None:
    assert bertcli("heads", "-m", made(), "tea", "--layer", "9" * 5000).status == 1


def test_errors_none_for_options_that_are_repeated(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "in.txt"
    file.write_text("tea\n")
    arguments: list[str | Path] = ["-i", file, "--input", file, "--offline", "--offline", "--format", "json"]
    arguments += ["--format", "jsonl"]  # the last one counts
    assert len(bertcli("encode", "-m", made(), *arguments).records) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="names are UTF-8")
def test_errors_none_for_names_that_are_not_utf8(made: Made, tmp_path: Path) -> None:
    for extra in ("pyarrow", "onnx", "onnxruntime"):
        pytest.importorskip(extra)
    model, name = tmp_path / "mod\udcffel", tmp_path / "na\udcffme"
    shutil.copytree(made(head="classifier"), model)
    for command in (
        ["encode", "-m", model, "tea", "-o", f"{name}.parquet"],
        ["classify", "-m", model, "tea", "-o", f"{name}.parquet"],
        ["params", "-m", model, "-o", f"{name}.dot"],
        ["params", "-m", model, "-o", f"{name}.mmd"],
        ["explain", "-m", model, "tea", "-o", f"{name}.html"],
        ["export", "-m", model, "-o", tmp_path / "v.onnx"],
    ):
        assert bertcli(*map(str, command)).status == 0
        assert Path(str(command[-1])).exists()
    assert "the name of a file must be UTF-8" in bertcli("export", "-m", model, "-o", f"{name}.onnx").error
    assert not Path(f"{name}.onnx").exists()

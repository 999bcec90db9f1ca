"""--redact of files: a folder in, a folder out; a table in, the table out, with all of its columns."""

import gzip
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest
from helpers.known_taggers import word_piece_tagger
from helpers.terminal import Result, bertcli

from bertcli.files.texts import Texts
from bertcli.tasks.compute import tag as work

WORDS = "anna lee met bob in york and wrote to dear".split()  # noqa: SIM905
LABEL_OF = {"anna": 3, "lee": 4, "bob": 3, "york": 1}
Redact = Callable[..., Result]


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return word_piece_tagger(tmp_path_factory.mktemp("tagger"), WORDS, LABEL_OF)


@pytest.fixture
def redact(tagger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Redact:
    """Run tag --redact in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str | Path, **settings: Any) -> Result:
        return bertcli("tag", "-m", tagger, "--redact", *arguments, **settings)

    return run


def write(name: str, content: str | bytes) -> Path:
    file = Path(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def notes(result: Result) -> list[str]:
    return [line.removeprefix("Note: ") for line in result.err.splitlines() if line.startswith("Note: ")]


# ------------------------------------------------------------------------------------------------------------- folders


@pytest.fixture
def letters(redact: Redact) -> dict[str, bytes]:
    """A folder of letters, and what is to come out."""
    write("letters/a.txt", "Dear Bob,\nAnna Lee met him\r\n\nin York")
    write("letters/2024/b.txt", "Anna wrote\n")
    write("letters/2024/deep/empty.txt", "")
    write("letters/packed.txt.gz", gzip.compress(b"to Bob\n"))
    write("letters/photo.png", b"\xff")
    write("letters/.hidden.txt", "Anna")
    return {
        "a.txt": b"Dear [PER],\n[PER] met him\r\n\nin [LOC]",
        "2024/b.txt": b"[PER] wrote\n",
        "2024/deep/empty.txt": b"",
        "packed.txt.gz": b"to [PER]\n",
    }


def written(folder: str) -> dict[str, bytes]:
    files = [file for file in Path(folder).rglob("*") if file.is_file()]
    content = {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}
    return {name: gzip.decompress(data) if name.endswith(".gz") else data for name, data in content.items()}


def test_a_folder_in_is_a_folder_out(redact: Redact, letters: dict[str, bytes]) -> None:
    before = written("letters")
    result = redact("-i", "letters", "-o", "redacted/")
    assert result.status == 0
    assert written("redacted") == letters
    assert result.err.splitlines()[-1] == (
        "Wrote 4 files to redacted/: 4 entities of PER, 1 of LOC. A name that the model misses stays in the text."
    )
    assert notes(result)[0] == "1 file is not read in letters, having no ending of texts: photo.png."
    assert written("letters") == before
    assert {path.name for path in Path().iterdir()} == {"letters", "redacted"}
    Path("there").mkdir()
    assert redact("-i", "letters/2024", "-o", "there").err.splitlines()[-1].startswith("Wrote 2 files to there/: 1 ent")
    assert written("there")["b.txt"] == letters["2024/b.txt"]
    write("none/a.txt", "we met\n")
    assert "Wrote 1 file to none-out/: no entities. A name" in redact("-i", "none", "-o", "none-out").err


def test_a_folder_of_tables_keeps_their_columns(redact: Redact) -> None:
    write("data/a.csv", 'id,note\n1,"Bob, Anna"\n')
    write("data/b.jsonl", '{"note": "in York", "n": 1.5}\n')
    write("data/c.tsv", "note\tx\nBob\ty\n")
    result = redact("-i", "data", "--column", "note", "-o", "out")
    assert written("out") == {
        "a.csv": b'id,note\n1,"[PER], [PER]"\n',
        "b.jsonl": b'{"note": "in [LOC]", "n": 1.5}\n',
        "c.tsv": b"note\tx\n[PER]\ty\n",
    }
    assert notes(result) == ["columns 'id', 'n', 'x' were not looked at."]


def test_other_commands_read_a_folder(redact: Redact, letters: dict[str, bytes], tagger: Path) -> None:
    records = bertcli("tag", "-m", tagger, "-i", "letters", "--format", "jsonl").records
    texts = ["Anna wrote", "Dear Bob,", "Anna Lee met him", "", "in York", "to Bob"]
    assert [record["text"] for record in records] == texts
    assert redact("-i", "letters").out.splitlines()[0] == "[PER] wrote"
    Path("nothing").mkdir()
    assert "There are no files of texts in nothing: .txt, .jsonl" in redact("-i", "nothing").error


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("-i letters -o letters", "the texts are read from letters"),
        ("-i letters -o letters/", "the texts are read from letters"),
        ("-i letters -o letters/out", "the texts are read from letters"),
        ("-i letters -o .", "the texts are read from letters"),
        ("-i letters -o full", "there are files in it already"),
        ("-i letters -o letters/a.txt", "the texts are read from it"),
        ("-i letters/a.txt -o out/", "a folder is written where a folder is read (-i FOLDER)"),
        ("-i letters -i full -o out/", "a folder is written where a folder is read (-i FOLDER)"),
        ("-i letters -o none/out", "there is no folder"),
        ("-i full -o out/", "full/x.fasta cannot be written again"),
    ],
)
def test_a_folder_is_never_written_over_what_is_there(
    redact: Redact, letters: dict[str, bytes], words: str, message: str
) -> None:
    write("full/x.fasta", ">a\nAnna\n")
    before = written(".")
    assert message in redact(*words.split()).error
    assert written(".") == before
    assert not Path("out").exists()


def test_a_file_of_another_encoding_is_named_before_any_work(redact: Redact, letters: dict[str, bytes]) -> None:
    for content, why in (
        ("Dear Bob,\nAnna é".encode("latin-1"), "line 2: not UTF-8 (byte 6 is 0xe9): save the file as UTF-8."),
        ("Anna".encode("utf-16"), "line 1: not UTF-8 (byte 1 is 0xff): save the file as UTF-8."),
        ("Anna".encode("utf-16-le"), "line 1: a zero byte, as UTF-16 has them: save the file as UTF-8."),
    ):
        write("letters/z.txt", content)
        assert f"letters/z.txt, {why}" in redact("-i", "letters", "-o", "redacted/").error
        assert not Path("redacted").exists()
    going_on = redact("-i", "letters", "-o", "redacted/", "--keep-going")
    assert going_on.status == 1
    assert (
        "1 of 7 texts could not be used; of a table such rows are left out, and such lines are empty." in going_on.err
    )
    assert written("redacted") == {**letters, "z.txt": b""}


def test_a_folder_is_written_whole_or_not_at_all_and_resumed(
    redact: Redact, letters: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run ends at the fourth text, with segments; the second computes the rest alone."""
    write("letters/more.txt", "Bob\n" * 40)
    arguments = ("-i", "letters", "-o", "redacted/", "--resume")
    computed: list[int] = []
    compute = work._Tag.compute

    def counting(self: Any, window: Any) -> Any:
        computed.extend(item.index for item in window.items)
        if stops and len(computed) > 3:
            raise KeyboardInterrupt
        return compute(self, window)

    def in_small_windows(self: Any, tokens: int, span: int) -> Any:
        return grouped(self, 4, 1)

    grouped = Texts.grouped
    monkeypatch.setattr(Texts, "grouped", in_small_windows)
    monkeypatch.setattr(work._Tag, "compute", counting)
    stops = True
    assert redact(*arguments).status == 130
    assert not Path("redacted").exists()
    assert any(Path(".redacted.parts").glob("*.npz"))
    assert not any(b"anna" in file.read_bytes().lower() for file in Path(".redacted.parts").iterdir())
    stops = False
    computed.clear()
    again = redact(*arguments)
    assert again.status == 0
    assert "continuing an unfinished run of redacted/" in again.err
    assert computed == list(range(3, 46))
    assert written("redacted") == {**letters, "more.txt": b"[PER]\n" * 40}
    assert "Wrote 5 files to redacted/: 44 entities of PER, 1 of LOC. A name" in again.err
    assert not Path(".redacted.parts").exists()
    for words in (arguments, arguments[:-1]):
        assert "there are files in it already" in redact(*words).error


# -------------------------------------------------------------------------------------------------------------- tables


def test_a_table_keeps_its_columns_in_their_order(redact: Redact) -> None:
    write("people.csv", 'id,name,note,name\n1,Bob,Anna Lee met Bob,x\n2,"x, y","in ""York""\ntoday",=1\n')
    result = redact("-i", "people.csv", "--column", "note", "-o", "clean.csv")
    expected = 'id,name,note,name\n1,Bob,[PER] met [PER],x\n2,"x, y","in ""[LOC]""\ntoday",=1\n'
    assert Path("clean.csv").read_text(encoding="utf-8") == expected
    assert notes(result) == ["columns 'id', 'name' were not looked at."]
    write("one.csv", "name,note\nBob,Anna\n")
    assert notes(redact("-i", "one.csv", "--column", "note", "-o", "clean.csv")) == ["column 'name' was not looked at."]
    assert Path("clean.csv").read_text(encoding="utf-8") == "name,note\nBob,[PER]\n"
    alone = redact("-i", "one.csv", "-i", "one.csv", "--column", "name", "--redact-with", "X", "-o", "clean.csv")
    assert Path("clean.csv").read_text(encoding="utf-8") == "name,note\nX,Anna\nX,Anna\n"
    assert notes(alone) == ["column 'note' was not looked at."]


def test_tables_of_every_shape(redact: Redact) -> None:
    write("a.csv", "id;note\n1;Anna; \n2;Bob\n".replace("Anna; ", "Anna"))
    assert redact("-i", "a.csv", "--column", "note", "-o", "b.csv").status == 0
    assert Path("b.csv").read_text(encoding="utf-8") == "id;note\n1;[PER]\n2;[PER]\n"
    write("c.tsv", 'x\tnote\ty\n"q"\tAnna\t1\n2\tBob\n')
    assert redact("-i", "c.tsv", "--column", "note", "-o", "d.tsv").status == 0
    assert Path("d.tsv").read_text(encoding="utf-8") == "x\tnote\ty\nq\t[PER]\t1\n2\t[PER]\n"
    write("e.csv", "Anna,1\nBob,2\n")
    assert redact("-i", "e.csv", "--no-header", "-o", "f.csv").status == 0
    assert Path("f.csv").read_text(encoding="utf-8") == "[PER],1\n[PER],2\n"
    write("g.csv", "text,x\n")
    assert redact("-i", "g.csv", "-o", "h.csv").status == 0
    assert Path("h.csv").read_text(encoding="utf-8") == "text,x\n"
    write("i.csv.gz", gzip.compress(b"text\nAnna\n"))
    assert redact("-i", "i.csv.gz", "-o", "j.csv").status == 0
    assert Path("j.csv").read_text(encoding="utf-8") == "text\n[PER]\n"


def test_json_lines_keep_their_fields(redact: Redact) -> None:
    write("a.jsonl", '{"n": [1, {"a": null}], "text": "Anna", "é": "ü\\ud800"}\n{"text": "in York", "more": 1e400}\n')
    result = redact("-i", "a.jsonl", "-o", "b.jsonl")
    first, second = Path("b.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(first) == {"n": [1, {"a": None}], "text": "[PER]", "é": "ü\ud800"}
    assert list(json.loads(first)) == ["n", "text", "é"]
    assert json.loads(second)["text"] == "in [LOC]"
    assert notes(result) == ["columns 'n', 'é', 'more' were not looked at."]
    assert redact("-i", "a.jsonl", "-o", "c.jsonl", "--keep-text").status == 0
    assert [json.loads(line)["text"] for line in Path("c.jsonl").read_text("utf-8").splitlines()] == ["Anna", "in York"]


def test_parquet_keeps_the_types_of_its_columns(redact: Redact) -> None:
    names = arrow.array(["x", None, "z"]).dictionary_encode()
    table = arrow.table(
        {"id": arrow.array([1, 2, 3], arrow.int16()), "note": ["Anna met", "in York", None], "name": names,
         "list": [[1.5], [], None]}, metadata={"made": "by hand"},
    )  # fmt: skip
    parquet.write_table(table, "a.parquet")
    assert "row 3: the field 'note' is null" in redact("-i", "a.parquet", "--column", "note", "-o", "b.parquet").error
    result = redact("-i", "a.parquet", "--column", "note", "-o", "b.parquet", "--keep-going")
    assert "1 of 3 texts could not be used" in result.err
    clean = parquet.read_table("b.parquet")
    assert clean.schema.names == ["id", "note", "name", "list"]
    assert clean.schema.field("id").type == arrow.int16()
    assert clean.schema.metadata[b"made"] == b"by hand"
    assert clean.to_pydict() == {
        "id": [1, 2], "note": ["[PER] met", "in [LOC]"], "name": ["x", None], "list": [[1.5], []],
    }  # fmt: skip
    assert notes(result)[-1] == "columns 'id', 'name', 'list' were not looked at."
    coded = table.take([0, 1]).set_column(1, "note", arrow.array(["Anna", "Anna"]).dictionary_encode())
    parquet.write_table(coded, "c.parquet")
    assert redact("-i", "c.parquet", "--column", "note", "-o", "d.parquet").status == 0
    assert parquet.read_table("d.parquet").column("note").to_pylist() == ["[PER]", "[PER]"]
    refused = redact("-i", "c.parquet", "-i", "c.parquet", "--column", "note", "-o", "d.parquet")
    assert "Several .parquet files are not written as one" in refused.error


def test_rows_that_cannot_be_used_are_left_out(redact: Redact) -> None:
    write("a.jsonl", '{"text": "Anna", "n": 1}\n{"text": 3, "n": "York"}\nnot JSON\n{"text": "Bob", "n": 4}\n')
    assert "a.jsonl, line 2: the field 'text' is 3" in redact("-i", "a.jsonl", "-o", "b.jsonl").error
    assert not Path("b.jsonl").exists()
    result = redact("-i", "a.jsonl", "-o", "b.jsonl", "--keep-going")
    assert result.status == 1
    assert "2 of 4 texts could not be used; of a table such rows are left out" in result.err
    assert Path("b.jsonl").read_text("utf-8") == '{"text": "[PER]", "n": 1}\n{"text": "[PER]", "n": 4}\n'


def test_tables_of_other_columns_or_endings_are_not_one(redact: Redact) -> None:
    write("a.csv", "id,text\n1,Anna\n")
    write("b.csv", "text,id\nBob,1\n")
    assert "b.csv has other columns than a.csv" in redact("-i", "a.csv", "-i", "b.csv", "-o", "c.csv").error
    assert not Path("c.csv").exists()
    other = redact("-i", "a.csv", "-o", "c.jsonl")
    assert notes(other) == ["only the new texts are written; other columns are, too, in a file of the same ending."]
    assert json.loads(Path("c.jsonl").read_text("utf-8"))["redacted"] == "[PER]"
    piped = redact("--column", "text", "-o", "d.csv", stdin="id,text\n1,Anna\n")
    assert notes(piped) == ["of a pipe only the new texts are written; with --input FILE its other columns are, too."]
    assert Path("d.csv").read_text("utf-8") == "index,redacted\n0,[PER]\n"


def test_a_file_that_changes_while_it_is_read_is_no_result(redact: Redact, monkeypatch: pytest.MonkeyPatch) -> None:
    compute = work._Tag.compute
    for more in ("id,text\n1,Anna\n2,Bob\n3,Lee\n", "id,text\n1,Anna\n"):
        write("a.csv", "id,text\n1,Anna\n2,Bob\n")

        def changing(self: Any, window: Any, content: str = more) -> Any:
            write("a.csv", content)
            return compute(self, window)

        monkeypatch.setattr(work._Tag, "compute", changing)
        assert (
            "A file has changed while it was read: run the command again." in redact("-i", "a.csv", "-o", "b.csv").error
        )
        assert not Path("b.csv").exists()


def test_the_table_of_tag_shows_the_words_of_the_text(tagger: Path) -> None:
    assert re.search(r"PER\s+1\.0000\s+Anna LEE\s+3\s+11", bertcli("tag", "-m", tagger, "to Anna LEE").out)
    csv = bertcli("tag", "-m", tagger, "--format", "csv", "to Anna LEE").out
    assert io.StringIO(csv).readlines()[1].split(",")[3] == "Anna LEE"
    (record,) = bertcli("tag", "-m", tagger, "--format", "jsonl", "to Anna LEE").records
    assert record["entities"][0]["word"] == "anna lee", "as transformers' pipeline has it"


def test_words_are_read_as_their_text(redact: Redact) -> None:
    """As every data set of named entities has them: in .jsonl and .parquet, for all that read texts."""
    rows = [{"id": 1, "tokens": ["Anna", "Lee", "met", "Bob"]}, {"id": 2, "tokens": ["in", "York"]}]
    write("w.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    parquet.write_table(arrow.Table.from_pylist(rows), "w.parquet")
    for file in ("w.jsonl", "w.parquet"):
        read = bertcli("tokenize", "-i", file, "--column", "tokens", "--format", "jsonl").records
        assert [record["text"] for record in read] == ["Anna Lee met Bob", "in York"]
    for bad in ([], ["Anna", 3], [["Anna"]]):
        write("bad.jsonl", json.dumps({"tokens": bad}) + "\n")
        assert "which is not a text" in redact("-i", "bad.jsonl", "--column", "tokens").error

"""Every form of output of every command: each holds what --format json prints.

The commands are those of the application, and the forms are those that it names: a new one of either kind fails here
until it is listed.
"""

import csv
import html
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import Made
from helpers.json_files import read_json
from helpers.options_of_commands import choices, commands_with
from helpers.terminal import bertcli
from reference.task_cases import RANKER, READER, TAGGER
from safetensors.numpy import load_file

MASKED = {"head": "pretraining", "seed": 7}
TEXTS = ("=1, the [MASK] sat on \x1b[31mthe mat.", 'A "[MASK]" of tea; <b>中国')
PLAIN = ("The queen walked to the river.", "Paris is a city.")
PRINTED = ("table", "json", "jsonl", "csv", "markdown")
TABLES = (".json", ".jsonl", ".csv", ".tsv", ".md", ".parquet")
PAGES, ARRAYS = (*TABLES, ".html"), (".npy", ".npz", ".safetensors")
FIGURES = (*PAGES, ".pdf", ".svg", ".png")
Row = dict[str, Any]
Rows = Callable[[Any], Iterator[Row]]


class Writer(NamedTuple):
    """How a command is called, and the endings of the files that it writes.

    rows: the rows of a table that --format json amounts to, with the columns of a .csv file; shown: how the cells of
    such a row look where they are for people, or None for one that they are not shown. whole: the result is one object,
    whose rows are the lines of .jsonl.
    """

    command: str
    arguments: tuple[str, ...]
    rows: Rows
    shown: Mapping[str, Callable[[Any], str]]
    endings: tuple[str, ...] = TABLES
    checkpoint: Mapping[str, Any] = MASKED
    whole: bool = False


def visible(text: str) -> str:
    """A text as tables show it, without control characters."""
    return text.replace("\x1b", "\\x1b")


def four(number: float) -> str:
    """A number in a table."""
    return f"{number:.4f}" if 0.001 <= abs(number) < 1e6 else f"{number:.3e}"


def two(number: float) -> str:
    """A figure beside its interval, rounded as people do."""
    return str(Decimal(repr(number)).quantize(Decimal("0.01"), ROUND_HALF_UP))


def rows_of_classify(records: Any) -> Iterator[Row]:
    for record in records:
        for label in record["labels"]:
            yield {name: record[name] for name in ("index", "text", "text_pair")} | label


def rows_of_fill_mask(records: Any) -> Iterator[Row]:
    for record in records:
        for mask in record["masks"]:
            for word in mask["predictions"]:
                yield {
                    "index": record["index"],
                    "position": mask["position"],
                    "score": word["score"],
                    "token": word["token_str"],
                    "token_id": word["token"],
                    "sequence": word["sequence"],
                }


def rows_of_tag(records: Any) -> Iterator[Row]:
    for record in records:
        for entity in record["entities"]:
            named = {"index": record["index"], "label": entity["entity_group"]}
            words = record["text"][entity["start"] : entity["end"]]
            yield named | {"word": words} | {name: entity[name] for name in ("score", "start", "end")}


def rows_of_answer(records: Any) -> Iterator[Row]:
    for record in records:
        for answer in record["answers"]:
            named = {"index": record["index"], "question": record["question"]}
            yield named | {name: answer[name] for name in ("score", "answer", "start", "end")}


def rows_under(outer: str, *names: str) -> Rows:
    """The rows that a record, or each of a list, has under a name, with these of its own values."""

    def rows(found: Any) -> Iterator[Row]:
        for record in found if isinstance(found, list) else [found]:
            for part in record[outer]:
                yield {name: record[name] for name in names} | part

    return rows


def rows_of_tokenize(records: Any) -> Iterator[Row]:
    for record in records:
        columns = zip(record["tokens"], record["ids"], record["segments"], record["offsets"], strict=True)
        for position, (token, id, segment, (start, end)) in enumerate(columns):
            named = {"index": record["index"], "position": position, "token": token, "id": id, "segment": segment}
            yield named | {"start": start, "end": end}


def rows_of_lens(records: Any) -> Iterator[Row]:
    for record in records:
        for mask in record["masks"]:
            for layer in mask["layers"]:
                yield {"index": record["index"], "position": mask["position"], **layer}


def rows_of_search(records: Any) -> Iterator[Row]:
    for record in records:
        for hit in record["nearest"]:
            yield {"query": record["query"], **hit}


def rows_of_trace(record: Any) -> Iterator[Row]:
    for step in record["steps"]:
        yield {name: step[name] for name in ("path", "group", "operation", "params", "macs", "flops", "bytes")}


def rows_of_patch(record: Any) -> Iterator[Row]:
    for layer, row in enumerate(record["effects"]["layers"]):
        for position, effect in enumerate(row):
            yield {"of": "layers", "direction": "denoise", "layer": layer, "position": position, "effect": effect}


def rows_of_probe(record: Any) -> Iterator[Row]:
    for layer in record["layers"]:
        yield {"layer": layer["layer"], "accuracy_value": layer["accuracy"]["value"], "control": layer["control"]}


pytestmark = pytest.mark.usefixtures("few_draws")
LABELLED = "text,label\n" + "a cup of tea,1\nthe king,0\n" * 5
SCORED = {"score": four}


def rows_of_encode(records: Any) -> Iterator[Row]:
    for record in records:
        yield {name: record[name] for name in ("index", "text", "embedding")}


def rows_of_similarity(records: Any) -> Iterator[Row]:
    for record in records:
        of_texts = {str(number): cosine for number, cosine in enumerate(record["cosine"])}
        yield {"index": record["index"], "text": record["text"], **of_texts}


def rows_of_score(records: Any) -> Iterator[Row]:
    for record in records:
        whole = {name: record[name] for name in ("loss", "pseudo_perplexity")}
        for token in record["tokens"]:
            yield {"index": record["index"], **token, **dict.fromkeys(whole)}
        yield {"index": record["index"], "token": "(all)", "log_prob": None, **whole}


def rows_of_neighbors(records: Any) -> Iterator[Row]:
    for record in records:
        for neighbor in record["neighbors"]:
            yield {"word": record["token"], **neighbor}


WRITERS = [
    Writer(
        "encode", TEXTS, rows_of_encode,
        {"text": visible, "embedding": lambda vector: " ".join(f"{number:7.4f}" for number in vector[:4])},
        endings=(*TABLES, *ARRAYS),
    ),
    Writer("similarity", TEXTS, rows_of_similarity, {"text": visible, "1": four}, endings=(*TABLES, *ARRAYS)),
    Writer("search", ("hot tea", "-i", "VECTORS"), rows_of_search, {"row": str, **SCORED, "text": visible}),
    Writer("classify", PLAIN, rows_of_classify, {"text": visible, "label": str, **SCORED},
           checkpoint={"head": "classifier"}),
    Writer("fill-mask", TEXTS, rows_of_fill_mask, {**SCORED, "token": str, "token_id": str, "sequence": visible}),
    Writer("score", TEXTS, rows_of_score, {"token": str, "log_prob": four}),
    Writer("tag", PLAIN, rows_of_tag, {"label": str, **SCORED, "word": str}, PAGES, checkpoint=TAGGER),
    Writer("answer", ("Who walked?", "What?", "--context", PLAIN[0]), rows_of_answer, {**SCORED, "answer": str}, PAGES,
           checkpoint=READER),
    Writer("rank", ("hot tea", *TEXTS), iter, {"corpus_id": str, **SCORED, "text": visible}, checkpoint=RANKER),
    Writer("keywords", PLAIN, rows_under("keywords", "index"), {"keyword": str, **SCORED}, PAGES),
    Writer("tokenize", TEXTS, rows_of_tokenize, {"token": visible, "id": str}),
    Writer("neighbors", ("king", "tea"), rows_of_neighbors, {"token": str, "id": str, "cosine": four}),
    Writer("explain", PLAIN, rows_under("words", "index"), {"word": str, "contribution": "{:+z.4f}".format}, FIGURES,
           checkpoint={"head": "classifier"}),
    Writer("lens", TEXTS, rows_of_lens, {"predictions": lambda best: best[0]["token_str"]}, FIGURES),
    Writer("heads", PLAIN, rows_under("heads"), {"layer": str, "head": str, "entropy": "{:.3f}".format, "distance":
           "{:.2f}".format, "special": "{:.1%}".format, "self": "{:.1%}".format}, FIGURES, whole=True),
    Writer("heads", (PLAIN[0], "--rollout", "0"), lambda record: ({"rollout": share} for share in record["rollout"][0]),
           {"rollout": "{:.1%}".format}, FIGURES, whole=True),
    Writer("patch", (TEXTS[0], "The [MASK] ran, =1 on \x1b[31mthe mat."), rows_of_patch, {"effect": "{:+z.3f}".format},
           FIGURES, whole=True),
    Writer("probe", ("-i", "LABELLED", "--folds", "3"), rows_of_probe, {"accuracy_value": two, "control": four},
           FIGURES, whole=True),
    Writer("diff", ("--versus", "OTHER", PLAIN[0]), rows_under("steps"),
           {"path": str, "max_abs": "{:.2e}".format, "max_rel": "{:.2e}".format, "cosine": "{:.6f}".format},
           PAGES, whole=True),
    Writer("trace", (PLAIN[0], "--all-layers"), rows_of_trace, {"operation": str}, whole=True),
    Writer("trace", (PLAIN[0],), rows_of_trace, {"operation": str}, (".html", ".npz", ".safetensors"), whole=True),
    # Rows that contain none: a table shows a module with what is inside it, test_params.py.
    Writer("params", ("--depth", "1"), rows_under("rows"), {"path": str, "params": "{:,}".format},
           (*PAGES, ".dot", ".mmd", ".svg", ".png"), whole=True),
]  # fmt: skip
WITHOUT_A_TEST_HERE = {
    "export",
    "doctor",
    "evaluate",
    "info",
}  # but in test_export_command and so on
FORMATS = [(writer, format) for writer in WRITERS if ".json" in writer.endings for format in PRINTED]
FILES = [(writer, ending) for writer in WRITERS for ending in writer.endings]


def call(writer: Writer, made: Made, *more: str | Path) -> Any:
    """What the command does with more arguments."""
    model, other = made(**writer.checkpoint), made(**{**writer.checkpoint, "seed": 8})
    vectors = model.with_suffix(".parquet")
    if "VECTORS" in writer.arguments and not vectors.exists():
        pytest.importorskip("pyarrow")
        assert bertcli("encode", "-m", model, *TEXTS, "-o", vectors).status == 0
    labelled = model.with_suffix(".csv")
    labelled.write_text(LABELLED, encoding="utf-8")
    named = {"OTHER": other, "VECTORS": vectors, "LABELLED": labelled}
    arguments = [named.get(argument, argument) for argument in writer.arguments]
    return bertcli(writer.command, *([model] if writer.command == "diff" else ["-m", model]), *arguments, *more)


def printed(writer: Writer, made: Made, format: str) -> str:
    result = call(writer, made, "--format", format)
    assert result.status == 0, result.err
    return str(result.out)


EXPECTED: dict[int, str] = {}


def expected(writer: Writer, made: Made) -> Any:
    """The records of a writer: printed once for all its forms."""
    place = WRITERS.index(writer)
    if place not in EXPECTED:
        EXPECTED[place] = printed(writer, made, "json")
    return json.loads(EXPECTED[place])


def flat(value: Any) -> str:
    """A value as a cell of a .csv file: lists of names joined, anything deeper and vectors as JSON."""
    if isinstance(value, list) and all(isinstance(item, str | int) for item in value):
        return ", ".join(map(str, value))
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else str(value)


def check_rows(found: list[dict[str, str]], writer: Writer, record: Any) -> None:
    """Rows read from comma-separated values have every value of the record, numbers in full."""
    rows = list(writer.rows(record))
    assert len(found) == len(rows)
    for one, row in zip(found, rows, strict=True):
        assert {name: one[name] for name in row} == {name: flat(value) for name, value in row.items()}


def check_shown(text: str, writer: Writer, record: Any, ordered: bool = True) -> None:
    """What people see has every cell of every row: one row after the other if `ordered`."""
    place = 0
    rows = list(writer.rows(record))
    assert rows
    for row in rows:
        for name, show in writer.shown.items():
            if row[name] is not None:
                at = text.find(show(row[name]), place)
                assert at >= 0, (row, name)
                place = at if ordered else 0


def check_lines(lines: list[str], writer: Writer, record: Any) -> None:
    """Lines of JSON are the records; of a result that is one object, its rows."""
    found = list(map(json.loads, lines))
    if not writer.whole:
        assert found == record
        return
    rows = list(writer.rows(record))
    assert [{name: line[name] for name in row} for line, row in zip(found, rows, strict=True)] == rows


def check_markdown(text: str, writer: Writer, record: Any) -> None:
    cells = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.count(" |") for line in cells} == {cells[0].count(" |")}
    table, _, _ = text[text.index("|") :].partition("\n\n")
    check_sides(table.splitlines())
    check_shown(re.sub(r"\\([\\|*<`_])", r"\1", text), writer, record)


def check_sides(lines: list[str]) -> None:
    """A column of numbers stands to the right, and a column with words to the left; an id may be a text of digits."""
    heading, sides, *rows = ([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines)
    for name, side, *column in zip(heading, sides, *rows, strict=True):
        cells = list(filter(None, column))
        if side == "---:":
            assert not any(re.search("[A-Za-z]{2}", cell) for cell in cells), name
        elif name not in ("id", "token_id"):
            assert not cells or not all(re.fullmatch(r"[+−-]?\d[\d.,]*%?", cell) for cell in cells), name


def check_arrays(file: Path, arrays: Mapping[str, Any], writer: Writer, record: Any) -> None:
    name = {"encode": "embedding", "similarity": "cosine"}.get(writer.command)
    if name:
        (rows,) = (value for key, value in arrays.items() if key in ("embeddings", "cosine", "array"))
        assert np.array_equal(rows, np.array([one[name] for one in record], np.float32))
    else:
        for step in record["steps"]:
            assert 4 * arrays[step["path"]].size == step["bytes"], file


def check_page(content: str, writer: Writer, record: Any) -> None:
    assert content.lower().startswith("<!doctype html>")
    if writer.command == "trace":
        data = re.search(r'<script[^>]*id="?data"?[^>]*>(.*?)</script>', content, re.DOTALL)
        assert data
        told = json.loads(data[1])
        assert [step["path"] for step in told["steps"]] == [step["path"] for step in record["steps"]]
        assert set(told["arrays"]) <= {step["path"] for step in record["steps"]}
        return
    if writer.command == "patch":  # in a map there is room for two decimals
        writer = writer._replace(shown={"effect": "{:+z.2f}".format})
    check_shown(text_of(content), writer, record, ordered=False)


def text_of(content: str) -> str:
    """What is written on a page or in a figure."""
    hidden = re.sub(
        r"<style.*?</style>|<script.*?</script>|<[^>]*>", " ", content.replace("<wbr>", ""), flags=re.DOTALL
    )
    return " ".join(html.unescape(hidden).split())


def check_file(file: Path, writer: Writer, record: Any) -> None:
    match file.suffix:
        case ".json":
            assert read_json(file) == record
        case ".jsonl":
            lines = file.read_text(encoding="utf-8").split("\n")
            assert lines.pop() == ""
            check_lines(lines, writer, record)
        case ".csv" | ".tsv":
            with file.open(encoding="utf-8", newline="") as stream:
                check_rows(
                    list(csv.DictReader(stream, delimiter="," if file.suffix == ".csv" else "\t")), writer, record
                )
        case ".parquet":
            found = pytest.importorskip("pyarrow.parquet").read_table(file).to_pylist()
            wanted = list(writer.rows(record))
            if writer.command == "encode":
                wanted = [{"id": i, "text": row["text"], "embedding": row["embedding"]} for i, row in enumerate(wanted)]
                for row in found:  # float32 numbers, which a record has with the digits that read back as them
                    vector = np.array(row["embedding"], np.float32)
                    assert np.array_equal(row["embedding"], vector)
                    row["embedding"] = [float(str(number)) for number in vector]
            elif writer.command == "search":  # ids of one's own are texts
                wanted = [row | {"id": str(row["id"])} for row in wanted]
            assert len(found) == len(wanted)
            for one, row in zip(found, wanted, strict=True):
                kept = {name: one[name] for name in row}
                assert kept in (
                    row,
                    {name: flat(value) if isinstance(value, list) else value for name, value in row.items()},
                )
        case ".npy":
            check_arrays(file, {"array": np.load(file)}, writer, record)
        case ".npz":
            with np.load(file) as arrays:
                check_arrays(file, arrays, writer, record)
        case ".safetensors":
            check_arrays(file, load_file(file), writer, record)
        case ".html":
            check_page(file.read_text(encoding="utf-8"), writer, record)
        case ".md":
            check_markdown(file.read_text(encoding="utf-8"), writer, record)
        case ".dot" | ".mmd":
            check_shown(file.read_text(encoding="utf-8"), writer, {"rows": [r for r in record["rows"] if r["params"]]})
        case ending:
            # tests/wings/interpret/test_figures.py compares a figure with its record.
            begins = {".pdf": b"%PDF", ".svg": b"<?xml", ".png": b"\x89PNG"}[ending]
            assert file.read_bytes().startswith(begins)


# What is no form of the record: the classifier that a probe is saved as, tested in test_classifier.py, and what a view
# computed as arrays, tested in test_view_commands.py.
OF_A_VIEW = {".npz", ".safetensors"}
OTHER_FILES = {"probe": {".safetensors"}, "lens": OF_A_VIEW, "heads": OF_A_VIEW, "patch": OF_A_VIEW}


def test_every_output_is_tested_of_every_command_that_has_it(made: Made, tmp_path: Path) -> None:
    assert {writer.command for writer in WRITERS} | WITHOUT_A_TEST_HERE == commands_with("--output") | commands_with(
        "--format"
    )
    for writer in WRITERS:
        assert choices(writer.command, "--format") == PRINTED
        refusal = call(writer, made, "-o", tmp_path / "x.nonsense").err
        listed, _, _ = refusal.partition("must be")[2].strip().partition(". ")
        tried = {ending for other in WRITERS if other.command == writer.command for ending in other.endings}
        assert {*re.findall(r"\.[a-z]+(?=,|\.?$)", listed)} == tried | OTHER_FILES.get(writer.command, set()), refusal


@pytest.mark.parametrize(("writer", "format"), FORMATS, ids=lambda value: getattr(value, "command", value))
def test_every_output_is_printed(writer: Writer, format: str, made: Made) -> None:
    out, record = printed(writer, made, format), expected(writer, made)
    match format:
        case "json":
            assert list(writer.rows(record))
        case "jsonl":
            check_lines(out.splitlines(), writer, record)
        case "csv":
            check_rows(list(csv.DictReader(io.StringIO(out, newline=""))), writer, record)
        case "table":
            check_shown(out, writer, record)
        case other:
            assert other == "markdown"
            check_markdown(out, writer, record)


@pytest.mark.parametrize(("writer", "ending"), FILES, ids=lambda value: getattr(value, "command", value))
def test_every_output_is_written(writer: Writer, ending: str, made: Made, tmp_path: Path) -> None:
    file = tmp_path / f"written{ending}"
    result = call(writer, made, "-o", file)
    if ending in (".svg", ".png") and "Graphviz" in result.err:
        pytest.skip("Graphviz is not here")
    assert (result.status, result.out) == (0, ""), result.err
    check_file(file, writer, expected(writer, made))
    size = file.stat().st_size
    shown = f"{size} bytes" if size < 1000 else f"{size / 1e3:.0f} kB" if size < 999_500 else f"{size / 1e6:.1f} MB"
    assert [line for line in result.err.splitlines() if line.startswith("Wrote")] == [f"Wrote {file} ({shown})."]
    if ending == ".html":
        about = re.search(r'<p class="about">(.*?)</p>', file.read_text(encoding="utf-8"), re.DOTALL)
        assert about
        assert str(made(**writer.checkpoint)) in html.unescape(about[1])

"""`params -o FILE.dot`: the rows as a graph of what feeds what, and which rows contain which.

DOT (Graphviz) and Mermaid are text; pictures are drawn by Graphviz.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from typing import NamedTuple

from bertcli.analysis.params.flow import is_within
from bertcli.analysis.params.rows import SummaryRow
from bertcli.analysis.params.table import Summary
from bertcli.errors import BertcliError
from bertcli.files.files_beside import check_output
from bertcli.files.formats import ending_of
from bertcli.files.write.save import save
from bertcli.report.terminal import visible

INDENT = "    "


class Language(NamedTuple):
    """The syntax of a graph language: begin and end; a frame and a box (id, label); an arrow; a label of lines."""

    head: Callable[[str], list[str]]
    frame: str
    frame_end: str
    box: str
    arrow: str
    label: Callable[[list[str]], str]
    end: str = ""


def drawn(summary: Summary, language: Language) -> str:
    """The rows as a graph; a row that contains others is a frame, and is a node only if it does work of its own."""
    rows = summary.rows
    frames = {outer.path for outer in rows if any(is_within(row.path, outer.path) for row in rows)}
    fed_from = {path for row in rows for path in row.connected_to}
    nodes = {row.path for row in rows if row.path not in frames or row.params or row.path in fed_from}
    ids = {row.path: f"n{i}" for i, row in enumerate(rows)}
    lines = language.head(visible(summary.model))
    open_frames: list[str] = []  # their paths, the innermost last

    def add(line: str) -> None:
        lines.append(INDENT * (1 + len(open_frames)) + line)

    for row in rows:
        while open_frames and not is_within(row.path, open_frames[-1]):
            open_frames.pop()
            add(language.frame_end)
        if row.path in frames:
            add(language.frame.format(ids[row.path], language.label([f"{row.path} ({row.type})"])))
            open_frames.append(row.path)
        if row.path in nodes:
            add(language.box.format(ids[row.path], language.label(_label(row))))
    while open_frames:
        open_frames.pop()
        add(language.frame_end)
    for row in (row for row in rows if row.path in nodes):
        sources = [source for source in row.connected_to if source != row.path]  # "× 12" stands for the repetition
        lines += [f"{INDENT}{ids[source]} {language.arrow} {ids[row.path]}" for source in sources]
    return "\n".join([*lines, language.end])


def _label(row: SummaryRow) -> list[str]:
    return [row.path or row.type, row.type, row.output_shape, *([f"{row.params:,} params"] if row.params else [])]


def _quoted(lines: list[str]) -> str:
    """A DOT string; \\n ends a line of a label."""
    return '"' + "\n".join(lines).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _in_mermaid(lines: list[str]) -> str:
    """A Mermaid label: anything but letters, digits and plain punctuation becomes a numeric entity."""
    plain = [re.sub(r"[^\w .,()*×-]", lambda match: f"#{ord(match[0])};", line) for line in lines]
    return f'"{"<br/>".join(plain)}"'


def _dot_head(title: str) -> list[str]:
    graph = f'{INDENT}graph [label={_quoted([title])}, labelloc=t, fontname="Helvetica"]'
    return [f"digraph {_quoted([title])} {{", graph, f'{INDENT}node [shape=box, fontname="Helvetica"]']


def _mermaid_head(title: str) -> list[str]:
    return ["---", f"title: {json.dumps(title, ensure_ascii=False)}", "---", "flowchart TD"]


DOT_FRAME = "subgraph cluster_{} {{ label={}; labelloc=t; labeljust=l; color=gray"
DOT = Language(_dot_head, DOT_FRAME, "}", "{} [label={}]", "->", _quoted, "}\n")
TEXTS = {".dot": DOT, ".mmd": Language(_mermaid_head, "subgraph f{}[{}]", "end", "{}[{}]", "-->", _in_mermaid)}
PICTURES = (".svg", ".png")
MOST_SECONDS = 300  # for Graphviz; a graph of a thousand boxes takes a few


def check_plot(file: str) -> str:
    """The ending of a file to be drawn; BertcliError for one that could not be, before any work is done."""
    check_output(file, (*TEXTS, *PICTURES))
    ending = ending_of(file)
    if ending in PICTURES and shutil.which("dot") is None:
        raise BertcliError(
            f"Cannot draw {file}: a {ending} picture needs Graphviz, whose command `dot` is not installed: "
            "install graphviz (apt, dnf, brew, winget or conda have it). "
            f"{' and '.join(TEXTS)} files do not need it."
        )
    return ending


def plot(summary: Summary, file: str) -> None:
    """Draw the rows of a summary, with shapes, into a .dot, .mmd (Mermaid), .svg or .png file."""
    ending = check_plot(file)
    data = drawn(summary, TEXTS.get(ending, DOT)).encode()
    save(file, data if ending in TEXTS else _picture(data, ending.removeprefix("."), file))


def _picture(dot: bytes, format: str, file: str) -> bytes:
    try:
        done = subprocess.run(["dot", f"-T{format}"], input=dot, capture_output=True, timeout=MOST_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BertcliError(f"Cannot draw {file}: Graphviz' dot failed: {error}.") from None
    if done.returncode:
        reason = (done.stderr.decode(errors="replace").strip().splitlines() or [f"status {done.returncode}"])[0]
        raise BertcliError(f"Cannot draw {file}: Graphviz' dot failed: {reason}.")
    return done.stdout

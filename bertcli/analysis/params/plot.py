"""The rows as a graph: what feeds what, and which rows contain which.

DOT (Graphviz) and Mermaid are text; pictures are drawn by Graphviz.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from bertcli.analysis.params.summary import Row, Summary, is_within
from bertcli.errors import BertcliError
from bertcli.files.formats import check_output, ending_of
from bertcli.files.shards import save
from bertcli.report.terminal import visible

INDENT = "    "


@dataclass(frozen=True)
class Graph:
    """Rows, each with an id; a row that contains others is a frame, and is a node only if it does work of its own."""

    title: str
    rows: tuple[Row, ...]
    frames: frozenset[str]  # paths of rows that contain others
    nodes: frozenset[str]
    ids: dict[str, str]

    @classmethod
    def of(cls, summary: Summary) -> "Graph":
        rows = summary.rows
        frames = {outer.path for outer in rows if any(is_within(row.path, outer.path) for row in rows)}
        fed_from = {path for row in rows for path in row.connected_to}
        nodes = {row.path for row in rows if row.path not in frames or row.params or row.path in fed_from}
        ids = {row.path: f"n{i}" for i, row in enumerate(rows)}
        return cls(visible(summary.model), rows, frozenset(frames), frozenset(nodes), ids)

    def dot(self) -> str:
        title = _quoted(self.title)
        head = [f"digraph {title} {{", f'{INDENT}graph [label={title}, labelloc=t, fontname="Helvetica"]']
        head.append(f'{INDENT}node [shape=box, fontname="Helvetica"]')
        frame = "subgraph cluster_{} {{ label={}; labelloc=t; labeljust=l; color=gray"
        return self._drawn(head, frame, "}", "{} [label={}]", "->", lambda lines: _quoted("\n".join(lines))) + "}\n"

    def mermaid(self) -> str:
        """The graph as a Mermaid flowchart."""
        head = ["---", f"title: {json.dumps(self.title, ensure_ascii=False)}", "---", "flowchart TD"]
        return self._drawn(head, "subgraph f{}[{}]", "end", "{}[{}]", "-->", _in_mermaid)

    def _drawn(
        self, head: list[str], frame: str, end: str, box: str, arrow: str, label: Callable[[list[str]], str]
    ) -> str:
        """The graph in a language: how a frame begins and ends, a box (id and label), an arrow, a label of lines."""
        lines = [*head]
        around: list[str] = []  # paths of the frames that are open
        for row in self.rows:
            id = self.ids[row.path]
            while around and not is_within(row.path, around[-1]):
                around.pop()
                lines.append(INDENT * (1 + len(around)) + end)
            if row.path in self.frames:
                lines.append(INDENT * (1 + len(around)) + frame.format(id, label([f"{row.path} ({row.type})"])))
                around.append(row.path)
            if row.path in self.nodes:
                lines.append(INDENT * (1 + len(around)) + box.format(id, label(_label(row))))
        lines += [INDENT * depth + end for depth in range(len(around), 0, -1)]
        for row in self.rows:
            if row.path in self.nodes:
                sources = [source for source in row.connected_to if source != row.path]  # "× 12" says that it repeats
                lines += [f"{INDENT}{self.ids[source]} {arrow} {self.ids[row.path]}" for source in sources]
        return "\n".join([*lines, ""])


def _label(row: Row) -> list[str]:
    return [row.path or row.type, row.type, row.output_shape, *([f"{row.params:,} params"] if row.params else [])]


def _quoted(text: str) -> str:
    """A DOT string; \\n ends a line of a label."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _in_mermaid(lines: list[str]) -> str:
    """A Mermaid label: anything but letters, digits and plain punctuation becomes a numeric entity."""
    plain = [re.sub(r"[^\w .,()*×-]", lambda match: f"#{ord(match[0])};", line) for line in lines]
    return f'"{"<br/>".join(plain)}"'


TEXTS = {".dot": Graph.dot, ".mmd": Graph.mermaid}
PICTURES = (".svg", ".png")
PATIENCE = 300  # seconds for Graphviz; a graph of a thousand boxes takes a few


def check_plot(file: str) -> str:
    """The ending of a file to be drawn; BertcliError for one that could not be, before any work is done."""
    check_output(file, (*TEXTS, *PICTURES))
    ending = ending_of(file)
    if ending in PICTURES and shutil.which("dot") is None:
        raise BertcliError(
            f"Cannot draw {file}: a {ending} picture needs Graphviz, whose command `dot` is not installed. "
            f"{' and '.join(TEXTS)} files do not need it."
        )
    return ending


def plot(summary: Summary, file: str) -> None:
    """Draw the rows of a summary, with shapes, into a .dot, .mmd (Mermaid), .svg or .png file."""
    graph, ending = Graph.of(summary), check_plot(file)
    data = TEXTS[ending](graph).encode() if ending in TEXTS else _picture(graph, ending.removeprefix("."), file)
    save(file, data)


def _picture(graph: Graph, format: str, file: str) -> bytes:
    try:
        done = subprocess.run(["dot", f"-T{format}"], input=graph.dot().encode(), capture_output=True, timeout=PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BertcliError(f"Cannot draw {file}: Graphviz' dot failed: {error}.") from None
    if done.returncode:
        reason = (done.stderr.decode(errors="replace").strip().splitlines() or [f"status {done.returncode}"])[0]
        raise BertcliError(f"Cannot draw {file}: Graphviz' dot failed: {reason}.")
    return done.stdout

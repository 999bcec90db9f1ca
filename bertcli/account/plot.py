"""The layer graph as a file: DOT and Mermaid are text, pictures are drawn by Graphviz."""

from __future__ import annotations

import shutil
import subprocess

from bertcli.account.graph import Graph
from bertcli.account.record import Account
from bertcli.errors import BertcliError
from bertcli.output.files import Replacement, check_output

TEXTS = {".dot": Graph.dot, ".mmd": Graph.mermaid}
PICTURES = (".svg", ".png")
PATIENCE = 300  # seconds for Graphviz; a graph of a thousand boxes takes a few


def check_plot(file: str) -> None:
    """Raise BertcliError for a file that could not be drawn, before any work is done."""
    ending = check_output(file, (*TEXTS, *PICTURES))
    if ending in PICTURES and shutil.which("dot") is None:
        raise BertcliError(
            f"Cannot draw {file}: a {ending} picture needs Graphviz, whose command `dot` is not installed. "
            f"{' and '.join(TEXTS)} files do not need it."
        )


def plot(account: Account, file: str) -> None:
    """Draw the rows of an account, with shapes, into a .dot, .mmd (Mermaid), .svg or .png file."""
    check_plot(file)
    graph, ending = Graph.of(account), check_output(file, (*TEXTS, *PICTURES))
    data = TEXTS[ending](graph).encode() if ending in TEXTS else _drawn(graph, ending.removeprefix("."), file)
    with Replacement(file) as output:
        output.write(data)


def _drawn(graph: Graph, format: str, file: str) -> bytes:
    try:
        done = subprocess.run(["dot", f"-T{format}"], input=graph.dot().encode(), capture_output=True, timeout=PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BertcliError(f"Cannot draw {file}: Graphviz' dot failed: {error}.") from None
    if done.returncode:
        reason = (done.stderr.decode(errors="replace").strip().splitlines() or [f"status {done.returncode}"])[0]
        raise BertcliError(f"Cannot draw {file}: Graphviz' dot failed: {reason}.")
    return done.stdout

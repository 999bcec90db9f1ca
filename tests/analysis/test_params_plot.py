"""The layer graph as text and as pictures, and two models side by side."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import bertcli
from bertcli.analysis.params import Summary, SummaryRow
from bertcli.analysis.params.compare import comparison
from bertcli.analysis.params.plot import TEXTS, drawn, plot
from bertcli.analysis.params.rows import Count
from bertcli.errors import BertcliError


def summary(style: str = "tree", depth: int = 3, collapse: bool = False) -> Summary:
    return bertcli.params(bertcli.variant("tiny", heads="mlm,nsp"), style=style, depth=depth, collapse=collapse)


def edges(text: str, arrow: str) -> set[tuple[str, str]]:
    return set(re.findall(rf"^ *(n\d+) {arrow} (n\d+)$", text, re.MULTILINE))


@pytest.mark.parametrize("style", ["tree", "keras"])
@pytest.mark.parametrize("collapse", [False, True])
@pytest.mark.parametrize("depth", [0, 1, 3, 5])
def test_params_plot_every_connection_is_an_edge_between_nodes(style: str, collapse: bool, depth: int) -> None:
    found = summary(style, depth, collapse)
    ids = {row.path: f"n{i}" for i, row in enumerate(found.rows)}
    frames = {a.path for a in found.rows for b in found.rows if a is not b and f"{b.path}.".startswith(f"{a.path}.")}
    frames |= {row.path for row in found.rows if not row.path and len(found.rows) > 1}
    feeding = {path for row in found.rows for path in row.connected_to}
    working = [row for row in found.rows if row.path not in frames or row.params or row.path in feeding]
    nodes = {ids[row.path] for row in working}
    wanted = {(ids[source], ids[row.path]) for row in working for source in row.connected_to}
    dot, mermaid = drawn(found, TEXTS[".dot"]), drawn(found, TEXTS[".mmd"])
    assert edges(dot, "->") == edges(mermaid, "-->") == wanted
    assert {one for edge in wanted for one in edge} <= nodes
    assert set(re.findall(r"^ *(n\d+) \[label=", dot, re.MULTILINE)) == nodes
    assert set(re.findall(r'^ *(n\d+)\["', mermaid, re.MULTILINE)) == nodes
    assert dot.count("{") == dot.count("}")
    assert mermaid.count("subgraph") == len(re.findall(r"^ *end$", mermaid, re.MULTILINE)) == len(frames)


def test_params_plot_boxes_show_name_type_shape_and_number() -> None:
    label = r"encoder.layers.0.attention\nSelfAttention\n(None, 512, 128)\n66,048 params"
    assert f'[label="{label}"]' in drawn(summary(), TEXTS[".dot"])
    assert '["MLM<br/>Masked<br/>(None, 512, 30522)"]' in drawn(summary("keras"), TEXTS[".mmd"])


def test_params_plot_labels_are_escaped() -> None:
    row = SummaryRow('a"b\\c<d>&', "T|x", "(1,)", 0, 0, "", "", (), None, Count(0, 0, "", ""))
    dot, mermaid = (drawn(Summary('my "model" \\ <b>', (row,)), TEXTS[ending]) for ending in (".dot", ".mmd"))
    assert r'label="a\"b\\c<d>&\nT|x\n(1,)"' in dot
    assert r'digraph "my \"model\" \\ <b>" {' in dot
    assert "a#34;b#92;c#60;d#62;#38;<br/>T#124;x<br/>(1,)" in mermaid
    assert r'title: "my \"model\" \\ <b>"' in mermaid


def test_params_plot_without_graphviz_a_picture_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(
        BertcliError, match=r"needs Graphviz.*: install graphviz \(apt, .*\.dot and \.mmd files do not need it"
    ):
        plot(summary(), str(tmp_path / "graph.svg"))
    with pytest.raises(BertcliError, match=r"the ending must be one of \.dot, \.mmd, \.svg, \.png"):
        plot(summary(), str(tmp_path / "graph.pdf"))
    assert not list(tmp_path.iterdir())


def test_params_plot_what_graphviz_says_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: "/dot")
    failed = subprocess.CompletedProcess(["dot"], 1, b"", b"Error: <stdin>: no\nmore")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(BertcliError, match="dot failed: Error: <stdin>: no"):
        plot(summary(), str(tmp_path / "graph.png"))
    assert not list(tmp_path.iterdir())


def test_params_compare_two_models_side_by_side() -> None:
    base, large = (bertcli.params(bertcli.variant(name), collapse=True) for name in ("base", "large"))
    found = comparison(base, large)
    assert {name: value for name, value in found.record.items() if name not in ("model", "versus", "rows")} == {
        "total_params": 109_482_240, "versus_total_params": 335_141_888, "total_bytes": 4 * 109_482_240,
        "versus_total_bytes": 4 * 335_141_888, "difference": 225_659_648, "ratio": 3.0612,
    }  # fmt: skip
    attention = {line["path"]: line for line in found.lines}["encoder.layers.*.attention"]
    assert attention == {
        "path": "encoder.layers.*.attention", "type": "SelfAttention × 12", "versus_type": "SelfAttention × 24",
        "output_shape": "(None, 512, 768)", "versus_output_shape": "(None, 512, 1024)", "params": 28_348_416,
        "versus_params": 100_761_600, "difference": 72_413_184, "ratio": 3.5544,
    }  # fmt: skip


def test_params_compare_rows_that_one_model_lacks_stand_where_they_belong() -> None:
    base, large = (
        bertcli.params(bertcli.variant(name, heads=heads)) for name, heads in (("base", "nsp"), ("large", "mlm"))
    )
    found = comparison(base, large)
    pairs = {line["path"]: line for line in found.lines}
    paths = list(pairs)
    assert paths.index("encoder.layers.12") == paths.index("encoder.layers.11.feed_forward_norm") + 1
    assert {row.path for row in base.rows} | {row.path for row in large.rows} == set(paths)
    assert pairs["encoder.layers.23.attention"]["params"] is None
    assert pairs["encoder.layers.23.attention"]["ratio"] is None
    assert pairs["nsp.output"]["difference"] == -(2 * 768 + 2)
    assert sum(line["difference"] for line in found.lines) == found.record["difference"]

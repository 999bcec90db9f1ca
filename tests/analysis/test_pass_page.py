"""The pass as a page: its numbers are those of the trace, whole or in part, within the bound that it states."""

import base64
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.checkpoints import damaged
from helpers.family_checkpoints import FAMILIES, make_family
from helpers.json_files import write_json
from helpers.ops import OPS
from helpers.terminal import bertcli
from numpy.typing import NDArray

import bertcli as library
from bertcli.analysis.trace import page
from bertcli.analysis.trace.formulas import formula, mathml, rules
from bertcli.analysis.trace.page import BOUND, NOTE, PageOptions, page_of_text
from bertcli.analysis.trace.selection import encoded_size

TEXT = "The king </script><b> drinks [MASK]."


class Found(HTMLParser):
    """The ids of a page's elements, how many formulas it has, and its data."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.formulas = 0
        self.feed(text)
        self.data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.formulas += tag == "math"
        self.ids |= {value for name, value in attrs if name == "id" and value}


def array(record: dict[str, Any]) -> NDArray[np.float32]:
    return np.frombuffer(base64.b64decode(record["base64"]), "<f4").reshape(record["shape"])


def drawn(tmp_path: Path, *arguments: str | Path) -> Found:
    file = tmp_path / "pass.html"
    left = bertcli("trace", *arguments, "-o", file)
    assert left.status == 0, left.err
    return Found(file.read_text(encoding="utf-8"))


def test_pass_page_holds_what_save_writes(tmp_path: Path, made: Made) -> None:
    folder = made(head="pretraining", seed=7)
    saved = tmp_path / "all.npz"
    assert bertcli("trace", TEXT, "-m", folder, "-o", saved).status == 0
    found = drawn(tmp_path, TEXT, "-m", folder)
    with np.load(saved) as arrays:
        stored = dict(arrays)
    paths = [step["path"] for step in found.data["steps"]]
    assert set(found.data["arrays"]) == set(paths) <= found.ids
    assert found.formulas == len(paths)
    for path, record in found.data["arrays"].items():
        wanted = stored[path][..., record["features"]] if "features" in record else stored[path]
        np.testing.assert_array_equal(array(record), wanted)
    assert sum("features" in record for record in found.data["arrays"].values()) == 1  # the vocabulary's logits
    assert found.data["tokens"][1:3] == ["the", "king"]
    record = bertcli("trace", TEXT, "-m", folder, "--format", "json").json
    assert [
        {key: step[key] for key in one} for step, one in zip(found.data["steps"], record["steps"], strict=True)
    ] == (record["steps"])


def test_pass_page_reads_each_layer_as_the_lens_does(tmp_path: Path, made: Made) -> None:
    folder = made(head="pretraining", seed=7)
    found = drawn(tmp_path, "The king drinks [MASK].", "-m", folder)
    lens = library.lens(library.load(folder), "The king drinks [MASK].", top_k=1)
    (mask,) = lens.masks
    for layer, line in zip(mask.layers, found.data["lines"], strict=True):
        name, score = line["readings"][mask.position]
        assert name == layer.predictions[0].token_str
        assert score == pytest.approx(layer.predictions[0].score, abs=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_pass_page_of_each_family(tmp_path: Path, family: str) -> None:
    folder = make_family(tmp_path / "model", family, "mlm" if family != "deberta-v2" else "classifier")
    found = drawn(tmp_path, "--seq-len", "6", "-m", folder)
    layers = {step["section"] for step in found.data["steps"]}
    assert layers >= set(range(1, found.data["layers"] + 1))
    assert found.formulas == len(found.data["steps"])
    assert {step["op"] for step in found.data["steps"]} <= rules().keys()
    text = (tmp_path / "pass.html").read_text(encoding="utf-8")
    assert "NaN or infinite" not in text
    assert ("masked (−∞)" in text) == any(step["op"] == "within" for step in found.data["steps"])


def test_pass_page_every_op_has_a_formula() -> None:
    assert rules().keys() >= OPS.keys()


def test_pass_page_every_op_can_be_worked_out() -> None:
    parts = re.findall(r"(?:const RULES = |Object.assign\(RULES, )\{(.*?)\n\}", page.worked_out(), re.DOTALL)
    assert {name for part in parts for name in re.findall(r"\n  (\w+): ", part)} >= OPS.keys()


def test_pass_page_formulas_in_mathml() -> None:
    tree = formula("scores", ["Query (Q)", "Kᵀ"], "Attention scores", {})
    assert mathml(tree).startswith('<math display="block"><mrow><mtext>Attention scores</mtext><mo>=</mo><mfrac>')
    linear = formula("linear", ["Norm 1 output", "W_1"], "Intermediate", {"activation": "gelu", "bias": True})
    assert "<mtext>gelu</mtext>" in mathml(linear)
    assert "<msub><mi>W</mi><mn>1</mn></msub>" in mathml(linear)


def test_pass_page_of_a_short_text_is_small(tmp_path: Path) -> None:
    short = drawn(tmp_path, "She poured a cup of hot [MASK].")
    assert len(short.data["tokens"]) == 11
    assert (tmp_path / "pass.html").stat().st_size < 3_000_000


def test_pass_page_keeps_within_its_bound(tmp_path: Path) -> None:
    sizes = {"vocab_size": 30522, "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4}
    file = tmp_path / "config.json"
    write_json(file, {"model_type": "bert", "intermediate_size": 512, **sizes})
    found = drawn(tmp_path, "--config", str(file), "--seed", "0", "--seq-len", "240", "--layer", "1")
    records = found.data["arrays"].values()
    assert 0.9 * BOUND < (tmp_path / "pass.html").stat().st_size <= BOUND
    assert found.data["layer"] == 1
    assert "encoder.layers.0.attention.softmax" in found.data["arrays"]
    assert any("features" in record for record in records)
    most = max(len(record["features"]) for record in records if "features" in record)
    note = (tmp_path / "pass.html").read_text(encoding="utf-8")
    assert f", of others the first {most} features at most" in note
    assert f" {len(found.data['steps']) - len(records)} only as statistics" in note


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--variant", "mini", "--seed", "0", "--layer", "1.5"], 1, "a layer of this model has heads 1 to 4"),
        (["--variant", "mini", "--seed", "0", "--layer", "5"], 1, "There is no layer 5: this model has layers 1 to 4"),
        (["--variant", "mini", "--seed", "0", "--layer", "0.1"], 1, "The embeddings (layer 0) have no attention heads"),
        (["--variant", "mini", "--seed", "0", "--contrast", "A"], 2, "give the first text, too"),
        (["--variant", "mini", "--layer", "4", "-o", ""], 2, "Invalid value for --layer"),
        (["--variant", "mini", "--layer", "4"], 2, "the page of operations, without weights, opens at no layer"),
        (["--variant", "mini", "--formulas"], 2, "each one opens its formula"),
        (["--variant", "mini", "--seed", "0", "--seq-len", "4", "--batch-size", "2"], 2, "the page shows one sentence"),
        (["--seed", "1"], 2, "a checkpoint has weights"),
    ],
)
def test_pass_page_refusals(tmp_path: Path, arguments: list[str], status: int, message: str) -> None:
    file = tmp_path / "pass.html"
    output = [] if "-o" in arguments else ["-o", str(file)]
    left = bertcli("trace", *[one for one in arguments if one not in ("-o", "")], *output)
    assert left.status == status
    assert message in " ".join(left.err.replace("│", " ").split())
    assert not file.exists()


def test_page_without_weights_is_the_table_of_operations(tmp_path: Path) -> None:
    file = tmp_path / "operations.html"
    done = bertcli("trace", "--variant", "base", "--seq-len", "128", "-o", file)
    assert done.status == 0, done.err
    text = file.read_text(encoding="utf-8")
    rows = [re.sub("<[^>]*>", "|", row) for row in re.findall("<tr>.*?</tr>", text)]
    layer = next(row for row in rows if "Encoder layer" in row)
    assert "Encoder layer × 12, each:" in layer
    query = next(row for row in rows if "linear Q" in row)
    for shown in ("Encoder input S × H (128 × 768)", "W_Q H × H (768 × 768)", "|590,592|", "|75,497,472|"):
        assert shown in query
    record = bertcli("trace", "--variant", "base", "--seq-len", "128", "--format", "json").json
    assert f"|{100 * 12 * 75_497_472 / record['totals']['macs']:.1f}|" in query
    # An operation has its formula, and nothing speaks of cells, colors or numbers that are not there.
    folded = [step for step in record["steps"] if not re.search(r"layers\.([1-9]|1[01])\.", step["path"])]
    assert text.count("<math") == len(folded)
    for word in ("<script", "cell", "Blue", "token,"):
        assert word not in text.partition("<body>")[2]
    assert bertcli("trace", "--variant", "base", "--seq-len", "128", "--all-layers", "-o", file).status == 0
    assert file.read_text(encoding="utf-8").count("<math") == len(record["steps"])


def test_pass_page_names_numbers_that_are_not_finite(tmp_path: Path) -> None:
    folder = damaged(tmp_path / "model", float("nan"))
    drawn(tmp_path, "The king", "-m", folder)
    text = (tmp_path / "pass.html").read_text()
    assert "NaN or infinite values" in text
    assert "not finite" in text


def test_pass_page_opens_a_layer_and_a_head(tmp_path: Path) -> None:
    found = drawn(tmp_path, "--variant", "mini", "--seed", "0", "--seq-len", "5", "--layer", "2.3")
    assert (found.data["head"], found.data["layer"]) == (3, 2)


def test_page_of_text_asks_for_another_text(made: Made) -> None:
    model = library.load(made(head="pretraining", seed=7))
    options = PageOptions(layer=1, token=2, bound=None, ask="/pass?a=1&b=2")
    text = page_of_text(model, 'The "king"', versus="The queen <b>", options=options)
    found = Found(text)
    assert 'id="ask" method="get" action="/pass?a=1&amp;b=2"' in text
    assert 'name="text" value="The &quot;king&quot;"' in text
    assert (found.data["layer"], found.data["token"], found.data["ask"]) == (1, 2, "/pass?a=1&b=2")
    assert found.data["arrays"].keys() == found.data["versus"]["arrays"].keys() == {
        step["path"] for step in found.data["steps"]
    }  # fmt: skip
    ids = [found.data["tokens"], found.data["versus"]["tokens"]]
    assert all(ids[0][i] == ids[1][j] for i, j in found.data["pairs"] if ids[0][i] in ids[1])
    assert [0, 0] in found.data["pairs"]


def test_trace_shows_formulas_and_predictions(made: Made) -> None:
    folder = made(head="pretraining", seed=7)
    left = bertcli("trace", "The king drinks [MASK].", "-m", folder, "--formulas")
    (record,) = library.load(folder).fill_mask(["The king drinks [MASK]."], top_k=1)
    (best,) = record["masks"][0]["predictions"]
    assert "Attention scores = (Q · Kᵀ) / √D" in left.out
    assert "Norm 1 output = (Sub-layer sum − μ) / √(σ² + ε) ⊙ γ + β" in left.out
    assert (
        f"[MASK] at position {record['masks'][0]['position']}: {best['token_str']} {best['score']:.4f}"
        in left.out.splitlines()[-1]
    )


def test_trace_says_which_of_debertas_queries_a_row_is(tmp_path: Path) -> None:
    folder = make_family(tmp_path / "model", "deberta-v2", "classifier")
    record = bertcli("trace", "--seq-len", "5", "-m", folder, "--format", "json").json
    steps = [step for step in record["steps"] if step["path"].startswith("encoder.layers.0.attention")]
    names = [(step["inputs"][0]["name"], step["output"]["name"]) for step in steps[:4]]
    assert ("Relative positions (R)", "Position key (PK)") in names
    assert ("Relative positions (R)", "Position query (PQ)") in names
    assert ("Encoder input", "Query (Q)") in names or ("Encoder input", "Key (K)") in names
    assert not any(" or " in word for step in steps for word in (step["output"]["name"], step["inputs"][0]["name"]))


def test_pass_page_leaves_out_attention_weights_that_do_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = encoded_size((4, 7, 7))  # of a layer with 4 heads
    monkeypatch.setattr("bertcli.analysis.trace.page.BOUND", 0)
    assert drawn(tmp_path, "--variant", "mini", "--seed", "0", "--seq-len", "7").data["arrays"] == {}
    rest = (tmp_path / "pass.html").stat().st_size + NOTE
    for room, kept in ((weights + 200, ["encoder.layers.3.attention.softmax"]), (weights - 1, [])):
        monkeypatch.setattr("bertcli.analysis.trace.page.BOUND", rest + room)
        found = drawn(tmp_path, "--variant", "mini", "--seed", "0", "--seq-len", "7")
        assert [path for path in found.data["arrays"] if path.endswith("softmax")] == kept
        assert {step["path"] for step in found.data["steps"]} <= found.ids


def test_a_pass_of_one_token_says_so_in_the_singular(tmp_path: Path) -> None:
    file = tmp_path / "one.html"
    assert bertcli("trace", "--variant", "tiny", "--seed", "0", "--seq-len", "1", "-o", file).status == 0
    assert "<h1>The forward pass of 1 random token</h1>" in file.read_text(encoding="utf-8")

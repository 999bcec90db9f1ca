"""The page's own arithmetic, run by Node if it is there: numbers that come to what the page shows."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple

import pytest
from helpers.deadlines import SECONDS
from helpers.family_checkpoints import FAMILIES, make_family
from helpers.gliner import write_gliner
from helpers.gliner2 import write_gliner2
from helpers.gliner25 import write_gliner25
from helpers.terminal import bertcli
from reference.family_cases import CAUSAL, ROPES, WINDOWS

from bertcli.analysis.trace.page import worked_out

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="there is no node here")
WORK_OUT = Path(__file__).parents[1] / "helpers" / "work_out.js"
ALL = 10**9


class Told(NamedTuple):
    """What workedOut told of a step's cells: see helpers/work_out.js."""

    path: str
    op: str
    section: int
    cells: int
    asked: int
    worked: int
    worst: str
    where: list[int] | None


Telling = Callable[..., list[Told]]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Telling]:
    """What Node works out of a page: of each step `most` cells, and of the encoder's `few` if that is given."""
    script = tmp_path_factory.mktemp("script") / "worked.js"
    script.write_text(worked_out(), encoding="utf-8")
    pipe, command = subprocess.PIPE, [str(NODE), str(WORK_OUT), str(script)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT) as process:
        asks, answers = process.stdin, process.stdout
        assert asks is not None
        assert answers is not None

        def ask(page: Path, most: int, few: int | None = None) -> list[Told]:
            timer = Timer(SECONDS, process.kill)
            timer.start()
            asks.write(json.dumps([str(page), most, most if few is None else few]).encode() + b"\n")
            asks.flush()
            answer = answers.readline()
            timer.cancel()
            assert answer.startswith(b"["), answer + answers.read()
            return [Told(*step) for step in json.loads(answer)]

        yield ask


def check(steps: list[Told]) -> None:
    """Every cell is worked out, and comes to what is shown."""
    assert [step for step in steps if step.worked < step.asked] == []
    assert [step for step in steps if not float(step.worst) <= 1e-4] == []


def trace(file: Path, *arguments: str | Path) -> Path:
    left = bertcli("trace", *arguments, "-o", file)
    assert left.status == 0, left.err
    assert file.stat().st_size <= 8_000_000
    return file


README = {
    "pass": (4, ["She poured a cup of hot [MASK]."]),
    "textbook": (12, ["--variant", "textbook", "--seed", "0", "--seq-len", "5"]),
}


@pytest.mark.parametrize("name", README)
def test_worked_out_every_cell_of_the_open_layer_and_the_ends(told: Telling, tmp_path: Path, name: str) -> None:
    layers, arguments = README[name]
    steps = told(trace(tmp_path / "page.html", *arguments), ALL)
    here = [step for step in steps if step.section in (0, layers, layers + 1)]
    assert sum(step.asked for step in here) == sum(step.cells for step in here) > 60_000
    check(here)
    others = [step for step in steps if step not in here]
    assert sum(step.worked for step in others) > 0.25 * sum(step.asked for step in others)
    assert all(float(step.worst) <= 1e-4 for step in others)


@pytest.mark.parametrize("layer", ["1", "-2"])
def test_worked_out_layer_that_is_asked_for(told: Telling, tmp_path: Path, layer: str) -> None:
    steps = told(trace(tmp_path / "page.html", "She poured a cup of hot [MASK].", "--layer", layer), 300)
    check([step for step in steps if step.section == {"1": 1, "-2": 3}[layer]])


SEVERAL_QUERIES = {"A": 4, "Q": 64, "M": 32, "D": 16}  # heads for each key head
KINDS: dict[str, tuple[str, str, dict[str, Any], dict[str, int], int]] = {
    "convolution": ("deberta-v2", "classifier", {"conv_kernel_size": 3, "conv_act": "tanh"}, {}, 20),
    "distances without buckets": ("deberta-v2", "mlm", {"position_buckets": 0, "norm_rel_ebd": "none"}, {}, 20),
    "distances without a norm": ("deberta-v2", "mlm", {"norm_rel_ebd": "none"}, {}, 20),
    "few distances": ("deberta-v2", "mlm", {}, {}, 4),
    "a nearer last distance": ("t5", "model", {"relative_attention_max_distance": 10}, {}, 20),
    "masks": ("esm", "mlm", {"mask_token_id": 102}, {}, 20),  # the first of the random ids
    "shared keys": ("gemma3_text", "classifier", {"num_key_value_heads": 2}, SEVERAL_QUERIES, 20),
}
KINDS |= {f"{family} {head}": (family, head, {}, {}, 20) for family, of in FAMILIES.items() for head in of.heads}
KINDS |= {
    "seen before": ("gemma3_text", "classifier", CAUSAL, {}, 20),
    "seen in windows": ("qwen3", "lm", WINDOWS, {}, 20),
    "scaled rates": ("qwen3", "classifier", {"rope_parameters": ROPES[0]}, {}, 20),
    "slower rates": ("eurobert", "mlm", {"rope_parameters": ROPES[1]}, {}, 20),
    "terms of DeBERTa 1": ("deberta", "mlm", {"pos_att_type": ["p2c"]}, {}, 20),
}
DIALECTS = {"jina code": "code", "mosaic": "mosaic"}
KINDS |= {name: ("jina_bert", "classifier", {}, {}, 20) for name in DIALECTS}


@pytest.mark.parametrize("kind", KINDS)
def test_worked_out_every_step_of_every_family(told: Telling, tmp_path: Path, kind: str) -> None:
    family, head, config, sizes, tokens = KINDS[kind]
    old = DIALECTS.get(kind, False)
    folder = make_family(tmp_path / "model", family, head, config=config, sizes=sizes, old=old)
    again = kind == f"{family} {head}" and head != FAMILIES[family].heads[0]  # its encoder is that of the first head
    check(told(trace(tmp_path / "page.html", "-m", folder, "--seq-len", str(tokens)), 100, 20 if again else 100))


@pytest.mark.parametrize("form", [{}, {"backbone": "bert", "layers": 0, "width": 32}])
def test_worked_out_every_step_of_spans(told: Telling, tmp_path: Path, form: dict[str, Any]) -> None:
    folder = write_gliner(tmp_path / "model", **form)
    text = "<<ENT>> person <<ENT>> capital city <<SEP>> she went to Berlin, and he drank tea"
    steps = told(trace(tmp_path / "page.html", "-m", folder, text), ALL)
    check(steps)
    assert {"add_pairs", "label_scores", *({"lstm"} if not form else ())} <= {step.op for step in steps}
    (scores,) = [step for step in steps if step.op == "label_scores"]
    assert scores.cells == scores.worked > 40


@pytest.mark.parametrize("layers", ["count_lstm", "count_lstm_v2"])
def test_worked_out_every_step_of_a_schema(told: Telling, tmp_path: Path, layers: str) -> None:
    folder = write_gliner2(tmp_path / "model", counting_layer=layers)
    text = "( [P] entities ( [E] person [E] city ) ) [SEP_TEXT] she went to Berlin"
    steps = told(trace(tmp_path / "page.html", "-m", folder, text), ALL)
    check(steps)
    assert {"gru", "linear_beside", "add_pairs", "label_scores"} <= {step.op for step in steps}
    assert all(step.worked == step.cells for step in steps if step.op in ("gru", "linear_beside", "label_scores"))


def test_worked_out_every_step_of_a_pool_of_spans(told: Telling, tmp_path: Path) -> None:
    folder = write_gliner25(tmp_path / "model")
    text = "( [P] entities ( [E] person [E] city ) ) [SEP_TEXT] she went to Berlin"
    steps = told(trace(tmp_path / "page.html", "-m", folder, text), ALL)
    check(steps)
    own = {"gather_or", "pair_prior", "length_terms", "span_means", "modulate", "pair_logits"}
    assert own <= {step.op for step in steps}
    assert all(step.worked == step.cells for step in steps if step.op in own)

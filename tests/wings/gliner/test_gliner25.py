"""GLiNER2.5 against its library (tests/reference/gliner25.json): entities, scores of candidates, every way to them."""

import json
import shutil
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.gliner2 import CANDIDATES, DESCRIBED, DESCRIBED_CANDIDATES, LABELS, LONG, TASK, TEXTS, write_gliner2
from helpers.gliner25 import CASES, HEAD, MODES, write_gliner25
from helpers.served import serving
from helpers.terminal import bertcli as command

import bertcli
from bertcli.model import Model
from bertcli.wings.gliner.boundary.finder import heaviest
from bertcli.wings.gliner.boundary.pool import PoolLimits, SpanEnds, pool_of
from bertcli.wings.gliner.spans.finder import ScoredSpan

RECORDED = json.loads((Path(__file__).parents[2] / "reference" / "gliner25.json").read_text(encoding="utf-8"))
NEAR: dict[str, Any] = {"rtol": 0, "atol": 1e-5}
NAMED = ", ".join(LABELS)
TEMPLATE = f"{TASK} {{}}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("gliner25")
    for name, options in CASES.items():
        write_gliner25(home / name, **options)
    return home


@pytest.fixture(scope="module")
def models(folder: Path) -> dict[str, Model]:
    return {name: bertcli.load(folder / name) for name in CASES}


def in_text(text: str, spans: list[list[Any]]) -> dict[tuple[int, int, str], float]:
    """The library's entities without the sign that it puts after a text: of equal ones the highest score."""
    found: dict[tuple[int, int, str], float] = {}
    for start, end, label, score in spans:
        if start < len(text.rstrip()):
            place = (start, min(end, len(text.rstrip())), label)
            found[place] = max(score, found.get(place, 0))
    return found


def check(records: Any, texts: Any, recorded: Any) -> int:
    """Compare entities with those of the library; returns how many there are."""
    count = 0
    for record, text, spans in zip(records, texts, recorded, strict=True):
        found = {(one["start"], one["end"], one["entity_group"]): one["score"] for one in record["entities"]}
        expected = in_text(text, spans)
        assert found.keys() == expected.keys()
        np.testing.assert_allclose([found[place] for place in expected], [*expected.values()], **NEAR)
        assert all(text[one["start"] : one["end"]] == one["word"] for one in record["entities"])
        count += len(found)
    return count


@pytest.mark.parametrize("case", CASES)
def test_gliner25_has_the_parameters_of_its_library(case: str, models: dict[str, Model]) -> None:
    model, recorded = models[case], RECORDED[case]
    assert bertcli.params(model).total_params == recorded["parameters"]
    with bertcli.trace(model) as trace:
        model.outputs([[1, 2, 3, 4, 5]])
    assert trace.totals.params == recorded["used"]
    assert [step.path for step in trace.steps if not step.group] == []
    assert model.notes == ()


@pytest.mark.parametrize("case", CASES)
def test_gliner25_finds_the_entities_of_its_library(case: str, models: dict[str, Model]) -> None:
    """With multi_label each type is looked for by itself, as there."""
    model, recorded = models[case], RECORDED[case]
    count = 0
    for mode in ("flat", "surer", "nested"):
        threshold, policy = MODES[mode]
        options: dict[str, Any] = {"threshold": threshold, "nested": policy == "nested", "multi_label": True}
        count += check(model.tag(TEXTS, labels=LABELS, **options), TEXTS, recorded[mode])
        check([model.tag([text], labels=LABELS, **options)[0] for text in TEXTS[:2]], TEXTS[:2], recorded[mode][:2])
    count += check(model.tag(TEXTS, labels=DESCRIBED, multi_label=True), TEXTS, recorded["described"])
    assert count > 8
    assert recorded["described"] != recorded["flat"]


@pytest.mark.parametrize("case", CASES)
def test_gliner25_scores_candidates_as_its_library(case: str, models: dict[str, Model]) -> None:
    model, recorded = models[case], RECORDED[case]
    for mode, candidates in (("softmax", CANDIDATES), ("sigmoid", DESCRIBED_CANDIDATES)):
        records = model.classify(TEXTS, candidates=candidates, template=TEMPLATE, multi_label=mode == "sigmoid")
        for record, expected in zip(records, recorded[mode], strict=True):
            found = {one["label"]: one["score"] for one in record["labels"]}
            np.testing.assert_allclose([found[name] for name in CANDIDATES], expected, **NEAR)


def test_gliner25_reads_a_text_of_more_tokens_than_there_are_positions(models: dict[str, Model]) -> None:
    spans, (expected,) = RECORDED["deberta-v2"]["long"]
    records = models["deberta-v2"].tag([LONG], labels=LABELS, threshold=0.9, multi_label=True)
    assert check(records, [LONG], spans)
    (record,) = models["deberta-v2"].classify([LONG], candidates=CANDIDATES, template=TEMPLATE)
    found = {one["label"]: one["score"] for one in record["labels"]}
    np.testing.assert_allclose([found[name] for name in CANDIDATES], expected, **NEAR)
    (record,) = models["bert"].tag([LONG], labels=LABELS, threshold=0.3, max_length=64)
    assert max(one["end"] for one in record["entities"]) > len(LONG) // 2, "in windows"


def test_gliner25_finds_nothing_of_a_type_that_is_absent(tmp_path: Path) -> None:
    there, absent = (bertcli.load(write_gliner25(tmp_path / f"{logit}", absent=logit)) for logit in (-9, 9))
    assert there.tag(TEXTS[:1], labels=LABELS)[0]["entities"]
    assert [record["entities"] for record in absent.tag(TEXTS, labels=LABELS, threshold=0)] == [[]] * len(TEXTS)


def test_gliner25_chooses_the_entities_with_the_largest_sum() -> None:
    """Beside every set of spans that do not overlap."""
    random = np.random.default_rng(5)
    for _ in range(100):
        starts = random.integers(0, 12, 7).tolist()
        spans = [ScoredSpan(start, start + int(random.integers(4)), "a", float(random.random())) for start in starts]
        best = max(
            sum(span.score for span in some)
            for size in range(1, 8)
            for some in combinations(spans, size)
            if all(one.end < other.start or other.end < one.start for one, other in combinations(some, 2))
        )
        chosen = heaviest(spans)
        assert sum(span.score for span in chosen) == pytest.approx(best)
        assert all(one.end < other.start for one, other in pairwise(chosen))


def test_gliner25_pools_the_best_spans_of_each_type_first() -> None:
    """Of two sentences, the second with a type whose best spans are far below all of the first type's."""
    random = np.random.default_rng(6)
    starts, ends = random.normal(size=(2, 11, 2)).astype(np.float32)
    starts[5:, 1] -= 100
    unfit = np.zeros((11, 4), np.float32)
    pool = pool_of(SpanEnds(starts, ends, unfit, unfit), [0, 5, 11], PoolLimits(boundaries=4, spans=6, of_a_type=2))
    assert pool.sentences.tolist() == [0] * 6 + [1] * 6
    assert (pool.starts < pool.ends).all()
    assert (pool.starts[pool.sentences == 1] >= 5).all()
    likely = np.argsort(-starts[5:].max(axis=1))[:4], np.argsort(-ends[5:].max(axis=1))[:4]
    pairs = [(5 + start, 5 + end) for start in likely[0] for end in likely[1] if start < end]
    of_second = sorted(pairs, key=lambda pair: -(starts[pair[0], 1] + ends[pair[1], 1]))[:2]
    found = {*zip(pool.starts.tolist(), pool.ends.tolist(), strict=True)}
    assert {(int(start), int(end)) for start, end in of_second} <= found


def test_gliner25_scores_many_types_in_parts(models: dict[str, Model], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {"labels": LABELS, "threshold": 0.2, "multi_label": True}
    at_once = models["deberta-v2"].tag(TEXTS, **asked)
    monkeypatch.setattr("bertcli.wings.gliner.boundary.network.MOST_TOGETHER", 10)
    in_parts = models["deberta-v2"].tag(TEXTS, **asked)
    for one, other in zip(at_once, in_parts, strict=True):
        places = [[(span["start"], span["end"]) for span in record["entities"]] for record in (one, other)]
        assert places[0] == places[1]
        scores = [[span["score"] for span in record["entities"]] for record in (one, other)]
        np.testing.assert_allclose(scores[0], scores[1], rtol=0, atol=1e-6)
    assert any(record["entities"] for record in at_once)


def test_gliner25_by_its_commands(folder: Path, tmp_path: Path) -> None:
    path = folder / "deberta-v2"
    found = command("tag", "-m", path, "--labels", NAMED, "--multi-label", "--format", "jsonl", *TEXTS)
    assert found.status == 0, found.error
    check(found.records, TEXTS, RECORDED["deberta-v2"]["flat"])
    asked = ("classify", "-m", path, "--candidates", ",".join(CANDIDATES), "--format", "jsonl")
    (best,) = command(*asked, "--template", TEMPLATE, "--top-k", "1", TEXTS[0]).records
    scores = RECORDED["deberta-v2"]["softmax"][0]
    assert best["labels"] == [
        {"label": CANDIDATES[int(np.argmax(scores))], "score": pytest.approx(max(scores), abs=1e-5)}
    ]
    redacted = command("tag", "-m", path, "--labels", NAMED, "--redact", "--only", "capital city", TEXTS[1])
    assert redacted.out == "[capital city]\n"
    described = json.loads(command("info", path, "--format", "json").out)
    assert (described["kind"], described["problems"]) == ("entities and labels of any type (GLiNER2.5)", [])
    assert described["heads"] == ["spans", "candidate_scores", "absence"]
    assert described["boundary"] == {"pool_size": HEAD["pool_size"], "backbone": "small-deberta-v2"}
    assert "of any length, from 14 spans of a window" in command("info", path).out
    assert "is a GLiNER2.5 model" in command("tag", "-m", path, "tea").error
    written = "( [P] entities ( [E] drink [E] city ) ) [SEP_TEXT] she poured a cup"
    traced = json.loads(command("trace", "-m", path, written, "--format", "json").out)
    (logits,) = [step["output"]["shape"] for step in traced["steps"] if step["path"] == "spans.pair_logits"]
    # Of five words the six likeliest starts and ends make 15 spans, of which the pool has 14; and two types.
    assert logits == [14, 2]
    exported = command("export", "-m", path, "-o", tmp_path / "m.onnx")
    assert "this is the encoder of a GLiNER2.5 model" in exported.err
    assert "no input of a graph" in command("export", "-m", path, "--head", "spans", "-o", tmp_path / "m.onnx").error
    onnx = command(
        "tag", "-m", path, "--labels", NAMED, "--multi-label", "--format", "jsonl", "--engine", "onnx", *TEXTS
    )
    check(onnx.records, TEXTS, RECORDED["deberta-v2"]["flat"])


def test_gliner25_by_the_server(models: dict[str, Model]) -> None:
    with serving([models["deberta-v2"]]) as running:
        parameters = {"candidate_labels": [*CANDIDATES], "hypothesis_template": TEMPLATE}
        answer = running.given("/zero-shot", {"inputs": TEXTS[0], "parameters": parameters})
        scores = dict(zip(answer["labels"], answer["scores"], strict=True))
        np.testing.assert_allclose([scores[name] for name in CANDIDATES], RECORDED["deberta-v2"]["softmax"][0], **NEAR)
        asked = {"inputs": TEXTS[0], "parameters": {"labels": [*LABELS], "multi_label": True}}
        check([{"entities": running.given("/tag", asked)}], TEXTS[:1], RECORDED["deberta-v2"]["flat"][:1])


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ({"candidate_pool": None}, "has the candidate_pool 'per_query'; bertcli runs GLiNER2.5 models with shared"),
        ({"candidate_attention_layers": None}, "has the candidate_attention_layers 2; bertcli runs GLiNER2.5 models"),
        ({"query_attention_layers": 1}, "has the query_attention_layers 1; bertcli runs GLiNER2.5 models with 0"),
        ({"content_soft_max_pool": True}, "has the content_soft_max_pool true; bertcli runs GLiNER2.5 models with"),
        ({"use_inside_evidence": False}, "has the use_inside_evidence false"),
        ({"adaptive_threshold": True}, "has the adaptive_threshold true"),
        ({"overlap_policy": "longest"}, "has the overlap_policy 'longest'; bertcli supports flat, nested"),
        ({"boundary_dim": 0}, "has the boundary_dim 0; bertcli runs 1 to 16,384"),
        ({"pool_size": 10**9}, "has the pool_size 1000000000; bertcli runs 1 to 1,024"),
        ({"boundary_attention_heads": 3}, "has the boundary_attention_heads 3, of which boundary_dim, 16, is no"),
        ({"pair_temperature": 0}, "has the pair_temperature 0; bertcli runs 1e-06 to"),
        ({"enable_span_content": "yes"}, "has the enable_span_content 'yes': set it to true or false"),
    ],
)
def test_gliner25_refuses_by_name_what_it_does_not_run(folder: Path, head: Any, message: str, tmp_path: Path) -> None:
    shutil.copytree(folder / "deberta-v2", tmp_path / "m")
    file = tmp_path / "m" / "config.json"
    settings = json.loads(file.read_text(encoding="utf-8"))
    of_head = {key: value for key, value in (settings["boundary_head"] | head).items() if value is not None}
    file.write_text(json.dumps({**settings, "boundary_head": of_head}), encoding="utf-8")
    assert message in command("tag", "-m", tmp_path / "m", "--labels", "a", "tea").error


def test_gliner25_refuses_folders_that_are_not_whole(tmp_path: Path) -> None:
    spans = write_gliner2(tmp_path / "spans")
    settings = json.loads((spans / "config.json").read_text(encoding="utf-8"))
    (spans / "config.json").write_text(json.dumps(settings | {"architecture": "boundary"}), encoding="utf-8")
    assert "has the boundary_head null, which is not an object" in command("info", spans).out
    (spans / "config.json").write_text(
        json.dumps(settings | {"architecture": "boundary", "boundary_head": HEAD}), encoding="utf-8"
    )
    error = command("tag", "-m", spans, "--labels", "a", "tea").error
    assert "has no tensors of spans (boundary_head.*)" in error
    without = write_gliner25(tmp_path / "without", tokenizer=False)  # its tokens are added, as the library does
    records = bertcli.load(without).tag(TEXTS, labels=LABELS, multi_label=True)
    check(records, TEXTS, RECORDED["deberta-v2"]["flat"])

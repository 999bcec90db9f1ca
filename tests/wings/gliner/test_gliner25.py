"""What GLiNER2.5 has of its own beside GLiNER2; its numbers and every way to them are in test_gliner2.py."""

from itertools import combinations, pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.gliner2 import LABELS, LONG, TEXTS, write_gliner2
from helpers.gliner25 import CASES, HEAD, write_gliner25
from helpers.json_files import read_json, write_json
from helpers.near import assert_near
from helpers.terminal import bertcli as command
from wings.gliner.test_gliner2 import VERSIONS, check

import bertcli
from bertcli.wings.gliner.boundary.finder import heaviest
from bertcli.wings.gliner.boundary.pool import PoolLimits, SpanEnds, pool_of
from bertcli.wings.gliner.spans.finder import ScoredSpan


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


def test_gliner25_reads_a_long_text_in_windows(tmp_path: Path) -> None:
    model = bertcli.load(write_gliner25(tmp_path / "bert", **CASES["bert"]))
    (record,) = model.tag([LONG], labels=LABELS, threshold=0.3, max_length=64)
    assert max(one["end"] for one in record["entities"]) > len(LONG) // 2


def test_gliner25_scores_many_types_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = bertcli.load(write_gliner25(tmp_path / "whole"))
    asked: dict[str, Any] = {"labels": LABELS, "threshold": 0.2, "multi_label": True}
    at_once = model.tag(TEXTS, **asked)
    monkeypatch.setattr("bertcli.wings.gliner.boundary.network.MOST_TOGETHER", 10)
    in_parts = model.tag(TEXTS, **asked)
    for one, other in zip(at_once, in_parts, strict=True):
        places = [[(span["start"], span["end"]) for span in record["entities"]] for record in (one, other)]
        assert places[0] == places[1]
        scores = [[span["score"] for span in record["entities"]] for record in (one, other)]
        assert_near(scores[0], scores[1], 1e-6)
    assert any(record["entities"] for record in at_once)


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
def test_gliner25_refuses_by_name_what_it_does_not_run(head: Any, message: str, tmp_path: Path) -> None:
    file = write_gliner25(tmp_path / "m") / "config.json"
    settings = read_json(file)
    of_head = {key: value for key, value in (settings["boundary_head"] | head).items() if value is not None}
    write_json(file, {**settings, "boundary_head": of_head})
    assert message in command("tag", "-m", tmp_path / "m", "--labels", "a", "tea").error


# Operations for each number of a result: a difference and a quotient; 1 + γ, a product and a sum; five sums, a root and
# a quotient; a quotient and a sum; a logarithm, a quotient, a root and three products.
WORK = {"span_means": 2, "modulate": 3, "pair_logits": 7, "pair_prior": 2, "length_terms": 6}


def test_gliner25_counts_the_operations_of_its_spans(tmp_path: Path) -> None:
    model = bertcli.load(write_gliner25(tmp_path))
    with bertcli.trace(model) as trace:
        model.tag(TEXTS[:1], labels=LABELS)
    steps = [step for step in trace.steps if step.op in WORK]
    assert {step.op for step in steps} == {*WORK}
    for step in steps:
        assert step.flops == 2 * step.macs + WORK[step.op] * prod(step.output.shape), step.op


def test_gliner25_refuses_folders_that_are_not_whole(tmp_path: Path) -> None:
    spans = write_gliner2(tmp_path / "spans")
    settings = read_json(spans / "config.json")
    write_json(spans / "config.json", settings | {"architecture": "boundary"})
    assert "has the boundary_head null, which is not an object" in command("info", spans).out
    write_json(spans / "config.json", settings | {"architecture": "boundary", "boundary_head": HEAD})
    error = command("tag", "-m", spans, "--labels", "a", "tea").error
    assert "has no tensors of spans (boundary_head.*)" in error
    without = write_gliner25(tmp_path / "without", tokenizer=False)  # its tokens are added, as the library does
    records = bertcli.load(without).tag(TEXTS, labels=LABELS, multi_label=True)
    check(records, TEXTS, VERSIONS["GLiNER2.5"].recorded["deberta-v2"]["flat"])

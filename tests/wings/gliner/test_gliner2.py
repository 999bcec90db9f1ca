"""GLiNER2 and 2.5 against their library (tests/reference/gliner2.json, gliner25.json), by every way to them.

What 2.5 alone has is in test_gliner25.py.
"""

import shutil
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from helpers import gliner2, gliner25
from helpers.checkpoints import make
from helpers.gliner2 import (
    CANDIDATES,
    CASES,
    DESCRIBED,
    DESCRIBED_CANDIDATES,
    LABELS,
    LONG,
    TASK,
    TEXTS,
    write_gliner2,
)
from helpers.json_files import change_json
from helpers.near import assert_near
from helpers.recorded import recorded
from helpers.served import serving
from helpers.terminal import bertcli as command

import bertcli
from bertcli.errors import BertcliError
from bertcli.files.texts import Text
from bertcli.folder.model_files import SMALL_FILES
from bertcli.model import Model
from bertcli.tasks.registry import work_of
from bertcli.tasks.tag import SPEC, TagOptions

NEAR: dict[str, Any] = {"rtol": 0, "atol": 1e-5}
NAMED = ", ".join(LABELS)
TEMPLATE = f"{TASK} {{}}"


class Version(NamedTuple):
    """What the two versions have of their own: small models, what the library made of them, words."""

    name: str
    cases: dict[str, dict[str, Any]]
    modes: dict[str, tuple[float, str | None]]
    write: Callable[..., Path]
    recorded: dict[str, Any]
    best_type: str  # of TEXTS[1]
    heads: list[str]
    spans: str  # the last step of spans in a trace
    said: str  # by `info`


VERSIONS = {
    version.name: version
    for version in (
        Version(
            "GLiNER2", gliner2.CASES, gliner2.MODES, gliner2.write_gliner2, recorded("gliner2.json"), "drink",
            ["instances", "spans", "candidate_scores"], "spans.label_scores",
            "of types that you name (--labels), of up to 4 words",
        ),
        Version(
            "GLiNER2.5", gliner25.CASES, gliner25.MODES, gliner25.write_gliner25, recorded("gliner25.json"),
            "capital city",
            ["spans", "candidate_scores", "absence"], "spans.pair_logits",
            "of any length, from 14 spans of a window",
        ),
    )
}  # fmt: skip
EACH = [(name, case) for name, version in VERSIONS.items() for case in version.cases]
RECORDED = VERSIONS["GLiNER2"].recorded


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    home = tmp_path_factory.mktemp("gliner2")
    return {(name, case): VERSIONS[name].write(home / name / case, **VERSIONS[name].cases[case]) for name, case in EACH}


@pytest.fixture(scope="module")
def opened(folders: dict[tuple[str, str], Path]) -> dict[tuple[str, str], Model]:
    return {key: bertcli.load(folder) for key, folder in folders.items()}


@pytest.fixture
def models(opened: dict[tuple[str, str], Model]) -> dict[str, Model]:
    """Those of GLiNER2."""
    return {case: opened["GLiNER2", case] for case in CASES}


def in_text(text: str, spans: list[list[Any]]) -> dict[tuple[int, int, str], float]:
    """The library's entities without the sign that it puts after a text: of equal ones the highest score."""
    found: dict[tuple[int, int, str], float] = {}
    end_of_text = len(text.rstrip())
    for start, end, label, score in spans:
        if start < end_of_text:
            place = (start, min(end, end_of_text), label)
            found[place] = max(score, found.get(place, 0))
    return found


def places(record: dict[str, Any]) -> dict[tuple[int, int, str], float]:
    return {(one["start"], one["end"], one["entity_group"]): one["score"] for one in record["entities"]}


def check(records: Any, texts: Any, recorded: Any) -> None:
    """Compare entities with those of the library."""
    for record, text, spans in zip(records, texts, recorded, strict=True):
        found, expected = places(record), in_text(text, spans)
        assert found.keys() == expected.keys()
        assert len(found) == len(record["entities"])
        np.testing.assert_allclose([found[place] for place in expected], [*expected.values()], **NEAR)
        assert all(text[one["start"] : one["end"]] == one["word"] for one in record["entities"])


@pytest.mark.parametrize(("name", "case"), EACH)
def test_gliner2_has_the_parameters_of_its_library(name: str, case: str, opened: dict[tuple[str, str], Model]) -> None:
    model, expected = opened[name, case], VERSIONS[name].recorded[case]
    assert bertcli.params(model).total_params == expected["parameters"]
    with bertcli.trace(model) as trace:
        model.outputs([[1, 2, 3, 4, 5]])
    # Heads of GLiNER2.5 that bertcli does not run are in the file.
    assert trace.totals.params == expected.get("used", expected["parameters"])
    assert [step.path for step in trace.steps if not step.group] == []
    assert model.notes == ()


@pytest.mark.parametrize(("name", "case"), EACH)
def test_gliner2_finds_the_entities_of_its_library(name: str, case: str, opened: dict[tuple[str, str], Model]) -> None:
    """With multi_label each type is looked for by itself, as there."""
    model, expected = opened[name, case], VERSIONS[name].recorded[case]
    for mode in ("flat", "surer", "nested"):
        threshold, policy = VERSIONS[name].modes[mode]
        options: dict[str, Any] = {"threshold": threshold, "nested": policy == "nested", "multi_label": True}
        check(model.tag(TEXTS, labels=LABELS, **options), TEXTS, expected[mode])
        check([model.tag(text, labels=LABELS, **options) for text in TEXTS[:2]], TEXTS[:2], expected[mode][:2])
    check(model.tag(TEXTS, labels=DESCRIBED, multi_label=True), TEXTS, expected["described"])
    assert expected["described"] != expected["flat"]


@pytest.mark.parametrize(("name", "case"), EACH)
def test_gliner2_scores_candidates_as_its_library(name: str, case: str, opened: dict[tuple[str, str], Model]) -> None:
    model = opened[name, case]
    for mode, candidates in (("softmax", CANDIDATES), ("sigmoid", DESCRIBED_CANDIDATES)):
        options: dict[str, Any] = {"template": TEMPLATE, "multi_label": mode == "sigmoid"}
        records = model.classify(TEXTS, candidates=candidates, **options)
        for record, text, expected in zip(records, TEXTS, VERSIONS[name].recorded[case][mode], strict=True):
            scores = [one["score"] for one in record["labels"]]
            assert scores == sorted(scores, reverse=True)
            alone = model.classify(text, candidates=candidates, **options)
            for one in (record, alone):
                np.testing.assert_allclose(in_order(one), expected, **NEAR)
            assert not record["truncated"]


def in_order(record: dict[str, Any]) -> list[float]:
    """The scores of a record's labels, in the order of CANDIDATES."""
    found = {one["label"]: one["score"] for one in record["labels"]}
    return [found[name] for name in CANDIDATES]


@pytest.mark.parametrize(("name", "case"), [(name, case) for name, case in EACH if case.startswith("deberta")])
def test_gliner2_reads_a_text_of_more_tokens_than_there_are_positions(
    name: str, case: str, opened: dict[tuple[str, str], Model]
) -> None:
    """DeBERTa looks at distances alone: 64 positions in its configuration are no limit, as in the library."""
    model, (spans, (expected,)) = opened[name, case], VERSIONS[name].recorded[case]["long"]
    check([model.tag(LONG, labels=LABELS, threshold=0.9, multi_label=True)], [LONG], spans)
    np.testing.assert_allclose(
        in_order(model.classify(LONG, candidates=CANDIDATES, template=TEMPLATE)), expected, **NEAR
    )


@pytest.mark.parametrize("name", VERSIONS)
def test_gliner2_by_its_commands(name: str, folders: dict[tuple[str, str], Path], tmp_path: Path) -> None:
    path, version = folders[name, "deberta-v2"], VERSIONS[name]
    expected = version.recorded["deberta-v2"]
    tag = ("tag", "-m", path, "--labels", NAMED)
    every = (*tag, "--multi-label", "--format", "jsonl", *TEXTS)
    for engine in ("numpy", "onnx"):
        check(command(*every, "--engine", engine).records, TEXTS, expected["flat"])
    asked = ("classify", "-m", path, "--format", "jsonl", "--candidates")
    (best,) = command(*asked, ",".join(CANDIDATES), "--template", TEMPLATE, "--top-k", "1", TEXTS[0]).records
    scores = expected["softmax"][0]
    assert best["labels"] == [
        {"label": CANDIDATES[int(np.argmax(scores))], "score": pytest.approx(max(scores), abs=1e-5)}
    ]
    (alone,) = command(*asked, "tea", TEXTS[0]).records
    assert 0 < alone["labels"][0]["score"] < 1, "a single candidate is judged by itself"
    redacted = command(*tag, "--redact", "--only", version.best_type, TEXTS[1])
    assert redacted.out == f"[{version.best_type}]\n", "the library scores it highest"
    described = command("info", path, "--format", "json").json
    assert (described["kind"], described["problems"]) == (f"entities and labels of any type ({name})", [])
    assert described["heads"] == version.heads
    shown = command("info", path).out
    assert "bertcli classify --candidates sports,politics -m" in shown
    assert version.said in shown
    error = command("classify", "-m", path, "tea").error
    assert "spans (for tag --labels), candidate_scores (for classify --candidates)" in error
    assert f"is a {name} model" in command("tag", "-m", path, "tea").error
    assert "are for single texts" in command(*asked, "tea", "a", "--text-pair", "b").error
    written = "( [P] entities ( [E] drink [E] city ) ) [SEP_TEXT] she poured a cup"
    traced = command("trace", "-m", path, written, "--format", "json").json
    (logits,) = [step["output"]["shape"] for step in traced["steps"] if step["path"] == version.spans]
    # GLiNER2: of the five tokens behind the mark, the special one with them, every span of up to four. GLiNER2.5: of
    # five words the six likeliest starts and ends make 15 spans, of which the pool has 14. And two types.
    assert logits == [14, 2]
    exported = command("export", "-m", path, "-o", tmp_path / "m.onnx")
    assert f"this is the encoder of a {name} model" in exported.err
    refused = command("export", "-m", path, "--head", "spans", "-o", tmp_path / "m.onnx").error
    assert "of spans and of candidates depend on the positions of words and marks, which are no input of a" in refused


@pytest.mark.parametrize("name", VERSIONS)
def test_gliner2_by_the_server(name: str, opened: dict[tuple[str, str], Model]) -> None:
    expected = VERSIONS[name].recorded["deberta-v2"]
    with serving([opened[name, "deberta-v2"]]) as running:
        parameters = {"candidate_labels": [*CANDIDATES], "hypothesis_template": TEMPLATE}
        answer = running.given("/zero-shot", {"inputs": TEXTS[0], "parameters": parameters})
        scores = dict(zip(answer["labels"], answer["scores"], strict=True))
        np.testing.assert_allclose([scores[one] for one in CANDIDATES], expected["softmax"][0], **NEAR)
        asked = {"inputs": TEXTS[0], "parameters": {"labels": [*LABELS], "multi_label": True}}
        check([{"entities": running.given("/tag", asked)}], TEXTS[:1], expected["flat"][:1])
        (described,) = running.given("/info")["models"]
        assert described["uses"][:3] == ["tag", "entities", "zero-shot"]


def test_gliner2_counts_the_operations_of_its_recurrent_unit(models: dict[str, Model]) -> None:
    """Of each number: twice a sum and a sigmoid (4); a product, a sum and a tanh; (1 - z) n + z h."""
    with bertcli.trace(next(iter(models.values()))) as trace:
        next(iter(models.values())).tag("hot tea", labels="drink, place")
    units = [step for step in trace.steps if step.op == "gru"]
    assert units
    for step in units:
        rows, size = step.output.shape
        assert (step.macs, step.flops) == (0, 17 * rows * size)


@pytest.mark.parametrize("case", CASES)
def test_gliner2_finds_no_two_entities_in_the_same_words(case: str, models: dict[str, Model]) -> None:
    """Without multi_label: of all that the library finds, the best first, each unless it overlaps a better one."""
    for record, text, spans in zip(models[case].tag(TEXTS, labels=NAMED), TEXTS, RECORDED[case]["all"], strict=True):
        chosen: list[list[Any]] = []
        for span in sorted(spans, key=lambda span: -span[3]):
            if all(span[1] <= start or end <= span[0] for start, end, *_ in chosen):
                chosen.append(span)
        assert places(record).keys() == in_text(text, chosen).keys()
        assert all(one["end"] <= other["start"] for one, other in pairwise(record["entities"]))


def test_gliner2_reads_a_long_text_in_windows_as_parts_of_their_own(models: dict[str, Model]) -> None:
    """A window that ends within a text is read like a part that the library cuts: a full stop follows."""
    model, options = models["bert"], TagOptions(labels=LABELS, max_length=64, stride=0)
    task: Any = work_of(SPEC).plan(model, options)
    for text in (LONG, "Hot tea! " * 40):
        (item,) = task.tokenize_group([Text(text)], 0).items
        windows = task.windows(item)
        assert len(windows) > 2
        words = task.finder.words(text, item.tokens)
        for window, logits in zip(windows[:-1], task.logits(windows), strict=False):
            assert len(window.ids) <= 64
            first, last = words[window.first], words[window.first + window.own - 1]
            (part,) = task.tokenize_group([Text(text[first[0] : last[1]])], 0).items
            (alone,) = task.windows(part)
            assert alone.ids == window.ids
            assert_near(task.logits([alone])[0], logits, 5e-6 * np.abs(logits).max())
    # Without an overlap no entity reaches into the next window.
    (item,) = task.tokenize_group([Text(LONG)], 0).items
    words = task.finder.words(LONG, item.tokens)
    ends = [words[window.first + window.own - 1][1] for window in task.windows(item)]
    record = model.tag(LONG, labels=LABELS, threshold=0, nested=True, max_length=64, stride=0)
    assert not [one for one in record["entities"] for end in ends if one["start"] < end < one["end"]]
    assert {one["end"] for one in record["entities"]}.issuperset(ends)
    record = model.tag(LONG, labels=LABELS, max_length=64)
    assert max(one["end"] for one in record["entities"]) > len(LONG) // 2
    assert not record["truncated"]
    cut, whole = model.classify([LONG, TEXTS[1]], candidates=CANDIDATES, max_length=64)
    assert (cut["truncated"], whole["truncated"]) == (True, False)
    with pytest.raises(BertcliError, match=r"has \d+ tokens, more than 64: shorten it"):
        model.classify(LONG, candidates=CANDIDATES, max_length=64, truncation="error")
    with pytest.raises(BertcliError, match="give fewer labels, shorter ones, or a larger max_length"):
        model.classify(LONG, candidates=CANDIDATES, max_length=12)


def test_gliner2_finds_nothing_where_it_counts_no_instances(tmp_path: Path) -> None:
    none, one = (bertcli.load(write_gliner2(tmp_path / f"{count}", counted=count)) for count in (0, 1))
    assert none.tag(TEXTS[:1], labels=LABELS, threshold=0)[0]["entities"] == []
    assert one.tag(TEXTS[:1], labels=LABELS)[0]["entities"]
    assert [record["entities"] for record in one.tag(["", " \n ", "."], labels=LABELS, threshold=0)][:2] == [[], []]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"architecture": "token"},
            "has the architecture 'token'; bertcli runs GLiNER2 models of the architectures span and boundary",
        ),
        ({"counting_layer": "count_lstm_moe"}, "has the counting_layer 'count_lstm_moe'; bertcli supports count_lstm"),
        ({"token_pooling": "mean"}, "has the token_pooling 'mean'"),
        ({"span_head": {"span_mode": "query"}}, "has the span_mode 'query'; bertcli supports markerV0"),
        ({"span_head": 3}, "has the span_head 3, which is not an object"),
        ({"max_width": 0}, "has the max_width 0"),
        ({"max_width": 10**6}, "bertcli runs at most 1,000"),
        ({"model_name": 3}, "has the model_name 3, which is not a text"),
    ],
)
def test_gliner2_refuses_by_name_what_it_does_not_run(
    folders: dict[tuple[str, str], Path], settings: Any, message: str, tmp_path: Path
) -> None:
    shutil.copytree(folders["GLiNER2", "deberta-v2"], tmp_path / "m")
    file = tmp_path / "m" / "config.json"
    change_json(file, settings)
    assert message in command("tag", "-m", tmp_path / "m", "--labels", "a", "tea").error


def test_gliner2_takes_a_name_once(models: dict[str, Model]) -> None:
    for ask in (partial(models["bert"].tag, labels=["a: tea", "a: milk"]),
                partial(models["bert"].classify, candidates=["a: tea", "a: milk"])):  # fmt: skip
        with pytest.raises(BertcliError, match="The label 'a' occurs more than once"):
            ask("tea")


def test_gliner2_folders_and_their_files(folders: dict[tuple[str, str], Path], tmp_path: Path) -> None:
    assert SMALL_FILES.fullmatch("encoder_config/config.json")
    without = write_gliner2(tmp_path / "without", tokenizer=False)  # its tokens are added, as the library does
    check(bertcli.load(without).tag(TEXTS, labels=LABELS, multi_label=True), TEXTS, RECORDED["deberta-v2"]["flat"])
    shutil.copytree(folders["GLiNER2", "deberta-v2"], tmp_path / "lacking")
    shutil.rmtree(tmp_path / "lacking" / "encoder_config")
    error = command("tag", "-m", tmp_path / "lacking", "--labels", "a", "tea").error
    assert f"{Path('encoder_config') / 'config.json'} is missing: fetch the model again" in error
    tagger = make(tmp_path / "tagger", head="token_classifier")
    error = command("classify", "-m", tagger, "--candidates", "a,b", "tea").error
    assert "classify --candidates needs a classifier head" in error

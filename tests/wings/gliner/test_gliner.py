"""GLiNER against its library (tests/reference/gliner.json): scores of spans and entities, by every way to them."""

import csv
import re
import shutil
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.checkpoints import make
from helpers.gliner import CASES, LABELS, MODES, TEXTS, write_gliner
from helpers.gliner2 import write_gliner2
from helpers.json_files import change_json
from helpers.lines import write_lines
from helpers.near import assert_near
from helpers.pipelines import same
from helpers.recorded import recorded
from helpers.served import serving
from helpers.terminal import bertcli as command
from helpers.terminal import wrong_usage

import bertcli
from bertcli.errors import BertcliError
from bertcli.files.texts import Text
from bertcli.model import Model
from bertcli.tasks.registry import work_of
from bertcli.tasks.tag import SPEC, TagOptions
from bertcli.wings.gliner.spans import finder
from bertcli.wings.gliner.spans import ops as spans_ops
from bertcli.wings.gliner.spans.finder import ScoredSpan, choose, word_windows

RECORDED = recorded("gliner.json")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Model]:
    folder = tmp_path_factory.mktemp("gliner")
    return {name: bertcli.load(write_gliner(folder / name, **options)) for name, options in CASES.items()}


@pytest.mark.parametrize("case", CASES)
def test_gliner_has_the_parameters_of_its_library(case: str, models: dict[str, Model]) -> None:
    model = models[case]
    assert bertcli.params(model).total_params == RECORDED[case]["parameters"]
    with bertcli.trace(model) as trace:
        model.outputs([[1, 2, 3, 4, 5]])
    assert trace.totals.params == RECORDED[case]["parameters"]
    # An LSTM that no setting asks for is read by neither.
    assert [note.partition(":")[0] for note in model.notes] == (
        ["8 unused tensors in the checkpoint"] if case == "deberta-v2.unread" else []
    )


@pytest.mark.parametrize("case", CASES)
def test_gliner_scores_every_span_as_its_library(case: str, models: dict[str, Model]) -> None:
    task: Any = work_of(SPEC).plan(models[case], TagOptions(labels=LABELS))
    items = task.tokenize_group([Text(text) for text in TEXTS], 0).items
    windows = [window for item in items for window in task.windows(item)]
    together = task.logits(windows)
    for window, logits, expected in zip(windows, together, RECORDED[case]["texts"], strict=True):
        # Without the LSTM, whose numbers stay within 1, logits are products of large numbers.
        largest = np.abs(logits).max() if case == "deberta-v2.unread" else 1.0
        assert_near(logits, expected["logits"], 1e-5 * largest)
        (alone,) = task.logits([window])
        assert_near(logits, alone, 1e-5 * largest)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES)
def test_gliner_finds_the_entities_of_its_library(case: str, mode: str, models: dict[str, Model]) -> None:
    threshold, nested, multi_label = MODES[mode]
    options: dict[str, Any] = {"threshold": threshold, "nested": nested, "multi_label": multi_label}
    records = models[case].tag(TEXTS, labels=LABELS, **options)
    for record, text, of_text in zip(records, TEXTS, RECORDED[case]["texts"], strict=True):
        found = [(one["start"], one["end"], one["entity_group"]) for one in record["entities"]]
        expected = of_text["entities"][mode]
        assert found == [(start, end, label) for start, end, label, _ in expected]
        scores = [one["score"] for one in record["entities"]]
        assert_near(scores, [score for *_, score in expected], 1e-5)
        assert [one["word"] for one in record["entities"]] == [text[start:end] for start, end, *_ in expected]


NAMED = ", ".join(LABELS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that is needed."""
    return write_gliner(tmp_path_factory.mktemp("whole") / "gliner")


def expected_entities(mode: str, text: int = 0) -> list[dict[str, Any]]:
    """The recorded entities of a text as records have them."""
    return [
        {
            "entity_group": label,
            "score": pytest.approx(score, abs=1e-5),
            "word": TEXTS[text][start:end],
            "start": start,
            "end": end,
        }
        for start, end, label, score in RECORDED["deberta-v2"]["texts"][text]["entities"][mode]
    ]


def test_gliner_by_the_command(folder: Path, tmp_path: Path) -> None:
    arguments: list[str | Path] = ["tag", "-m", folder, "--labels", NAMED, "--format", "jsonl"]
    found = command(*arguments, *TEXTS)
    assert [one["entities"] for one in found.records] == [expected_entities("flat", i) for i in range(len(TEXTS))]
    assert found.records[1] == {
        "index": 1,
        "text": "Berlin",
        "truncated": False,
        "entities": expected_entities("flat", 1),
    }
    nested = command(*arguments, "--nested", TEXTS[0]).records
    assert nested[0]["entities"] == expected_entities("nested")
    both = command(*arguments, "--nested", "--multi-label", "--threshold", "0.8", TEXTS[2]).records
    assert both[0]["entities"] == expected_entities("both", 2)
    table = command("tag", "-m", folder, "--labels", NAMED, TEXTS[1])
    assert " ".join(table.out.splitlines()[-1].split()) == "person 0.7612 Berlin 0 6"
    file = tmp_path / "texts.txt"
    write_lines(file, TEXTS)
    written = tmp_path / "entities.csv"
    assert command("tag", "-m", folder, "--labels", NAMED, "-i", file, "-o", written).status == 0
    with written.open(encoding="utf-8", newline="") as rows:
        lines = [*csv.DictReader(rows)]
    assert len(lines) == sum(len(expected_entities("flat", i)) for i in range(len(TEXTS)))
    assert (lines[-1]["index"], lines[-1]["word"]) == ("3", "cups")


def test_gliner_in_info(folder: Path) -> None:
    record = command("info", folder, "--format", "json").json
    assert (record["kind"], record["heads"], record["problems"]) == ("entities of any type (GLiNER)", ["spans"], [])
    assert record["parameters"] == RECORDED["deberta-v2"]["parameters"]
    assert record["spans"] | {"backbone": ""} == {"max_words": 4, "window_words": 384, "width": 24, "backbone": ""}
    shown = " ".join(command("info", folder).out.split())
    assert (
        "Entities of types that you name (--labels), of up to 4 words; no text is cut, 384 words are read at a time"
        in shown
    )
    assert f'bertcli tag -m {folder} --labels "person, city" "Angela Merkel visited Paris."' in shown


def test_gliner_redacts(folder: Path) -> None:
    found = command("tag", "-m", folder, "--labels", NAMED, "--redact", *TEXTS[:2])
    assert found.out.splitlines()[1] == "[person]"
    only = command("tag", "-m", folder, "--labels", NAMED, "--redact", "--only", "drink", TEXTS[1])
    assert only.out == "Berlin\n"
    named = command("tag", "-m", folder, "--labels", NAMED, "--redact", "--redact-with", "***", TEXTS[1])
    assert named.out == "***\n"


def test_gliner_redacts_all_of_a_word_that_its_splitter_parts(folder: Path) -> None:
    """A mark over a letter parts a word for it: Devanagari's vowels, an accent that stands alone."""
    for text in ("Berlin\u0301", "बेर्लिन"):
        (record,) = command(
            "tag", "-m", folder, "--labels", NAMED, "--redact", "--threshold", "0.01", "--format", "jsonl", text
        ).records
        assert record["entities"]
        assert any((one["start"], one["end"]) != (0, len(text)) for one in record["entities"])
        assert re.fullmatch(r"\[[\w ]+\]", record["redacted"])


def test_gliner_says_that_chinese_has_no_words_to_find(folder: Path, models: dict[str, Model]) -> None:
    result = command("tag", "-m", folder, "--labels", NAMED, "我住在北京市", "ラーメンを食べる", "Berlin")
    assert result.status == 0
    assert result.err.count("written without spaces between words (Chinese, Japanese, Thai …)") == 1
    assert "written without spaces" not in command("tag", "-m", folder, "--labels", NAMED, *TEXTS, "北京").err


def test_gliner_finds_in_equal_tokens_of_other_words_what_it_finds_alone(models: dict[str, Model]) -> None:
    """ "a-b" is one word and "a - b" three, of the same tokens: in a batch each keeps its own."""
    model = models["bert"]
    texts = ["king-queen", "king - queen", "king -queen", "king- queen"]
    tokens = [model.tokenizer.encode_words([re.findall(r"\w+(?:[-_]\w+)*|\S", text)])[0] for text in texts]
    assert len({tuple(each.ids) for each in tokens}) < len(texts)
    options: dict[str, Any] = {"labels": LABELS, "threshold": 0.01, "nested": True, "multi_label": True}
    together = model.tag(texts, **options)
    for text, record in zip(texts, together, strict=True):
        alone = model.tag(text, **options)
        assert record["entities"]
        same(record["entities"], alone["entities"])


def test_gliner_reads_texts_without_words_and_writes_nothing_of_them(models: dict[str, Model]) -> None:
    records = models["deberta-v2"].tag(["", " \n ", "Berlin"], labels="person")
    assert [one["entities"] for one in records[:2]] == [[], []]
    assert [one["truncated"] for one in records] == [False] * 3


def test_gliner_passes_over_signs_that_the_tokenizer_drops(models: dict[str, Model]) -> None:
    with_hyphen, without = models["bert"].tag(["cup \u00ad of tea in Paris", "cup   of tea in Paris"], labels=NAMED)
    assert without["entities"]
    places = [[(one["start"], one["end"]) for one in record["entities"]] for record in (with_hyphen, without)]
    assert places[0] == places[1]
    scores = [[one["score"] for one in record["entities"]] for record in (with_hyphen, without)]
    assert_near(scores[0], scores[1], 1e-6)


def test_gliner_reads_words_beyond_the_positions_of_a_model_that_has_none(tmp_path: Path) -> None:
    """DeBERTa-v3 looks at distances alone: 64 positions in its configuration are no limit, as in the library."""
    model = bertcli.load(write_gliner(tmp_path / "gliner"))
    task: Any = work_of(SPEC).plan(model, TagOptions(labels=LABELS))
    (item,) = task.tokenize_group([Text(" ".join(TEXTS[:1] * 8))], 0).items
    (window,) = task.windows(item)
    assert len(window.ids) > 2 * model.config.max_tokens
    assert np.isfinite(task.logits([window])[0]).all()


def test_gliner_takes_labels_as_words_and_each_once(models: dict[str, Model]) -> None:
    model = models["deberta-v2"]
    listed = model.tag(TEXTS[0], labels=[*LABELS, "drink", " person "])
    assert listed == model.tag(TEXTS[0], labels=NAMED)
    assert model.tag(TEXTS[0], labels=["<<ENT>> person"], threshold=0.0)["entities"][0]["entity_group"] == (
        "<<ENT>> person"
    )


def test_gliner_reads_a_long_text_in_windows(tmp_path: Path) -> None:
    """Spans inside one window alone have its scores; those in two the higher one; none is lost."""
    model = bertcli.load(write_gliner(tmp_path / "short", max_len=6, max_width=2))
    text = "She poured a cup of hot coffee in Paris and he drank the tea"
    record = model.tag(text, labels=LABELS, threshold=0.0, nested=True, multi_label=True)
    assert record["truncated"] is False
    words = text.split()
    windows = [range(first, min(first + 6, len(words))) for first in (0, 5, 10)]  # a quarter of 6 words is one
    highest: dict[tuple[str, int], float] = {}
    for window in windows:
        part = " ".join(words[window.start : window.stop])
        alone = model.tag(part, labels=LABELS, threshold=0.0, nested=True, multi_label=True)
        before = text.index(part)
        for one in alone["entities"]:
            if " " not in one["word"]:
                key = (one["entity_group"], one["start"] + before)
                highest[key] = max(highest.get(key, 0.0), one["score"])
    found = {(one["entity_group"], one["start"]): one["score"] for one in record["entities"] if " " not in one["word"]}
    assert len(found) > 20
    assert found == {key: pytest.approx(highest[key], abs=1e-5) for key in found}
    starts = {one["start"] for one in record["entities"]}
    assert {text.index("tea"), text.index("drank")} <= starts


def test_gliner_of_limited_length_reads_windows_of_its_tokens(tmp_path: Path) -> None:
    model = bertcli.load(write_gliner(tmp_path / "bert", "bert", model_max_length=26))
    task: Any = work_of(SPEC).plan(model, TagOptions(labels=LABELS))
    (item,) = task.tokenize_group([Text(TEXTS[0])], 0).items
    windows = task.windows(item)
    assert len(windows) > 1
    assert max(len(one.ids) for one in windows) <= 26
    assert {word for one in windows for word in range(one.first, one.first + len(one.words))} == set(range(16))
    spans = sum(len(one.words) for one in windows) * task.finder.settings.max_width
    # A score for each span and label counts as a sixteenth of a token.
    assert task.cost(item) == sum(len(one.ids) for one in windows) + spans * len(task.labels) // 16
    (word,) = task.tokenize_group([Text("Berlin" * 9)], 0).items
    assert [len(one.ids) for one in task.windows(word)] == [26]
    record = model.tag("Berlin" * 9, labels=LABELS, threshold=0.0, multi_label=True)
    assert record["truncated"] is True
    assert {one["word"] for one in record["entities"]} == {"Berlin" * 9}
    with pytest.raises(BertcliError, match="The labels take 16 tokens, and a window has 18 with the text"):
        model.tag("Berlin", labels=LABELS, max_length=18)
    with pytest.raises(BertcliError, match=r"stride is 8, but a window of 26 tokens has 8 of the text"):
        model.tag("Berlin", labels=LABELS, stride=8)


def test_gliner_by_onnx_runtime(folder: Path) -> None:
    found = command("tag", "-m", folder, "--labels", NAMED, "--engine", "onnx", "--format", "jsonl", TEXTS[0])
    assert found.records[0]["entities"] == expected_entities("flat")


def test_gliner_by_the_server(models: dict[str, Model]) -> None:
    model = models["deberta-v2"]
    with serving([model]) as running:
        asked = {"inputs": TEXTS[0], "parameters": {"labels": [*LABELS]}}
        assert running.given("/tag", asked) == expected_entities("flat")
        several = running.given("/tag", {**asked, "inputs": list(TEXTS)})
        assert several == [expected_entities("flat", number) for number in range(len(TEXTS))]
        options = {"labels": [*LABELS], "nested": True, "multi_label": True, "threshold": 0.8}
        assert running.given("/tag", {"inputs": TEXTS[2], "parameters": options}) == expected_entities("both", 2)
        redacted = running.given("/tag", {"inputs": TEXTS[1], "parameters": {"labels": [*LABELS], "redact": True}})
        assert redacted["redacted"] == "[person]"
        assert running.given("/", asked) == expected_entities("flat")  # as huggingface_hub asks
        refused = running.ask("/tag", {"inputs": TEXTS[0]})
        assert refused.status == 422
        assert "name the types that you want" in str(refused.body)
        (described,) = running.given("/info")["models"]
        assert described["uses"][:2] == ["tag", "entities"]


# ------------------------------------------------------------------------------------------------- what is refused


def test_gliner_says_what_it_is_where_a_head_is_missing(folder: Path) -> None:
    """What its backbone's family says of plain models does not fit it."""
    gliner2 = write_gliner2(folder.parent / "second")
    heads = {folder: "spans (for tag --labels)", gliner2: "candidate_scores (for classify --candidates)"}
    for name, head in heads.items():
        for view in (["lens", "a [MASK]"], ["fill-mask", "a [MASK]"], ["score", "a"], ["explain", "a [MASK]"]):
            error = command(view[0], "-m", name, *view[1:]).error
            assert head in error, error
            assert "lm_predictions" not in error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--labels", "person", "--ignore", "x"], "are for models that label tokens"),
        (["--multi-label"], "add labels (--labels)"),
        (["--labels", "person", "--threshold", "1.5"], "scores are 0 to 1"),
        (["--labels", "person", "--only", "person"], "add --redact, or leave out"),
    ],
)
def test_gliner_refuses_options_that_do_not_fit(folder: Path, options: list[str], message: str) -> None:
    wrong_usage("tag", "-m", folder, *options, "Berlin", why=message)


def test_a_model_is_suggested_where_none_is_given() -> None:
    such = "no bundled model for tag --labels; give one that fits, such as -m urchade/gliner_small-v2.1."
    wrong_usage("tag", "--labels", "person", "Berlin", why=such)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"span_mode": "token_level"}, "bertcli runs span models of GLiNER with markerV0"),
        ({"span_mode": "markerV1"}, "bertcli runs span models of GLiNER with markerV0"),
        ({"labels_encoder": "BAAI/bge-small-en-v1.5"}, "a second network for labels (bi-encoder)"),
        ({"labels_decoder": "gpt2"}, "a decoder that writes labels"),
        ({"relations_layer": "biaffine"}, "relations between entities"),
        ({"post_fusion_schema": "l2l-l2t"}, "post_fusion_schema 'l2l-l2t'"),
        ({"fuse_layers": True}, "fuse_layers true"),
        ({"span_encoder_config": {"model_type": "rnn"}}, "span_encoder_config"),
        ({"precomputed_prompts_mode": True}, "precomputed_prompts_mode"),
        ({"words_splitter_type": "spacy"}, "bertcli supports whitespace"),
        ({"subtoken_pooling": "mean"}, "bertcli supports first, last"),
        ({"num_rnn_layers": 2}, "num_rnn_layers 2; bertcli supports 0 and 1"),
        ({"hidden_size": 25}, "which is odd"),
        ({"max_width": 0}, "max_width 0"),
        ({"max_width": 5000}, "at most 1,000"),
        ({"encoder_config": "x"}, "which is not an object"),
        ({"encoder_config": {"model_type": "mamba"}}, "does not run models of type 'mamba'"),
        ({"class_token_index": "7"}, "which are not both ids"),
        ({"class_token_index": 7}, "they do not belong together"),
        ({"hidden_size": 26}, "has shape"),
    ],
)
def test_gliner_refuses_what_it_does_not_run(
    settings: dict[str, Any], message: str, folder: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "other"
    copy.mkdir()
    for file in folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    change_json(copy / "gliner_config.json", settings)
    found = command("tag", "-m", copy, "--labels", "person", "Berlin")
    assert message in found.error


def test_gliner_takes_what_it_lacks_from_its_backbone(tmp_path: Path) -> None:
    folder = write_gliner(tmp_path / "part", embedded=False)
    found = command("tag", "-m", folder, "--labels", NAMED, "--format", "jsonl", TEXTS[0])
    assert f"is a GLiNER model on {folder}-base, whose configuration it uses." in found.err
    assert found.records[0]["entities"] == expected_entities("flat")
    shutil.move(f"{folder}-base", tmp_path / "elsewhere")
    refused = command("tag", "-m", folder, "--labels", NAMED, TEXTS[0], "--offline").error
    assert "is a GLiNER model without a configuration of its own, and needs that of" in refused


def test_gliner_without_a_tokenizer_says_what_it_needs(tmp_path: Path) -> None:
    folder = write_gliner(tmp_path / "alone", tokenizer=False, embedded=False, model_name="someone/backbone")
    found = command("tag", "-m", folder, "--labels", "person", "Berlin", "--offline")
    assert "is a GLiNER model without a tokenizer of its own, and needs that of 'someone/backbone'" in found.error
    assert "Or put the config.json and the tokenizer's files of that model into the folder" in found.error
    base = tmp_path / "alone-base"
    for file in base.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    found = command("tag", "-m", folder, "--labels", NAMED, "--format", "jsonl", TEXTS[0])
    assert found.records[0]["entities"] == expected_entities("flat")


def test_gliner_without_its_head_is_incomplete(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "gliner_config.json").write_bytes((folder / "gliner_config.json").read_bytes())
    (tmp_path / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    assert "holds no weights" in command("tag", "-m", tmp_path, "--labels", "person", "Berlin").error
    make(tmp_path / "bert")
    (tmp_path / "model.safetensors").write_bytes((tmp_path / "bert" / "model.safetensors").read_bytes())
    assert "no tensors of spans" in command("tag", "-m", tmp_path, "--labels", "person", "Berlin").error


def test_gliner_exports_its_encoder_and_says_so(models: dict[str, Model], tmp_path: Path) -> None:
    folder = models["bert"].path
    assert folder is not None
    exported = command("export", "-m", folder, "-o", tmp_path / "encoder.onnx")
    assert exported.status == 0, exported.error
    assert "encoder.onnx gives last_hidden_state" in exported.err
    assert "the encoder of a GLiNER model, which is what --engine onnx runs; words, spans and the" in exported.err
    refused = command("export", "-m", folder, "-o", tmp_path / "spans.onnx", "--head", "spans")
    assert "which are no input of a graph: leave out --head to export the encoder." in refused.error
    assert not (tmp_path / "spans.onnx").exists()


def test_gliner_is_traced_whole_with_names_for_its_steps(models: dict[str, Model]) -> None:
    """Every step has a name of its own, an LSTM's cost counts, and parameters are the library's number."""
    folder = models["bert"].path
    assert folder is not None
    traced = command("trace", "-m", folder, "a cup of tea", "--formulas", "--format", "json")
    assert traced.status == 0, traced.error
    shown = traced.json
    assert shown["totals"]["params"] == RECORDED["bert"]["parameters"]
    steps = {step["output"]["name"]: step for step in shown["steps"] if step["path"].startswith("spans")}
    assert {"Words", "Words in context", "Labels", "Label vectors", "Span vectors", "Span logits"} <= steps.keys()
    assert {step["group"] for step in steps.values()} == {"Words and labels", "Spans"}
    lstm = steps["Words in context"]
    rows, size = lstm["output"]["shape"]
    # Four gates of half the size, each way, of words and of states; at each number 30 operations beside (LSTM_WORK).
    assert lstm["macs"] == 2 * rows * 4 * (size // 2) * (size + size // 2)
    assert lstm["flops"] == 2 * lstm["macs"] + 30 * rows * size
    assert "o ⊙ tanh (c_t)" in lstm["formula"]


def test_gliner_adds_its_tokens_to_a_tokenizer_that_makes_texts_lowercase(tmp_path: Path) -> None:
    """As the library adds them: they are looked for before a text is made lowercase."""
    model = bertcli.load(write_gliner(tmp_path / "model", "bert", tokenizer=False))
    for text, pieces in (("<<ENT>> tea", ["<<ENT>>", "tea"]), ("<<ent>>", ["<", "<", "e", "##n", "##t", ">", ">"])):
        (tokens,) = model.tokenizer.encode([text])
        assert tokens.pieces == ["[CLS]", *pieces, "[SEP]"]


def test_gliner_is_traced_in_one_piece_however_many_spans(models: dict[str, Model]) -> None:
    """A pass computes spans a part at a time; each of the steps that a trace shows stands there once."""
    batch, traced = [[5, 6, 7, 8] * 5], []
    for most in (spans_ops.MOST_TOGETHER, 7):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(spans_ops, "MOST_TOGETHER", most)
            with bertcli.trace(models["bert"]) as trace:
                models["bert"].outputs(batch)
        traced.append([step.path for step in trace.steps])
    assert traced[0] == traced[1]


def test_gliner_is_traced_with_the_prompt_written_out(models: dict[str, Model], tmp_path: Path) -> None:
    """Each word is one token here, so the logits of spans are those of which `tag` makes its scores."""
    folder = models["bert"].path
    assert folder is not None
    text, labels, file = "she poured a cup of hot coffee", "drink, capital city", tmp_path / "pass.npz"
    written = f"<<ENT>> drink <<ENT>> capital city <<SEP>> {text}"
    traced = command("trace", "-m", folder, written, "-o", file)
    assert traced.status == 0, traced.error
    with np.load(file) as arrays:
        (path,) = [name for name in arrays.files if name.endswith("label_scores")]
        logits = arrays[path]
    (record,) = models["bert"].tag([text], labels=labels, threshold=0, nested=True, multi_label=True)
    for number, label in enumerate(("drink", "capital city")):
        best = max(one["score"] for one in record["entities"] if one["entity_group"] == label)
        assert 1 / (1 + np.exp(-logits[:, number].max())) == pytest.approx(best, abs=1e-6)
    assert "write the prompt as the model reads it" in command("trace", "-m", folder, text, "--labels", "drink").err


def test_windows_and_choice_are_as_their_definitions_say() -> None:
    """Both are written to take linear time; here beside what they mean, on random words and spans."""
    random = np.random.default_rng(7)
    for _ in range(200):
        counts = random.integers(1, 5, random.integers(1, 40)).tolist()
        room, most = int(random.integers(4, 20)), int(random.integers(1, 12))
        stride = None if random.random() < 0.5 else int(random.integers(0, room))
        windows = word_windows(counts, most, room, stride)
        for before, after in pairwise([slice(0, 0), *windows]):
            taken = counts[after]
            is_last = after.stop == len(counts)
            assert len(taken) <= most
            assert sum(taken) <= room
            assert is_last or len(taken) == most or sum(taken) + counts[after.stop] > room
            shared = before.stop - after.start
            if before.stop:
                width = before.stop - before.start
                quarter = width // 4
                if stride is not None:
                    quarter = max(n for n in range(width + 1) if sum(counts[before.stop - n : before.stop]) <= stride)
                assert shared == min(quarter, width - 1)
        spans = [
            ScoredSpan(start, start + int(random.integers(0, 5)), str(label), float(random.random()))
            for start in random.integers(0, 30, 60).tolist()
            for label in random.integers(0, 2, 1).tolist()
        ]
        for nested, multi_label in product((False, True), repeat=2):
            kept: list[ScoredSpan] = []
            for span in sorted(spans, key=lambda span: -span.score):
                equal = [one for one in kept if one[:2] == span[:2]]
                crosses = [one for one in kept if one.start <= span.end and one.end >= span.start]
                if nested:
                    crosses = [one for one in crosses if not _inside(one, span) and not _inside(span, one)]
                if multi_label if equal else not crosses:
                    kept.append(span)
            expected = sorted(kept, key=lambda span: span.start)
            assert choose(spans, nested=nested, multi_label=multi_label) == expected


def _inside(inner: ScoredSpan, outer: ScoredSpan) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def test_only_the_best_label_of_a_span_is_a_candidate(
    models: dict[str, Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others cannot be chosen; of 50,000 words and 25 labels they took 1.8 GB. In several windows each may be best."""
    model = models["deberta-v2"]
    candidates: list[list[ScoredSpan]] = []

    def noted(some: list[ScoredSpan], **options: bool) -> list[ScoredSpan]:
        candidates.append(some)
        return choose(some, **options)

    monkeypatch.setattr(finder, "choose", noted)
    text = " ".join(TEXTS) * 8
    asked: dict[str, Any] = {"labels": LABELS, "threshold": 0, "stride": 3}
    for nested in (False, True):
        candidates.clear()
        (found,) = model.tag([text], nested=nested, **asked)
        model.tag([text], nested=nested, multi_label=True, **asked)
        best, every = candidates
        assert len(every) == len(LABELS) * len({(span.start, span.end) for span in every})
        assert len(best) < len(every) / 2
        chosen = choose(every, nested=nested, multi_label=False)
        # Records have the digits that a float32 has.
        shown = [(span.label, pytest.approx(span.score, abs=1e-6)) for span in chosen]
        assert [(one["entity_group"], one["score"]) for one in found["entities"]] == shown

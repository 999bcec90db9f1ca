"""explain, lens, heads and diff as commands: tables, records, files, colors, statuses."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.json_files import read_json
from helpers.near import assert_near
from helpers.terminal import bertcli, wrong_usage
from reference.view_cases import LABELS, MASKED, MASKS, TEXTS, VECTORS
from safetensors.numpy import load_file, save_file

import bertcli as library
from bertcli.capabilities import commands
from bertcli.extensions import commands as declared_commands
from bertcli.model import Model
from bertcli.wings.interpret import VIEWS
from bertcli.wings.interpret.command import compute, view_spec


def test_explain_command_shows_the_text_and_a_table(made: Made, labels: Model) -> None:
    done = bertcli("explain", "-m", made(**LABELS), TEXTS[2])
    found = library.explain(labels, TEXTS[2])
    first, empty, heading = done.out.splitlines()[:3]
    plain = first
    for word in found.words:
        assert f"{word.word}({word.contribution:+.2f})" in first
        plain = plain.replace(f"({word.contribution:+.2f})", "", 1)
    assert (plain, empty) == (TEXTS[2], "")
    assert heading.split() == ["Word", "Contribution", "Share"]
    assert done.out.splitlines()[-1].startswith(f"the log-odds of {found.target}: ")


def test_explain_command_colors_words_where_it_may(made: Made) -> None:
    environment = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
    done = bertcli("explain", "-m", made(**LABELS), TEXTS[0], terminal=True, environment=environment)
    text = done.out.splitlines()[0]
    assert "\x1b[" in text
    assert "(+" not in text
    assert "\x1b[" not in bertcli("explain", "-m", made(**LABELS), "\x1b[31mred").out


@pytest.mark.parametrize("name", ["explain", "lens"])
def test_view_commands_count_the_texts_of_a_file(
    name: str, made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    totals = []

    def counted(items: Any, task: str, unit: str, total: int | None) -> Any:
        totals.append((unit, total))
        return items

    monkeypatch.setattr("bertcli.report.progress.counted", counted)
    file = tmp_path / "texts.txt"
    file.write_text(f"{MASKED}\n" * 3, encoding="utf-8")
    assert bertcli(name, "-m", made(**MASKS), "-i", file, "-o", tmp_path / "o.json").status == 0
    assert totals == [("texts", 3)]


def test_lens_command_shows_a_row_for_each_layer(made: Made) -> None:
    lines = bertcli("lens", "-m", made(**MASKS), MASKED, "--top-k", "2").out.splitlines()
    assert lines[0] == MASKED
    assert lines[2].split() == ["State", "Prediction", "1", "Prediction", "2", "Rank", "Score", "KL"]
    assert [line.split("  ")[0].strip() for line in lines[4:7]] == ["embeddings", "after layer 1", "after layer 2"]
    everything = bertcli("lens", "-m", made(**MASKS), TEXTS[2], "--all").out
    assert "0 [CLS]" in everything


def test_diff_command_ends_as_check_says(made: Made, tmp_path: Path) -> None:
    one, other = made(**VECTORS), made(**{**VECTORS, "seed": 404})
    same = bertcli("diff", one, "--versus", one, TEXTS[2], "--check", "all")
    assert (same.status, same.err) == (0, "")
    differs = bertcli("diff", one, "--versus", other, TEXTS[2], "--check", "all")
    assert differs.status == 1
    assert differs.err == "Error: embeddings.token is the first step beyond the tolerance of 0.0001.\n"
    assert "embeddings.token" in differs.out
    assert bertcli("diff", one, "--versus", other, TEXTS[2]).status == 0
    assert bertcli("diff", one, "--versus", other, TEXTS[2], "--check", "all", "--tolerance", "100").status == 0
    record = bertcli("diff", one, "--versus", other, TEXTS[2], "--format", "json").json
    assert record["first"] == "embeddings.token"
    file = tmp_path / "diff.JSON"
    assert bertcli("diff", one, "--versus", other, TEXTS[2], "-o", file).out == ""
    assert read_json(file) == record


def test_diff_command_takes_the_ids_of_stored_arrays(made: Made, tmp_path: Path) -> None:
    model = made(**VECTORS)
    for name in ("arrays.npz", "arrays.safetensors"):
        file = tmp_path / name
        assert bertcli("trace", "-m", model, TEXTS[0], "-o", file).status == 0
        assert bertcli("diff", model, "--versus", file, "--check", "all", "--tolerance", "1e-6").status == 0
        wrong_usage("diff", model, "--versus", file, TEXTS[1], why="those of another")
        assert bertcli("trace", "-m", model, "--seq-len", "7", "--batch-size", "2", "-o", file).status == 0
        assert bertcli("diff", model, "--versus", file, "--check", "all", "--tolerance", "1e-6").status == 0
        other = bertcli("diff", made(**{**VECTORS, "seed": 404}), "--versus", file, "--check", "all")
        assert other.err == "Error: embeddings.token is the first step beyond the tolerance of 0.0001.\n"


@pytest.mark.parametrize("text", [(), (TEXTS[2],)])
def test_diff_command_checks_that_both_have_the_same(text: tuple[str, ...], made: Made) -> None:
    one, other = made(head="pretraining", seed=31), made(head="mlm", seed=31)
    done = bertcli("diff", one, "--versus", other, *text, "--check", "all")
    assert done.status == 1
    assert done.err.startswith(f"Error: Only in {one}: ")
    assert "pooler.dense" in done.err
    assert "nsp.output" in done.err
    assert "Only in" in done.out
    assert bertcli("diff", one, "--versus", other, *text, "--check", "common").status == 0
    assert bertcli("diff", one, "--versus", one, *text, "--check", "all").status == 0
    changed = made(head="mlm", seed=32)
    assert "tolerance" in bertcli("diff", one, "--versus", changed, *text, "--check", "common").err


def test_diff_command_without_a_text_shows_weights_and_digests(made: Made, tmp_path: Path) -> None:
    one, other = made(**VECTORS), made(**{**VECTORS, "seed": 404})
    record = bertcli("diff", one, "--versus", other, "--format", "json").json
    assert record == library.diff(library.load(one), library.load(other)).record
    lines = bertcli("diff", one, "--versus", other).out.splitlines()
    assert lines[0].split() == ["Weight", "Max", "abs", "Max", "rel"]
    assert len(lines) == 2 + len(record["weights"]) + 4
    for digest in record["digests"]:
        assert sum(line.endswith(digest) for line in lines) == 1
    page = tmp_path / "weights.html"
    assert bertcli("diff", one, "--versus", other, "-o", page).out == ""
    assert record["digests"][1] in page.read_text(encoding="utf-8")
    assert bertcli("diff", one, "--versus", other, stdin="").out.splitlines() == lines


def page_of(file: Path, *command: str | Path) -> str:
    assert bertcli(*command, "-o", file).status == 0
    return file.read_text(encoding="utf-8")


def test_pages_of_heat_maps_put_tokens_down_where_there_are_more_tokens_than_layers(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    texts = "The king of Rome drinks hot [MASK].", "The king of Paris drinks hot [MASK]."
    patched = page_of(file, "patch", "-m", "bert-mini-mlm", *texts)
    assert patched.count('<th scope="col">Token of B</th>') == 3
    assert '<th scope="row">4 paris</th><td><mark class="for" style="--shade: 1.000" title=' in patched
    assert '<th scope="row">A (clean)</th>' in patched
    looked = page_of(file, "lens", "-m", "bert-mini-mlm", "--all", texts[0])
    assert '<th scope="col">Token</th><th scope="col">embeddings</th><th scope="col">layer 1</th>' in looked
    assert "Share of tokens whose best prediction" in looked
    looked = page_of(file, "lens", "-m", "bert-mini-mlm", "--all", "tea tea")
    assert '<th scope="col">Layer</th><th scope="col">0 [CLS]</th>' in looked


def test_page_of_heads_opens_the_head_that_was_named(tmp_path: Path) -> None:
    file = tmp_path / "heads.html"
    page = page_of(file, "heads", "-m", "bert-mini-mlm", "hot tea", "--layer", "3.2")
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert data["chosen"] == [2, 1]
    page = page_of(file, "heads", "-m", "bert-mini-mlm", "hot tea")
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert data["chosen"] == [0, 0]


def test_view_commands_used_wrongly(made: Made, tmp_path: Path) -> None:
    labels = made(**LABELS)
    assert "the ending must be one of" in bertcli("explain", "-m", labels, "x", "-o", tmp_path / "x.docx").error
    assert "the ending must be one of" in bertcli("heads", "-m", labels, "x", "-o", tmp_path / "x.docx").error
    why = "Invalid value for --label, --word: Choose one result"
    wrong_usage("explain", "-m", labels, "x", "--label", "a", "--word", "b", why=why)
    why = "Invalid value for --label: A label, a word or another text"
    wrong_usage("heads", "-m", labels, "x", "--label", "LABEL_0", why=why)
    assert not list(tmp_path.iterdir())


def test_view_commands_have_their_bundled_models() -> None:
    assert "bert-mini-sentiment" in bertcli("explain", "I loved it.").err
    assert "bert-mini-mlm" in bertcli("explain", "A cup of [MASK].").err
    assert "bert-mini-sentiment" in bertcli("explain", "A [MASK] film.", "--label", "positive").err
    assert "bert-mini-sentence" in bertcli("explain", "A cup.", "--contrast", "tea").err
    assert "bert-mini-mlm" in bertcli("heads", "A cup.").err
    assert "bert-mini-sentiment" in bertcli("heads", "A cup.", "--ablate").err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "Missing argument 'MODEL'."),
        (["some-model"], "give the other model, too: diff MODEL OTHER."),
        (["some-model", "a text"], "give the other model, too: diff MODEL OTHER."),
    ],
)
def test_diff_command_without_two_models_is_wrong_usage(given: list[str], message: str) -> None:
    wrong_usage("diff", *given, why=message)


def test_every_view_is_its_spec_and_its_work() -> None:
    names = [view.name for view in VIEWS]
    assert names == ["explain", "lens", "heads", "patch", "probe", "diff"]
    specs = Path(library.__file__).parent / "wings" / "interpret" / "specs"
    undeclared = {file.stem for file in specs.glob("[!_]*.py")} - {*names}
    assert not undeclared, f"declare it in VIEWS of wings/interpret/__init__.py: {undeclared}"
    for spec in map(view_spec, names):
        work = compute(spec)
        assert callable(work.measure)
        assert callable(work.draw)
        assert bertcli(spec.name, "--help").status == 0
        assert spec.name in dir(library)
        assert spec.name in declared_commands()
    listed = {name for name, _ in commands(library.load("bert-mini-mlm"))}
    missing = {*names} - listed
    assert not missing, f"an example for `bertcli info`: add one for {missing} to wings/interpret/examples.py"


def test_cut_texts_agree_with_the_number_of_lost_tokens() -> None:
    for length, words in ((5, "cut to 5 tokens; 1 was lost."), (4, "cut to 4 tokens; 2 were lost.")):
        assert words in bertcli("heads", "A cup of tea", "--max-length", str(length)).err


def test_view_commands_name_an_unknown_piece_that_is_predicted(made: Made, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(made(head="mlm"), folder)
    unknown = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines().index("[UNK]")
    tensors = load_file(folder / "model.safetensors")
    tensors["cls.predictions.bias"][unknown] = 90.0
    save_file(tensors, folder / "model.safetensors")
    told = bertcli("explain", "-m", folder, "the cat sat on [MASK].")
    assert told.status == 0, told.err
    assert "[UNK]" in told.out
    assert "None" not in told.out + told.err
    asked = bertcli("explain", "-m", folder, "the cat sat on [MASK].", "--word", "\N{SNOWMAN}")
    assert "is not one piece of the vocabulary" in asked.error


def test_arrays_of_views_are_those_of_the_library_and_of_the_trace(tmp_path: Path) -> None:
    text = "A hot [MASK] and a cold [MASK]."
    model = library.load()
    lens = library.lens(model, text)
    assert bertcli("lens", text, "-o", tmp_path / "l.npz").err.endswith("kB).\n")
    with np.load(tmp_path / "l.npz") as stored:
        np.testing.assert_array_equal(stored["log_probs"], lens.log_probs)
        assert stored["positions"].tolist() == [mask.position for mask in lens.masks]
        assert {*stored["tokens"].tolist()} == {"[MASK]"}
    assert lens.log_probs.shape == (5, 2, model.config.vocab_size)
    for number, mask in enumerate(lens.masks):
        for layer in mask.layers:
            best = layer.predictions[0]
            assert np.exp(lens.log_probs[layer.layer, number, best.token]) == pytest.approx(best.score, rel=1e-5)
    traced = library.trace(model, text, keep=lambda path: path.endswith("softmax")).arrays
    weights = library.heads(model, text).weights
    assert_near(weights, np.stack([*traced.values()]).reshape(weights.shape), 1e-6)
    bertcli("heads", text, "-o", tmp_path / "h.safetensors")
    np.testing.assert_array_equal(load_file(tmp_path / "h.safetensors")["weights"], weights)
    bertcli("heads", text, "--layer", "3.2", "-o", tmp_path / "h.npz")
    with np.load(tmp_path / "h.npz") as stored:
        np.testing.assert_array_equal(stored["weights"], weights[2, 1])
        assert stored["tokens"].tolist() == model.tokenize(text)["tokens"]
    bertcli("lens", text, "tea [MASK]", "-o", tmp_path / "two.npz")
    with np.load(tmp_path / "two.npz") as stored:
        np.testing.assert_array_equal(stored["0.log_probs"], lens.log_probs)
        assert stored["1.log_probs"].shape[1] == 1


def test_arrays_of_patch_are_its_effects(tmp_path: Path) -> None:
    texts = ("The film was good.", "The film was bad.")
    patch = library.patch(library.load("bert-mini-sentiment"), *texts, direction="both")
    for name in ("p.npz", "p.safetensors"):
        bertcli("patch", *texts, "--direction", "both", "-o", tmp_path / name)
    with np.load(tmp_path / "p.npz") as stored:
        assert stored["tokens_b"].tolist() == patch.tokens[1]
    effects = load_file(tmp_path / "p.safetensors")
    for direction in ("denoise", "noise"):
        np.testing.assert_array_equal(effects[direction], patch.effects[direction].astype(np.float32))
    assert effects["pairs"].tolist() == [list(pair) for pair in patch.pairs]


def test_weights_of_a_long_text_are_whole_and_too_many_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = library.load()
    found = library.heads(model, "tea " * 130)
    tokens = len(found.pieces)
    assert tokens == 132
    assert found.weights.shape == (4, 4, tokens, tokens)
    np.testing.assert_array_equal(found.weights[..., :128, :128], found.pictures)
    monkeypatch.setattr("bertcli.wings.interpret.compute.part_watcher.MOST_NUMBERS", 4 * 4 * tokens**2 - 1)
    with pytest.raises(library.BertcliError, match=r"There are 278,784 attention weights: give a shorter text"):
        library.heads(model, "tea " * 130).weights  # noqa: B018
    with pytest.raises(library.BertcliError, match=r"predictions: look at fewer tokens; at most"):
        library.lens(model, "tea " * 130, all_tokens=True).log_probs  # noqa: B018


def test_diff_takes_the_other_model_by_position(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other, text = "bert-mini-mlm", "bert-mini-sentiment", "A film."
    assert bertcli("diff", one, other).out == bertcli("diff", one, "--versus", other).out
    assert bertcli("diff", one, other, text).out == bertcli("diff", one, "--versus", other, text).out
    monkeypatch.chdir(tmp_path)
    bertcli("trace", "-m", one, text, "-o", "of one.npz")
    assert bertcli("diff", one, "of one.npz", "--check", "all").status == 0

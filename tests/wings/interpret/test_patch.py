"""Patching between two texts: equal to hooks in PyTorch, and on every family to what must come of all and of none."""

import re
from pathlib import Path

import numpy as np
import pytest
from conftest import Made
from helpers.family_checkpoints import FAMILIES
from helpers.near import assert_near
from helpers.recorded import recorded
from helpers.static_models import write_static
from helpers.terminal import bertcli as run
from helpers.terminal import wrong_usage
from reference.patch_cases import TYPES, A, B, folder_of

import bertcli
from bertcli.analysis.texts import tokens_of
from bertcli.errors import BertcliError
from bertcli.model import Model
from bertcli.wings.interpret import options
from bertcli.wings.interpret.compute import patch as module
from bertcli.wings.interpret.compute.part_watcher import LAYERS, PATCHED_PLACES
from bertcli.wings.interpret.compute.patch import Patching, patches, run_of
from bertcli.wings.interpret.compute.patch import draw as patch_page
from bertcli.wings.interpret.compute.target import result_of, sentence_of
from bertcli.wings.interpret.specs.patch import PatchOptions

GOLDEN = recorded("patch.json")
LOVED, HATED = "I loved every minute of it.", "I hated every minute of it."


def texts_of(model: Model) -> tuple[str, str]:
    return A.format(mask=model.tokenizer.mask_token), B.format(mask=model.tokenizer.mask_token)


@pytest.mark.parametrize("family", TYPES)
def test_patch_equals_hooks_in_pytorch(family: str, tmp_path: Path) -> None:
    model, golden = bertcli.load(folder_of(tmp_path / family, family)), GOLDEN[family]
    a, b = texts_of(model)
    for kind in PATCHED_PLACES:
        found = bertcli.patch(model, a, b, of=kind, direction="both")  # type: ignore[arg-type]
        assert (found.value_b, found.value_a) == pytest.approx(
            [golden[way]["value"] for way in ("denoise", "noise")], abs=1e-5
        )
        assert found.target == model.tokenizer.spelling([model.tokenizer.piece(golden["word"])]).alone
        gap = found.value_a - found.value_b
        for way, base, sign in (("denoise", found.value_b, 1), ("noise", found.value_a, -1)):
            expected = np.array(golden[way][kind])
            assert_near(found.values[way], expected, 1e-5)
            assert_near(found.effects[way], (expected - base) / (sign * gap), 2e-5 / abs(gap))
            assert np.ptp(expected) > 1e-3


# Not through `bertcli.patch`, which copies a state at one token at a time: copied at all tokens, it must give the other
# text's result, in every family and for every activation.
def patching(model: Model, a: str, b: str, asked: options.TargetOptions | None = None) -> Patching:
    asked = asked or options.TargetOptions()
    both = [sentence_of(model, tokens_of(model, text), text, asked) for text in (a, b)]
    result = result_of(model, both[0], asked)
    first, second = (run_of(model, result, one) for one in both)
    return Patching(model, result, second, first)


@pytest.mark.any_kernel
@pytest.mark.parametrize("family", FAMILIES)
def test_patch_of_all_is_the_other_text_and_of_none_the_same(family: str, tmp_path: Path) -> None:
    head = next((head for head in ("mlm", "classifier") if head in FAMILIES[family].heads), "model")
    model = bertcli.load(folder_of(tmp_path / family, family, head))
    asked = options.TargetOptions(contrast="a dog sat") if head == "model" else None
    a, b = texts_of(model) if head == "mlm" else (text.format(mask="tea") for text in (A, B))
    run = patching(model, a, b, asked)
    whole = [(i, i) for i in range(len(run.base.sentence.ids))]
    layers, heads = model.config.num_hidden_layers, model.config.num_attention_heads
    for layer in (0, 1, layers):
        assert run.values(LAYERS, layer, [whole, []]) == pytest.approx([run.source.value, run.base.value], abs=1e-5)
    for kind in PATCHED_PLACES[1:]:
        same = run._replace(source=run.base)
        assert same.values(kind, layers - 1, [whole] * heads, range(heads)) == pytest.approx(
            [run.base.value] * heads, abs=1e-5
        )
        assert_near(run.row(kind, 0, whole, 5), run.row(kind, 0, whole, 1000), 1e-5)
    # One token alone in a pass of its own, in a batch of any size, and all heads of all tokens in one place.
    one, many = run.row(LAYERS, 1, whole, 1), run.row(LAYERS, 1, whole, 1000)
    assert_near(one, many, 1e-5)
    assert np.abs(many - run.base.value).max() > 1e-6
    if head == "mlm":
        at = run.base.sentence.mask
        assert at is not None
        assert run.values(LAYERS, layers, [[(at, at)]])[0] == pytest.approx(run.source.value, abs=1e-5)


def test_patch_pairs_texts_of_other_lengths(made: Made, caplog: pytest.LogCaptureFixture) -> None:
    model = bertcli.load(made(head="mlm", seed=402, tokenizer="both"))
    caplog.set_level("INFO", "bertcli")
    found = bertcli.patch(model, "the good king drank [MASK]", "the unbelievably good queen drank [MASK]")
    a, b = found.tokens
    assert len(a) < len(b)
    assert [a[i] for i, _ in found.pairs] == ["[CLS]", "the", "good", "king", "drank", "[MASK]", "[SEP]"]
    assert [b[j] for _, j in found.pairs] == ["[CLS]", "the", "good", "queen", "drank", "[MASK]", "[SEP]"]
    (note,) = caplog.messages
    alone = " ".join(b[j] for j in range(len(b)) if j not in [pair[1] for pair in found.pairs])
    assert note.endswith(f"not patched: none of A, {alone} of B.")
    for row in found.record["effects"]["layers"]:
        assert [j for j, effect in enumerate(row) if effect is None] == [
            j for j in range(len(b)) if j not in [pair[1] for pair in found.pairs]
        ]


def test_patch_noise_of_other_lengths_stands_in_columns_of_b(made: Made) -> None:
    model = bertcli.load(made(head="mlm", seed=402, tokenizer="both"))
    a, b = "the good king drank [MASK]", "the unbelievably good queen drank [MASK]"
    noise = bertcli.patch(model, a, b, direction="noise")
    turned = bertcli.patch(model, b, a, word=noise.target)
    partners = {j: i for i, j in noise.pairs}
    for j, i in partners.items():
        assert_near(noise.effects["noise"][:, j], turned.effects["denoise"][:, i], 1e-4)


def test_patch_of_a_label_a_cosine_and_a_pair(made: Made) -> None:
    model = bertcli.load(made(head="classifier", num_labels=3, seed=401, tokenizer="both"))
    label = bertcli.patch(model, LOVED, HATED, label="LABEL_2")
    assert (label.target, label.meaning) == ("LABEL_2", "the log-odds of LABEL_2")
    assert label.effects["denoise"][-1, 0] == pytest.approx(1, abs=1e-4)  # the head reads [CLS] alone
    assert label.effects["denoise"][-1, 1:] == pytest.approx(0, abs=1e-4)
    other = bertcli.patch(model, "the king drank tea", "the dog sat in paris", contrast="the king drank tea")
    assert other.meaning == "the cosine with 'the king drank tea'"
    assert not np.allclose(other.effects["denoise"][-1], np.round(other.effects["denoise"][-1]), atol=1e-3)
    pair = bertcli.patch(model, LOVED, HATED, text_pair="Who?")
    for text, tokens, value in ((LOVED, pair.tokens[0], pair.value_a), (HATED, pair.tokens[1], pair.value_b)):
        assert tokens[-3:] == ["who", "?", "[SEP]"]
        explained = bertcli.explain(model, text, "Who?", label=pair.target)
        assert value == pytest.approx(explained.value, abs=1e-5)


def test_patch_says_what_it_cannot_do(made: Made, tmp_path: Path) -> None:
    model = bertcli.load(made(head="mlm", seed=402, tokenizer="both"))
    for a, b, more, message in (
        ("A [MASK].", "a [MASK].", {}, "same tokens"),
        ("The [MASK] sat.", "The king sat.", {}, "has 0"),
        ("The [MASK] sat.", "The [MASK] [MASK].", {}, "has 2"),
        ("The king sat.", "The queen sat.", {}, "does not have"),
        ("The [MASK] sat.", "The [MASK] ran.", {"word": "of tea"}, "not one piece"),
        ("The [MASK] sat.", "The [MASK] ran.", {"label": "x", "word": "y"}, "Choose one result"),
        ("The [MASK] sat.", "The [MASK] ran.", {"of": "neurons"}, "There is no of 'neurons'"),
        ("The [MASK] sat.", "The [MASK] ran.", {"direction": 3}, "direction"),
        ("", "The [MASK] ran.", {"word": "tea"}, "has 0"),
    ):
        with pytest.raises(BertcliError, match=message):
            bertcli.patch(model, a, b, **more)
    write_static(tmp_path, "root")
    with pytest.raises(BertcliError, match="no layers to patch"):
        bertcli.patch(bertcli.load(tmp_path), "king", "queen", contrast="tea")


def test_patch_refuses_results_that_hardly_differ(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    model, texts = bertcli.load(made(head="mlm", seed=402, tokenizer="both")), ("the king [MASK]", "the queen [MASK]")
    found = bertcli.patch(model, *texts)
    assert module.LEAST_DIFFERENCE == 0.01 < abs(found.value_a - found.value_b)
    monkeypatch.setattr(module, "LEAST_DIFFERENCE", 1.01 * abs(found.value_a - found.value_b))
    with pytest.raises(BertcliError, match=f"is {found.value_a:.4f} for the one text and {found.value_b:.4f}"):
        bertcli.patch(model, *texts)


def test_patch_page_shows_all_kinds_and_marks_what_differs(made: Made) -> None:
    model = bertcli.load(made(head="mlm", seed=402, tokenizer="both"))
    asked = PatchOptions("the <b>queen</b> drank [MASK]", direction="both")
    views = patches(model, "the <b>king</b> drank [MASK]", asked, PATCHED_PLACES)
    page = patch_page(views, "a model")
    assert page.count('<table class="heat"') == 8
    assert page.count(' class="for" style="--shade: 1.000">king</mark>') == 1
    assert page.count(' class="for" style="--shade: 1.000">queen</mark>') == 1
    assert "<b>" not in page
    view = views[0]
    value, effect = view.values["denoise"][1, 3], view.effects["denoise"][1, 3]
    assert f'title="{value:.4f} patched, {view.value_b:.4f} of B, {view.value_a:.4f} of A">{effect:+z.2f}<' in page


@pytest.mark.any_kernel
def test_patch_command_shades_a_terminal_that_is_wide_enough(made: Made) -> None:
    folder = made(head="mlm", seed=402, tokenizer="both")
    call = ("patch", "-m", folder, "the king drank [MASK]", "the queen drank [MASK]")
    assert "\x1b" not in run(*call).out
    color = {"FORCE_COLOR": "1", "COLORTERM": "truecolor"}
    wide, narrow = (run(*call, environment={**color, "COLUMNS": columns}).out for columns in ("120", "40"))
    assert re.search(
        r"embeddings .*\x1b\[38;2;255;255;255;48;2;8;48;107m +\+1\.000|\x1b\[37;48;2;8;48;107m +\+1\.000", wide
    )
    assert "after layer 2" in wide
    assert re.search(r"state .* 0 +1 +2", narrow)
    assert re.search(r"2 queen .*48;2;8;48;107m +1\.00", narrow)


@pytest.mark.any_kernel
@pytest.mark.parametrize("width", [38, 24])
def test_patch_command_turns_a_table_that_is_too_wide(width: int, made: Made) -> None:
    folder = made(head="mlm", seed=402, tokenizer="both")
    texts = ("the king drank [MASK]", "the queen drank [MASK]")
    out = run("patch", "-m", folder, *texts, environment={"COLUMNS": str(width)}).out
    assert max(map(len, out.splitlines())) <= width
    table, _, _ = out.partition("\n\nAcross: state 0")
    found = bertcli.patch(bertcli.load(folder), *texts)
    for position, piece in enumerate(found.tokens[1]):
        rows = re.findall(rf"^{position} {re.escape(piece)} (.*)", table, re.MULTILINE)
        shown = [float(number) for number in re.findall(r"-?\d\.\d\d", " ".join(rows))]
        np.testing.assert_allclose(shown, found.effects["denoise"][:, position], atol=0.0051)


@pytest.mark.any_kernel
def test_patch_command_counts_layers_and_heads_from_one(made: Made) -> None:
    folder = made(head="mlm", seed=402, tokenizer="both")
    call = ("patch", "-m", folder, "the king drank [MASK]", "the queen drank [MASK]", "--of")
    table = run(*call, "heads").out.splitlines()
    assert table[0].split() == ["Layer", "Head", "1", "Head", "2"]
    assert [line.split()[:2] for line in table[2:4]] == [["layer", "1"], ["layer", "2"]]
    lines = [line.split(",")[2:4] for line in run(*call, "heads", "--format", "csv").out.splitlines()]
    assert lines == [["layer", "head"], *([str(layer), str(head)] for layer in (1, 2) for head in (1, 2))]
    for of, layers in (("attention", ["1", "2"]), ("layers", ["0", "1", "2"])):
        shown = [line.split(",")[2] for line in run(*call, of, "--format", "csv").out.splitlines()[1:]]
        assert [*dict.fromkeys(shown)] == layers


@pytest.mark.any_kernel
def test_patch_command_refuses_wrong_usage(made: Made) -> None:
    wrong_usage("patch", "one text", why="Missing argument 'B'.")
    wrong_usage("patch", "-i", "pairs.csv", why="bertcli guide interpret has the mean over many pairs")
    wrong_usage("patch", "one text", "another", "third", why="'third' needs an option before it.")
    wrong_usage("patch", "a", "b", "--of", "neurons", why="'--of': 'neurons' is not one of 'layers', 'attention'")
    found = run("patch", "-m", made(head="mlm", seed=402, tokenizer="both"), "the [MASK]", "the [MASK]")
    assert (found.status, found.err.count("\n")) == (1, 1)
    assert found.err.startswith("Error: The two texts have the same tokens")


@pytest.mark.any_kernel
def test_patch_names_a_few_of_many_pieces_without_a_partner() -> None:
    many = " ".join(["and old"] * 40)
    left = run("patch", f"The [MASK] of Rome is old {many}.", "The [MASK] of Paris is old.", "--format", "json")
    assert " … of A, none of B." in left.err
    assert len(left.err) < 400

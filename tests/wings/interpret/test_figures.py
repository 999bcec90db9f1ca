"""`result.figure()` of the views and `-o FILE.pdf|.svg|.png`: matplotlib's Figure has the numbers of the record."""

import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from conftest import Made
from helpers.late_folders import write_late
from helpers.terminal import bertcli
from matplotlib.figure import Figure
from reference.view_cases import LABELS, MASKED, TEXTS

import bertcli as library
from bertcli.model import Model
from bertcli.report.figures import WIDTH, as_bytes

DATA = Path(__file__).parents[2] / "data"
NASTY = "A warm </text><script>alert(1)</script> & $x_1$ \x1b[31m film"


def record(*arguments: Any) -> Any:
    return bertcli(*arguments, "--format", "json").json


def names(axes: Any, which: str) -> list[str]:
    """The names at an axis."""
    return [label.get_text() for label in getattr(axes, f"get_{which}ticklabels")()]


def pictures(figure: Figure) -> list[np.ndarray]:
    """The numbers of each heat map, from above; scales of colors are none."""
    return [np.asarray(axes.images[0].get_array()) for axes in figure.axes if axes.images]


def texts_in(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_explain_figure_has_a_bar_for_each_word(labels: Model) -> None:
    view = library.explain(labels, TEXTS[0])
    (axes,) = view.figure().axes
    bars: list[Any] = [*axes.patches]
    assert names(axes, "y") == [word.word for word in view.words]
    assert [bar.get_width() for bar in bars] == pytest.approx([word.contribution for word in view.words])
    assert axes.get_xlabel() == f"contribution to {view.meaning}"
    dark, light = ({bar.get_facecolor() for bar in bars if (bar.get_width() >= 0) is sign} for sign in (1, 0))
    assert not dark & light, "for and against are told apart in grey, too"


def test_explain_figure_of_late_interaction_has_the_matches(tmp_path: Path) -> None:
    model = library.load(write_late(tmp_path / "model", "stanford"))
    view = library.explain(model, "hot tea?", "The tea, was hot.")
    (axes,) = view.figure().axes
    assert names(axes, "y") == [f"{word.word} → {word.match}" for word in view.words]


def test_lens_figure_has_a_curve_whose_axis_fits_and_each_layers_predictions(masks: Model) -> None:
    view = library.lens(masks, MASKED)
    curve, heat = view.figure().axes
    layers = view.masks[0].layers
    scores = [layer.score for layer in layers]
    assert np.asarray(curve.lines[0].get_ydata()).tolist() == pytest.approx(scores)
    assert curve.get_ylim()[1] < 1.2 * max(scores), "not up to 1, where nothing is"
    assert [int(name) for name in names(curve, "x")] == [layer.layer for layer in layers]
    shown = [[f"{one.token_str} {one.score:.0%}" for one in layer.predictions] for layer in layers]
    assert texts_in(heat) == [text for row in shown for text in row]
    assert names(heat, "y") == ["embeddings", "layer 1", "layer 2"]


def test_lens_figure_of_all_tokens_is_a_heat_map(masks: Model) -> None:
    view = library.lens(masks, MASKED, all_tokens=True)
    figure = view.figure()
    scores = [[layer.predictions[0].score for layer in token.layers] for token in view.masks]
    np.testing.assert_allclose(pictures(figure)[0], scores, rtol=1e-6)
    assert names(figure.axes[0], "y") == [f"{token.position} {token.token_str}" for token in view.masks]
    assert "probability" in [axes.get_ylabel() for axes in figure.axes]


def test_heads_figure_has_each_heads_weights_tokens_layers_and_a_scale_of_greys(labels: Model) -> None:
    view = library.heads(labels, TEXTS[2], ablate=True)
    figure = view.figure()
    layers, heads = view.weights.shape[:2]
    drawn = [axes for axes in figure.axes if axes.images]
    assert len(drawn) == layers * heads
    changes = {(head.layer, head.head): head.change for head in view.heads}
    for number, axes in enumerate(drawn):
        layer, head = divmod(number, heads)
        assert np.array_equal(np.asarray(axes.images[0].get_array()), view.weights[layer, head])
        assert axes.get_xlabel() == f"{changes[1 + layer, 1 + head]:+z.3f}"
        assert axes.images[0].get_cmap().name == "Greys"
        assert axes.get_ylabel() == (f"Layer {1 + layer}" if head == 0 else "")
        assert axes.get_title() == (f"Head {1 + head}" if layer == 0 else "")
        assert names(axes, "y") == ([*view.pieces] if head == 0 else [])
        assert names(axes, "x") == ([*view.pieces] if layer == 0 else [])
    assert [axes.get_ylabel() for axes in figure.axes if axes not in drawn] == ["attention weight"]


def test_heads_figure_leaves_out_what_top_k_does(labels: Model) -> None:
    figure = library.heads(labels, TEXTS[2], ablate=True, top_k=1).figure()
    assert len(pictures(figure)) == 1


def test_heads_figure_of_one_head_has_its_percentages(masks: Model) -> None:
    view = library.heads(masks, MASKED, layer="1.2")
    assert view.attention is not None
    figure = view.figure()
    np.testing.assert_allclose(pictures(figure)[0], view.attention.weights, rtol=1e-6)
    percent = [f"{100 * weight:.0f}" for row in view.attention.weights.tolist() for weight in row]
    assert texts_in(figure.axes[0]) == percent
    longer = library.heads(masks, f"{MASKED} {MASKED} {MASKED}", layer="1").figure()
    assert texts_in(longer.axes[0]) == [], "numbers have no room there"


def test_heads_figure_follows_a_token_through_all_layers(masks: Model) -> None:
    view = library.heads(masks, MASKED, rollout=2)
    assert view.rollout is not None
    *_, through, mean = pictures(view.figure())
    np.testing.assert_allclose(through, view.rollout.layers)
    np.testing.assert_allclose(mean, view.rollout.mean)


@pytest.mark.parametrize("of", ["layers", "heads"])
def test_patch_figure_has_the_effects_of_each_direction_and_what_differs(labels: Model, of: str) -> None:
    view = library.patch(labels, "The cat sat.", "The dog sat.", of=of, direction="both")  # type: ignore[arg-type]
    figure = view.figure()
    for picture, effects in zip(pictures(figure), view.effects.values(), strict=True):
        np.testing.assert_allclose(picture, effects.T if of == "layers" else effects)
    down = names(figure.axes[0], "y")
    tokens = ["0 [CLS]", "1 the", "2 cat → dog", "3 sat", "4 .", "5 [SEP]"]
    assert down == (tokens if of == "layers" else ["layer 1", "layer 2"])
    assert texts_in(figure.axes[0])[0] == f"{view.effects['denoise'][0, 0]:+z.2f}"


def test_probe_figure_has_the_intervals_and_the_confusions() -> None:
    rows = [line.split(",") for line in (DATA / "reviews.csv").read_text().splitlines()[1:]]
    texts, labels = [",".join(row[:-2]).strip('"') for row in rows], [row[-2] for row in rows]
    view = library.probe(library.load("bert-mini-sentiment"), texts, labels, folds=3)
    curve, heat = view.figure().axes
    accuracy, majority, control = _lines(curve)
    assert accuracy == pytest.approx([layer.accuracy.value for layer in view.layers])
    assert majority == pytest.approx([layer.majority for layer in view.layers])
    assert control == pytest.approx([layer.control for layer in view.layers])
    counts = view.layers[view.chosen].confusion.astype(int)
    assert texts_in(heat) == [str(count) for count in counts.ravel()]


def _lines(axes: Any) -> list[list[float]]:
    """The heights of lines, each with those of the same name."""
    handles, labels = axes.get_legend_handles_labels()
    heights = {}
    for handle, label in zip(handles, labels, strict=True):
        line = handle[0] if isinstance(handle, tuple) else handle
        heights[label] = line.get_ydata().tolist()
    return [heights[label] for label in ("accuracy", "majority", "control")]


# ------------------------------------------------------------------------------------------------------------ files


def test_a_figure_is_a_column_wide_and_can_be_restyled(labels: Model) -> None:
    view = library.explain(labels, TEXTS[0])
    figure = view.figure()
    assert figure.get_figwidth() * 2.54 == pytest.approx(WIDTH) == 8.5
    figure.axes[0].set_title("mine")
    figure.set_figwidth(4)
    assert b"mine" in as_bytes(figure, ".svg")


@pytest.mark.parametrize(("ending", "begins"), [(".pdf", b"%PDF"), (".svg", b"<?xml"), (".png", b"\x89PNG")])
def test_a_figure_is_written_and_is_the_same_each_time(ending: str, begins: bytes, made: Made, tmp_path: Path) -> None:
    file = tmp_path / f"figure{ending}"
    command = ("explain", "-m", made(**LABELS), *TEXTS[:2], "-o", file)
    done = bertcli(*command)
    assert (done.status, done.out) == (0, ""), done.err
    assert f"Wrote {file}" in done.err
    first = file.read_bytes()
    assert first.startswith(begins)
    assert bertcli(*command).status == 0
    assert file.read_bytes() == first
    assert [one.name for one in tmp_path.iterdir()] == [file.name]


def test_a_figure_of_several_texts_names_each(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "figure.svg"
    assert bertcli("explain", "-m", made(**LABELS), *TEXTS[:2], "-o", file).status == 0
    words = " ".join(ElementTree.parse(file).getroot().itertext())
    for number, text in enumerate(TEXTS[:2]):
        assert f"Text {number}: {text}"[:50] in words
    (tmp_path / "none.txt").touch()
    none = bertcli("explain", "-m", made(**LABELS), "-i", tmp_path / "none.txt", "-o", tmp_path / "none.svg")
    assert none.error == "Error: There is nothing to draw: no text was read."


def test_a_figure_shows_what_a_text_holds_as_text(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "figure.svg"
    assert bertcli("explain", "-m", made(**LABELS), NASTY, "-o", file).status == 0
    root = ElementTree.parse(file).getroot()
    assert not [element for element in root.iter() if element.tag.endswith("script")]
    words = {"".join(element.itertext()).strip() for element in root.iter() if element.tag.endswith("text")}
    assert {"script", "&", "$"} <= words


def test_a_figure_without_matplotlib_is_refused_before_any_work(
    labels: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = bertcli("explain", "-m", "/no/such/model", "a text", "-o", tmp_path / "figure.pdf")
    assert done.error == "Error: A figure needs matplotlib: pip install 'bertcli[figures]'."
    view = library.explain(labels, TEXTS[0])
    with pytest.raises(library.BertcliError, match=r"pip install 'bertcli\[figures\]'"):
        view.figure()

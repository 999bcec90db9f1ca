"""`-o FILE.svg` of the views: one figure that holds the words and numbers of the table, the same each time."""

import json
import zlib
from base64 import b64decode
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from conftest import Made
from helpers.late_folders import write_late
from helpers.terminal import bertcli
from reference.view_cases import LABELS, MASKED, MASKS, TEXTS, VECTORS

import bertcli as library

DATA = Path(__file__).parents[2] / "data"
SVG = "{http://www.w3.org/2000/svg}"
NASTY = "A warm </text><script>alert(1)</script> & \x1b[31m film"


class Figure:
    """A figure as a program reads it: `words` are all texts that are drawn, `notes` the titles of shapes."""

    def __init__(self, file: Path) -> None:
        self.root = ElementTree.parse(file).getroot()
        assert self.root.tag == f"{SVG}svg"
        self.words = ["".join(text.itertext()) for text in self.root.iter(f"{SVG}text")]
        self.title, *self.notes = [title.text or "" for title in self.root.iter(f"{SVG}title")]
        self.about = next(self.root.iter(f"{SVG}desc")).text or ""
        self.grounds = [shape.get("fill") for shape in self.root.iter(f"{SVG}rect")][1:]


def drawn(tmp_path: Path, *arguments: Any, again: bool = True) -> Figure:
    """The figure of a command, which must be the same when it is drawn again (or not, to save time)."""
    file = tmp_path / "figure.svg"
    done = bertcli(*arguments, "-o", file)
    assert (done.status, done.out) == (0, ""), done.err
    assert "figure.svg" in done.err
    if again:
        first = file.read_bytes()
        assert bertcli(*arguments, "-o", file).status == 0
        assert file.read_bytes() == first
    return Figure(file)


def record(*arguments: Any) -> Any:
    return json.loads(bertcli(*arguments, "--format", "json").out)


def test_explain_figure_has_each_word_above_its_contribution(made: Made, tmp_path: Path) -> None:
    command = ["explain", "-m", made(**LABELS), *TEXTS[:2]]
    figure = drawn(tmp_path, *command)
    for view in record(*command):
        words = [word["word"] for word in view["words"]]
        numbers = [f"{word['contribution']:+z.2f}" for word in view["words"]]
        at = figure.words.index(words[0])
        assert figure.words[at : at + 2 * len(words)] == [
            each for pair in zip(words, numbers, strict=True) for each in pair
        ]
        assert f"for {view['target']}" in figure.words
        assert any(f"{view['value']:.4f}" in text for text in figure.words)
    assert "not why" in figure.about
    # The word that speaks for the result most has the full color.
    largest = max(record(*command)[0]["words"], key=lambda word: abs(word["contribution"]))
    assert ("#58a0de" if largest["contribution"] > 0 else "#ec7862") in figure.grounds


def test_explain_figure_escapes_what_a_text_holds(made: Made, tmp_path: Path) -> None:
    figure = drawn(tmp_path, "explain", "-m", made(**LABELS), NASTY)
    assert {element.tag.removeprefix(SVG) for element in figure.root.iter()} == {
        "svg", "title", "desc", "rect", "g", "text",
    }  # fmt: skip
    assert "&" in figure.words
    assert "script" in figure.words


def test_explain_figure_of_a_pair_has_both_texts(made: Made, tmp_path: Path) -> None:
    figure = drawn(tmp_path, "explain", "-m", made(**VECTORS), "A dog ran.", "--contrast", "The cat sat.")
    assert figure.words[0].startswith("The cosine with")
    assert "dog" in figure.words


def test_explain_figure_of_late_interaction_has_the_matches(tmp_path: Path) -> None:
    command = [
        "explain",
        "-m",
        write_late(tmp_path / "model", "stanford"),
        "hot tea?",
        "--text-pair",
        "The tea, was hot.",
    ]
    figure = drawn(tmp_path, *command)
    assert {"hot", "tea,", "was"} <= {*figure.words}, "both texts"
    begin = figure.words.index("Match")
    for word in record(*command)[0]["words"]:
        begin = figure.words.index(word["word"], begin + 1)
        assert figure.words[begin + 1] == f"{word['contribution']:+z.4f}"
        assert figure.words[begin + 3] == word["match"]


def test_explain_figure_of_texts_with_one_target_has_one_legend(made: Made, tmp_path: Path) -> None:
    label = record("explain", "-m", made(**LABELS), "tea")[0]["target"]
    command = ["explain", "-m", made(**LABELS), "tea", "king", "dog", "--label", label]
    figure = drawn(tmp_path, *command)
    assert figure.words.count(f"for {label}") == 1
    assert [text.partition(".")[0] for text in figure.words if text.startswith("Text ")] == [
        "Text 0",
        "Text 1",
        "Text 2",
    ]


def test_figure_of_no_text_is_empty(made: Made, tmp_path: Path) -> None:
    (tmp_path / "none.txt").touch()
    figure = drawn(tmp_path, "explain", "-m", made(**LABELS), "-i", tmp_path / "none.txt")
    assert figure.words == []
    assert figure.root.get("height") == "6pt"


def test_lens_figure_has_the_curve_and_the_table(made: Made, tmp_path: Path) -> None:
    command = ["lens", "-m", made(**MASKS), MASKED]
    figure = drawn(tmp_path, *command)
    (view,) = record(*command)
    for layer in view["masks"][0]["layers"]:
        for token in layer["predictions"]:
            assert f"{token['token_str']} {token['score']:.1%}" in figure.words
        assert f"{layer['kl']:.4f}" in figure.words
        assert f"layer {layer['layer']}: probability {layer['score']:.4f}" in figure.notes


def test_lens_figure_of_all_tokens_is_a_heat_map(made: Made, tmp_path: Path) -> None:
    command = ["lens", "-m", made(**MASKS), MASKED, "--all"]
    figure = drawn(tmp_path, *command)
    (view,) = record(*command)
    for token in view["masks"]:
        for layer in token["layers"]:
            best = layer["predictions"][0]
            assert f"{best['token_str']} {best['score']:.0%}" in " ".join(figure.words)
            assert f"{best['score']:.1%}" in figure.notes
    assert "layer →" in figure.words


def test_heads_figure_has_each_heads_weights_and_its_number(made: Made, tmp_path: Path) -> None:
    command = ["heads", "-m", made(**LABELS), TEXTS[2], "--ablate"]
    figure = drawn(tmp_path, *command)
    view = library.heads(library.load(made(**LABELS)), TEXTS[2], ablate=True)
    pictures = [_pixels(image.get("href") or "") for image in figure.root.iter(f"{SVG}image")]
    assert len(pictures) == len(view.heads)
    for head in view.heads:
        assert f"{head.change:+z.3f}" in figure.words
        # Pictures are in the order of layers and heads.
        picture = pictures[(head.layer - 1) * view.weights.shape[1] + head.head - 1]
        weights = view.weights[head.layer - 1, head.head - 1]
        assert np.array_equal(picture, np.round(255 * weights))
    largest = max(view.heads, key=lambda head: abs(head.change or 0))
    assert ("#58a0de" if (largest.change or 0) > 0 else "#ec7862") in figure.grounds
    assert "Head 1" in figure.words


def _pixels(href: str) -> Any:
    """The levels of a picture [row, column], 8 bits each, without filters: one for each weight; its colors are blue."""
    data = b64decode(href.removeprefix("data:image/png;base64,"))
    assert data.startswith(b"\x89PNG")
    width, height = np.frombuffer(data[16:24], ">u4")
    begin = data.index(b"IDAT")
    length = int.from_bytes(data[begin - 4 : begin])
    rows = np.frombuffer(zlib.decompress(data[begin + 4 : begin + 4 + length]), np.uint8).reshape(height, 1 + width)
    assert not rows[:, 0].any()
    begin = data.index(b"PLTE") + 4
    assert (data[begin : begin + 3], data[begin + 765 : begin + 768]) == (b"\xff\xff\xff", bytes((8, 48, 107)))
    # Each weight is a square of pixels.
    edges = [0, *np.flatnonzero(np.diff(rows[:, 1:].astype(int), axis=0).any(axis=1)) + 1]
    side = int(np.gcd.reduce([*edges, len(rows)]))
    return rows[::side, 1::side]


def test_heads_figure_leaves_out_what_top_k_does(made: Made, tmp_path: Path) -> None:
    figure = drawn(tmp_path, "heads", "-m", made(**LABELS), TEXTS[2], "--ablate", "--top-k", "1")
    assert len([*figure.root.iter(f"{SVG}image")]) == 1


def test_heads_figure_of_one_head_has_its_percentages(made: Made, tmp_path: Path) -> None:
    command = ["heads", "-m", made(**MASKS), MASKED, "--layer", "1.2"]
    figure = drawn(tmp_path, *command)
    attention = record(*command)["attention"]
    tokens = attention["tokens"]
    begin = figure.words.index(tokens[0])
    expected = [*tokens]
    for piece, weights in zip(tokens, attention["weights"], strict=True):
        expected += [piece, *(f"{100 * weight:.0f}" for weight in weights)]
    assert figure.words[begin:] == expected
    # A longer text is a picture.
    longer = drawn(tmp_path, "heads", "-m", made(**MASKS), f"{MASKED} {MASKED}", "--layer", "1")
    assert len([*longer.root.iter(f"{SVG}image")]) == 1


def test_heads_figure_follows_a_token_through_all_layers(made: Made, tmp_path: Path) -> None:
    command = ["heads", "-m", made(**MASKS), MASKED, "--rollout", "2"]
    figure = drawn(tmp_path, *command)
    shares = record(*command)["rollout"][2]
    assert all(f"{share:.1%}" in figure.words for share in shares)
    through, mean = (figure.words.index(name) for name in ("Rollout through all layers", "Mean weight"))
    assert through < mean
    view = library.heads(library.load(made(**MASKS)), MASKED, rollout=2)
    assert view.rollout is not None
    *_, first, second = [_pixels(image.get("href") or "") for image in figure.root.iter(f"{SVG}image")]
    assert np.array_equal(first, np.round(255 * view.rollout.layers))
    assert np.array_equal(second, np.round(255 * view.rollout.mean))


@pytest.mark.parametrize("of", ["layers", "heads"])
def test_patch_figure_has_the_effects_and_what_differs(made: Made, tmp_path: Path, of: str) -> None:
    command = ["patch", "-m", made(**LABELS), "The cat sat.", "The dog sat.", "--of", of]
    figure = drawn(tmp_path, *command)
    found = record(*command)
    for effects in found["effects"][of]:
        assert all(f"{effect:+z.2f}" in figure.words for effect in effects)
    assert f"{found['value_a']:.4f}:" in figure.words
    # The words that differ have a ground of their own.
    assert {"cat", "dog"} <= {*figure.words}
    titles = {"layers": "Residual stream after each layer", "heads": "Attention heads' output"}
    assert [text for text in figure.words if text.startswith(tuple(titles.values()))] == [
        text for text in figure.words if text.startswith(titles[of])
    ]


def test_patch_figure_has_a_map_for_each_direction(made: Made, tmp_path: Path) -> None:
    figure = drawn(tmp_path, "patch", "-m", made(**LABELS), "The cat sat.", "The dog sat.", "--direction", "both")
    maps = [text.partition(": ")[2] for text in figure.words if text.startswith("Residual stream")]
    assert maps == ["B with what A has there", "A with what B has there"]


def test_probe_figure_has_the_intervals_and_the_confusions(tmp_path: Path) -> None:
    command = ["probe", "-i", DATA / "reviews.csv", "-m", "bert-mini-sentiment", "--layer", "2"]
    figure = drawn(tmp_path, *command, again=False)
    for layer in record(*command)["layers"]:
        accuracy = layer["accuracy"]
        assert f"{accuracy['value']:.4f} [{accuracy['low']:.4f}, {accuracy['high']:.4f}]" in figure.notes
    assert {"negative", "positive", "majority", "control"} <= {*figure.words}


def test_views_without_plots_name_the_endings_that_they_have(tmp_path: Path) -> None:
    arguments = {
        "diff": ["bert-mini-mlm", "--versus", "bert-mini-sentiment"],
        "trace": ["A film."],
        "encode": ["A film."],
    }
    for name, given in arguments.items():
        done = bertcli(name, *given, "-o", tmp_path / "figure.svg")
        _, _, allowed = done.error.partition("figure.svg: the ending must be one of ")
        assert ".parquet" in allowed
        assert ".svg" not in allowed
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("name", ["explain", "lens", "heads", "patch", "probe", "evaluate"])
def test_help_lists_the_ending_of_figures(name: str) -> None:
    assert ".svg" in bertcli(name, "--help").out

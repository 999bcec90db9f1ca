"""Where two models part: a fault in any tensor is found at the step that uses it."""

import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.checkpoint_files import narrow, write_weights
from helpers.json_files import read_json, write_json
from helpers.terminal import bertcli as run
from reference.view_cases import TEXTS, VECTORS

import bertcli
from bertcli.errors import BertcliError
from bertcli.folder.files import Folder
from bertcli.model import Model
from bertcli.weights.tensors import open_tensors
from bertcli.wings.interpret.compute.diff import Diff, Weights
from bertcli.wings.interpret.compute.diff import draw as diff_page

REFERENCE = Path(__file__).parents[2] / "reference"
TEXT = "The good king drank hot tea in Paris."
MODEL: dict[str, Any] = {"head": "pretraining", "seed": 31, "tied": "absent"}


def altered(folder: Path, copy: Path, name: str, change: Any) -> Path:
    """A copy of a checkpoint with one tensor changed."""
    shutil.copytree(folder, copy)
    tensors = {key: ("F32", tensor.float32().copy()) for key, tensor in open_tensors(Folder(folder)).items()}
    tensors[name] = ("F32", change(tensors[name][1]).astype(np.float32))
    write_weights(copy, tensors, 0)
    return copy


def test_diff_of_a_model_with_itself_is_none(made: Made) -> None:
    model = bertcli.load(made(**MODEL))
    found = bertcli.diff(model, bertcli.load(made(**MODEL)), TEXT)
    assert isinstance(found, Diff)
    with bertcli.trace(model) as trace:
        model.outputs([model.tokenizer.encode([TEXT])[0].ids])
    assert [step.path for step in found.steps] == [step.path for step in trace.steps]
    assert {(step.max_abs, step.max_rel, step.cosine) for step in found.steps} == {(0.0, 0.0, 1.0)}
    assert (found.first, found.weights) == (None, ())


def test_diff_names_a_fault_in_any_tensor_where_it_begins(made: Made, tmp_path: Path) -> None:
    folder = made(**MODEL)
    model = bertcli.load(folder)
    with bertcli.trace(model) as trace:
        model.outputs([model.tokenizer.encode([TEXT])[0].ids])
    used: dict[str, str] = {}  # parameter -> the first step that works with it
    for step in trace.steps:
        for parameter in step.parameters:
            used.setdefault(parameter, step.path)
    names = {use.name: use.path for use in model.tensor_uses if use.path}
    assert len(names) == len(open_tensors(Folder(folder))) > 40
    for number, (name, path) in enumerate(names.items()):
        assert path is not None
        other = bertcli.load(altered(folder, tmp_path / str(number), name, lambda values: values + 0.01))
        found = bertcli.diff(model, other, TEXT)
        assert isinstance(found, Diff)
        assert found.first == used[path], name
        assert [weight.path for weight in found.weights] == [path]
        assert found.weights[0].max_abs == pytest.approx(0.01, rel=1e-3)


def stored_as(folder: Path, copy: Path, dtype: str) -> Path:
    """A copy of a checkpoint with all tensors in another type."""
    shutil.copytree(folder, copy)
    write_weights(
        copy,
        {name: (dtype, narrow(tensor.float32(), dtype)) for name, tensor in open_tensors(Folder(folder)).items()},
        0,
    )
    return copy


def test_diff_of_half_precision_stays_small(made: Made, tmp_path: Path) -> None:
    for number, model in enumerate((bertcli.load(), bertcli.load(made(**MODEL)))):
        assert model.path is not None
        half = bertcli.load(stored_as(model.path, tmp_path / f"half{number}", "F16"))
        found = bertcli.diff(model, half, ["The cat sat on the mat.", TEXT], tolerance=1e-2)
        assert isinstance(found, Diff)
        assert found.first is None
        largest = max(found.steps, key=lambda step: step.max_rel or 0)
        assert (largest.max_rel == 0) == (number == 0)  # the bundled model is stored in half precision
        assert (f"at {largest.path}" in found.below()[1]) == (number == 1)
        coarse = bertcli.diff(model, bertcli.load(stored_as(model.path, tmp_path / f"b{number}", "BF16")), TEXT)
        assert isinstance(coarse, Diff)
        assert coarse.first == "embeddings.token"
        assert 1e-4 < max(step.max_rel or 0 for step in coarse.steps) < 0.1


def test_diff_knows_the_hidden_states_of_transformers(vectors: Model) -> None:
    with np.load(REFERENCE / "views.npz") as stored:
        arrays = {name: stored[name] for name in stored.files}
    found = bertcli.diff(vectors, REFERENCE / "views.npz", TEXTS[2])
    assert isinstance(found, Diff)
    assert found.first is None
    paths = ["embeddings.norm", *(f"encoder.layers.{i}.feed_forward_norm" for i in range(2))]
    assert [step.path for step in found.steps] == paths
    arrays["hidden_states.1"] = arrays["hidden_states.1"] + 0.5
    found = bertcli.diff(vectors, arrays, TEXTS[2])
    assert isinstance(found, Diff)
    assert found.first == paths[1]
    for names, message in (
        (
            {"logits": arrays["hidden_states.0"]},
            r"No array .* Known names .* hidden_states.0 to hidden_states.2; .* 'logits'",
        ),
        ({"hidden_states.0": arrays["hidden_states.0"][:, :2]}, r"has the shape|of shape \(1, 2, 32\), but here"),
    ):
        with pytest.raises(BertcliError, match=message):
            bertcli.diff(vectors, names, TEXTS[2])
    with pytest.raises(BertcliError, match="one text"):
        bertcli.diff(vectors, arrays, TEXTS)


def test_diff_of_files_that_are_none(vectors: Model, tmp_path: Path) -> None:
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 no zip")
    (tmp_path / "bad.safetensors").write_bytes(b"\x00" * 20)
    np.savez(tmp_path / "objects.npz", a=np.array([{}], dtype=object))
    with zipfile.ZipFile(tmp_path / "none.npz", "w") as archive:
        archive.writestr("hidden_states.0.npy", b"no array")
    for name in ("bad.npz", "bad.safetensors", "objects.npz", "none.npz", "missing.npz", "arrays.txt"):
        with pytest.raises(BertcliError):
            bertcli.diff(vectors, tmp_path / name, TEXT)


def test_diff_of_other_architectures_is_of_what_both_have(made: Made, vectors: Model) -> None:
    deeper = bertcli.load(made(**VECTORS, sizes={"num_hidden_layers": 3}))
    found = bertcli.diff(vectors, deeper, TEXTS)
    assert isinstance(found, Diff)
    assert found.only.first == ()
    assert {path.rpartition(".")[0][:16] for path in found.only.second} == {"encoder.layers.2"}
    assert "Only in " in found.below()[-1]
    narrow = bertcli.load(made(head="model", seed=8, tokenizer="both", sizes={"hidden_size": 16}, pooler=False))
    found = bertcli.diff(vectors, narrow, TEXTS[0])
    assert isinstance(found, Diff)
    assert {step.path.rpartition(".")[2] for step in found.steps} <= {"scores", "softmax", "intermediate"}
    assert "embeddings.token" in found.only.first
    assert "embeddings.token" in found.only.second


def test_diff_refuses_other_tokens(made: Made, vectors: Model) -> None:
    other = bertcli.load(made(**{**VECTORS, "lower_case": False}))
    with pytest.raises(BertcliError, match=r"differently \(token 1 is 'the' in one, 'The' in the other\)"):
        bertcli.diff(vectors, other, TEXT)


def test_diff_of_different_heads_compares_what_both_have(made: Made) -> None:
    one, other = (bertcli.load(made(head=head, seed=3)) for head in ("classifier", "mlm"))
    found = bertcli.diff(one, other, TEXT)
    assert isinstance(found, Diff)
    assert {step.path.split(".")[0] for step in found.steps} == {"embeddings", "encoder"}
    assert found.first is None
    assert {path.split(".")[0] for path in found.only.first} >= {"pooler", "classifier"}
    assert {path.split(".")[0] for path in found.only.second} == {"mlm"}
    assert found.record["only"] == [list(found.only.first), list(found.only.second)]


def test_diff_marks_numbers_that_are_none(made: Made, tmp_path: Path) -> None:
    folder = made(**MODEL)
    broken = altered(folder, tmp_path / "nan", "bert.pooler.dense.bias", lambda values: values * np.nan)
    found = bertcli.diff(bertcli.load(folder), bertcli.load(broken), TEXT, tolerance=1e9)
    assert isinstance(found, Diff)
    assert found.first == "pooler.dense"
    step = next(one for one in found.steps if one.path == "pooler.dense")
    assert (step.max_abs, step.max_rel, step.cosine) == (None, None, None)
    (row,) = (row for row in found.document().rows if row[0] == "pooler.dense")
    assert "NaN" in row


def test_diff_is_symmetric_and_the_largest_difference_of_the_arrays(made: Made) -> None:
    one, other = (bertcli.load(made(**{**MODEL, "seed": seed})) for seed in (31, 32))
    forward, backward = bertcli.diff(one, other, TEXT), bertcli.diff(other, one, TEXT)
    assert isinstance(forward, Diff)
    assert isinstance(backward, Diff)
    assert forward.steps == backward.steps
    passes = []
    for model in (one, other):
        with bertcli.trace(model, keep=lambda path: True) as trace:
            model.outputs([model.tokenizer.encode([TEXT])[0].ids])
        passes.append(trace.arrays)
    x, y = passes
    for step in forward.steps:
        assert step.max_abs == pytest.approx(np.abs(x[step.path] - y[step.path]).max(), rel=1e-6)


def test_diff_without_a_text_compares_the_weights(made: Made, tmp_path: Path) -> None:
    folder = made(**MODEL)
    model, half = bertcli.load(folder), bertcli.load(stored_as(folder, tmp_path / "half", "F16"))
    again = bertcli.load(stored_as(half.path or folder, tmp_path / "again", "F32"))
    assert bertcli.diff(half, again).record == {
        "equal": 47,
        "weights": [],
        "only": [[], []],
        "digests": [bertcli.diff(half, half).record["digests"][0]] * 2,
    }
    equal = ("diff", str(half.path), "--versus", str(again.path))
    assert run(*equal, "--format", "csv").out == "path,max_abs,max_rel\n"
    assert run(*equal, "-o", tmp_path / "equal.csv").status == 0
    assert (tmp_path / "equal.csv").read_text() == "path,max_abs,max_rel\n"
    changed = bertcli.load(altered(folder, tmp_path / "changed", "bert.pooler.dense.bias", lambda values: values * 1.5))
    found = bertcli.diff(model, changed, tolerance=0.3)
    assert isinstance(found, Weights)
    assert [weight.path for weight in found.weights] == ["pooler.dense.bias"]
    assert found.weights[0].max_rel == pytest.approx(1 / 3, rel=1e-6)
    assert found.digests[0] != found.digests[1]
    assert (found.equal, found.differs) == (46, "pooler.dense.bias differs by more than the tolerance of 0.3.")
    assert bertcli.diff(model, changed, tolerance=0.4).differs is None
    hardly = bertcli.load(altered(folder, tmp_path / "hardly", "bert.pooler.dense.bias", lambda x: x * (1 + 1e-6)))
    digests = bertcli.diff(model, hardly).record["digests"]
    assert digests[0] != digests[1], "float32 values count, not rounded ones"
    masks = bertcli.load(made(**{**MODEL, "head": "mlm"}))
    found = bertcli.diff(masks, model)
    assert isinstance(found, Weights)
    assert (found.weights, found.only.first) == ((), ())
    assert {path.split(".")[0] for path in found.only.second} == {"pooler", "nsp"}
    labels = [bertcli.load(made(head="classifier", num_labels=count)) for count in (2, 3)]
    found = bertcli.diff(labels[0], labels[1])
    assert isinstance(found, Weights)
    assert {weight.path: weight.max_abs for weight in found.weights} == dict.fromkeys(
        ["classifier.output.weight", "classifier.output.bias"]
    )


def test_diff_notices_the_arrays_of_another_text(vectors: Model, tmp_path: Path) -> None:
    tokens = vectors.tokenizer.encode([TEXT])[0]
    with bertcli.trace(vectors, keep=lambda path: True) as trace:
        vectors.outputs([tokens.ids])
    arrays = {**trace.arrays, "input_ids": np.array([tokens.ids]), "token_type_ids": np.array([tokens.segments])}
    for text in (TEXT, None):
        found = bertcli.diff(vectors, arrays, text)
        assert isinstance(found, Diff)
        assert (found.first, len(found.steps)) == (None, len(trace.arrays))
    with pytest.raises(BertcliError, match="are those of another text"):
        bertcli.diff(vectors, arrays, TEXT.replace("tea", "bread"))
    with pytest.raises(BertcliError, match="has no input_ids, so the text of its arrays is unknown"):
        bertcli.diff(vectors, trace.arrays)
    for bad in (np.array([[0, 10**6]]), np.array([[-1]]), np.array([[0.5]]), np.zeros((1, 0), np.int64)):
        with pytest.raises(BertcliError):
            bertcli.diff(vectors, {**arrays, "input_ids": bad, "token_type_ids": np.zeros_like(bad)})


def test_diff_pages(made: Made, vectors: Model, tmp_path: Path) -> None:
    other = bertcli.load(made(**{**VECTORS, "seed": 404}))
    found = bertcli.diff(vectors, other, TEXT)
    assert isinstance(found, Diff)
    assert diff_page(found).count("<mark") == len(found.steps)
    weights = bertcli.diff(vectors, other)
    assert isinstance(weights, Weights)
    assert diff_page(weights).count("<mark") == len(weights.weights) > 20
    assert list(found.record) == ["steps", "first", "weights", "only"]


def test_diff_cuts_texts_at_the_shorter_limit_of_the_two_models(made: Made, tmp_path: Path) -> None:
    """In either order: the numbers are those of six tokens, and not those of the whole text."""
    folder = made(**MODEL)
    other = altered(folder, tmp_path / "other", "bert.encoder.layer.0.output.dense.weight", lambda x: x * 1.5)
    whole = bertcli.diff(bertcli.load(folder), bertcli.load(other), TEXT).record
    settings = other / "tokenizer_config.json"
    known = read_json(settings) if settings.exists() else {}
    write_json(settings, {**known, "model_max_length": 6})
    for pair in ((folder, other), (other, folder)):
        one, two = map(bertcli.load, pair)
        found = bertcli.diff(one, two, TEXT).record["steps"]
        assert found == bertcli.diff(one, two, TEXT, max_length=6).record["steps"]
        assert found != whole["steps"]

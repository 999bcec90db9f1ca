"""What strangers tried and the makers had not thought of: each is right now, or refused in one line."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import pickle
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from checkpoint_files import Dense
from checkpoints import Sentence, make
from conftest import Made
from terminal import bertcli as command

import bertcli
from bertcli import functional, tasks
from bertcli.errors import BertcliError
from bertcli.output import journal
from bertcli.output.files import Replacement
from bertcli.search import open_vectors

# ------------------------------------------------------------------------------------------------------------- models


def test_a_model_stays_itself_when_the_working_directory_changes(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made(sentence=Sentence(("cls",), "legacy"))
    expected = bertcli.load(folder).encode(["tea"])
    monkeypatch.chdir(folder.parent)
    model = bertcli.load(folder.name)
    monkeypatch.chdir("/")
    assert np.array_equal(model.encode(["tea"]), expected)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).encode(["tea"]), expected)


def test_a_model_that_was_changed_does_not_pickle_as_the_one_it_was(made: Made) -> None:
    model = bertcli.load(made())
    with pytest.raises(TypeError, match="pickles as its path"):
        pickle.dumps(dataclasses.replace(model, name="another"))


def test_weights_of_no_parameter_are_refused() -> None:
    sizes = bertcli.BertConfig(9, 8, 1, 2, 8)
    arrays = {path: np.zeros(shape, np.float32) for path, shape in shapes(sizes).items()}
    assert bertcli.variant(config=sizes, weights=arrays, heads="none").has_weights
    with pytest.raises(BertcliError, match="no_such_path"):
        bertcli.variant(config=sizes, weights={**arrays, "no_such_path": [1]}, heads="none")
    with pytest.raises(BertcliError, match="seed"):
        bertcli.variant(config=sizes, weights=-1)
    assert bertcli.variant(config=sizes, weights=np.int64(3)).has_weights  # type: ignore[arg-type]


def shapes(config: bertcli.BertConfig) -> dict[str, tuple[int, ...]]:
    """Of every parameter of the encoder, by its path."""
    from bertcli.tree import parameters

    found = bertcli.variant(config=config, heads="none").network
    return {parameter.path: parameter.array.shape for parameter in parameters(found)}


@pytest.mark.parametrize("watched", [False, True])
def test_batches_without_a_token(made: Made, watched: bool) -> None:
    model = bertcli.load(made(head="pretraining"))
    for ids, mask in ((np.zeros((0, 4), int), None), ([[]], None), ([[2, 3]], [[0, 0]])):
        if watched:
            with bertcli.trace(model) as found:
                states = model.forward(ids, mask=mask)
            assert found.totals.macs == 0
        else:
            states = model.forward(ids, mask=mask)
        assert states.shape == (*np.shape(ids), model.config.hidden_size)
        assert not states.any()
    for ids in (np.zeros((0, 4), int), [[]]):
        with pytest.raises(BertcliError, match="no token"):
            model.outputs(ids)


# ------------------------------------------------------------------------------------------------------------- texts


def test_both_texts_of_a_pair_are_lower_cased(made: Made) -> None:
    folder = made(sentence=Sentence(do_lower_case=True), lower_case=False)
    model = bertcli.load(folder)
    assert np.array_equal(model.encode(["THE"], ["TEA"]), model.encode(["the"], ["tea"]))


def test_no_pooling_is_the_checkpoints_own(made: Made) -> None:
    model = bertcli.load(made(sentence=Sentence(("cls",), "legacy")))
    assert np.array_equal(tasks.encode(model, ["tea"], pooling=None), model.encode(["tea"], pooling="cls"))


def test_what_is_left_out_of_the_vectors_of_tokens_is_said(made: Made) -> None:
    folder = made(sentence=Sentence(("mean",), "legacy", normalize=True, dense=(Dense(16),)))
    said = command("encode", "-m", folder, "tea", "--pooling", "none").err
    assert "without the checkpoint's Dense layers and normalisation" in said


def test_a_checkpoints_own_truncate_dim(tmp_path: Path) -> None:
    folder = make(tmp_path / "m", sentence=Sentence(("mean",), "legacy", normalize=True))
    model = bertcli.load(folder)
    whole = model.encode(["tea", "a cat"])
    (folder / "config_sentence_transformers.json").write_text('{"truncate_dim": 8}')
    short = bertcli.load(folder)
    assert np.array_equal(short.encode(["tea", "a cat"]), whole[:, :8])  # not normalised once more
    (asked,) = tasks.encode_blocks(short, ["tea"], truncate_dim=4)
    assert np.linalg.norm(np.asarray(asked.vectors)) == pytest.approx(1, abs=1e-6)
    assert np.asarray(asked.vectors).shape == (1, 4)
    (folder / "config_sentence_transformers.json").write_text('{"truncate_dim": "8"}')
    with pytest.raises(BertcliError, match="truncate_dim"):
        bertcli.load(folder).encode(["tea"])


def test_targets_in_one_string(made: Made) -> None:
    model = bertcli.load(made(head="pretraining"))
    assert model.fill_mask(["a [MASK]"], targets="tea, cat,") == model.fill_mask(["a [MASK]"], targets=["tea", "cat"])


@pytest.mark.parametrize(
    "options", [{"max_length": 1.5}, {"max_length": "5"}, {"batch_tokens": "a"}, {"max_length": True}]
)
def test_numbers_that_are_not_whole(made: Made, options: dict[str, object]) -> None:
    with pytest.raises(BertcliError, match="whole number"):
        bertcli.load(made()).encode(["tea"], **options)  # type: ignore[arg-type]


def test_what_holds_no_texts(made: Made) -> None:
    model = bertcli.load(made())
    for texts, pairs in ((None, None), (5, None), (["tea"], 5)):
        with pytest.raises(BertcliError, match="neither a text nor a list of texts"):
            model.encode(texts, pairs)  # type: ignore[arg-type]


def test_neighbors_where_ids_have_gaps(tmp_path: Path) -> None:
    folder = make(tmp_path / "m", head="pretraining", tokenizer="json")
    file = folder / "tokenizer.json"
    data = json.loads(file.read_text(encoding="utf-8"))
    vocabulary = data["model"]["vocab"]
    gone = vocabulary.pop("cat")
    file.write_text(json.dumps(data), encoding="utf-8")
    model = bertcli.load(folder)
    (found,) = tasks.neighbors(model, ["tea"], top_k=10_000)
    ids = {one["id"] for one in found["neighbors"]}
    assert ids == set(vocabulary.values()) - {vocabulary["tea"]}
    assert gone not in ids


# ------------------------------------------------------------------------------------------------------------- arrays


def test_a_mask_to_be_added_is_refused() -> None:
    x = np.ones((3, 4))
    for mask in ([[0, -np.inf, 0]] * 3, [[2, 0, 0]] * 3):
        with pytest.raises(BertcliError, match="mask"):
            functional.scaled_dot_product_attention(x, x, x, mask)
    assert functional.scaled_dot_product_attention(x, x, x, [[True, False, False]] * 3).shape == (3, 4)


@pytest.mark.parametrize("block", [functional.gelu, functional.relu, functional.layer_norm, functional.softmax])
def test_blocks_take_a_single_number(block: Callable[[float], np.ndarray]) -> None:
    assert block(1.0).shape == ()
    assert block(1.0) == block([1.0])[0]  # type: ignore[arg-type]


def test_residual_add_changes_nothing() -> None:
    x, y = np.ones((2, 3), np.float32), np.full((2, 3), 2.0)
    assert np.array_equal(functional.residual_add(x, y), np.full((2, 3), 3.0))
    assert (x == 1).all()


@pytest.mark.parametrize("ids", [[-100], [5]])
def test_a_loss_over_ids_that_are_none(ids: list[int]) -> None:
    with pytest.raises(BertcliError, match="0 and 4"):
        functional.masked_lm_loss(np.zeros((1, 5)), ids)


# ------------------------------------------------------------------------------------------------------------- files


def test_a_planted_link_is_not_written_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    monkeypatch.setattr("bertcli.output.files.token_hex", lambda size: "planted")
    (tmp_path / ".out.npz.planted.part").symlink_to(victim)
    with pytest.raises(BertcliError), Replacement(str(tmp_path / "out.npz")) as output:
        output.write(b"overwritten")
    assert victim.read_text() == "precious"
    assert not (tmp_path / "out.npz").exists()


def test_a_ref_in_the_cache_can_be_read_by_others(tmp_path: Path) -> None:
    from bertcli.download import _point

    before = os.umask(0o022)
    try:
        _point(tmp_path / "refs" / "main", "0" * 40)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "refs" / "main").stat().st_mode) == 0o644
    assert [file.name for file in (tmp_path / "refs").iterdir()] == ["main"]


@pytest.mark.skipif(os.name == "nt", reason="another way to lock")
@pytest.mark.parametrize(("number", "ours"), [(errno.EWOULDBLOCK, False), (errno.ENOSYS, True), (errno.ENOLCK, True)])
def test_a_file_system_without_locks(number: int, ours: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(file: int, how: int) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr("fcntl.flock", flock)
    assert journal._lock(0) is ours


def test_what_was_skipped_when_encoding_is_skipped_when_searching(made: Made, tmp_path: Path) -> None:
    source, vectors = tmp_path / "in.jsonl", tmp_path / "v.npy"
    source.write_text('{"text": "a cat"}\nnonsense\n{"text": "tea"}\n')
    command("encode", "-m", made(), "-i", source, "-o", vectors, "--keep-going")
    found = command("encode", "-m", made(), "--query", "tea", "--against", vectors, "-i", source, "--format", "jsonl")
    assert found.records[0]["nearest"][0] == {"row": 2, "score": pytest.approx(1, abs=1e-6), "text": "tea"}


@pytest.mark.parametrize("ending", [".npz", ".safetensors"])
def test_vectors_of_tokens_are_not_searched(made: Made, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"tokens{ending}"
    command("encode", "-m", made(), "tea", "--pooling", "none", "-o", file)
    with pytest.raises(BertcliError, match="a row for each token"):
        open_vectors(str(file))


def test_rows_that_no_file_holds(tmp_path: Path) -> None:
    header = repr({"descr": "<f4", "fortran_order": False, "shape": (0, 2**70)}).encode().ljust(118) + b"\n"
    (tmp_path / "v.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(BertcliError, match="not rows"):
        open_vectors(str(tmp_path / "v.npy"))


@pytest.mark.parametrize("option", ["--id-column", "--pair-column", "--column"])
@pytest.mark.parametrize("ending", [".jsonl", ".csv"])
def test_a_missing_field_names_its_option(made: Made, tmp_path: Path, option: str, ending: str) -> None:
    file = tmp_path / f"in{ending}"
    file.write_text('{"text": "tea"}\n' if ending == ".jsonl" else "text\ntea\n")
    error = command("encode", "-m", made(), "-i", file, option, "nowhere", "--format", "jsonl").error
    assert f"{option})" in error


def test_a_label_or_layer_of_thousands_of_digits(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_text(f"text,label\ntea,{'9' * 5000}\n")
    done = command("classify", "-m", made(head="classifier"), "-i", file, "--label-column", "label")
    assert (done.status, "no label" in done.error or "label" in done.error) == (1, True)
    assert command("trace", "-m", made(), "tea", "--attention", "9" * 5000).status == 1


@pytest.mark.parametrize("form", ["table", "json", "jsonl"])
def test_a_result_for_a_closed_stream_is_an_error(made: Made, form: str) -> None:
    words = ["bertcli", "tokenize", "-m", str(made()), "tea", "--format", form]
    code = f"import os, sys; os.close(1); sys.stdout = None; sys.argv = {words!r}; from bertcli.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert b"Error: " in done.stderr
    assert b"Traceback" not in done.stderr


def test_fields_are_found_by_name_and_nothing_else() -> None:
    account = bertcli.params(bertcli.variant("tiny"))
    assert account["total_params"] == account.total_params
    for name in ("document", "_rows", "no_such", 0):
        with pytest.raises(KeyError):
            account[name]  # type: ignore[index]
    with pytest.raises(TypeError):
        list(account)  # type: ignore[call-overload]


def test_tokenize_says_what_encode_does_before_it(tmp_path: Path) -> None:
    folder = make(tmp_path / "m", sentence=Sentence(do_lower_case=True), lower_case=False)
    (folder / "config_sentence_transformers.json").write_text(
        '{"default_prompt_name": "query", "prompts": {"query": "search: "}}'
    )
    said = command("tokenize", "-m", folder, "tea").err
    assert "encode prepends 'search: ' to a text and lower-cases it" in said
    assert "encode" not in command("tokenize", "-m", make(tmp_path / "n"), "tea").err


def test_tokenize_takes_any_texts(made: Made) -> None:
    from bertcli.tasks.tokenize import tokenize

    (record,) = tokenize(bertcli.load(made()).tokenizer, ["tea"])
    assert record["tokens"] == ["[CLS]", "tea", "[SEP]"]

"""Damaged and hostile tokenizer.json: refused in one short line."""

import json
import os
import signal
import struct
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Made
from helpers.checkpoints import make
from helpers.json_files import read_json, write_json
from helpers.opened_folders import tokenizer_of
from helpers.terminal import bertcli as bertcli_command
from helpers.tokenizer_kinds import NO_CHANGES, write_kind

import bertcli
from bertcli.errors import BertcliError
from bertcli.models.bert import BertConfig
from bertcli.tokens import Tokenizer
from bertcli.tokens.library import library_errors, without_lines_of_panics
from bertcli.tokens.windows import windows_of


def test_tokenizer_file_error_does_not_flood_the_message(tmp_path: Path) -> None:
    write_json(tmp_path / "tokenizer.json", {"version": "1.0", "model": "a" * 5000})
    with pytest.raises(BertcliError, match="cannot be read as a tokenizer") as caught:
        tokenizer_of(tmp_path)
    assert len(str(caught.value).replace(str(tmp_path), "")) < 500


def with_template(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    make(folder, tokenizer="json")
    document = read_json(folder / "tokenizer.json")
    change(document["post_processor"])
    write_json(folder / "tokenizer.json", document)
    return folder


@pytest.mark.parametrize("place", [1, 3])
def test_tokenizer_file_template_that_omits_a_text(place: int, tmp_path: Path) -> None:
    with pytest.raises(BertcliError, match="template omits a text, or has it twice"):
        tokenizer_of(with_template(tmp_path, lambda template: template["pair"].pop(place)))


def of_kind(folder: Path, kind: str, change: Callable[[Any], object], escaped: str = "") -> Path:
    """A folder with that kind's tokenizer.json, changed, with a letter of this key written as an escape."""
    write_kind(folder, kind)
    file = folder / "tokenizer.json"
    document = read_json(file)
    change(document)
    text = json.dumps(document)
    if escaped:
        text = text.replace(f'"{escaped}"', f'"\\u00{ord(escaped[0]):x}{escaped[1:]}"')
    file.write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("escaped", ["", "merges", "continuing_subword_prefix"])
@pytest.mark.parametrize("prefix", ["a", "##", "éé"])
def test_tokenizer_file_with_merges_and_a_prefix(
    prefix: str, escaped: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The library may end the process, or panic, as it cuts the prefix off."""
    change = {"continuing_subword_prefix": prefix}
    with pytest.raises(BertcliError, match="merges pieces and has a continuing_subword_prefix, too"):
        tokenizer_of(of_kind(tmp_path, "roberta", lambda data: data["model"].update(change), escaped))
    assert capfd.readouterr().err == ""


def test_tokenizer_file_with_a_word_piece_merges(tmp_path: Path) -> None:
    words = tokenizer_of(of_kind(tmp_path, "mpnet", lambda data: data["model"]["vocab"].update(merges=10_000)))
    assert words.encode(["merges"])[0].ids[1:-1] == [10_000]


def test_tokenizer_file_that_merges_at_random(tmp_path: Path) -> None:
    words = tokenizer_of(of_kind(tmp_path, "roberta", lambda data: data["model"].update(dropout=0.9)))
    assert words.encode(["the cat"])[0].pieces == ["<s>", "the", "Ġcat", "</s>"]


def test_tokenizer_file_with_an_id_of_32_bits(tmp_path: Path) -> None:
    words = tokenizer_of(of_kind(tmp_path, "roberta", lambda data: data["model"]["vocab"].update(the=2**31 + 5)))
    (tokens,) = words.encode(["the"])
    (window,) = windows_of(tokens, 10, 2)
    assert tokens.ids == window.ids == [0, 2**31 + 5, 2]


def mapped(charsmap: bytes) -> Callable[[dict[str, Any]], None]:
    """With another map of characters."""

    def change(document: dict[str, Any]) -> None:
        document["normalizer"]["normalizers"][0]["precompiled_charsmap"] = b64encode(charsmap).decode()

    return change


def unit(at: int, value: int, text: int, texts: bytes = b"a\0") -> bytes:
    """A map whose unit at a place has this value; `text` is the unit that its own lead to, and says where a text is."""
    units = [0] * 256
    units[at], units[(at ^ value >> 10) % 256] = value, text
    return struct.pack("<I256I", 1024, *units) + texts


def test_tokenizer_file_with_a_segment_that_the_model_lacks(tmp_path: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        document["post_processor"]["pair"][-1]["SpecialToken"]["type_id"] = 7

    folder = of_kind(tmp_path, "deberta-v2", change)
    tokenizer = tokenizer_of(folder, BertConfig(vocab_size=1000))
    assert len(tokenizer.encode(["tea"])) == 1
    with pytest.raises(BertcliError, match="gives a text segment 7, but the model's segments end at 1"):
        tokenizer.encode(["tea"], ["tea"])


def replacing(pattern: dict[str, str]) -> Callable[[dict[str, Any]], None]:
    """With a normalizer that replaces this."""
    return lambda document: document.update(normalizer={"type": "Replace", "pattern": pattern, "content": "é"})


def stripped(token: str) -> Callable[[dict[str, Any]], None]:
    """With a normalizer that strips texts, and this token, which is normalized, too."""
    normalizer = {"type": "Strip", "strip_left": True, "strip_right": True}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "special"), False)
    tokens = [{"id": 5, "content": token, "normalized": True, **flags}]
    return lambda document: document.update(normalizer=normalizer, added_tokens=tokens)


B = {"Sequence": {"id": "B", "type_id": 0}}
CUT = {"type": "Strip", "content": "a", "start": 0, "stop": 1}
NOTHING = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": ""}, {"type": "NFD"}]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (mapped(NO_CHANGES[:-9]), "is cut off"),
        (mapped(b""), "is cut off"),
        (mapped(struct.pack("<I", 2**32 - 4) + bytes(9)), "is cut off"),
        (mapped(NO_CHANGES + b"\xff"), "texts that are not UTF-8"),
        (mapped(unit(9, 256 | 3 << 10, 0x80000005)), "outside its texts"),
        (mapped(unit(9, 256 | 3 << 10, 0x80000001, "é\0".encode())), "into the middle of a character"),
        (mapped(unit(9, 1 << 20 | 3 << 10, 0)), "outside itself"),
    ],
)
def test_tokenizer_file_with_a_map_of_characters_that_may_end_the_process(
    change: Callable[[Any], object], message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = of_kind(tmp_path, "xlm-roberta", change)
    with pytest.raises(BertcliError, match=f"has a precompiled_charsmap that.*{message}"):
        tokenizer_of(folder)
    assert capfd.readouterr().err == ""


AT_ANY_TEXT = "fails at any text"


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("deberta-v2", lambda data: data["post_processor"]["special_tokens"].pop("[SEP]"), "put its special tokens"),
        ("deberta-v2", lambda data: data["post_processor"].update(single=[B]), AT_ANY_TEXT),
        (
            "deberta-v2",
            lambda data: data.update(post_processor={"type": "Sequence", "processors": [data["post_processor"]] * 2}),
            "put its special tokens",
        ),
        ("roberta", lambda data: data.update(pre_tokenizer={"type": "FixedLength", "length": 0}), AT_ANY_TEXT),
        ("roberta", lambda data: data.update(normalizer=NOTHING), AT_ANY_TEXT),
        ("roberta", lambda data: data.update(decoder=CUT), AT_ANY_TEXT),
        ("roberta", lambda data: data.update(decoder={"type": "Sequence", "decoders": [CUT]}), AT_ANY_TEXT),
        ("roberta", replacing({"String": ""}), AT_ANY_TEXT),
        ("roberta", replacing({"Regex": "x|"}), AT_ANY_TEXT),
        ("roberta", stripped(" "), AT_ANY_TEXT),
    ],
)
def test_tokenizer_file_at_which_the_library_panics(
    kind: str, change: Callable[[Any], object], message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The lines that the library prints then do not stand before ours."""
    result = bertcli_command("tokenize", "-m", of_kind(tmp_path, kind, change), "the tea")
    assert message in result.error
    assert "another text" not in result.error
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("system", ["has files in memory", "has none"])
def test_tokenizer_file_panics_hide_no_other_lines(
    system: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if system == "has none":
        monkeypatch.delattr(os, "memfd_create", raising=False)
    with without_lines_of_panics():
        os.write(2, b"a note\n\nthread '<unnamed>' (77) panicked at lib.rs:1:2:\nno entry found\n")
    assert capfd.readouterr().err == "a note\n"
    many = b"a note\n" * 20_000  # more than a pipe holds
    with without_lines_of_panics(), without_lines_of_panics():
        os.write(2, many)
    assert capfd.readouterr().err == many.decode()


def test_tokenizer_file_panic_of_the_library_is_one_line() -> None:
    panic = type("PanicException", (BaseException,), {})
    with (
        pytest.raises(BertcliError, match=r"The tokenizer failed \(no entry found\)"),
        library_errors("The tokenizer failed"),
    ):
        raise panic("no entry found")
    with pytest.raises(KeyboardInterrupt), library_errors("The tokenizer failed"):
        raise KeyboardInterrupt


class Stopped(Exception):
    """What a handler of signals raises."""


def stop(number: int, frame: object) -> None:
    raise Stopped


def encode_until_the_alarm(words: Tokenizer, seconds: float) -> None:
    signal.setitimer(signal.ITIMER_REAL, seconds)
    while True:
        words.encode(["the cat sat on the mat " * 50] * 4)


def test_tokenizer_errors_of_a_signal_handler_are_its_own(made: Made) -> None:
    words = bertcli.load(made()).tokenizer
    earlier = signal.signal(signal.SIGALRM, stop)
    try:
        for wait in range(20):
            with pytest.raises(Stopped):
                encode_until_the_alarm(words, 0.001 + wait / 4000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, earlier)


@pytest.mark.parametrize("part", [{"type": "BertProcessing", "sep": ["[SEP]", 7777], "cls": ["[CLS]", 6]}, None])
def test_tokenizer_file_template_with_ids_beyond_the_vocabulary(part: Any, tmp_path: Path) -> None:
    folder = make(tmp_path, tokenizer="json")
    file = folder / "tokenizer.json"
    data = read_json(file)
    if part is None:
        data["post_processor"]["special_tokens"]["[SEP]"]["ids"] = [7777]
    else:
        data["post_processor"] = part
    write_json(file, data)
    with pytest.raises(BertcliError, match="puts the id 7777 around texts, but the model's embeddings end at id 350"):
        bertcli.load(folder)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("tokenizer_config.json", {"mask_token": "\ud800"}),
        ("tokenizer_config.json", {"additional_special_tokens": ["a\udfff"]}),
        ("tokenizer_config.json", {"added_tokens_decoder": {"5": "\udc00"}}),
        ("added_tokens.json", {"\udc00": 351}),
    ],
)
def test_tokenizer_file_with_half_a_surrogate_pair(file: str, content: Any, tmp_path: Path) -> None:
    write_json(make(tmp_path) / file, content)
    with pytest.raises(BertcliError, match="which is not a token"):
        bertcli.load(tmp_path)

"""One side cut alone, windows over long texts, and words: as the tokenizers library itself does it."""

from pathlib import Path

import pytest
from helpers.opened_folders import tokenizer_of
from helpers.vocabulary import pieces, write_tokenizer_json
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Encoding
from tokenizers import Tokenizer as Backend

from bertcli.errors import BertcliError
from bertcli.tokens import Tokens
from bertcli.tokens.windows import windows_of

WORDS = ["tea", "unbelievable", "Tokens,", "[MASK]", "Café", "北京", "😀", "transformed"]
texts = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
quick = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer_json(folder, pieces())
    return folder


def library(folder: Path) -> Backend:
    return Backend.from_file(str(folder / "tokenizer.json"))


def told(tokens: Tokens) -> tuple[object, ...]:
    return tokens.ids, tokens.segments, tokens.offsets, tokens.words, tokens.sides


def expected(found: Encoding) -> tuple[object, ...]:
    return found.ids, found.type_ids, found.offsets, found.word_ids, found.sequence_ids


@quick
@given(text=texts, pair=st.none() | texts, overlap=st.integers(0, 5), more=st.integers(1, 9))
def test_windows_are_those_of_the_library(folder: Path, text: str, pair: str | None, overlap: int, more: int) -> None:
    backend = library(folder)
    first = 0 if pair is None else len(backend.encode(text, add_special_tokens=False))
    size = first + (2 if pair is None else 3) + overlap + more
    backend.enable_truncation(size, stride=overlap, strategy="only_first" if pair is None else "only_second")
    reference = backend.encode(text, pair)
    (tokens,) = tokenizer_of(folder).encode([text], [pair])
    windows = windows_of(tokens, size, overlap)
    assert [told(window) for window in windows] == [expected(one) for one in (reference, *reference.overflowing)]
    assert all(window.lost == 0 for window in windows)
    assert windows_of(tokens, 10_000, overlap)[0].ids == tokens.ids


@quick
@given(text=texts, pair=texts, size=st.integers(4, 30), cut=st.sampled_from(["longest", "text", "pair"]))
def test_the_side_that_is_named_is_cut(folder: Path, text: str, pair: str, size: int, cut: str) -> None:
    backend, tokenizer = library(folder), tokenizer_of(folder)
    lengths = [len(backend.encode(one, add_special_tokens=False)) for one in (text, pair)]
    strategy = {"longest": "longest_first", "text": "only_first", "pair": "only_second"}[cut]
    backend.enable_truncation(size, strategy=strategy)
    if cut != "longest" and sum(lengths) + 3 > size and lengths[cut == "text"] + 4 > size:
        with pytest.raises(BertcliError, match=f"no room for the {'first' if cut == 'text' else 'second'} text"):
            tokenizer.encode([text], [pair], size, cut)  # type: ignore[arg-type]
        return
    (tokens,) = tokenizer.encode([text], [pair], size, cut)  # type: ignore[arg-type]
    assert told(tokens) == expected(backend.encode(text, pair))
    assert tokens.lost == max(0, sum(lengths) + 3 - size)


@pytest.mark.parametrize(("size", "overlap", "room"), [(6, 1, 1), (4, 0, 0), (9, 4, 4)])
def test_windows_too_small_to_move_on(folder: Path, size: int, overlap: int, room: int) -> None:
    (tokens,) = tokenizer_of(folder).encode(["hello world"], ["tea coffee water milk bread"])
    with pytest.raises(BertcliError, match=f"window of {size} tokens has room for {room} beside .*the first text"):
        windows_of(tokens, size, overlap)
    (single,) = tokenizer_of(folder).encode(["tea coffee water milk bread"])
    with pytest.raises(BertcliError, match="has room for 2 beside the special tokens, no more than the 2 that it"):
        windows_of(single, 4, 2)


def test_the_length_of_a_prompt(folder: Path) -> None:
    tokenizer = tokenizer_of(folder)
    assert tokenizer.prompt_length("hot tea: ") == 4  # [CLS] hot tea :
    assert tokenizer.prompt_length("") == 1

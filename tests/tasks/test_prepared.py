"""Prompts, equal to sentence-transformers; chunks: nothing is left out, none is too long, cuts are between words."""

import random
import unicodedata
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.checkpoints import Sentence, make
from helpers.near import assert_near
from helpers.opened_folders import tokenizer_of
from helpers.tokenizer_kinds import write_kind
from hypothesis import given
from hypothesis import strategies as st
from reference.encode_cases import PROMPTED, TEXTS, prompted

import bertcli
from bertcli.errors import BertcliError
from bertcli.tasks.parts.chunks import chunk_ranges
from bertcli.tokens import Tokenizer

with np.load(Path(__file__).parents[1] / "reference" / "encode.npz") as file:
    GOLDENS = dict(file)


@pytest.mark.parametrize("case", PROMPTED)
def test_prepared_prompts_are_those_of_sentence_transformers(case: str, tmp_path: Path) -> None:
    model = bertcli.load(prompted(tmp_path, case))
    options: dict[str, Any] = PROMPTED[case][-1]
    assert_near(model.encode(TEXTS, **options), GOLDENS[f"prompted.{case}"], 1e-5)


def test_prepared_prompts_that_are_not_there_are_named(tmp_path: Path, made: Made) -> None:
    names = "'query', 'passage', 'none', 'document'"
    with pytest.raises(BertcliError, match=rf"no prompt 'x' \(--prompt-name\); it has {names}"):
        bertcli.load(prompted(tmp_path, "default")).encode(["tea"], prompt_name="x")
    with pytest.raises(BertcliError, match="not both"):
        bertcli.load(made()).encode(["tea"], prompt_name="query", prompt="x")
    with pytest.raises(BertcliError, match="The prompt leaves no room for text 0"):
        bertcli.load(prompted(tmp_path / "left", "cls left out")).encode(["tea"], max_length=3, truncation="silent")


# -------------------------------------------------------------------------------------------------------------- chunks

KINDS = ("bert", "roberta", "xlm-roberta", "camembert", "mpnet", "modernbert", "deberta-v2", "albert")
ODD = (
    "e\u0301", "u\u0308\u0323", "👩\u200d👩\u200d👧", "👍🏽", "☃️", "🇫🇷", "\r\n", "\n", " ", "\u3000", "中国人", "ﬁ",
    "İ", "ß", "שָׁלוֹם", "ปลา", "\u00ad", "\u200b", "[MASK]", "don't", "x" * 40, "the", "cat", "unbelievable", ".", "!!",
)  # fmt: skip


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tokenizer]:
    found = {}
    for kind in KINDS:
        folder = tmp_path_factory.mktemp(kind)
        (make if kind == "bert" else lambda folder, kind=kind: write_kind(folder, kind))(folder)
        found[kind] = tokenizer_of(folder)
    return found


@given(
    pieces=st.lists(st.sampled_from(ODD) | st.text(max_size=4), max_size=40),
    limit=st.integers(1, 12),
    share=st.floats(0, 0.99),
    kind=st.sampled_from(KINDS),
    spaced=st.booleans(),
)
def test_prepared_chunks_hold_every_character(
    pieces: list[str], limit: int, share: float, kind: str, spaced: bool, tokenizers: dict[str, Tokenizer]
) -> None:
    text = (" " if spaced else "").join(pieces).replace("\ud800", "")
    text = text.encode("utf-8", "ignore").decode("utf-8")
    overlap = int(share * limit)
    (tokens,) = tokenizers[kind].encode([text])
    ranges = list(chunk_ranges(text, tokens, limit, overlap))
    assert ranges[0][0] == 0
    assert ranges[-1][1] == len(text)
    for (_, end), (start, later) in pairwise(ranges):
        assert start <= end < later or (start, end) == (end, later)
        assert overlap or start == end
    inside = [at for start, end in ranges for at in (start, end) if 0 < at < len(text) and _belongs(text, at)]
    assert not inside or limit < 8  # of a character of many tokens


def _belongs(text: str, at: int) -> bool:
    """Whether the character goes with the one before it."""
    return unicodedata.category(text[at]).startswith("M") or text[at - 1 : at + 1] == "\r\n"


@pytest.mark.parametrize("limit", [40, 50, 64])
@pytest.mark.parametrize("kind", ["roberta", "modernbert"])
def test_prepared_chunks_cut_no_joined_emoji(kind: str, limit: int, tokenizers: dict[str, Tokenizer]) -> None:
    family, thumb = "👩\u200d👩\u200d👧", "👍🏽"  # of 18 tokens, and of 8, since these tokenizers read bytes
    text = family * 8 + thumb * 8 + family * 4
    whole = {0, *accumulate(map(len, [family] * 8 + [thumb] * 8 + [family] * 4))}
    (tokens,) = tokenizers[kind].encode([text])
    ranges = list(chunk_ranges(text, tokens, limit, 0))
    assert len(ranges) > 3
    assert {at for range in ranges for at in range} <= whole


@pytest.mark.parametrize("kind", KINDS)
def test_prepared_chunks_end_where_words_do(kind: str, tokenizers: dict[str, Tokenizer]) -> None:
    choose = random.Random(3)
    text = " ".join(choose.choices(["the", "cat", "sat", "unbelievable", "tea,", "mat."], k=60))
    (tokens,) = tokenizers[kind].encode([text])
    for overlap in (0, 5):
        ranges = list(chunk_ranges(text, tokens, 16, overlap))
        assert len(ranges) > 5
        assert all(text[end] == " " for _, end in ranges[:-1])
        assert all(text[start] == " " for start, _ in ranges[1:])
        if overlap:
            assert any(start < end for (_, end), (start, _) in pairwise(ranges))


LONG = "The cat sat on the mat. " * 9 + "She drank\r\nhot tea, and ate cafe\u0301 bread. 👩\u200d👩\u200d👧 " * 5


@pytest.mark.parametrize("chunk", [8, (16, 4), [48]])
@pytest.mark.parametrize("lower", [False, True])
def test_prepared_chunks_are_texts_of_their_own(chunk: Any, lower: bool, made: Made) -> None:
    model = bertcli.load(made(sentence=Sentence(("mean",), "new", do_lower_case=lower), lower_case=not lower))
    texts = ["tea", LONG, "", "İİİ " + LONG]
    (block,) = model.encode_blocks(texts, chunk=chunk, prompt="a: ", batch_tokens=10_000)
    vectors = model.encode([item.chunk_text for item in block.items], prompt="a: ")
    assert_near(block.vectors, vectors, 1e-5)
    limit = chunk if isinstance(chunk, int) else chunk[0]
    assert max(len(item.tokens.ids) for item in block.items) <= limit
    assert not any(item.tokens.truncated for item in block.items)
    numbers = [(item.index, item.chunk.number) for item in block.items if item.chunk]
    assert numbers == sorted(numbers)
    assert {index for index, _ in numbers} == {0, 1, 2, 3}
    record = block.records()[1]
    assert list(record) == ["index", "chunk", "start", "end", "text", "tokens", "truncated", "embedding"]
    assert record["text"] == texts[1][record["start"] : record["end"]]
    assert len(model.encode(texts, chunk=chunk, prompt="a: ")) == len(block.items)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chunk": 2}, "Chunks of 2 tokens have no room"),
        ({"chunk": (12, 10)}, "an overlap of 10"),
        ({"chunk": 60}, r"^chunk \(--chunk\) is 60, more than the 48 positions of this model\.$"),
        ({"chunk": 0}, r"chunk \(--chunk\) is 0: give a size of 1 or more tokens, or a size and an overlap"),
        ({"chunk": (12, -1)}, "give a size"),
        ({"chunk": (1, 2, 3)}, "give a size"),
        ({"chunk": 1.5}, "not a whole number"),
        ({"chunk": 12, "max_length": 12}, "leave out max_length"),
        ({"chunk": 12, "pairs": "b"}, "A pair of texts cannot be cut"),
        ({"chunk": 12, "pooling": "none"}, "Chunks have one vector each"),
    ],
)
def test_prepared_chunks_that_cannot_be(options: dict[str, Any], message: str, made: Made) -> None:
    with pytest.raises(BertcliError, match=message):
        list(bertcli.load(made()).encode_blocks([LONG], **options))

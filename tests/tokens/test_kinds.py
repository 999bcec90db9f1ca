"""Tokenizers of every kind in BERT's family: equal to transformers'."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from helpers.json_files import write_json
from helpers.opened_folders import tokenizer_of
from helpers.recorded import recorded
from helpers.tokenizer_kinds import KINDS, write_kind
from helpers.vocabulary import SPECIAL, pieces, write_vocabulary

from bertcli.errors import BertcliError
from bertcli.models.bert import BertConfig
from bertcli.tokens import Tokenizer, Tokens
from bertcli.tokens.windows import windows_of

GOLDEN = recorded("tokens.json")
CUTS: dict[str, Any] = {"longest_first": "longest", "only_first": "text", "only_second": "pair"}
Opened = Callable[[str], Tokenizer]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Opened:
    made: dict[str, Tokenizer] = {}

    def open_kind(kind: str) -> Tokenizer:
        if kind not in made:
            folder = tmp_path_factory.mktemp(kind)
            write_kind(folder, kind)
            made[kind] = tokenizer_of(folder)
        return made[kind]

    return open_kind


def told(tokens: Tokens) -> list[list[int]]:
    starts, ends = zip(*tokens.offsets, strict=True)
    return [tokens.ids, tokens.segments, [*starts], [*ends], [-1 if word is None else word for word in tokens.words]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", range(7))
def test_kinds_equal_transformers(opened: Opened, kind: str, number: int) -> None:
    case = deepcopy(GOLDEN[kind][number])
    limit, cut = case.get("max_length"), CUTS[case.get("truncation", "longest_first")]
    if "stride" in case:
        (tokens,) = opened(kind).encode([case["text"]], [case["pair"]])
        windows = windows_of(tokens, limit, case["stride"])
        assert len(windows) > 1
    else:
        windows = opened(kind).encode([case["text"]], [case["pair"]], limit, cut)
    found, expected = [told(window) for window in windows], case["windows"]
    for one in [*found[1:], *expected[1:]]:  # the library gives segment 1 to later windows, whatever the template says
        del one[1]
    assert found == expected


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_spell_as_transformers(opened: Opened, kind: str) -> None:
    (tokens,) = opened(kind).encode(["The hot tea, café!"])
    assert opened(kind).spelled(tokens.pieces[1:-1]) == GOLDEN[kind][-1]["spelled"]


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_know_a_word_by_itself(opened: Opened, kind: str) -> None:
    reader = opened(kind)
    (tokens,) = reader.encode(["the tea"])
    assert reader.pieces_of("tea") == (tokens.ids[2],)
    assert reader.pieces_of(tokens.pieces[2]) == (tokens.ids[2],)
    ids = reader.pieces_of("unbelievable")
    spelled = reader.spelling([reader.piece(id) for id in ids])
    assert spelled.alone.strip() == spelled.following.strip() == "unbelievable"
    assert spelled.alone.startswith(" ") == (kind in ("roberta", "modernbert", "gemma3_text"))
    assert spelled.following.startswith(" ") == (kind != "mpnet")


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_have_special_tokens_by_role(opened: Opened, kind: str, tmp_path: Path) -> None:
    def roles(of: Tokenizer) -> list[int | None]:
        return [of.special_id(role) for role in ("mask", "cls", "sep", "pad", "unk")]

    (tokens,) = opened(kind).encode([f"tea {opened(kind).mask_token}"])
    mask, first, last, _, unknown = roles(opened(kind))
    assert [tokens.ids[0], *tokens.ids[-2:]] == [first, mask, last]
    assert (
        kind in ("roberta", "modernbert", "gemma3_text") or unknown in opened(kind).encode(["ɸ"])[0].ids
    )  # know bytes
    write_kind(tmp_path, kind, told=False)  # tokenizer.json alone tells as much
    assert roles(tokenizer_of(tmp_path)) == roles(opened(kind))


def test_kinds_with_weights_of_another_family(tmp_path: Path) -> None:
    """Multilingual MiniLM and e5 models are BERT with the tokenizer of XLM-RoBERTa."""
    size = write_kind(tmp_path, "xlm-roberta", model_max_length=512)
    (tokens,) = tokenizer_of(tmp_path, BertConfig(vocab_size=size)).encode(["tea"], ["hot"])
    assert tokens.pieces == ["<s>", "▁tea", "</s>", "</s>", "▁hot", "</s>"]
    assert tokens.segments == [0] * 6


def test_kinds_give_segments_only_to_models_that_have_them(tmp_path: Path) -> None:
    size = write_kind(tmp_path, "albert")
    for segments, expected in ((2, [0, 0, 0, 1, 1]), (1, [0] * 5)):
        config = BertConfig(vocab_size=size, type_vocab_size=segments)
        assert tokenizer_of(tmp_path, config).encode(["tea"], ["hot"])[0].segments == expected


# ---------------------------------------------------------------------------------------------- without tokenizer.json


def test_kinds_of_word_pieces_without_tokenizer_json(tmp_path: Path) -> None:
    write_vocabulary(tmp_path, ["<s>", "<pad>", "</s>", "<unk>", *pieces(), "<mask>"])  # MPNet's
    (tokens,) = tokenizer_of(tmp_path).encode(["hot <mask>"], ["tea"])
    assert tokens.pieces == ["<s>", "hot", "<mask>", "</s>", "</s>", "tea", "</s>"]


@pytest.mark.parametrize("file", ["added_tokens.json", "tokenizer_config.json"])
def test_kinds_of_word_pieces_with_tokens_added(tmp_path: Path, file: str) -> None:
    vocabulary = pieces()
    size = len(vocabulary)
    write_vocabulary(tmp_path, vocabulary)
    added: dict[str, Any] = {"<url>": size, "[DATE]": size + 1}
    if file == "tokenizer_config.json":
        added = {"added_tokens_decoder": {str(id): {"content": token, "special": True} for token, id in added.items()}}
    write_json(tmp_path / file, added)
    (tokens,) = tokenizer_of(tmp_path).encode(["see <url> [DATE]"])
    assert tokens.ids[-3:] == [size, size + 1, vocabulary.index(SPECIAL[2])]


@pytest.mark.parametrize("id", [-1, 1.5, "x", None, 10_000, 3])
def test_kinds_of_word_pieces_with_tokens_added_out_of_order(tmp_path: Path, id: Any) -> None:
    write_vocabulary(tmp_path, pieces())
    write_json(tmp_path / "added_tokens.json", {"[MASK]": id})
    with pytest.raises(BertcliError, match="added token"):
        tokenizer_of(tmp_path)

"""Build a tokenizer from vocab.txt, merges.txt or a sentencepiece model where tokenizer.json is missing.

One function for each class (CLASSES); each follows the fast tokenizer of transformers 4: equal ids and offsets.
transformers 5 builds DeBERTa's and ALBERT's differently, with other ids for rare texts: it leaves out DeBERTa's map of
characters. `.github/decisions/sentencepiece.md` compares both with the sentencepiece library.
"""

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tokenizers import AddedToken, Regex, decoders, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend
from tokenizers.models import BPE, Unigram, WordLevel, WordPiece

from bertcli.errors import BertcliError, quoted
from bertcli.folder.files import JSON_LIMIT, VOCABULARY_LIMIT, Folder, read_whole
from bertcli.folder.missing_files import lacks_tokenizer
from bertcli.tokens.charsmap import check_charsmap
from bertcli.tokens.settings import Settings

# Classes whose mask token includes the space before it.
SPACED_MASKS = ("deberta", "mpnet", "roberta", "xlmroberta", "camembert", "albert")
QWEN_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
EXTRA_IDS = 100  # marks of T5's vocabulary, unless its settings say otherwise
ONE_SPACE = normalizers.Replace(Regex(" {2,}"), " ")
SPACES_MARKED = (normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "▁"))


def open_vocabulary(folder: Folder, settings: Settings) -> Backend:
    """Build the tokenizer of the class, or of the model type, in the settings; BERT's if they name none.

    Errors: BertcliError for a class whose files cannot be read, and for files that are missing or damaged.
    """
    files, build = CLASSES.get(settings.class_name, CLASSES["bert"])
    names = {*folder.names}
    if settings.class_name not in CLASSES and settings.tokenizer_class is not None:
        raise BertcliError(
            f"{folder.path} has a {quoted(settings.tokenizer_class)} without a tokenizer.json, from which alone "
            "bertcli reads it: load the tokenizer with transformers and call save_pretrained, which writes that "
            "file."
        )
    if not names.issuperset(files):
        raise lacks_tokenizer(str(folder.path), names, " with ".join(files))
    backend = build(*map(folder.reading, files), settings)
    mask = settings.named.get("mask", "[MASK]" if settings.class_name in ("albert", "deberta") else "<mask>")
    if settings.class_name in SPACED_MASKS and backend.token_to_id(mask) is not None:
        backend.add_special_tokens([AddedToken(mask, lstrip=True, special=True, normalized=False)])
    return backend


def _word_pieces(file: Path, settings: Settings) -> Backend:
    """BERT: the longest pieces of each word, from the left."""
    lower = settings.flag("do_lower_case", True)
    backend = Backend(WordPiece(_lines(file), unk_token=settings.named.get("unk", "[UNK]")))
    backend.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=settings.flag("tokenize_chinese_chars", True),
        strip_accents=settings.flag("strip_accents", lower),
        lowercase=lower,
    )
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    return backend


def _letters(file: Path, settings: Settings) -> Backend:
    """ESM: each piece of the vocabulary wherever it occurs, most of them single letters; the rest is unknown."""
    vocabulary = {piece.strip(): id for piece, id in _lines(file).items()}
    backend = Backend(WordLevel(vocabulary, unk_token=settings.named.get("unk", "<unk>")))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.add_tokens([AddedToken(piece, normalized=False) for piece in vocabulary])
    return backend


def _lines(file: Path) -> dict[str, int]:
    """Read a vocab.txt, one piece a line: map each piece to its id, the line number from 0."""
    try:
        lines = read_whole(file, VOCABULARY_LIMIT).decode("utf-8").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError:
        raise BertcliError(f"{file} is not UTF-8: save it as UTF-8, or use another model.") from None
    if lines[-1] == "":
        lines.pop()
    return {piece: id for id, piece in enumerate(lines)}


def _deberta(vocabulary: Path, merges: Path, settings: Settings) -> Backend:
    """DeBERTa: byte-level BPE; a piece includes the space before it. Special tokens as BERT's.

    transformers 5 puts two [SEP] between the texts of a pair; 4, with which models were trained, one.
    """
    for file in (vocabulary, merges):
        read_whole(file, VOCABULARY_LIMIT)  # a file that cannot be read, or is too large, is an error that names it
    backend = Backend(BPE.from_file(str(vocabulary), str(merges)))
    prefix = settings.flag("add_prefix_space", False)
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    backend.decoder = decoders.ByteLevel()
    return backend


def _byte_pairs(vocabulary: Path, merges: Path, settings: Settings) -> Backend:
    """RoBERTa: byte-level BPE as DeBERTa's, with <s> and </s> around a text."""
    backend, prefix = _deberta(vocabulary, merges, settings), settings.flag("add_prefix_space", False)
    first, last = settings.named.get("cls", "<s>"), settings.named.get("sep", "</s>")
    first_id, last_id = backend.token_to_id(first), backend.token_to_id(last)
    if first_id is None or last_id is None:
        raise BertcliError(
            f"{vocabulary} lacks {first} or {last}, which RoBERTa puts around every text: use another model."
        )
    trim = settings.flag("trim_offsets", True)  # by position: the second name changed between versions
    backend.post_processor = processors.RobertaProcessing((last, last_id), (first, first_id), trim, prefix)
    return backend


def _qwen2(vocabulary: Path, merges: Path, settings: Settings) -> Backend:
    """Qwen2 and Qwen3: byte-level BPE on words, single digits and runs of other characters; no special tokens."""
    backend = _deberta(vocabulary, merges, settings)
    bytes_of_words = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.normalizer = normalizers.NFC()
    words = pre_tokenizers.Split(Regex(QWEN_WORDS), "isolated")
    backend.pre_tokenizer = pre_tokenizers.Sequence([words, bytes_of_words])
    backend.post_processor = processors.ByteLevel(trim_offsets=False)
    end = "<|endoftext|>"  # also the padding, unless a file names another
    if backend.token_to_id(end) is not None:
        backend.add_special_tokens([AddedToken(end, special=True, normalized=False)])
    return backend


def _xlm_roberta(file: Path, settings: Settings) -> Backend:
    model = _read(file)
    pieces = [*_special("<s>", "<pad>", "</s>", "<unk>"), *model.pieces[3:], *_special("<mask>")]
    return _unigram(model._replace(pieces=pieces, unk_id=3), [], SPACES_MARKED)


def _camembert(file: Path, settings: Settings) -> Backend:
    model = _read(file)
    begin = [*_special("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>"), VocabularyPiece("<unk>NOTUSED", -100.0, CONTROL)]
    pieces = [*begin, *model.pieces[1:], *_special("<mask>")]
    return _unigram(model._replace(pieces=pieces, unk_id=3), [], SPACES_MARKED)


def _special(*tokens: str) -> "list[VocabularyPiece]":
    return [VocabularyPiece(token, 0.0, CONTROL) for token in tokens]


def _albert(file: Path, settings: Settings) -> Backend:
    """ALBERT: a Unigram model. Pieces such as "1," get a low score, since the slow tokenizer splits them."""
    model = _read(file)
    steps: list[normalizers.Normalizer] = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    if not settings.flag("keep_accents", False):
        steps += [normalizers.NFKD(), normalizers.StripAccents()]
    if settings.flag("do_lower_case", True):
        steps.append(normalizers.Lowercase())
    pieces = [
        piece._replace(score=piece.score - 100) if piece.text[-1] == "," and piece.text[-2:-1].isdigit() else piece
        for piece in model.pieces
    ]
    return _unigram(model._replace(pieces=pieces), steps, [ONE_SPACE])


def _deberta_v2(file: Path, settings: Settings) -> Backend:
    lower = [normalizers.Lowercase()] if settings.flag("do_lower_case", False) else []
    backend = _unigram(_read(file), [*lower, normalizers.Strip()], [ONE_SPACE])
    unknown = settings.named.get("unk", "[UNK]")
    if backend.token_to_id(unknown) is not None:
        backend.add_special_tokens([AddedToken(unknown, special=True, normalized=True)])
    if settings.flag("split_by_punct", False):
        split = pre_tokenizers.Punctuation("isolated")
        backend.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.Metaspace()])
    return backend


def _t5(file: Path, settings: Settings) -> Backend:
    """T5, mT5, UMT5: a Unigram model, the marks <extra_id_99> to <extra_id_0> after it, and </s> after every text."""
    model = _read(file)
    count = EXTRA_IDS if settings.extra_ids is None else settings.extra_ids
    marks = _special(*(f"<extra_id_{number}>" for number in reversed(range(count))))
    backend = _unigram(model._replace(pieces=[*model.pieces, *marks]), [], SPACES_MARKED)
    end = settings.end or "</s>"
    id = backend.token_to_id(end)
    if id is None:
        raise BertcliError(f"{file} lacks {end}, which T5 puts after every text: use another model.")
    backend.post_processor = processors.TemplateProcessing(
        single=["$A", end], pair=["$A", end, "$B", end], special_tokens=[(end, id)]
    )
    return backend


def _unigram(
    model: "SentencePieceModel", before: Sequence[normalizers.Normalizer], after: Sequence[normalizers.Normalizer]
) -> Backend:
    """Build a Unigram tokenizer; the model's map of characters is applied between the steps `before` and `after`."""
    backend = Backend(Unigram([(text, score) for text, score, _ in model.pieces], model.unk_id, False))
    mapped = [normalizers.Precompiled(model.charsmap)] if model.charsmap else []
    backend.normalizer = normalizers.Sequence([*before, *mapped, *after])
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    whole = [piece for piece in model.pieces if piece.type in (CONTROL, USER_DEFINED)]
    backend.add_tokens([AddedToken(text, normalized=False, special=type == CONTROL) for text, _, type in whole])
    return backend


def _read(file: Path) -> "SentencePieceModel":
    try:
        return parse_model(read_whole(file, JSON_LIMIT))
    except ValueError as error:
        raise BertcliError(
            f"{file} cannot be read as a sentencepiece model ({error}): fetch the model again."
        ) from None


# Class name -> the files that it needs, and the function that builds it.
CLASSES: dict[str, tuple[tuple[str, ...], Callable[..., Backend]]] = {
    **dict.fromkeys(("bert", "distilbert", "electra", "mpnet"), (("vocab.txt",), _word_pieces)),
    "esm": (("vocab.txt",), _letters),
    "roberta": (("vocab.json", "merges.txt"), _byte_pairs),
    "xlmroberta": (("sentencepiece.bpe.model",), _xlm_roberta),
    "camembert": (("sentencepiece.bpe.model",), _camembert),
    "albert": (("spiece.model",), _albert),
    "deberta": (("vocab.json", "merges.txt"), _deberta),
    "debertav2": (("spm.model",), _deberta_v2),
    **dict.fromkeys(("t5", "mt5", "umt5"), (("spiece.model",), _t5)),
    **dict.fromkeys(("qwen2", "qwen3"), (("vocab.json", "merges.txt"), _qwen2)),
}


# ------------------------------------------------------------------------------------------------- sentencepiece

# A `.model` file is read as data. It is a protocol buffer: fields in a row, each with a tag (number · 8 + wire type)
# and a value. Wire type 0 is a whole number in groups of 7 bits, the lowest first, whose highest bit says that more
# follow; 2 is a length and so many bytes, perhaps a message of its own; 5 is four bytes. The fields that matter, after
# sentencepiece_model.proto:
#
#     1 pieces, one each:   1 text, 2 score (a float), 3 type (1 if left out)
#     2 trainer_spec:       3 model_type (1, Unigram, if left out), 40 unk_id (0 if left out)
#     3 normalizer_spec:    2 precompiled_charsmap

Value = int | bytes | float

CONTROL, USER_DEFINED = 3, 4  # types of pieces: special tokens, and others that are never split
UNIGRAM, BYTE_PAIRS = 1, 2  # types of models
NUMBER, BYTES, FLOAT = 0, 2, 5  # wire types


class VocabularyPiece(NamedTuple):
    """A piece's text, its log-probability, and its type."""

    text: str
    score: float
    type: int


class SentencePieceModel(NamedTuple):
    """A sentencepiece model: pieces in order of id, the id of the unknown piece, the map of characters or b""."""

    pieces: list[VocabularyPiece]
    unk_id: int
    charsmap: bytes


def parse_model(data: bytes) -> SentencePieceModel:
    """Read a `.model` file. Errors: ValueError for a damaged one, and for any type of model but Unigram."""
    pieces: list[VocabularyPiece] = []
    specs: dict[int, dict[int, Value]] = {2: {}, 3: {}}
    for number, value in _fields(data):
        if number == 1:
            pieces.append(_piece(value))
        elif number in specs:
            specs[number].update(_fields(_bytes(value)))
    model_type, unk_id, charsmap = specs[2].get(3, UNIGRAM), specs[2].get(40, 0), specs[3].get(2, b"")
    if model_type != UNIGRAM:
        raise ValueError(f"it is not a Unigram model{', but one of byte pairs' if model_type == BYTE_PAIRS else ''}")
    if not isinstance(unk_id, int) or unk_id >= len(pieces):
        raise ValueError(f"its unknown piece is number {unk_id!r} of {len(pieces)}")
    charsmap = _bytes(charsmap)
    if charsmap:
        check_charsmap(charsmap)
    return SentencePieceModel(pieces, unk_id, charsmap)


def _piece(message: Value) -> VocabularyPiece:
    fields = dict(_fields(_bytes(message)))
    text, score, piece_type = _bytes(fields.get(1, b"")).decode(), fields.get(2, 0.0), fields.get(3, 1)
    if not text or not isinstance(score, float) or not math.isfinite(score) or not isinstance(piece_type, int):
        raise ValueError(f"a piece is {text!r:.99} with the score {score!r:.99}")
    return VocabularyPiece(text, score, piece_type)


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a number stands where bytes belong")
    return value


def _fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Yield the number and value of each field in a message."""
    position = 0
    while position < len(data):
        tag, position = _number(data, position)
        value: Value
        if tag & 7 == NUMBER:
            value, position = _number(data, position)
        elif tag & 7 == BYTES:
            size, position = _number(data, position)
            value, position = data[position : position + size], position + size
        elif tag & 7 == FLOAT and position + 4 <= len(data):
            (value,), position = struct.unpack_from("<f", data, position), position + 4
        else:
            raise ValueError(f"no field ends with byte {position}")
        if position > len(data):
            raise ValueError("it ends within a field")
        yield tag >> 3, value


def _number(data: bytes, position: int) -> tuple[int, int]:
    """Read the variable-length number at a position; also return the position after it."""
    if position < len(data) and data[position] < 128:  # most are this short
        return data[position], position + 1
    value = 0
    for i, byte in enumerate(data[position : position + 10]):
        value |= (byte & 127) << 7 * i
        if byte < 128:
            return value, position + i + 1
    raise ValueError("it ends within a number")

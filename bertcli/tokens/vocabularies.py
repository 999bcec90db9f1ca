"""A tokenizer from its family's own files, where there is no tokenizer.json: one function for each kind of files.

Each follows the family's class in transformers 4, whose fast tokenizers give the same ids and offsets. transformers 5
builds DeBERTa's and ALBERT's otherwise than their files say, with other ids for odd texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tokenizers import AddedToken, Regex, decoders, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend
from tokenizers.models import BPE, Unigram, WordLevel, WordPiece

from bertcli.checkpoint.folders import lacks_tokenizer
from bertcli.checkpoint.untrusted import JSON_LIMIT, VOCABULARY_LIMIT, read_whole
from bertcli.errors import BertcliError, shown
from bertcli.tokens.sentencepiece import CONTROL, USER_DEFINED, Model, Piece, parse_model
from bertcli.tokens.settings import Settings

SPACED_MASKS = ("mpnet", "roberta", "xlmroberta", "camembert", "albert")  # whose mask takes the space before it
ONE_SPACE = normalizers.Replace(Regex(" {2,}"), " ")
SPACES_MARKED = (normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "▁"))


def open_vocabulary(folder: Path, settings: Settings) -> Backend:
    """The tokenizer of the class or the type of model that the settings name; BERT's where they name none.

    Errors: BertcliError for a class whose files cannot be read, and for files that are missing or damaged.
    """
    files, build = KINDS.get(settings.kind, KINDS["bert"])
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if settings.kind not in KINDS and settings.tokenizer_class is not None:
        raise BertcliError(
            f"{folder} asks for a {shown(settings.tokenizer_class)}, which bertcli reads only from a tokenizer.json, "
            "and has none."
        )
    if not names.issuperset(files):
        raise lacks_tokenizer(str(folder), names, " with ".join(files))
    backend = build(*(folder / name for name in files), settings)
    mask = settings.named.get("mask", "[MASK]" if settings.kind == "albert" else "<mask>")
    if settings.kind in SPACED_MASKS and backend.token_to_id(mask) is not None:
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
    """ESM: each piece of the vocabulary wherever it occurs, most of them letters; what is left is unknown."""
    vocabulary = {piece.strip(): id for piece, id in _lines(file).items()}
    backend = Backend(WordLevel(vocabulary, unk_token=settings.named.get("unk", "<unk>")))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.add_tokens([AddedToken(piece, normalized=False) for piece in vocabulary])
    return backend


def _lines(file: Path) -> dict[str, int]:
    """The pieces of a vocab.txt, one a line -> their ids, the line numbers from 0."""
    try:
        lines = read_whole(file, VOCABULARY_LIMIT).decode("utf-8").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError:
        raise BertcliError(f"{file} is not UTF-8: fetch the model again.") from None
    if lines[-1] == "":
        lines.pop()
    return {piece: id for id, piece in enumerate(lines)}


def _byte_pairs(vocabulary: Path, merges: Path, settings: Settings) -> Backend:
    """RoBERTa: bytes, merged in the order of merges.txt; a piece carries the space before it."""
    for file in (vocabulary, merges):
        read_whole(file, VOCABULARY_LIMIT)  # a file that cannot be read, or is too large, is an error that names it
    backend = Backend(BPE.from_file(str(vocabulary), str(merges)))
    prefix = settings.flag("add_prefix_space", False)
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    backend.decoder = decoders.ByteLevel()
    first, last = settings.named.get("cls", "<s>"), settings.named.get("sep", "</s>")
    first_id, last_id = backend.token_to_id(first), backend.token_to_id(last)
    if first_id is None or last_id is None:
        raise BertcliError(f"{vocabulary} lacks {first} or {last}, which RoBERTa puts around every text.")
    trim = settings.flag("trim_offsets", True)  # by position: the second name changed between versions
    backend.post_processor = processors.RobertaProcessing((last, last_id), (first, first_id), trim, prefix)
    return backend


def _xlm_roberta(file: Path, settings: Settings) -> Backend:
    model = _read(file)
    pieces = [*_special("<s>", "<pad>", "</s>", "<unk>"), *model.pieces[3:], *_special("<mask>")]
    return _unigram(model._replace(pieces=pieces, unk_id=3), [], SPACES_MARKED)


def _camembert(file: Path, settings: Settings) -> Backend:
    model = _read(file)
    begin = [*_special("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>"), Piece("<unk>NOTUSED", -100.0, CONTROL)]
    pieces = [*begin, *model.pieces[1:], *_special("<mask>")]
    return _unigram(model._replace(pieces=pieces, unk_id=3), [], SPACES_MARKED)


def _special(*tokens: str) -> list[Piece]:
    return [Piece(token, 0.0, CONTROL) for token in tokens]


def _albert(file: Path, settings: Settings) -> Backend:
    """ALBERT; a piece such as "1," is unlikely."""
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


def _unigram(
    model: Model, before: Sequence[normalizers.Normalizer], after: Sequence[normalizers.Normalizer]
) -> Backend:
    """The most likely pieces, each with the space before it; the map of characters stands between the steps."""
    backend = Backend(Unigram([(text, score) for text, score, _ in model.pieces], model.unk_id, False))
    mapped = [normalizers.Precompiled(model.charsmap)] if model.charsmap else []
    backend.normalizer = normalizers.Sequence([*before, *mapped, *after])
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    whole = [piece for piece in model.pieces if piece.type in (CONTROL, USER_DEFINED)]
    backend.add_tokens([AddedToken(text, normalized=False, special=type == CONTROL) for text, _, type in whole])
    return backend


def _read(file: Path) -> Model:
    try:
        return parse_model(read_whole(file, JSON_LIMIT))
    except ValueError as error:
        raise BertcliError(
            f"{file} cannot be read as a sentencepiece model ({error}): fetch the model again."
        ) from None


# The files that each class of tokenizers is made from, and how.
KINDS: dict[str, tuple[tuple[str, ...], Callable[..., Backend]]] = {
    **dict.fromkeys(("bert", "distilbert", "electra", "mpnet"), (("vocab.txt",), _word_pieces)),
    "esm": (("vocab.txt",), _letters),
    "roberta": (("vocab.json", "merges.txt"), _byte_pairs),
    "xlmroberta": (("sentencepiece.bpe.model",), _xlm_roberta),
    "camembert": (("sentencepiece.bpe.model",), _camembert),
    "albert": (("spiece.model",), _albert),
    "debertav2": (("spm.model",), _deberta_v2),
}

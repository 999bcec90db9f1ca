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

from bertcli.checkpoint.lacking import lacks_tokenizer
from bertcli.checkpoint.untrusted import JSON_LIMIT, VOCABULARY_LIMIT, read_whole
from bertcli.errors import BertcliError, shown
from bertcli.tokens.sentencepiece import CONTROL, USER_DEFINED, Model, parse_model
from bertcli.tokens.settings import Settings

ONE_SPACE = normalizers.Replace(Regex(" {2,}"), " ")


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
    return build(*(folder / name for name in files), settings)


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
    if settings.kind == "mpnet":
        _add_spaced_mask(backend, settings, "<mask>")
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
    _add_spaced_mask(backend, settings, "<mask>")
    return backend


def _xlm_roberta(file: Path, settings: Settings) -> Backend:
    model = _read(file)
    special = [(token, 0.0) for token in ("<s>", "<pad>", "</s>", "<unk>")]
    backend = _unigram(model, [*special, *_scored(model)[3:], ("<mask>", 0.0)], 3, _spaced())
    _add_spaced_mask(backend, settings, "<mask>")
    return backend


def _camembert(file: Path, settings: Settings) -> Backend:
    model = _read(file)
    unused = ("<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED")
    special = [(unused[0], 0.0), ("<pad>", 0.0), (unused[1], 0.0), ("<unk>", 0.0), (unused[2], -100.0)]
    backend = _unigram(model, [*special, *_scored(model)[1:], ("<mask>", 0.0)], 3, _spaced())
    backend.add_special_tokens(list(unused))
    _add_spaced_mask(backend, settings, "<mask>")
    return backend


def _albert(file: Path, settings: Settings) -> Backend:
    model = _read(file)
    steps: list[normalizers.Normalizer] = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    if not settings.flag("keep_accents", False):
        steps += [normalizers.NFKD(), normalizers.StripAccents()]
    if settings.flag("do_lower_case", True):
        steps.append(normalizers.Lowercase())
    vocabulary = [
        (text, score - 100 if text.endswith(",") and text[-2:-1].isdigit() else score) for text, score in _scored(model)
    ]
    backend = _unigram(model, vocabulary, model.unk_id, (steps, [ONE_SPACE]))
    _add_spaced_mask(backend, settings, "[MASK]")
    return backend


def _deberta_v2(file: Path, settings: Settings) -> Backend:
    """DeBERTa-v2 and v3; the mask comes last where the file lacks it."""
    model = _read(file)
    lower = [normalizers.Lowercase()] if settings.flag("do_lower_case", False) else []
    backend = _unigram(model, _scored(model), model.unk_id, ([*lower, normalizers.Strip()], [ONE_SPACE]))
    unknown = settings.named.get("unk", "[UNK]")
    if backend.token_to_id(unknown) is not None:
        backend.add_special_tokens([AddedToken(unknown, special=True, normalized=True)])
    if settings.flag("split_by_punct", False):
        split = pre_tokenizers.Punctuation("isolated")
        backend.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.Metaspace()])
    return backend


Steps = Sequence[normalizers.Normalizer]


def _spaced() -> tuple[Steps, Steps]:
    """How XLM-RoBERTa and CamemBERT normalize: what comes before the map of characters, and after."""
    return [], [normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "▁")]


def _unigram(model: Model, vocabulary: list[tuple[str, float]], unk_id: int, steps: tuple[Steps, Steps]) -> Backend:
    """The most likely pieces, each with the space before it."""
    backend = Backend(Unigram(vocabulary, unk_id, False))
    before, after = steps
    mapped = [normalizers.Precompiled(model.charsmap)] if model.charsmap else []
    backend.normalizer = normalizers.Sequence([*before, *mapped, *after])
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    whole = [piece for piece in model.pieces if piece.type in (CONTROL, USER_DEFINED)]
    backend.add_tokens([AddedToken(text, normalized=False, special=type == CONTROL) for text, _, type in whole])
    return backend


def _add_spaced_mask(backend: Backend, settings: Settings, default: str) -> None:
    """Let the mask take the space before it, as a word does."""
    mask = settings.named.get("mask", default)
    if backend.token_to_id(mask) is not None:
        backend.add_special_tokens([AddedToken(mask, lstrip=True, special=True, normalized=False)])


def _scored(model: Model) -> list[tuple[str, float]]:
    return [(text, score) for text, score, _ in model.pieces]


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

"""The texts as piece ids: documents held out first, a WordPiece vocabulary from the rest, one cache of arrays."""

import hashlib
import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAD, UNK, CLS, SEP, MASK = range(5)
HELD_OUT = 1.5  # per cent of the documents, by the hash of their text
UNRELATED_LINES = "tatoeba"  # its lines do not follow one another: a document each, never a next-sentence pair
# Plain stories and everyday sentences are what people type; of an encyclopedia there is most. So these more often.
REPEATS = {"gutenberg": 2, "storybooks": 4, "onestopenglish": 3, "factbook": 2, "tatoeba": 8}
ABBREVIATIONS = [
    "mr",
    "mrs",
    "ms",
    "dr",
    "st",
    "rev",
    "capt",
    "col",
    "gen",
    "lt",
    "prof",
    "jr",
    "sr",
    "vs",
    "etc",
    "eg",
    "ie",
]
ABBREVIATIONS += ["no", "vol", "fig", "inc", "ltd"]


@dataclass(frozen=True)
class Stream:
    """Documents laid end to end.

    ids [piece] uint16; ends [document] is where each document stops; next_start [piece + 1] int32 is the nearest
    position at or after each one where a sentence starts; source [document] numbers the file it came from.
    """

    ids: NDArray[np.uint16]
    ends: NDArray[np.int64]
    next_start: NDArray[np.int32]
    source: NDArray[np.int8]


def documents(folder: Path) -> Iterator[tuple[str, str]]:
    """(file's stem, document) in the order of the files; paragraphs of a document are joined by newlines."""
    for file in sorted([*folder.glob("*.txt.xz"), *folder.glob("*.txt")]):
        stem = file.name.split(".")[0]
        with lzma.open(file, "rt", encoding="utf-8") if file.suffix == ".xz" else file.open(encoding="utf-8") as lines:
            text = lines.read()
        apart = "\n" if stem.startswith(UNRELATED_LINES) else "\n\n"
        for document in text.split(apart):
            if document.strip():
                yield stem, document.strip()


def is_held_out(document: str) -> bool:
    """Whether a document is kept from training: decided by its text alone, so the same on every machine."""
    digest = hashlib.sha256(document.encode()).digest()
    return int.from_bytes(digest[:4], "big") < HELD_OUT / 100 * 2**32


def labeled(folder: Path, part: str) -> tuple[list[str], list[int]]:
    """Texts and labels (1 = positive) of sentiment/PART.tsv."""
    rows = (folder / "sentiment" / f"{part}.tsv").read_text(encoding="utf-8").splitlines()
    pairs = [row.split("\t", 1) for row in rows if "\t" in row]
    return [text for _, text in pairs], [int(label) for label, _ in pairs]


def train_tokenizer(texts: list[str], vocab_size: int) -> Tokenizer:
    """An uncased WordPiece tokenizer, set up as BERT's: accents stripped, [CLS] A [SEP] B [SEP]."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))  # type: ignore[call-arg]
    _dress(tokenizer)
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size, special_tokens=SPECIAL, limit_alphabet=300, min_frequency=2, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    vocabulary = tokenizer.get_vocab()
    final = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    _dress(final)
    final.add_special_tokens(SPECIAL)
    return final


def _dress(tokenizer: Tokenizer) -> None:
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True, strip_accents=True, handle_chinese_chars=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)],
    )


def _encode(tokenizer: Tokenizer, texts: list[str]) -> list[NDArray[np.uint16]]:
    encoded: list[NDArray[np.uint16]] = []
    for start in range(0, len(texts), 512):
        batch: Any = tokenizer.encode_batch_fast(texts[start : start + 512], add_special_tokens=False)
        encoded.extend(np.array(one.ids, np.uint16) for one in batch)
    return encoded


def sentence_starts(ids: NDArray[np.uint16], ends: NDArray[np.int64], tokenizer: Tokenizer) -> NDArray[np.bool_]:
    """[piece] true where a sentence starts: after . ! ? (and closing quotes), not after an abbreviation or in 3.14."""
    pieces = [tokenizer.id_to_token(index) for index in range(tokenizer.get_vocab_size())]
    enders = np.isin(pieces, [".", "!", "?"])
    closing = np.isin(pieces, ['"', "”", "’", ")"])
    short = np.isin(pieces, ABBREVIATIONS) | np.array([len(piece) == 1 and piece.isalpha() for piece in pieces])
    digit = np.array([piece[0].isdigit() for piece in pieces])
    end = enders[ids]
    end[1:] &= ~short[ids[:-1]]
    end[:-1] &= ~digit[ids[1:]]
    quoted = np.zeros_like(end)
    quoted[1:] = end[:-1] & closing[ids[1:]]
    end[:-1] &= ~closing[ids[1:]]
    end |= quoted
    starts = np.zeros_like(end)
    starts[1:] = end[:-1]
    starts[0] = True
    starts[ends[:-1]] = True
    return starts


def make_stream(tokenizer: Tokenizer, sources: list[str], texts: list[str], names: list[str]) -> Stream:
    """The stream of a list of documents, each with the name of its file."""
    encoded = _encode(tokenizer, texts)
    kept = [(names.index(source), ids) for source, ids in zip(sources, encoded, strict=True) if len(ids)]
    ids = np.concatenate([one for _, one in kept])
    ends = np.cumsum([len(one) for _, one in kept])
    positions = np.where(sentence_starts(ids, ends, tokenizer), np.arange(len(ids)), len(ids)).astype(np.int32)
    next_start = np.minimum.accumulate(positions[::-1])[::-1]
    next_start = np.append(next_start, np.int32(len(ids)))
    return Stream(ids, ends, next_start, np.array([source for source, _ in kept], np.int8))


def prepare(folder: Path, cache: Path, vocab_size: int) -> tuple[Tokenizer, Stream, Stream, list[str]]:
    """(tokenizer, training stream, held-out stream, names of the files), made once and then read from the cache.

    The texts of sentiment/train.tsv are in the training stream, without their labels; dev and test never are.
    """
    names = [*sorted({file.name.split(".")[0] for file in folder.glob("*.txt*")}), "sentiment"]
    if not (cache / "tokenizer.json").exists():
        cache.mkdir(parents=True, exist_ok=True)
        everything = list(documents(folder))
        kept = [(name, text) for name, text in everything if not is_held_out(text)]
        held = [(name, text) for name, text in everything if is_held_out(text)]
        tokenizer = train_tokenizer([text for _, text in kept], vocab_size)
        kept += [("sentiment", text) for text in labeled(folder, "train")[0] for _ in range(2)]
        for prefix, count in REPEATS.items():
            kept += [pair for pair in kept if pair[0].startswith(prefix)] * (count - 1)
        for part, pairs in (("train", kept), ("held-out", held)):
            stream = make_stream(tokenizer, [name for name, _ in pairs], [text for _, text in pairs], names)
            np.savez(cache / f"{part}.npz", **vars(stream))
        tokenizer.save(str(cache / "tokenizer.json"))
    tokenizer = Tokenizer.from_file(str(cache / "tokenizer.json"))
    train, held_out = (Stream(**dict(np.load(cache / f"{part}.npz"))) for part in ("train", "held-out"))
    return tokenizer, train, held_out, names

"""A checkpoint's tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer as Backend

from bertcli.config import BertConfig
from bertcli.errors import BertcliError
from bertcli.tokens.checks import library_errors
from bertcli.tokens.framed import Framing, Slot, Source, Tokens, fitting
from bertcli.tokens.long import LONG, Side, encode_long, splits_at_spaces
from bertcli.tokens.opening import open_backend
from bertcli.tokens.settings import TokenizerSettings, read_settings
from bertcli.untrusted import shown, shown_object


class Tokenizer:
    """A checkpoint's tokenizer: texts to Tokens, and its vocabulary. Safe to share between threads."""

    def __init__(self, backend: Backend, settings: TokenizerSettings, config: BertConfig | None = None) -> None:
        self._backend = backend
        self._settings = settings
        self._segments = config.type_vocab_size if config else None
        self._check_vocabulary(config)
        self._splits_at_spaces = splits_at_spaces(backend)
        self._frames = (self._frame(paired=False), self._frame(paired=True))

    @classmethod
    def open(cls, folder: Path, config: BertConfig | None = None) -> Tokenizer:
        """The tokenizer in a checkpoint's folder: tokenizer.json, else vocab.txt with tokenizer_config.json.

        Errors: BertcliError for a missing or unreadable file, and (with `config`) for a vocabulary with ids past the
        last row of the embedding matrix.
        """
        settings = read_settings(folder)
        return cls(open_backend(folder, settings), settings, config)

    # ------------------------------------------------------------------------------------------------- vocabulary

    @property
    def vocab_size(self) -> int:
        return self._backend.get_vocab_size(with_added_tokens=True)

    @property
    def model_max_length(self) -> int | None:
        """The tokenizer's own limit in tokens, if it has one."""
        return self._settings.max_length

    @property
    def mask_token(self) -> str:
        return self._settings.mask.content

    @property
    def mask_id(self) -> int:
        """Id of the mask token; BertcliError if the vocabulary has none."""
        found = self.id_of(self.mask_token)
        if found is None:
            raise BertcliError(f"The vocabulary has no mask token {self.mask_token}, so nothing can be masked.")
        return found

    @property
    def cls_id(self) -> int | None:
        return self.id_of(self._settings.cls.content)

    @property
    def sep_id(self) -> int | None:
        return self.id_of(self._settings.sep.content)

    @property
    def pad_id(self) -> int | None:
        return self.id_of(self._settings.pad.content)

    @property
    def unk_id(self) -> int | None:
        return self.id_of(self._settings.unk.content)

    @property
    def ids(self) -> set[int]:
        """Ids that stand for a piece; they may have gaps."""
        return set(self._backend.get_vocab(with_added_tokens=True).values())

    def id_of(self, piece: str) -> int | None:
        """Id of a piece as it stands in the vocabulary, or None."""
        return self._backend.token_to_id(piece)

    def piece(self, id: int) -> str:
        """The piece with this id; an embedding row without a piece is named after its number."""
        return self._backend.id_to_token(id) or f"[row {id}]"

    def pieces_of(self, word: str) -> tuple[int, ...]:
        """Ids of a single word: its own if it is a piece of the vocabulary, else those of the pieces it splits into."""
        _refuse_bad_text([word])
        found = self.id_of(word)
        if found is not None:
            return (found,)
        return tuple(self._backend_batch([word])[0].ids)

    def joined(self, pieces: Sequence[str]) -> str:
        """The word that pieces spell: continuation marks (`##`) are removed, except a leading one."""
        prefix = getattr(self._backend.model, "continuing_subword_prefix", "##") or "##"
        return "".join([*pieces[:1], *(piece.removeprefix(prefix) for piece in pieces[1:])])

    # --------------------------------------------------------------------------------------------------- encoding

    def special_count(self, paired: bool) -> int:
        """How many special tokens are put around a text, or around a pair."""
        return sum(slot.side is None for slot in self._frames[paired])

    def check_length(self, max_length: int, paired: bool) -> None:
        """Refuse a limit that is too small even for the special tokens."""
        least = max(3 if paired else 2, self.special_count(paired))
        if max_length < least:
            what = "a text with a pair" if paired else "a text"
            raise BertcliError(f"max_length (--max-length) {max_length} is too small: {what} needs {least} tokens.")

    def encode(
        self, texts: Sequence[str], pairs: Sequence[str | None] | None = None, max_length: int | None = None
    ) -> list[Tokens]:
        """Tokens of every text (with its pair, if that is not None), cut to `max_length`; None cuts nothing.

        In a pair the longer side is cut first. Special tokens written out in a text are recognised.
        """
        if max_length is not None:
            self.check_length(max_length, paired=pairs is not None and any(pair is not None for pair in pairs))
        partners = [None] * len(texts) if pairs is None else pairs
        sides = self._backend_batch([*texts, *(pair for pair in partners if pair is not None)])
        second = iter(sides[len(texts) :])
        return [
            self._tokens((side,) if pair is None else (side, next(second)), Source(text, pair, max_length))
            for side, text, pair in zip(sides[: len(texts)], texts, partners, strict=True)
        ]

    def framing(self, source: Source) -> Framing:
        """Where the tokens of a text lie in it."""
        sides = self._backend_batch([source.text] if source.pair is None else [source.text, source.pair])
        return self._framing(tuple(sides), source.max_length)

    def _framing(self, sides: tuple[Side, ...], max_length: int | None) -> Framing:
        frame = self._frames[len(sides) == 2]
        lengths = [len(side) for side in sides]
        kept_lengths = (
            lengths if max_length is None else fitting(lengths, max_length - self.special_count(len(sides) == 2))
        )
        kept = tuple(
            slice(length - keep, length) if self._settings.cut_left else slice(keep)
            for length, keep in zip(lengths, kept_lengths, strict=True)
        )
        return Framing(frame, sides, kept)

    def _tokens(self, sides: tuple[Side, ...], source: Source) -> Tokens:
        framing = self._framing(sides, source.max_length)
        frame, _, kept = framing
        ids: list[int] = []
        segments: list[int] = []
        for slot in frame:
            new = [slot.id] if slot.side is None else sides[slot.side].ids[kept[slot.side]]
            ids += new
            segments += [slot.segment] * len(new)
        lost = sum(map(len, sides)) + sum(slot.side is None for slot in frame) - len(ids)
        mask = self.id_of(self._settings.mask.content) if lost else None
        lost_masks = 0 if mask is None else sum(side.ids.count(mask) for side in sides) - ids.count(mask)
        if self._segments is not None and max(segments, default=0) >= self._segments:
            raise BertcliError(f"This model has {self._segments} segment(s), so it cannot read a text with a pair.")
        return Tokens(ids, segments, lost, lost_masks, source, self, framing)

    def _backend_batch(self, texts: list[str]) -> list[Side]:
        try:
            with library_errors("The tokenizer failed"):  # e.g. a WordPiece model without [UNK]
                if self._splits_at_spaces and max(map(len, texts), default=0) > LONG:
                    return [encode_long(self._backend, text) for text in texts]
                return list(self._backend.encode_batch(texts, add_special_tokens=False))
        except TypeError:
            _refuse_bad_text(texts)
            raise

    # ------------------------------------------------------------------------------------------------------ set-up

    def _check_vocabulary(self, config: BertConfig | None) -> None:
        last = max(self.ids, default=-1)
        if last < 0:
            raise BertcliError("The tokenizer's vocabulary is empty: fetch the model again.")
        if config and last >= config.vocab_size:
            raise BertcliError(
                f"The tokenizer's vocabulary goes up to id {last}, but the model has embeddings for ids up to "
                f"{config.vocab_size - 1} only: tokenizer and weights do not belong together."
            )

    def _frame(self, paired: bool) -> tuple[Slot, ...]:
        """Where the tokenizer's own post-processor puts special tokens, found with texts of one token each."""
        words = [*(token.content for token in self._settings.special), "a"]
        for word, side in zip(words, self._backend_batch(words), strict=True):
            if len(side) == 1:
                with library_errors("The tokenizer cannot put its special tokens around a text"):
                    framed = self._backend.encode(word, word if paired else None)
                if sorted(side for side in framed.sequence_ids if side is not None) != ([0, 1] if paired else [0]):
                    raise BertcliError("The tokenizer's template omits a text, or has it twice: fetch the model again.")
                return tuple(map(Slot, framed.sequence_ids, framed.ids, framed.type_ids))
        raise BertcliError("The tokenizer finds no token even in its own special tokens: fetch the model again.")


def _refuse_bad_text(texts: Sequence[object]) -> None:
    for text in texts:
        if not isinstance(text, str):
            raise BertcliError(f"A text must be a string, but {shown_object(text)} is not.")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise BertcliError(f"The text {shown(text)} has half a surrogate pair, which is not a character.") from None

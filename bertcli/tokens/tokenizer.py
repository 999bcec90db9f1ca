"""`Tokenizer`: a checkpoint's vocabulary, and the encoding of texts to `Tokens` (template.py).

load_tokenizer.py opens the files. Not here: how many tokens a text may have (tasks/running/task.py), and the windows of
a long text (windows.py).
"""

import json
import logging
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tokenizers import AddedToken
from tokenizers import Tokenizer as Backend

from bertcli.errors import BertcliError, number_of, quoted, quoted_object
from bertcli.extensions.of_kinds import kind_modules
from bertcli.folder.files import Folder
from bertcli.folder.layout import Layout
from bertcli.models.config import Config
from bertcli.tokens.library import AT_OPENING, library_errors, try_texts, without_lines_of_panics
from bertcli.tokens.load_tokenizer import open_backend, special_tokens, unknown_id
from bertcli.tokens.settings import Settings, read_settings
from bertcli.tokens.template import (
    Cut,
    EncodeInput,
    Listed,
    Side,
    Template,
    TemplateToken,
    Tokens,
    kept_parts,
    without_id,
    without_own_spaces,
)

if TYPE_CHECKING:
    from bertcli.tokens.chat import ChatTemplate

SPACES = ("Ġ", "▁")  # the space in pieces of byte-level BPE, and of sentencepiece
ALONE, PAIRED = False, True  # places of the templates of single texts and of pairs
MASKS = ("[MASK]", "<mask>")  # of nearly all models: BERT's and RoBERTa's
LONGEST = 2_000_000  # characters of a text: the library takes 200 to 450 bytes for each

logger = logging.getLogger("bertcli")


class Spelling(NamedTuple):
    """The spelling of pieces: alone or after a space, and directly after a letter, where it may begin with a space."""

    alone: str
    following: str


class Tokenizer:
    """A checkpoint's tokenizer: texts to Tokens, and its vocabulary. Safe to share between threads."""

    def __init__(self, backend: Backend, settings: Settings, config: Config | None = None) -> None:
        self._backend = backend
        self._settings = settings
        self._special = special_tokens(backend, settings)
        takes_segments = config is None or config.segment_count > 1
        self._has_segments = settings.has_segments and takes_segments
        self._segments_disputed = settings.disputed and takes_segments
        self._rows = config.vocab_size if config else None
        self._dropped_id = unknown_id(backend) if settings.drops_unknown else None
        self._check_vocabulary()
        bare = (TemplateToken(0, 0, 0),), (TemplateToken(0, 0, 0), TemplateToken(1, 0, 0))
        self._templates = (
            (self._tokens_around(paired=False), self._tokens_around(paired=True)) if settings.adds_special else bare
        )
        self._segments = config.segment_count if config and self._has_segments else None
        self._check_segments(self._templates[ALONE])
        for token in chain(*self._templates):
            self._check_id(token.id, "around texts")

    @classmethod
    def open(cls, layout: Layout, config: Config | None = None) -> "Tokenizer":
        """Open the tokenizer in a checkpoint's folder; a static model's puts no special tokens around a text.

        Errors: BertcliError for a missing or unreadable file, and (with `config`) for a vocabulary larger than the
        embedding matrix.
        """
        folder, settings = layout.tokenizer, _settings_of(layout)
        with without_lines_of_panics():
            backend = open_backend(folder, settings)
            with library_errors(f"The tokenizer in {folder.path} fails at any text", AT_OPENING):
                try_texts(backend)
            return cls._made(backend, settings, layout.folder_type.tokenizer_json_alone, config)

    @classmethod
    def _made(cls, backend: Backend, settings: Settings, alone: bool, config: Config | None) -> "Tokenizer":
        """Make a tokenizer from a backend; move the backend's truncation and padding into the settings."""
        # They are often left from the training run. Only where tokenizer.json is `alone` is there no other limit.
        cut, filled = backend.truncation, backend.padding
        if cut is not None:
            max_length = cut["max_length"] if alone and settings.max_length is None else settings.max_length
            sides = (settings.cut_left, cut["direction"] == "left")
            settings = settings._replace(
                max_length=max_length, cut_left=next(side for side in sides if side is not None)
            )
        if filled is not None and settings.fill_left is None:
            settings = settings._replace(fill_left=filled["direction"] == "left")
        backend.no_truncation()  # `kept_parts` cuts texts after they are tokenized, and counts what is lost
        backend.no_padding()
        return cls(backend, settings, config)

    def cutting(self, side: Literal["left", "right"]) -> "Tokenizer":
        """Return a copy that truncates texts at this side, whatever the files specify."""
        other = copy(self)
        other._settings = self._settings._replace(cut_left=side == "left")
        return other

    def save(self, folder: Path) -> None:
        """Complete a folder for other libraries: tokenizer.json, and tokenizer_config.json, which names special tokens.

        Keys that these files have already are not changed. transformers.js reads only these files, and has no defaults.
        """
        if not (folder / "tokenizer.json").exists():
            self._backend.save(str(folder / "tokenizer.json"))
        stated = Folder(folder).optional("tokenizer_config.json")
        generic = "BertTokenizer" if self._settings.class_name in ("", "bert") else "PreTrainedTokenizerFast"
        settings: dict[str, Any] = {
            "tokenizer_class": self._settings.tokenizer_class or generic,
            "model_input_names": ["input_ids", "attention_mask"] + (["token_type_ids"] if self._has_segments else []),
        }
        for role, token in self._special.items():
            if self.id_of(token) is not None:
                settings[f"{role}_token"] = token
        if settings.keys() - stated.keys():
            stated.file.write_text(
                json.dumps({**settings, **stated}, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
            )

    # ------------------------------------------------------------------------------------------------- vocabulary

    @property
    def vocab_size(self) -> int:
        return self._backend.get_vocab_size(with_added_tokens=True)

    @property
    def model_max_length(self) -> int | None:
        """The tokenizer's own limit in tokens, if it has one."""
        return self._settings.max_length

    @property
    def fills_left(self) -> bool:
        """True if padding comes before a text, not after it."""
        return bool(self._settings.fill_left)

    @property
    def chat(self) -> "ChatTemplate | None":
        """The chat template of pairs; None if special tokens are put around them."""
        return self._settings.chat

    @property
    def mask_token(self) -> str:
        return self._special["mask"]

    @property
    def mask_id(self) -> int:
        """Id of the mask token; BertcliError if the vocabulary has none."""
        id = self.id_of(self.mask_token)
        if id is None:
            raise BertcliError(
                f"The vocabulary has no mask token {quoted(self.mask_token)}, so nothing can be masked: use another "
                "model."
            )
        return id

    def other_mask(self, text: str) -> str | None:
        """A mask token in a text that is another model's; None without one."""
        return next((mask for mask in MASKS if mask != self.mask_token and mask in text), None)

    def special_id(self, role: str) -> int | None:
        """Id of the token in the role "mask", "cls", "sep", "pad" or "unk"; None if the vocabulary has none."""
        return self.id_of(self._special[role])

    @property
    def ids(self) -> set[int]:
        """Ids that stand for a piece; they may have gaps."""
        return set(self._backend.get_vocab(with_added_tokens=True).values())

    def id_of(self, piece: str) -> int | None:
        """Id of a piece, spelled as in the vocabulary; None if there is no such piece."""
        return self._backend.token_to_id(piece)

    def piece(self, id: int) -> str:
        """Return the piece with this id; for an embedding row without a piece, "[row ID]"."""
        return self._backend.id_to_token(id) or f"[row {id}]"

    def pieces_of(self, word: str) -> tuple[int, ...]:
        """Ids of a single word: its own if it is a piece of the vocabulary, else those of the pieces it splits into.

        If pieces include the space before them, the word is taken as after a space, unless it begins with the mark.
        """
        _refuse_bad_text([word])
        id = self.id_of(word) if self.space is None or word.startswith(self.space) else None
        if id is not None:
            ids = [id]
        else:
            ids = self._backend_batch([word if self.space is None else f" {word.lstrip()}"])[0].ids
        self._check_id(max(ids, default=0), "into a word")
        return tuple(ids)

    @property
    def prefix(self) -> str | None:
        """The mark of a piece that continues a word, as WordPiece's `##`; None for tokenizers without one."""
        return getattr(self._backend.model, "continuing_subword_prefix", None) or None

    @cached_property
    def space(self) -> str | None:
        """The mark of a piece that includes the space before it: Ġ (byte-level) or ▁; None where pieces have none."""
        pieces = "".join(self._backend.encode("a a", add_special_tokens=False).tokens)
        return next((mark for mark in SPACES if mark in pieces), None)

    @cached_property
    def _trims_own_spaces(self) -> bool:
        """True if the backend trims spaces from offsets that it has put before words itself: they begin too late."""
        # A letter at the beginning, after a space, after another sign and after a digit.
        text = "a a (a)1a"
        encoding = self._backend.encode(text, add_special_tokens=False)
        for token, (start, end) in zip(encoding.tokens, encoding.offsets, strict=True):
            after_letter = start > 0 and not text[start - 1].isspace()
            too_short = end - start < max(len(token.lstrip("Ġ")), 1)
            if token.startswith("Ġ") and after_letter and too_short:
                return True
        return False

    def spelling(self, pieces: Sequence[str]) -> Spelling:
        """Spell pieces without the marks of word pieces; one that stands alone keeps its mark."""
        if self.space is not None:
            return Spelling(self.spelled(pieces), self.spelled(["a", *pieces])[1:])
        continued = [piece.removeprefix(self.prefix or "##") for piece in pieces]
        return Spelling("".join([*pieces[:1], *continued[1:]]), "".join(continued))

    def spelled(self, pieces: Sequence[str]) -> str:
        """Decode pieces to a text with the tokenizer's decoder."""
        decoder = self._backend.decoder
        with library_errors("The tokenizer's decoder failed"):
            return " ".join(pieces) if decoder is None else str(decoder.decode(list(pieces)))

    # --------------------------------------------------------------------------------------------------- encoding

    def special_count(self, paired: bool) -> int:
        """Count the special tokens around a text, or around a pair."""
        return sum(token.side is None for token in self._templates[paired])

    def prompt_length(self, prompt: str) -> int:
        """Count the tokens of a prompt at the beginning of a text, with [CLS] and without [SEP].

        The prompt is tokenized alone, as in sentence-transformers: a piece that joins its end with the begin of the
        text is not considered.
        """
        (tokens,) = self.encode([prompt])
        return len(tokens.ids) - (tokens.sides[-1] is None)

    def check_length(self, max_length: int, paired: bool) -> None:
        """Refuse a limit that is too small even for the special tokens."""
        least = max(3 if paired else 2, self.special_count(paired))
        if max_length < least:
            what = "a text with a pair" if paired else "a text"
            raise BertcliError(
                f"max_length (--max-length) {max_length} is too small: {what} needs {number_of(least, 'token')}."
            )

    def encode(
        self,
        texts: Sequence[str],
        pairs: Sequence[str | None] | None = None,
        max_length: int | None = None,
        cut: Cut = "longest",
    ) -> list[Tokens]:
        """Tokenize every text (with its pair, if that is not None), truncated to `max_length`; None truncates nothing.

        In a pair the longer side is cut first, or the side that `cut` names. Special tokens written in a text are
        recognized. Errors: BertcliError for a value that is no text, and if the side that is not cut leaves no room.
        """
        partners = [None] * len(texts) if pairs is None else pairs
        seconds = [pair for pair in partners if pair is not None]
        if max_length is not None:
            self.check_length(max_length, paired=bool(seconds))
        if seconds:
            self._check_segments(self._templates[PAIRED])
        if seconds and self._segments_disputed:
            self._segments_disputed = False  # logged once
            segment, version, other_version = (1, 4, 5) if self._has_segments else (0, 5, 4)
            logger.info(
                "The second text of a pair has segment %d, as in transformers %d, which wrote this tokenizer; "
                "version %d does otherwise.", segment, version, other_version,
            )  # fmt: skip
        originals = [EncodeInput(*pair, max_length, cut) for pair in zip(texts, partners, strict=True)]
        sources = [*map(self._sources, originals)]
        sides = iter(self._backend_batch([*chain(*sources)]))
        return [
            self._tokens(tuple(islice(sides, len(of_text))), original)
            for of_text, original in zip(sources, originals, strict=True)
        ]

    def of_ids(self, ids: Sequence[int], max_length: int | None = None) -> Tokens:
        """Make tokens from ids, truncated to `max_length`; special tokens are put around them if they are absent.

        Errors: BertcliError for an id outside the vocabulary.
        """
        size = self.vocab_size if self._rows is None else min(self.vocab_size, self._rows)
        if wrong := [id for id in ids if not 0 <= id < size]:
            raise BertcliError(f"The id {quoted(wrong[0])} is not in the vocabulary, whose ids are 0 to {size - 1}.")
        template = self._templates[ALONE]
        at = next(number for number, token in enumerate(template) if token.side is not None)
        before, after = ([token.id for token in side] for side in (template[:at], template[at + 1 :]))
        inner = [id for id in ids if id != self._dropped_id]
        if before + after and inner[:at] == before and inner[len(inner) - len(after) :] == after:
            inner = inner[at : len(inner) - len(after)]
        side = Listed(inner, [(0, 0)] * len(inner), [None] * len(inner))
        return self._tokens((side,), EncodeInput("", None, max_length))

    def encode_words(self, texts: Sequence[Sequence[str]]) -> list[Tokens]:
        """Tokenize texts that are split into words; nothing is truncated, and no piece reaches across two words.

        `Tokens.words` has the number of each token's word; a word may have no token. Offsets count from its begin.
        """
        distinct = list(dict.fromkeys(map(tuple, texts)))
        for words in distinct:
            _refuse_bad_text(words)
        with library_errors("The tokenizer failed"):
            encodings = self._backend.encode_batch(
                list(map(list, distinct)), is_pretokenized=True, add_special_tokens=False
            )
        side_of = dict(zip(distinct, encodings, strict=True))
        return [self._tokens((side_of[tuple(words)],), EncodeInput(" ".join(words), None, None)) for words in texts]

    def around(self, ids: Sequence[int]) -> tuple[list[int], list[int], int]:
        """Put the special tokens around ids of a text: all ids, their segments, and the number of the text's first."""
        template = self._templates[ALONE]
        first = next(number for number, token in enumerate(template) if token.side is not None)
        side = Listed([*ids], [(0, 0)] * len(ids), [None] * len(ids))
        return *Template(template, (side,), (slice(None),)).numbers(), first

    def apply(self, original: EncodeInput) -> Template:
        """Fill the template with a text and, if it has one, its pair."""
        return self._applied(tuple(self._backend_batch(self._sources(original))), original)

    def _sources(self, original: EncodeInput) -> list[str]:
        """List the texts to tokenize: the text, the text and its pair, or the pair in a chat template."""
        if original.pair is None:
            return [original.text]
        return [original.text, original.pair] if self.chat is None else [self.chat.of(original.text, original.pair)[0]]

    @cached_property
    def _ending(self) -> list[int]:
        """The tokens that every pair in the chat template ends with; none without a chat template."""
        return [] if self.chat is None else self.chat.ending(self._backend_batch)

    def _applied(self, sides: tuple[Side, ...], original: EncodeInput) -> Template:
        """Fill the template with texts that are tokenized, and cut what exceeds the limit."""
        if original.pair is not None and self.chat is not None:
            return self.chat.apply(sides[0], original, self._ending)
        paired = len(sides) == 2
        room = None if original.max_length is None else original.max_length - self.special_count(paired)
        kept = kept_parts([*map(len, sides)], room, original, bool(self._settings.cut_left))
        return Template(self._templates[paired], sides, kept)

    def _tokens(self, sides: tuple[Side, ...], original: EncodeInput) -> Tokens:
        """Make the Tokens of texts that are tokenized; count what is cut."""
        template = self._applied(sides, original)
        ids, segments = template.numbers()
        self._check_id(max(ids, default=0), "into a text")
        lost = sum(map(len, template.sides)) + template.special_count - len(ids)
        mask = self.id_of(self.mask_token) if lost else None
        lost_masks = 0 if mask is None else sum(side.ids.count(mask) for side in template.sides) - ids.count(mask)
        return Tokens(ids, segments, lost, lost_masks, original, self, template)

    def _backend_batch(self, texts: list[str]) -> list[Side]:
        """Tokenize texts without special tokens."""
        try:
            for text in texts:
                refuse_long(text)
            distinct = list(dict.fromkeys(texts))  # the query of many pairs is tokenized once
            with library_errors("The tokenizer failed"):  # e.g. a WordPiece model without [UNK]
                encodings = self._backend.encode_batch(distinct, add_special_tokens=False)
            sides: Sequence[Side] = encodings
            if self._trims_own_spaces:
                sides = [without_own_spaces(text, side) for text, side in zip(distinct, encodings, strict=True)]
            if self._dropped_id is not None:
                sides = [without_id(side, self._dropped_id) for side in sides]
            side_of = dict(zip(distinct, sides, strict=True))
            return [side_of[text] for text in texts]
        except TypeError:
            _refuse_bad_text(texts)
            raise

    # ------------------------------------------------------------------------------------------------------ set-up

    def _check_vocabulary(self) -> None:
        """Refuse a vocabulary larger than the embedding matrix. `_check_id` finds single ids: listing all is slow."""
        if not self.vocab_size:
            raise BertcliError("The tokenizer's vocabulary is empty: use another model.")
        named = {token.content for token in self._settings.special}
        recognized = self._backend.get_added_tokens_decoder().items()
        spare = sum(id >= (self._rows or 0) and token.content in named for id, token in recognized)
        if self._rows is not None and self.vocab_size - spare > self._rows:
            raise BertcliError(
                f"The tokenizer's vocabulary has {self.vocab_size} pieces, but the model has {self._rows} embeddings: "
                "they are not of one model, so take both from the same one."
            )

    def _check_id(self, id: int, where: str) -> None:
        """Refuse an id beyond the embedding matrix; `where` says where the tokenizer puts it."""
        if self._rows is not None and id >= self._rows:
            raise BertcliError(
                f"The tokenizer puts the id {id} {where}, but the model's embeddings end at id {self._rows - 1}: they "
                "are not of one model, so take both from the same one."
            )

    def _check_segments(self, template: tuple[TemplateToken, ...]) -> None:
        """Refuse a template with a segment that the model has no embedding for."""
        last = max(token.segment for token in template)
        if self._segments is not None and last >= self._segments:
            raise BertcliError(
                f"The tokenizer gives a text segment {last}, but the model's segments end at {self._segments - 1}: "
                "they are not of one model, so take both from the same one."
            )

    def _tokens_around(self, paired: bool) -> tuple[TemplateToken, ...]:
        """Find the template: post-process texts of one token each, and see where special tokens are put."""
        words = [*self._special.values(), "a"]
        for word, side in zip(words, self._backend_batch(words), strict=True):
            if len(side) == 1:
                with library_errors("The tokenizer cannot put its special tokens around a text", AT_OPENING):
                    result = self._backend.encode(word, word if paired else None)
                sides = sorted(side for side in result.sequence_ids if side is not None)
                if sides != [0, 1][: 1 + paired]:
                    raise BertcliError("The tokenizer's template omits a text, or has it twice: use another model.")
                segments = result.type_ids if self._has_segments else [0] * len(result)
                return tuple(map(TemplateToken, result.sequence_ids, result.ids, segments))
        raise BertcliError("The tokenizer finds no token even in its own special tokens: use another model.")


def _settings_of(layout: Layout) -> Settings:
    """Read the tokenizer's settings, and what other files of the folder say about it."""
    of_transformer = layout.transformer_settings
    if layout.folder_type.tokenizer_json_alone:
        settings = Settings(
            adds_special=False,
            max_length=layout.folder_type.longest_text(layout.folder),
            drops_unknown=layout.folder_type.drops_unknown(layout.folder),
        )
    else:
        settings = read_settings(layout.tokenizer, of_transformer.tokenizer)
    words: list[str] = []
    for module in kind_modules("markers"):
        for marker in filter(None, module.read_markers(layout)):
            # A marker such as "[Q] " may be a token with its space or without it.
            words += [marker, *marker.split()[:1]]
    settings = settings._replace(markers=tuple(words), lowercase_first=of_transformer.lower_case)
    own = layout.folder_type.own_tokens(layout.type_settings)
    added = [AddedToken(token, normalized=False, special=True) for token in own]
    settings = settings._replace(special=(*settings.special, *added))
    if of_transformer.chat:
        from bertcli.tokens.chat import ChatTemplate  # few checkpoints have one for pairs

        settings = settings._replace(chat=ChatTemplate.read(layout.tokenizer, layout.query_prompt))
    return settings


def refuse_long(text: str, where: str = "") -> None:
    """Raise BertcliError for a text of more than LONGEST characters; the message begins with `where`."""
    if len(text) > LONGEST:
        raise BertcliError(f"{where or quoted(text)} has {len(text):,} characters, more than {LONGEST:,}: split it.")


def _refuse_bad_text(texts: Sequence[object]) -> None:
    """Refuse a value that is no text, or that has half a surrogate pair."""
    for text in texts:
        if not isinstance(text, str):
            raise BertcliError(f"A text must be a string, but {quoted_object(text)} is not.")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise BertcliError(
                f"The text {quoted(text)} has half a surrogate pair, which is not a character: remove it."
            ) from None

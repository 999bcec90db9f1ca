"""`Tokens` of a text or pair: its own tokens, the special tokens that a template puts around them, and truncation."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol, Self

from tokenizers import Encoding

from bertcli.errors import BertcliError

# The side that is truncated: the longer one first, only the text, only its pair.
Cut = Literal["longest", "text", "pair"]


class TemplateToken(NamedTuple):
    """A token of a template: a special token (side None), or a placeholder for the text (0) or its pair (1)."""

    side: int | None
    id: int
    segment: int


class EncodeInput(NamedTuple):
    """The input of an encoding: text, pair, the limit of tokens, and the side that is cut."""

    text: str
    pair: str | None
    max_length: int | None
    cut: Cut = "longest"


class Listed(NamedTuple):
    """The tokens of a text as lists; an Encoding makes new lists on every access."""

    ids: list[int]
    offsets: list[tuple[int, int]]
    word_ids: list[int | None]

    @classmethod
    def of(cls, tokens: "Side") -> Self:
        return cls(tokens.ids, tokens.offsets, tokens.word_ids)

    def __len__(self) -> int:
        return len(self.ids)


def without_own_spaces(text: str, side: Encoding) -> Listed:
    """A text's tokens with offsets that begin where their characters do.

    A byte-level tokenizer trims the space before a word from its offsets, and counts the space marks (Ġ) of the token
    for this. Where it has put a space before the word itself (`add_prefix_space`, after another pre-tokenizer also
    within a text), it takes the word's first character for that space.
    """
    offsets = []
    for token, (start, end) in zip(side.tokens, side.offsets, strict=True):
        if token.startswith("Ġ") and start and not text[start - 1].isspace():
            # A token that is nothing but this space stands for no character.
            is_space = not token.strip("Ġ")
            start, end = (start - 1, start - 1) if is_space else (start - 1, end)
        offsets.append((start, end))
    return Listed(side.ids, offsets, side.word_ids)


def without_id(side: Encoding | Listed, dropped: int) -> Listed:
    """A text's tokens but those of an id."""
    ids = side.ids
    kept = [place for place, id in enumerate(ids) if id != dropped]
    offsets, words = side.offsets, side.word_ids
    return Listed([ids[i] for i in kept], [offsets[i] for i in kept], [words[i] for i in kept])


Side = Encoding | Listed  # the tokens of one text, without special tokens


class Template(NamedTuple):
    """A template applied to texts: its tokens, the library's result for each text, and the slice of it that is kept."""

    tokens: tuple[TemplateToken, ...]
    sides: tuple[Side, ...]
    kept: tuple[slice, ...]

    @property
    def special_count(self) -> int:
        return sum(token.side is None for token in self.tokens)

    def parts(self) -> Iterator[tuple[TemplateToken, Side | None, slice]]:
        """Yield each token of the template; for a text also the library's result, and the slice of it that is kept."""
        for token in self.tokens:
            if token.side is None:
                yield token, None, slice(0)
            else:
                yield token, self.sides[token.side], self.kept[token.side]

    def numbers(self) -> tuple[list[int], list[int]]:
        """Return ids and segments of all tokens."""
        ids: list[int] = []
        segments: list[int] = []
        for token, side, kept in self.parts():
            new = [token.id] if side is None else side.ids[kept]
            ids += new
            segments += [token.segment] * len(new)
        return ids, segments


class Maker(Protocol):
    """The tokenizer that made tokens; after unpickling it makes their template again."""

    def apply(self, original: EncodeInput) -> Template:
        """Fill the template with a text and, if it has one, its pair."""

    def piece(self, id: int) -> str:
        """The piece with this id."""


@dataclass(slots=True, eq=False, repr=False)  # not frozen, since there are many: made in a third of the time
class Tokens:
    """A tokenized text or pair after truncation; `lost` counts the tokens cut, `lost_masks` the masks among them.

    Pickles as ids, segments and the text; after that `with_tokenizer` restores all properties, except for windows.
    """

    ids: list[int]
    segments: list[int]
    lost: int
    lost_masks: int
    _original: EncodeInput | None  # None for a window
    maker: Maker | None = None
    _template: Template | None = None

    def with_tokenizer(self, tokenizer: Maker) -> "Tokens":
        """Return a copy that is linked to a tokenizer, which must be the one that made these tokens."""
        return replace(self, maker=tokenizer)

    def without_lost(self) -> "Tokens":
        """Return tokens that hold nothing of what was cut: the library's result for a long text takes much memory."""
        if self._template is None:
            return self
        kept = [
            Listed(side.ids[part], side.offsets[part], side.word_ids[part])
            for side, part in zip(self._template.sides, self._template.kept, strict=True)
        ]
        template = Template(self._template.tokens, tuple(kept), tuple(slice(len(side)) for side in kept))
        return replace(self, _template=template)

    def __reduce__(self) -> tuple[Any, ...]:
        return Tokens, (self.ids, self.segments, self.lost, self.lost_masks, self._original)

    @property
    def truncated(self) -> bool:
        return self.lost > 0

    @property
    def first(self) -> int:
        """The number of the text's tokens before this window."""
        return int(self.template().kept[-1].start)

    @property
    def pieces(self) -> list[str]:
        """The word pieces, special tokens included."""
        assert self.maker is not None
        return [self.maker.piece(id) for id in self.ids]

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """Start and end of each token in its own text, in characters, end exclusive; (0, 0) for special tokens."""
        return [span or (0, 0) for span in self._of_texts("offsets")]

    @property
    def words(self) -> list[int | None]:
        """Number of each token's word in its own text, as the tokenizer splits it; None for special tokens.

        Only the special tokens put around a text are meant: one that is written out in it is a word.
        """
        return self._of_texts("word_ids")

    @property
    def sides(self) -> list[int | None]:
        """0 for tokens of the text, 1 for those of its pair, None for the special tokens put around them."""
        result: list[int | None] = []
        for token, side, kept in self.template().parts():
            result += [token.side] * (1 if side is None else len(side.ids[kept]))
        return result

    def _of_texts(self, attribute: str) -> list[Any]:
        """Collect an attribute of the library's result for each token; None for special tokens of the template."""
        result: list[Any] = []
        for _, side, kept in self.template().parts():
            result += [None] if side is None else getattr(side, attribute)[kept]
        return result

    def template(self) -> Template:
        """Return the applied template; after unpickling the tokenizer makes it again."""
        if self._template is not None:
            return self._template
        assert self.maker is not None
        assert self._original is not None
        return self.maker.apply(self._original)


def kept_parts(lengths: list[int], room: int | None, original: EncodeInput, from_left: bool) -> tuple[slice, ...]:
    """Choose the slice of each text's tokens that is kept, so that at most `room` tokens result; None keeps all.

    lengths: tokens of a text, or of both texts of a pair. from_left: cut tokens at the beginning. By default the longer
    side of a pair is cut first; the shorter one stays whole if it takes at most half: "longest first" of the
    tokenizers library. Errors: BertcliError if only one side may be cut, and the other leaves no room for it.
    """
    counts = list(lengths)
    if room is not None and sum(lengths) > room:
        if len(lengths) == 1:
            counts = [room]
        elif original.cut == "longest":
            shorter = min(*lengths, room // 2)
            counts = [shorter, room - shorter] if lengths[0] <= lengths[1] else [room - shorter, shorter]
        else:
            side = 0 if original.cut == "text" else 1
            counts[side] = room - lengths[1 - side]
            if counts[side] < 1:
                cut, whole = ("first", "second") if side == 0 else ("second", "first")
                raise BertcliError(
                    f"There is no room for the {cut} text: the {whole} one, which may not be cut, has "
                    f"{lengths[1 - side]:,} of {room:,} tokens. Shorten the {whole} text, or raise max_length "
                    "(--max-length)."
                )
    ends = lengths if from_left else counts
    return tuple(slice(end - count, end) for end, count in zip(ends, counts, strict=True))

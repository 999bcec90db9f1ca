"""Chat templates of rerankers: read the text before, between and after a query and a document.

Templates are Jinja programs; this is not a Jinja interpreter. It reads what rerankers with LogitScore use: text,
`{% set NAME = MESSAGE %}`, `{{ NAME }}` and `{{ MESSAGE }}`, where MESSAGE is the content of the first message of a
role, perhaps with a default in quotes. Any other template is refused. White space around tags is removed as Jinja does
with the settings of transformers (trim_blocks, lstrip_blocks).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple, Self

from bertcli.errors import BertcliError, quoted
from bertcli.folder.files import JSON_LIMIT, Folder, read_whole, unusable
from bertcli.tokens.template import EncodeInput, Listed, Side, Template, TemplateToken

FILE = "chat_template.jinja"
PAIR = ("query", "document")  # the roles of the texts of a pair; the model's prompt has the role "system"
TAG = re.compile(r"(\{%.*?%\}|\{\{.*?\}\})", re.DOTALL)
SET = re.compile(r"\{%-?\s*set\s+(?!messages\b)(\w+)\s*=(.*?)-?%\}", re.DOTALL)
SHOW = re.compile(r"\{\{-?(.*?)-?\}\}", re.DOTALL)
INDENT = re.compile(r"(?<=\n)[^\S\n]+\Z")  # the spaces before a tag that begins its line
MESSAGE = re.compile(
    r"""\s* messages \s*\|\s* selectattr\( \s*['"]role['"]\s*,\s*['"]eq['"]\s*,\s*['"](?P<role>\w+)['"]\s* \)
    \s*\|\s* map\( \s*attribute\s*=\s*['"]content['"]\s* \) \s*\|\s* first
    (?:\s*\|\s* default\( \s*(?P<default>'[^'\\]*'|"[^"\\]*")\s* \))? \s*""",
    re.VERBOSE,
)


class Part(NamedTuple):
    """A part of a template: a text, or the name of the role whose message is inserted."""

    text: str
    is_role: bool = False


class TextSpan(NamedTuple):
    """The range of characters of a text inside a longer text."""

    start: int
    end: int


class ChatTemplate(NamedTuple):
    """A template for a query and a document: `before`, one of them, `between`, the other, `after`."""

    before: str
    between: str
    after: str
    document_first: bool = False

    @classmethod
    def read(cls, folder: Folder, prompt: str) -> Self:
        """Read a folder's template; `prompt` is the system's message, "" for none.

        Errors: BertcliError if there is no template, or if it does more than insert the two texts.
        """
        source, file = chat_template_of(folder), folder.file(FILE if folder.has(FILE) else "tokenizer_config.json")
        if source is None:
            raise unusable(file, "has no chat_template, which this model needs for its pairs of texts")
        try:
            parts = [*_parts(source, prompt)]
        except ValueError as error:
            raise BertcliError(
                f"{file} has a chat template with {error}; of Jinja, bertcli reads only text and the messages of "
                "query, document and system: write it with these alone, or use another model."
            ) from None
        positions = [position for position, part in enumerate(parts) if part.is_role]
        roles = [parts[position].text for position in positions]
        if sorted(roles) != sorted(PAIR):
            inserted = ", ".join(roles) or "neither"
            raise unusable(
                file, f"has a chat template that inserts {inserted}, not the query once and the document once"
            )
        first, second = positions
        texts = (parts[:first], parts[first + 1 : second], parts[second + 1 :])
        before, between, after = ("".join(part.text for part in several) for several in texts)
        return cls(before, between, after, document_first=roles[0] == "document")

    def of(self, query: str, document: str) -> tuple[str, tuple[TextSpan, TextSpan]]:
        """Fill the template: return the whole text, and the ranges of the query and the document in it."""
        first, second = (document, query) if self.document_first else (query, document)
        whole = self.before + first + self.between + second + self.after
        start, end = len(self.before), len(whole) - len(self.after)
        of_first, of_second = TextSpan(start, start + len(first)), TextSpan(end - len(second), end)
        if self.document_first:
            return whole, (of_second, of_first)
        return whole, (of_first, of_second)

    def ending(self, tokenize: Callable[[list[str]], list[Side]]) -> list[int]:
        """Find the tokens that every pair ends with, as sentence-transformers does: the common end of two samples."""
        shorter, longer = tokenize([self.of(filler, filler)[0] for filler in ("0", "1 2 3 4")])
        from_the_end = zip(reversed(shorter.ids), reversed(longer.ids), strict=False)
        common = [id for id, _ in takewhile(lambda pair: pair[0] == pair[1], from_the_end)]
        return common[::-1]

    def apply(self, whole: Side, original: EncodeInput, ending: Sequence[int]) -> Template:
        """Make the template of a tokenized pair; `whole` are the tokens of the filled text, which end with `ending`."""
        return _template_around(whole, self.of(original.text, original.pair or "")[1], original.max_length, ending)


def chat_template_of(folder: Folder) -> str | None:
    """Read the chat template of a folder; if it has several, the one named "default"; None without one."""
    if folder.has(FILE):
        try:
            return read_whole(folder.reading(FILE), JSON_LIMIT).decode("utf-8")
        except UnicodeDecodeError as error:
            raise BertcliError(f"{folder.file(FILE)} is not UTF-8 ({error.reason}): save it as UTF-8.") from None
    stated = folder.optional("tokenizer_config.json").get("chat_template")
    if isinstance(stated, list):
        named = {entry.get("name"): entry.get("template") for entry in stated if isinstance(entry, dict)}
        stated = named.get("default")
    if not isinstance(stated, str | None):
        raise unusable(folder.file("tokenizer_config.json"), f"has the chat_template {quoted(stated)}")
    return stated


def _parts(source: str, prompt: str) -> Iterator[Part]:
    """Yield the parts of a template in order. Errors: ValueError with the first tag that is not supported."""
    source = re.sub("\r\n?", "\n", source).removesuffix("\n")
    named: dict[str, Part] = {}
    earlier = ""  # the tag before the text
    texts, tags = TAG.split(source)[::2], [*TAG.findall(source), ""]
    for text, tag in zip(texts, tags, strict=True):
        yield Part(_between(text, earlier, tag))
        earlier = tag
        assigned, showing = SET.fullmatch(tag), SHOW.fullmatch(tag)
        if assigned:
            named[assigned[1]] = _message(assigned[2], prompt)
        elif showing and showing[1].strip() in named:
            yield named[showing[1].strip()]
        elif showing:
            yield _message(showing[1], prompt)
        elif tag:
            raise ValueError(quoted(tag))


def _between(text: str, earlier: str, later: str) -> str:
    """Strip the white space that the tags around a text remove. Errors: ValueError for half a tag in the text."""
    for mark in ("{{", "{%", "{#"):
        if mark in text:
            raise ValueError(quoted(text[text.index(mark) :]))
    # Jinja's dash inside a tag, as in {%- … -%}, removes all white space on its side.
    earlier_strips, later_strips = earlier[-3:-2] == "-", later[2:3] == "-"
    begins_line = not earlier
    if earlier_strips:
        text = text.lstrip()
    elif earlier.endswith("%}") and text.startswith("\n"):
        text, begins_line = text[1:], True
    if later_strips:
        return text.rstrip()
    if later.startswith("{%"):
        return INDENT.sub("", f"\n{text}")[1:] if begins_line else INDENT.sub("", text)
    return text


def _message(expression: str, prompt: str) -> Part:
    """Parse an expression for the first message of a role. Errors: ValueError for any other expression."""
    message = MESSAGE.fullmatch(expression)
    if message and message["role"] in PAIR:
        return Part(message["role"], is_role=True)
    if message and message["role"] == "system":
        return Part(prompt or (message["default"] or "''")[1:-1])
    raise ValueError(quoted(expression.strip()))


def _template_around(whole: Side, spans: Sequence[TextSpan], room: int | None, ending: Sequence[int]) -> Template:
    """Make the template of a text and its pair at `spans` of a filled text; all other tokens count as special.

    If more than `room` tokens result, the later of the two is cut, followed by `ending`. Errors: BertcliError if there
    is no room for any of its tokens.
    """
    tokens = Listed.of(whole)
    positions = _positions(tokens, spans)
    stop = len(tokens)
    # With exactly `room` tokens this replaces the ending by itself, and nothing is lost.
    is_cut = room is not None and len(tokens) >= room
    if room is not None and is_cut:
        stop = room - len(ending)
        later = max(positions, key=lambda of_text: of_text.stop)
        if later.start >= stop:
            raise BertcliError(
                f"There is no room for the second text in {room} tokens: shorten the first, or raise max_length "
                "(--max-length)."
            )
    side_of = {position: side for side, of_text in enumerate(positions) for position in of_text}
    template = []
    for position, id in enumerate(tokens.ids[:stop]):
        side = side_of.get(position)
        # A template has one entry for a whole text: its first token stands for all.
        if side is None or position == positions[side].start:
            template.append(TemplateToken(side, id, 0))
    if is_cut:
        template += [TemplateToken(None, id, 0) for id in ending]
    sides = [_tokens_of(tokens, span, of_text) for span, of_text in zip(spans, positions, strict=True)]
    kept = [slice(max(0, min(of_text.stop, stop) - of_text.start)) for of_text in positions]
    return Template(tuple(template), tuple(sides), tuple(kept))


def _positions(tokens: Listed, spans: Sequence[TextSpan]) -> list[range]:
    """Find the positions of each text's tokens: a piece that reaches into a text belongs to it, or to the earlier."""
    positions = [range(0)] * len(spans)  # an empty text has no tokens
    free = 0
    for side in sorted(range(len(spans)), key=lambda side: spans[side]):
        start, end = spans[side]
        if start < end:
            first = max(free, sum(last <= start for _, last in tokens.offsets))
            free = max(first, sum(begin < end for begin, _ in tokens.offsets))
            positions[side] = range(first, free)
    return positions


def _tokens_of(tokens: Listed, span: TextSpan, positions: range) -> Listed:
    """Copy the tokens of the text at `span`; their offsets count from its beginning, and end where it does."""
    of_text = slice(positions.start, positions.stop)
    inside = [
        (max(start, span.start) - span.start, min(end, span.end) - span.start) for start, end in tokens.offsets[of_text]
    ]
    return Listed(tokens.ids[of_text], inside, tokens.word_ids[of_text])

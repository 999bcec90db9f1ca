"""Where a chat template puts a query and a document: what stands before, between and after them.

Templates are programs in Jinja, and there is no machine for these here. Read are text, `{% set NAME = VALUE %}` and
`{{ VALUE }}`, where a value is a text in quotes, a name, what the first message of a role says (FORMS), or several of
these joined. That is how rerankers write theirs; any other template is refused, never guessed at. White space around
tags is what Jinja leaves with the settings of transformers (trim_blocks, lstrip_blocks).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import takewhile
from typing import NamedTuple, Self

from bertcli.checkpoint.folder import Folder
from bertcli.checkpoint.untrusted import JSON_LIMIT, read_whole, unusable
from bertcli.errors import BertcliError, shown
from bertcli.tokens.framing import Framing, Listed, Original, Side, Slot

FILE = "chat_template.jinja"
FORMS = {  # how a template takes what a role says, where messages are texts ("flat"), and where they are lists
    "flat": (
        "messages | selectattr('role', 'eq', 'ROLE') | map(attribute='content') | first | default(TEXT)",
        "messages | selectattr('role', 'eq', 'ROLE') | map(attribute='content') | first",
        "(messages | selectattr('role', 'eq', 'ROLE') | first).content",
    ),
    "structured": ("(messages | selectattr('role', 'eq', 'ROLE') | first).content[0].text",),
}
PAIR = ("query", "document")  # the roles whose messages a pair becomes; a third one, "system", has the model's prompt
TEXT = r"""'(?:[^'\\]|\\[nt\\'"])*'|"(?:[^"\\]|\\[nt\\'"])*\""""
# Where a tag begins, with the spaces before it in its line; where it ends, with the white space that it takes away.
BEGIN = re.compile(r"(?:(?:\A|(?<=\n))[^\S\n]+(?=\{[%#][^+]))?\{([{%#])([-+]?)")
END = re.compile(r"(.*?)(?=[-+]?([}%#])\})(?:-..\s*|\+..|\}\}|..\n?)", re.DOTALL)
SET = re.compile(r"\s*set\s+(?!messages\b)(\w+)\s*=(.*)", re.DOTALL)
JOINED = re.compile(r"\s*([+~]|$)")
LONGEST = 100_000  # characters of what a template says
ESCAPES = {r"\n": "\n", r"\t": "\t"}  # any other stands for its second character


@cache
def _values(form: str) -> list[re.Pattern[str]]:
    """The regular expressions for all that a value may be, whatever its spaces and quotes."""
    spelled = {"'ROLE'": r"""["'](?P<role>\w+)["']""", "TEXT": f"(?P<default>{TEXT})"}
    found = []
    for jinja in FORMS[form]:
        tokens = re.findall(r"'\w+'|\w+|[^\w\s]", jinja)
        found.append(r"\s*".join(spelled.get(token, re.escape(token).replace("'", "[\"']")) for token in tokens))
    return [re.compile(rf"\s*(?:{value})") for value in (*found, f"(?P<text>{TEXT})", r"(?P<name>\w+)")]


class Part(NamedTuple):
    """Text that stands in a template, or the name of a role whose message stands there."""

    text: str
    is_role: bool = False


class Span(NamedTuple):
    """Where one text stands in another, in characters."""

    start: int
    end: int


class ChatTemplate(NamedTuple):
    """The text that a query and a document become: `before`, one of them, `between`, the other, `after`."""

    before: str
    between: str
    after: str
    document_first: bool = False

    @classmethod
    def read(cls, folder: Folder, form: str, prompt: str) -> Self:
        """A folder's template, with a prompt as the system's message, if there is one.

        form: of the messages, a key of FORMS. Errors: BertcliError where there is no template, or one that does more
        than to put the two texts into a third.
        """
        source, file = template_of(folder), folder.file(FILE if folder.has(FILE) else "tokenizer_config.json")
        if source is None:
            raise unusable(file, "has no chat_template, into which this model's pairs of texts are put")
        try:
            parts = _bounded(_parts(source, form, prompt))
        except ValueError as error:
            raise BertcliError(
                f"{file} has a chat template with {error}, and bertcli reads no more of Jinja than texts and the "
                "messages of query, document and system: write it with these alone, or use another model."
            ) from None
        places = [place for place, part in enumerate(parts) if part.is_role]
        roles = [parts[place].text for place in places]
        if sorted(roles) != sorted(PAIR):
            raise unusable(
                file, f"has a chat template that takes {', '.join(roles) or 'nothing'} of query and document"
            )
        first, second = places
        texts = (parts[:first], parts[first + 1 : second], parts[second + 1 :])
        before, between, after = ("".join(part.text for part in some) for some in texts)
        return cls(before, between, after, document_first=roles[0] == "document")

    def of(self, query: str, document: str) -> tuple[str, tuple[Span, Span]]:
        """The whole text, and where the query and the document stand in it."""
        first, second = (document, query) if self.document_first else (query, document)
        whole = self.before + first + self.between + second + self.after
        start, end = len(self.before), len(whole) - len(self.after)
        spans = Span(start, start + len(first)), Span(end - len(second), end)
        return whole, spans[::-1] if self.document_first else spans

    def ending(self, tokenize: Callable[[list[str]], list[Side]]) -> list[int]:
        """The tokens that every pair ends with, as sentence-transformers finds them: what two of them share."""
        one, other = tokenize([self.of(filler, filler)[0] for filler in ("0", "1 2 3 4")])
        pairs = zip(reversed(one.ids), reversed(other.ids), strict=False)
        return [id for id, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)][::-1]

    def framing(self, whole: Side, original: Original, ending: Sequence[int]) -> Framing:
        """Where query and document lie in the tokens of the whole text, of which the last are `ending`."""
        return _within(whole, self.of(original.text, original.pair or "")[1], original.max_length, ending)


def template_of(folder: Folder) -> str | None:
    """The chat template of a folder, of several the one called default; None without one."""
    if folder.has(FILE):
        try:
            return read_whole(folder.reading(FILE), JSON_LIMIT).decode("utf-8")
        except UnicodeDecodeError as error:
            raise BertcliError(f"{folder.file(FILE)} is not UTF-8 ({error.reason}): fetch the model again.") from None
    stated = folder.optional("tokenizer_config.json").get("chat_template")
    if isinstance(stated, list):
        named = {one.get("name"): one.get("template") for one in stated if isinstance(one, dict)}
        stated = named.get("default")
    if not isinstance(stated, str | None):
        raise unusable(folder.file("tokenizer_config.json"), f"has the chat_template {shown(stated)}")
    return stated


def _parts(source: str, form: str, prompt: str) -> Iterator[Part]:
    """A template's parts in their order; ValueError with what is more than is read."""
    source = re.sub("\r\n?", "\n", source).removesuffix("\n")
    names: dict[str, list[Part]] = {}
    place = 0
    while begin := BEGIN.search(source, place):
        text = source[place : begin.start()]
        yield Part(text.rstrip() if begin[2] == "-" else text)
        end = END.match(source, begin.end())
        if end is None or end[2] != begin[1].replace("{", "}"):
            raise ValueError(shown(begin[0].lstrip() + source[begin.end() : end and end.end()]))
        if begin[1] == "{":
            yield from _value(end[1], form, prompt, names)
        elif begin[1] == "%":
            assigned = SET.fullmatch(end[1])
            if assigned is None:
                raise ValueError(shown(f"{{%{end[1]}%}}"))
            names[assigned[1]] = _bounded(_value(assigned[2], form, prompt, names))
        place = end.end()
    yield Part(source[place:])


def _bounded(parts: Iterable[Part]) -> list[Part]:
    """These parts; ValueError where they say more than any template does."""
    found, length = [], 0
    for part in parts:
        found.append(part)
        length += 1 + len(part.text)
        if length > LONGEST:
            raise ValueError(f"more than {LONGEST:,} characters")
    return found


def _value(expression: str, form: str, prompt: str, names: Mapping[str, list[Part]]) -> Iterator[Part]:
    """What an expression gives; ValueError for one that is not read."""
    place, going_on = 0, True
    while going_on:
        for value in _values(form):
            found = value.match(expression, place)
            end = found and JOINED.match(expression, found.end())
            if found and end:
                break
        else:
            raise ValueError(shown(expression.strip()))
        place, going_on, groups = end.end(), bool(end[1]), found.groupdict()
        role, name, text = groups.get("role"), groups.get("name"), groups.get("text")
        if role in PAIR:
            yield Part(role, is_role=True)
        elif name is not None and name in names:
            yield from names[name]
        elif text or role == "system":
            yield Part(prompt if role and prompt else _unquoted(text or groups.get("default") or "''"))
        else:
            raise ValueError(shown(expression.strip()))


def _unquoted(text: str) -> str:
    """A text in quotes without them."""
    return re.sub(r"\\.", lambda escape: ESCAPES.get(escape.group(), escape.group()[1]), text[1:-1])


def _within(whole: Side, spans: Sequence[Span], room: int | None, ending: Sequence[int]) -> Framing:
    """The framing of a text and its pair that stand in a third text, at `spans`: what is of neither is the frame.

    A piece that is only partly of one of the two is a token of that. Where `room` tokens fit, the last of the two is
    cut, and `ending` are the tokens after it. Errors: BertcliError if there is no room for any of its tokens.
    """
    tokens, before = Listed.of(whole), 0
    places, sides = [range(0)] * len(spans), [Listed([], [], [])] * len(spans)
    for side, (start, end) in sorted(enumerate(spans), key=lambda item: item[1]):
        if start < end:
            first = max(before, sum(last <= start for _, last in tokens.offsets))
            before = max(first, sum(first < end for first, _ in tokens.offsets))
            some = slice(first, before)
            inside = [(max(i, start) - start, min(j, end) - start) for i, j in tokens.offsets[some]]
            places[side], sides[side] = range(first, before), Listed(tokens.ids[some], inside, tokens.word_ids[some])
    cut = room is not None and len(tokens) >= room
    stop = room - len(ending) if room is not None and cut else len(tokens)
    if cut and max(places, key=lambda some: some.stop).start >= stop:
        raise BertcliError(
            f"There is no room for the second text in {room} tokens: shorten the first, or raise --max-length."
        )
    of = {place: side for side, some in enumerate(places) for place in some}
    frame = [
        Slot(of.get(place), id, 0)
        for place, id in enumerate(tokens.ids[:stop])
        if place not in of or place == places[of[place]].start
    ]
    frame += [Slot(None, id, 0) for id in ending if cut]
    return Framing(
        tuple(frame), tuple(sides), tuple(slice(max(0, min(some.stop, stop) - some.start)) for some in places)
    )

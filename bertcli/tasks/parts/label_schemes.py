"""Schemes of labels: IOB2 (BIO), IOB1, BIOES, BILOU and plain labels, for tag, its redaction, and evaluate.

A label of a scheme is a prefix and a type: B-PER begins a name, I-PER continues it, E-PER (in BILOU L-PER) ends it,
S-PER (U-PER) is all of one. `LabelSet` reads a set of labels, and knows which of them only look so; `entities` finds
the entities of a sentence that evaluate counts; legal_path.py finds the likeliest labels that a scheme allows.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

OUTSIDE = "O"
# What the only type is called, where labels are prefixes alone: B, I, O.
ONLY_TYPE = "entity"
LIKE_A_TAG = re.compile(r"([BIESLU])-(.+)", re.DOTALL)
# BILOU's prefixes, by those of BIOES.
AS_BIOES = {"L": "E", "U": "S"}
# The prefixes that say where an entity ends, by the letter of the other one of the same scheme.
CLOSING = {"E": {"E", "S"}, "S": {"E", "S"}, "L": {"L", "U"}, "U": {"L", "U"}}


class Tag(NamedTuple):
    """A label as it is read: its type, and how it stands to its neighbors.

    prefix: B, I, E or S, also of BILOU; "" of a plain label, whose neighbors of one type are one entity.
    type: "" of the label O alone, which is no entity.
    """

    prefix: str
    type: str

    @property
    def is_entity(self) -> bool:
        """True but for O."""
        return self.type != ""

    @property
    def continues(self) -> bool:
        """True if a label may belong to an entity that began before it."""
        return self.prefix in ("I", "E", "")

    def goes_on_from(self, before: "Tag") -> bool:
        """True if two neighbors belong to one entity, or are both outside of any."""
        return self.type == before.type and self.continues and before.prefix not in ("E", "S")


NO_ENTITY = Tag("", "")


@dataclass(frozen=True)
class LabelSet:
    """A set of labels, and how it is written.

    A prefix counts as one only if the set has it for a reason: the type has B- or I-, too; or S- (U-) is a prefix of
    other types, since a type may occur as single words alone; or there are no labels but B-… and I-…. Any other label
    is a name, such as E-mail. all_are_tags: it is known from elsewhere that every label has a prefix.
    """

    labels: Sequence[str]
    all_are_tags: bool = False

    @cached_property
    def tags(self) -> Mapping[str, Tag]:
        """Each label as it is read."""
        names = {*self.labels} - {OUTSIDE}
        if self.is_untyped:
            return {OUTSIDE: NO_ENTITY} | {name: Tag(AS_BIOES.get(name, name), ONLY_TYPE) for name in names}
        return {OUTSIDE: NO_ENTITY} | {name: self._read(name) for name in names}

    @cached_property
    def is_untyped(self) -> bool:
        """True if labels are prefixes alone: B, I, O."""
        names = {*self.labels} - {OUTSIDE}
        return bool(names & {"B", "I"}) and names <= {*"BIESLU"}

    @cached_property
    def has_prefixes(self) -> bool:
        """True if any label has a prefix."""
        return any(tag.prefix for tag in self.tags.values())

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The types of entities, in the order of the labels."""
        of_labels = (self.tags[label].type for label in self.labels if label != OUTSIDE)
        return tuple(dict.fromkeys(of_labels))

    @cached_property
    def prefixes_of_types(self) -> Mapping[str, set[str]]:
        """The prefixes that each type has in this set."""
        prefixes: dict[str, set[str]] = {}
        for tag in self.tags.values():
            prefixes.setdefault(tag.type, set()).add(tag.prefix)
        return prefixes

    @cached_property
    def closed_scheme(self) -> str | None:
        """BIOES or BILOU, if a label says where an entity ends; IOB1 and IOB2 cannot be told from labels.

        S- beside B- without any E- says nothing of the ends of longer entities.
        """
        prefixes = {tag.prefix for tag in self.tags.values()}
        if "E" not in prefixes and not ("S" in prefixes and "B" not in prefixes):
            return None
        letters = {label[0] for label in self.labels if self.tags[label].prefix in ("E", "S")}
        return "BILOU" if letters & {"L", "U"} else "BIOES"

    @cached_property
    def _letters_of_types(self) -> Mapping[str, set[str]]:
        """The letters before each type, of all labels that look like tags."""
        letters: dict[str, set[str]] = {}
        for label in self.labels:
            if match := LIKE_A_TAG.fullmatch(label):
                letters.setdefault(match[2], set()).add(match[1])
        return letters

    @cached_property
    def _proven(self) -> set[str]:
        """The letters that some type has, B or I among them, beside another one or the type alone."""
        proven: set[str] = set()
        for type, letters in self._letters_of_types.items():
            others = len(letters) > 1 or type in self.labels
            if others and letters & {"B", "I"}:
                proven |= letters
        if not proven:
            matches = [LIKE_A_TAG.fullmatch(label) for label in self.labels if label != OUTSIDE]
            if all(match is not None and match[1] in "BI" for match in matches):
                proven = {"B", "I"}
        return proven

    def _read(self, label: str) -> Tag:
        match = LIKE_A_TAG.fullmatch(label)
        if match is None or not (self.all_are_tags or self._counts(*match.groups())):
            return Tag("", label)
        letter, type = match.groups()
        return Tag(AS_BIOES.get(letter, letter), type)

    def _counts(self, letter: str, type: str) -> bool:
        """True if a letter before a type is a prefix."""
        if letter in ("B", "I"):
            return bool(self._proven)
        if self._letters_of_types[type] & {"B", "I"}:
            return True
        return letter in ("S", "U") and bool(self._proven & CLOSING[letter])


# ------------------------------------------------------------------------------------- entities that evaluate counts


class EntitySpan(NamedTuple):
    """An entity: its type, its first word and the word after its last; characters where a model has its own words."""

    type: str
    start: int
    end: int


Tags = Sequence[Tag]
# The first of the characters that stand for types: private ones, which occur in no pattern.
FIRST_TYPE = 0xE000
# Of a plain label, where tags are written for a regular expression.
PLAIN_PREFIX = "="
# An entity, in tags that are a prefix and a character for their type; seqeval's strict mode, Nakayama 2018.
SCHEMES = {
    # An entity begins with I; with B only where one of its type ends just before: I-X I-X B-X is two entities. As in
    # seqeval, a single B is no entity where a B of another type follows: of I-X B-X B-Y the first alone is an entity.
    "IOB1": r"I(.)(?:I\1)*|(?<=[IB](.))B\2(?:(?:I\2)+|(?!B(?!\2)))",
    "IOB2": r"B(.)(?:I\1)*|S.",
    "BIOES": r"S.|B(.)(?:I\1)*E\1",
}
SCHEMES["BILOU"] = SCHEMES["BIOES"]  # L and U are read as E and S


def entities(tags: Tags, scheme: str) -> set[EntitySpan]:
    """The entities of a sentence, from the tag of each word."""
    types = sorted({tag.type for tag in tags})
    # Two characters a word, so that a regular expression can find entities.
    written = ""
    for tag in tags:
        prefix = (tag.prefix or PLAIN_PREFIX) if tag.is_entity else OUTSIDE
        written += prefix + chr(FIRST_TYPE + types.index(tag.type))
    pattern = SCHEMES[scheme]
    last_group = re.compile(pattern).groups + 1
    spans = set()
    for match in re.finditer(pattern + rf"|{PLAIN_PREFIX}(.)(?:{PLAIN_PREFIX}\{last_group})*", written):
        type = types[ord(match[0][1]) - FIRST_TYPE]
        spans.add(EntitySpan(type, match.start() // 2, match.end() // 2))
    return spans


def open_scheme(sentences: Iterable[Tags]) -> str:
    """Tell the scheme of tags that say nothing of ends: IOB1 or IOB2.

    It is IOB1 if entities begin, but none with B (which in IOB1 only parts neighbors of one type).
    """
    first_prefixes = set()
    for tags in sentences:
        # Those that begin an entity in any scheme: the one before is of another type, or none.
        for before, tag in zip([NO_ENTITY, *tags], tags, strict=False):
            if tag.prefix and before.type != tag.type:
                first_prefixes.add(tag.prefix)
    return "IOB1" if first_prefixes == {"I"} else "IOB2"

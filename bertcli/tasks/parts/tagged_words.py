"""tag on texts that are given as their words, as data sets of entities have them: a tag for each word.

The tags of a model that labels tokens are in compute/tag.py, as it goes by pieces; here are those of named types.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate

from bertcli.errors import BertcliError
from bertcli.files.texts import Item
from bertcli.kinds.entities import LabelledSpan
from bertcli.tasks.parts.label_schemes import OUTSIDE
from bertcli.tasks.parts.redact import Redaction
from bertcli.tasks.running.task import Record
from bertcli.tasks.tag import OF_WORDS

TagsOf = Callable[[Sequence[str]], Sequence[str]]


def with_words(item: Item, redaction: Redaction | None, tags_of: TagsOf) -> Record:
    """{tokens, tags} of a text that was given as its words; nothing for another, and where words are hidden.

    Errors: BertcliError if tags of the row's own are kept, which the record could not have beside these.
    """
    words, hides = item.text.words, redaction is not None and not redaction.keep_text
    if words is None or hides:
        return {}
    tokens, tags = OF_WORDS
    if tags in item.text.kept:
        raise BertcliError(
            f"{item.text.location}: the record of words has a field {tags!r} of its own: rename that of the input, or "
            "name other fields with --keep."
        )
    return {tokens: list(words), tags: list(tags_of(words))}


def bio_tags(words: Sequence[str], entities: Iterable[LabelledSpan]) -> list[str]:
    """The tag of each word: B- and the label for the first that an entity has a part of, I- for the others, else O."""
    tags = [OUTSIDE] * len(words)
    ends = [*accumulate(len(word) + 1 for word in words)]
    # In order, so that an entity that begins within another's last word has a B- of its own.
    for entity in sorted(entities, key=lambda entity: entity.start):
        first, last = bisect_right(ends, entity.start), bisect_right(ends, entity.end - 1)
        tags[first : last + 1] = [f"B-{entity.label}", *[f"I-{entity.label}"] * (last - first)]
    return tags

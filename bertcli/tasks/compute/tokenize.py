"""tokenize: the tokens, ids, segments and offsets of a text, as the network gets them."""

from collections.abc import Iterable, Iterator
from typing import Any

from bertcli.files.texts import Texts, from_values
from bertcli.tasks.running.task import Progress, warn_of_cuts
from bertcli.tokens import Tokenizer

TOGETHER = 4000  # approximate number of tokens passed to the tokenizer at a time


def tokenize(
    tokenizer: Tokenizer, texts: Iterable[str] | Texts, max_length: int | None = None
) -> Iterator[dict[str, Any]]:
    """Records {index, text, tokens, ids, segments, offsets}; texts are cut only at a given `max_length`.

    One warning at the end has the number of cut texts.
    """
    index = cut = lost = 0
    source = from_values(texts)
    for group in source.grouped(TOGETHER, span=1):
        encoded = tokenizer.encode([text.text for text in group], [text.pair for text in group], max_length)
        for text, tokens in zip(group, encoded, strict=True):
            yield {
                "index": index,
                "text": text.text,
                "tokens": tokens.pieces,
                "ids": tokens.ids,
                "segments": tokens.segments,
                "offsets": [list(span) for span in tokens.offsets],
            }
            index, cut, lost = index + 1, cut + tokens.truncated, lost + tokens.lost
    if cut and max_length is not None:
        warn_of_cuts(Progress(texts=index, cut=cut, lost=lost), max_length, "max_length: --max-length")
    source.log_empty()

"""How hits are printed: rows of vectors below their queries, lines of files as grep prints them, names of files."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from bertcli.files.texts import STANDARD_INPUT
from bertcli.report.shades import Mark, print_marked
from bertcli.report.tables import Table, cell
from bertcli.report.terminal import NARROWEST, encodable, folded, terminal_width, unfolded_width, visible

if TYPE_CHECKING:
    from bertcli.wings.search.files import Hit

FAINT = 0.25  # words whose idf is below this share of the query's rarest word are not shaded
LINES = 3  # of a hit's text on a terminal
INDENT = " " * 11  # below the score of a hit, so that its text stands apart


class VectorTable(Table):
    """Hits below their queries where a terminal is too narrow for a table of texts, each in at most 1 + LINES lines."""

    def print(self) -> None:
        width = terminal_width()
        if width is None or unfolded_width(*self.displayed()) <= width:
            super().print()
            return
        last = None
        for cells in self.rows:
            hit = dict(zip(self.keys, map(visible, cells), strict=False))
            if hit["query"] != last:
                print(*([] if last is None else [""]), *_cut(hit["query"], width, LINES), sep="\n")
                last = hit["query"]
            heading = [f"{hit['score']:>9}  row {hit['row']}"]
            if hit.get("chunk"):
                heading.append(f"text {hit['index']}, characters {hit['start']} to {hit['end']}")
            if hit["id"]:
                heading.append(hit["id"])
            print(*_cut(", ".join(heading), width, 1))
            if hit["text"]:
                for line in _cut(hit["text"], width - len(INDENT), LINES):
                    print(f"{INDENT}{line}")


def _cut(text: str, width: int, most: int) -> list[str]:
    """The first lines of a folded text; where there are more, the last one ends in an ellipsis."""
    width = max(width, NARROWEST)
    lines = folded(text, width).split("\n")
    if len(lines) <= most:
        return lines
    last, *_ = folded(lines[most - 1], width - 1).split("\n")
    return [*lines[: most - 1], f"{last}…"]


class NameTable(Table):
    """Names of files, a line each."""

    def print(self) -> None:
        for _, file, *_ in self.rows:
            print(visible(file))


@dataclass(frozen=True, eq=False, repr=False)
class LineTable(Table):
    """Print hits as `file:line: score text`, with lines of the file around them, as grep does.

    idf: how rare a word is; None where no shades are shown. several: there are several queries, which are then named.
    """

    hits: "Sequence[Hit]" = ()
    context: int = 0
    idf: Callable[[str], float] | None = None
    several: bool = False

    def print(self) -> None:
        last: Hit | None = None
        for hit in self.hits:
            if self.several and (last is None or hit.query != last.query):
                print(*([] if last is None else [""]), visible(hit.query), sep="\n")
            elif self.context and last is not None:
                print("--")
            self._print(hit)
            last = hit

    def _print(self, hit: "Hit") -> None:
        chunk = hit.chunk
        file = "standard input" if chunk.file == STANDARD_INPUT else visible(chunk.file)
        before: list[NumberedLine] = []
        after: list[NumberedLine] = []
        if self.context:
            before, after = _around(chunk.file, chunk.line, chunk.last, self.context)
        for number, line in before:
            print(f"{file}-{number}- {visible(line)}")
        head = f"{file}:{chunk.line}: {cell(hit.score)} "
        text = visible(" ".join(chunk.text.split()))
        width = terminal_width()
        if width is not None:
            room = max(NARROWEST, LINES * width - len(head))
            if len(text) > room:
                text = f"{text[: room - 1].rstrip()}{encodable('…')}"
        if self.idf is None:
            print(f"{head}{text}")
        else:
            print_marked(f"{head}{text}", _marks(text, hit.query, self.idf, len(head)))
        for number, line in after:
            print(f"{file}-{number}- {visible(line)}")


NumberedLine = tuple[int, str]


def _around(file: str, first: int, last: int, count: int) -> tuple[list[NumberedLine], list[NumberedLine]]:
    """The lines of a file before and after those of a hit, numbered from 1."""
    from bertcli.files.read.passages import file_lines

    lines = list(islice(enumerate(file_lines(file), 1), last + count))
    before = lines[: first - 1]
    return before[-count:], lines[last:]


def _marks(text: str, query: str, idf: Callable[[str], float], begin: int) -> Iterator[Mark]:
    """Words of a text that are in the query, the rarer the darker; words that most passages have are not shaded."""
    from bertcli.wings.search.bm25 import WORD, words_of

    weights = {word: idf(word) for word in words_of(query)}
    most = max(weights.values(), default=0.0)
    for match in WORD.finditer(text):
        weight = weights.get(match[0].casefold(), 0.0)
        if weight > most * FAINT:
            yield Mark(begin + match.start(), begin + match.end(), weight / most)

"""The task keywords: its options, record and table. Its computation is in work.py."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

from bertcli.errors import BertcliError, WrongOptions, check_whole, quoted
from bertcli.report.marked import MarkedTable, Passage, mark
from bertcli.report.tables import OWN_ID, Record, Row, Table
from bertcli.report.terminal import Column
from bertcli.tasks.examples import CAT, Example, Subject
from bertcli.tasks.options import numbers, option
from bertcli.tasks.registry import SENTENCE_SAMPLE, SINGLE_TEXTS, Fields, Needs, TaskSpec
from bertcli.tasks.window_options import WindowOptions

ENGLISH, NONE = "english", "none"  # values of stop_words that are no words
LONGEST = 10  # words of a candidate: each length adds as many candidates as the text has words
MOST_DIVERSE = 1000  # keywords that diversity chooses: each is compared with every candidate


def lines_of(file: str) -> tuple[str, ...]:
    """The lines of a text file that are not blank. Errors: ValueError, for wrong usage."""
    try:
        text = Path(file).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is not UTF-8 (byte {error.start}): convert it first.") from None
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}.") from None
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def stop_words_of(text: str) -> str | tuple[str, ...]:
    """Read --stop-words: a word for a list, or a file with a word a line."""
    return text if text in (ENGLISH, NONE) else lines_of(text)


@dataclass(frozen=True, eq=False, repr=False)
class KeywordsOptions(WindowOptions):
    """Find the words of a text that its vector is nearest to.

    bertcli keywords "Strong green tea grows in the hills of Japan."
    bertcli keywords -i letters.txt --top-k 3 -o keywords.csv
    bertcli keywords -i news.csv --column body --ngrams 1,3 --diversity 0.5
    bertcli keywords -i brief.txt --stop-words german.txt --format jsonl
    bertcli keywords -i jobs.jsonl --candidates skills.txt -o skills.parquet
    bertcli keywords -m my-model -i letters.txt -o letters.html

    The score is the cosine of two vectors of the model: that of the keyword by
    itself, and that of the text. A candidate is a word of the text, or several in
    a row with only spaces between them (--ngrams), that does not begin or end with
    a stop word. start and end are the characters of its first place in the text.

    A word is of letters, digits and marks, and of hyphens and apostrophes inside;
    each Chinese character is one. Words of one letter stand only within a phrase.
    Thai, Lao and Khmer have no spaces between words: name the words to look for
    with --candidates.

    --diversity 0.5 also keeps the keywords unlike each other: each next one has the
    largest (1 - 0.5) * score - 0.5 * cosine with the nearest keyword before it
    (maximal marginal relevance).

    A text beyond the model's limit is read in windows; its vector is the mean of
    theirs, by their numbers of tokens. Nothing is cut. A .csv, .tsv or .parquet
    file has a row for each keyword, a .html file the marked texts.
    """

    _: KW_ONLY
    stride: int | None = field(default=None, init=False)
    top_k: int = option(5, "K", "Keywords of a text. (default: 5)", least=1)
    ngrams: int | Sequence[int] = option(
        1, "N[,M]", "Keywords of N words, or of N to M. (default: 1)", read=numbers("1 or 1,2")
    )
    diversity: float | None = option(
        None, "D", "Choose keywords that are unlike each other: 0 not at all, 1 most. (default: the best alone)"
    )
    stop_words: Iterable[str] | str = option(
        ENGLISH, "FILE|none",
        "The words at which no keyword begins or ends: a file with a word a line, or none. (default: English ones)",
        read=stop_words_of,
    )  # fmt: skip
    candidates: Iterable[str] | None = option(
        None, "FILE", "Choose only from these words and phrases: a file with one a line.", read=lines_of
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes = self.sizes
        for size in sizes:
            check_whole("ngrams (--ngrams)", size)
        if not sizes or len(sizes) > 2 or not 1 <= sizes[0] <= sizes[-1] <= LONGEST:
            given = ",".join(map(str, sizes))
            raise WrongOptions(
                f"ngrams (--ngrams) is {given}: give 1 to {LONGEST}, or two of these, the smaller first.", "ngrams"
            )
        if self.diversity is not None and not 0 <= self.diversity <= 1:
            raise WrongOptions(f"diversity (--diversity) is {self.diversity}: give 0 to 1.", "diversity")
        if self.diversity is not None and self.top_k > MOST_DIVERSE:
            raise WrongOptions(
                f"With diversity there are at most {MOST_DIVERSE:,} keywords: leave out diversity (--diversity), or "
                "ask for fewer (--top-k).",
                "top_k",
                "diversity",
            )
        if isinstance(self.stop_words, str) and self.stop_words not in (ENGLISH, NONE):
            raise BertcliError(
                f"stop_words is {quoted(self.stop_words)}: give a list of words, {ENGLISH!r} or {NONE!r}."
            )
        if self.candidates is not None and (isinstance(self.candidates, str) or tuple(sizes) != (1,)):
            raise WrongOptions(
                "candidates (--candidates) is a list of words and phrases of any length: leave out ngrams (--ngrams), "
                "and give each by itself.",
                "ngrams",
                "candidates",
            )

    @property
    def sizes(self) -> tuple[int, ...]:
        """The fewest words of a keyword and, if it is given, the most."""
        ngrams: Any = self.ngrams
        return tuple(ngrams) if isinstance(ngrams, Sequence) and not isinstance(ngrams, str) else (ngrams,)


def record(options: KeywordsOptions) -> Fields:
    """Records {index, text, truncated, keywords: [{keyword, score, start, end}, …]}, best keyword first.

    A keyword is one to M words of the text as `ngrams` (N, M) says, or one of `candidates`; start and end are the
    characters of its first place. The score is the cosine of its vector and the text's. stop_words: "english", "none",
    or a list of words at which no keyword begins or ends.
    """
    keyword: Fields = {"keyword": str, "score": float, "start": int, "end": int}
    return {"index": int, "id?": (str, int), "text": str, "truncated": bool, "keywords": [keyword]}


COLUMNS = (
    Column("index", int, varying=True),
    OWN_ID,
    Column("keyword"),
    Column("score", float),
    Column("start", int),
    Column("end", int),
)
LEAD = (
    "Each text with its keywords: the words whose vectors are nearest to that of the text. A stronger mark has a "
    "higher score, the cosine of the two vectors."
)


class KeywordTable(MarkedTable):
    """The table of keywords: in a terminal it is always the table, since marks do not show the order of keywords."""

    def print(self) -> None:
        Table.print(self)


def rows(record: Record) -> Iterator[Row]:
    """Yield a row for each keyword."""
    for keyword in record["keywords"]:
        yield record["index"], record.get("id"), *keyword.values()


def passage(record: Record) -> Passage:
    """Mark the keywords in the text."""
    keywords = record.get("keywords", ())
    marks = [mark(keyword["start"], keyword["end"], "", keyword["score"]) for keyword in keywords]
    return Passage("", record["text"] or "", marks)


def examples(subject: Subject) -> Iterator[Example]:
    """Yield a sentence."""
    yield Example("keywords", [CAT])


def table(options: KeywordsOptions) -> Table:
    """Make the table: a row for each keyword."""
    return KeywordTable(COLUMNS, rows, passage_of=passage, title="Keywords", lead=LEAD)


def shape(record: Record, options: Mapping[str, Any]) -> Any:
    """Shape a record as the list of its keywords."""
    return record["keywords"]


SPEC = TaskSpec(
    KeywordsOptions,
    reads=SINGLE_TEXTS,
    needs=lambda options: Needs("keywords", sample=SENTENCE_SAMPLE, trained=("encode",)),
    record=record,
    shape=shape,
    table=table,
    examples=examples,
    position=8,
)

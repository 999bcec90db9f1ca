"""The passages of files that are searched: lines, paragraphs and rows, each with its file and line.

    .txt                   every line that is not blank
    .md, .markdown         every paragraph, with the headings above it as context
    .csv, .tsv, .jsonl     the text of every row

Each perhaps gzipped (.gz). `-` is standard input, one passage a line.
"""

import glob
import hashlib
import logging
import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from bertcli.errors import BertcliError
from bertcli.files.formats import BY_ENDING, LINES_OF_ROWS
from bertcli.files.read.inputs import ending_of_input, matching_files
from bertcli.files.read.line_reader import LineFile, check_readable
from bertcli.files.read.row_columns import Field, RowColumns
from bertcli.files.texts import STANDARD_INPUT

LINES, PARAGRAPHS = (".txt",), (".md", ".markdown")
ENDINGS = (*LINES, *PARAGRAPHS, *LINES_OF_ROWS)
HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$")
FENCE = re.compile(r" {0,3}(```+|~~~+)")
BETWEEN_HEADINGS = " > "

logger = logging.getLogger("bertcli")


class PassageOfFile(NamedTuple):
    """A text in a file, on the lines `line` to `last`, from 1; `context` are the headings above it, or "".

    spans_lines: a line break in the text is one in the file.
    """

    text: str
    line: int
    last: int
    context: str = ""
    spans_lines: bool = False

    @property
    def in_context(self) -> str:
        """The text that a vector is made of: headings, then the passage."""
        return f"{self.context}\n{self.text}" if self.context else self.text


def searched_files(patterns: Sequence[str], column: str | None = None) -> list[str]:
    """The files of these names and patterns, each once, in this order; a folder stands for all files in it.

    A pattern or a folder passes over files of other endings, with a note, and a folder over files of rows without the
    field `column` (default: text), with the reason. Errors: BertcliError for a pattern without files, a folder none of
    whose files has texts, and a file that is missing, or of another ending.
    """
    names: dict[str, None] = {}
    passed_over = 0
    for pattern in patterns:
        is_folder = os.path.isdir(pattern)
        if is_folder:
            pattern = os.path.join(glob.escape(pattern), "**", "*")
        named = matching_files(pattern)
        usable = [name for name in named if _ending(name) in ENDINGS]
        if not usable or (len(usable) < len(named) and not glob.has_magic(pattern)):
            if named[0] == pattern:
                check_readable(pattern)  # a name that is missing has no ending to speak of
            raise BertcliError(f"{named[0]}: search reads {', '.join(ENDINGS[:-1])} and {ENDINGS[-1]} (perhaps .gz).")
        passed_over += len(named) - len(usable)
        names |= dict.fromkeys(with_texts(usable, column) if is_folder else usable)
    if passed_over:
        files = "file of another ending is" if passed_over == 1 else "files of other endings are"
        logger.info("%d %s left out; search reads %s.", passed_over, files, ", ".join(ENDINGS))
    for name in names:
        if name != STANDARD_INPUT:
            check_readable(name)
    return [*names]


def with_texts(files: Sequence[str], column: str | None = None) -> list[str]:
    """The files of a folder without those of rows that lack the field, which are named with the reason.

    Errors: BertcliError, the first reason, if none is left.
    """
    reasons = {file: _reason_without_text(file, column) for file in files if has_fields(file)}
    left = [file for file in files if not reasons.get(file)]
    if files and not left:
        raise BertcliError(reasons[files[0]])
    for reason in filter(None, reasons.values()):
        logger.info("A file of the folder is left out: %s", reason)
    return left


def _reason_without_text(file: str, column: str | None) -> str:
    """Why the first row of a file gives no text; "" if it gives one."""
    try:
        next(_rows(file, column), None)
    except BertcliError as error:
        return str(error)
    return ""


def has_fields(file: str) -> bool:
    """True for a file of rows, whose fields have names."""
    return _ending(file) in LINES_OF_ROWS


def passages_in(file: str, column: str | None = None, most: int | None = None) -> list[PassageOfFile]:
    """List the passages of a file; blank ones are left out. `column` is the field of rows (default: text).

    most: where there are more passages, one more than these is listed. Errors: BertcliError naming file and line for
    what cannot be read, is not UTF-8, or lacks the field.
    """
    ending = _ending(file)
    if ending in LINES_OF_ROWS:
        passages = _rows(file, column)
    elif ending in PARAGRAPHS:
        passages = _paragraphs(file_lines(file))
    else:
        passages = (PassageOfFile(text, number, number) for number, text in enumerate(file_lines(file), 1))
    with_words = (passage for passage in passages if passage.text.strip())
    return [*islice(with_words, None if most is None else most + 1)]


def file_lines(file: str) -> Iterator[str]:
    """The lines of a file. Errors: BertcliError for one that is not UTF-8, or a file that cannot be read."""
    for line in LineFile(file):
        if line.error:
            raise BertcliError(line.error)
        yield line.text


def digest_of(file: str, column: str | None) -> str:
    """A digest of a file's bytes, and of what decides which passages they give. Errors: BertcliError."""
    try:
        with open(file, "rb") as stream:
            whole = hashlib.file_digest(stream, "blake2b")
    except OSError as error:
        raise BertcliError(f"Cannot read {file}: {error.strerror or error}.") from None
    ending = _ending(file)
    # The name's end decides how the bytes are read, so that of a renamed file is part of it.
    how = f"{ending}|{file.lower().endswith('.gz')}|{column if ending in LINES_OF_ROWS else None}"
    whole.update(how.encode("utf-8", "surrogateescape"))
    return whole.hexdigest()[:32]


def _ending(file: str) -> str:
    return ending_of_input(file, rows_piped=False)


def _rows(file: str, column: str | None) -> Iterator[PassageOfFile]:
    open_texts = BY_ENDING[_ending(file)].texts
    assert open_texts is not None
    for row in open_texts(file).texts(RowColumns(Field(column or "text", "--column"))):
        if row.error:
            raise BertcliError(row.error)
        number = int((row.location or "").rpartition("line ")[2])
        yield PassageOfFile(row.text, number, number)


def _paragraphs(lines: Iterator[str]) -> Iterator[PassageOfFile]:
    """Paragraphs of Markdown: what stands between blank lines and headings; a fenced block is not divided.

    A heading with nothing below it before the next one is a passage itself.
    """
    headings: list[tuple[int, str]] = []  # the depth and the words of those above
    block: list[str] = []  # the lines of the paragraph so far
    begin = 0  # the line on which it begins
    bare = 0  # the line of the last heading, if nothing stands below it yet
    fence = ""  # the mark that opened a fenced block, within one

    def context(without_last: bool = False) -> str:
        words = [title for _, title in headings]
        return BETWEEN_HEADINGS.join(words[:-1] if without_last else words)

    def paragraph() -> PassageOfFile:
        return PassageOfFile("\n".join(block), begin, begin + len(block) - 1, context(), spans_lines=True)

    for number, line in enumerate(lines, 1):
        heading = None if fence else HEADING.match(line)
        if (heading or (not fence and not line.strip())) and block:
            yield paragraph()
            block = []
        if heading:
            if bare:
                yield PassageOfFile(headings[-1][1], bare, bare, context(without_last=True))
            depth = len(heading[1])
            headings = [(above, title) for above, title in headings if above < depth]
            headings.append((depth, heading[2]))
            bare = number
        elif line.strip() or fence:
            if not block:
                begin, bare = number, 0
            block.append(line)
            mark = FENCE.match(line)
            if fence and mark and mark[1].startswith(fence):
                fence = ""
            elif mark and not fence:
                fence = mark[1]
    if block:
        yield paragraph()
    elif bare:
        yield PassageOfFile(headings[-1][1], bare, bare, context(without_last=True))

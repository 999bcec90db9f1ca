"""Read CoNLL files: a word a line with its tag, an empty line after each sentence."""

import re
from collections.abc import Iterator
from itertools import chain

from bertcli.errors import BertcliError, quoted
from bertcli.files.labelled.fields import TableOptions
from bertcli.files.labelled.rows import LabelledText, LeftOut, TaggedWords
from bertcli.files.read.line_reader import Line, LineFile
from bertcli.files.texts import Text

DOCUMENT = "-DOCSTART-"  # the first word of the line before a document
CLUSTER = "document"  # what --cluster calls the documents of such a file
END_OF_FILE = Line("", "", "")
COLUMN_ENDS = re.compile(r"[ \t]+")


def read_columns(file: str, left_out: LeftOut, options: TableOptions, any_tag: bool) -> Iterator[LabelledText]:
    """The sentences of a file; the tag is in the last column. Their clusters are documents, if it has -DOCSTART- lines.

    Other columns are named by their numbers, from 1. In CoNLL-U words are in the second and tags in the fourth, and a
    line that does not begin with a number is a comment, or no word of its own.
    """
    of_conllu = file.lower().endswith((".conllu", ".conllu.gz"))
    word = _column(file, "column", options, 2 if of_conllu else 1) - 1
    tag = _column(file, "label_column", options, 4 if of_conllu else 0) - 1
    words: list[str] = []
    tags: list[str] = []
    location = bad = ""
    document = 0
    for line in chain(LineFile(file), [END_OF_FILE]):
        cells = cells_of(line.text)
        if line.error:
            # First: a line that is not UTF-8 may have a word and a tag all the same.
            bad = bad or line.error
        elif not cells or cells[0] == DOCUMENT:
            if bad:
                left_out.add(bad)
            elif words:
                yield LabelledText(
                    Text(" ".join(words), None, location, label=TaggedWords(words, tags)), cluster=str(document)
                )
            words, tags, bad = [], [], ""
            document += bool(cells)
        elif (of_conllu and not cells[0].isdecimal()) or (any_tag and cells[0] == "#" and not words):
            continue
        elif len(cells) > max(1, word, tag):
            location = location if words else line.location
            words.append(cells[word])
            tags.append(cells[tag])
        elif not cells[0].startswith("#"):
            bad = bad or f"{line.location}: {quoted(line.text)} has no word and a tag such as O or B-PER."


def tagged_sentences(
    file: str, options: TableOptions, left_out: LeftOut, any_tag: bool = False
) -> tuple[list[LabelledText], str]:
    """The sentences of a file, and a note where several are of one document; any_tag: tags may be anything.

    Errors: BertcliError for a cluster that the file does not have.
    """
    rows = [*read_columns(file, left_out, options, any_tag)]
    several = len({row.cluster for row in rows}) > 1
    note = ""
    if options.cluster is None and several:
        note = (
            f"sentences of one document may be alike: add --cluster {CLUSTER}, since intervals take sentences as "
            "independent."
        )
    elif options.cluster is not None and (options.cluster != CLUSTER or not several):
        raise BertcliError(
            f"{file} has no field {quoted(options.cluster)} (--cluster): with -DOCSTART- lines there is "
            f"--cluster {CLUSTER}."
        )
    return rows, note


def cells_of(line: str) -> list[str]:
    """The columns of a line: spaces and tabs part them. A no-break space is part of a word, as in "10 000"."""
    return [cell for cell in COLUMN_ENDS.split(line) if cell]


def _column(file: str, name: str, options: TableOptions, usual: int) -> int:
    """The number of the column in the options, from 1, or the usual one."""
    given = getattr(options, name)
    if given is None:
        return usual
    if not given.isdecimal() or given == "0":
        option = name.replace("_", "-")
        raise BertcliError(f"{file} has columns without names: give the number of one, from 1 (--{option}).")
    return int(given)

"""Read the labelled texts of the view probe from a file, with files/labelled/."""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from bertcli.cli.options import wrong
from bertcli.errors import BertcliError
from bertcli.files.labelled.conll import tagged_sentences
from bertcli.files.labelled.fields import (
    LABEL,
    NOTHING,
    SECOND,
    TAGS,
    TEXT,
    WORDS,
    FieldSpec,
    Parts,
    Row,
    ShapeOfRows,
    as_it_is,
    read_label,
    read_texts,
    tagged_words,
)
from bertcli.files.labelled.rows import WAY_ON, LabelledText, LeftOut
from bertcli.files.labelled.tables import check_columns, check_regular, is_table, read_table
from bertcli.wings.interpret.specs.probe import LabelledTextOptions, ProbeOptions

if TYPE_CHECKING:
    from bertcli.files.texts import Texts

logger = logging.getLogger("bertcli")


class LabelledTexts(NamedTuple):
    """Texts, or with --words lists of words, as many labels, or lists of tags, and what each is resampled with."""

    texts: "Texts | list[list[str]]"
    labels: list[Any]
    clusters: list[str] | None


class _Rows(NamedTuple):
    """The rows of a table: of texts, or of words."""

    fields: tuple[FieldSpec, FieldSpec, FieldSpec]
    parts: Callable[[Row], Parts] = as_it_is
    place: int | None = None
    of_any_names: bool = True
    other_shapes: tuple[ShapeOfRows, ...] = ()


class _Named(NamedTuple):
    """The task and the names of fields, as files/labelled/ asks for them."""

    task: str
    column: str | None
    pair_column: str | None
    label_column: str | None
    cluster: str | None
    no_header: bool
    delimiter: str | None
    by: str | None = None
    candidate_column: Sequence[str] | None = None

    @classmethod
    def of(cls, data: LabelledTextOptions, words: bool) -> Self:
        named = {name: value for name, value in vars(data).items() if name != "input"}
        return cls("tag" if words else "classification", **named)


def _read_tags(value: Any) -> list[str]:
    """Tags, which may be anything, numbers too."""
    if isinstance(value, list):
        value = [str(name) if isinstance(name, int) else name for name in value]
    return read_texts(value)


ROWS: Mapping[str, _Rows] = {
    "classification": _Rows((TEXT, SECOND._replace(optional=True), FieldSpec(LABEL, read_label))),
    "tag": _Rows((WORDS, NOTHING, FieldSpec(TAGS, _read_tags)), tagged_words),
}


def _rows_of(file: str, named: _Named, left_out: LeftOut) -> tuple[Sequence[LabelledText], str]:
    """The rows of a file, and a note about them. Errors: BertcliError for a file without labels."""
    check_columns(file, named)
    if os.path.isdir(file):
        raise BertcliError(f"{file} is a folder: give a file of labelled texts (-i).")
    check_regular(file)
    if is_table(file, named):
        table = read_table(file, named, ROWS)
        return table.rows, table.note
    if named.task == "tag":
        return tagged_sentences(file, named, left_out, any_tag=True)
    raise BertcliError(
        f"{file} has no named fields, so no labels: give a .csv, .tsv, .jsonl or .parquet file, or with --words one of "
        "CoNLL's columns."
    )


def read_labelled(data: LabelledTextOptions, options: ProbeOptions) -> LabelledTexts:
    """Read the file. Rows without a label are left out like unusable ones, and a note has their number.

    Wrong usage is a typer.BadParameter.
    """
    if data.input is None:
        raise wrong("--input", "give a file of labelled texts (-i).")
    from bertcli.files.texts import Texts

    left_out = LeftOut(options.keep_going)
    read, note = _rows_of(data.input, _Named.of(data, options.words), left_out)
    usable = []
    for row in read:
        if row.text.error:
            left_out.add(row.text.error)
        else:
            usable.append(row)
    if not usable:
        raise BertcliError(f"{data.input} has no texts that can be used, so there is nothing to probe.")
    if note:
        logger.info("%s", note)
    rows = []
    clusters: list[str] | None = None if data.cluster is None else []
    for row in usable:
        if row.text.label == "":
            left_out.add(f"{row.text.location}: there is no label.")
        else:
            rows.append(row.text)
            if clusters is not None:
                clusters.append(str(row.cluster))
    if left_out.count:
        logger.info("%d left out; the first: %s", left_out.count, left_out.first)
    if options.words:
        words, tags = [row.label.words for row in rows], [row.label.tags for row in rows]
        return LabelledTexts(words, tags, clusters)
    texts = Texts(rows, at_hand=True, count=len(rows), way_on=WAY_ON)
    return LabelledTexts(texts, [row.label for row in rows], clusters)

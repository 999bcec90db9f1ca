"""Read DATA of `bertcli evaluate` and `probe`: choose the reader by the file's ending and content."""

import os
from collections.abc import Iterable

import numpy as np

from bertcli.errors import BertcliError, quoted
from bertcli.files.formats import ending_of
from bertcli.files.read.inputs import are_separated, rows_in, takes_columns
from bertcli.files.read.line_reader import LineFile
from bertcli.files.read.rows import RowColumns
from bertcli.wings.evaluate.evaluators.evaluator import evaluators
from bertcli.wings.evaluate.load.beir import TREC, read_folder, read_queries
from bertcli.wings.evaluate.load.conll import CLUSTER, looks_tagged, read_columns
from bertcli.wings.evaluate.load.labelled import Labelled, LabelledText, LeftOut, Relevance
from bertcli.wings.evaluate.load.squad import PARAGRAPH, read_squad
from bertcli.wings.evaluate.load.tables import ReadTable, read_table
from bertcli.wings.evaluate.options import Evaluate

TAGGED = (".conll", ".iob", ".iob2", ".bio")  # files of words and tags, as are others whose lines end in tags


def read(file: str, options: Evaluate, any_tag: bool = False) -> Labelled:
    """Read labelled data from a file or folder; with `any_tag` the tags of words may be anything.

    Errors: BertcliError, with file and line, for what cannot be used.
    """
    _check_columns(file, options)
    left_out = LeftOut(options.keep_going)
    corpus = None
    if os.path.isdir(file):
        rows, corpus = read_folder(file, options, left_out)
        task = "rank" if options.task == "rank" else "retrieval"
        data = ReadTable(task, "it is a folder with a corpus", rows)
    else:
        data = _read_file(file, options, left_out, any_tag)
    task = data.task
    if options.task not in (None, task):
        raise BertcliError(f"{file} is for {task}, since {data.why}, and not for {options.task}.")
    _check_options(file, task, options)
    kept = [row for row in data.rows if _usable(row, left_out)]
    if not kept:
        raise BertcliError(f"{file} has no texts that can be used, so there is nothing to evaluate.")
    groups = [str(row.group) for row in kept] if options.by is not None else []
    clusters = [str(row.cluster) for row in kept] if options.cluster is not None else []
    return Labelled(file, task, data.why, [row.text for row in kept], left_out, corpus, groups, clusters, data.note)


def _read_file(file: str, options: Evaluate, left_out: LeftOut, any_tag: bool) -> ReadTable:
    """Read a file by the reader for its ending, its named fields, or its lines."""
    if not LineFile(file).regular:
        raise BertcliError(
            f"{file} is not a regular file, and evaluate reads the data more than once: save them to a file."
        )
    ending = ending_of(file)
    if ending == ".json":
        return _read_questions(file, options, left_out)
    if _is_table(file, options):
        return read_table(file, options, any_tag)
    if options.by is not None:
        raise BertcliError(f"{file} has no named fields, and --by needs one: leave it out.")
    if options.run is not None:
        _without_clusters(file, options)
        return ReadTable("retrieval", "there is a run for it", read_queries(file, TREC, options, left_out))
    if options.task == "tag" or (options.task is None and (ending in TAGGED or looks_tagged(file))):
        return _read_sentences(file, options, left_out, any_tag)
    _without_clusters(file, options)
    rows = [LabelledText(text) for text in rows_in([file], RowColumns(), keep_going=True)]
    return ReadTable("score", "it has a text a line", rows)


def _read_questions(file: str, options: Evaluate, left_out: LeftOut) -> ReadTable:
    """Read a file as SQuAD's, with a note where several questions are about one paragraph."""
    rows = [*read_squad(file, options, left_out)]
    note = ""
    if options.cluster is None and len({row.text.pair for row in rows}) < len(rows):
        note = (
            "several questions are about one paragraph: add --cluster context (or title), since intervals take "
            f"questions as independent; {quoted(PARAGRAPH)} is the paragraph."
        )
    return ReadTable("answer", "it is a file as SQuAD's", rows, note)


def _read_sentences(file: str, options: Evaluate, left_out: LeftOut, any_tag: bool) -> ReadTable:
    """Read a file as CoNLL's, with a note where several sentences are of one document."""
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
    return ReadTable("tag", "its lines end in tags", rows, note)


def cluster_numbers(names: Iterable[str]) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Each row's cluster as a number from 0."""
    _, numbers = np.unique([*names], return_inverse=True)
    return np.asarray(numbers, np.intp)


def _is_table(file: str, options: Evaluate) -> bool:
    """True for a file with named fields; with --task tag, a .tsv file has CoNLL's columns."""
    return takes_columns([file]) and not (options.task == "tag" and ending_of(file) == ".tsv")


def _check_columns(file: str, options: Evaluate) -> None:
    """Errors: BertcliError for options about the columns of a .csv or .tsv file where the data are no such table."""
    given = [name for name in ("no_header", "delimiter") if getattr(options, name) not in (None, False)]
    is_folder = os.path.isdir(file)
    if given and (is_folder or not are_separated([file]) or not _is_table(file, options)):
        option = given[0].replace("_", "-")
        raise BertcliError(f"--{option} is for the columns of a .csv or .tsv file, and {file} has none: leave it out.")


def _without_clusters(file: str, options: Evaluate) -> None:
    if options.cluster is not None:
        raise BertcliError(f"{file} has no named fields, and --cluster needs one: leave it out.")


def _check_options(file: str, task: str, options: Evaluate) -> None:
    """Errors: BertcliError for an option that only other tasks have."""
    tasks_of: dict[str, list[str]] = {}
    for each, of_task in evaluators().items():
        for name in of_task.options:
            tasks_of.setdefault(name, []).append(each)
    for name, tasks in tasks_of.items():
        if getattr(options, name) not in (None, False) and task not in tasks:
            option = name.replace("_", "-")
            raise BertcliError(f"--{option} is for {', '.join(tasks)}, and {file} is for {task}: leave it out.")


def _usable(row: LabelledText, left_out: LeftOut) -> bool:
    """True if a row can be used; if not, it is counted. Errors: BertcliError as `LeftOut.add`."""
    text = row.text
    if text.error:
        left_out.add(text.error)
        return False
    if isinstance(text.label, Relevance) and max(text.label.gains.values(), default=0) <= 0:
        left_out.skip(f"{text.location}: the query {quoted(text.label.id)} has no relevant document.")
        return False
    return True

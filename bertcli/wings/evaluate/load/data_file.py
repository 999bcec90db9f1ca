"""Read DATA of `bertcli evaluate`: choose the reader by the file's ending and content."""

import os
from itertools import islice

from bertcli.errors import BertcliError, quoted
from bertcli.files.formats import ending_of
from bertcli.files.labelled.conll import DOCUMENT, cells_of, tagged_sentences
from bertcli.files.labelled.rows import LabelledText, LeftOut
from bertcli.files.labelled.tables import ReadTable, check_columns, check_regular, is_table, read_table, repeats
from bertcli.files.read.inputs import rows_in
from bertcli.files.read.line_reader import LineFile
from bertcli.files.read.row_columns import RowColumns
from bertcli.tasks.parts.label_schemes import LIKE_A_TAG, OUTSIDE
from bertcli.wings.evaluate.evaluators.evaluator import evaluators
from bertcli.wings.evaluate.load.beir import TREC, read_folder, read_queries
from bertcli.wings.evaluate.load.labelled import Labelled, Relevance
from bertcli.wings.evaluate.load.squad import PARAGRAPH, read_squad
from bertcli.wings.evaluate.options import Evaluate

TAGGED = (".conll", ".iob", ".iob2", ".bio")  # files of words and tags, as are others whose lines end in tags


def read(file: str, options: Evaluate) -> Labelled:
    """Read labelled data from a file or folder.

    Errors: BertcliError, with file and line, for what cannot be used.
    """
    check_columns(file, options)
    left_out = LeftOut(options.keep_going)
    corpus = None
    if os.path.isdir(file):
        rows, corpus = read_folder(file, options, left_out)
        task = "rank" if options.task == "rank" else "retrieval"
        data = ReadTable(task, "it is a folder with a corpus", rows)
    else:
        data = _read_file(file, options, left_out)
    task = data.task
    if options.task not in (None, task):
        raise BertcliError(f"{file} is for {task}, since {data.why}, and not for {options.task}.")
    _check_options(file, task, options)
    kept = [row for row in data.rows if _usable(row, left_out)]
    if not kept:
        raise BertcliError(f"{file} has no texts that can be used, so there is nothing to evaluate.")
    groups = [str(row.group) for row in kept] if options.by is not None else []
    clusters = [str(row.cluster) for row in kept] if options.cluster is not None else []
    note = data.note or ("" if options.cluster else repeats(kept, None))
    return Labelled(file, task, data.why, [row.text for row in kept], left_out, corpus, groups, clusters, note)


def _read_file(file: str, options: Evaluate, left_out: LeftOut) -> ReadTable:
    """Read a file by the reader for its ending, its named fields, or its lines."""
    check_regular(file)
    ending = ending_of(file)
    if ending == ".json":
        return _read_questions(file, options, left_out)
    if is_table(file, options):
        return read_table(file, options, evaluators())
    if options.by is not None:
        raise BertcliError(f"{file} has no named fields, and --by needs one: leave it out.")
    if options.run is not None:
        _without_clusters(file, options)
        return ReadTable("retrieval", "there is a run for it", read_queries(file, TREC, options, left_out))
    if options.task == "tag" or (options.task is None and (ending in TAGGED or _looks_tagged(file))):
        return _read_sentences(file, options, left_out)
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


def _read_sentences(file: str, options: Evaluate, left_out: LeftOut) -> ReadTable:
    """Read a file as CoNLL's."""
    return ReadTable("tag", "its lines end in tags", *tagged_sentences(file, options, left_out))


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


def _looks_tagged(file: str) -> bool:
    """True if the first lines of a file have a tag in their last column."""
    has_words = False
    for line in islice(LineFile(file), 20):
        cells = cells_of(line.text)
        if not cells or cells[0] == DOCUMENT:
            continue
        has_words = True
        if len(cells) == 1 or not (cells[-1] == OUTSIDE or LIKE_A_TAG.fullmatch(cells[-1])):
            return False
    return has_words

"""Opened models, kept for the commands of later tests: as they were when they were opened, in objects of their own.

A process opens each of its models once. Tests run thousands of commands in one process, most on folders that an earlier
one has opened. What tests open by `bertcli.load` is opened anew.
"""

import logging
import os
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from typing import Any

from bertcli.folder.files import Folder
from bertcli.folder.layout import Layout
from bertcli.loaded_model import LoadedModel

MOST = 24  # models of tests are small, but some are bundled ones; files stay mapped
_KEPT: OrderedDict[tuple[Any, ...], LoadedModel] = OrderedDict()
_open = LoadedModel.open.__func__  # type: ignore[attr-defined]


@classmethod  # type: ignore[misc]
def open(cls: type[LoadedModel], folder: Folder, name: str, **options: Any) -> LoadedModel:
    """In place of `LoadedModel.open`: open a folder, or copy the model that was opened when its files were the same.

    Not kept: a model of another engine or with a classifier, which are of other files, too; and one whose opening wrote
    a note, which the next command has to write again.
    """
    if not _is_plain(folder, **options):
        opened: LoadedModel = _open(cls, folder, name, **options)
        return opened
    key = (cls, name, os.getcwd(), folder.route, *map(_files, folder.paths), *sorted(options.items()))
    if key in _KEPT:
        _KEPT.move_to_end(key)
        return _copied(_KEPT[key])
    notes = _Notes()
    logger = logging.getLogger("bertcli")
    logger.addHandler(notes)
    try:
        opened = _open(cls, folder, name, **options)
    finally:
        logger.removeHandler(notes)
    if not notes.written:
        _KEPT[key] = _copied(opened)
        if len(_KEPT) > MOST:
            _KEPT.popitem(last=False)
    return opened


opened_once = open  # named as that is, by which a model is pickled for worker processes


def _is_plain(folder: Folder, engine: Any = None, **_: Any) -> bool:
    """True for NumPy and the model's own heads."""
    return folder.classifier is None and (engine is None or engine.name == "numpy")


def _files(folder: Path) -> tuple[Any, ...]:
    """What tells whether a folder's files are those of before: which they are, their sizes, when they were written."""
    files = []
    for path in sorted(folder.rglob("*")):
        status = path.stat() if path.exists() else path.lstat()
        files.append((str(path), status.st_ino, status.st_size, status.st_mtime_ns))
    return (str(folder), *files)


def _copied(model: LoadedModel) -> LoadedModel:
    """Copy a model with what was read of its folder, so that what is read from now on is the copy's alone."""
    assert model.layout is not None
    return replace(model, layout=Layout(_folder(model.layout.folder)))


def _folder(folder: Folder) -> Folder:
    other = Folder(folder.path)
    for name, value in vars(folder).items():
        if isinstance(value, Folder):
            value = _folder(value)
        elif isinstance(value, dict):
            value = {**value}
        setattr(other, name, value)
    return other


class _Notes(logging.Handler):
    """Counts what is written to the log."""

    written = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.written += 1

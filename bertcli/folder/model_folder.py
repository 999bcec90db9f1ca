"""A model's folder: each of its small files is read once, strictly, when it is first asked for."""

import os
from pathlib import Path
from typing import Any

from bertcli.folder.files import JsonSettings, read_json


class Folder:
    """The folder of a model, or of one of its modules. `path` is as the user gave it: errors name files below it.

    What was read stays as it was, whatever happens to the files; `files_read` names them. It pickles as its path.
    `adapter` is the folder of an adapter (LoRA) that changes the network; `base` has configuration and weights, where
    they are not here.
    """

    def __init__(self, path: Path, base: "Folder | None" = None, adapter: "Folder | None" = None) -> None:
        self.path, self.base, self.adapter = path, base, adapter
        self._inner = ""
        self._read: dict[str, Any] = {}
        self._names_read: set[str] = set()

    def __repr__(self) -> str:
        return f"Folder({str(self.path)!r})"

    def __reduce__(self) -> tuple[type["Folder"], tuple[Any, ...]]:
        return Folder, (self.path, self.base, self.adapter)

    def resolved(self) -> "Folder":
        """The same folder by its absolute path, with what was read of it."""
        whole = self._at(self.path.resolve(), self._inner)
        whole.base, whole.adapter = self.base and self.base.resolved(), self.adapter and self.adapter.resolved()
        return whole

    @property
    def paths(self) -> list[Path]:
        """Every folder that the model consists of."""
        return [folder.path for folder in (self, self.base, self.adapter) if folder is not None]

    def within(self, name: str) -> "Folder":
        """The folder of a module; with an empty name this one."""
        return self._at(self.path / name, f"{self._inner}{name}/") if name else self

    def _at(self, path: Path, inner: str) -> "Folder":
        other = Folder(path, self.base)
        other._inner, other._read, other._names_read = inner, self._read, self._names_read
        return other

    @property
    def names(self) -> list[str]:
        """The names of the files in it; none where there is no folder."""
        return [file.name for file in self.path.glob("*") if file.is_file()]

    def file(self, name: str) -> Path:
        """The path of a file in it; of a configuration that is not in it, in its base."""
        own = self.path / name
        if name == "config.json" and self.base is not None and not os.path.lexists(own):
            return self.base.file(name)
        return own

    def reading(self, name: str) -> Path:
        """The path of a file that is about to be read, for `files_read` to name it."""
        path = self.file(name)
        if self.base is not None and path.parent == self.base.path:
            return self.base.reading(name)
        self._names_read.add(self._inner + name)
        return path

    @property
    def files_read(self) -> list[Path]:
        """The files that were read so far, in every folder that the model consists of: its results depend on these."""
        names = sorted(name for name in self._names_read if name.startswith(self._inner))
        paths = [self.path / name.removeprefix(self._inner) for name in names]
        for other in (self.base, self.adapter):
            paths += [] if other is None else other.files_read
        return paths

    def has(self, name: str) -> bool:
        """Whether there is such a file, or a link that should lead to one: that it leads nowhere is an error later."""
        return os.path.lexists(self.file(name))

    def value(self, name: str) -> Any:
        """The JSON value in a file, by the rules of `read_json`."""
        key = self._inner + name
        if key not in self._read:
            self._read[key] = read_json(self.reading(name))
        return self._read[key]

    def object(self, name: str) -> JsonSettings:
        """The JSON object in a file; what is in it is shared, so nobody changes it."""
        return JsonSettings(self.value(name), self.file(name))

    def optional(self, name: str) -> JsonSettings:
        """The same; empty where there is no such file."""
        return self.object(name) if self.has(name) else JsonSettings({}, self.file(name))

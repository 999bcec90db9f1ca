"""Read a model's files: `Folder`, JSON with checked settings, and the names of the files that hold weights.

Files are untrusted: they are read with limits on size, depth and numbers, and refused with an error of one sentence.
Not here: what the files mean (layout.py), and which file is downloaded (download.py).
"""

import json
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from bertcli.errors import BertcliError, quoted

JSON_LIMIT = 25_000_000  # bytes; real config and index files have 1 kB to 200 kB
VOCABULARY_LIMIT = 100_000_000  # bytes; the largest tokenizer.json and vocab.txt have about 20 MB
DIGIT_LIMIT = 40  # 2**63 has 19 digits, the 1e30 of old tokenizer configs 31; longer numbers take quadratic time
POINTER = b"version https://git-lfs.github.com/spec/"  # Git LFS leaves this text in place of a file it has not fetched


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading. Errors: BertcliError for a folder, a pipe, a Git LFS pointer, a missing file."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # checked first: opening a pipe would wait for a writer
            raise BertcliError(f"{path} is not a file: put the real file in its place.")
        file = path.open("rb")
        if file.peek(len(POINTER)).startswith(POINTER):
            file.close()
            raise BertcliError(f"{path} is a Git LFS pointer, not the file: run `git lfs pull` where you cloned it.")
        return file
    except FileNotFoundError:
        advice = "is a link to a file that no longer exists" if path.is_symlink() else "is missing"
        raise BertcliError(f"{path} {advice}: fetch the model again.") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise BertcliError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


class JsonSettings(dict[str, Any]):
    """A JSON object in a file, as a dict with methods that check the type of a setting.

    Errors: BertcliError naming the file, for a value that is not an object, and for a setting of another type.
    """

    def __init__(self, values: Any, file: Path) -> None:
        if not isinstance(values, dict):
            advice = "correct it, or use another model"
            raise BertcliError(f"{file} is not a JSON object but {quoted(values)}: {advice}.")
        super().__init__(values)
        self.file = file

    def flag(self, key: str, default: bool) -> bool:
        """Read a setting that is true, false or absent."""
        value = self.get(key)
        if not isinstance(value, bool | None):
            raise BertcliError(f"{self.file} has the {key} {quoted(value)}: set it to true or false.")
        return default if value is None else value

    def positive(self, key: str) -> int | None:
        """Read a setting that is a whole number above 0, or absent."""
        value = self.get(key)
        if value is not None and (type(value) is not int or value < 1):
            raise BertcliError(
                f"{self.file} has the {key} {quoted(value)}: set it to a whole number above 0 or to null."
            )
        return value

    def text(self, key: str, default: str = "") -> str:
        """Read a setting that is a text, or absent."""
        value = self.get(key)
        if not isinstance(value, str | None):
            raise self.refused(key, ", which is not a text")
        return value or default

    def words(self, key: str, default: list[str]) -> list[str]:
        """Read a setting that is a text, a list of texts, or absent."""
        value = self.get(key)
        words = default if value is None else value
        if isinstance(words, str):
            words = [words]
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise self.refused(key, ", which are not words")
        return words

    def one_of(self, key: str, values: Sequence[str]) -> str:
        """Read a setting that is one of `values`; the first of them if it is absent."""
        value = self.get(key)
        if value is not None and value not in values:
            raise self.refused(key, f"; bertcli supports {', '.join(values)}")
        return values[0] if value is None else str(value)

    def refused(self, key: str, why: str = "") -> BertcliError:
        """Make the error for a setting that bertcli does not apply."""
        return unusable(self.file, f"has the {key} {quoted(self.get(key))}{why}")


def read_object(path: Path) -> JsonSettings:
    """Read the JSON object in a file; limits and errors as in `read_json`."""
    return JsonSettings(read_json(path), path)


def unusable(path: Path, what: str) -> BertcliError:
    """Make the error for a valid file that needs something that bertcli does not support."""
    return BertcliError(f"{path} {what}: use another model.")


def is_plain(name: str) -> bool:
    """True for a bare name, which cannot lead out of its folder, and for an empty one; false for any path."""
    return name not in (".", "..") and name.isprintable() and not any(mark in name for mark in '/\\:"')


def read_whole(path: Path, limit: int) -> bytes:
    """Read a whole regular file. Errors: BertcliError if it has more than `limit` bytes; the rest is not read."""
    with open_regular(path) as file:
        data = read_bytes(file, limit + 1, path)
    if len(data) > limit:
        raise BertcliError(f"{path} is larger than {limit:,} bytes, too large for such a file: use another model.")
    return data


def read_bytes(file: BinaryIO, count: int, path: Path) -> bytes:
    """Read the next `count` bytes, fewer at the end of the file. Errors: BertcliError for a disk error."""
    try:
        return file.read(count)
    except OSError as error:
        raise BertcliError(f"{path} cannot be read: {error.strerror or error}.") from error


def read_json(path: Path) -> Any:
    """Read the JSON value in a file of at most JSON_LIMIT bytes.

    Errors: BertcliError for bad UTF-8 or JSON, a key given twice, NaN or Infinity, a number of more than
    40 digits, or nesting deeper than Python's stack.
    """
    return parse_json(read_whole(path, JSON_LIMIT), path)


def parse_json(text: bytes, path: Path) -> Any:
    """Parse the contents of a JSON file; errors as in `read_json`."""
    try:
        return json.loads(
            text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_constant, parse_int=_whole_number
        )
    except RecursionError:
        raise BertcliError(f"{path} is nested too deeply to be valid: use another model.") from None
    except ValueError as error:  # of UTF-8, of JSON, and of the three hooks
        raise BertcliError(f"{path} is not valid JSON ({error}): correct it, or fetch the model again.") from None


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Make a JSON object's dict; a key that occurs twice is an error, where json would keep the last."""
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the key {quoted(key)} occurs twice")
        result[key] = value
    return result


def _constant(word: str) -> float:
    """Refuse NaN and Infinity, which json would accept."""
    raise ValueError(f"{word} is not a JSON number")


def _whole_number(digits: str) -> int:
    """Convert a whole number of bounded length."""
    if len(digits) > DIGIT_LIMIT:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


# ---------------------------------------------------------------------------------------------------- the folder


class Folder:
    """The folder of a model, or of one of its modules. `path` is as the user gave it: errors name files below it.

    JSON files are read once and kept, even if they change on disk; `files_read` lists all files that were read. Pickles
    as its path. `adapter`: the folder of a LoRA adapter for the network. `base`: the folder with configuration and
    weights, for an adapter that was saved with sentence-transformers. `route`: the route of a Router whose modules
    count; "" for that of documents. `classifier`: the file of a classifier of one's own for the model.
    """

    def __init__(
        self,
        path: Path,
        base: "Folder | None" = None,
        adapter: "Folder | None" = None,
        route: str = "",
        classifier: Path | None = None,
    ) -> None:
        self.path, self.base, self.adapter, self.route, self.classifier = path, base, adapter, route, classifier
        self._inner = ""
        self._read: dict[str, Any] = {}
        self._names_read: dict[str, None] = {}

    def __repr__(self) -> str:
        return f"Folder({str(self.path)!r})"

    def __reduce__(self) -> tuple[type["Folder"], tuple[Any, ...]]:
        classifier = self.classifier and self.classifier.absolute()
        return Folder, (self.path, self.base, self.adapter, self.route, classifier)

    def resolved(self) -> "Folder":
        """Return a copy with an absolute path, which keeps what was read."""
        whole = self._at(self.path.resolve(), self._inner)
        whole.base, whole.adapter = self.base and self.base.resolved(), self.adapter and self.adapter.resolved()
        whole.route = self.route
        whole.classifier = self.classifier
        return whole

    @property
    def paths(self) -> list[Path]:
        """The folders of the model: its own, its base's, its adapter's."""
        return [folder.path for folder in (self, self.base, self.adapter) if folder is not None]

    def without_classifier(self) -> "Folder":
        """Return a copy without the classifier, which shares what was read."""
        other = self._at(self.path, self._inner)
        other.adapter, other.route = self.adapter, self.route
        return other

    def within(self, name: str) -> "Folder":
        """Return the folder of a module; this folder if the name is empty."""
        return self._at(self.path / name, f"{self._inner}{name}/") if name else self

    def _at(self, path: Path, inner: str) -> "Folder":
        """Return a Folder at another path that shares what was read; `inner` is its path within this one."""
        other = Folder(path, self.base)
        other._inner, other._read, other._names_read = inner, self._read, self._names_read
        return other

    @property
    def names(self) -> list[str]:
        """The names of the files in the folder; none if it does not exist."""
        return [file.name for file in self.path.glob("*") if file.is_file()]

    def file(self, name: str) -> Path:
        """Return the path of a file in the folder; for a config.json that is not there, the base's."""
        path = self.path / name
        if name == "config.json" and self.base is not None and not os.path.lexists(path):
            return self.base.file(name)
        return path

    def reading(self, name: str) -> Path:
        """Return the path of a file that the caller reads next, and add it to `files_read`."""
        path = self.file(name)
        if self.base is not None and path.parent == self.base.path:
            return self.base.reading(name)
        self._names_read[self._inner + name] = None
        return path

    @property
    def files_read(self) -> list[Path]:
        """The files that were read so far, in all `paths`: digests cover them, since results depend on them."""
        names = sorted(name for name in self._names_read if name.startswith(self._inner))
        paths = [self.path / name.removeprefix(self._inner) for name in names]
        for other in (self.base, self.adapter):
            paths += [] if other is None else other.files_read
        return paths if self.classifier is None else [*paths, self.classifier]

    def has(self, name: str) -> bool:
        """True if there is such a file or link. Reading a link that leads nowhere is an error."""
        return os.path.lexists(self.file(name))

    def value(self, name: str) -> Any:
        """Read the JSON value in a file, once; errors as in `read_json`."""
        key = self._inner + name
        if key not in self._read:
            self._read[key] = read_json(self.reading(name))
        return self._read[key]

    def object(self, name: str) -> JsonSettings:
        """Read the JSON object in a file. Values in it are shared by all callers: do not change them."""
        return JsonSettings(self.value(name), self.file(name))

    def optional(self, name: str) -> JsonSettings:
        """Read the JSON object in a file; empty if there is no such file."""
        return self.object(name) if self.has(name) else JsonSettings({}, self.file(name))


# ------------------------------------------------------------------------------------------- the files of weights

# Endings of files of tensors, and of those that are pickles. Opening, digests, copies and downloads read these lists.
STATE_DICTS = (".bin", ".pt")
TENSOR_ENDINGS = (".safetensors", *STATE_DICTS)
SINGLE_FILE, INDEX_FILE = "model.safetensors", "model.safetensors.index.json"
WEIGHT_FILES = (SINGLE_FILE, INDEX_FILE, "pytorch_model.bin", "pytorch_model.bin.index.json")  # the first that is there
ADAPTER_FILES = ("adapter_model.safetensors", "adapter_model.bin")  # of an adapter; the first that is there
INDEX_ENDING = ".index.json"


def weights_file(folder: Folder) -> Path | None:
    """Find the file of weights, or the index of shards, that is read: the first of WEIGHT_FILES in the folder."""
    return next((folder.file(name) for name in WEIGHT_FILES if folder.has(name)), None)


def shard_names(folder: Folder, name: str) -> dict[str, str]:
    """Read an index of shards: tensor name → file name. File names outside the folder are refused."""
    weight_map, index = folder.object(name).get("weight_map"), folder.file(name)
    if not isinstance(weight_map, dict):
        raise BertcliError(f"{index} has no weight_map of tensor and file names: use another model.")
    ending = Path(index.name.removesuffix(INDEX_ENDING)).suffix
    for tensor, file in weight_map.items():
        if not isinstance(file, str) or not file.endswith(ending) or not is_plain(file):
            raise BertcliError(
                f"{index} places tensor {quoted(tensor)} in {quoted(file)}, which is not a {ending} file in the same "
                "folder: do not use this model."
            )
    return weight_map

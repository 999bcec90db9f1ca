"""export: a model as an ONNX file, or as a folder that other libraries can open."""

from __future__ import annotations

import logging
import mmap
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from bertcli.engine.onnx import file as onnx_file
from bertcli.engine.onnx.graph import IDS, MASK, SEGMENTS
from bertcli.engine.onnx.session import Session, installed, require
from bertcli.engine.packing import pack
from bertcli.errors import BertcliError
from bertcli.files.draft import check_output
from bertcli.files.part import writing
from bertcli.network.module import parameters
from bertcli.tasks.graph import Wanted

if TYPE_CHECKING:
    from bertcli.model import Model

logger = logging.getLogger("bertcli")
Precision = Literal["float32", "float16", "int8"]
FILES: dict[Precision, str] = {  # the names that sentence-transformers and transformers.js look for
    "float32": "model.onnx",
    "float16": "model_fp16.onnx",
    "int8": "model_quantized.onnx",
}
LARGEST_DIFFERENCE = 1e-4  # from NumPy's numbers, in float32; relative to the largest number if that is above 1


class Exported(NamedTuple):
    """What was written, and how far its numbers are from NumPy's; None if that was not asked for."""

    file: Path
    bytes: int
    outputs: tuple[str, ...]
    difference: float | None


def export_file(
    model: Model,
    file: str | Path,
    *,
    head: str | None = None,
    pooling: str | None = None,
    normalize: bool | None = None,
    opset: int = 20,
    precision: Precision = "float32",
    check: bool | None = None,
) -> Exported:
    """Write a model as an ONNX file, whose inputs and outputs have the names that other tools expect.

    head, pooling: which results, see `Wanted.of`. precision: "float16" stores halves and computes with float32, "int8"
    quantizes the matrices, per channel. check: run it once beside NumPy (None: if onnxruntime is installed); a float32
    file that differs by more than 1e-4 is not kept. Errors: BertcliError if the packages of the extra are missing, for
    results that the model does not have, for a model without weights; OSError while writing.
    """
    check = installed("onnxruntime") if check is None else check
    require("onnx", *["onnxruntime"] * (check or precision == "int8"))
    if not model.has_weights:
        raise BertcliError(f"'{model.name}' has no weights to export: load a checkpoint.")
    check_output(str(file), (".onnx",))
    if not onnx_file.OLDEST_OPSET <= opset <= onnx_file.newest_opset():
        known = f"{onnx_file.OLDEST_OPSET} to {onnx_file.newest_opset()}"
        raise BertcliError(f"There is no opset {opset} here: choose from {known} (see opset, --opset).")
    wanted = Wanted.of(model, head, pooling, normalize)
    if wanted.plan is not None and model.sentence.prompt and not model.sentence.include_prompt:
        logger.warning(
            "this model leaves its prompt out of the pooling; a graph is not told where that ends, and includes it."
        )
    made = wanted.export(opset, half=precision == "float16")
    onnx_file.check(made)
    with writing(str(file)), draft_of(Path(file)) as draft:
        write_parts(made, draft)
        if precision == "int8":
            onnx_file.quantize(draft)
            Path(f"{draft}{onnx_file.DATA}").unlink(missing_ok=True)
        found = difference(wanted, draft) if check else None
        if found is not None and precision == "float32" and not found <= LARGEST_DIFFERENCE:
            raise BertcliError(f"The graph's results differ from NumPy's by {found:.1e}: please report this model.")
        size = sum(part.stat().st_size for part in draft.parent.iterdir())
    return Exported(Path(file), size, tuple(made.outputs), found)


def export_folder(model: Model, folder: str | Path, **options: Any) -> Exported:
    """Write a model into a folder that sentence-transformers (backend="onnx") and transformers.js can open.

    The graph lies in its folder onnx/, with the tokenizer, configuration and sentence-transformers' files of the model
    beside that. The options are those of `export_file`.
    """
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise BertcliError(f"Cannot write into {target}: it is a file; give a folder, or the name of a new one.")
    graphs = target / "onnx"
    graphs.mkdir(parents=True, exist_ok=True)
    exported = export_file(model, graphs / FILES[options.get("precision", "float32")], **options)
    if model.path is not None and model.path != target.resolve():
        for source in _small_files(model.path):
            place = target / source.relative_to(model.path)
            place.parent.mkdir(exist_ok=True)
            with draft_of(place) as draft:
                shutil.copyfile(source, draft)
    return exported


def _small_files(folder: Path) -> Iterator[Path]:
    """The files of a model that are none of weights, and the weights of sentence-transformers' modules."""
    for source in sorted(folder.iterdir()):
        if source.suffix in (".json", ".txt", ".model") and not source.name.endswith(".index.json"):
            yield source
        elif source.is_dir() and (source / "config.json").exists():
            yield from (one for one in sorted(source.iterdir()) if one.suffix in (".json", ".safetensors"))


def write_parts(made: onnx_file.Export, file: Path) -> None:
    """Write a graph's file; weights too large for one go into a second, beside it."""
    if onnx_file.size_of_weights(made) < onnx_file.LARGEST_FILE:
        with file.open("wb") as whole:
            onnx_file.write(made, whole)
        return
    with file.open("wb") as whole, Path(f"{file}{onnx_file.DATA}").open("wb") as data:
        onnx_file.write(made, whole, data, f"{file.name}{onnx_file.DATA}")


def difference(wanted: Wanted, file: Path) -> float:
    """The largest difference between a file's results and NumPy's, on two sentences of which one is padded.

    Relative to a result's largest number if that is above 1; NaN if there are such.
    """
    generator = np.random.default_rng(0)
    length = min(16, wanted.model.config.max_tokens)
    lengths = (length, max(1, length - 5))
    sentences = [_Sentence(generator, wanted.model, length) for length in lengths]
    inputs = {name: np.zeros((2, length), np.int64) for name in (IDS, SEGMENTS, MASK)}
    for row, one in enumerate(sentences):
        count = len(one.ids)
        inputs[IDS][row, :count], inputs[SEGMENTS][row, :count], inputs[MASK][row, :count] = one.ids, one.segments, 1
    there = inputs[MASK].astype(bool)
    results = wanted.numpy(pack(sentences))
    _let_go_of_weights(wanted.model)  # they are in memory a second time in a moment
    found = Session(file, packed=False)(inputs)
    differences = [0.0]
    for name, expected in results.items():
        got = found[name][there] if len(expected) == there.sum() else found[name]
        differences.append(float(np.abs(got - expected).max() / max(1.0, np.abs(expected).max())))
    return max(differences, key=lambda value: (np.isnan(value), value))


def _let_go_of_weights(model: Model) -> None:
    """Have the system take back the memory of mapped weights; what is used again is read from the file again."""
    owners = set[Any]()
    for one in parameters(model.network):
        owner: Any = one.array
        while isinstance(owner, np.ndarray):
            owner = owner.base
        owners.add(owner)
    for owner in owners:
        if isinstance(owner, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
            owner.madvise(mmap.MADV_DONTNEED)


class _Sentence:
    """Random tokens of the model's vocabulary."""

    def __init__(self, generator: np.random.Generator, model: Model, length: int) -> None:
        self.ids: list[int] = generator.integers(0, model.config.vocab_size, length).tolist()
        self.segments: list[int] = (np.arange(length) * model.config.segment_count // length).tolist()


@contextmanager
def draft_of(file: Path) -> Iterator[Path]:
    """A file to write, in a folder of its own beside the final one; at the end its parts are moved to their places.

    If something goes wrong, the folder disappears with whatever is in it.
    """
    with TemporaryDirectory(prefix=f".{file.name}.", dir=file.parent) as folder:
        yield Path(folder) / file.name
        for part in sorted(Path(folder).iterdir(), reverse=True):  # weights first, then the file that refers to them
            with part.open("rb") as written:
                os.fsync(written.fileno())
            os.replace(part, file.parent / part.name)

"""Vectors in files: the option --dtype of `bertcli encode`, what files of arrays can hold, and in which form."""

import json
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bertcli.cli.options import InputOptions, wrong
from bertcli.cli.output import OutputOptions
from bertcli.files.formats import ARRAYS, SINGLE
from bertcli.tasks.options import OWN, option
from bertcli.tasks.request import Request

# Every command of a task imports this file, so that the task encode is imported late.
if TYPE_CHECKING:
    from bertcli.files.write.vector_writer import VectorForm
    from bertcli.tasks.encode import EncodeOptions
    from bertcli.tasks.parts.prepared_task import PreparedTask

logger = logging.getLogger("bertcli")


@dataclass(frozen=True, eq=False, repr=False)
class VectorOutput(OutputOptions):
    """The output of vectors: records, or arrays of a type."""

    dtype: Literal["float32", "float16", "int8", "binary"] = option(
        "float32", "TYPE",
        "How arrays are stored: float32 (default), float16, int8 with one scale per row, binary: one bit per number.",
        panel=OWN,
    )  # fmt: skip

    def check_holds(self, options: "EncodeOptions", texts: InputOptions) -> None:
        """Refuse what the file cannot hold. Wrong usage is a typer.BadParameter."""
        given = options.output
        if self.dtype != "float32" and not given.has_type:
            raise wrong("--dtype", "this does not apply to sparse vectors: leave it out, or leave out --sparse.")
        if texts.id_column is not None and self.ending in SINGLE and not options.keep_going:
            why = f"a {self.ending} file cannot hold ids; .npz, .json, .jsonl and .parquet can (--output)."
            raise wrong("--id-column", why)
        if texts.keep is not None and self.ending in ARRAYS:
            why = f"a {self.ending} file has no columns; .csv, .tsv, .jsonl and .parquet have (--output)."
            raise wrong("--keep", why)
        if options.chunk is not None and (not given.one_each or self.ending in SINGLE):
            why = (
                "a part of a text has one vector (no --pooling none), and a .npy file cannot say which part it is of; "
                ".npz, .safetensors, .parquet and .jsonl can (--output)."
            )
            raise wrong("--chunk", why)
        if self.dtype != "float32" and self.ending not in given.arrays:
            raise wrong("--dtype", f"only a file of arrays has a type: write {', '.join(given.arrays)} (--output).")


def vector_form(request: Request, task: "PreparedTask[Any]", output: VectorOutput) -> "VectorForm":
    """The form in which a file of arrays stores the vectors of a task."""
    from bertcli.files.read.vector_reader import MODEL, SETTINGS
    from bertcli.weights.digest import fingerprint

    options: Any = request.options
    if output.dtype == "int8" and output.ending in SINGLE:
        logger.info("a .npy file holds one array, so the int8 scales are left out; cosines do not need them.")
    notes = {
        MODEL: fingerprint(task.model.name, task.model.files_read),
        SETTINGS: json.dumps({**task.settings, "dtype": output.dtype, "chunk": options.chunk}),
    }
    form: type[VectorForm] = options.output.form
    return form(
        task.width,
        output.dtype,
        chunked=options.chunk is not None,
        own_ids=request.texts.with_ids,
        kept=request.texts.kept,
        keep_going=options.keep_going,
        ending=output.ending,
        notes=notes,
    )

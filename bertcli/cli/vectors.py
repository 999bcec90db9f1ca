"""The options of `bertcli encode` about stored vectors (file, type, arrays), beside its task's options."""

import json
import logging
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from bertcli.cli.job import CommandRun, Job
from bertcli.cli.more import CommandExtras
from bertcli.cli.options import id_column_option, refuse, wrong
from bertcli.files.formats import ARRAYS, SEVERAL, SINGLE, TABLES, VECTOR_TABLES
from bertcli.report.tables import Table
from bertcli.tasks.options import PromptedOptions, option
from bertcli.tasks.registry import TaskSpec

if TYPE_CHECKING:
    from bertcli.files.write.vector_writer import VectorForm

NOT_SPARSE = ("--pooling", "--layer", "--normalize", "--truncate-dim", "--dtype")
logger = logging.getLogger("bertcli")


@dataclass(frozen=True, eq=False, repr=False)
class StorageOptions(CommandExtras):
    """The type of the vectors, dense or sparse, and the texts' ids."""

    dtype: Literal["float32", "float16", "int8", "binary"] = option(
        "float32", "TYPE",
        "How arrays are stored: float32 (default), float16, int8 with one scale per row, binary: one bit per number.",
    )  # fmt: skip
    id_column: str | None = id_column_option()
    sparse: bool = option(
        False, "", "Write sparse vectors: a weight for each word piece of the vocabulary (SPLADE, bge-m3)."
    )
    tokens: bool = option(False, "", "With --sparse: also write the word pieces, not only their numbers.")

    def adjust(self, spec: TaskSpec, job: Job, options: Any) -> tuple[TaskSpec, Job, Any]:
        self._refuse_contradictions(spec, job, options)
        if not self.sparse:
            return spec, job, options
        from bertcli.tasks.encode_sparse import SPEC, EncodeSparseOptions

        words = self.tokens or (job.output.is_table)
        shared = {field.name: getattr(options, field.name) for field in fields(PromptedOptions)}
        return SPEC, job, EncodeSparseOptions(**shared, words=words)

    def _refuse_contradictions(self, spec: TaskSpec, job: Job, options: Any) -> None:
        """Wrong usage is a typer.BadParameter."""
        if self.tokens and not self.sparse:
            raise wrong("--tokens", "this is about sparse vectors: add --sparse.")
        if self.sparse:
            why = "this does not apply to sparse vectors: leave it out, or leave out --sparse."
            refuse(options, NOT_SPARSE, why)
            refuse(self, NOT_SPARSE, why)
        if self.id_column is not None and job.output.ending in ARRAYS and not options.keep_going:
            why = f"a {job.output.ending} file cannot hold ids; .json, .jsonl and .parquet can (--output)."
            raise wrong("--id-column", why)
        if options.chunk is not None and (options.pooling == "none" or job.output.ending in SINGLE):
            why = (
                "a part of a text has one vector (no --pooling none), and a .npy file cannot say which part it is of; "
                ".npz, .safetensors, .parquet and .jsonl can (--output)."
            )
            raise wrong("--chunk", why)
        arrays = self._arrays(options)
        if self.dtype != "float32" and job.output.ending not in arrays:
            raise wrong("--dtype", f"only a file of arrays has a type: write {', '.join(arrays)} (--output).")

    def endings(self, table: Table, options: Any) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*TABLES, *self._arrays(options))))

    @classmethod
    def all_endings(cls, spec: TaskSpec) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*TABLES, *ARRAYS)))

    def _arrays(self, options: Any) -> tuple[str, ...]:
        """File endings that can hold these arrays: .npy only a single one, Parquet only one row per text."""
        if self.sparse:
            return (".npz", *VECTOR_TABLES)
        return SEVERAL if options.pooling == "none" else (*ARRAYS, *VECTOR_TABLES)

    def vector_form(self, run: CommandRun[Any], task: Any) -> "VectorForm | None":
        logger.info("%s.", task.summary)
        if run.job.output.ending not in self._arrays(run.task_options):
            return None
        from bertcli.files.read.vector_reader import MODEL, SETTINGS
        from bertcli.files.write.vector_writer import VectorForm
        from bertcli.weights.digest import signature

        job, options = run.job, run.task_options
        if self.dtype == "int8" and job.output.ending in SINGLE:
            logger.info("a .npy file holds one array, so the int8 scales are left out; cosines do not need them.")
        notes = {
            MODEL: signature(run.model.name, run.model.files_read),
            SETTINGS: json.dumps({**task.settings, "dtype": self.dtype, "chunk": options.chunk}),
        }
        return VectorForm(
            task.width,
            self.dtype,
            ragged=not self.sparse and options.pooling == "none",
            sparse=self.sparse,
            chunked=options.chunk is not None,
            own_ids=run.texts.with_ids,
            keep_going=options.keep_going,
            ending=job.output.ending,
            notes=notes,
        )

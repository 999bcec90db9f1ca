"""Job and CommandRun: open texts and model of a run command (encode, classify, …), and write its results resumably."""

import logging
import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from bertcli.cli.options import (
    MASKED_SAMPLE,
    EngineOptions,
    InputOptions,
    LongOptions,
    ModelOptions,
    by_name,
    name_of,
    refuse,
    wrong,
)
from bertcli.cli.output import OutputOptions, check_not_read
from bertcli.engine.memory import keep_memory
from bertcli.errors import BertcliError, number_of
from bertcli.files.formats import PAGE, check_output
from bertcli.report.written import say_written
from bertcli.tasks.options import ReadOptions
from bertcli.tasks.registry import Needs

if TYPE_CHECKING:
    from bertcli.files.texts import Texts
    from bertcli.files.write.record_writer import RecordForm, TableForm
    from bertcli.files.write.resumable_output import Fingerprint
    from bertcli.files.write.vector_writer import VectorForm
    from bertcli.loaded_model import LoadedModel
    from bertcli.report.tables import Table
    from bertcli.tasks.running.task import Progress, Record, Records, WindowResult

logger = logging.getLogger("bertcli")
MANY_WORDS = 4  # arguments of one word from which they are rather a text without quotes
B = TypeVar("B", bound="WindowResult")
W = TypeVar("W", bound=ReadOptions)
K = TypeVar("K", bound="LoadedModel")
ResultsFrom = Callable[["Texts", "Progress"], Generator[B, None, None]]


@dataclass(frozen=True, eq=False, repr=False)
class Job:
    """The options that every run command takes, as one group: input, model, output, work."""

    texts: InputOptions
    model: ModelOptions
    output: OutputOptions
    long: LongOptions
    engine: EngineOptions
    # Ends the message on a text that cannot be used.
    way_on: ClassVar[str] = " (--keep-going goes on without such texts.)"

    def begin(
        self,
        command: str,
        needs: Needs,
        task_options: W,
        endings: tuple[str, ...],
    ) -> "CommandRun[W]":
        """Open texts and model, and refuse, before any work, an output that cannot be written or resumed.

        `needs` names the model that runs if none is given, `task_options` are the task's. Wrong usage is a
        typer.BadParameter.
        """
        if needs.sample is None and self.model.model is None:
            what = f"there is no bundled model for {needs.task}; give one that fits, such as {needs.fitting}."
            raise wrong("--model", what)
        texts = self.read(task_options.keep_going)
        check_output(self.output.output, endings)
        self._refuse_long_run(texts, endings)
        if not task_options.keep_going:
            check_rows(texts)
        task_options = replace(task_options, workers=task_options.workers or "auto")
        prompt_name = getattr(task_options, "prompt_name", None)
        model = open_model(self.model, needs.sample or MASKED_SAMPLE, self.engine, prompt_name)
        return CommandRun(command, task_options, self, texts, model)

    def _refuse_long_run(self, texts: "Texts", endings: tuple[str, ...]) -> None:
        """Refuse --resume where it cannot work. Wrong usage is a typer.BadParameter."""
        if not self.long.resume:
            return
        if self.output.output is None:
            raise wrong("--resume", "--resume needs --output: only a result in a file can be continued.")
        if files_of(texts) is None:
            raise BertcliError("A pipe cannot be read a second time, so --resume needs the texts in a file (--input).")
        if self.output.is_page:
            works = ", ".join(endings[:-1])
            why = f"a {PAGE} page is written at the end, so --resume does not go with it; it works with {works}."
            raise wrong("--resume", why)

    def read(self, keep_going: bool) -> "Texts":
        return read_texts(self.texts, self.output, keep_going, way_on=self.way_on)

    def completed(self, options: Any) -> Any:
        """The task's options with what others say of them. Wrong usage is a typer.BadParameter."""
        return options

    @property
    def settings(self) -> dict[str, Any]:
        """The options beside the task's that affect the results: --resume compares them."""
        return {**by_name(self.texts), **by_name(self.engine)}


@dataclass(frozen=True, eq=False, repr=False)
class CommandRun(Generic[W]):
    """A run command at work, with its texts and its model open; it writes the results."""

    command: str
    task_options: W
    job: Job
    texts: "Texts"
    model: "LoadedModel"

    def write(self, results_from: "ResultsFrom[Records]", table: "Table") -> None:
        """Write records; `results_from(texts, progress)` gives them, from where `progress` has got to.

        Errors: as in `raise_if_failed`, once all is written.
        """
        file = self.job.output.output
        if file is None or self.job.output.is_page:
            progress = self._at_the_end(results_from, table)
        else:
            from bertcli.files.write.record_writer import record_form

            form = record_form(file, table, self._own_ids, self.task_options.keep_going)
            progress = self._into_file(form, results_from, lambda block: (block.records(),))
        self.raise_if_failed(progress)

    def _at_the_end(self, results_from: "ResultsFrom[Records]", table: "Table") -> "Progress":
        """Write records to standard output, or a page, which is complete at the end."""
        from bertcli.tasks.running.task import Progress

        output, progress = self.job.output, Progress()

        def records() -> "Generator[Record, None, None]":
            nonlocal progress
            streams = output.printed in ("jsonl", "csv") or table.line_of is not None
            with self.counted(results_from(self.texts, progress), streams) as blocks:
                for block in blocks:
                    progress = block.progress
                    yield from block.records()

        with closing(records()) as every:
            if output.output is None:
                from bertcli.files.write.print_records import print_records

                print_records(every, output.printed, table, self._own_ids, self.task_options.keep_going)
            else:
                from bertcli.files.write.save import save

                for record in every:
                    table.add(record)
                save(output.output, table.page(self.model.name).encode())
                say_written(output.output)
        return progress

    @property
    def _own_ids(self) -> bool:
        return self.job.texts.id_column is not None

    def write_vectors(self, form: "VectorForm", results_from: ResultsFrom[Any]) -> None:
        """Write blocks of vectors to a file of arrays; `results_from` as in `write`.

        Errors: as in `raise_if_failed`, once all is written.
        """

        def parts(block: Any) -> tuple[Any, ...]:
            return block.items, block.failures, block.vectors

        progress = self._into_file(form, results_from, parts, beside=form.beside)
        self.raise_if_failed(progress, form.failures_shown(str(self.job.output.output)))

    def raise_if_failed(self, progress: "Progress", where: str = "each one's record says why") -> None:
        """Raise BertcliError if there were texts that could not be used."""
        if progress.failed:
            raise BertcliError(
                f"{progress.failed:,} of {number_of(progress.texts, 'text')} could not be used; {where}."
            )

    def _into_file(
        self,
        form: "RecordForm | TableForm | VectorForm",
        results_from: ResultsFrom[Any],
        parts: Callable[[Any], tuple[Any, ...]],
        beside: bytes | None = None,
    ) -> "Progress":
        """Write blocks to a file from where an earlier run of it got to; the form takes `parts` of each."""
        from bertcli.files.write.resumable_output import ResumableOutput
        from bertcli.tasks.running.task import Progress

        files = files_of(self.texts)
        fingerprint = None
        if files is not None:
            fingerprint = cache(partial(self._fingerprint, files, self._model_files()))  # reads all these files
        with ResumableOutput(str(self.job.output.output), fingerprint, self.job.long.resume) as segments:
            progress = Progress(**(segments.state or {}))
            if not segments.complete:
                with self.counted(results_from(self.texts, progress)) as blocks:
                    for block in blocks:
                        progress = block.progress
                        segments.add(form.arrays(*parts(block)), progress._asdict())
                with segments.result(beside) as stream:
                    form.write(stream, segments)
            written = not segments.complete
        if written:
            say_written(str(self.job.output.output))
        return progress

    @contextmanager
    def counted(self, blocks: Generator[B, None, None], streams: bool = False) -> Iterator[Iterator[B]]:
        """`with run.counted(…) as blocks:` — pass blocks through, with a progress bar if standard error is a terminal.

        streams: each result is printed as soon as it is there; on a terminal there is then no bar.

        After an error the blocks are closed here rather than by Python's garbage collection, during which a Ctrl-C
        would be lost.
        """
        output, count = self.job.output, self.texts.count
        with closing(blocks):
            streams_to_terminal = output.output is None and streams and sys.stdout.isatty()
            if streams_to_terminal or not sys.stderr.isatty():
                yield blocks
                return
            from bertcli.report.progress import progress  # brings rich
            from bertcli.tasks.running.task import Records

            def reached(block: B) -> tuple[int, float | None]:
                done = block.progress.texts + (block.underway if isinstance(block, Records) else 0)
                if count:
                    return done, done / count
                share_read = self.texts.share_read()
                if share_read is None:
                    return done, None
                # Of what is read, some is computed later.
                return done, share_read * done / max(done, self.texts.read)

            with closing(progress(blocks, self.command, reached)) as counted:
                yield counted

    def _model_files(self) -> list[Path]:
        """The files that the model was opened from, before its first result: the same in every run of a command."""
        assert self.model.folder is not None
        classifier = self.model.classifier
        return [*self.model.folder.files_read, *([Path(classifier.file)] if classifier else [])]

    def _fingerprint(self, files: Sequence[Path], model_files: Sequence[Path]) -> "Fingerprint":
        import numpy

        import bertcli
        from bertcli.engine.threads import thread_count
        from bertcli.files.digest import digest

        job = self.job
        return {
            **job.settings,
            **by_name(self.task_options),
            "--input": None,  # files may be renamed
            "input": digest(files),
            "model": digest(model_files),
            "the command": self.command,
            "bertcli": bertcli.__version__,
            "numpy": numpy.__version__,
            "--threads": thread_count(),  # can change the last bit of a sum
        }


def files_of(source: "Texts") -> list[Path] | None:
    """The files that the texts come from; None if they cannot be read a second time (stdin)."""
    if source.files is None or not all(Path(file).is_file() for file in source.files):
        return None
    return [Path(file) for file in source.files]


# -------------------------------------------------------------------------------------------- model, texts


def open_model(
    options: ModelOptions, sample: str, engine: EngineOptions | None = None, prompt_name: str | None = None
) -> "LoadedModel":
    """Open the model of the options, or the bundled sample, with a note on stderr.

    prompt_name: may choose the adapter of a model that has one for each task. Wrong usage is a typer.BadParameter.
    """
    from bertcli.loaded_model import LoadedModel

    return open_as(LoadedModel, options, sample, engine, prompt_name)


def open_as(
    model_class: type[K],
    options: ModelOptions,
    sample: str,
    engine: EngineOptions | None = None,
    prompt_name: str | None = None,
    name_in_notes: bool = False,
) -> K:
    """Open a model as `open_model` does, as an instance of `model_class`, a subclass of LoadedModel such as `Model`.

    name_in_notes: begin each note with the model's name, for commands that open several.
    """
    keep_memory()
    computing = asdict(engine) if engine else {}
    model = model_class.load(**options.load_arguments(sample), **computing, prompt_name=prompt_name)
    for note in model.notes:
        logger.info("%s", f"{model.name}: {note}" if name_in_notes else note)
    return model


def read_texts(
    options: InputOptions,
    output: OutputOptions,
    keep_going: bool = False,
    called: str = "text",
    way_on: str = "",
) -> "Texts":
    """Open the texts of the options: arguments, files (none of which may be the output), or stdin.

    `called` is the word for a text in messages, `way_on` ends the message on a text that cannot be used. Wrong usage is
    a typer.BadParameter.
    """
    files = options.input or []
    if options.texts and files:
        raise wrong("--input", f"give {called}s or --input, not both.")
    _check_columns(options)
    if options.texts:
        return _from_arguments(options, called, way_on)
    if not files and (sys.stdin is None or sys.stdin.isatty()):
        raise wrong(called.upper(), f"give a {called}, a file with --input, or pipe {called}s in, one per line.")
    from bertcli.files.read.inputs import from_files
    from bertcli.files.texts import STANDARD_INPUT

    names = _option_names(options)
    texts = from_files(
        files or [STANDARD_INPUT],
        options.column,
        options.pair_column,
        options.text_pair,
        id_column=options.id_column,
        keep_going=keep_going,
        options=(names["column"], names["pair_column"]),
        own_pair=_takes_pairs(options),
        rows_piped=_names_columns(options),
        header=not options.no_header,
        delimiter=options.delimiter,
        headerless="no_header" not in getattr(options, "not_offered", ()),
        way_on=way_on,
    )
    check_not_read(output.output, texts.files or ())
    return texts


def check_rows(texts: "Texts") -> None:
    """Read files to their ends before any work, so that a bad row is told at once; a pipe is read only once.

    Reading takes a small part of the time of computing. Errors: BertcliError naming the first row that cannot be used.
    """
    if texts.files:
        for _ in texts.rows:
            pass


def _names_columns(options: InputOptions) -> bool:
    """True if an option is about columns, so that a pipe has rows of them."""
    named = (options.column, options.pair_column, options.id_column, options.delimiter)
    return options.no_header or any(name is not None for name in named)


def _takes_pairs(options: InputOptions) -> bool:
    """True if the command offers second texts, and none are named."""
    offered = any(field.name == "pair_column" and field.init for field in fields(options))
    return offered and options.pair_column is None and options.text_pair is None


def _option_names(options: InputOptions) -> dict[str, str]:
    """The names on the command line of a group's fields; a command may call them otherwise."""
    return {field.name: name_of(field) for field in fields(options)}


def _check_columns(options: InputOptions) -> None:
    """Refuse options about fields, columns and formats that the input does not have.

    Wrong usage is a typer.BadParameter.
    """
    files = options.input or []
    names = _option_names(options)
    if options.text_pair is not None and options.pair_column is not None:
        raise wrong(names["pair_column"], f"give {names['text_pair']} or {names['pair_column']}, not both.")
    columns = {
        names["column"]: options.column,
        names["pair_column"]: options.pair_column,
        "--id-column": options.id_column,
    }
    given = [name for name, column in columns.items() if column is not None]
    if given:
        from bertcli.files.read.inputs import takes_columns

        if options.texts or not takes_columns(files):
            why = "this needs named fields: an --input file .jsonl, .csv, .tsv or .parquet, or a pipe of such rows."
            raise wrong(given[0], why)
    if options.no_header or options.delimiter is not None:
        from bertcli.files.read.inputs import are_separated

        if options.texts or not are_separated(files):
            why = "this is about columns: give a .csv or .tsv file (--input), or a pipe of such rows."
            refuse(options, ("--no-header", "--delimiter"), why)


def _from_arguments(options: InputOptions, called: str, way_on: str) -> "Texts":
    """The arguments as texts, with a note where one looks like a file that was meant to be read."""
    from bertcli.files.texts import STANDARD_INPUT, from_arguments

    texts = options.texts or []
    for text in filter(os.path.isfile, (*texts, options.text_pair or "")):
        logger.info("%r is taken as a text; to read the file of that name: -i %s", text, text)
    if len(texts) >= MANY_WORDS and called == "text" and not any(" " in text for text in texts):
        logger.info("%d texts of one word each; a text of several words stands in quotes.", len(texts))
    if STANDARD_INPUT in (*texts, options.text_pair):
        logger.warning("the %s '-' is taken literally; use -i - to read standard input.", called)
    return from_arguments(texts, options.text_pair, way_on)

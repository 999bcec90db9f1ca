"""What comes of a request, printed or written: records as they come, or vectors; a file so that it can be resumed."""

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bertcli.cli.inputs import files_of
from bertcli.cli.options import by_name
from bertcli.cli.output import OutputOptions
from bertcli.cli.reading import Given
from bertcli.errors import BertcliError, number_of
from bertcli.report.written import say_written
from bertcli.tasks.request import Request

if TYPE_CHECKING:
    from bertcli.files.texts import Texts
    from bertcli.files.write.resumable_output import Fingerprint, ResumableOutput
    from bertcli.files.write.rewritten import FolderForm, RewrittenForm
    from bertcli.files.write.vector_writer import VectorForm
    from bertcli.report.tables import Record, Table
    from bertcli.tasks.running.task import GroupResult, Progress, Task

B = TypeVar("B", bound="GroupResult")


@dataclass(frozen=True, eq=False, repr=False)
class TaskResults:
    """The results of a request whose model is open, and the options that say where they go."""

    request: Request
    task: "Task[Any]"
    given: Given

    def write_records(self, table: "Table") -> None:
        """Print records, or write them to a file, in the form of its ending. Errors: as in `_raise_if_failed`."""
        output, keep_going = self.given.output, self.request.options.keep_going
        if output.output is None or output.is_page:
            progress = self._at_the_end(table)
        else:
            if table.rewritten is not None:
                from bertcli.cli.rewritten import form_of

                rewritten = form_of(self.given, self.request.texts, table)
                if rewritten is not None:
                    self._write_again(rewritten)
                    return
            from bertcli.files.write.record_writer import record_form

            form = record_form(output.output, table, self._own_ids, keep_going, self._kept(table))
            progress = self._into_file(form, lambda block: (block.records(),))
        self._raise_if_failed(progress)

    def _write_again(self, form: "RewrittenForm | FolderForm") -> None:
        """Write what was read again, with other texts. Errors: as in `_raise_if_failed`."""
        from bertcli.cli.rewritten import publish

        to_end = partial(publish, form, str(self.given.output.output))
        progress = self._into_file(form, lambda block: (block.records(),), to_end)
        self._raise_if_failed(progress, "of a table such rows are left out, and such lines are empty")

    def write_vectors(self, form: "VectorForm") -> None:
        """Write blocks of vectors to a file of arrays. Errors: as in `_raise_if_failed`."""
        progress = self._into_file(form, lambda block: (block.items, block.failures, block.vectors), beside=form.beside)
        self._raise_if_failed(progress, form.failures_shown(str(self.given.output.output)))

    @property
    def _own_ids(self) -> bool:
        return self.given.texts.id_column is not None

    def _kept(self, table: "Table") -> list[str]:
        """The fields of the input's rows that are columns of a table: an id that it has no column for, and --keep."""
        has_no_id = self._own_ids and "id" not in table.in_files.keys
        return [*(["id"] if has_no_id else []), *self.request.texts.kept]

    def _at_the_end(self, table: "Table") -> "Progress":
        """Write records to standard output, or a page, which is complete at the end."""
        from bertcli.tasks.running.run import results
        from bertcli.tasks.running.task import START

        output, progress = self.given.output, START

        def records() -> "Generator[Record, None, None]":
            nonlocal progress
            streams = output.printed in ("jsonl", "csv") or table.line_of is not None
            computed = results(self.task, self.request.texts)
            with counted(computed, self.request.spec.name, self.request.texts, output, streams) as blocks:
                for block in blocks:
                    progress = block.progress
                    yield from block.records()

        with closing(records()) as every:
            if output.output is None:
                from bertcli.files.write.print_records import print_records

                print_records(
                    every, output.printed, table, self._own_ids, self.request.options.keep_going, self._kept(table)
                )
            else:
                from bertcli.files.write.save import save

                for record in every:
                    table.add(record)
                save(output.output, table.page(self.task.model.name).encode())
                say_written(output.output)
        return progress

    def _into_file(
        self,
        form: Any,
        parts: Callable[[Any], tuple[Any, ...]],
        publish: "Callable[[ResumableOutput], Callable[[], None]] | None" = None,
        beside: bytes | None = None,
    ) -> "Progress":
        """Write blocks to a file from where an earlier run of it got to; the form takes `parts` of each.

        form: a RecordForm, VectorForm or their like. publish: makes the result of the segments, and gives what says so;
        None: the form writes a file.
        """
        from bertcli.files.write.resumable_output import ResumableOutput
        from bertcli.tasks.running.run import results
        from bertcli.tasks.running.task import Progress

        texts, output = self.request.texts, self.given.output
        file = str(output.output)
        files = files_of(texts)
        fingerprint = None
        if files is not None:
            fingerprint = cache(partial(self._fingerprint, files, self._model_files()))  # reads all these files
        with ResumableOutput(file, fingerprint, self.given.long.resume) as segments:
            progress = Progress(**(segments.state or {}))
            computed = results(self.task, texts, progress)
            with counted(computed, self.request.spec.name, texts, output) as blocks:
                for block in blocks:
                    progress = block.progress
                    segments.add(form.arrays(*parts(block)), progress._asdict())
            if publish is not None:
                say = publish(segments)
            else:
                with segments.result(beside) as stream:
                    form.write(stream, segments)
                say = partial(say_written, file)
        say()
        return progress

    def _raise_if_failed(self, progress: "Progress", where: str = "each one's record says why") -> None:
        """Raise BertcliError if there were texts that could not be used."""
        if progress.failed:
            raise BertcliError(
                f"{progress.failed:,} of {number_of(progress.texts, 'text')} could not be used; {where}."
            )

    def _model_files(self) -> list[Path]:
        """The files that the model was opened from, before its first result: the same in every run of a command."""
        model = self.task.model
        assert model.folder is not None
        return model.folder.files_read

    def _fingerprint(self, files: Sequence[Path], model_files: Sequence[Path]) -> "Fingerprint":
        import numpy

        import bertcli
        from bertcli.engine.threads import thread_count
        from bertcli.files.digest import digest

        return {
            **by_name(self.given.texts),
            **by_name(self.given.engine),
            **by_name(self.request.options),
            "--dtype": getattr(self.given.output, "dtype", None),
            "choices": getattr(self.request.options, "choices", None),
            "--input": None,  # files may be renamed
            "input": digest(files),
            "model": digest(model_files),
            "the command": self.request.spec.name,
            "bertcli": bertcli.__version__,
            "numpy": numpy.__version__,
            "--threads": thread_count(),  # can change the last bit of a sum
        }


@contextmanager
def counted(
    blocks: Generator[B, None, None], command: str, texts: "Texts", output: OutputOptions, streams: bool = False
) -> Iterator[Iterator[B]]:
    """`with counted(…) as blocks:` — pass blocks through, with a progress bar if standard error is a terminal.

    streams: each result is printed as soon as it is there; on a terminal there is then no bar.

    After an error the blocks are closed here rather than by Python's garbage collection, during which a Ctrl-C
    would be lost.
    """
    with closing(blocks):
        streams_to_terminal = output.output is None and streams and sys.stdout.isatty()
        if streams_to_terminal or not sys.stderr.isatty():
            yield blocks
            return
        from bertcli.report.progress import progress  # brings rich
        from bertcli.tasks.running.task import Records

        def reached(block: B) -> tuple[int, float | None]:
            done = block.progress.texts + (block.underway if isinstance(block, Records) else 0)
            if texts.count:
                return done, done / texts.count
            share_read = texts.share_read()
            if share_read is None:
                return done, None
            # Of what is read, some is computed later.
            return done, share_read * done / max(done, texts.read)

        with closing(progress(blocks, command, reached)) as with_bar:
            yield with_bar

"""The work of a run command: from texts to results, on standard output or in a file whose writing can be resumed."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bertcli.cli.options import InputOptions, LengthOptions, LongOptions, OutputOptions, WorkOptions
from bertcli.cli.running import B, counted, read_texts
from bertcli.errors import BertcliError

if TYPE_CHECKING:
    from bertcli.inputs import Texts
    from bertcli.model import Model
    from bertcli.output.draft import Draft, State
    from bertcli.output.fingerprint import Fingerprint
    from bertcli.output.table import Table
    from bertcli.tasks import Accuracy, Records, RecordStream, Tally


@dataclass(frozen=True)
class Job:
    """What is asked for: texts, output, settings; `options` are the command's own options that affect the results."""

    command: str
    texts: InputOptions
    length: LengthOptions
    output: OutputOptions
    work: WorkOptions
    long: LongOptions
    options: Mapping[str, Any]

    def read(self, endings: tuple[str, ...], id_column: str | None = None, label_column: str | None = None) -> Texts:
        """The texts; a result that cannot be written, or resumed, is refused before any work."""
        from bertcli.output.files import check_output

        source = read_texts(self.texts, self.output, id_column, label_column, self.long.keep_going)
        if self.output.output is not None:
            check_output(self.output.output, endings)
        elif self.long.resume:
            raise typer.BadParameter(
                "--resume needs --output: only a result in a file can be continued.", param_hint="--resume"
            )
        if self.long.resume and _files(source) is None:
            raise BertcliError("A pipe cannot be read a second time, so --resume needs the texts in a file (--input).")
        return source

    @property
    def ending(self) -> str:
        """The ending of the output file; "" without a file."""
        return Path(self.output.output or "").suffix.lower()

    @property
    def reading(self) -> dict[str, Any]:
        """The arguments that tell every task how to read texts."""
        return {
            "max_length": self.length.max_length,
            "truncation": self.length.truncation,
            "batch_tokens": self.work.batch_tokens,
            "keep_going": self.long.keep_going,
            "workers": self.work.workers,
        }

    def draft(self, source: Texts, model: Model) -> Draft:
        """The unfinished output file."""
        from bertcli.output.draft import Draft

        assert self.output.output is not None
        files = _files(source)
        known = None if files is None else lambda: self._fingerprint(files, model)
        return Draft(self.output.output, known, self.long.resume)

    def counted(self, blocks: Generator[B, None, None], source: Texts) -> AbstractContextManager[Iterator[B]]:
        """The same blocks, counted by a progress bar and closed at the end."""
        return counted(blocks, self.command, source, len(self.texts.texts or ()) or None, self.output)

    def end(self, tally: Tally, where: str = "each one's record says why") -> None:
        """Raise BertcliError if there were texts that could not be used."""
        if tally.failed:
            raise BertcliError(f"{tally.failed:,} of {tally.texts:,} texts could not be used; {where}.")

    def _fingerprint(self, files: Sequence[Path], model: Model) -> Fingerprint:
        import numpy

        import bertcli
        from bertcli.output.fingerprint import digest, model_files
        from bertcli.team import thread_count

        assert model.path is not None
        return {
            "input": digest(files),
            "model": digest(model_files(model.path)),
            "the command": self.command,
            "bertcli": bertcli.__version__,
            "numpy": numpy.__version__,
            "--threads": thread_count(),  # can change the last bit of a sum
            "the texts": self.texts.texts,
            "--column": self.texts.column,
            "--pair-column": self.texts.pair_column,
            "--text-pair": self.texts.text_pair,
            "--max-length": self.length.max_length,
            "--truncation": self.length.truncation,
            "--batch-tokens": self.work.batch_tokens,
            "--keep-going": self.long.keep_going,
            **self.options,
        }


def reached(draft: Draft) -> Tally:
    """How far an earlier run got with a draft."""
    from bertcli.tasks import Tally

    state = draft.state or {}
    return Tally(**{key: value for key, value in state.items() if key in Tally._fields})


def run_records(
    job: Job,
    source: Texts,
    model: Model,
    table: Table,
    begin: Callable[[Tally], RecordStream],
    accuracy: Accuracy | None = None,
) -> Tally:
    """Write the records of `begin(tally)` to their destination; `accuracy`, if given, counts them all."""
    from bertcli.output.record_file import RecordFile
    from bertcli.output.records import record_output
    from bertcli.tasks import Tally

    if job.output.output is None:
        tally = Tally()
        with (
            record_output(job.output.format, None, table) as write,
            job.counted(begin(tally).blocks, source) as blocks,
        ):
            for block in blocks:
                tally = _shown(block, accuracy)
                for record in block.records:
                    write(record)
        return tally
    with job.draft(source, model) as draft:
        tally = reached(draft)
        if accuracy and draft.state:
            accuracy.counts = draft.state["accuracy"]
        if draft.whole:
            draft.publish_again()
            return tally
        file = RecordFile(draft, job.ending)
        with job.counted(begin(tally).blocks, source) as blocks:
            for block in blocks:
                tally = _shown(block, accuracy)
                file.append(block.records)
                draft.step(_state(tally, accuracy))
        draft.publish(file.finish())
    return tally


def _shown(block: Records, accuracy: Accuracy | None) -> Tally:
    if accuracy:
        accuracy.add(block.records)
    return block.tally


def _state(tally: Tally, accuracy: Accuracy | None) -> State:
    return {**tally._asdict(), **({"accuracy": [list(row) for row in accuracy.counts]} if accuracy else {})}


def _files(source: Texts) -> list[Path] | None:
    """The files the texts come from; None where they cannot be read a second time."""
    if source.files is None or not all(Path(file).is_file() for file in source.files):
        return None
    return [Path(file) for file in source.files]

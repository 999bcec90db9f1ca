"""What `score` takes beside its task's options: pairs are summed up, on standard error or on a page."""

from collections.abc import Generator
from logging import getLogger
from typing import TYPE_CHECKING, Any

from bertcli.cli.job import Job, Run
from bertcli.cli.more import More
from bertcli.cli.options import wrong
from bertcli.files.formats import PAGE
from bertcli.lean import lean_dataclass
from bertcli.report.tables import Table
from bertcli.report.written import say_written
from bertcli.tasks.options import option
from bertcli.tasks.registry import TaskSpec

if TYPE_CHECKING:
    from bertcli.files.texts import Texts
    from bertcli.tasks.compute.task import Progress, Records, Task

logger = getLogger("bertcli")


@lean_dataclass
class PairOptions(More):
    """How pairs are summed up."""

    by: str | None = option(None, "NAME", "With --pairs: sum up each group, too; this field names it, and is their id.")

    def of_run(self, spec: TaskSpec, job: Job, wanted: Any) -> tuple[TaskSpec, Job, Any]:
        if self.by is not None and not wanted.compare:
            raise wrong("--by", "groups are of pairs of texts: add --pairs.")
        return spec, job, wanted

    def settings(self, wanted: Any) -> dict[str, Any]:
        return {"--id-column": self.by}

    def endings(self, table: Table, wanted: Any) -> tuple[str, ...]:
        return (*super().endings(table, wanted), *((PAGE,) if wanted.compare else ()))

    def write(self, run: "Run[Any]", task: "Task[Any]", table: Table) -> None:
        if not run.wanted.compare:
            super().write(run, task, table)
            return
        from bertcli.evaluate.evaluators.minimal_pairs import CAUTION, preferences, sentences
        from bertcli.evaluate.report.page import evaluation_page
        from bertcli.files.shards import save
        from bertcli.tasks.compute.run import results
        from bertcli.tasks.compute.task import START

        records: list[dict[str, Any]] = []

        def kept(texts: "Texts", progress: "Progress") -> "Generator[Records, None, None]":
            for block in results(task, texts, progress):
                records.extend(block.records())
                yield block
            if any("error" not in record for record in records):
                for sentence in sentences(preferences(records, run.model.name)):
                    logger.info("%s", sentence)
            logger.info(CAUTION)

        if run.job.ending == PAGE:
            with run.counted(kept(run.texts, START)) as blocks:
                progress = [START, *(block.progress for block in blocks)][-1]
            page = evaluation_page(preferences(records, run.model.name), "Pairs", CAUTION, "the pairs that decide")
            save(str(run.job.output.output), page.encode())
            say_written(str(run.job.output.output))
            run.raise_if_failed(progress, "they are left out")
        else:
            run.write(kept, table)

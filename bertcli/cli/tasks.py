"""A command of every task's page."""

from typing import Any

from bertcli.cli.inputs import JOBS
from bertcli.cli.job import Job
from bertcli.cli.more import LabelOptions, More
from bertcli.cli.options import wrong
from bertcli.tasks.registry import Page, compute


def groups_of(page: Page) -> dict[str, Any]:
    """The groups of options of a page's command, by what `run` calls them."""
    more: type[More] = LabelOptions if page.reads.choices else More
    if page.vectors:
        from bertcli.cli.vectors import StorageOptions

        more = StorageOptions
    if page.compares:
        from bertcli.cli.pairs import PairOptions

        more = PairOptions
    return {"job": JOBS[page.reads], "wanted": page.options, "more": more}


def run(page: Page, job: Job, wanted: Any, more: More) -> None:
    """Run a task on the texts asked for."""
    page, job, wanted = more.of_run(page, job, wanted)
    table = page.table(wanted)
    format: str = job.output.format  # which a task that gives texts has one more of
    if format == "text" and table.line_of is None:
        raise wrong("--format", "text is for redacted texts: add --redact.")
    begun = job.begin(page.name, page.needs(wanted), wanted, more.settings(wanted), more.endings(table, wanted))
    more.write(begun, compute(page).plan(begun.model, begun.wanted), table)

"""Answers `score --pairs`, which `evaluate --task minimal-pairs` has taken over."""

from dataclasses import dataclass
from typing import Any

from bertcli.cli.job import Job
from bertcli.cli.more import CommandExtras
from bertcli.cli.options import wrong
from bertcli.tasks.options import option
from bertcli.tasks.registry import TaskSpec


@dataclass(frozen=True, eq=False, repr=False)
class PairOptions(CommandExtras):
    """The group of --pairs, which is answered with the command that does it now."""

    by: str | None = option(None, "NAME", "", hidden=True)

    def adjust(self, spec: TaskSpec, job: Job, options: Any) -> tuple[TaskSpec, Job, Any]:
        if options.compare or self.by is not None:
            name = "--pairs" if options.compare else "--by"
            raise wrong(name, f"bertcli {self._instead(job, options)} does that now.")
        return spec, job, options

    def _instead(self, job: Job, options: Any) -> str:
        """The command that replaces this one, with its arguments."""
        texts = job.texts
        words = ["evaluate", *(texts.input or ["pairs.csv"]), "--task", "minimal-pairs"]
        given = {"--column": texts.column, "--pair-column": texts.pair_column, "--by": self.by, "-m": job.model.model}
        if options.metric != "pll":
            given["--metric"] = options.metric
        for name, value in given.items():
            words += [] if value is None else [name, value]
        return " ".join(words)

    def settings(self, options: Any) -> dict[str, Any]:
        return {}

"""The command merge. files/merge.py joins the files."""

import logging
from dataclasses import dataclass

from bertcli.cli.options import argument
from bertcli.report.written import say_written
from bertcli.tasks.options import option

logger = logging.getLogger("bertcli")


@dataclass(frozen=True, eq=False, repr=False)
class MergeOptions:
    """The files to merge, and the merged file."""

    files: list[str] = argument(..., "FILE...", "The files of all shards, or a quoted pattern.")
    output: str = option(..., "FILE", "The file to write, with the same ending.", "-o", "--output")


def merge(options: MergeOptions) -> None:
    """Make one file of those that the shards of a run have written.

    bertcli encode -i corpus.jsonl -o vectors.npy --shard 0/2
    bertcli encode -i corpus.jsonl -o vectors.npy --shard 1/2
    bertcli merge 'vectors-*-of-00002.npy' -o vectors.npy

    The shards may run at the same time, on several machines with the same number of
    threads. In a job array that counts from 0:
    --shard $SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT. Each shard's file has a
    companion that ends in .shard; keep the two together. The merged file is, byte
    for byte, what the run writes without --shard. If a shard is missing, damaged or
    comes from another run, the message names it, and nothing is written.
    """
    from bertcli.files.merge import merge

    count = merge(options.files, options.output)
    say_written(options.output)
    logger.info("%s joined into %s.", "1 shard is" if count == 1 else f"{count} shards are", options.output)

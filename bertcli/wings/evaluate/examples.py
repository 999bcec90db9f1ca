"""Examples of `bertcli evaluate` for `bertcli info`."""

from collections.abc import Iterator

from bertcli.tasks.examples import Example, Subject

# By task, a file for the example of `evaluate`. The first task that a model can run counts.
LABELLED = {
    "rank": "candidates.jsonl",
    "tag": "tags.conll",
    "answer": "squad.json",
    "fill-mask": "masks.csv",
    "classify": "labels.csv",
    "encode": "pairs.csv",
}


def examples(subject: Subject) -> Iterator[Example]:
    """Yield an evaluation on labelled data of the kind that suits the model."""
    file = next((file for task, file in LABELLED.items() if subject.runs(task)), None)
    if file is not None:
        yield Example("evaluate", [file])

"""`bertcli info FILE` for a classifier file that `bertcli probe -o` wrote: its record, and the table made of it."""

import os
from typing import Any

from bertcli.classifier import Classifier, read_classifier
from bertcli.errors import quoted
from bertcli.report.intervals import written

COMMANDS = ("classify", "explain", "evaluate", "serve")


def classifier_info(file: str) -> dict[str, Any]:
    """The record of a classifier file. Errors: BertcliError for a file that holds none."""
    classifier = read_classifier(file)
    return {
        "classifier": file,
        "model": classifier.model,
        "digest": classifier.digest,
        "labels": list(classifier.labels),
        "problem_type": classifier.problem_type,
        "layer": classifier.layer,
        "pooling": ",".join(classifier.pooling),
        "normalize": classifier.normalize,
        "prompt": classifier.prompt,
        "limit": classifier.max_length,
        "bytes": os.path.getsize(file),
        "figures": classifier.figures,
        "made_with": {name: text for name, text in classifier.made.items() if name != "figures"},
        "commands": [{"command": command, "example": _example(command, classifier)} for command in COMMANDS],
    }


def classifier_table(record: dict[str, Any]) -> list[tuple[str, str]]:
    """The record as (name, text) lines of a table; lines with an empty text are left out."""
    several = ", of which a text may have several" if record["problem_type"].startswith("multi") else ""
    normalized = ", vectors of length 1" if record["normalize"] else ""
    layer = f"layer {record['layer']}" if record["layer"] else "the embeddings"
    lines = {
        "Kind": "classifier of a model's states, made by bertcli probe",
        "Model": quoted(record["model"]),
        "Reads": f"{layer}, pooling {record['pooling']}{normalized}",
        "Labels": f"{', '.join(map(quoted, record['labels']))}{several}",
        "Limit": f"{record['limit']:,} tokens",
        "Prepended": quoted(record["prompt"]) if record["prompt"] else "",
        "Figures": _figures(record["figures"]),
        "Made with": ", ".join(f"{name} {text}" for name, text in record["made_with"].items()),
        "Size": f"{record['bytes']:,} bytes",
    }
    return [(name, text) for name, text in lines.items() if text]


def _figures(figures: dict[str, Any]) -> str:
    """The cross-validated accuracy with its interval; "" if the file's figures are incomplete or no shares."""
    # The figures come from a file's metadata, which anybody may have written.
    accuracy = figures.get("accuracy")
    numbers = [accuracy.get(end) for end in ("value", "low", "high")] if isinstance(accuracy, dict) else []
    if len(numbers) != 3 or not all(isinstance(number, int | float) and 0 <= number <= 1 for number in numbers):
        return ""
    shown = written(dict(zip(("value", "low", "high"), numbers, strict=True)))
    texts, folds, best_of = (figures.get(name) for name in ("texts", "folds", "best_of"))
    return (
        f"accuracy {shown.together} over {quoted(folds)} folds of {quoted(texts)} texts; "
        f"the best of {quoted(best_of)} layers and poolings on these folds"
    )


def _example(command: str, classifier: Classifier) -> str:
    """A command line that uses the classifier."""
    what = {"evaluate": " labels.csv", "serve": ""}.get(command, ' "I loved every minute of it."')
    return f"bertcli {command} -m {classifier.model} --classifier {classifier.file}{what}"

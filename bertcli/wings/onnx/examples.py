"""Examples of `bertcli export` for `bertcli info`."""

from collections.abc import Iterator

from bertcli.tasks.examples import Example, Subject, accepts
from bertcli.wings.onnx.export import GraphResults
from bertcli.wings.onnx.export_options import ExportOptions


def examples(subject: Subject) -> Iterator[Example]:
    """Yield an export of the model, if its results can be a graph."""
    if accepts(lambda: GraphResults.of(subject.model, ExportOptions())):
        yield Example("export", ["-o", "model.onnx"])

"""The command export: its options and messages. wings/onnx/export.py makes the files."""

import logging
import os
from dataclasses import dataclass, replace
from typing import Literal

from bertcli.cli.options import ONE_FILE, ModelOptions, wrong
from bertcli.files.formats import ending_of
from bertcli.names import MASKED_SAMPLE
from bertcli.report.written import say_written
from bertcli.tasks.options import argument, option
from bertcli.wings.onnx.export_options import ExportOptions, Precision

logger = logging.getLogger("bertcli")
ONNX = ".onnx"
FILES = (".bin", ".json", ".npz", ".ort", ".pt", ".pth", ".safetensors", ".tflite")  # that other tools write


@dataclass(frozen=True, eq=False, repr=False)
class FileOptions:
    """The file or folder that export writes."""

    words: list[str] | None = argument(
        None, "[MODEL] [FILE]", "What -m and -o name: bertcli export bert-base-uncased bert.onnx."
    )
    output: str | None = option(
        None, "FILE.onnx|FOLDER",
        "The ONNX file to write, or a folder. A folder is what sentence-transformers and transformers.js open.",
        "-o", "--output", once=ONE_FILE,
    )  # fmt: skip
    dtype: Literal["float32", "float16", "int8"] = option(
        "float32", "TYPE",
        "How weights are stored: float32 (default), float16 (half the size) or int8 (a quarter). "
        "The graph computes in float32.",
    )  # fmt: skip
    int8: bool = option(False, "", "Compute in int8, too: a quarter of the size, faster and less exact.")


def export(model: ModelOptions, target: FileOptions, options: ExportOptions) -> None:
    """Write a model as an ONNX file, without PyTorch.

    bertcli export -o model.onnx
    bertcli export bert-base-uncased bert.onnx
    bertcli export -m my-classifier -o small.onnx --int8
    bertcli export -m my-sentence-model -o for-the-web

    Inputs are input_ids, attention_mask and, where the model has segments,
    token_type_ids, of any batch and length. Outputs are logits, sentence_embedding,
    or last_hidden_state and pooler_output. It needs pip install 'bertcli[onnx]':
    onnx writes the file, onnxruntime checks it.
    """
    model, target = _by_position(model, target)
    if not target.output:
        raise wrong("--output", "give a file (-o model.onnx) or a folder (-o my-folder).")
    if target.int8 and target.dtype != "float32":
        raise wrong(f"--int8 and --dtype {target.dtype}", "--int8 stores weights in int8, too: leave out --dtype.")
    from bertcli.loaded_model import LoadedModel
    from bertcli.wings.onnx.export import export_file, export_folder

    opened = LoadedModel.load(**model.load_arguments(MASKED_SAMPLE), text=False)
    stored: Precision = "int8-stored" if target.dtype == "int8" else target.dtype
    options = replace(options, precision="int8" if target.int8 else stored)
    if ending_of(target.output) in (ONNX, *FILES):  # which export_file refuses: a folder of such a name is a mistake
        graph = export_file(opened, target.output, options)
    else:
        graph = export_folder(opened, target.output, options)
    say_written(graph.file if ending_of(target.output) == ONNX else target.output)
    checked = "" if graph.difference is None else f"; its numbers differ from NumPy's by at most {graph.difference:.1e}"
    logger.info("%s gives %s%s.", graph.file, " and ".join(graph.outputs), checked)


def _by_position(model: ModelOptions, target: FileOptions) -> tuple[ModelOptions, FileOptions]:
    """The options with the model and the file that have no option before them. Wrong usage is a typer.BadParameter."""
    words = [*(target.words or [])]
    if words and not target.output and (len(words) == 2 or ending_of(words[0]) == ONNX):
        target = replace(target, output=words.pop())
    # A model that the environment names is the one that is used unless another is given.
    if words and model.model in (None, os.environ.get("BERTCLI_MODEL")):
        model = replace(model, model=words.pop(0))
    if words:
        raise wrong("[MODEL] [FILE]", f"{words[0]!r} is one too many: give a model and a file, as in MODEL model.onnx.")
    return model, target

"""bertcli export"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Literal

import typer

from bertcli.cli.options import ModelOptions, argument, wrong
from bertcli.tasks.options import option

logger = logging.getLogger("bertcli")


@dataclass(frozen=True)
class ExportOptions:
    """What is written, and where."""

    file: str | None = argument(None, "[FILE.onnx]", "Where to write the graph.")
    output: str | None = option(
        None, "FOLDER", "Write a folder for sentence-transformers and transformers.js instead of a file.",
        "-o", "--output",
    )  # fmt: skip
    head: str | None = option(
        None, "NAME",
        "The head that gives logits, as in classifier or mlm; none: hidden states. "
        "(default: the one the model was made for)",
    )  # fmt: skip
    pooling: Literal["auto", "mean", "cls", "max", "pooler", "none"] | None = option(
        None, "HOW",
        "Give a vector for each text: auto (as the model's files say), mean, cls, max, pooler; or none. "
        "(default: auto for sentence models)",
    )  # fmt: skip
    normalize: bool | None = option(
        None, "", "Scale it to length 1. (default: as the model's files say)", "--normalize/--no-normalize"
    )
    opset: int = option(20, "N", "Version of ONNX's operators, from 18. (default: 20)")
    dtype: Literal["float32", "float16", "int8"] = option(
        "float32", "TYPE",
        "How weights are stored: float32 (default), float16: half the size, int8: a quarter. They are computed with in "
        "float32.",
    )  # fmt: skip
    int8: bool = option(False, "", "Compute in int8, too: a quarter of the size, faster and less exact.")
    check: bool | None = option(
        None, "", "Run it once beside NumPy. (default: if onnxruntime is installed)", "--check/--no-check"
    )


def export(model: ModelOptions, wanted: ExportOptions) -> None:
    """Write a model as an ONNX file, without PyTorch.

    bertcli export model.onnx
    bertcli export -m bert-base-uncased bert.onnx
    bertcli export -m my-classifier small.onnx --int8
    bertcli export -m my-sentence-model -o for-the-web

    Inputs are input_ids, attention_mask and, where the model has segments,
    token_type_ids, of any batch and length; outputs are logits,
    sentence_embedding, or last_hidden_state and pooler_output.
    It needs the packages of an extra: onnx, and onnxruntime to check the file.
    """
    if bool(wanted.file) == bool(wanted.output):
        raise typer.BadParameter("give the name of a file, or a folder with -o.")
    if wanted.output is not None and wanted.output.lower().endswith(".onnx"):
        raise wrong("--output", f"this is a folder; for a file leave it out: bertcli export {wanted.output}.")
    if wanted.int8 and wanted.dtype != "float32":
        raise wrong(f"--int8 and --dtype {wanted.dtype}", "what is computed in int8 is stored so.")
    from bertcli.model import load
    from bertcli.tasks.export import export_file, export_folder

    opened = load(**model.wanted("bert-mini-mlm"), text=False)
    how: dict[str, Any] = {name: getattr(wanted, name) for name in ("head", "pooling", "normalize", "opset", "check")}
    how["precision"] = "int8" if wanted.int8 else "int8-stored" if wanted.dtype == "int8" else wanted.dtype
    made = export_file(opened, wanted.file, **how) if wanted.file else export_folder(opened, wanted.output or "", **how)
    checked = "" if made.difference is None else f"; its numbers differ from NumPy's by at most {made.difference:.1e}"
    logger.info("%s (%.1f MB) gives %s%s.", made.file, made.bytes / 1e6, ", ".join(made.outputs), checked)

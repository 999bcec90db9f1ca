"""bertcli export"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertcli.cli.command import command
from bertcli.cli.options import ModelOptions, option

if TYPE_CHECKING:
    from bertcli.tasks.export import Exported

logger = logging.getLogger("bertcli")


@command("export")
def export(
    model: ModelOptions,
    file: Annotated[
        str | None, typer.Argument(metavar="[FILE.onnx]", help="Where to write the graph.", show_default=False)
    ] = None,
    output: Annotated[
        str | None,
        option(
            None,
            "-o",
            "--output",
            metavar="FOLDER",
            help="Write a folder for sentence-transformers and transformers.js instead of a file.",
        ),
    ] = None,
    head: Annotated[
        str | None,
        option(
            None,
            "--head",
            metavar="NAME",
            help="The head that gives logits, as in classifier or mlm; none: hidden states. "
            "(default: the one the model was made for)",
        ),
    ] = None,
    pooling: Annotated[
        Literal["auto", "mean", "cls", "max", "pooler", "none"] | None,
        option(
            None,
            "--pooling",
            metavar="HOW",
            help="Give a vector for each text: auto (as the model's files say), mean, cls, max, pooler; or none. "
            "(default: auto for sentence models)",
        ),
    ] = None,
    normalize: Annotated[
        bool | None,
        option(None, "--normalize/--no-normalize", help="Scale it to length 1. (default: as the model's files say)"),
    ] = None,
    opset: Annotated[
        int, option(None, "--opset", metavar="N", help="Version of ONNX's operators, from 18. (default: 20)")
    ] = 20,
    dtype: Annotated[
        Literal["float32", "float16"],
        option(
            None, "--dtype", metavar="TYPE", help="How weights are stored: float32 (default) or float16, half the size."
        ),
    ] = "float32",
    int8: Annotated[bool, option(None, "--int8", help="Quantize matrices and tables: a quarter of the size.")] = False,
    check: Annotated[
        bool | None,
        option(None, "--check/--no-check", help="Run it once beside NumPy. (default: if onnxruntime is installed)"),
    ] = None,
) -> None:
    """Write a model as an ONNX file, without PyTorch.

    bertcli export model.onnx
    bertcli export -m bert-base-uncased bert.onnx
    bertcli export -m my-classifier small.onnx --int8
    bertcli export -m my-sentence-model -o for-the-web

    Inputs are input_ids, attention_mask and token_type_ids, of any batch and length;
    outputs are logits, sentence_embedding, or last_hidden_state and pooler_output.
    It needs the packages of an extra: onnx, and onnxruntime to check the file.
    """
    if (file is None) == (output is None):
        raise typer.BadParameter("give the name of a file, or a folder with -o.")
    if int8 and dtype == "float16":
        raise typer.BadParameter("matrices are stored as one or the other.", param_hint="--int8 and --dtype float16")
    from bertcli.model import load
    from bertcli.tasks.export import export_file, export_folder

    opened = load(**model.wanted("bert-mini-mlm", "no model given (-m); using the bundled %s."), text=False)
    options: dict[str, Any] = {
        "head": head,
        "pooling": pooling,
        "normalize": normalize,
        "opset": opset,
        "precision": "int8" if int8 else dtype,
        "check": check,
    }
    if output is not None:
        _report(export_folder(opened, output, **options))
    else:
        _report(export_file(opened, file or "", **options))  # fmt: skip


def _report(made: Exported) -> None:
    checked = "" if made.difference is None else f"; its numbers differ from NumPy's by at most {made.difference:.1e}"
    logger.info("%s (%.1f MB) gives %s%s.", made.file, made.bytes / 1e6, ", ".join(made.outputs), checked)

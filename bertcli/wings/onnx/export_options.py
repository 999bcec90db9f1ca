"""The options of export, for Python and the command. Its work is in export.py, beside this file."""

from dataclasses import KW_ONLY, dataclass
from typing import Literal

from bertcli.tasks.encode import Pooling
from bertcli.tasks.options import Checked, for_python, option

Precision = Literal["float32", "float16", "int8", "int8-stored"]


@dataclass(frozen=True, eq=False, repr=False)
class ExportOptions(Checked):
    """Options of an ONNX graph: its results, the type of its weights, and a check against NumPy.

    precision: "float16" and "int8-stored" store weights in fewer bits and compute in float32, "int8" multiplies in 8
    bits, which is faster and less exact. verify: run the graph once beside NumPy; in float32, one that differs by more
    than 1e-4 is refused.
    """

    _: KW_ONLY
    head: str | None = option(
        None, "NAME",
        "The head whose logits are the output, such as classifier or mlm; none: hidden states. "
        "(default: the one the model was made for)",
    )  # fmt: skip
    pooling: Pooling | None = option(
        None, "HOW",
        "Give a vector for each text: auto (as the model's files say), mean, cls, max, lasttoken, pooler; or none. "
        "(default: auto for sentence models)",
    )  # fmt: skip
    normalize: bool | None = option(
        None, "", "Scale the vector to length 1. (default: as the model's files say)", "--normalize/--no-normalize"
    )
    opset: int = for_python(20, "ONNX opset version, 18 or later. (default: 20)")
    precision: Precision = "float32"
    verify: bool | None = option(
        None, "", "Run it once beside NumPy. (default: if onnxruntime is installed)", "--verify/--no-verify"
    )

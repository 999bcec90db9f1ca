"""ONNX Runtime, the other engine: a watched pass becomes a graph (`exporter`), a graph becomes a file, a file runs.

engine           the object that computes a model's hidden states, and how exact its int8 is
open_session     a session for a network; **when a kept graph is of the same one**
pass_times       how long a pass takes
exactness        how far int8 is from float32; **from where on it is refused**
exporter, rules  from a pass to a graph: a rule for each op
graph, file      the graph, and how it is written
session          run a file; the cache of graphs; **when one goes**
command          the command export: its options and messages
doctor           what ONNX Runtime adds to `bertcli doctor`
examples         examples of `bertcli export` for `bertcli info`
export           a model as an ONNX file, or as a folder that other libraries can open; **which outputs and which
                  notes (metadata) a file has**
export_options   the options of export, for Python and the command
"""

from pathlib import Path

from bertcli.extensions import Command, Engine, Extension, Topic

WING = Extension(
    "onnx",
    commands=(
        Command(
            "export",
            "Evaluate and deploy",
            "Write a model as an ONNX file, without PyTorch.",
            module="bertcli.wings.onnx.command",
            position=3,
            other_words=("onnx", "convert", "quantize"),
        ),
    ),
    methods={"export": "bertcli.wings.onnx.export"},
    engines=(
        Engine(
            "onnx",
            "ONNX Runtime",
            "ONNX Runtime (pip install 'bertcli[onnx]'), which takes 0.5 s longer to start and is faster on many texts",
            "bertcli.wings.onnx.engine",
            served_with=("onnx", "onnxruntime"),
        ),
        Engine(
            "onnx-int8",
            "ONNX Runtime",
            "less exact, and 1.3 times as fast as onnx on a processor with AVX2, 2.7 times on one with VNNI",
            "bertcli.wings.onnx.engine",
        ),
    ),
    examples="bertcli.wings.onnx.examples",
    doctor="bertcli.wings.onnx.doctor",
    topics=(Topic(Path(__file__).parent / "guide" / "onnx.md", 6),),
    extra="onnx",
)

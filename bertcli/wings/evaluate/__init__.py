"""Evaluate models on labelled data, with confidence intervals, and compare them.

evaluation             the whole: models, data, figures, differences, the record; report/ shows it; **when --at-least is
                       not met**
options                the options of `bertcli evaluate`, and its tasks
load/                  data files and folders, as rows with labels
evaluators/            a task each: the fields of its rows, its figures, and a model run on them, as an Outcome
outcome                Outcome: arrays of results, and how figures are made of them
figures                figures by their names; statistics/, a room of the core, computes them; **which figures
                       `--at-least` takes**
comparison             differences of two models, and their p-values; **when a difference is significant**
minimal_pairs          which of two similar texts is likelier; **how a text is scored**
provenance             versions, digests and options of a run; **which options change a figure**
several                bertcli.evaluate; classifiers, each on the model that it was made for
command                open models, print and write the report; **which model is measured if none is given**
examples               examples of `bertcli evaluate` for `bertcli info`
"""

from pathlib import Path

from bertcli.extensions import Command, Extension, Topic

WING = Extension(
    "evaluate",
    commands=(
        Command(
            "evaluate",
            "Evaluate and deploy",
            "Measure a model on labelled texts, with confidence intervals; compare two models.",
            module="bertcli.wings.evaluate.command",
            position=1,
            other_words=("eval", "test", "benchmark"),
        ),
    ),
    names={"evaluate": "bertcli.wings.evaluate.several"},
    examples="bertcli.wings.evaluate.examples",
    topics=(Topic(Path(__file__).parent / "guide" / "evaluate.md", 4),),
)

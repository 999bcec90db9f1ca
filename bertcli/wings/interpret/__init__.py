"""Views of a model at work, by forward passes alone: explain, lens, heads, patch, probe, diff.

command   make the command of a view from its spec (specs/), and print its result or write it as a record or a page
examples  examples of the views for `bertcli info`: which of them can use a model, with texts that suit it; **which
          model has which view**
labelled  read the labelled texts of the view probe from a file
options   the options that several views share: maximum length (`CutOptions`) and the target (`TargetOptions`)
registry  find the specs of the views (explain, lens, heads, patch, probe, diff), of which command.py makes commands
"""

from pathlib import Path

from bertcli.extensions import Command, Extension, Topic

VIEWS = ("explain", "lens", "heads", "patch", "probe", "diff")

WING = Extension(
    "interpret",
    commands=(
        Command(
            "explain",
            "Interpret",
            "Occlusion: which words speak for a result, and which against it.",
            module="bertcli.wings.interpret.command",
            position=1,
            other_words=("occlusion", "attribute", "saliency"),
        ),
        Command(
            "lens",
            "Interpret",
            "Logit lens: what each layer would predict, and when the answer appears.",
            module="bertcli.wings.interpret.command",
            position=2,
            other_words=("logit-lens",),
        ),
        Command(
            "heads",
            "Interpret",
            "Attention heads: where each looks, and what the result loses without it.",
            module="bertcli.wings.interpret.command",
            position=3,
            other_words=("attention",),
        ),
        Command(
            "patch",
            "Interpret",
            "Activation patching: which layer and token carry the difference between two texts.",
            module="bertcli.wings.interpret.command",
            position=4,
            other_words=("activation-patching", "causal-tracing"),
        ),
        Command(
            "probe",
            "Interpret",
            "Linear probes: what each layer's states know about your labels; train a classifier from them.",
            module="bertcli.wings.interpret.command",
            position=5,
            other_words=("linear-probe",),
        ),
        Command(
            "diff",
            "Interpret",
            "Compare two models tensor by tensor and step by step; find where they first differ.",
            module="bertcli.wings.interpret.command",
            position=6,
            other_words=("compare",),
        ),
    ),
    names={name: f"bertcli.wings.interpret.compute.{name}" for name in VIEWS},
    examples="bertcli.wings.interpret.examples",
    topics=(Topic(Path(__file__).parent / "guide" / "interpret.md", 7, ("explain",)),),
)

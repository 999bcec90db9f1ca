"""Views of a model at work, by forward passes alone: explain, lens, heads, patch, probe, diff.

command    make the command of a view from its spec (specs/), and print its result or write it as a record or a page
examples   examples of the views for `bertcli info`: which of them can use a model, with texts that suit it; **which
           model has which view**
compute/   the work of the views: `measure` and `draw`
labelled   read the labelled texts of the view probe from a file
options    the options that several views share: maximum length (`CutOptions`) and the target (`TargetOptions`)
specs/     a spec for each view
view_spec  what the command of a view is made of: `ViewSpec`
"""

from pathlib import Path

from bertcli.extensions import Command, Extension, Topic


def _view(name: str, summary: str, *other_words: str) -> Command:
    """Declare a view: its spec in specs/ and its work in compute/ are found by its name."""
    return Command(name, "Interpret", summary, "bertcli.wings.interpret.command", other_words=other_words)


# In the order in which --help lists them.
VIEWS = (
    _view(
        "explain",
        "Occlusion: which words speak for a result, and which against it.",
        "occlusion",
        "attribute",
        "saliency",
    ),
    _view("lens", "Logit lens: what each layer would predict, and when the answer appears.", "logit-lens"),
    _view(
        "heads", "Attention heads: where each looks, and what the result loses without it.", "attention", "visualize"
    ),
    _view(
        "patch",
        "Activation patching: which layer and token carry the difference between two texts.",
        "activation-patching",
        "causal-tracing",
    ),
    _view(
        "probe",
        "Linear probes: what each layer's states know about your labels; train a classifier from them.",
        "linear-probe",
        "train",
        "finetune",
        "fine-tune",
    ),
    _view("diff", "Compare two models tensor by tensor and step by step; find where they first differ.", "compare"),
)

WING = Extension(
    "interpret",
    commands=tuple(view._replace(position=place) for place, view in enumerate(VIEWS, start=1)),
    names={view.name: f"bertcli.wings.interpret.compute.{view.name}" for view in VIEWS},
    examples="bertcli.wings.interpret.examples",
    topics=(Topic(Path(__file__).parent / "guide" / "interpret.md", 7, ("explain",)),),
)

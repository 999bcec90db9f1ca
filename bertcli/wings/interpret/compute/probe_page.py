"""The page and the figure of `bertcli probe`: accuracy by layer with intervals, and one layer's confusion matrix."""

from dataclasses import replace

from bertcli.analysis.layers import state_name
from bertcli.report.page import element, page, side_by_side, table
from bertcli.wings.evaluate.outcome import Curve
from bertcli.wings.evaluate.report.drawing import figure as figure_of
from bertcli.wings.evaluate.report.drawing import heat_map
from bertcli.wings.evaluate.report.figure import STYLE as FIGURE_STYLE
from bertcli.wings.evaluate.report.figure import curve_part
from bertcli.wings.evaluate.report.page import STYLE, confused, confusion_map, drawn
from bertcli.wings.interpret.compute.probe_result import Probe

# With fewer texts, an interval of the accuracy is wider than most differences between layers.
FEW_TEXTS = 100
TITLE = "Linear probes: what each layer knows"
LEAD = (
    "A probe shows what a linear classifier can read from a layer's states; it does not show that the model uses it. "
    "The bars at the points are 95 % intervals; majority is the share of the most frequent label, control "
    "the same probe on labels drawn at random (the mean of ten draws)."
)
CAPTION = "Accuracy of a linear classifier on each layer's states, with its 95 % interval"
FEW = f"With fewer than {FEW_TEXTS} texts, differences between layers are mostly chance."
# Layers that have their number below the picture; more would overlap.
MOST_NUMBERS = 13


def draw(view: Probe, model: str = "") -> str:
    """Draw the page."""
    document = view.document()
    sentences = list(document.below)
    if view.count < FEW_TEXTS and view.unit == "texts":
        sentences.append(FEW)
    paragraphs = [element("p", sentence) for sentence in sentences]
    # The second column has bars after its numbers, which the picture replaces.
    rows = [[state, accuracy.split()[0], *others] for state, accuracy, *others in document.rows]
    picture = element("figure", element("figcaption", CAPTION), drawn(_accuracy_curve(view)))
    columns = [replace(column, number=True) if column.name == "Accuracy" else column for column in document.columns]
    tables = [table("Layers", columns, rows)]
    # Where a text may have several labels, there is no matrix of one against another.
    if not view.multi_label:
        tables.append(confused(*_confusion(view)))
    return page(TITLE, side_by_side([picture, *paragraphs], tables), lead=LEAD, model=model, style=STYLE)


def figure(view: Probe, model: str = "") -> str:
    """Draw accuracy by layer, and the confusion matrix, as a figure."""
    parts = [curve_part(CAPTION, _accuracy_curve(view))]
    if not view.multi_label:
        parts.append(heat_map(confusion_map(*_confusion(view))))
    return figure_of(TITLE, parts, lead=LEAD, model=model, style=FIGURE_STYLE)


def _confusion(view: Probe) -> tuple[str, list[str], list[list[int]]]:
    """The name, the labels and the counts of the chosen layer's confusion matrix."""
    layer = view.layers[view.chosen]
    return f"Probe ({state_name(layer.layer)})", view.labels, layer.confusion.astype(int).tolist()


def _accuracy_curve(view: Probe) -> Curve:
    """Accuracy by layer with its intervals; beside it the majority's share, and the control."""
    layers = view.layers
    last = max(1, len(layers) - 1)
    across = [layer.layer / last for layer in layers]
    accuracy = [layer.accuracy.value for layer in layers]
    majority = [layer.majority for layer in layers]
    control = [layer.control for layer in layers]
    records = [layer.accuracy.record for layer in layers]
    every = -(-len(layers) // MOST_NUMBERS)
    names = ["" if layer.layer % every else str(layer.layer) for layer in layers]
    return Curve(
        title=TITLE,
        across="layer (0: embeddings)",
        up="accuracy",
        points=list(zip(across, accuracy, strict=True)),
        names=names,
        # A range without a width is not drawn.
        ranges=[
            (record["value"], record["value"]) if record["low"] is None else (record["low"], record["high"])
            for record in records
        ],
        beside=[list(zip(across, heights, strict=True)) for heights in (majority, control)],
        line_names=["accuracy", "majority", "control"],
    )

"""The page of `bertcli probe`: accuracy by layer with intervals, the table, and one layer's confusion matrix."""

from bertcli.analysis.layers import state_name
from bertcli.evaluate.outcome import Curve
from bertcli.evaluate.report.page import STYLE, confused, drawn
from bertcli.report.page import element, page, table
from bertcli.views.compute.probe import FEW_TEXTS, Probe

LEAD = (
    "A probe shows what a linear classifier can read from a layer's states, not that the model uses it. The line is "
    "accuracy with its 95 % interval over folds; dashed are the share of the most frequent label (majority, level) and "
    "the same probe on labels drawn at random (control: the mean of ten draws)."
)
FEW = f"With fewer than {FEW_TEXTS} texts, differences between layers are mostly chance."
NAMED = 13  # layers at most that have their number in the picture


def probe_page(view: Probe, model: str = "") -> str:
    """Draw the page."""
    layers, document, chosen = view.layers, view.document(), view.layers[view.shown]
    places = [one.layer / max(1, len(layers) - 1) for one in layers]
    accuracy, majority, control = (
        [*zip(places, shares, strict=True)]
        for shares in zip(*((one.accuracy.value, one.majority, one.control) for one in layers), strict=True)
    )
    step = -(-len(layers) // NAMED)
    names = ["" if one.layer % step else str(one.layer) for one in layers]
    ranges = [(one["low"], one["high"]) for one in (layer.accuracy.record for layer in layers)]
    title = "What each layer knows"
    curve = Curve(title, "layer (0: embeddings)", "accuracy", accuracy, False, names, ranges, [majority, control])
    sentences = [*document.below, *([FEW] if view.count < FEW_TEXTS and view.unit == "texts" else [])]
    told = [element("p", sentence) for sentence in sentences]
    rows = [[row[0], row[1].split()[0], *row[2:]] for row in document.rows]  # without bars
    if view.multi_label:  # a text may have several labels, so there is no matrix of one against another
        return page(
            title, drawn(curve), *told, table("Layers", document.columns, rows), lead=LEAD, model=model, style=STYLE
        )
    matrix = confused(f"Probe ({state_name(chosen.layer)})", view.labels, chosen.confusion.astype(int).tolist())
    content = drawn(curve), *told, table("Layers", document.columns, rows), matrix
    return page(title, *content, lead=LEAD, model=model, style=STYLE)

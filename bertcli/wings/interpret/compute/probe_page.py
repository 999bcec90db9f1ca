"""The page of `bertcli probe`: accuracy by layer with intervals, and one layer's confusion matrix."""

from bertcli.report.charts import STYLE, charted, confused
from bertcli.report.page import element, page, side_by_side, table
from bertcli.wings.interpret.compute.probe_result import Probe

# With fewer texts, an interval of the accuracy is wider than most differences between layers.
FEW_TEXTS = 100
TITLE = "Linear probes: what each layer knows"
LEAD = (
    "A probe shows what a linear classifier can read from a layer's states; it does not show that the model uses it. "
    "The bars at the points are 95 % intervals; majority is the share of the most frequent label, control "
    "the same probe on labels drawn at random (the mean of ten draws)."
)
FEW = f"With fewer than {FEW_TEXTS} texts, differences between layers are mostly chance."


def draw(view: Probe, model: str = "") -> str:
    """Draw the page."""
    document = view.document()
    sentences = list(document.below)
    if view.count < FEW_TEXTS and view.unit == "texts":
        sentences.append(FEW)
    paragraphs = [element("p", sentence) for sentence in sentences]
    # The second column has bars after its numbers, which the picture replaces.
    rows = [[state, accuracy.split()[0], *others] for state, accuracy, *others in document.rows]
    picture = charted(view.accuracy_curve)
    columns = [column._replace(number=True) if column.name == "Accuracy" else column for column in document.columns]
    tables = [table("Layers", columns, rows)]
    # Where a text may have several labels, there is no matrix of one against another.
    if not view.multi_label:
        tables.append(confused(*view.confusion))
    return page(TITLE, side_by_side([picture, *paragraphs], tables), lead=LEAD, model=model, style=STYLE)

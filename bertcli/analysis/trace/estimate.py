"""How long each step of a pass must take on a machine, from two rates: of products, and of memory (Williams, Waterman
and Patterson 2009, "Roofline").

    seconds = 2 MACs / (products) + bytes / (memory) + CALL

Of a product, bytes are those read and written, and those of two more passes over the result for every element-wise
operation; of any other step the larger of the two, since its operations are such passes.

Products and memory take turns here: OpenBLAS copies a weight before it multiplies, and NumPy goes through memory once
for each operation. CALL is what calling an op costs however small it is.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, floor, log10, sqrt
from typing import NamedTuple

from bertcli.analysis.trace.steps import ITEM, Account, Estimate, Rates, Step, folded
from bertcli.errors import BertcliError
from bertcli.report.page import Markup, element, html, page, table
from bertcli.report.terminal import Column

CALL = 40e-6  # seconds, measured
WIDTH, HEIGHT, MARGIN = 720, 420, 56  # of the picture, in its own units
LEAD = (
    "Each point is a step of the pass. To the right are steps with more arithmetic for every byte they read or write; "
    "the higher, the more arithmetic a second. The rising line is what memory allows, the level one what products "
    "allow; only what the caches hold can be above the former. Steps far below both are small: their calls cost most."
)


def rates_of(gflops: float | None, gbps: float | None) -> Rates:
    """Those of a machine; what is not given is measured on this one. Errors: BertcliError for a rate that is none."""
    for name, rate in (("gflops", gflops), ("gbps", gbps)):
        if rate is not None and not 0 < rate < float("inf"):
            raise BertcliError(f"A rate ({name}) of {rate:g} is not possible: it must be a number above 0.")
    if gflops is None or gbps is None:
        from bertcli.doctor import matrix_rate, memory_rate

        gflops = matrix_rate() / 1e9 if gflops is None else gflops
        gbps = memory_rate() / 1e9 if gbps is None else gbps
    return Rates(gflops, gbps)


def estimate(trace: Account, rates: Rates) -> None:
    """Give every step of a trace its estimate."""
    trace.rates = rates
    trace.steps[:] = [replace(step, estimate=_estimated(step, rates)) for step in trace.steps]


def _estimated(step: Step, rates: Rates) -> Estimate:
    moved, passes = step.read + step.bytes, 2 * ITEM * (step.flops - 2 * step.macs)
    products = 2 * step.macs / (1e9 * rates.gflops)
    memory = (moved + passes if step.macs else max(moved, passes)) / (1e9 * rates.gbps)
    bound = "products" if products > memory else "memory"
    return Estimate(step.read, step.bytes, step.flops / max(1, moved), bound, products + memory + CALL)


class Point(NamedTuple):
    """A step in the picture, or one step of all layers that do the same."""

    name: str
    intensity: float  # FLOPs for each byte
    gflops: float  # reached, by the measured time where there is one, else by the estimate
    bound: str
    seconds: float


def points(trace: Account) -> list[Point]:
    """The steps that compute anything."""
    points = []
    for block in folded(trace.steps, fold=True):
        for step in block.steps:
            if step.flops and step.estimate is not None:
                _, _, intensity, bound, estimated = step.estimate
                seconds = step.seconds or estimated
                name = f"{block.layers} {step.operation}".strip()
                points.append(Point(name, intensity, step.flops / seconds / 1e9, bound, seconds))
    return points


def roofline(trace: Account) -> str:
    """The steps of an estimated trace under the two lines of a machine, and their numbers."""
    if trace.rates is None:
        raise ValueError("a roofline is drawn of a trace that has estimates")
    steps = points(trace)
    names = ("Step", "FLOP/byte", "GFLOP/s", "ms", "Bound")
    columns = [Column(name, number=name not in ("Step", "Bound")) for name in names]
    rows = [
        [point.name, f"{point.intensity:.2f}", f"{point.gflops:.2f}", f"{1000 * point.seconds:.3f}", point.bound]
        for point in steps
    ]
    numbers = table("Steps in the order they run", columns, rows)
    picture = _picture(trace.rates, steps)
    return page("Roofline of a pass", picture, numbers, lead=LEAD, model=trace.model, style=STYLE)


DOT = (
    '<circle cx="{x:.1f}" cy="{y:.1f}" r="5" class="{bound}">'
    "<title>{name}: {gflops:.3g} GFLOP/s, {intensity:.3g} FLOP/byte</title></circle>"
)
LINE = '<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"></line>'
TEXT = '<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'
STYLE = """
.roof { max-width: 60rem; width: 100%; height: auto; }
.roof text { font-size: 12px; fill: currentColor; }
.roof line, .roof path { stroke: currentColor; fill: none; }
.roof .grid { opacity: 0.15; }
.roof circle { fill: #2b6cb0; opacity: 0.75; }
.roof circle.memory { fill: #c05621; }
"""


def _picture(rates: Rates, points: Sequence[Point]) -> Markup:
    ridge = rates.gflops / rates.gbps
    low, high = _decades([ridge, *(point.intensity for point in points)])
    bottom, top = _decades([rates.gflops, *(point.gflops for point in points)])

    def x(value: float) -> float:
        return MARGIN + (WIDTH - 2 * MARGIN) * (log10(value) - low) / (high - low)

    def y(value: float) -> float:
        return HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * (log10(max(value, 10.0**bottom)) - bottom) / (top - bottom)

    grid = [_line((x(10.0**i), y(10.0**bottom)), (x(10.0**i), y(10.0**top)), "grid") for i in range(low, high + 1)]
    grid += [_line((x(10.0**low), y(10.0**i)), (x(10.0**high), y(10.0**i)), "grid") for i in range(bottom, top + 1)]
    marks = [_text(x(10.0**i), HEIGHT - MARGIN + 16, f"{10.0**i:g}", "middle") for i in range(low, high + 1)]
    marks += [_text(MARGIN - 6, y(10.0**i) + 4, f"{10.0**i:g}", "end") for i in range(bottom, top + 1)]
    names = [_text(WIDTH / 2, HEIGHT - 12, "FLOP for each byte read or written", "middle"), _text(8, 20, "GFLOP/s")]
    start = max(10.0**low, 10.0**bottom / rates.gbps)
    middle = sqrt(start * ridge)
    lines = [
        _line((x(start), y(start * rates.gbps)), (x(ridge), y(rates.gflops))),
        _line((x(ridge), y(rates.gflops)), (x(10.0**high), y(rates.gflops))),
        _text(x(10.0**high), y(rates.gflops) - 6, f"products: {rates.gflops:.4g} GFLOP/s", "end"),
        _text(x(middle) - 10, y(middle * rates.gbps) - 6, f"memory: {rates.gbps:.4g} GB/s", "end"),  # no step is there
    ]
    dots = [html(DOT, x=x(point.intensity), y=y(point.gflops), **point._asdict()) for point in points]
    label = "Steps by arithmetic intensity and rate, under what memory and products allow; all numbers are below."
    parts = [*grid, *marks, *names, *lines, *dots]
    return element("svg", *parts, class_="roof", viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=label)


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """The powers of ten around these values."""
    return floor(log10(min(values))), max(ceil(log10(max(values))), floor(log10(min(values))) + 1)


def _line(start: tuple[float, float], end: tuple[float, float], kind: str = "roof-line") -> Markup:
    (x1, y1), (x2, y2) = start, end
    return html(LINE, x1=x1, y1=y1, x2=x2, y2=y2, kind=kind)


def _text(x: float, y: float, text: str, anchor: str = "start") -> Markup:
    return html(TEXT, x=x, y=y, text=text, anchor=anchor)

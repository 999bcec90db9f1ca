"""How long each step of a pass must take on a machine, from two rates: of products, and of memory (Williams, Waterman
and Patterson 2009, "Roofline").

    seconds = 2 MACs / (products) + bytes / (memory) + CALL

Of a product, bytes are those read and written, and those of two more passes over the result for every element-wise
operation; of any other step the larger of the two, since its operations are such passes.

Products and memory take turns here: OpenBLAS copies a weight before it multiplies, and NumPy goes through memory once
for each operation. CALL is what calling an op costs however small it is.
"""

from dataclasses import replace

from bertcli.analysis.trace.steps import ITEM, Account, Estimate, Rates, Step
from bertcli.errors import BertcliError

CALL = 40e-6  # seconds, measured


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
    intensity = step.flops / max(1, moved)
    bound = "products" if intensity > rates.gflops / rates.gbps else "memory"  # the ridge of the roofline
    return Estimate(step.read, step.bytes, intensity, bound, products + memory + CALL)

"""How products of stored weights are divided on each processor: token by token, in strips or whole, and by whom.

The rule is chosen by the processor's vendor and OpenBLAS's kernel; nothing is run for it. `kernels.product` computes by
it. `bertcli doctor` prints it, with the times that either way takes on the machine at hand; `python tests/bench --only
products` measures more sizes. The figures behind the rules are in .github/decisions/product_rules.md.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import NamedTuple

from bertcli.engine import blas
from bertcli.engine.threads import thread_count


class ProductRule(NamedTuple):
    """How products of stored weights are divided.

    strip_tokens     tokens up to which OpenBLAS reads a weight in place, cut into strips (kernels.multiply); None: as
                     many as its kernel for small matrices takes, 217 of BERT-base
    library_tokens   tokens of `Model.forward`'s batch from which on OpenBLAS divides each product among its own
                     threads; below, and with None everywhere, bertcli gives each core some outputs or texts
    measured_on      the machine; empty if none
    single_tokens    tokens up to which each is multiplied by itself (kernels.multiply_each)
    """

    strip_tokens: int | None
    library_tokens: int | None
    measured_on: str
    single_tokens: int = 0

    def in_strips(self, tokens: int) -> bool:
        """True if a weight is multiplied in strips with so many tokens."""
        return self.strip_tokens is None or tokens <= self.strip_tokens

    def __str__(self) -> str:
        """The rule in words, for `bertcli doctor`."""
        strips = {None: "strips of a weight as long as they fit", 0: "whole weights"}.get(
            self.strip_tokens, f"strips of a weight up to {self.strip_tokens} tokens"
        )
        if self.single_tokens:
            strips = f"token by token up to {self.single_tokens} tokens, {strips}"
        by = "bertcli divides them"
        if self.library_tokens is not None:
            by += f", from {self.library_tokens:,} tokens in a forward call OpenBLAS"
        measured = f"measured on {self.measured_on}" if self.measured_on else "no machine of this kind was measured"
        return f"{strips}; {by}; {measured}"


# By vendor, with an AVX-512 kernel of OpenBLAS: only these multiply small matrices in place.
RULES = {
    "AuthenticAMD": ProductRule(None, None, "AMD EPYC (Zen 4), SkylakeX, 2 cores"),
    "GenuineIntel": ProductRule(32, 1024, "Intel Xeon (Sapphire Rapids), SkylakeX, 2 cores"),
}
# What was slow on no machine.
UNKNOWN = ProductRule(32, None, "")
# OpenBLAS's AVX2 kernel, on every processor.
AVX2 = ProductRule(0, None, "AMD EPYC (Zen 3), Haswell, 2 cores", single_tokens=6)
OTHER_KERNEL = ProductRule(0, None, "")


def choose_rule(vendor: str, kernel: str | None) -> ProductRule:
    """The rule for a processor, by its vendor's name in /proc/cpuinfo, and OpenBLAS's kernel."""
    if kernel in blas.AVX512_KERNELS:
        return RULES.get(vendor, UNKNOWN)
    return AVX2 if kernel == blas.AVX2_KERNEL else OTHER_KERNEL


@cache
def product_rule() -> ProductRule:
    """The rule for this processor, and for the kernel that OpenBLAS uses."""
    return choose_rule(_vendor(), blas.kernel())


def _vendor() -> str:
    """The vendor as /proc/cpuinfo names it; Windows ends a variable with the same name."""
    return blas.processor()[0] or os.environ.get("PROCESSOR_IDENTIFIER", "").rpartition(", ")[2]


# ------------------------------------------------------------------------------------------- products by the library

_by_library: ContextVar[bool] = ContextVar("by_library", default=False)


def divided_by_library(tokens: int) -> bool:
    """True if the rule lets OpenBLAS divide the products of a batch, and OpenBLAS uses as many threads as bertcli.

    Only `Model.forward` asks: with OpenBLAS's threads the last bit of a sum depends on their number, and a run over
    texts writes the same bytes whatever the number of its processes.
    """
    least = product_rule().library_tokens
    return least is not None and tokens >= least and 1 < thread_count() == blas.usual_threads()


@contextmanager
def by_library(chosen: bool) -> Iterator[None]:
    """Let OpenBLAS divide the products inside this context, if chosen."""
    token = _by_library.set(chosen)
    try:
        yield
    finally:
        _by_library.reset(token)


def library_divides() -> bool:
    """True inside `by_library`."""
    return _by_library.get()

"""The command doctor: its options and its lines. bertcli/doctor.py finds and measures."""

import logging

from bertcli.cli.installed import plugin_list
from bertcli.cli.output import PrintOptions
from bertcli.report.documents import Document, flat, print_document
from bertcli.report.terminal import Column

logger = logging.getLogger("bertcli")
PRODUCTS = (
    Column("Tokens", number=True),
    Column("In strips", number=True),
    Column("Plain", number=True),
    Column("OpenBLAS's threads", number=True),
    Column("bertcli", number=True),
)


def doctor(options: PrintOptions) -> None:
    """Show what determines speed here: BLAS, its kernel, threads, measured rates.

    bertcli doctor
    bertcli doctor --format json
    """
    from bertcli.doctor import examine
    from bertcli.report.terminal import print_table, visible

    findings = examine()
    if installed := plugin_list():
        findings["plugins"] = installed
    if options.printed != "table":
        columns = (Column("Finding"), Column("Value"))
        rows = [(name, str(flat(value))) for name, value in findings.items()]
        print_document(Document(columns, rows, [], findings, [findings]), options.printed)
        return
    for name, value in findings.items():
        if name == "products":
            continue
        if value not in (None, []):
            if isinstance(value, bool):
                value = "yes" if value else "no"
            between = ", " if name == "plugins" else " "
            text = between.join(value) if isinstance(value, list) else str(value)
            print(f"{name.replace('_', ' '):26}{visible(text)}")
    print("\nMicroseconds of a product of BERT-base: with one thread in strips and plain, with all threads as")
    print("OpenBLAS divides it and as bertcli does.")
    print_table(PRODUCTS, [[_count(value) for value in row.values()] for row in findings["products"]])


def _count(value: int | None) -> str:
    """A cell of the table of products."""
    return "" if value is None else f"{value:,}"

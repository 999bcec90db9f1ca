"""What formats.py says that files hold is what the kinds of files can do."""

from bertcli.files.formats import HELD
from bertcli.files.kinds import KINDS, Arrays, Records, Rows, TextFile, Vectors


def test_formats_hold_what_their_kinds_can_do() -> None:
    assert KINDS.keys() == HELD.keys()
    for ending, kind in KINDS.items():
        can = {"texts": TextFile, "records": Records, "rows": Rows}
        held = {name for name, what in can.items() if isinstance(kind, what)}
        if isinstance(kind, Arrays):
            held.add("arrays" if kind.several else "array")
        elif isinstance(kind, Vectors):
            held.add("vectors")
        assert held == {*HELD[ending]}, ending

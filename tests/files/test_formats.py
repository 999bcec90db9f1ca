"""What formats.py says that files hold is what the kinds of files can do."""

from bertcli.files import arrays, kinds, parquet
from bertcli.files.formats import HELD

CAN = {"texts": kinds.Texts, "records": kinds.Records, "rows": kinds.Rows, "vectors": kinds.Vectors}


def test_formats_hold_what_their_kinds_can_do() -> None:
    every = kinds.KINDS | arrays.KINDS | parquet.KINDS
    assert every.keys() == HELD.keys()
    for ending, kind in every.items():
        held = {name.replace("arrays", "vectors").replace("array", "vectors") for name in HELD[ending]}
        assert held == {name for name, what in CAN.items() if isinstance(kind, what)}, ending
        assert kinds.kind_of(ending) is kind

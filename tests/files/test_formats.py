"""What formats.py says that files hold is what the kinds of files can do."""

from bertcli.files import held, kinds
from bertcli.files.formats import HELD

CAN = {"texts": held.TextFile, "records": held.Records, "rows": held.Rows, "vectors": held.Vectors}


def test_formats_hold_what_their_kinds_can_do() -> None:
    assert kinds.kind_of(".nonsense") is None
    assert kinds.LINES.keys() < HELD.keys()
    for ending, what in HELD.items():
        said = {name.replace("arrays", "vectors").replace("array", "vectors") for name in what}
        assert said == {name for name, kind in CAN.items() if isinstance(kinds.kind_of(ending), kind)}, ending

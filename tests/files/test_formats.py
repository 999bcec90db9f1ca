"""Each format can do what its class says that its files hold, and every ending is one format's."""

from collections import Counter

from bertcli.files.formats import BY_ENDING, FORMATS, RecordFormat, RowFormat, TextFormat, VectorFormat

CAN = {"texts": TextFormat, "records": RecordFormat, "rows": RowFormat, "vectors": VectorFormat}


def test_formats_can_do_what_their_files_hold() -> None:
    for format in FORMATS:
        said = {"vectors" if what in ("array", "arrays") else what for what in format.holds}
        assert said == {what for what, kind in CAN.items() if isinstance(format, kind)}, format
    assert set(Counter(ending for format in FORMATS for ending in format.endings).values()) == {1}
    assert ".nonsense" not in BY_ENDING

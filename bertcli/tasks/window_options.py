"""The options of tasks that read long texts in windows: answer, tag, keywords."""

from dataclasses import KW_ONLY, dataclass, field

from bertcli.tasks.options import ReadOptions, Truncation, for_python


@dataclass(frozen=True, eq=False, repr=False)
class WindowOptions(ReadOptions):
    """Options of tasks that read long texts in overlapping windows, and never cut them."""

    _: KW_ONLY
    max_length: int | None = for_python(None, "Read in windows of N tokens. (default: the model's limit)")
    truncation: Truncation = field(default="silent", init=False)
    stride: int | None = for_python(None, "How many tokens windows share. (default: a quarter)", least=0)

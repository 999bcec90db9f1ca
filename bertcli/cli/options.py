"""Options shared by several commands, in groups; a command takes a group as one parameter."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from typer import Argument, Option

logger = logging.getLogger("bertcli")
Text = Annotated[
    list[str] | None,
    Argument(
        metavar="[TEXT]...", help="Texts to work on; if none, one per line from standard input.", show_default=False
    ),
]


def option(
    panel: str | None, *names: str, help: str, metavar: str | None = "", show_default: bool = False, **settings: Any
) -> Any:
    """An option in a help panel (None: the command's own). `metavar`: "" for a switch, None for that of the type."""
    return Option(*names, help=help, metavar=metavar, show_default=show_default, rich_help_panel=panel, **settings)


# Options that more than one group has.
MaxLength = Annotated[
    int | None,
    option("Input", "--max-length", metavar="N", help="Cut texts to N tokens. (default: the model's own limit)"),
]
BatchTokens = Annotated[
    int | None,
    option("Work", "--batch-tokens", min=1, metavar="N", help="Tokens computed together. (default: 1536)"),
]
Threads = Annotated[
    int | None,
    option("Work", "--threads", min=1, metavar="N", help="Processor threads. (default: one per usable core)"),
]
IdColumn = Annotated[
    str | None,
    option(None, "--id-column", metavar="NAME", help="The field that identifies a text; it is copied to the output."),
]
CacheDir = Annotated[
    str | None, option("Model", "--cache-dir", metavar="DIR", help="Where downloaded models are kept.")
]
Offline = Annotated[bool, option("Model", "--offline", help="Never use the network: folder or cache only.")]


@dataclass(frozen=True)
class ModelOptions:
    """Which model runs."""

    model: Annotated[
        str | None,
        option("Model", "-m", "--model", envvar="BERTCLI_MODEL", metavar="DIR|HUB_ID", show_envvar=True,
               help="A folder, or a name on the Hugging Face Hub (default: a small bundled model)."),
    ] = None  # fmt: skip
    revision: Annotated[
        str | None, option("Model", "--revision", metavar="NAME", help="Branch, tag or commit on the Hub.")
    ] = None
    cache_dir: CacheDir = None
    offline: Offline = False

    def wanted(self, sample: str, note: str) -> dict[str, Any]:
        """Arguments for `load` and `find_model`; if the bundled sample is used, `note` is logged to say so."""
        if self.model is None:
            logger.info(note, sample)
        model = sample if self.model is None else self.model
        return {"model": model, "revision": self.revision, **self.fetching}

    @property
    def fetching(self) -> dict[str, Any]:
        """The arguments that say how any model is fetched."""
        return {"cache_dir": self.cache_dir, "offline": self.offline, "progress": True}


@dataclass(frozen=True)
class OwnModelOptions(ModelOptions):
    """Which model runs, for commands that no bundled model can do."""

    model: Annotated[
        str | None,
        option("Model", "-m", "--model", envvar="BERTCLI_MODEL", metavar="DIR|HUB_ID", show_envvar=True,
               help="A folder, or a name on the Hugging Face Hub; none is bundled."),
    ] = None  # fmt: skip


@dataclass(frozen=True)
class InputOptions:
    """Which texts are read."""

    names: ClassVar[tuple[str, str, str]] = ("--column", "--pair-column", "--text-pair")  # for messages

    texts: Text = None
    input: Annotated[
        list[str] | None,
        option("Input", "-i", "--input", metavar="FILE",
               help="Read texts from a .txt (one per line), .jsonl, .csv, .tsv or .parquet file, or a .gz of these; "
               "repeat for more files, or give a quoted pattern ('parts/*.jsonl'); - is standard input."),
    ] = None  # fmt: skip
    format_in: Annotated[
        Literal["txt", "jsonl", "csv", "tsv"],
        option("Input", "--format-in", metavar="FORMAT",
               help="What standard input holds: txt (default), one text per line; jsonl, csv or tsv, with --column."),
    ] = "txt"  # fmt: skip
    column: Annotated[
        str | None,
        option("Input", "--column", metavar="NAME", help="The field that holds the text. (default: text)"),
    ] = None
    text_pair: Annotated[
        str | None, option("Input", "--text-pair", metavar="TEXT", help="A second text to pair with every text.")
    ] = None
    pair_column: Annotated[
        str | None, option("Input", "--pair-column", metavar="NAME", help="The field that holds the second text.")
    ] = None


@dataclass(frozen=True)
class LengthOptions:
    """Where texts are cut."""

    max_length: MaxLength = None
    truncation: Annotated[
        Literal["warn", "error", "silent"],
        option("Input", "--truncation", metavar="MODE", help="When a text is cut: warn (default), error, or silent."),
    ] = "warn"

    @property
    def reading(self) -> dict[str, Any]:
        """The arguments that tell a task where to cut texts."""
        return {"max_length": self.max_length, "truncation": self.truncation}


@dataclass(frozen=True)
class WindowOptions(LengthOptions):
    """How a text beyond the limit is read; it is never cut."""

    max_length: Annotated[
        int | None,
        option("Input", "--max-length", metavar="N", help="Read in windows of N tokens. (default: the model's limit)"),
    ] = None
    truncation: Literal["silent"] = field(default="silent", init=False)
    stride: Annotated[
        int | None,
        option("Input", "--stride", min=0, metavar="N", help="How many tokens windows share. (default: a quarter)"),
    ] = None

    @property
    def reading(self) -> dict[str, Any]:
        """The arguments that tell a task how to read texts in windows."""
        return {"max_length": self.max_length, "stride": self.stride}


@dataclass(frozen=True)
class OutputOptions:
    """Where results go."""

    format: Annotated[
        Literal["table", "json", "jsonl"],
        option(
            "Output", "--format", metavar="FORMAT", help="table (default), json: one array, jsonl: one object per line."
        ),
    ] = "table"
    output: Annotated[
        str | None,
        option("Output", "-o", "--output", metavar="FILE", help="Write to a file; its ending decides the format."),
    ] = None


@dataclass(frozen=True)
class LongOptions:
    """How a run over many texts deals with interruptions and bad texts."""

    resume: Annotated[
        bool, option("Output", "--resume", help="Continue an interrupted run into the same --output file.")
    ] = False
    keep_going: Annotated[
        bool,
        option("Input", "--keep-going", help='Record a text that cannot be used with an "error" and continue.'),
    ] = False


@dataclass(frozen=True)
class SearchOptions:
    """What is searched for, and in which stored vectors."""

    query: Annotated[
        list[str] | None,
        option("Search", "--query", metavar="TEXT",
               help="Find the rows of --against nearest to this text; --input gives the texts of the rows."),
    ] = None  # fmt: skip
    against: Annotated[
        str | None,
        option("Search", "--against", metavar="FILE",
               help="Vectors made with the same options: .npy, .npz, .safetensors or .parquet, of any --dtype."),
    ] = None  # fmt: skip
    top_k: Annotated[
        int | None, option("Search", "--top-k", min=1, metavar="K", help="How many rows per query. (default: 5)")
    ] = None

    @property
    def given(self) -> bool:
        """Whether any of these options was given."""
        return any(value is not None for value in (self.query, self.against, self.top_k))


@dataclass(frozen=True)
class WorkOptions:
    """How the work is done; a result changes by a millionth of its largest number at most."""

    batch_tokens: BatchTokens = None
    threads: Threads = None
    workers: Annotated[
        int | None,
        option("Work", "--workers", min=1, metavar="N", help="Processes. (default: one for every 8 threads)"),
    ] = None


@dataclass(frozen=True)
class EngineOptions:
    """What computes."""

    engine: Annotated[
        Literal["numpy", "onnx"],
        option("Work", "--engine", metavar="NAME",
               help="numpy (default), or onnx: ONNX Runtime, an extra, which starts later and is faster on long runs."),
    ] = "numpy"  # fmt: skip
    precision: Annotated[
        Literal["float32", "int8"],
        option("Work", "--precision", metavar="TYPE",
               help="With --engine onnx: float32 (default), or int8, about twice as fast and less exact."),
    ] = "float32"  # fmt: skip
    device: Annotated[
        str,
        option("Work", "--device", metavar="NAME",
               help="With --engine onnx: cpu (default), cuda, coreml, directml, openvino or tensorrt; tested: cpu."),
    ] = "cpu"  # fmt: skip


@dataclass(frozen=True)
class DebugOptions:
    """What happens when something goes wrong."""

    debug: Annotated[bool, option("Work", "--debug", help="Show a traceback when something goes wrong.")] = False

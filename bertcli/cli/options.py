"""The groups of options that several commands share (model, input, work), declared as tasks declare theirs."""

import logging
import os
from collections.abc import Container
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ClassVar

import typer

from bertcli import extensions
from bertcli.names import SAMPLES
from bertcli.tasks.options import DELIMITER, NO_HEADER, argument, delimiter_named, offered, option, separated

logger = logging.getLogger("bertcli")
ONE_FILE = "a run writes one file: give -o once, and run it again for another form."


def models_here(begun: str) -> list[str]:
    """Shell completion: the models that need no download and whose names begin with `begun`."""
    from bertcli.folder.cache import cache_folder, cached

    names = dict.fromkeys([*SAMPLES, *(name for name, *_ in cached(cache_folder()))])
    return [name for name in names if name.startswith(begun)]


def by_name(group: Any) -> dict[str, Any]:
    """The values of a group's options by their names on the command line, lists as they are written there."""
    values = {}
    for member in offered(type(group)):
        value = getattr(group, member.name)
        values[member.shown_name] = ",".join(map(str, value)) if isinstance(value, list) else value
    return values


def given_options(group: Any) -> list[str]:
    """The names of a group's options that do not have their defaults."""
    return [member.shown_name for member in offered(type(group)) if getattr(group, member.name) != member.default]


def wrong(names: str, why: str) -> typer.BadParameter:
    """The error for wrong usage of options: the command ends with status 2."""
    return typer.BadParameter(why, param_hint=names)


def refuse(group: Any, names: Container[str], why: str) -> None:
    """Refuse those of a group's options that do not have their defaults. Wrong usage is a typer.BadParameter."""
    for name in given_options(group):
        if name in names:
            raise typer.BadParameter(why, param_hint=name)


def known_engine(name: str | None) -> str | None:
    """Check the name of an engine. Plugins are asked only for one that neither the core nor a wing has.

    Wrong usage is a typer.BadParameter.
    """
    if name not in (None, "numpy") and extensions.engine(name) is None:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(map(repr, extensions.engine_names()))}.")
    return name


def engines_begun(begun: str) -> list[str]:
    """Shell completion: the engines whose names begin with `begun`."""
    return [name for name in extensions.engine_names() if name.startswith(begun)]


@dataclass(frozen=True, eq=False, repr=False)
class CommonOptions:
    """The options of every command, before its name or after it; `bertcli --help` explains them.

    The number of threads changes a result by at most two millionths of its largest number.
    """

    panel: ClassVar = "Options of every command, before or after its name"
    offline: bool = option(False, "", "Never use the network: a model is a folder, or in the cache.")
    cache_dir: str | None = option(None, "DIR", "Where downloaded models are kept. (default: the Hub's cache)")
    threads: int | None = option(None, "N", "Processor threads. (default: one per usable core)", least=1)
    debug: bool = option(False, "", "Show a traceback when something goes wrong.")


NONE_GIVEN = CommonOptions()
# Those of the command that runs.
COMMON: ContextVar[CommonOptions] = ContextVar("common", default=NONE_GIVEN)


def models_given(models: list[str] | None) -> list[str]:
    """The models of a command that takes several, else that of BERTCLI_MODEL; none without either.

    Such a command's option does not name the variable: Typer would split its value at blanks, which a path may have.
    """
    return models or [name for name in (os.environ.get("BERTCLI_MODEL"),) if name]


@dataclass(frozen=True, eq=False, repr=False)
class ModelOptions:
    """The model."""

    panel: ClassVar = "Model"
    model: str | None = option(
        None, "DIR|HUB_ID", "A folder, or a name on the Hugging Face Hub (NAME@REVISION: of a branch, tag or commit; "
        "BASE+ADAPTER: with an adapter, LoRA of peft; BASE+FILE: with a classifier of probe -o). (default: a bundled "
        "model, if one fits)",
        "-m", "--model", envvar="BERTCLI_MODEL", show_envvar=True, autocompletion=models_here,
    )  # fmt: skip

    def load_arguments(self, sample: str, note: str = "no model given (-m); using the bundled %s.") -> dict[str, Any]:
        """Arguments for `load` and `Source`; if the bundled sample is used, `note` is logged to say so."""
        if self.model is None:
            logger.info(note, sample)
        return {
            "model": sample if self.model is None else self.model,
            **self.fetching,
        }

    @property
    def fetching(self) -> dict[str, Any]:
        """The arguments that say how any model is fetched."""
        common = COMMON.get()
        return {"cache_dir": common.cache_dir, "offline": common.offline, "progress": True}


@dataclass(frozen=True, eq=False, repr=False)
class InputOptions:
    """The texts: arguments, files, fields."""

    panel: ClassVar = "Input"
    texts: list[str] | None = argument(
        None, "[TEXT]...", "Texts to work on; if none, one per line from standard input."
    )
    input: list[str] | None = option(
        None, "FILE",
        "Read texts from a .txt (one per line), .jsonl, .csv, .tsv or .fasta file, a .gz of these, or .parquet; "
        "repeat for more files, or give a quoted pattern ('parts/*.jsonl') or a folder; - is standard input.",
        "-i", "--input",
    )  # fmt: skip
    column: str | None = option(
        None, "NAME", "The field that holds the text. (default: text) A pipe then has rows: CSV, TSV or JSON lines."
    )
    text_pair: str | None = option(None, "TEXT", "A second text to pair with every text.")
    pair_column: str | None = option(None, "NAME", "The field that holds the second text.")
    no_header: bool = option(False, "", NO_HEADER)
    delimiter: str | None = option(None, "CHAR", DELIMITER, read=delimiter_named)
    limit: int | None = option(None, "N", "Read the first N texts alone.", least=1)
    id_column: str | None = option(None, "NAME", "The field that identifies a text; it is copied to the output.")
    keep: list[str] | None = option(
        None, "A,B", "Copy these fields of the input to the output, too; all: every field.", read=separated
    )


@dataclass(frozen=True, eq=False, repr=False)
class LongOptions:
    """Resuming a long run."""

    resume: bool = option(
        False,
        "",
        "Continue an interrupted run into the same --output file; one that was finished is computed again.",
        panel="Output",
    )


@dataclass(frozen=True, eq=False, repr=False)
class EngineOptions:
    """The engine that computes the hidden states."""

    panel: ClassVar = "Work"
    engine: str = option("numpy", "NAME", "numpy (default).", callback=known_engine, autocompletion=engines_begun)

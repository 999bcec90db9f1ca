"""The model of a command, opened as its options say, with its notes on stderr."""

import logging
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bertcli.cli.options import EngineOptions, ModelOptions

if TYPE_CHECKING:
    from bertcli.loaded_model import LoadedModel

logger = logging.getLogger("bertcli")
K = TypeVar("K", bound="LoadedModel")


def open_model(
    options: ModelOptions, sample: str, engine: EngineOptions | None = None, prompt_name: str | None = None
) -> "LoadedModel":
    """Open the model of the options, or the bundled sample, with a note on stderr.

    prompt_name: may choose the adapter of a model that has one for each task. Wrong usage is a typer.BadParameter.
    """
    from bertcli.folder.hub import Source

    source = Source(**options.load_arguments(sample), prompt_name=prompt_name)
    # Before the code of networks is imported, so that a name that is wrong is told at once.
    folder = source.find()
    from bertcli.engines import NUMPY, EngineChoice
    from bertcli.loaded_model import LoadedModel

    model = LoadedModel.open(folder, source.name, engine=NUMPY if engine is None else EngineChoice(engine.engine))
    for note in model.notes:
        logger.info("%s", note)
    return model


def public_name(model: str) -> str:
    """Name a model for clients of a server: its name on the Hub, of a folder the last part.

    A path of this machine is nobody else's business.
    """
    parts = [model] if Path(model).exists() else model.split("+")
    return "+".join(Path(part).absolute().name if Path(part).exists() else part for part in parts)


def note_untrained(options: ModelOptions, model: "LoadedModel", uses: tuple[str, ...]) -> None:
    """Log a note if the model that was given was not trained for a work that has a bundled model.

    No `uses`: it is none of these.
    """
    if not uses or options.model is None:
        return
    from bertcli.capabilities import untrained

    if note := untrained(model, uses):
        logger.info("%s", note)


def open_as(
    model_class: type[K],
    options: ModelOptions,
    sample: str,
    engine: EngineOptions | None = None,
    prompt_name: str | None = None,
    name_in_notes: bool = False,
) -> K:
    """Open a model as `open_model` does, as an instance of `model_class`, a subclass of LoadedModel such as `Model`.

    name_in_notes: begin each note with the model's name, for commands that open several.
    """
    chosen = asdict(engine) if engine else {}
    model = model_class.load(**options.load_arguments(sample), **chosen, prompt_name=prompt_name)
    for note in model.notes:
        logger.info("%s", f"{model.name}: {note}" if name_in_notes else note)
    return model

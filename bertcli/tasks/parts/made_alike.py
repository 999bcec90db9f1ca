"""Were stored vectors made by this model, with these options and prompts? Asked before texts are compared with them."""

import logging
from collections.abc import Mapping
from typing import Any

from bertcli.errors import BertcliError, quoted
from bertcli.files.read.vector_reader import MODEL, StoredVectors
from bertcli.loaded_model import LoadedModel
from bertcli.tasks.compute.encode import SETTINGS, EncodeSteps
from bertcli.tasks.encode import EncodeOptions
from bertcli.weights.digest import fingerprint

logger = logging.getLogger("bertcli")


def check_made_alike(model: LoadedModel, stored: StoredVectors) -> None:
    """Raise BertcliError if another model made these vectors, or this one with options that are not its defaults."""
    settings = settings_of(model, stored)
    if settings is None:
        return
    if (unfit := unfit_prompt(model, stored, settings)) is not None:
        raise BertcliError(f"{unfit}.")
    model_settings = EncodeSteps.make(model, EncodeOptions()).settings
    for name in SETTINGS:
        if model_settings[name] != settings[name]:
            raise BertcliError(
                f"{stored.file} was made with --{name.replace('_', '-')} {quoted(settings[name])}, and not with "
                f"{quoted(model_settings[name])}, which is this model's: encode the texts again."
            )


def unfit_prompt(model: LoadedModel, stored: StoredVectors, settings: Mapping[str, Any]) -> str | None:
    """Say that vectors were made with another prompt than the model has for documents, and what to do; else None."""
    made_with, name = settings.get("prompt", ""), model.kind.prompt_name("document")
    expected = model.kind.prompt_text(name)
    if made_with == expected:
        return None
    how = f"with the prompt {quoted(made_with)}" if made_with else "without a prompt"
    remedy = f"--prompt-name {name}" if name else "the model's own prompt"
    return (
        f"{stored.file} was made {how}, and {model.name} has {quoted(expected)} for documents: encode the texts again "
        f"with {remedy}"
    )


def settings_of(model: LoadedModel, stored: StoredVectors) -> dict[str, Any] | None:
    """Read the settings that made the vectors; refuse another model's, and log if the file has no settings."""
    here = fingerprint(model.name, model.files_read)
    made_by = stored.notes.get(MODEL)
    settings = stored.settings
    # A fingerprint ends in a digest; the name before it may differ for the same files.
    if made_by is not None and here.split()[-1] != made_by.split()[-1]:
        raise BertcliError(
            f"{stored.file} was made by another model, {quoted(made_by)}, not by {quoted(here)}: give that one (-m), "
            "or encode the texts again."
        )
    if made_by is None or settings is None:
        logger.warning(
            "%s has no record of the model and options of its vectors: make sure that they are those of this command.",
            stored.file,
        )
    return settings

"""The command info: its lines and its record. analysis/info.py finds what they say."""

import os
from dataclasses import dataclass, replace
from typing import Any

from bertcli.cli.installed import plugin_list
from bertcli.cli.options import COMMON, ModelOptions, models_here, wrong
from bertcli.cli.output import PrintOptions
from bertcli.errors import BertcliError
from bertcli.report.documents import Document, print_document
from bertcli.report.terminal import Column, print_table, visible
from bertcli.tasks.options import argument

LISTED = (Column("Model"), Column("Where"), Column("Size", int), Column("What it is"))


@dataclass(frozen=True, eq=False, repr=False)
class InfoOptions(PrintOptions):
    """Of which model, and how it is shown."""

    name: str | None = argument(
        None,
        "[MODEL]",
        "A folder, or a name on the Hub, as with -m. (default: all that are here)",
        autocompletion=models_here,
    )


def info(model: ModelOptions, options: InfoOptions) -> None:
    """Show what a model is, and which commands can use it.

    bertcli info
    bertcli info bert-mini-sentence
    bertcli info my-folder --format json
    bertcli info -m sentence-transformers/all-MiniLM-L6-v2
    bertcli info my-encoder+mine.safetensors

    It shows the network, the files, the token limit, pooling, prompts and labels
    that a command would run with, and an example of each command that can use the
    model. For a model that does not run it says why.

    Without a model it lists the bundled ones, those in the Hub's cache, and plugins.
    """
    if options.name is not None:
        if model.model not in (None, options.name, os.environ.get("BERTCLI_MODEL")):
            raise wrong("MODEL", "give the model once: as an argument, or with -m.")
        model = replace(model, model=options.name)
    if model.model is None:
        from bertcli.analysis.info import listing, models_here

        models = models_here(COMMON.get().cache_dir)
        installed = plugin_list()
        record = {"models": models, "plugins": installed} if installed else {"models": models}
        if options.printed != "table":
            print_document(Document(LISTED, listing(models), [], record, models), options.printed)
            return
        print_table(LISTED, listing(models))
        if installed:
            print()
            print(visible(f"Plugins: {', '.join(installed)}"))
        return
    if os.path.isfile(model.model):
        from bertcli.kinds.read import base_of

        if base := base_of(model.model):
            raise BertcliError(
                f"{model.model} is a classifier for {base}: give both, bertcli info {base}+{model.model}."
            )
    from bertcli.folder.hub import Source

    folder = Source(**model.load_arguments("")).find()
    from bertcli.analysis.info import info, table

    record = info(folder, model.model)
    _show(record, "Model", model.model, table(record), options)


def _show(record: dict[str, Any], what: str, name: str, lines: list[tuple[str, str]], options: PrintOptions) -> None:
    """Print the record in a format for programs, or its lines and the commands for people."""
    columns = (Column(what), Column(name))
    if options.printed != "table":
        examples = [use["example"] for use in record["commands"]]
        print_document(Document(columns, lines, examples, record, [record]), options.printed)
        return
    print_table(columns, lines)
    for line in ("", "Commands that can use it:", *(f"  {use['example']}" for use in record["commands"])):
        if record["commands"]:
            print(visible(line))

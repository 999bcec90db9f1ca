"""What is said of words of a command line that are not understood: with what was meant, where that can be told.

other_tools.py has the names that other tools have for options. Names of commands are in the declaration of the command,
or in its task's spec (`other_words`).
"""

import os
from collections.abc import Sequence
from typing import Any

import typer

from bertcli.cli.options import wrong
from bertcli.cli.other_tools import answer, our_name
from bertcli.names import SAMPLES

# What the argument of a command is called that is a file.
FILES = ("DATA", "FILE")


def refuse_one_dash(command: Any, words: Sequence[str]) -> None:
    """Refuse -model for --model, which would be read as -m odel. Wrong usage is a typer.BadParameter."""
    options = names_of(command)
    for word in words[: words.index("--") if "--" in words else None]:
        name = word.partition("=")[0]
        if word.startswith("-") and name not in options and f"-{name}" in options:
            raise typer.BadParameter(f"there is no option {name}. Did you mean -{name}?")


def answered(error: typer.TyperException, command: Any) -> typer.TyperException:
    """The error for an option that a command does not have, with what to write; any other error as it is."""
    word = getattr(error, "option_name", None)
    options = names_of(command)
    if word is None or word in options:
        return error
    if ours := our_name(word, options):
        return typer.BadParameter(f"there is no option {word}. Did you mean {ours}?")
    written = next((str(parameter.help) for parameter in command.params if "-o" in parameter.opts), "")
    instead = answer(str(command.name), word, options, written)
    return wrong(word, f"{instead}.") if instead else error


def refuse_model_as_text(ctx: typer.Context) -> None:
    """Refuse a model given as an argument, with the right form. Wrong usage is a typer.BadParameter."""
    if ctx.params.get("model") or "BERTCLI_MODEL" in os.environ or "--model" not in names_of(ctx.command):
        return
    words: list[str] = []
    for parameter in ctx.command.params:
        if parameter.param_type_name == "argument":
            if "MODEL" in str(parameter.metavar):
                return
            value = ctx.params[str(parameter.name)]
            words += [value] if isinstance(value, str) else value or []
    first = next(iter([*words, *ctx.args]), None)
    if first is not None and is_model(first):
        aside = " To use it as a text, pipe it in." if words and not takes_file(ctx.command) else ""
        why = f"{first!r} is a model; a model is given with -m: bertcli {ctx.command.name} -m {first}.{aside}"
        raise typer.BadParameter(why, ctx=ctx)


def refuse_surplus(ctx: typer.Context) -> None:
    """Refuse an argument too many, with the right form. Wrong usage is a typer.BadParameter."""
    name, first = str(ctx.command.name), ctx.args[0]
    if name == "trace":
        why = f"one text is traced, and {first!r} is one more: quote a text, and pair two with --text-pair."
        raise typer.BadParameter(why, ctx=ctx)
    if option := option_for(first, ctx.command):
        why = f"{first!r} needs an option before it. Did you mean bertcli {name} {option}?"
        raise typer.BadParameter(why, ctx=ctx)
    ctx.fail(f"Got unexpected extra argument(s) ({' '.join(ctx.args)})")


def takes_file(command: Any) -> bool:
    """True if a command's argument is a file: nobody means a text there."""
    metavars = [parameter.metavar for parameter in command.params if parameter.param_type_name == "argument"]
    return any(str(metavar).strip("[]") in FILES for metavar in metavars)


def names_of(command: Any) -> set[str]:
    """The names of a command's options."""
    return {name for parameter in command.params for name in parameter.opts}


def option_for(word: str, command: Any) -> str | None:
    """The option before a word, and the word, for an argument too many; None if there is none that fits."""
    options = names_of(command)
    has_arguments = any(parameter.param_type_name == "argument" for parameter in command.params)
    if "--input" in options and not has_arguments:
        return f"-i {word}"
    if "--variant" in options and (variant := variant_of(word)):
        return f"--variant {variant}"
    return f"-m {word}" if "--model" in options and command.name != "info" else None


def is_model(word: str) -> bool:
    """True for the name of a bundled model and for a folder that holds a model."""
    # Not pathlib: a text may be too long for a path, which os.path answers with False.
    files = (os.path.join(word, name) for name in ("config.json", "modules.json"))
    return word in SAMPLES or any(map(os.path.isfile, files))


def variant_of(word: str) -> str | None:
    """The variant that a word names: by itself, or as papers do, such as bert-large."""
    from bertcli.models.registry import variants

    return next((name for name in (word, word.removeprefix("bert-")) if name in variants()), None)

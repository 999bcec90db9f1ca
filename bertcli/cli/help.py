"""The help pages: whole (`--help`) and short (`-h`), as plain text.

Typer's own pages take square brackets for markup, so that `pip install 'bertcli[serve]'` loses its end, and give an
option's text half of the line. These pages need neither rich nor a box.
"""

import shutil
from collections.abc import Iterable, Iterator
from inspect import cleandoc
from itertools import filterfalse, groupby
from textwrap import TextWrapper
from typing import Any

import typer

from bertcli.extensions import engines, plugin_engines
from bertcli.report.terminal import encodable, takes_escapes
from bertcli.tasks.options import OWN

WIDEST = 100  # columns of prose on a wide terminal
NARROWEST = 40
OPTION, COMMAND = 27, 12  # columns for the names of an option, of a command; a longer one has a line of its own
BOLD, PLAIN = "\x1b[1m", "\x1b[0m"

# The panels of options that commands share, which the short page leaves to the whole one.
SHARED = ("Input", "Model", "Output", "Work")


def whole(command: Any, ctx: typer.Context) -> str:
    """The page of `--help`: usage, purpose, examples, description, every option."""
    width = _width()
    summary, *paragraphs = _paragraphs(command.help)
    lines = [*_usage(command, ctx), "", *_wrapped(summary, width), ""]
    for number, paragraph in enumerate(paragraphs):
        # The paragraph after the summary holds the examples, a line each; of all others an indented one is a list.
        if number == 0:
            lines += [*_examples(paragraph), ""]
        elif paragraph.startswith("  "):
            lines += [*paragraph.splitlines(), ""]
        else:
            lines += [*_wrapped(paragraph, width), ""]
    parameters = [parameter for parameter in command.get_params(ctx) if not _hidden(parameter)]
    arguments = list(filter(_is_argument, parameters))
    options = sorted(filterfalse(_is_argument, parameters), key=_panels(parameters).index_of)
    if arguments:
        lines += [_heading("Arguments"), *_described(map(_row, arguments), width), ""]
    for panel, rows in _commands(command) if hasattr(command, "commands") else ():
        lines += [_heading(panel), *_described(rows, width, COMMAND), ""]
    for panel, members in groupby(options, key=_panel):
        lines += [_heading(panel), *_described(map(_row, members), width), ""]
    if not hasattr(command, "commands"):
        lines += [*_wrapped("bertcli --help explains --offline, --cache-dir, --threads, --debug.", width), ""]
    return encodable("\n".join(lines))  # click writes UTF-8 to a stream that is ASCII


def short(command: Any, ctx: typer.Context) -> str:
    """The page of `-h`: usage, purpose, an example, and the options that the command declares itself, briefly."""
    width = _width()
    summary, *paragraphs = _paragraphs(command.help)
    lines = [*_usage(command, ctx), "", *_wrapped(summary, width), ""]
    if hasattr(command, "commands"):
        for panel, rows in _commands(command):
            # The last line names the guide.
            if panel != "Guide":
                lines += [_heading(panel), *_described(rows, width, COMMAND), ""]
        return encodable(
            "\n".join([*lines, "COMMAND -h is short, COMMAND --help is whole; bertcli guide is the manual.\n"])
        )
    examples = _examples(paragraphs[0]) if paragraphs else []
    # The first example of the command itself; others may prepare for it.
    own_examples = [line for line in examples if f" {command.name} " in f" {line} "]
    if own_examples:
        lines += [own_examples[0], ""]
    shown = sorted(filterfalse(_hidden, command.params), key=_is_argument, reverse=True)
    rows = [_row(parameter) for parameter in shown if _is_argument(parameter) or is_own(parameter)]
    lines += [*_described(((name, _first_sentence(text)) for name, text in rows), width), ""]
    options = list(filterfalse(_is_argument, shown))
    names = {name for option in options if not is_own(option) for name in option.opts if len(name) == 2} - {"-h"}
    such_as = f", such as {', '.join(sorted(names))}," if names else ""
    others = f"all {len(options)} options{such_as} and more examples" if len(options) > 1 else "more examples"
    return encodable("\n".join([*lines, *_wrapped(f"bertcli {command.name} --help shows {others}.", width), ""]))


def is_own(option: Any) -> bool:
    """True for an option that a command declares itself, rather than sharing it with others; -h is of every command."""
    return _panel(option) not in SHARED and "-h" not in option.opts


def usage(command: Any, ctx: typer.Context) -> str:
    """The usage line of a command: `Usage: bertcli COMMAND [OPTIONS] ARGUMENTS`."""
    shown = filterfalse(_hidden, command.params)
    arguments = [parameter.metavar for parameter in shown if _is_argument(parameter)]
    places = ["COMMAND ..."] if hasattr(command, "commands") else arguments
    return " ".join(["Usage:", ctx.command_path, "[OPTIONS]", *places])


# -------------------------------------------------------------------------------------------------- parts of a page


class _panels:
    """The panels of options in the order in which a page shows them: a command's own options first."""

    def __init__(self, parameters: Iterable[Any]) -> None:
        self._order = [OWN, *dict.fromkeys(map(_panel, parameters))]

    def index_of(self, parameter: Any) -> int:
        return self._order.index(_panel(parameter))


def _panel(parameter: Any) -> str:
    return getattr(parameter, "rich_help_panel", None) or OWN


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _hidden(parameter: Any) -> bool:
    return bool(getattr(parameter, "hidden", False))


def _width() -> int:
    return max(NARROWEST, min(WIDEST, shutil.get_terminal_size().columns))


def _wrapped(text: str, width: int) -> list[str]:
    """Wrap a text to lines; names such as --text-pair are not broken."""
    return TextWrapper(width, break_long_words=False, break_on_hyphens=False).wrap(" ".join(text.split()))


def _paragraphs(text: str | None) -> list[str]:
    return cleandoc(text or "").split("\n\n")


def _usage(command: Any, ctx: typer.Context) -> list[str]:
    head, _, rest = usage(command, ctx).partition(" ")
    return [f"{_strong(head)} {rest}"]


def _examples(paragraph: str) -> list[str]:
    return [f"  {line}" for line in paragraph.splitlines()]


def _strong(text: str) -> str:
    return f"{BOLD}{text}{PLAIN}" if takes_escapes() else text


def _heading(name: str) -> str:
    return _strong(f"{name}:")


def _commands(group: Any) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """The panels of the application's commands, and in each the commands with their summaries."""
    for panel, commands in groupby(group.commands.values(), key=lambda command: command.rich_help_panel):
        rows = []
        for command in commands:
            summary, *_ = _paragraphs(command.help)
            rows.append((command.name, " ".join(summary.split())))
        yield panel, rows


def _row(parameter: Any) -> tuple[str, str]:
    """The names of an argument or an option, and its description."""
    text = " ".join((parameter.help or "").split())
    if "--engine" in parameter.opts:
        # Not declared with the option, so that wings are looked for when help is asked for.
        others = [other for other in (*engines(), *plugin_engines()) if other.name not in text]
        text = " ".join([text, *(f"{other.name}: {other.summary}." for other in others)])
    if _is_argument(parameter):
        return str(parameter.metavar), text
    ordered = sorted(parameter.opts, key=len)
    names = ", ".join([*ordered, *parameter.secondary_opts])
    if not parameter.is_flag:
        names += f" {parameter.metavar or ''}".rstrip()
    if getattr(parameter, "show_envvar", False) and parameter.envvar:
        text += f" [env: {parameter.envvar}]"
    return names, text + (" (required)" if parameter.required else "")


def _described(rows: Iterable[tuple[str, str]], width: int, names: int = OPTION) -> Iterator[str]:
    """Lines of names in a column with their descriptions beside; a name that is too long has a line of its own."""
    indent = " " * (names + 2)
    for name, text in rows:
        lines = _wrapped(text, width - len(indent)) or [""]
        if len(name) >= names:
            yield f"  {name}"
        else:
            yield f"  {name:{names}}{lines.pop(0)}".rstrip()
        yield from (f"{indent}{line}" for line in lines)


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".")

"""A command: a function with the options of its groups as parameters, from which Typer makes the command line.

The words of a command line become options here, and errors one line; then the command's own function is called with
its groups of options. Not here: what is said of words that are not understood (misunderstood.py), and the options
themselves, which are fields of dataclasses (options.py, tasks/options.py).
"""

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from bertcli.cli.errors import reported, usage_visible
from bertcli.cli.help import short, usage, whole
from bertcli.cli.misunderstood import answered, refuse_model_as_text, refuse_one_dash, refuse_surplus
from bertcli.cli.options import COMMON, CommonOptions, wrong
from bertcli.errors import BertcliError, WrongOptions
from bertcli.extensions.declared import CommandParts
from bertcli.files.files_beside import check_not_read, replaced_by
from bertcli.report.written import COMMAND
from bertcli.tasks.options import Option, offered, types_of


def add_command(app: typer.Typer, name: str, parts: CommandParts, panel: str | None = None) -> None:
    """Add a command to the application: the function that Typer calls with the value of each option.

    It gathers them to the groups that the command's own function takes. panel: where a list of commands shows it.
    """

    def run(ctx: typer.Context, **values: Any) -> None:
        common = gathered(CommonOptions, values)
        with reported(common.debug):
            COMMON.set(common)
            if common.threads is not None:
                set_threads(common.threads)
            refuse_model_as_text(ctx)
            if ctx.args:
                refuse_surplus(ctx)
            if ctx.params.get("output"):
                refuse_overwriting(ctx, ctx.params["output"][0])
            parts.call(**{name: gathered(group, values) for name, group in parts.groups.items()})
            sys.stdout.flush()

    parameters = [parameter for group in parts.groups.values() for parameter in parameters_of(group, parts.endings)]
    give_parameters(run, [*parameters, *parameters_of(CommonOptions, hidden=True)])
    # What is left over is refused with what was meant (`refuse_surplus`).
    settings = {"allow_extra_args": True}
    app.command(name, help=parts.help, rich_help_panel=panel, cls=OurCommand, context_settings=settings)(run)


class OurCommand(TyperCommand):
    """A command with our help pages, which answers words that it does not understand."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Parse arguments and return those that are left. Wrong usage is a typer.BadParameter."""
        # The words of a command that takes a key may hold it, and its pages are for other people.
        takes_key = any("--api-key" in parameter.opts for parameter in self.params)
        COMMAND.set("" if takes_key else shlex.join(["bertcli", str(self.name), *args]))
        with usage_visible():
            refuse_one_dash(self, args)
            try:
                return super().parse_args(ctx, args)
            except typer.TyperException as error:
                raise answered(error, self) from None

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Write the whole page."""
        formatter.write(whole(self, ctx))

    def format_usage(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Write the usage that the help pages show, not click's, which puts a required argument in braces."""
        formatter.write(f"{usage(self, ctx)}\n")


# --------------------------------------------------------------------------------------- from groups to Typer's options


def give_parameters(function: Callable[..., None], parameters: list[Parameter]) -> None:
    """Give a function these parameters and -h, from which Typer makes its options."""
    context = Parameter("ctx", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    short_help = Parameter("short_help", Parameter.KEYWORD_ONLY, default=False, annotation=ShortHelp)
    whole_list = [context, *parameters, short_help]
    function.__signature__ = Signature(whole_list)  # type: ignore[attr-defined]
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in whole_list}


def print_short_help(ctx: typer.Context, given: bool) -> None:
    """Print the page of -h, and end."""
    if given and not ctx.resilient_parsing:  # as it is for shell completion
        typer.echo(short(ctx.command, ctx), nl=False)
        raise typer.Exit


ShortHelp = Annotated[
    bool, typer.Option("-h", is_eager=True, callback=print_short_help, help="Show the command's own options.")
]


def parameters_of(group: Any, endings: tuple[str, ...] = (), hidden: bool = False) -> Iterator[Parameter]:
    """The parameters of a group of options.

    endings: those of the files that the command writes. hidden: help does not show them.
    """
    for option in offered(group):
        annotation, default = option.type, option.default
        settings = {
            **option.settings,
            "metavar": option.metavar,
            "help": option.help,
            "rich_help_panel": option.panel or getattr(group, "panel", None),
            "show_default": False,
            "hidden": hidden,
        }
        if "{endings}" in option.help:  # of the option -o
            settings["help"] = option.help.replace("{endings}", ", ".join(endings or group.endings))
        info: Any
        if option.argument:
            info, default = typer.Argument(**settings), Parameter.empty if default is ... else default
        else:
            info = typer.Option(*(option.names or [option.shown_name]), min=option.least, **settings)
        if option.read or option.once:
            annotation, default = list[str] | None, None
        elif int in types_of(annotation):  # a word that stands for a number is for Python alone
            annotation = int | None
        yield Parameter(option.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[annotation, info])


def gathered(group: Any, values: Mapping[str, Any]) -> Any:
    """Make a group of options from the values of its fields. Wrong usage is a typer.BadParameter."""
    chosen = {option.name: value_of(option, values[option.name]) for option in offered(group)}
    try:
        return group(**chosen)
    except WrongOptions as error:
        named = [option for option in offered(group) if option.name in error.about]
        given = [option.shown_name for option in named if chosen[option.name] not in (None, option.default)]
        raise typer.BadParameter(str(error), param_hint=", ".join(given) or None) from None
    except BertcliError as error:  # an option's own type or bound
        raise typer.BadParameter(str(error)) from None


def value_of(option: Option, value: Any) -> Any:
    """The value of an option; one that is read from text may be given several times, or once with commas."""
    if option.once:
        if value and len(value) > 1:
            raise wrong("-o", option.once)
        return value[0] if value else None
    if not option.read:
        return value
    try:
        return option.default if value is None else option.read(",".join(value))
    except ValueError as error:
        raise wrong(option.shown_name, str(error)) from None


# --------------------------------------------------------------------------------------------------- before a command


def set_threads(count: int) -> None:
    """Set the number of threads, before NumPy is loaded: libraries read it from the environment when they load."""
    from bertcli.engine.threads import THREAD_VARIABLES, set_thread_count

    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(count)))
    set_thread_count(count)


def refuse_overwriting(ctx: typer.Context, output: str) -> None:
    """Raise BertcliError for an output file that another option names, or that is of a model: it would be lost.

    The files of a pattern or a folder are compared with it when they are opened (tasks/request.py, output.py).
    """
    for parameter in ctx.command.params:
        value = ctx.params.get(str(parameter.name))
        words = value if isinstance(value, list | tuple) else [value]
        named = [word for word in words if isinstance(word, str)]
        if parameter.name == "output":
            continue
        if parameter.name in ("input", "data"):
            check_not_read(output, named)
            continue
        # An argument is perhaps a text, which is not read as a file, but was meant so.
        is_argument = parameter.param_type_name == "argument"
        check_not_read(
            output, named, "an argument names {}, too" if is_argument else f"{parameter.opts[-1]} is read from {{}}"
        )
        for word in named:
            for folder in word.split("+"):  # BASE+ADAPTER is a model
                check_not_read(output, model_files_in(folder, output), "the model is read from {}")


def model_files_in(folder: str, output: str) -> Iterator[str]:
    """Yield the files of the model in a folder, if there is one, that writing the output would replace."""
    if not os.path.isdir(folder):
        return
    from bertcli.folder.model_files import is_of_model

    for replaced in replaced_by(output):
        name = os.path.relpath(os.path.realpath(replaced), os.path.realpath(folder))
        if is_of_model(name.replace(os.sep, "/")):
            yield replaced

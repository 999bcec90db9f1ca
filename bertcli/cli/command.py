"""A command: a function with the options of its groups as parameters, from which Typer makes the command line.

The words of a command line become options here, and errors one line; then the command's own function is called with
its groups of options. Not here: what is said of words that are not understood (misunderstood.py), and the options
themselves, which are fields of dataclasses (options.py, tasks/options.py).
"""

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, fields, is_dataclass
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from bertcli.cli.errors import reported
from bertcli.cli.help import short, usage, whole
from bertcli.cli.misunderstood import answered, refuse_one_dash, refuse_surplus
from bertcli.cli.options import COMMON, COMMON_NAMES, CommonOptions, name_of, wrong
from bertcli.errors import BertcliError
from bertcli.extensions.declared import CommandParts
from bertcli.files.files_beside import check_not_read, replaced_by
from bertcli.report.written import COMMAND
from bertcli.tasks.options import declared, is_offered, types_of


def add_command(app: typer.Typer, name: str, panel: str, parts: CommandParts) -> None:
    """Add a command to the application: the function that Typer calls with the value of each option.

    It gathers them to the groups that the command's own function takes.
    """

    def run(ctx: typer.Context, **values: Any) -> None:
        common = common_options(ctx, values)
        with reported(common.debug):
            COMMON.set(common)
            if common.threads is not None:
                set_threads(common.threads)
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
    """The parameters of a group of options, which may hold other groups.

    endings: those of the files that the command writes. hidden: help does not show them.
    """
    for field in fields(group):
        if not is_option(field, group):
            continue
        if is_dataclass(field.type):
            yield from parameters_of(field.type, endings)
            continue
        metadata, annotation, default = field.metadata, field.type, field.default
        settings = {
            **metadata["settings"],
            "show_default": False,
            "hidden": hidden or metadata["settings"].get("hidden"),
        }
        if "{endings}" in settings["help"]:  # of the option -o
            settings["help"] = settings["help"].replace("{endings}", ", ".join(endings or group.endings))
        if "argument" in metadata:
            info, default = typer.Argument(**settings), Parameter.empty if default is ... else default
        else:
            settings["rich_help_panel"] = settings["rich_help_panel"] or getattr(group, "panel", None)
            info = typer.Option(*(metadata["names"] or [name_of(field)]), min=metadata["least"], **settings)
        if metadata["read"] or metadata["once"]:
            annotation, default = list[str] | None, None
        elif int in types_of(annotation):  # a word that stands for a number is for Python alone
            annotation = int | None
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[annotation, info])


def is_option(field: Field[Any], group: Any) -> bool:
    """True for a field of a group that is an option of the command, or holds some.

    It is neither if the command has no use for it, or if it is for Python alone.
    """
    is_part = bool(field.metadata) or is_dataclass(field.type)
    return is_part and field.init and field.name not in getattr(group, "not_offered", ()) and is_offered(field)


def gathered(group: Any, values: Mapping[str, Any]) -> Any:
    """Make a group of options from the values of its fields. Wrong usage is a typer.BadParameter."""
    chosen: dict[str, Any] = {}
    for field in fields(group):
        if not is_option(field, group):
            continue
        if is_dataclass(field.type):
            chosen[field.name] = gathered(field.type, values)
        else:
            chosen[field.name] = value_of(field, values[field.name])
    try:
        return group(**chosen)
    except BertcliError as error:  # options that contradict each other
        named = [name_of(field) for field in declared(group) if chosen.get(field.name) not in (None, field.default)]
        hint = ", ".join(name for name in named if name in str(error))
        raise typer.BadParameter(str(error), param_hint=hint or None) from None


def value_of(field: Field[Any], value: Any) -> Any:
    """The value of an option; one that is read from text may be given several times, or once with commas."""
    read, once = field.metadata["read"], field.metadata["once"]
    if once:
        if value and len(value) > 1:
            raise wrong("-o", once)
        return value[0] if value else None
    if not read:
        return value
    try:
        return field.default if value is None else read(",".join(value))
    except ValueError as error:
        raise wrong(name_of(field), str(error)) from None


# --------------------------------------------------------------------------------------------------- before a command


def common_options(ctx: typer.Context, values: dict[str, Any]) -> CommonOptions:
    """The options of every command, given before its name or after it; they are taken out of `values`."""
    before = ctx.find_root().obj or {}
    given: dict[str, Any] = {name: values.pop(name) or before.get(name) for name in COMMON_NAMES}
    return CommonOptions(**given)


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

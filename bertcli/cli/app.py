"""The application: which commands it has, made of what is declared, and what `bertcli` does without a command.

command.py makes the function of one command.
"""

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

import bertcli
from bertcli.cli.command import add_command, give_parameters, parameters_of
from bertcli.cli.errors import notes_shown, usage_visible
from bertcli.cli.help import whole
from bertcli.cli.options import CommonOptions
from bertcli.cli.status import WRONG_USAGE
from bertcli.extensions import blamed_for, commands, own_commands, plugin_commands
from bertcli.extensions import command as command_brought
from bertcli.extensions.core import COMMANDS
from bertcli.extensions.declared import Command, CommandParts

if TYPE_CHECKING:
    from bertcli.tasks.registry import TaskSpec

# The groups of --help, in their order; one that a plugin names besides follows.
GROUPS = ("Run", "Search", "Inspect", "Interpret", "Evaluate and deploy", "Guide")
HELP = ("-h", "--help")


@cache
def application(word: str = "") -> typer.Typer:
    """Make the application with the commands that a command line beginning with `word` needs, to start sooner.

    That is the command of that name alone; for help the names and summaries of all, which cannot be run; otherwise all.
    """
    app = typer.Typer(
        name="bertcli",
        cls=CommandGroup,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help"]},
    )
    version = Parameter("version", Parameter.KEYWORD_ONLY, default=False, annotation=Version)
    give_parameters(bert, [version, *parameters_of(CommonOptions)])
    app.callback(invoke_without_command=True)(bert)
    # What is of the core needs no task, and what is a task here needs no wing.
    own: TaskSpec | Command | None = next((command for command in COMMANDS if command.name == word), None)
    if own is None:
        from bertcli.tasks.registry import own_spec, spec

        own = own_spec(word) or commands().get(word)
    if own is not None:
        add_command(app, own.name, parts_of(own))
        return app
    with notes_shown():  # of plugins that cannot be used
        brought = None if word in ("", *HELP) or word.startswith("-") else spec(word) or command_brought(word)
        if brought is None and word not in ("", *HELP):
            return application()  # made once for all words that are no command
        for declared in every_command() if brought is None else [brought]:
            with blamed_for(declared.name):
                if word in HELP:
                    app.command(declared.name, help=summary(declared), rich_help_panel=group(declared))(lambda: None)
                else:
                    add_command(app, declared.name, parts_of(declared), group(declared))
    return app


def parts_of(declared: "TaskSpec | Command") -> CommandParts:
    """The parts of a task's command, or of one that the core or a wing declares, whose module is imported.

    The module has a function of the command's name, whose parameters are groups of options and whose docstring is the
    help; or `command_parts`, which gives the parts by the command's name.
    """
    if not isinstance(declared, Command):
        from bertcli.cli.tasks import command_parts

        return command_parts(declared)
    module = import_module(declared.module)
    if hasattr(module, "command_parts"):
        parts: CommandParts = module.command_parts(declared.name)
        return parts
    function = getattr(module, declared.name.replace("-", "_"))
    groups = {name: parameter.annotation for name, parameter in signature(function).parameters.items()}
    return CommandParts(function.__doc__, groups, function)


def every_command() -> "Iterator[TaskSpec | Command]":
    """Yield all commands in the order of --help."""
    from bertcli.tasks.registry import specs

    declared: list[TaskSpec | Command] = [*specs(), *own_commands().values(), *plugin_commands().values()]
    groups = dict.fromkeys([*GROUPS, *map(group, declared)])
    order = {name: place for place, name in enumerate(groups)}
    yield from sorted(declared, key=lambda command: (order[group(command)], command.position))


def group(command: "TaskSpec | Command") -> str:
    """The group in which --help lists a command."""
    return command.group if isinstance(command, Command) else command.panel


def summary(command: "TaskSpec | Command") -> str | None:
    """The text of which --help shows the first sentence."""
    return command.summary if isinstance(command, Command) else command.options.__doc__


Version = Annotated[bool, typer.Option("--version", "-V", help="Print the version and exit.")]


def bert(ctx: typer.Context, version: bool, **values: Any) -> None:
    """BERT in the terminal: run, search, interpret, evaluate and serve encoders.

    bertcli fill-mask "She poured a cup of hot [MASK]."
    bertcli classify "I loved every minute of it."
    bertcli encode -i reviews.txt -o vectors.npy
    bertcli score "The cat sat on the mat."
    bertcli tag -m dslim/bert-base-NER "Angela Merkel visited Paris."

    Without -m a small bundled model runs. Give -m a folder, or a name on the
    Hugging Face Hub such as bert-base-uncased: BERT, RoBERTa, DeBERTa,
    ModernBERT and others run, and "bertcli info MODEL" says what a model can do.

    COMMAND -h shows the options that a command declares itself, COMMAND --help
    also those that it shares; "bertcli guide" is the manual.
    """
    if version:
        typer.echo(f"bertcli {bertcli.__version__}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        if any(values.values()):
            ctx.fail("Missing command.")
        typer.echo(whole(ctx.command, ctx))
        raise typer.Exit(WRONG_USAGE)
    # What is given before the command's name is the default of the same option after it.
    ctx.default_map = {ctx.invoked_subcommand: values}


class CommandGroup(TyperGroup):
    """The group of all commands, which answers a wrong command name with the right one."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Parse the words before the command."""
        with usage_visible():
            return super().parse_args(ctx, args)

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # type: ignore[override]
        """Find a command by its name; `help COMMAND` is `COMMAND --help`.

        A name known from elsewhere is refused with the name it has here.
        """
        if args == ["help"]:
            typer.echo(ctx.get_help())
            raise typer.Exit
        if args[0] == "help":
            args = [args[1], "--help"]
        with usage_visible():
            if args[0] not in self.commands:
                self.refuse_other_word(ctx, args[0])
            return super().resolve_command(ctx, args)

    def refuse_other_word(self, ctx: typer.Context, word: str) -> None:
        """Refuse what other tools call a command, with the command's name."""
        for declared in every_command():
            if word in declared.other_words:
                ctx.fail(f"No such command {word!r}. Did you mean {declared.name!r}?")

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Write the whole page."""
        formatter.write(whole(self, ctx))

"""The application: make Typer commands of functions whose parameters are groups of options, and report their errors."""

import logging
import os
import shlex
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import Field, fields, is_dataclass
from functools import cache, partial
from importlib import import_module
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import bertcli
from bertcli import extensions
from bertcli.cli.help import declaration, short, usage, whole
from bertcli.cli.options import COMMON, CommonOptions, name_of, wrong
from bertcli.cli.other_tools import answer, our_name
from bertcli.cli.process import asked_to_end, leave_streams
from bertcli.cli.status import FAILED, INTERRUPTED, WRONG_USAGE
from bertcli.errors import BertcliError
from bertcli.extensions.declared import Command, CommandParts
from bertcli.files.files_beside import replaced_by
from bertcli.report.terminal import visible
from bertcli.report.written import COMMAND
from bertcli.tasks.options import declared, is_offered, types_of
from bertcli.tasks.registry import TaskSpec, specs

# The groups of --help, in their order; one that a plugin names besides follows.
GROUPS = ("Run", "Search", "Inspect", "Interpret", "Evaluate and deploy", "Guide")
HELP = ("-h", "--help")


@cache
def application(word: str = "") -> typer.Typer:
    """Make the application with the commands that a command line beginning with `word` needs, to start sooner.

    That is the command of that name alone; for help the names and summaries of all, which cannot be run; otherwise all.
    """
    with notes_shown():  # of plugins that cannot be used
        named = _named(word)
    if named is None and word not in ("", *HELP):
        return application()  # made once for all words that are no command
    app = typer.Typer(
        name="bertcli",
        cls=CommandGroup,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help"]},
    )
    version = Parameter("version", Parameter.KEYWORD_ONLY, default=False, annotation=Version)
    _declare(bert, [version, *_parameters(CommonOptions)])
    app.callback()(bert)
    with notes_shown():  # of plugins that cannot be used
        for listed in _listed() if named is None else [named]:
            with extensions.blamed_for(listed.name):
                if word in HELP:
                    app.command(listed.name, help=_summary(listed), rich_help_panel=_group(listed))(lambda: None)
                elif isinstance(listed, TaskSpec):
                    register_task(app, listed)
                else:
                    register_declared(app, listed)
    return app


def _named(word: str) -> TaskSpec | Command | None:
    """The command of this name; None if there is none, or the word is an option."""
    return None if not word or word.startswith("-") else declaration(word)


def _listed() -> list[TaskSpec | Command]:
    """All commands in the order of --help."""
    listed: list[TaskSpec | Command] = [*specs()]
    listed += extensions.own_commands().values()
    listed += extensions.plugin_commands().values()
    groups = dict.fromkeys([*GROUPS, *map(_group, listed)])
    order = {group: place for place, group in enumerate(groups)}
    return sorted(listed, key=lambda command: (order[_group(command)], command.position))


def _group(command: TaskSpec | Command) -> str:
    """The group in which --help lists a command."""
    return command.panel if isinstance(command, TaskSpec) else command.group


def _summary(command: TaskSpec | Command) -> str | None:
    """The text of which --help shows the first sentence."""
    return command.options.__doc__ if isinstance(command, TaskSpec) else command.summary


def _print_version(given: bool) -> None:
    if given:
        typer.echo(f"bertcli {bertcli.__version__}")
        raise typer.Exit


def _print_short_help(ctx: typer.Context, given: bool) -> None:
    if given and not ctx.resilient_parsing:  # as it is for shell completion
        typer.echo(short(ctx.command, ctx), nl=False)
        raise typer.Exit


ShortHelp = Annotated[
    bool, typer.Option("-h", is_eager=True, callback=_print_short_help, help="Show the most used options.")
]


Version = Annotated[bool, typer.Option("--version", "-V", callback=_print_version, help="Print the version and exit.")]


def bert(ctx: typer.Context, **values: Any) -> None:
    """BERT in the terminal: run, search, interpret, evaluate and serve encoders.

    bertcli fill-mask "She poured a cup of hot [MASK]."
    bertcli classify "I loved every minute of it."
    bertcli encode -i reviews.txt -o vectors.npy
    bertcli score "The cat sat on the mat."
    bertcli tag -m dslim/bert-base-NER "Angela Merkel visited Paris."

    Without -m a small bundled model runs. Give -m a folder, or a name on the
    Hugging Face Hub such as bert-base-uncased: BERT, RoBERTa, DeBERTa,
    ModernBERT and others run, and "bertcli info MODEL" says what a model can do.

    COMMAND -h shows the most used options of a command, COMMAND --help all of
    them; "bertcli guide" is the manual.
    """
    common = {field.name: values[field.name] for field in fields(CommonOptions)}
    ctx.obj = {name: value for name, value in common.items() if value not in (None, False)}


# ------------------------------------------------------------------------------------------------------ one command


class CommandGroup(TyperGroup):
    """The group of all commands, which answers a wrong command name with the right one."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Parse arguments; `help COMMAND` is `COMMAND --help`; without any, print the page and end with status 2."""
        if not args and not ctx.resilient_parsing:  # as it is for shell completion
            typer.echo(whole(self, ctx))
            raise typer.Exit(WRONG_USAGE)
        if args and args[0] == "help":
            args = [*args[1:2], "--help"]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # type: ignore[override]
        """Find a command by its name; a name known from elsewhere is refused with the name it has here."""
        if args and args[0] not in self.commands:
            for listed in _listed():
                if args[0] in listed.other_words:
                    ctx.fail(f"No such command {args[0]!r}. Did you mean {listed.name!r}?")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Write the whole page."""
        formatter.write(whole(self, ctx))


class CheckedCommand(TyperCommand):
    """A command with our help pages, which answers options of other tools, or such as are nearly right."""

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Write the whole page."""
        formatter.write(whole(self, ctx))

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Parse arguments and return those that are left. Wrong usage is a typer.BadParameter."""
        options = {name for parameter in self.params for name in parameter.opts}
        if not ctx.resilient_parsing:  # as it is for shell completion
            words = args[: args.index("--") if "--" in args else None]
            for word in words:
                self._check_option(word.partition("=")[0], options)
            if "-o" in options and sum(word.partition("=")[0] in ("-o", "--output") for word in words) > 1:
                raise wrong("-o", "a run writes one file: give -o once, and run it again for another form.")
            # A server's words may hold its key, and its pages are for other people.
            COMMAND.set("" if self.name == "serve" else shlex.join(["bertcli", str(self.name), *args]))
            values, extra, _ = self.make_parser(ctx).parse_args(args=list(args))
            self._check_arguments(ctx, values, extra, options)
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Write the usage that the help pages show, not click's, which puts a required argument in braces."""
        formatter.write(f"{usage(self, ctx)}\n")

    def _check_arguments(
        self, ctx: typer.Context, values: Mapping[str, Any], extra: list[str], options: set[str]
    ) -> None:
        """Raise typer.BadParameter for a model given as an argument, or an argument too many: with the right form."""
        command = f"bertcli {self.name}"
        given = self._given_arguments(values)
        takes_model = "--model" in options and self.name != "info"
        if takes_model and not values.get("model") and "BERTCLI_MODEL" not in os.environ:
            words = [*given, *extra]
            if words and _is_model(words[0]):
                takes_texts = bool(given) and self.name not in ("export", "evaluate")
                aside = " To use it as a text, pipe it in." if takes_texts else ""
                message = f"{words[0]!r} is a model; a model is given with -m: {command} -m {words[0]}.{aside}"
                raise typer.BadParameter(message, ctx=ctx)
        if extra:
            self._refuse_extra(ctx, extra[0], options)

    def _given_arguments(self, values: Mapping[str, Any]) -> list[str]:
        """The arguments in the order in which they stand."""
        given: list[str] = []
        for parameter in self.params:
            value = values.get(str(parameter.name)) if parameter.param_type_name == "argument" else None
            if isinstance(value, str):
                given.append(value)
            elif value is not None:
                given += value
        return given

    def _refuse_extra(self, ctx: typer.Context, first: str, options: set[str]) -> None:
        """Raise typer.BadParameter for an argument too many, if it has an option; click refuses the others."""
        command, given = f"bertcli {self.name}", first
        if self.name == "trace":
            message = f"one text is traced, and {first!r} is one more: quote a text, and pair two with --text-pair."
            raise typer.BadParameter(message, ctx=ctx)
        if self.name == "probe":
            option = "-i"
        elif "--variant" in options and (variant := _variant_of(first)):
            option, first = "--variant", variant
        elif "--model" in options and self.name != "info":
            option = "-m"
        else:
            return
        message = f"{given!r} needs an option before it. Did you mean {command} {option} {first}?"
        raise typer.BadParameter(message, ctx=ctx)

    def _check_option(self, word: str, options: set[str]) -> None:
        if not word.startswith("-") or word in options:
            return
        if f"-{word}" in options:
            raise typer.BadParameter(f"there is no option {word}. Did you mean -{word}?")
        if ours := our_name(word, options):
            raise typer.BadParameter(f"there is no option {word}. Did you mean {ours}?")
        written = next((str(getattr(parameter, "help", "")) for parameter in self.params if "-o" in parameter.opts), "")
        instead = answer(str(self.name), word, options, written)
        if instead:
            raise wrong(word, f"{instead}.")


def _is_model(word: Any) -> bool:
    """True for the name of a bundled model and for a folder that holds a model."""
    from bertcli.folder.hub import SAMPLES

    # Not pathlib: a text may be too long for a path, which os.path answers with False.
    files = (os.path.join(str(word), name) for name in ("config.json", "modules.json"))
    return word in SAMPLES or any(map(os.path.isfile, files))


def _is_variant(word: str) -> bool:
    from bertcli.models.registry import variants

    return word in variants()


def _variant_of(word: str) -> str | None:
    """The variant that a word names: by itself, or as papers do, such as bert-large."""
    return next((name for name in (word, word.removeprefix("bert-")) if _is_variant(name)), None)


def register_task(app: typer.Typer, task: TaskSpec) -> None:
    """Add the command of a task to the application; the docstring of its options is the help."""
    from bertcli.cli.tasks import groups_of, run

    _add(app, task.name, task.options.__doc__, groups_of(task), partial(run, task), task.panel)


def register_declared(app: typer.Typer, command: Command) -> None:
    """Add a command that the core or a wing declares, and import its module.

    The module has a function of the command's name, whose parameters are groups of options and whose docstring is the
    help; or `command_parts`, which gives help, groups and function by the command's name.
    """
    module = import_module(command.module)
    if hasattr(module, "command_parts"):
        parts: CommandParts = module.command_parts(command.name)
        _add(app, command.name, parts.help, parts.groups, parts.call, command.group)
        return
    function = getattr(module, command.name.replace("-", "_"))
    groups = {name: parameter.annotation for name, parameter in signature(function).parameters.items()}
    _add(app, command.name, function.__doc__, groups, function, command.group)


def _add(
    app: typer.Typer, name: str, help: str | None, groups: Mapping[str, Any], call: Callable[..., None], panel: str
) -> None:
    """Add a command whose function takes groups of options.

    Typer only handles single parameters, so each group is split into its fields for the command line and reassembled
    for the call.
    """

    def run(ctx: typer.Context, **values: Any) -> None:
        before = ctx.find_root().obj or {}
        after = {field.name: values.pop(field.name) for field in fields(CommonOptions)}
        given = {name: value for name, value in after.items() if value not in (None, False)}
        common = CommonOptions(**{**before, **given})
        with reported(common.debug):
            COMMON.set(common)
            _set_threads(common.threads)
            _refuse_overwriting(ctx)
            call(**{name: _gathered(group, values) for name, group in groups.items()})
            sys.stdout.flush()

    parameters = [parameter for group in groups.values() for parameter in _parameters(group)]
    parameters += _parameters(CommonOptions, hidden=True)
    _declare(run, parameters)
    app.command(name, help=help, rich_help_panel=panel, cls=CheckedCommand)(run)


def _refuse_overwriting(ctx: typer.Context) -> None:
    """Raise BertcliError for an output file that another option names, or that is of a model: it would be lost.

    The files of a pattern or a folder are compared with it when they are opened (`check_not_read` of output.py).
    """
    output = ctx.params.get("output")
    for replaced in filter(os.path.isfile, () if output is None else replaced_by(output)):
        it = "it" if replaced == output else f"{replaced} beside it"
        for parameter in ctx.command.params:
            value, is_texts = ctx.params.get(str(parameter.name)), parameter.name in ("input", "data")
            words = value if isinstance(value, list | tuple) else [value]
            given = [word for word in words if isinstance(word, str) and parameter.name != "output"]
            if any(os.path.samefile(file, replaced) for file in given if os.path.isfile(file)):
                if is_texts:
                    why = f"the texts are read from {it}"
                elif parameter.param_type_name == "argument":
                    # A text, which is not read as a file, but perhaps was meant so.
                    why = f"an argument names {it}, too"
                else:
                    why = f"{parameter.opts[-1]} is read from {it}"
                raise BertcliError(f"Cannot write {output}: {why}; choose another --output.")
            folders = [part for word in given for part in word.split("+")]  # BASE+ADAPTER is a model
            if not is_texts and any(_is_of_model_in(folder, replaced) for folder in folders if os.path.isdir(folder)):
                raise BertcliError(f"Cannot write {output}: the model is read from {it}; choose another --output.")


def _is_of_model_in(folder: str, file: str) -> bool:
    """True if the model in this folder is read from the file."""
    from bertcli.folder.model_files import is_of_model

    name = os.path.relpath(os.path.realpath(file), os.path.realpath(folder))
    return is_of_model(name.replace(os.sep, "/"))


def _declare(function: Callable[..., None], parameters: list[Parameter]) -> None:
    """Give a function these parameters and -h, from which Typer makes its options."""
    context = Parameter("ctx", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    short_help = Parameter("short_help", Parameter.KEYWORD_ONLY, default=False, annotation=ShortHelp)
    declared = [context, *parameters, short_help]
    function.__signature__ = Signature(declared)  # type: ignore[attr-defined]
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in declared}


def _set_threads(count: int | None) -> None:
    """Set the number of threads, before NumPy is loaded: libraries read it from the environment when they load."""
    if count is not None:
        from bertcli.engine.threads import THREAD_VARIABLES, set_thread_count

        os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(count)))
        set_thread_count(count)


def _parameters(group: Any, hidden: bool = False) -> Iterator[Parameter]:
    """The parameters of a group of options, which may hold other groups. hidden: help does not show them."""
    for field in fields(group):
        annotation, default, metadata = field.type, field.default, field.metadata
        if not _is_offered(field, group):
            continue
        if is_dataclass(annotation):
            yield from _parameters(annotation)
        elif metadata:  # a field without is no option
            settings = {**metadata["settings"], "show_default": False}
            if hidden:
                settings["hidden"] = True
            if "{endings}" in settings["help"]:  # of the option -o
                settings["help"] = settings["help"].replace("{endings}", ", ".join(group.endings))
            if "argument" in metadata:
                info, default = typer.Argument(**settings), Parameter.empty if default is ... else default
            else:
                settings["rich_help_panel"] = settings["rich_help_panel"] or getattr(group, "panel", None)
                info = typer.Option(*(metadata["names"] or [name_of(field)]), min=metadata["least"], **settings)
            if metadata["read"]:
                annotation, default = list[str] | None, None
            elif int in types_of(annotation):  # a word that stands for a number is for Python alone
                annotation = int | None
            yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[annotation, info])


def _is_offered(field: Field[Any], group: Any) -> bool:
    """False for a group or an option that a command has no use for, and for an option of Python alone."""
    return field.init and field.name not in getattr(group, "not_offered", ()) and is_offered(field)


def _gathered(group: Any, values: dict[str, Any]) -> Any:
    """Make a group of options from the values of its fields. Wrong usage is a typer.BadParameter."""
    chosen: dict[str, Any] = {}
    for field in fields(group):
        if not _is_offered(field, group):
            continue
        if is_dataclass(field.type):
            chosen[field.name] = _gathered(field.type, values)
        elif field.metadata:
            chosen[field.name] = _value(field, values[field.name])
    try:
        return group(**chosen)
    except BertcliError as error:  # options that contradict each other
        named = [name_of(field) for field in declared(group) if chosen.get(field.name) not in (None, field.default)]
        hint = ", ".join(name for name in named if name in str(error))
        raise typer.BadParameter(str(error), param_hint=hint or None) from None


def _value(field: Field[Any], value: Any) -> Any:
    """The value of an option; one that is read from text may be given several times, or once with commas."""
    if not field.metadata["read"]:
        return value
    try:
        return field.default if value is None else field.metadata["read"](",".join(value))
    except ValueError as error:
        raise wrong(name_of(field), str(error)) from None


@contextmanager
def notes_shown() -> Iterator[None]:
    """Send notes and warnings to standard error."""
    logger, handler = logging.getLogger("bertcli"), _StderrHandler()
    level, showwarning = logger.level, warnings.showwarning
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    warnings.showwarning = lambda message, *_: logger.warning("%s", message)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        warnings.showwarning = showwarning


@contextmanager
def reported(debug: bool) -> Iterator[None]:
    """Send notes, warnings and one-line errors to standard error, and exit with the matching status."""
    try:
        with notes_shown():
            yield
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        leave_streams()
    except Exception as error:
        if debug:
            traceback.print_exc()
        elif status := asked_to_end():
            raise typer.Exit(status) from None
        with suppress(OSError):  # stderr may be closed; the exit status still tells
            print(f"Error: {_one_line(_message(error))}", file=sys.stderr)
        raise typer.Exit(FAILED) from None


def _message(error: Exception) -> str:
    if isinstance(error, BertcliError):
        return str(error)
    if isinstance(error, MemoryError):
        return "There is not enough memory: close other programs, or use a smaller model."
    if isinstance(error, ImportError):
        return f"A package cannot be imported ({error}): install it again."
    if isinstance(error, OSError):
        return f"{error.strerror or error}: {error.filename or 'while writing the result'}."
    return f"Unexpected error, {type(error).__name__}: {error} (--debug shows where; please report it)."


def _one_line(text: str) -> str:
    return visible(" ".join(text.splitlines()))


class _StderrHandler(logging.Handler):
    """Log handler that writes `Note: …` and `Warning: …` to standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        prefix = "Warning" if record.levelno >= logging.WARNING else "Note"
        with suppress(OSError):  # a closed stderr is no reason to stop the work
            print(f"{prefix}: {_one_line(record.getMessage())}", file=sys.stderr, flush=True)

"""Declare the options of a task or a command once, for Python and for the command line.

Options are the fields of a dataclass. `Model`'s methods take them as keywords; the command line is made from their
names, types, bounds and help. A field that is no `option`, such as `pairs`, exists in Python only: a command reads
second texts from its input. Nothing here imports NumPy, since `--help` needs this module.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import wraps
from inspect import signature
from numbers import Real
from types import UnionType
from typing import Any, Concatenate, Literal, NamedTuple, ParamSpec, TypeVar, Union, get_args, get_origin

from bertcli.errors import check_choice, check_count, check_names, check_type

Truncation = Literal["warn", "error", "silent"]
Workers = int | Literal["auto"] | None
OWN = "Options"  # the panel of the options that a command declares itself
P = ParamSpec("P")
M = TypeVar("M")
T = TypeVar("T")
W = TypeVar("W")
R = TypeVar("R")


class Option(NamedTuple):
    """An option: the name, type and default of its field, and what is declared of it.

    help       what it does, in a sentence
    metavar    stands for the value in the help; "" for a switch
    names      on the command line, the last one for messages; --like-the-field if there are none
    panel      the heading in the help under which the option stands; None: that of its group, or OWN
    least      the smallest number allowed
    read       makes the value from the text on the command line, if it is not a word or a number. It raises ValueError
               for wrong usage
    once       why it may not be given twice; of any other option the last one counts
    argument   it is known by its place on the command line; a default of ... means that it is required
    offered    a command has it, not Python alone
    settings   further settings of Typer
    """

    name: str
    type: Any
    default: Any
    help: str
    metavar: str = ""
    names: tuple[str, ...] = ()
    panel: str | None = None
    least: float | None = None
    read: Callable[[str], Any] | None = None
    once: str | None = None
    argument: bool = False
    offered: bool = True
    settings: Mapping[str, Any] = {}

    @property
    def shown_name(self) -> str:
        """The name in messages: --like-the-field, unless it has names of its own."""
        return self.names[-1].partition("/")[0] if self.names else f"--{self.name.replace('_', '-')}"


def option(
    default: Any,
    metavar: str,
    help: str,
    *names: str,
    panel: str | None = None,
    least: float | None = None,
    read: Callable[[str], Any] | None = None,
    once: str | None = None,
    **settings: Any,
) -> Any:
    """Declare a field as an option; the parameters are those of `Option`, and further settings of Typer."""
    declaration = {
        "help": help,
        "metavar": metavar,
        "names": names,
        "panel": panel,
        "least": least,
        "read": read,
        "once": once,
        "settings": settings,
    }
    return field(default=default, metadata=declaration)


def argument(default: Any, metavar: str, help: str, **settings: Any) -> Any:
    """Declare a field as an argument of a command; a default of ... means that it is required."""
    declaration = {"help": help, "metavar": metavar, "names": (metavar,), "argument": True, "settings": settings}
    return field(default=default, metadata=declaration)


def for_python(default: Any, help: str, least: float | None = None) -> Any:
    """Declare a field as an option of Python and of a server's routes; no command offers it."""
    return field(default=default, metadata={"help": help, "least": least, "offered": False})


# Those of a dataclass are put together once: options are checked whenever some are made.
_DECLARED: dict[type, tuple[Option, ...]] = {}


def declared(group: type) -> tuple[Option, ...]:
    """The fields of a dataclass that are options."""
    if group not in _DECLARED:
        options = [item for item in fields(group) if item.metadata]
        _DECLARED[group] = tuple(Option(item.name, item.type, item.default, **item.metadata) for item in options)
    return _DECLARED[group]


def offered(group: type) -> list[Option]:
    """The options of a group that a command has: not those for Python alone, nor those that it does without."""
    without = getattr(group, "not_offered", ())
    return [option for option in declared(group) if option.offered and option.name not in without]


def numbers(example: str) -> Callable[[str], list[int]]:
    """Make a function that reads whole numbers separated by commas."""

    def read(text: str) -> list[int]:
        try:
            return [int(number) for number in text.split(",")]
        except ValueError:
            raise ValueError(f"give whole numbers, as in {example}.") from None

    return read


def separated(text: str) -> list[str]:
    """Split a text of names separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


# What is said of two options of every command that reads tables.
NO_HEADER = "The .csv or .tsv file has no header; columns are numbered, as in --column 2."
DELIMITER = "What separates the columns of a .csv or .tsv file, such as ';' or tab."


def delimiter_named(text: str) -> str:
    """The character that separates columns; the word tab stands for one."""
    text = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(text) != 1 or text in '"\r\n':
        raise ValueError(f"give one character, such as ';', or tab, not {text!r}.")
    return text


def types_of(hint: Any) -> tuple[Any, ...]:
    """List the types in a union."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _check(name: str, value: object, hints: Sequence[Any], least: float | None) -> None:
    """Check an option's type and bound; None passes, as "the model's default". Errors: BertcliError."""
    words = next((hint for hint in hints if get_origin(hint) is Literal), None)
    if isinstance(value, str) and value in get_args(words):
        return
    if int in hints:
        if least is not None:  # else the model sets bounds
            check_count(name, value, least)  # type: ignore[arg-type]
    elif words:
        check_choice(name, value, words)  # type: ignore[arg-type]
    else:
        check_type(name, value, Real if hints[0] is float else get_origin(hints[0]) or hints[0])


def takes(options: Callable[P, W]) -> Callable[[Callable[[M, T, W], R]], Callable[Concatenate[M, T, P], R]]:
    """Decorate a method (model, texts, options), so that it takes the options as keywords."""

    def decorate(method: Callable[[M, T, W], R]) -> Callable[Concatenate[M, T, P], R]:
        of_method, of_options = signature(method), signature(options).parameters.values()
        leading = list(of_method.parameters.values())[:2]
        whole = of_method.replace(parameters=[*leading, *of_options])
        make: Callable[..., W] = options

        @wraps(method)
        def taking(*values: Any, **named: Any) -> R:
            check_names(f"{method.__name__}()", named, [*whole.parameters][1:])
            arguments = whole.bind(*values, **named).arguments
            model, texts = (arguments.pop(parameter.name) for parameter in leading)
            return method(model, texts, make(**arguments))

        taking.__signature__ = whole  # type: ignore[attr-defined]  # what help() and notebooks show
        return taking

    return decorate


def for_each_text(method: Callable[[M, T, W], list[R]]) -> Callable[[M, T, W], Any]:
    """Decorate a method (model, texts, options) with a result for each text: one text gives its result, not a list.

    With `chunk` a text has several results, so it gives a list, too. The stub of the package (tests/helpers/stubs.py)
    has both signatures.
    """

    @wraps(method)
    def one_or_all(model: M, texts: T, options: W) -> Any:
        from bertcli.files.texts import is_one  # late: a command imports this file for its options

        results = method(model, texts, options)
        has_parts = getattr(options, "chunk", None) is not None
        return results[0] if is_one(texts) and not has_parts else results

    one_or_all.for_each_text = True  # type: ignore[attr-defined]
    return one_or_all


# --------------------------------------------------------------------------------------------- options of several tasks


class Checked:
    """Base class of options, which are checked when they are made.

    Errors: BertcliError for a value of another type, below its bound, or not among its choices.
    """

    def __post_init__(self) -> None:
        for option in declared(type(self)):
            value = getattr(self, option.name)
            # Most options have their defaults: to check these again takes 50 µs a call.
            if value is not option.default:
                _check(option.name, value, types_of(option.type), option.least)


@dataclass(frozen=True, eq=False, repr=False)
class ReadOptions(Checked):
    """Options of all tasks on texts: truncation, errors, the size of batches, worker processes.

    truncation: one warning at the end, an error, or nothing. keep_going: a text that cannot be used becomes a Failure
    in its place. workers: the number of processes, see `bertcli.tasks.running.run`; None: only this one.
    """

    _: KW_ONLY
    max_length: int | None = option(None, "N", "Cut texts to N tokens. (default: the model's own limit)", panel="Input")
    truncation: Truncation = for_python("warn", "When a text is cut: warn (default), error, or silent.")
    keep_going: bool = option(
        False, "", 'Go on after a text that fails; its record has a field "error".', panel="Input"
    )
    batch_tokens: int | None = for_python(None, "Tokens that are computed together. (default: 1,536)", least=1)
    workers: Workers = for_python(None, "Processes. (default: this one alone)", least=1)

    @property
    def read_options(self) -> "ReadOptions":
        """A copy of these options only, without a subclass's."""
        return ReadOptions(**{item.name: getattr(self, item.name) for item in fields(ReadOptions)})

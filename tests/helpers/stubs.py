"""Write bertcli/__init__.pyi: the names of the package with whole signatures, for type checkers and editors.

    python tests/helpers/stubs.py

Names of wings and methods of tasks are found when they are used (`bertcli.__getattr__`), which no checker can follow.
Everything here is read from the objects themselves; test_stubs.py holds the file to what this makes. Plugins are not in
it, since they are installed beside the package.
"""

import ast
import inspect
import types
import typing
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

import bertcli
from bertcli.extensions import wings
from bertcli.files.texts import Pairs, Value, Values
from bertcli.model import Model
from bertcli.names import NAMES
from bertcli.tasks.registry import own_specs

FILE = Path(bertcli.__file__).with_name("__init__.pyi")
# Types that have a name of their own, which their repr does not show.
NAMED = (
    (ArrayLike, "numpy.typing", "ArrayLike"),
    (Values, "bertcli.files.texts", "Values"),
    (Value, "bertcli.files.texts", "Value"),
    (Pairs, "bertcli.files.texts", "Pairs"),
)
HEAD = '''"""The names of the package for type checkers and editors, made by tests/helpers/stubs.py: do not edit."""

'''
WIDTH = 120


class Writer:
    """Writes types as source, and knows what must be imported for them."""

    def __init__(self) -> None:
        self.imports: dict[str, set[str]] = defaultdict(set)

    def name(self, module: str, name: str) -> str:
        if module != "builtins":
            self.imports[module].add(name.partition(".")[0])
        return name

    def type(self, annotation: Any, space: dict[str, Any]) -> str:
        """A type as source; `space` has the names that a type written as a string may use."""
        if isinstance(annotation, str):
            annotation = eval(annotation, space)  # our own source, read by inspect
        for known, module, name in NAMED:
            if annotation is known or annotation == known:
                return self.name(module, name)
        if annotation is None or annotation is types.NoneType:
            return "None"
        if annotation is Ellipsis:
            return "..."
        if annotation is typing.Self:
            return "Model"
        if annotation is Any:
            return self.name("typing", "Any")
        if isinstance(annotation, list):
            return f"[{', '.join(self.type(item, space) for item in annotation)}]"
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin in (typing.Union, types.UnionType):
            parts = [self.type(item, space) for item in arguments]
            return " | ".join(dict.fromkeys(sorted(parts, key=lambda part: part == "None")))
        if origin is typing.Literal:
            return f"{self.name('typing', 'Literal')}[{', '.join(map(_quoted, arguments))}]"
        if origin is not None:
            inner = [self.type(item, space) for item in arguments]
            return f"{self.type(origin, space)}[{', '.join(inner)}]"
        module = "typing" if annotation.__module__ == "typing" else annotation.__module__
        if annotation is Model:
            return "Model"
        return self.name(module, annotation.__qualname__)

    def function(self, name: str, call: Callable[..., Any], indent: str = "") -> str:
        """A function with all its parameters, one a line where it is long, and the first line of its docstring.

        One that gives a result for each text has two signatures: of one text its result, of several a list of them.
        """
        space = _namespace(call)
        signature = inspect.signature(call)
        if signature.return_annotation is signature.empty:
            raise ValueError(f"{name} does not say what it returns")
        if not getattr(call, "for_each_text", False):
            return self._signature(name, call, signature, indent)
        of_model, texts, *others = signature.parameters.values()
        gives = signature.return_annotation
        self.name("typing", "overload")
        (of_one,) = typing.get_args(eval(gives, space) if isinstance(gives, str) else gives)
        one_text = texts.replace(annotation=Value)
        alone = signature.replace(parameters=[of_model, one_text, *others], return_annotation=of_one)
        # A text is an iterable of texts to a type checker, too: it takes the first signature that fits.
        first = self._signature(name, call, alone, indent, "  # type: ignore[overload-overlap]")
        return f"{indent}@overload\n{first}{indent}@overload\n{self._signature(name, call, signature, indent)}"

    def _signature(
        self, name: str, call: Callable[..., Any], signature: inspect.Signature, indent: str, note: str = ""
    ) -> str:
        """One signature of a function, with the first line of its docstring; a note ends its first line."""
        space = _namespace(call)
        parameters, keywords_only = [], False
        for parameter in signature.parameters.values():
            if parameter.kind is parameter.KEYWORD_ONLY and not keywords_only:
                keywords_only = True
                parameters.append("*")
            parameters.append(self._parameter(parameter, space))
        gives = self.type(signature.return_annotation, space)
        if signature.return_annotation is Any:
            gives = self.name(*_named_result(call))
        line = f"{indent}def {name}({', '.join(parameters)}) -> {gives}:"
        if len(line) > WIDTH:
            inner = "".join(f"{indent}    {parameter},\n" for parameter in parameters)
            line = f"{indent}def {name}({note}\n{inner}{indent}) -> {gives}:"
        else:
            line += note
        summary = (inspect.getdoc(call) or "").partition("\n")[0]
        return f'{line}\n{indent}    """{summary}"""\n' if summary else f"{line} ...\n"

    def _parameter(self, parameter: inspect.Parameter, space: dict[str, Any]) -> str:
        stars = ""
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
        if parameter.annotation is parameter.empty:
            return f"{stars}{parameter.name}"
        written = f"{stars}{parameter.name}: {self.type(parameter.annotation, space)}"
        if parameter.default is parameter.empty:
            return written
        plain = isinstance(parameter.default, str | int | float | bool | None)
        return f"{written} = {_quoted(parameter.default) if plain else '...'}"


def stub() -> str:
    """The text of the stub."""
    writer = Writer()
    functions = "\n".join(writer.function(name, getattr(bertcli, name)) for name in _functions())
    methods = "\n".join(writer.function(name, call, "    ") for name, call in _methods())
    lines = [f"from {module} import {_imported(names)}" for module, names in sorted(writer.imports.items())]
    own = ("__version__", "BertConfig", "BertcliError", "params", "trace")
    lines += [f"from {NAMES[name]} import {_imported([name])}" for name in own]
    lines += ["from bertcli import functional as functional", "from bertcli.model import Model as OpenedModel"]
    imports = "\n".join(sorted(set(lines)))
    names = "".join(f'    "{name}",\n' for name in sorted([*NAMES, *_functions()]))
    summary = (inspect.getdoc(Model) or "").partition("\n")[0]
    return (
        f"{HEAD}{imports}\n\n__all__ = [\n{names}]\n\n"
        f'class Model(OpenedModel):\n    """{summary}"""\n\n{methods}\n'
        f"load = Model.load\nvariant = Model.variant\n\n{functions}"
    )


def _functions() -> list[str]:
    """The names that wings bring to the package."""
    return sorted(name for wing in wings() for name in wing.names)


def _methods() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The methods of a model that are made from declarations, and those that take their options."""
    made = {spec.module for spec in own_specs()} | {name for wing in wings() for name in wing.methods}
    model = Model.variant("tiny")
    for name in sorted({*made, "encode_blocks", "encode_sparse"}):
        yield name, _unbound(getattr(model, name))


def _unbound(method: Any) -> Callable[..., Any]:
    function: Callable[..., Any] = method.__func__
    return function


def _namespace(call: Callable[..., Any]) -> dict[str, Any]:
    """The names of a function's file, with those that it imports for type checkers alone."""
    module = inspect.getmodule(inspect.unwrap(call))
    assert module is not None
    space = dict(vars(module))
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                space.setdefault(alias.asname or alias.name, getattr(import_module(node.module), alias.name))
    return space


def _named_result(call: Callable[..., Any]) -> tuple[str, str]:
    """The module and the name of a result's type, from the function's source: Array is Any when it runs."""
    written = ast.parse(inspect.cleandoc(inspect.getsource(inspect.unwrap(call)))).body[0]
    assert isinstance(written, ast.FunctionDef)
    assert isinstance(written.returns, ast.Name)
    name = written.returns.id
    module = inspect.getmodule(inspect.unwrap(call))
    assert module is not None
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and node.module and name in [alias.name for alias in node.names]:
            return node.module, name
    raise ValueError(f"{name} is not imported where {call} is")


def _imported(names: Iterable[str]) -> str:
    """Names to import; the package's own are exported, too (`as`)."""
    public = {*NAMES, *_functions()}
    return ", ".join(f"{name} as {name}" if name in public else name for name in sorted(names))


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


if __name__ == "__main__":
    FILE.write_text(stub(), encoding="utf-8")

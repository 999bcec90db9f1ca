"""The tools that a client of `bertcli mcp` sees: a name, a description, a JSON schema, and what it does.

Arguments of a tool are options of a command, with the command's own types and help, taken from its spec.
"""

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import numpy as np
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from jsonschema.validators import extend

from bertcli import capabilities, extensions
from bertcli.errors import BertcliError
from bertcli.extensions import CommandParts
from bertcli.files.texts import from_values
from bertcli.model import Model
from bertcli.report.digits import short_rows
from bertcli.tasks.encode import EncodeOptions
from bertcli.tasks.limits import DoorLimits, over, too_many_texts
from bertcli.tasks.options import Option, declared, types_of
from bertcli.tasks.registry import TaskSpec, spec, work_of
from bertcli.tasks.request import Request, run
from bertcli.wings.agents.roots import Roots

MOST_CHARACTERS = 1_000_000  # of all arguments of a call together
LIMITS = DoorLimits(
    texts=2048,
    characters=MOST_CHARACTERS,
    entries=1000,
    in_options=250_000,
    tokens=1_048_576,
    predictions=100_000,
    vectors=256 << 20,
    files=64_000_000,
)
COMPARED = ("encode",)  # for which a model was trained whose vectors are compared
ALL = ["."]  # the files of a search, unless it names others
MOST_LISTED = 1000  # files
MOST_COMPARED = 200  # texts, each with each
MOST_SAID = 300  # characters of what is wrong with an argument
Schema = dict[str, Any]
Arguments = Mapping[str, Any]
TEXTS: Schema = {
    "type": "array",
    "items": {"type": "string"},
    "minItems": 1,
    "maxItems": LIMITS.texts,
    "description": "The texts.",
}
# JSON Schema takes 1.0 for a whole number; options and the server do not.
WHOLE = Draft202012Validator.TYPE_CHECKER.redefine(
    "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
)
Validator = extend(Draft202012Validator, type_checker=WHOLE)
JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


@dataclass(frozen=True)
class Tool:
    """A tool: its name, what it is for, the schema of its arguments, and the function that gives its result."""

    name: str
    description: str
    arguments: Schema
    required: tuple[str, ...]
    run: Callable[[Arguments], Any]

    @property
    def schema(self) -> Schema:
        """The JSON schema of all arguments."""
        return {
            "type": "object",
            "properties": self.arguments,
            "required": list(self.required),
            "additionalProperties": False,
        }

    def call(self, arguments: Arguments) -> Any:
        """Check the arguments and run the tool. Errors: BertcliError for what the schema does not allow."""
        characters = sum(map(_characters, arguments.values()))
        if characters > MOST_CHARACTERS:
            raise BertcliError(f"The arguments have {characters:,} characters, more than {MOST_CHARACTERS:,}.")
        texts = arguments.get("texts")
        if isinstance(texts, list) and over(len(texts), LIMITS.texts):
            raise too_many_texts(len(texts), LIMITS.texts)
        wrong = best_match(Validator(self.schema).iter_errors(dict(arguments)))
        if wrong is not None:
            place = "".join(f"[{part}]" if isinstance(part, int) else str(part) for part in wrong.path)
            # What quotes a long argument does not come to the point.
            is_short = len(wrong.message) <= MOST_SAID
            message = wrong.message if is_short else f"{wrong.validator} is {wrong.validator_value}"
            raise BertcliError(f"{self.name}: {f'{place}: ' if place else ''}{message}.")
        return self.run(arguments)


class AvailableModels:
    """The models that a client may use: those of -m, opened when they are first used, else the bundled ones.

    open_model: opens a model by the name that -m gave, or the name of a bundled one.
    """

    def __init__(self, names: Sequence[str], open_model: Callable[[str], Model]) -> None:
        self._names = names
        self._open = open_model
        self._opened: dict[str, Model] = {}

    def opened(self, name: str) -> Model:
        """Open a model, once."""
        if name not in self._opened:
            self._opened[name] = self._open(name)
        return self._opened[name]

    def for_task(self, task: TaskSpec, options: Any, uses: Sequence[str] = ()) -> Model:
        """Choose a model: one of -m that was trained for the work, else the bundled one, else what can do it.

        uses: those that count as trained for it; those of the task, if none is given. Errors: BertcliError, that of
        the last model, or that there is none.
        """
        needs = task.needs(options)
        trained_for = uses or needs.trained or [use.name for use in task.every_use]
        refused: BertcliError | None = None

        def can(model: Model) -> bool:
            nonlocal refused
            try:
                work_of(task).plan(model, options)
            except BertcliError as error:
                refused = error
                return False
            return True

        def trained(model: Model) -> bool:
            return capabilities.is_trained(model, trained_for)

        names = [*self._names, *([needs.sample] if needs.sample else [])]
        for model in capabilities.which(map(self.opened, names), trained, can):
            return model
        if refused is not None:
            raise refused
        raise BertcliError(f"No model for {task.name}: start bertcli mcp with -m MODEL, such as {needs.fitting}.")


def tools(models: AvailableModels, roots: Roots, index: str | None = None) -> list[Tool]:
    """Make the tools. Search and keywords are among them where their wings are there.

    index: the file in which search keeps vectors for the next process.
    """
    made = [
        _of_task(models, "classify", "classify", "Label texts, or with candidates decide which of these labels fits."),
        _of_task(models, "fill_mask", "fill-mask", "Find the words that fit where a text has [MASK]."),
        _of_task(
            models,
            "redact",
            "tag",
            "Replace names, places or other entities in texts by their labels.",
            {"redact": True},
        ),
        Tool(
            "similarity",
            "Compare texts: the cosine similarity of every pair, -1 to 1.",
            {"texts": {**TEXTS, "maxItems": MOST_COMPARED}},
            ("texts",),
            lambda arguments: _similarity(models, arguments["texts"]),
        ),
        Tool(
            "params",
            "Count the parameters of a model by its variant's name, such as base, large or roberta-base.",
            {"variant": {"type": "string", "description": "The variant's name."}},
            ("variant",),
            lambda arguments: _params(arguments["variant"]),
        ),
    ]
    if spec("keywords") is not None:
        described = "Find the words of a text that its vector is nearest to."
        made.insert(1, _of_task(models, "keywords", "keywords", described))
    if "search_files" in extensions.exported_names():
        made.insert(0, _search(models, roots, index))
        made.insert(1, _files(roots))
    return made


# The options of a command that a tool offers.
OFFERED = {
    "classify": ("top_k", "candidates", "multi_label"),
    "keywords": ("top_k", "ngrams", "diversity"),
    "fill-mask": ("top_k", "targets"),
    "tag": ("labels", "only", "redact_with"),
    "search": ("top_k", "hybrid"),
}


def _of_task(
    models: AvailableModels, name: str, task_name: str, description: str, fixed: Mapping[str, Any] | None = None
) -> Tool:
    """Make the tool of a task from its spec; `fixed`: options that the client does not choose."""
    task = spec(task_name)
    assert task is not None
    arguments: Schema = {"texts": TEXTS, **_offered(task_name, declared(task.options))}

    def records(given: Arguments) -> Any:
        chosen = {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
        texts = chosen.pop("texts")
        options: Any = task.options(**chosen, **(fixed or {}))
        model = models.for_task(task, options)
        asked = Request(task, options, from_values(texts), lambda: model, limits=LIMITS)
        every = [record for block in run(asked) for record in block.records()]
        return {"records": every, "model": model.name}

    return Tool(name, description, arguments, ("texts",), records)


def _search(models: AvailableModels, roots: Roots, index: str | None) -> Tool:
    """Make the tool that searches files by meaning; their vectors are kept while the process lives."""
    arguments: Schema = {
        "query": {"type": "string", "description": "What is looked for, in words of your own."},
        "files": _named_files(roots),
        **_offered("search", _options_of("search")),
    }
    arguments["top_k"] |= {"maximum": 100, "description": "How many passages. (default: 5)"}

    def records(given: Arguments) -> Any:
        encode = spec("encode")
        assert encode is not None
        chosen = {"top_k": 5, **{name: given[name] for name in OFFERED["search"] if name in given}}
        try:
            files = roots.files(given.get("files", ALL), LIMITS)
            names = [glob.escape(name) if glob.has_magic(name) else name for name in files]
            model = models.for_task(encode, encode.options(), COMPARED)
            search_files = extensions.exported("search_files")
            hits = search_files(given["query"], names, model=model, index=index, keep=True, limits=LIMITS, **chosen)
        except BertcliError as error:
            raise BertcliError(roots.in_words(str(error))) from None
        return {"records": [{**hit, "file": roots.shown(hit["file"])} for hit in hits], "model": model.name}

    description = "Search files by meaning: the passages nearest to a query, each with file and line."
    return Tool("search", description, arguments, ("query",), records)


def _named_files(roots: Roots) -> Schema:
    """The schema of an argument that names files."""
    return {
        "type": "array",
        "items": {"type": "string"},
        "minItems": 1,
        "default": ALL,
        "description": f"Names, folders or patterns such as docs/**/*.md. {roots.relative}",
    }


def _files(roots: Roots) -> Tool:
    """Make the tool that lists what search reads."""

    def run(given: Arguments) -> Any:
        try:
            files = roots.files(given.get("files", ALL))
        except BertcliError as error:
            raise BertcliError(roots.in_words(str(error))) from None
        records = [{"file": roots.shown(file), "bytes": os.path.getsize(file)} for file in files[:MOST_LISTED]]
        return {"records": records, "files": len(files)}

    described = f"List the files that search reads, with their sizes: at most {MOST_LISTED:,}, and how many there are."
    return Tool("list_files", described, {"files": _named_files(roots)}, (), run)


def _similarity(models: AvailableModels, texts: Sequence[str]) -> Any:
    """Return {texts, cosine: [text, text], model}."""
    task = spec("encode")
    assert task is not None
    options = EncodeOptions(normalize=True)
    model = models.for_task(task, options, COMPARED)
    asked = Request(task, options, from_values(texts), lambda: model, limits=LIMITS)
    vectors = np.concatenate([block.vectors for block in run(asked)])
    return {"texts": list(texts), "cosine": short_rows(np.clip(vectors @ vectors.T, -1, 1)), "model": model.name}


def _params(variant: str) -> Any:
    """Return the record of `bertcli params --variant NAME`."""
    from bertcli.analysis.params import params

    return params(Model.variant(variant), depth=1).record


# ------------------------------------------------------------------------------------------------------------ schemas


def _options_of(command: str) -> Iterator[Option]:
    """Yield the options of a wing's command that is no task's."""
    parts: CommandParts = import_module(extensions.commands()[command].module).command_parts(command)
    for group in parts.groups.values():
        yield from declared(group)


def _offered(command: str, options: Iterable[Option]) -> Schema:
    """The JSON schemas of those of a command's options that its tool offers."""
    schemas: Schema = {}
    for item in (item for item in options if item.name in OFFERED[command]):
        schemas[item.name] = {**_schema(item.type), "description": item.help}
        if item.least is not None:
            schemas[item.name]["minimum"] = item.least
    return schemas


def _schema(hint: Any) -> Schema:
    """The JSON schema of an option's type; a list where several values are possible."""
    kinds = [kind for kind in types_of(hint) if kind is not NoneType]
    words = next((kind for kind in kinds if get_origin(kind) is Literal), None)
    if words is not None:
        return {"type": "string", "enum": list(get_args(words))}
    listed = next((kind for kind in kinds if get_args(kind)), None)
    if listed is not None:
        (item, *_) = get_args(listed)
        return {"type": "array", "items": {"type": JSON_TYPES[item]}}
    return {"type": JSON_TYPES[kinds[0]]}


def _characters(value: Any) -> int:
    """Count the characters of an argument."""
    if isinstance(value, str):
        return len(value)
    return sum(map(_characters, value)) if isinstance(value, list) else 1

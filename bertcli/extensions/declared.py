"""The declaration of what a wing or a plugin brings; a file of its own, since both import it and nothing else here."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple


class Command(NamedTuple):
    """A command, as --help shows it before its module is imported.

    summary      the first line of the command's docstring; a test holds the two equal
    module       has a function of the command's name, or `command_parts(name)`, which makes `CommandParts`
    position     the place in the group
    other_words  what other tools call it; who types one of these is told the command's name
    """

    name: str
    group: str
    summary: str
    module: str
    position: int = 0
    other_words: tuple[str, ...] = ()


class CommandParts(NamedTuple):
    """The parts of a command: its help, the groups of its options by parameter, and its function.

    endings: of the files that it writes, if its group of output options does not say so.
    """

    help: str | None
    groups: Mapping[str, Any]
    call: Callable[..., None]
    endings: tuple[str, ...] = ()


class Topic(NamedTuple):
    """A page of the guide: its file, its place in the list, and what else a reader may call it."""

    file: Path
    position: int = 100
    other_words: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name that `bertcli guide NAME` takes."""
        return self.file.stem


class Engine(NamedTuple):
    """An engine that computes hidden states instead of NumPy.

    name         what `--engine` and `bertcli.load(engine=…)` take
    title        what people call it
    summary      what the help of `--engine` says of it
    module       has `open_engine(name, network, folder, config, device)`, which makes an `OtherEngine`
    served_with  the packages with which `bertcli serve` takes it unless told; () for an engine that has to be named
    """

    name: str
    title: str
    summary: str
    module: str
    served_with: tuple[str, ...] = ()


class Extension(NamedTuple):
    """The declaration of a wing or a plugin. A module is named, not imported, until what it holds is used.

    names      names of the package `bertcli`, each with the module: {"search": "bertcli.wings.search.calls"}
    methods    methods of `bertcli.Model`, each with the module that has the function, whose first argument is the model
    examples   the module with `examples(subject)`, which yields an `Example` for each use of a model
    doctor     the module with `examine()`: what it adds to the record of `bertcli doctor`
    engines    engines that compute instead of NumPy
    stands_on  other wings that this one imports; it cannot be used without them
    extra      the extra of `pip install 'bertcli[EXTRA]'` that it needs

    What the core has in its rooms, a plugin brings so, and a wing its tasks:

    families   modules with a FAMILY, as those in `bertcli/models/`
    tasks      modules with a SPEC, as those in `bertcli/tasks/`, each with the module of its work, which has `plan`:
               {"bertcli_shout.shout": "bertcli_shout.work"}; the last part is the name of the command and the method
    kinds      by a class in modules.json that the core does not know, the module that reads a folder with it: it has
               `read`, as the files in `bertcli/kinds/`: {"bertcli_whitening.Whitening": "bertcli_whitening.kind"}

    kind_folders   packages of kinds whose models lie in folders of a type of their own, each as a folder in
                   `bertcli/kinds/`: kind.py has `read`, folder_type.py a TYPE; a wing's only
    """

    name: str
    commands: tuple[Command, ...] = ()
    names: Mapping[str, str] = {}
    methods: Mapping[str, str] = {}
    examples: str | None = None
    doctor: str | None = None
    engines: tuple[Engine, ...] = ()
    topics: tuple[Topic, ...] = ()
    stands_on: tuple[str, ...] = ()
    extra: str | None = None
    families: tuple[str, ...] = ()
    tasks: Mapping[str, str] = {}
    kinds: Mapping[str, str] = {}
    kind_folders: tuple[str, ...] = ()

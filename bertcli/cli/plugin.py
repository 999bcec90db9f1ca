"""The command plugin: write the package that `bertcli guide plugins` shows, under another name.

The page is the template: each of its code blocks that names a file is one. extensions/plugin.py finds plugins.
"""

import re
import sys
from dataclasses import dataclass
from keyword import iskeyword
from pathlib import Path

from bertcli.cli.guide import FOLDER
from bertcli.cli.options import wrong
from bertcli.errors import BertcliError
from bertcli.extensions import plugin_commands
from bertcli.extensions.plugin import own_names
from bertcli.files.write.draft_folder import draft_folder
from bertcli.report.written import say_written
from bertcli.tasks.options import argument

PAGE = FOLDER / "plugins.md"
FILE = re.compile(r"^```\w+ (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"[a-z][a-z0-9]*")
NAME_ON_PAGE = "shout"
WORK = "work"  # the module beside that of the name


@dataclass(frozen=True, eq=False, repr=False)
class PluginOptions:
    """The name of what is to be written."""

    name: str = argument(..., "NAME", "One word: the command's name, and of the folder bertcli-NAME that is written.")


def plugin(options: PluginOptions) -> None:
    """Begin a plugin: write a package with a command of your own.

    bertcli plugin shout
    pip install -e bertcli-shout

    The package has an entry point, a task and its test. Installed, it is a
    command, a method of a model and a route of bertcli serve. "bertcli guide
    plugins" explains each of its files.
    """
    name = options.name
    if not NAME.fullmatch(name) or iskeyword(name):
        raise wrong(
            "NAME", f"{name!r} is no name of a command and a module: use one word of small letters, as in shout."
        )
    own = {word for _, word in own_names()}
    from bertcli.model import Model  # late: NumPy comes with it

    if name in own or name in plugin_commands() or hasattr(Model, name) or name == WORK:
        raise wrong("NAME", f"{name!r} is taken: choose another name.")
    folder = Path(f"bertcli-{name}")
    if folder.exists():
        raise BertcliError(f"{folder} is there already: remove it, or choose another name. Nothing was written.")
    with draft_folder(folder, str(folder)) as draft:
        for path, text in files(name).items():
            file = draft / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    say_written(folder)
    print(f"Next: pip install -e {folder}", file=sys.stderr)


def files(name: str) -> dict[str, str]:
    """The text of each file of a plugin, by its path in the plugin's folder."""
    page = PAGE.read_text(encoding="utf-8")
    named = page.replace(NAME_ON_PAGE, name).replace(NAME_ON_PAGE.capitalize(), name.capitalize())
    return {path.partition("/")[2]: text for path, text in FILE.findall(named)}

"""What is brought to the core from outside its rooms: by wings, which come with it, and by plugins, which you install.

declared  an `Extension`: what a wing or a plugin says of itself; **what one may bring**
wing      finds the wings, folders of `bertcli/wings/`
plugin    finds the plugins, packages with an entry point; what happens if one cannot be used (a kind: kinds/read); **is
          a plugin used, or reported as unfit**
brought   what both bring, by name: commands, names of `bertcli`, methods, engines, pages, families, tasks, kinds, …;
          **who is asked first** (of a model_type: models/registry)
core      the core's own commands that are no task's
of_kinds  what the folders of kinds bring, the core's and wings': types of folders, ops, their formulas
"""

from bertcli.extensions.brought import (
    answers,
    blamed_for,
    command,
    commands,
    engine,
    engine_names,
    engines,
    exported,
    exported_names,
    method,
    misplaced,
    opens_engine,
    own_commands,
    plugin_commands,
    plugin_engines,
    plugin_parts,
    reads_kind,
    topics,
    work_of,
)
from bertcli.extensions.declared import Command, CommandParts, Engine, Extension, Topic
from bertcli.extensions.plugin import at_fault, plugins, problems
from bertcli.extensions.wing import WINGS, wings

__all__ = [
    "WINGS",
    "Command",
    "CommandParts",
    "Engine",
    "Extension",
    "Topic",
    "answers",
    "at_fault",
    "blamed_for",
    "command",
    "commands",
    "engine",
    "engine_names",
    "engines",
    "exported",
    "exported_names",
    "method",
    "misplaced",
    "opens_engine",
    "own_commands",
    "plugin_commands",
    "plugin_engines",
    "plugin_parts",
    "plugins",
    "problems",
    "reads_kind",
    "topics",
    "wings",
    "work_of",
]

"""A task of bertcli from outside: `bertcli shout` writes the pieces of a text in capitals."""

from bertcli.extensions import Extension

EXTENSION = Extension("shout", tasks={"bertcli_shout.shout": "bertcli_shout.work"})

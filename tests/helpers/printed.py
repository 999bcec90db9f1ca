"""Commands that run one after the other in a process of their own: what each leaves with, and prints."""

from collections.abc import Sequence

PROGRAM = """
import contextlib, io, json
from bertcli.cli.app import application
answers = []
for words in COMMANDS:
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(out):
        try:
            status = application(words[0])(list(words), prog_name="bertcli")
        except SystemExit as end:
            status = end.code
    out.seek(0)
    answers.append((status or 0, out.read()))
print(json.dumps(answers))
"""


def program_of(commands: Sequence[Sequence[str]]) -> str:
    """A program that prints a pair of status and standard output for each command, as JSON."""
    return PROGRAM.replace("COMMANDS", repr(commands))

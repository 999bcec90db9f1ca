"""Agents: `bertcli mcp`, a server of the Model Context Protocol over standard input and output.

command   the command mcp: its options, and the models and folders that a client may use
tools     the tools that a client sees: their schemas, made from the specs of tasks, and what they do; **which model
          answers, and what is allowed**
roots     which files a client may name: those below the folders of --root
server    the protocol: requests in, results out, **and that every tool only reads**; the only file that imports the
          package mcp
"""

from pathlib import Path

from bertcli.extensions import Command, Extension, Topic

WING = Extension(
    "agents",
    commands=(
        Command(
            "mcp",
            "Evaluate and deploy",
            "Give an assistant or an editor search, redaction and labels (MCP), locally.",
            module="bertcli.wings.agents.command",
            position=4,
        ),
    ),
    topics=(Topic(Path(__file__).parent / "guide" / "agents.md", 5, ("mcp", "assistant", "skill")),),
    extra="agents",
)

"""The commands of the house that are no task's, each a module of `bertcli/cli/`."""

from bertcli.extensions.declared import Command

COMMANDS = (
    Command("similarity", "Search", "Compare texts: the cosine similarity of every pair.", "bertcli.cli.similarity", 2),
    Command(
        "neighbors",
        "Search",
        "Find the tokens nearest to a word in the embedding space.",
        "bertcli.cli.neighbors",
        position=3,
    ),
    Command("info", "Inspect", "Show what a model is, and which commands can use it.", "bertcli.cli.info", 1),
    Command("params", "Inspect", "Count parameters module by module, as Keras' summary does.", "bertcli.cli.params", 2),
    Command(
        "trace",
        "Inspect",
        "Every operation of a forward pass: shapes, parameters, MACs, time.",
        "bertcli.cli.trace",
        position=3,
    ),
    Command("tokenize", "Inspect", "Show the tokens that a model sees in a text.", "bertcli.cli.tokenize", 4),
    Command(
        "doctor",
        "Inspect",
        "Show what determines speed here: BLAS, its kernel, threads, measured rates.",
        "bertcli.cli.doctor",
        position=5,
    ),
    Command("guide", "Guide", "Show the manual, one topic a page.", "bertcli.cli.guide"),
)

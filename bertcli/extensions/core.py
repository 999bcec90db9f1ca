"""The commands of the core that are no task's, each a module of `bertcli/cli/`."""

from bertcli.extensions.declared import Command

COMMANDS = (
    Command(
        "similarity",
        "Search",
        "Compare texts: the cosine similarity of every pair.",
        module="bertcli.cli.similarity",
        position=2,
        other_words=("cosine", "sim", "dedupe", "duplicates", "paraphrases"),
    ),
    Command(
        "neighbors",
        "Search",
        "Find the tokens nearest to a word in the embedding space.",
        module="bertcli.cli.neighbors",
        position=3,
        other_words=("nearest",),
    ),
    Command(
        "info",
        "Inspect",
        "Show what a model is, and which commands can use it.",
        module="bertcli.cli.info",
        position=1,
        other_words=("show", "models", "list", "download", "pull"),
    ),
    Command(
        "params",
        "Inspect",
        "Count parameters module by module, as Keras' summary does.",
        module="bertcli.cli.params",
        position=2,
        other_words=("summary", "count"),
    ),
    Command(
        "trace",
        "Inspect",
        "Every operation of a forward pass: shapes, parameters, MACs, time.",
        module="bertcli.cli.trace",
        position=3,
        other_words=("flops", "macs", "profile"),
    ),
    Command(
        "tokenize",
        "Inspect",
        "Show the tokens that a model sees in a text.",
        module="bertcli.cli.tokenize",
        position=4,
        other_words=("tokens",),
    ),
    Command(
        "doctor",
        "Inspect",
        "Show what determines speed here: BLAS, its kernel, threads, measured rates.",
        module="bertcli.cli.doctor",
        position=5,
        other_words=("check", "version"),
    ),
    Command(
        "guide",
        "Guide",
        "Show the manual, one topic a page.",
        module="bertcli.cli.guide",
        position=0,
        other_words=("docs", "manual", "man"),
    ),
    Command(
        "plugin",
        "Guide",
        "Begin a plugin: write a package with a command of your own.",
        module="bertcli.cli.plugin",
        position=1,
        other_words=("new", "scaffold"),
    ),
)

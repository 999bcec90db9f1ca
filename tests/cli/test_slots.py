"""How many options each command offers: a new one is worth its place in a help, or stays in Python."""

from helpers.slots import slots

# Those of every command (--offline, --cache-dir, --threads, --debug) and -h, --help are not counted.
MOST = {
    "encode": 25,
    "classify": 23,
    "fill-mask": 17,
    "score": 16,
    "tag": 20,
    "answer": 16,
    "rank": 14,
    "keywords": 16,
    "search": 19,
    "similarity": 12,
    "neighbors": 5,
    "info": 2,
    "params": 17,
    "trace": 20,
    "tokenize": 11,
    "doctor": 2,
    "explain": 13,
    "lens": 11,
    "heads": 15,
    "patch": 12,
    "probe": 18,
    "diff": 7,
    "evaluate": 28,
    "serve": 15,
    "export": 8,
    "mcp": 2,
    "guide": 0,
}


def test_no_command_offers_more_options_than_are_recorded() -> None:
    offered = {name: len(options) for name, options in slots().items()}
    assert offered == MOST


def test_models_are_named_alike_in_every_command() -> None:
    """A revision and an adapter are part of a model's name."""
    for name, options in slots().items():
        assert not {"--revision", "--adapter"} & {*options}, name

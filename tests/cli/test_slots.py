"""How many options each command offers: a new one is worth its place in a help, or stays in Python."""

from helpers.slots import slots

# Those of every command (--offline, --cache-dir, --threads, --debug) and -h, --help are not counted.
MOST = {
    "encode": 24,
    "classify": 23,
    "fill-mask": 17,
    "score": 16,
    "tag": 24,
    "answer": 17,
    "rank": 16,
    "keywords": 18,
    "search": 18,
    "similarity": 13,
    "neighbors": 4,
    "info": 2,
    "params": 15,
    "trace": 17,
    "tokenize": 7,
    "doctor": 1,
    "explain": 12,
    "lens": 11,
    "heads": 15,
    "patch": 10,
    "probe": 16,
    "diff": 7,
    "evaluate": 28,
    "serve": 11,
    "export": 8,
    "mcp": 3,
    "guide": 0,
    "plugin": 0,
}


def test_no_command_offers_more_options_than_are_recorded() -> None:
    offered = {name: len(options) for name, options in slots().items()}
    assert offered == MOST


def test_an_option_of_one_name_has_one_meaning() -> None:
    """Those that had several, each with the commands that may have it."""
    meanings = {
        "--check": {"diff"},
        "--verify": {"export"},
        "--context": {"answer"},
        "--lines": {"search"},
        "--contrast": {"trace", "explain", "heads", "patch"},
        "--versus": {"params", "diff"},
        "--int8": {"export"},
    }
    offered = slots()
    for option, commands in meanings.items():
        assert {name for name, options in offered.items() if option in options} == commands, option
    for option in ("--save", "--plot", "--texts", "--token", "--revision", "--adapter"):
        assert not [name for name, options in offered.items() if option in options], option

"""Count the options that each command offers, and list them: `python tests/helpers/slots.py`.

The four that hold for every command (--offline, --cache-dir, --threads, --debug), -h and --help are not counted, nor
are arguments and hidden options.
"""

from helpers.options_of_commands import options_of

COMMON = {"--offline", "--cache-dir", "--threads", "--debug", "-h", "--help"}


def slots() -> dict[str, list[str]]:
    """The long names of the options that a command offers, by command."""
    offered = {}
    for command, options in options_of().items():
        shown = {option.opts[-1] for option in options.values() if is_offered(option)}
        offered[command] = sorted(shown - COMMON)
    return offered


def is_offered(option: object) -> bool:
    """True for an option that help shows, False for an argument."""
    return getattr(option, "param_type_name", "") == "option" and not getattr(option, "hidden", False)


if __name__ == "__main__":
    for name, options in slots().items():
        print(f"{name:12}{len(options):4}  {' '.join(options)}")
    print(f"{'in all':12}{sum(map(len, slots().values())):4}")

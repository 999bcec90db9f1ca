"""`bertcli guide`: print the manual, Markdown files in `bertcli/guide/` that are part of the package."""

from dataclasses import dataclass
from difflib import get_close_matches
from itertools import zip_longest
from pathlib import Path

from bertcli.cli.options import argument, wrong
from bertcli.report.markdown import print_markdown
from bertcli.report.terminal import folded, terminal_width

BEGIN = 16  # where summaries of topics begin in the list
FOLDER = Path(__file__).parents[1] / "guide"
ORDER = (  # as `bertcli guide` lists them; a topic that is not named here follows
    "files", "models", "tasks", "evaluate", "serve", "onnx", "interpret", "speed", "scale", "python",
    "coming", "troubleshooting", "seminar",
)  # fmt: skip
OTHER_WORDS = {  # what a reader may call a topic
    "input": "files",
    "output": "files",
    "formats": "files",
    "hub": "models",
    "families": "models",
    "errors": "troubleshooting",
    "messages": "troubleshooting",
    "help": "troubleshooting",
    "server": "serve",
    "http": "serve",
    "api": "python",
    "sentence-transformers": "coming",
    "transformers": "coming",
    "spacy": "coming",
    "keybert": "coming",
    "migration": "coming",
    "performance": "speed",
    "threads": "speed",
    "explain": "interpret",
    "bert": "seminar",
    "tutorial": "seminar",
    "course": "seminar",
}


@dataclass(frozen=True, eq=False, repr=False)
class GuideOptions:
    """The topic of the guide."""

    topic: str | None = argument(None, "[TOPIC]", "A page of the manual. (default: the list of topics)")


def guide(options: GuideOptions) -> None:
    """Show the manual, one topic a page.

    bertcli guide
    bertcli guide files
    bertcli guide troubleshooting
    bertcli guide seminar | less

    A terminal shows a page formatted; a pipe gets its Markdown.
    """
    pages = topics()
    if options.topic is None:
        width = terminal_width()
        for topic, file in pages.items():
            lines = folded(_summary(file), None if width is None else width - BEGIN).split("\n")
            for name, line in zip_longest([topic], lines, fillvalue=""):
                print(f"{name:{BEGIN}}{line}")
        print("\nbertcli guide TOPIC shows a page.")
        return
    topic = options.topic.lower().removesuffix(".md")
    topic = topic if topic in pages else OTHER_WORDS.get(topic, topic)
    if topic not in pages:
        near = get_close_matches(topic, [*pages, *OTHER_WORDS], n=1)
        meant = f"Did you mean {OTHER_WORDS.get(near[0], near[0])}? " if near else ""
        raise wrong("TOPIC", f"there is no topic {options.topic!r}. {meant}Topics are {', '.join(pages)}.")
    print_markdown(pages[topic].read_text(encoding="utf-8"))


def topics() -> dict[str, Path]:
    """The pages by topic, in the order in which they are listed."""
    files = {file.stem: file for file in FOLDER.glob("*.md")}
    known = [topic for topic in ORDER if topic in files]
    return {topic: files[topic] for topic in [*known, *sorted({*files} - {*known})]}


def _summary(file: Path) -> str:
    """A page's summary: its first heading, after the topic's name."""
    with file.open(encoding="utf-8") as lines:
        return next(lines).strip().removeprefix("# ")

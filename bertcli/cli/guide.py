"""`bertcli guide`: print the manual, Markdown files in `bertcli/guide/` and in the folders of wings."""

from dataclasses import dataclass
from difflib import get_close_matches
from itertools import zip_longest
from pathlib import Path

from bertcli import extensions
from bertcli.cli.options import wrong
from bertcli.extensions import Topic
from bertcli.report.markdown import print_markdown
from bertcli.report.terminal import folded, terminal_width
from bertcli.tasks.options import argument

BEGIN = 16  # where summaries of topics begin in the list
FOLDER = Path(__file__).parents[1] / "guide"
# The core's pages; those of wings are declared there.
PAGES = (
    Topic(FOLDER / "files.md", 1, ("input", "output", "formats")),
    Topic(FOLDER / "models.md", 2, ("hub", "families")),
    Topic(FOLDER / "tasks.md", 3),
    Topic(FOLDER / "redact.md", 3, ("anonymize", "privacy", "ner", "entities")),
    Topic(FOLDER / "speed.md", 8, ("performance", "threads")),
    Topic(FOLDER / "scale.md", 9),
    Topic(FOLDER / "python.md", 10, ("api",)),
    Topic(FOLDER / "coming.md", 11, ("sentence-transformers", "transformers", "spacy", "keybert", "migration")),
    Topic(FOLDER / "plugins.md", 12, ("plugin", "extensions")),
    Topic(FOLDER / "stability.md", 13),
    Topic(FOLDER / "troubleshooting.md", 14, ("errors", "messages", "help")),
    Topic(FOLDER / "seminar.md", 15, ("bert", "tutorial", "course")),
)


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
    other_words = {word: page.name for page in _topics() for word in page.other_words}
    topic = topic if topic in pages else other_words.get(topic, topic)
    if topic not in pages:
        near = get_close_matches(topic, [*pages, *other_words], n=1)
        meant = f"Did you mean {other_words.get(near[0], near[0])}? " if near else ""
        raise wrong("TOPIC", f"there is no topic {options.topic!r}. {meant}Topics are {', '.join(pages)}.")
    print_markdown(pages[topic].read_text(encoding="utf-8"))


def topics() -> dict[str, Path]:
    """The pages by topic, in the order in which they are listed."""
    return {topic.name: topic.file for topic in _topics()}


def _topics() -> list[Topic]:
    return sorted([*PAGES, *extensions.topics()], key=lambda topic: topic.position)


def _summary(file: Path) -> str:
    """A page's summary: its first heading, after the topic's name."""
    with file.open(encoding="utf-8") as lines:
        return next(lines).strip().removeprefix("# ")

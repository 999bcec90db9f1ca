"""The command tokenize: a row for each token. tasks/compute/tokenize.py makes the records."""

import logging
from collections.abc import Iterator

from bertcli.cli.inputs import FewTexts, read_texts
from bertcli.cli.options import ModelOptions
from bertcli.cli.output import OutputOptions, write_results
from bertcli.errors import quoted
from bertcli.names import MASKED_SAMPLE
from bertcli.report.tables import Cell, Record, Table
from bertcli.report.terminal import Column

logger = logging.getLogger("bertcli")
COLUMNS = (
    Column("index", int, varying=True),
    Column("position", int),
    Column("token"),
    Column("id", int),
    Column("segment", int),
    Column("start", int),
    Column("end", int),
)


def tokenize(texts: FewTexts, model: ModelOptions, output: OutputOptions) -> None:
    """Show the tokens that a model sees in a text.

    bertcli tokenize "An unbelievable story"
    bertcli tokenize "First text" --text-pair "second text"
    bertcli tokenize -m bert-base-cased -i texts.txt --format jsonl

    Start and end are a piece's position in its text, in characters. Segment 0 is the
    text and segment 1 its pair, for models that have segments; else it is 0.
    """
    source = read_texts(texts)
    output.check(source)
    from bertcli.folder.hub import Source

    folder = Source(**model.load_arguments(MASKED_SAMPLE)).find(weights=False)
    from bertcli.folder.layout import Layout
    from bertcli.models.registry import parse_config
    from bertcli.tasks.compute.tokenize import tokenize
    from bertcli.tokens import Tokenizer

    layout = Layout(folder)
    file = layout.transformer.file("config.json")
    has_config = file.exists() and layout.folder_type.has_config
    config = parse_config(layout.transformer.object(file.name), file) if has_config else None
    tokenizer, prompt = Tokenizer.open(layout, config), layout.prompts.default
    if prompt and tokenizer.chat is None:
        command = "rank" if layout.query_prompt else "encode"
        logger.info("%s puts the prompt %s before a text; these tokens are without it.", command, quoted(prompt))
    records = tokenize(tokenizer, source)
    write_results(records, output, Table(COLUMNS, _rows))


def _rows(record: Record) -> Iterator[tuple[Cell, ...]]:
    """A row for each token."""
    columns = [record[name] for name in ("tokens", "ids", "segments", "offsets")]
    for position, (token, id, segment, (start, end)) in enumerate(zip(*columns, strict=True)):
        yield record["index"], position, token, id, segment, start, end

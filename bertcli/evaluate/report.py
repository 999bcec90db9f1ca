"""An evaluation on the terminal, as Markdown and as CSV."""

from collections.abc import Iterator

from bertcli.evaluate.intervals import DRAWS, Figure
from bertcli.evaluate.judge import Evaluation, Verdict
from bertcli.report.documents import Document
from bertcli.report.terminal import Column

Table = tuple[list[Column], list[list[str]]]


def interval(figure: Figure) -> str:
    """Its 95 % interval, for people."""
    low, high = figure.interval
    return f"[{low:.4f}, {high:.4f}]" if low == low else ""


def value(figure: Figure) -> str:
    return f"{figure.value:.4f}" if figure.value == figure.value else "–"


def document(evaluation: Evaluation) -> Document:
    """The figures of one or two models; of more, and of ways to store vectors, what the first figure is."""
    columns, rows = _of_many(evaluation) if len(evaluation.models) > 2 else _of_few(evaluation.models)
    return Document(columns, rows, list(below(evaluation)), evaluation.record, list(_lines(evaluation.models)))


def _of_few(verdicts: list[Verdict]) -> Table:
    columns = [Column("Group"), Column("Figure")]
    for verdict in verdicts:
        columns += [Column(verdict.judged.name if len(verdicts) > 1 else "Value", number=True), Column("95 % interval")]
    rows = list(_rows("", [verdict.figures for verdict in verdicts]))
    for group in verdicts[0].by:
        rows += _rows(group, [verdict.by[group] for verdict in verdicts])
    return (columns, rows) if verdicts[0].by else (columns[1:], [row[1:] for row in rows])


def _of_many(evaluation: Evaluation) -> Table:
    main = next(iter(evaluation.models[0].figures))
    columns = [Column("Model"), Column("Bytes", number=True), Column(main, number=True), Column("95 % interval")]
    columns += [Column("Difference", number=True), Column("95 % interval"), Column("Ahead", number=True)]
    rows = []
    for verdict in evaluation.models:
        name, figure = verdict.judged.name, verdict.figures[main]
        size = f"{verdict.judged.details['bytes']:,}" if "bytes" in verdict.judged.details else ""
        cells = ["", "", ""]
        for one in evaluation.differences:
            if (one.metric, one.b) == (main, name):
                cells = [f"{one.figure.value:+.4f}", interval(one.figure), f"{one.ahead:.1%}"]
        rows.append([name, size, value(figure), interval(figure), *cells])
    return columns, rows


def _rows(group: str, figures: list[dict[str, Figure]]) -> Iterator[list[str]]:
    for name in figures[0]:
        yield [group, name, *(text for some in figures for text in (value(some[name]), interval(some[name])))]


def _lines(verdicts: list[Verdict]) -> Iterator[dict[str, object]]:
    for verdict in verdicts:
        for group, figures in {"": verdict.figures, **verdict.by}.items():
            for name, figure in figures.items():
                yield {"model": verdict.judged.name, "group": group or None, "metric": name, **figure.record}


def below(evaluation: Evaluation) -> Iterator[str]:
    """The sentences below the table."""
    outcome = evaluation.models[0].judged.outcome
    for difference in evaluation.differences if len(evaluation.models) == 2 else ():
        if difference.metric == next(iter(evaluation.models[0].figures)):
            yield difference.sentence(evaluation.count, outcome.unit)
    left_out = evaluation.left_out
    rest = f"; {left_out:,} left out (the first: {evaluation.labelled.left_out.first})" if left_out else ""
    yield f"{evaluation.count:,} {outcome.unit}{rest}. Intervals hold 95 % of {DRAWS:,} draws with replacement."

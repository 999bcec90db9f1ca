"""bertcli trace"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertcli.cli.analyzed import AnalyzedOptions, analyzed_model
from bertcli.cli.options import ModelOptions, TableFormat, argument, changed, wrong
from bertcli.tasks.options import option

if TYPE_CHECKING:
    from bertcli.analysis.attention import Choice
    from bertcli.analysis.trace import Trace
    from bertcli.model import Model

PICTURES = (".html", ".svg")
logger = logging.getLogger("bertcli")
TOKENS, SHAPES = 16, 512  # default length of a sentence: with weights, and without


@dataclass(frozen=True)
class TraceOptions:
    """What is run, and what is shown about it."""

    text: str | None = argument(None, "TEXT", "A text to run. (default: random token ids)")
    text_pair: str | None = option(None, "TEXT", "A second text.")
    all_layers: bool = option(False, "", "Show every layer, not one for all layers alike.")
    time: bool = option(False, "", "Measure each operation.")
    stats: bool = option(
        False, "",
        "Show minimum, maximum, mean and standard deviation of each output, and whether any is NaN or infinite.",
    )  # fmt: skip
    save: str | None = option(None, "FILE", "Write every output to a .npz or .safetensors file.")
    attention: str | None = option(
        None, "LAYER[.HEAD]", "Show attention weights in percent: of one head, or a layer's mean. Both count from 0."
    )
    output: str | None = option(None, "FILE", "With --attention: draw the weights, as .html or .svg.", "-o", "--output")
    format: TableFormat = option("table", "FORMAT", "How it is printed: table (default), json, csv or markdown.")

    def refuse_contradictions(self, analyzed: AnalyzedOptions) -> None:
        """Wrong usage is a typer.BadParameter."""
        for name in changed(analyzed):
            if self.text is not None and name in ("--seq-len", "--batch-size"):
                raise wrong(name, "this is for random ids; a text has its own length.")
        if self.text_pair is not None and self.text is None:
            raise wrong("--text-pair", "this needs a first text.")
        if self.output is not None and self.attention is None:
            raise wrong("--output", "this draws attention weights: give --attention LAYER as well.")
        if self.attention is not None and self.of_steps and self.output is None and self.format in ("csv", "markdown"):
            why = (
                f"with --attention, {self.format} cannot show the steps as well: leave this out, or use --format json."
            )
            raise wrong(self.of_steps[0], why)
        if analyzed.without_weights and self.text is not None:
            raise wrong("TEXT", "a variant or a config has no tokenizer; give --seq-len instead.")
        for name in changed(self):
            if analyzed.without_weights and name in ("--time", "--stats", "--save", "--attention"):
                raise wrong(name, "nothing is computed without weights; give a checkpoint.")

    @property
    def of_steps(self) -> list[str]:
        """The options given that concern the table of steps."""
        return [name for name in changed(self) if name in ("--time", "--stats", "--all-layers")]


def trace(model: ModelOptions, analyzed: AnalyzedOptions, wanted: TraceOptions) -> None:
    """Show every operation of a forward pass: operands, sizes, parameters, costs.

    bertcli trace --variant base
    bertcli trace --variant large --seq-len 128 --heads pooler,mlm --format csv
    bertcli trace "The cat sat on the mat." --time --stats
    bertcli trace "The cat sat on the mat." --attention 0.1
    bertcli trace "The cat sat on the mat." --attention 0 -o attention.html
    bertcli trace -m my-model --seq-len 64 --save outputs.npz

    Sizes are in symbols and numbers: B sentences of S tokens, hidden size H,
    A heads of size D, feed-forward size F, vocabulary V, positions P, token
    types T, labels C. Layers that do the same are shown once; in csv, times is
    how many do, and costs and seconds are those of one. A variant or a config
    needs no weights, and takes no time to run.
    """
    wanted.refuse_contradictions(analyzed)
    if wanted.save is not None or wanted.output is not None:
        from bertcli.files.arrays import ENDINGS
        from bertcli.files.draft import check_output

        for file, endings in ((wanted.save, ENDINGS), (wanted.output, PICTURES)):
            if file is not None:
                check_output(file, endings)
    opened = analyzed_model(model, analyzed)
    length = min(TOKENS if opened.has_weights else SHAPES, opened.config.max_tokens)
    size = _or(analyzed.batch_size, 1), _or(analyzed.seq_len, length)
    if opened.has_weights:
        _run(opened, size, wanted)
        return
    from bertcli.analysis.trace.watcher import run_shapes

    _show(opened, run_shapes(opened, *size), wanted)


def _run(model: Model, size: tuple[int, int], wanted: TraceOptions) -> None:
    """Run a pass with real numbers, of the text or of so many random sentences and tokens; show what is asked for."""
    from bertcli.analysis.attention import keeps_attention, parse_choice
    from bertcli.analysis.trace import trace as traced
    from bertcli.analysis.trace.watcher import pass_of_text, random_pass

    choice = None if wanted.attention is None else parse_choice(wanted.attention, model.config)
    given = random_pass(model, *size) if wanted.text is None else pass_of_text(model, wanted.text, wanted.text_pair)
    keep = (lambda path: True) if wanted.save else keeps_attention if choice else None
    with traced(model, time=wanted.time, stats=wanted.stats, keep=keep) as found:
        model.outputs(given.ids, given.segments)
    if wanted.save is not None:
        from bertcli.files.arrays import save_arrays

        save_arrays(wanted.save, found.arrays)
        logger.info("%d outputs written to %s.", len(found.arrays), wanted.save)
    if choice is None:
        _show(model, found, wanted)
        return
    if wanted.of_steps and (wanted.format == "table" or wanted.output is not None):
        _show(model, found, wanted)
        if wanted.output is None:
            print()
    if len(given.ids) > 1:
        logger.info("of %d sentences only the first is shown.", len(given.ids))
    _show_attention(found, given.pieces, choice, wanted)


def _or(given: int | None, otherwise: int) -> int:
    return otherwise if given is None else given


def _show(model: Model, trace: Trace, wanted: TraceOptions) -> None:
    from bertcli.analysis.trace.tables import trace_document
    from bertcli.report.documents import print_document
    from bertcli.report.tables import terminal_width

    width = terminal_width() if wanted.format == "table" else None
    document = trace_document(trace, model.config.sizes, all_layers=wanted.all_layers, width=width)
    print_document(document, wanted.format)


def _show_attention(trace: Trace, pieces: list[str], choice: Choice, wanted: TraceOptions) -> None:
    """Attention weights of a traced pass over these pieces: drawn into a file, else printed."""
    from bertcli.analysis import attention
    from bertcli.report.documents import print_document
    from bertcli.report.tables import folded, print_shades, terminal_width, visible

    found = attention.attention_of(trace, pieces)
    selected = found.select(choice)
    if wanted.output is not None:
        from bertcli.files.draft import save

        drawing = wanted.output.lower().endswith(".svg")
        text = attention.attention_svg(selected) if drawing else attention.attention_page(found, choice)
        save(wanted.output, text.encode())
    elif wanted.format == "table":
        width = terminal_width()
        print(folded(visible(selected.title), width))
        print_shades(attention.shaded_lines(selected, width))
    else:
        print_document(attention.attention_document(found, choice, trace), wanted.format)

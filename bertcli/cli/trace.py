"""bertcli trace"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertcli.cli.analyzed import AnalyzedOptions, analyzed_model
from bertcli.cli.command import command
from bertcli.cli.job import MASKED_SAMPLE
from bertcli.cli.options import ModelOptions, option

if TYPE_CHECKING:
    from bertcli.analysis.attention import Choice
    from bertcli.analysis.trace import Trace
    from bertcli.analysis.trace.watcher import Pass
    from bertcli.model import Model

Format = Literal["table", "json", "csv", "markdown"]
PICTURES = (".html", ".svg")
logger = logging.getLogger("bertcli")
TOKENS, SHAPES = 16, 512  # default length of a sentence: with weights, and without


@dataclass(frozen=True)
class TraceOptions:
    """What is run, and what is shown about it."""

    text: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", help="A text to run. (default: random token ids)", show_default=False),
    ] = None
    text_pair: Annotated[str | None, option(None, "--text-pair", metavar="TEXT", help="A second text.")] = None
    all_layers: Annotated[
        bool, option(None, "--all-layers", help="Show every layer, not one for all layers alike.")
    ] = False
    time: Annotated[bool, option(None, "--time", help="Measure each operation.")] = False
    stats: Annotated[
        bool,
        option(None, "--stats",
               help="Show minimum, maximum, mean and standard deviation of each output, and whether any is NaN or "
               "infinite."),
    ] = False  # fmt: skip
    save: Annotated[
        str | None,
        option(None, "--save", metavar="FILE", help="Write every output to a .npz or .safetensors file."),
    ] = None
    attention: Annotated[
        str | None,
        option(None, "--attention", metavar="LAYER[.HEAD]",
               help="Show attention weights in percent: of one head, or a layer's mean. Both count from 0."),
    ] = None  # fmt: skip
    output: Annotated[
        str | None,
        option(None, "-o", "--output", metavar="FILE", help="With --attention: draw the weights, as .html or .svg."),
    ] = None
    format: Annotated[
        Format, option(None, "--format", metavar=None, show_default=True, help="How the result is printed.")
    ] = "table"

    def refuse_contradictions(self, analyzed: AnalyzedOptions) -> None:
        """Wrong usage is a typer.BadParameter."""
        for name, value in (("--seq-len", analyzed.seq_len), ("--batch-size", analyzed.batch_size)):
            if self.text is not None and value is not None:
                raise typer.BadParameter("this is for random ids; a text has its own length.", param_hint=name)
        if self.text_pair is not None and self.text is None:
            raise typer.BadParameter("this needs a first text.", param_hint="--text-pair")
        if self.output is not None and self.attention is None:
            raise typer.BadParameter(
                "this draws attention weights: give --attention LAYER as well.", param_hint="--output"
            )
        if self.attention is not None and self.of_steps and self.output is None and self.format in ("csv", "markdown"):
            raise typer.BadParameter(
                f"with --attention, {self.format} cannot show the steps as well: leave this out, or use --format json.",
                param_hint=self.of_steps,
            )
        if analyzed.without_weights:
            self._refuse_numbers()

    @property
    def of_steps(self) -> str:
        """The first option given that concerns the table of steps; "" if none."""
        given = {"--time": self.time, "--stats": self.stats, "--all-layers": self.all_layers}
        return next((name for name, value in given.items() if value), "")

    def _refuse_numbers(self) -> None:
        """Refuse, for a variant or a configuration, options that need real numbers."""
        if self.text is not None:
            raise typer.BadParameter(
                "a variant or a config has no tokenizer; give --seq-len instead.", param_hint="TEXT"
            )
        for name in ("time", "stats", "save", "attention"):
            if getattr(self, name):
                raise typer.BadParameter(
                    "nothing is computed without weights; give a checkpoint.", param_hint=f"--{name}"
                )


@command("trace")
def trace(context: typer.Context, model: ModelOptions, analyzed: AnalyzedOptions, wanted: TraceOptions) -> None:
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
    _check_files(wanted.save, wanted.output)
    opened = analyzed_model(context, model, analyzed, MASKED_SAMPLE)
    if opened.has_weights:
        _run(opened, analyzed, wanted)
        return
    from bertcli.analysis.trace.watcher import run_shapes

    length = min(SHAPES, opened.config.max_tokens)
    found = run_shapes(opened, _or(analyzed.batch_size, 1), _or(analyzed.seq_len, length))
    _show(opened, found, wanted)


def _run(model: Model, analyzed: AnalyzedOptions, wanted: TraceOptions) -> None:
    """Run a pass with real numbers, and show what is asked for."""
    from bertcli.analysis.attention import keeps_attention, parse_choice
    from bertcli.analysis.trace import trace as traced

    choice = None if wanted.attention is None else parse_choice(wanted.attention, model.config)
    given = _pass(model, analyzed, wanted)
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
    _show_attention(found, given.pieces, choice, wanted.output, wanted.format)


def _check_files(save: str | None, output: str | None) -> None:
    """Refuse files that cannot be written, before any work is done."""
    if save is None and output is None:
        return
    from bertcli.files.arrays import ENDINGS
    from bertcli.files.draft import check_output

    for file, endings in ((save, ENDINGS), (output, PICTURES)):
        if file is not None:
            check_output(file, endings)


def _pass(model: Model, analyzed: AnalyzedOptions, wanted: TraceOptions) -> Pass:
    from bertcli.analysis.trace.watcher import pass_of_text, random_pass

    if wanted.text is not None:
        return pass_of_text(model, wanted.text, wanted.text_pair)
    length = min(TOKENS, model.config.max_tokens)
    return random_pass(model, _or(analyzed.batch_size, 1), _or(analyzed.seq_len, length))


def _or(given: int | None, otherwise: int) -> int:
    return otherwise if given is None else given


def _show(model: Model, trace: Trace, wanted: TraceOptions) -> None:
    from bertcli.analysis.trace.tables import trace_document
    from bertcli.report import print_document

    room = None
    if wanted.format == "table":
        from bertcli.report import terminal_width

        room = terminal_width()
    document = trace_document(trace, model.config.sizes, all_layers=wanted.all_layers, room=room)
    print_document(document, wanted.format)


def _show_attention(trace: Trace, pieces: list[str], choice: Choice, output: str | None, format: Format) -> None:
    """Attention weights of a traced pass over these pieces: drawn into the file `output`, else printed."""
    from bertcli.analysis.attention import (
        attention_document,
        attention_of,
        attention_page,
        attention_svg,
        shaded_lines,
    )
    from bertcli.report import folded, print_document, print_shades, terminal_width, visible

    found = attention_of(trace, pieces)
    if output is not None:
        from bertcli.files.draft import save

        drawing = output.lower().endswith(".svg")
        text = attention_svg(found.select(choice)) if drawing else attention_page(found, choice)
        save(output, text.encode("utf-8"))
    elif format == "table":
        selected, room = found.select(choice), terminal_width()
        title = visible(selected.title)
        print(title if room is None else folded(title, room))
        print_shades(shaded_lines(selected, room))
    else:
        print_document(attention_document(found, choice, trace), format)

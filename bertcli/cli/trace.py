"""bertcli trace"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertcli.cli.analysed import AnalysedOptions, analysed_model
from bertcli.cli.command import command
from bertcli.cli.options import ModelOptions
from bertcli.cli.running import MASKED_SAMPLE

if TYPE_CHECKING:
    from bertcli.attention import Attention, Choice
    from bertcli.model import Model
    from bertcli.tracing import Trace
    from bertcli.tracing.running import Pass

Format = Literal["table", "json", "csv", "markdown"]
PICTURES = (".html", ".svg")
logger = logging.getLogger("bertcli")
TOKENS, SHAPES = 16, 512  # of a sentence, unless --seq-len says so: with weights, and without


@command("trace")
def trace(
    context: typer.Context,
    model: ModelOptions,
    analysed: AnalysedOptions,
    text: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", help="A text to run. (default: random token ids)", show_default=False),
    ] = None,
    text_pair: Annotated[str | None, typer.Option(metavar="TEXT", help="A second text.", show_default=False)] = None,
    all_layers: Annotated[bool, typer.Option("--all-layers", help="Show every layer, not one for all.")] = False,
    time: Annotated[bool, typer.Option("--time", help="Measure each operation.")] = False,
    stats: Annotated[
        bool, typer.Option("--stats", help="Show the least, largest, mean and deviation of each output; find NaN.")
    ] = False,
    save: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write every output to a .npz or .safetensors file.", show_default=False),
    ] = None,
    attention: Annotated[
        str | None,
        typer.Option(
            metavar="LAYER[.HEAD]",
            help="Show attention weights, in percent: of a head, or a layer's mean. Both count from 0.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="With --attention: draw it, as .html or .svg.", show_default=False
        ),
    ] = None,
    format: Annotated[Format, typer.Option(help="How the result is printed.")] = "table",
) -> None:
    """Show every operation of a forward pass: operands, sizes, parameters, costs.

    bertcli trace --variant base
    bertcli trace --variant large --seq-len 128 --heads pooler,mlm --format csv
    bertcli trace "The cat sat on the mat." --time --stats
    bertcli trace "The cat sat on the mat." --attention 0.1
    bertcli trace "The cat sat on the mat." --attention 0 -o attention.html
    bertcli trace -m my-model --seq-len 64 --save outputs.npz

    Sizes are in symbols and numbers: B sentences of S tokens, hidden size H,
    A heads of size D, feed-forward size F, vocabulary V, positions P, token
    types T, labels C. Layers that do the same are shown once. A variant or a
    config needs no weights, and its answer comes at once.
    """
    _refuse_contradictions(analysed, text=text, text_pair=text_pair, attention=attention, output=output)
    _refuse_without_weights(analysed, text=text, time=time, stats=stats, save=save, attention=attention)
    _check_files(save, output)
    opened = analysed_model(context, model, analysed, MASKED_SAMPLE)
    from bertcli.tracing.running import run_shapes

    if not opened.has_weights:
        length = min(SHAPES, opened.config.max_position_embeddings)
        _show(
            opened, run_shapes(opened, _or(analysed.batch_size, 1), _or(analysed.seq_len, length)), all_layers, format
        )
        return
    from bertcli.attention import keeps_attention, parse_choice
    from bertcli.tracing.running import run

    choice = None if attention is None else parse_choice(attention, opened.config)
    given = _pass(opened, analysed, text, text_pair)
    keep = (lambda path: True) if save else keeps_attention if choice else None
    found = run(opened, given, time=time, stats=stats, keep=keep)
    if save is not None:
        from bertcli.output.arrays import save_arrays

        save_arrays(save, found.arrays)
        logger.info("%d outputs written to %s.", len(found.arrays), save)
    if choice is None:
        _show(opened, found, all_layers, format)
    else:
        if len(given.ids) > 1:
            logger.info("of %d sentences the first is shown.", len(given.ids))
        _show_attention(found, given.pieces, choice, output, format)


def _refuse_contradictions(
    analysed: AnalysedOptions, *, text: str | None, text_pair: str | None, attention: str | None, output: str | None
) -> None:
    for name, value in (("--seq-len", analysed.seq_len), ("--batch-size", analysed.batch_size)):
        if text is not None and value is not None:
            raise typer.BadParameter("this is for random ids; a text has a length of its own.", param_hint=name)
    if text_pair is not None and text is None:
        raise typer.BadParameter("this goes with a text.", param_hint="--text-pair")
    if output is not None and attention is None:
        raise typer.BadParameter("this draws attention weights: give --attention LAYER as well.", param_hint="--output")


def _refuse_without_weights(analysed: AnalysedOptions, *, text: str | None, **wanted: str | bool | None) -> None:
    """What only real numbers can answer, refused for a variant or a configuration."""
    if not analysed.without_weights:
        return
    if text is not None:
        raise typer.BadParameter("a variant or a config has no tokenizer; give --seq-len instead.", param_hint="TEXT")
    for name, value in wanted.items():
        if value:
            raise typer.BadParameter("nothing is computed without weights; give a checkpoint.", param_hint=f"--{name}")


def _check_files(save: str | None, output: str | None) -> None:
    """Refuse what cannot be written before any work is done."""
    if save is None and output is None:
        return
    from bertcli.output.arrays import ENDINGS
    from bertcli.output.files import check_output

    for file, endings in ((save, ENDINGS), (output, PICTURES)):
        if file is not None:
            check_output(file, endings)


def _pass(model: Model, analysed: AnalysedOptions, text: str | None, text_pair: str | None) -> Pass:
    from bertcli.tracing.running import pass_of_text, random_pass

    if text is not None:
        return pass_of_text(model, text, text_pair)
    length = min(TOKENS, model.config.max_position_embeddings)
    return random_pass(model, _or(analysed.batch_size, 1), _or(analysed.seq_len, length))


def _or(given: int | None, otherwise: int) -> int:
    return otherwise if given is None else given


def _show(model: Model, trace: Trace, all_layers: bool, format: Format) -> None:
    from bertcli.output.document import print_document
    from bertcli.tracing.tables import trace_document

    room = None
    if format == "table":
        from bertcli.report import terminal_width

        room = terminal_width()
    print_document(trace_document(trace, model.config.sizes, all_layers=all_layers, room=room), format)


def _show_attention(trace: Trace, pieces: list[str], choice: Choice, output: str | None, format: Format) -> None:
    from bertcli.attention import attention_of

    found = attention_of(trace, pieces)
    if output is not None:
        _draw(found, choice, output)
    elif format == "table":
        from bertcli.attention.shades import shaded_lines
        from bertcli.report import print_shades, terminal_width

        selected = found.select(choice)
        print(selected.title)
        print_shades(shaded_lines(selected, terminal_width()))
    else:
        from bertcli.attention.document import attention_document
        from bertcli.output.document import print_document

        print_document(attention_document(found, choice, trace), format)


def _draw(attention: Attention, choice: Choice, file: str) -> None:
    from bertcli.output.files import Replacement

    if file.lower().endswith(".svg"):
        from bertcli.attention.svg import svg

        text = svg(attention.select(choice))
    else:
        from bertcli.attention.page import page

        text = page(attention, choice)
    with Replacement(file) as output:
        output.write(text.encode("utf-8"))

"""bertcli trace"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bertcli.cli.options import ModelOptions, TableFormat, argument, changed, refuse, wrong
from bertcli.cli.params import AnalyzedOptions, analyzed_model
from bertcli.files.formats import PAGE, SEVERAL, check_output, ending_of
from bertcli.lean import lean_dataclass
from bertcli.report.written import say_written
from bertcli.tasks.options import option

if TYPE_CHECKING:
    from bertcli.analysis.trace import Trace
    from bertcli.analysis.trace.passes import Pass
    from bertcli.opened import Opened
    from bertcli.views.attention import Choice

logger = logging.getLogger("bertcli")
OF_STEPS = ("--time", "--stats", "--all-layers", "--formulas")  # what the table of steps has
TOKENS, SHAPES = 16, 512  # default length of a sentence: with weights, and without


@lean_dataclass
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
    formulas: bool = option(False, "", "Show the formula of each operation.")
    estimate: bool = option(
        False, "",
        "Say what each operation must take on this machine, and why: bytes read and written, arithmetic for each of "
        "them, the limit that holds it, and the time that follows. With -o FILE.html draw a roofline.",
    )  # fmt: skip
    gflops: float | None = option(None, "RATE", "With --estimate: of products, in GFLOP/s. (default: measured)")
    gbps: float | None = option(None, "RATE", "With --estimate: of memory, in GB/s. (default: measured)")
    save: str | None = option(None, "FILE", "Write the ids and every output to a .npz or .safetensors file.")
    attention: str | None = option(
        None, "LAYER[.HEAD]", "Show attention weights in percent: of one head, or a layer's mean; from 0, as in paths."
    )
    output: str | None = option(
        None, "FILE",
        "Write the whole pass as a page on which every number can be looked at (.html), or as notes (.md).",
        "-o", "--output",
    )  # fmt: skip
    layer: int = option(
        -1, "N", "The layer that the page opens, 0 for the embeddings; negative from the end. (default: -1)"
    )
    head: int = option(0, "H", "The attention head that the page opens, from 0. (default: 0)")
    versus: str | None = option(None, "TEXT", "Another text, whose pass the page shows beside the first.")
    full: bool = option(False, "", "Put every number into the page, and what it was made from.")
    seed: int | None = option(
        None, "N", "Give a --variant or --config random weights drawn from this seed, so that it has numbers.", least=0
    )
    format: TableFormat = option("table", "FORMAT", "How it is printed: table (default), json, csv or markdown.")

    @property
    def draws_pass(self) -> bool:
        """Whether the pass is written as a page, or as notes."""
        return self.output is not None and not self.estimate

    def refuse_contradictions(self, analyzed: AnalyzedOptions) -> None:
        """Wrong usage is a typer.BadParameter."""
        if self.text is not None:
            refuse(analyzed, ("--seq-len", "--batch-size"), "this is for random ids; a text has its own length.")
        if self.versus is not None and self.text is None:
            raise wrong("--versus", "this needs a first text.")
        if self.text_pair is not None and self.text is None:
            raise wrong("--text-pair", "this needs a first text.")
        if not self.estimate:
            refuse(self, ("--gflops", "--gbps"), "this is for --estimate.")
        if self.estimate and self.attention is not None:
            raise wrong("--estimate", "attention weights take no time: leave out --attention.")
        if self.seed is not None and not analyzed.without_weights:
            raise wrong("--seed", "this is for --variant or --config; a checkpoint has weights.")
        if not self.draws_pass or ending_of(str(self.output)) != PAGE:
            refuse(
                self, ("--layer", "--head", "--versus", "--full"), "this is for the page of a pass: give -o FILE.html."
            )
        if self.output is not None and self.attention is not None:
            raise wrong("--attention", "the page shows the weights of every layer and head: leave this out.")
        if self.draws_pass and (analyzed.batch_size or 1) > 1:
            raise wrong("--batch-size", "the page shows one sentence.")
        if self.attention is not None and self.format in ("csv", "markdown"):
            why = f"with --attention, {self.format} cannot show the steps: leave this out, or use --format json."
            refuse(self, OF_STEPS, why)
        if analyzed.without_weights and self.text is not None:
            raise wrong("TEXT", "a variant or a config has no tokenizer; give --seq-len instead.")
        if analyzed.without_weights and self.seed is None:
            of_numbers = ("--time", "--stats", "--save", "--attention")
            refuse(self, of_numbers, "nothing is computed without weights; give a checkpoint.")


def trace(model: ModelOptions, analyzed: AnalyzedOptions, wanted: TraceOptions) -> None:
    """Show every operation of a forward pass: operands, sizes, parameters, costs.

    bertcli trace --variant base
    bertcli trace --variant large --seq-len 128 --heads pooler,mlm --format csv
    bertcli trace "The cat sat on the mat." --time --stats
    bertcli trace "The cat sat on the mat." --attention 0.1
    bertcli trace "A cup of hot [MASK]." -o pass.html
    bertcli trace "A hot [MASK]." --versus "A cold [MASK]." -o pass.html
    bertcli trace --variant textbook --seed 0 --seq-len 5 -o pass.html
    bertcli trace --variant base --seq-len 128 --estimate --gflops 900 --gbps 80
    bertcli trace -m my-model --seq-len 64 --save outputs.npz

    Sizes are in symbols and numbers: B sentences of S tokens, hidden size H,
    A heads of size D, feed-forward size F, vocabulary V, positions P, token
    types T, labels C. Layers that do the same are shown once; in csv, times is
    how many do, and costs and seconds are those of one. A variant or a config
    needs no weights, and takes no time to run.
    """
    wanted.refuse_contradictions(analyzed)
    check_output(wanted.save, SEVERAL)
    check_output(wanted.output, (PAGE,) if wanted.estimate else (PAGE, ".md"))
    opened = analyzed_model(model, analyzed, wanted.seed)
    length = min(TOKENS if opened.has_weights else SHAPES, opened.config.max_tokens)
    batch, tokens = analyzed.batch_size, analyzed.seq_len
    size = 1 if batch is None else batch, length if tokens is None else tokens
    if opened.has_weights:
        _run(opened, size, wanted)
        return
    from bertcli.analysis.trace.recorder import NO_INPUTS, run_shapes

    shapes = run_shapes(opened, *size)
    if wanted.draws_pass:
        from bertcli.analysis.trace.passes import Pass

        _write(Pass(opened, shapes, NO_INPUTS), wanted)
        return
    _show(shapes, wanted)


def _run(model: "Opened", size: tuple[int, int], wanted: TraceOptions) -> None:
    """Run a pass with real numbers, of the text or of so many random sentences and tokens; show what is asked for."""
    from bertcli.analysis.trace import trace as traced
    from bertcli.analysis.trace.passes import Pass, results_in_words, run_pass
    from bertcli.analysis.trace.recorder import inputs_of_text, random_inputs
    from bertcli.views.attention import keeps_attention, parse_choice

    choice = None if wanted.attention is None else parse_choice(wanted.attention, model.config)
    if wanted.text is None:
        inputs = random_inputs(model, *size)
    else:
        inputs = inputs_of_text(model, wanted.text, wanted.text_pair)
    if wanted.draws_pass:
        whole = run_pass(model, inputs)
    else:
        keep = (lambda path: True) if wanted.save else keeps_attention if choice else None
        with traced(model, time=wanted.time, stats=wanted.stats, keep=keep) as trace:
            outputs = model.outputs(inputs.ids, inputs.segments)
        whole = Pass(model, trace, inputs, outputs)
    trace = whole.trace
    if wanted.save is not None:
        import numpy as np

        from bertcli.files.arrays import save_arrays

        ids, segments = (np.asarray(rows, np.int64) for rows in (inputs.ids, inputs.segments))
        pieces = {} if wanted.text is None else {"tokens": np.array([inputs.pieces])}
        save_arrays(wanted.save, {"input_ids": ids, "token_type_ids": segments, **pieces, **trace.arrays})
        say_written(wanted.save)
    if choice is not None:
        if any(name in OF_STEPS for name in changed(wanted)) and wanted.format == "table":
            _show(trace, wanted)
            print()
        if len(inputs.ids) > 1:
            logger.info("of %d sentences only the first is shown.", len(inputs.ids))
        _show_attention(trace, inputs.pieces, choice, wanted)
    elif wanted.draws_pass:
        other = None if wanted.versus is None else run_pass(model, inputs_of_text(model, wanted.versus))
        _write(whole, wanted, other)
    else:
        _show(trace, wanted, [] if wanted.text is None else results_in_words(whole))


def _write(whole: "Pass", wanted: TraceOptions, versus: "Pass | None" = None) -> None:
    """The page of a pass, or of two beside each other; or notes of one."""
    from bertcli.analysis.trace.page import BOUND, FULL_BOUND, PageOptions, pass_notes, pass_page
    from bertcli.files.shards import save

    assert wanted.output is not None
    draws = ending_of(wanted.output) == PAGE
    bound = FULL_BOUND if wanted.full else BOUND
    options = PageOptions(wanted.layer, wanted.head, full=wanted.full, bound=bound)
    save(wanted.output, (pass_page(whole, options, versus) if draws else pass_notes(whole)).encode())
    say_written(wanted.output)


def _show(trace: "Trace", wanted: TraceOptions, results: Sequence[str] = ()) -> None:
    """Print the table of steps, or draw the roofline."""
    from bertcli.report.documents import print_document
    from bertcli.report.terminal import terminal_width

    if wanted.formulas:
        from bertcli.analysis.trace.formulas import add_formulas

        add_formulas(trace)
    if wanted.estimate:
        from bertcli.analysis.trace.estimate import estimate, rates_of, roofline
        from bertcli.files.shards import save

        estimate(trace, rates_of(wanted.gflops, wanted.gbps))
        if wanted.output is not None:
            save(wanted.output, roofline(trace).encode())
            say_written(wanted.output)
            return
    width = terminal_width() if wanted.format == "table" else None
    print_document(trace.document(all_layers=wanted.all_layers, width=width, results=results), wanted.format)


def _show_attention(trace: "Trace", pieces: list[str], choice: "Choice", wanted: TraceOptions) -> None:
    """Print attention weights of a traced pass over these pieces."""
    from bertcli.report.documents import print_document
    from bertcli.report.shades import print_shades
    from bertcli.report.terminal import folded, terminal_width, visible
    from bertcli.views import attention

    weights = attention.attention_of(trace, pieces, choice)
    if wanted.format == "table":
        width = terminal_width()
        print(folded(visible(weights.title), width))
        print_shades(attention.shaded_lines(weights, width))
    else:
        print_document(attention.attention_document(weights, trace), wanted.format)

"""The command trace: which of table, record, page and arrays is written. analysis/trace/ runs the pass."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bertcli.cli.options import ModelOptions, refuse, wrong
from bertcli.cli.output import PageOutput, show
from bertcli.cli.params import AnalyzedOptions, analyzed_model
from bertcli.files.formats import SEVERAL
from bertcli.report.written import say_written
from bertcli.tasks.options import argument, option

if TYPE_CHECKING:
    from bertcli.analysis.trace import Trace
    from bertcli.analysis.trace.passes import Pass
    from bertcli.analysis.trace.recorder import Inputs
    from bertcli.loaded_model import LoadedModel

TOKENS, SHAPES = 16, 512  # default length of a sentence: with weights, and without


@dataclass(frozen=True, eq=False, repr=False)
class TraceOptions:
    """The pass that is traced, and the contents of its table or page."""

    text: str | None = argument(None, "[TEXT]", "A text to run. (default: random token ids)")
    text_pair: str | None = option(None, "TEXT", "A second text.")
    all_layers: bool = option(False, "", "Show every layer, not one for all layers alike.")
    time: bool = option(False, "", "Measure each operation, in the fastest of several passes.")
    stats: bool = option(
        False, "",
        "Show minimum, maximum, mean and standard deviation of each output, and whether any is NaN or infinite.",
    )  # fmt: skip
    formulas: bool = option(False, "", "Show the formula of each operation.")
    layer: str = option(
        "-1", "LAYER[.HEAD]",
        "Open the page at this layer and attention head: 3.2 is layer 3, head 2; "
        "0 is the embeddings; negative counts from the end. (default: -1)",
    )  # fmt: skip
    contrast: str | None = option(None, "TEXT", "Show the pass of this text beside the first one on the page.")
    seed: int | None = option(
        None, "N", "Give a --variant or --config random weights from this seed, so that it can run.", least=0
    )

    def refuse_contradictions(self, analyzed: AnalyzedOptions, output: "TraceOutput") -> None:
        """Wrong usage is a typer.BadParameter."""
        if self.text is not None:
            refuse(analyzed, ("--seq-len", "--batch-size"), "a text has its own length: leave this out, or the text.")
        if self.contrast is not None and self.text is None:
            raise wrong("--contrast", "give the first text, too: bertcli trace TEXT --contrast TEXT.")
        if self.text_pair is not None and self.text is None:
            raise wrong("--text-pair", "give the first text, too: bertcli trace TEXT --text-pair TEXT.")
        if self.seed is not None and not analyzed.without_weights:
            raise wrong("--seed", "this is for --variant or --config; a checkpoint has weights.")
        has_numbers = not analyzed.without_weights or self.seed is not None
        if not output.is_page:
            refuse(self, ("--layer", "--contrast"), "it applies to the page of a pass: add -o FILE.html.")
        elif not has_numbers:
            refuse(self, ("--layer",), "the page of operations, without weights, opens at no layer; --seed gives some.")
            refuse(self, ("--formulas",), "on the page of operations each one opens its formula: leave this out.")
        if (output.is_page and has_numbers) or output.has_arrays:
            what = "the page of a pass" if output.is_page else f"a file of arrays ({output.ending})"
            of_table = ("--all-layers", "--time", "--stats", "--formulas")
            refuse(self, of_table, f"this is about the table, which {what} does not have: leave out one of the two.")
        if output.is_page and has_numbers and (analyzed.batch_size or 1) > 1:
            raise wrong("--batch-size", "the page shows one sentence.")
        if analyzed.without_weights and self.text is not None:
            raise wrong("TEXT", "a variant or a config has no tokenizer; give --seq-len instead.")
        if not has_numbers:
            why = "nothing is computed without weights; give a checkpoint."
            refuse(self, ("--time", "--stats"), why)
            if output.has_arrays:
                raise wrong("--output", why)


class TraceOutput(PageOutput):
    """The table in a file, the pass as a page, or the arrays of all outputs."""

    endings: ClassVar[tuple[str, ...]] = (*PageOutput.endings, *SEVERAL)

    @property
    def has_arrays(self) -> bool:
        """True if the outputs themselves are written."""
        return self.ending in SEVERAL


def trace(model: ModelOptions, analyzed: AnalyzedOptions, options: TraceOptions, output: TraceOutput) -> None:
    """Every operation of a forward pass: shapes, parameters, MACs, time.

    bertcli trace --variant base --seq-len 128 --formulas
    bertcli trace --variant large --seq-len 128 --heads pooler,mlm --format csv
    bertcli trace "The cat sat on the mat." --time --stats
    bertcli trace "A cup of hot [MASK]." --layer 3.2 -o pass.html
    bertcli trace "A hot [MASK]." --contrast "A cold [MASK]." -o pass.html
    bertcli trace --variant textbook --seed 0 --seq-len 5 -o pass.html
    bertcli trace -m my-model --seq-len 64 -o outputs.npz

    Sizes are in symbols and numbers:

      B sentences of S tokens, hidden size H, A heads of size D,
      feed-forward size F, vocabulary V, positions P, token types T, labels C

    Equal layers are shown once; --all-layers shows each. In csv the column "times"
    is the number of equal layers, and costs and seconds are those of one of them.

    -o FILE.html is a page that shows how each number is computed, or without
    weights the table of operations with their formulas; a .npz or
    .safetensors file has the ids and the array of every output; other endings have
    the table. A variant or a config needs no weights.
    """
    output.check()
    options.refuse_contradictions(analyzed, output)
    opened = analyzed_model(model, analyzed, options.seed)
    if output.is_page and opened.has_weights:
        from bertcli.analysis.layers import parse_layer

        parse_layer(options.layer, opened.config, least=0)  # what is wrong is said before the pass runs
    length = min(TOKENS if opened.has_weights else SHAPES, opened.config.max_tokens)
    batch, tokens = analyzed.batch_size, analyzed.seq_len
    size = 1 if batch is None else batch, length if tokens is None else tokens
    if opened.has_weights:
        _run(opened, size, options, output)
        return
    from bertcli.analysis.trace.recorder import run_shapes

    shapes = run_shapes(opened, *size)
    if output.is_page:
        from bertcli.analysis.trace.operations_page import operations_page
        from bertcli.files.write.save import save

        save(str(output.output), operations_page(shapes, options.all_layers).encode())
        say_written(str(output.output))
        return
    _show(shapes, options, output)


def _run(model: "LoadedModel", size: tuple[int, int], options: TraceOptions, output: TraceOutput) -> None:
    """Run a pass with numbers, of the text or of random tokens of this size, and print or write it."""
    from bertcli.analysis.trace.passes import Pass, results_in_words, run_pass, time_again
    from bertcli.analysis.trace.recorder import random_inputs, recording

    text = options.text
    inputs = random_inputs(model, *size) if text is None else _inputs_of_text(model, text, options)
    if output.is_page:
        whole = run_pass(model, inputs)
    else:
        keep = (lambda path: True) if output.has_arrays else None
        with recording(model, time=options.time, stats=options.stats, keep=keep) as trace:
            outputs = model.outputs(inputs.ids, inputs.segments)
        if options.time:
            time_again(model, inputs, trace)
        whole = Pass(model, trace, inputs, outputs)
    trace = whole.trace
    if output.has_arrays:
        import numpy as np

        from bertcli.files.write.save import save_arrays

        ids, segments = (np.asarray(rows, np.int64) for rows in (inputs.ids, inputs.segments))
        pieces = {} if options.text is None else {"tokens": np.array([inputs.pieces])}
        save_arrays(str(output.output), {"input_ids": ids, "token_type_ids": segments, **pieces, **trace.arrays})
        say_written(str(output.output))
    elif output.is_page:
        other = None if options.contrast is None else run_pass(model, _inputs_of_text(model, options.contrast, options))
        _write(whole, options, str(output.output), other)
    else:
        _show(trace, options, output, [] if options.text is None else results_in_words(whole))


def _inputs_of_text(model: "LoadedModel", text: str, options: TraceOptions) -> "Inputs":
    from bertcli.analysis.trace.recorder import inputs_of_text

    pair = None if text == options.contrast else options.text_pair
    return inputs_of_text(model, text, pair)


def _write(whole: "Pass", options: TraceOptions, file: str, versus: "Pass | None" = None) -> None:
    """The page of a pass, or of two beside each other."""
    from bertcli.analysis.layers import parse_layer
    from bertcli.analysis.trace.page import PageOptions, bound_for, pass_page
    from bertcli.files.write.save import save

    layer, head = parse_layer(options.layer, whole.model.config, least=0)
    tokens = [len(each.ids) for each in (whole, versus) if each is not None]
    opened_at = PageOptions(layer, head or 1, bound=bound_for(*tokens))
    save(file, pass_page(whole, opened_at, versus).encode())
    say_written(file)


def _show(trace: "Trace", options: TraceOptions, output: TraceOutput, results: Sequence[str] = ()) -> None:
    """Print the table of steps, or write it."""
    from bertcli.report.terminal import terminal_width

    if options.formulas:
        from bertcli.analysis.trace.formulas import add_formulas

        add_formulas(trace)
    width = terminal_width() if output.is_table else None
    show(trace.document(all_layers=options.all_layers, width=width, results=results), output)

"""bertcli probe"""

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bertcli.cli.job import open_model, set_threads
from bertcli.cli.options import MASKED_SAMPLE, ModelOptions, ThreadOptions, wrong
from bertcli.cli.view import DocumentOptions, show_document
from bertcli.evaluate.options import INSTEAD_OF_FOLDER, Evaluate, ProbeOptions
from bertcli.files.formats import PAGE, check_output, ending_of
from bertcli.files.texts import Texts
from bertcli.lean import lean_dataclass
from bertcli.report.written import say_written
from bertcli.tasks.options import option

if TYPE_CHECKING:
    from bertcli.views.compute.probe import Probe

logger = logging.getLogger("bertcli")
CLASSIFIER = ".safetensors"


@lean_dataclass
class DataOptions:
    """The texts, and what is true of them."""

    input: str | None = option(
        None, "FILE", "Labelled texts: .csv, .tsv, .jsonl or .parquet; with --words .jsonl, or CoNLL's columns.",
        "-i", "--input", panel="Input",
    )  # fmt: skip
    column: str | None = option(
        None, "NAME", "The field, or the number of the column, of texts or words.", panel="Input"
    )
    pair_column: str | None = option(None, "NAME", "The field of second texts.", panel="Input")
    label_column: str | None = option(None, "NAME", "The field, or the column, of labels or tags.", panel="Input")


def probe(
    data: DataOptions, model: ModelOptions, threads: ThreadOptions, options: ProbeOptions, output: DocumentOptions
) -> None:
    """Linear probes: what each layer's states know about your labels; train a classifier from them.

    bertcli probe -i reviews.csv --column text --label-column label
    bertcli probe -i reviews.csv -m my-encoder --save mine.safetensors
    bertcli classify -m my-encoder --classifier mine.safetensors "A fine film."
    bertcli probe -i train.conllu --words -o probe.html

    A linear classifier (logistic regression with L2) reads each layer's states,
    pooled as encode pools them; of a word the mean of its pieces. Texts are in
    folds: each is told by a probe of the others, C is chosen by a fold of these,
    and figures are means over folds. Control is the accuracy of the same probe
    where every distinct text, or word, has a label drawn at random (the mean of
    ten draws); selectivity is accuracy less control. The best layer is chosen on
    the folds that measure it, so it looks a little better than it is. Where the
    label field is a list, a text may have several labels, or none. All layers'
    vectors are in memory at once.

    A probe shows what can be read from a state, not that the model uses it.

    --save writes the probe of the best layer (or --layer), fitted to all texts,
    as a small file: classify, evaluate, explain and serve take it with the same
    model (--classifier FILE), and so does bertcli.load(MODEL, classifier=FILE).
    """
    set_threads(threads)
    if data.input is None:
        raise wrong("--input", "give a file of labelled texts (-i).")
    if options.save is not None and ending_of(options.save) != CLASSIFIER:
        raise wrong("--save", f"{options.save} is no {CLASSIFIER} file. {INSTEAD_OF_FOLDER}")
    if output.output is not None:
        check_output(output.output, (PAGE, ".json"))
    from bertcli.evaluate.load.data_file import read
    from bertcli.report.progress import counted
    from bertcli.views.compute.probe import probed
    from bertcli.views.compute.probe_page import probe_page

    columns = {name: value for name, value in vars(data).items() if name != "input"}
    asked = Evaluate(task="tag" if options.words else "classification", keep_going=options.keep_going, **columns)
    labelled = read(data.input, asked, any_tag=options.words)
    rows, left_out = [row for row in labelled.rows if row.label != ""], labelled.left_out
    for row in labelled.rows:
        if row.label == "":
            left_out.add(f"{row.place}: there is no label.")
    if left_out.count:
        logger.info("%d left out; the first: %s", left_out.count, left_out.first)
    opened = open_model(model, MASKED_SAMPLE)
    texts: Any = Texts(rows, at_hand=True, count=len(rows))
    labels = [row.label for row in rows]
    if options.words:
        texts, labels = ([label[i] for label in labels] for i in range(2))
    view = probed(
        opened, texts, replace(options, labels=labels), lambda items, unit: counted(items, "probe", unit, len(items))
    )
    show_document(view, output, lambda view: probe_page(view, opened.name))
    if options.save is not None:
        _save(view, options.save, opened.name)


def _save(view: "Probe", file: str, model: str) -> None:
    """Write the classifier, and report on stderr its layer and the command that uses it."""
    made = view.save(file)
    say_written(file)
    layer = f"layer {made.layer}" if made.layer else "the embeddings"
    logger.info("it reads %s, pooling %s, and has %d labels.", layer, ",".join(made.pooling), len(made.labels))
    logger.info("use it: bertcli classify -m %s --classifier %s", model, file)

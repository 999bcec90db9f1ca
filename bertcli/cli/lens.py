"""bertcli lens"""

from functools import partial

from bertcli.cli.job import open_model
from bertcli.cli.options import MASKED_SAMPLE, InputOptions, ModelOptions, OutputOptions, ThreadOptions
from bertcli.cli.views import begin, show_each
from bertcli.files.formats import PAGE, RECORDS
from bertcli.views import options


def lens(
    texts: InputOptions, model: ModelOptions, output: OutputOptions, threads: ThreadOptions, wanted: options.LensOptions
) -> None:
    """Show what each layer would predict for a mask: when does the answer appear?

    bertcli lens "She poured a cup of hot [MASK]."
    bertcli lens "She poured a cup of hot [MASK]." --top-k 5 --format json
    bertcli lens "The cat sat on the mat." --all -o lens.html

    Each layer's state goes through the model's own prediction head; state 0 is
    the embeddings' output, as in encode --layer. Rank (from 1) and score are those of the last
    layer's best token, and KL (in nats) says how far the layer's prediction is
    from the last one's. The head was trained on the last layer only, so an
    early layer may know more than it can say through it. A .html file is a page
    of all texts.
    """
    source = begin(texts, threads, output.output, (*RECORDS, PAGE))
    opened = open_model(model, MASKED_SAMPLE)
    from bertcli.views.compute.lens import lens_page, lenses

    views = lenses(opened, source, wanted)
    show_each(views, "lens", source, output, partial(lens_page, model=opened.name))

"""bertcli patch"""

from dataclasses import replace

from bertcli.cli.job import open_model, set_threads
from bertcli.cli.options import InputOptions, ModelOptions, ThreadOptions, argument
from bertcli.cli.views import DocumentOptions, sample_for, show_document
from bertcli.files.formats import PAGE, check_output, ending_of
from bertcli.lean import lean_dataclass
from bertcli.views import options


@lean_dataclass
class BothTexts:
    """The two texts."""

    a: str = argument(..., "A", "The text whose result is asked about.")
    other_text: str = argument(..., "B", "A text that differs from it, best by one word.")


def patch(
    texts: BothTexts, model: ModelOptions, threads: ThreadOptions, wanted: options.PatchOptions, shown: DocumentOptions
) -> None:
    """Show where in the network two texts begin to be treated differently.

    bertcli patch "The [MASK] of Rome is old." "The [MASK] of Paris is old."
    bertcli patch "I loved every minute." "I hated every minute." --of heads
    bertcli patch "I loved it." "I hated it." --direction both --format json
    bertcli patch "I loved it." "I hated it." -o patch.html

    Text B is run again, but in one place with what text A has there; the
    effect is the share of the difference between the two results that this
    brings: 0 nothing of it, 1 all of it; below and above happen. A place is the
    state after a layer at one token (the embeddings first), what attention or
    feed-forward gives there before it is added, or an attention head. --direction
    noise runs A with what B has: what is needed, where denoise shows what is
    enough. An effect of 0 does not say that a place never matters: others may
    carry the same.

    The result is that of explain; what is not named is what the model predicts
    for A. Texts should have equally many tokens; else tokens pair up where their
    pieces do, and those without a partner are not patched. Where the tokens do
    not fit the width of the terminal, the table is turned: tokens down, states
    across. A .html file shows all four kinds of places.
    """
    set_threads(threads)
    check_output(shown.output, (PAGE, ".json"))
    opened = open_model(model, sample_for(wanted, InputOptions([texts.a, texts.other_text])))
    from bertcli.report.progress import counted
    from bertcli.views.compute.parts import KINDS
    from bertcli.views.compute.patch import patch_page, patches

    kinds = KINDS if ending_of(shown.output or "") == PAGE else (wanted.of,)
    asked = replace(wanted, b=texts.other_text)
    views = patches(opened, texts.a, asked, kinds, lambda rows: counted(rows, "patch", "rows", len(rows)))
    show_document(views[0], shown, lambda _: patch_page(views, opened.name))

"""bertcli heads"""

from bertcli.cli.job import open_model
from bertcli.cli.options import MASKED_SAMPLE, InputOptions, ModelOptions, ThreadOptions
from bertcli.cli.views import DocumentOptions, begin, sample_for, show_document
from bertcli.files.formats import PAGE
from bertcli.views import options


def heads(
    texts: InputOptions,
    model: ModelOptions,
    threads: ThreadOptions,
    wanted: options.HeadsOptions,
    shown: DocumentOptions,
) -> None:
    """Show where each attention head looks, and what the result loses without it.

    bertcli heads "The cat sat on the mat." "It rained."
    bertcli heads -i texts.txt --format csv
    bertcli heads "I loved every minute of it." --ablate --top-k 10
    bertcli heads "I loved every minute of it." --ablate -o heads.html
    bertcli heads "She poured a cup of hot [MASK]." --layer 3.2
    bertcli heads "She poured a cup of hot [MASK]." --rollout

    Means over all tokens of the texts: entropy of a token's weights in nats,
    distance in tokens, shares of weight on special tokens, on the token itself,
    on the next and the previous one. Layers and heads count from 1. Weights say
    where a head looks, not what it contributes.

    --layer 3.2 prints the weights of layer 3, head 2 in percent: each row is a
    token, and its columns are the tokens it looks at. --layer 3 is the mean of
    that layer's heads.

    Change is the result (as in explain) when the head's output is zero, less
    the result as it is: near 0 the model does without the head here, though
    perhaps only because another one does the same.

    Rollout follows one text's attention through all layers, each averaged with
    the token itself; the table then shows what one token (--token) draws on,
    beside the mean of all weights. Raw weights and rollout often disagree, and
    neither says what the result depends on.
    """
    rows = list(begin(texts, threads, shown.output, (PAGE, ".json")))
    opened = open_model(model, sample_for(wanted, texts) if wanted.ablate else MASKED_SAMPLE)
    from bertcli.files.texts import Texts
    from bertcli.report.progress import counted
    from bertcli.views.compute.heads import heads, heads_page

    source = Texts(counted(rows, "heads", "texts", len(rows)))
    show_document(heads(opened, source, **vars(wanted)), shown, heads_page)

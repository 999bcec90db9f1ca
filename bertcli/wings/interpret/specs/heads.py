"""The view heads: its options, whose docstring is the help. Its work is in compute/heads.py."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from bertcli.errors import WrongOptions
from bertcli.files.texts import Pairs
from bertcli.tasks.options import option
from bertcli.tasks.registry import MASKED_SAMPLE
from bertcli.wings.interpret.options import TargetOptions
from bertcli.wings.interpret.view_spec import ViewSpec, sample_for


@dataclass(frozen=True, eq=False, repr=False)
class HeadsOptions(TargetOptions):
    """Attention heads: where each looks, and what the result loses without it.

    bertcli heads "The cat sat on the mat." "It rained."
    bertcli heads -i texts.txt --format csv
    bertcli heads "I loved every minute of it." --ablate --top-k 10
    bertcli heads "I loved every minute of it." --ablate -o heads.html
    bertcli heads "She poured a cup of hot [MASK]." --layer 3.2 -o head.pdf
    bertcli heads "She poured a cup of hot [MASK]." --rollout 6

    The table has means over all tokens of the texts: the entropy of a token's
    attention weights in nats, the distance to the tokens it looks at, and the
    shares of weight on special tokens, on the token itself, on the next and on the
    previous one. Layers and heads count from 1. Weights say where a head looks, not
    what it contributes.

    --layer 3.2 prints the weights of layer 3, head 2 in percent: each row is a
    token, and its columns are the tokens it looks at. --layer 3 prints the mean of
    that layer's heads. A figure (-o FILE.pdf) has these weights alone, and without
    --layer one of all heads. A .npz file has the first text's weights [layer, head,
    query, key], or those of --layer.

    --ablate adds Change: the result (as in explain) with the head's output set to
    zero, less the result as it is. Near 0 the model does without the head here,
    perhaps only because another one does the same.

    --rollout N follows one text's attention through all layers, each averaged with
    the identity for the residual connection. The table shows what token N
    draws on, beside the mean of all weights. Raw weights and rollout often
    disagree, and neither says what the result depends on.
    """

    pairs: Pairs = None
    _: KW_ONLY
    ablate: bool = option(False, "", "Also set each head's output to zero, and show what that changes, most first.")
    top_k: int | None = option(None, "K", "Show only the first K heads.", least=1)
    layer: str | None = option(
        None, "LAYER[.HEAD]",
        "Show the attention weights of one head of one text, or of a layer the mean of its heads: 3.2 is layer 3, head "
        "2.",
    )  # fmt: skip
    rollout: int | None = option(
        None, "N", "Also follow the attention of token N of one text through all layers: attention rollout. The first "
        "token is 0.", least=0,
    )  # fmt: skip

    def __post_init__(self) -> None:
        """Errors: BertcliError for a result without `ablate`, and `layer` with it or `rollout`."""
        super().__post_init__()
        if not self.ablate and (self.label, self.word, self.contrast) != (None, None, None):
            raise WrongOptions(
                "A label, a word or another text (--label, --word, --contrast) needs ablate: add it (--ablate).",
                "label",
                "word",
                "contrast",
                "ablate",
            )
        if self.layer is not None and (self.ablate or (self.rollout, self.top_k) != (None, None)):
            raise WrongOptions(
                "One head's weights (--layer) are shown alone: leave out --ablate, --rollout and --top-k.",
                "ablate",
                "top_k",
                "layer",
                "rollout",
            )


def _sample(options: HeadsOptions, texts: Sequence[str]) -> str:
    """The bundled model for these texts: without ablation there is no result, so any model will do."""
    return sample_for(options, texts) if options.ablate else MASKED_SAMPLE


SPEC = ViewSpec(HeadsOptions, sample=_sample, has_figure=True, has_arrays=True)

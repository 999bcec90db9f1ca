"""The view lens: its options, whose docstring is the help. Its work is in compute/lens.py."""

from dataclasses import KW_ONLY, dataclass

from bertcli.files.texts import Pairs
from bertcli.tasks.options import option
from bertcli.wings.interpret.options import CutOptions
from bertcli.wings.interpret.view_spec import ViewSpec


@dataclass(frozen=True, eq=False, repr=False)
class LensOptions(CutOptions):
    """Logit lens: what each layer would predict, and when the answer appears.

    bertcli lens "She poured a cup of hot [MASK]."
    bertcli lens "She poured a cup of hot [MASK]." --top-k 5 --format json
    bertcli lens "She poured a cup of hot [MASK]." --word tea
    bertcli lens "The cat sat on the mat." --all -o lens.html
    bertcli lens "She poured a cup of hot [MASK]." -o lens.npz

    The state after each layer goes through the model's own prediction head. Layers
    count from 1; 0 is the embeddings. Rank (from 1) and score are those of the last
    layer's best token, or of --word. KL, in nats, is the divergence of the last layer's
    prediction from this layer's. A .html file is a page of all texts, a .pdf file
    a figure; a .npz file has the log-probabilities [state, position, vocabulary].

    The head was trained on the last layer only, so an early layer may know more than
    it can say through it.
    """

    pairs: Pairs = None
    _: KW_ONLY
    top_k: int = option(3, "K", "Predictions shown for each layer. (default: 3)", least=1)
    word: str | None = option(None, "WORD", "Follow this word: its rank and score. (default: the last layer's best)")
    all_tokens: bool = option(False, "", "Look at every token of the text, not only at its masks.", "--all")


SPEC = ViewSpec(LensOptions, each=True, has_figure=True, has_arrays=True)

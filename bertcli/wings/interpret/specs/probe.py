"""The view probe: its options, whose docstring is the help. Its work is in compute/probe.py."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from bertcli.errors import BertcliError, WrongOptions
from bertcli.files.formats import ending_of
from bertcli.files.texts import Pairs
from bertcli.tasks.options import DELIMITER, NO_HEADER, ReadOptions, delimiter_named, for_python, option
from bertcli.wings.interpret.view_spec import ViewSpec

ProbePooling = Literal["auto", "mean", "cls", "max", "lasttoken"]
# The ending of a file that `save` writes; kinds/classifier/file.py has it, too, and imports NumPy, as --help must not.
CLASSIFIER = ".safetensors"
MOST_FOLDS = 10


@dataclass(frozen=True, eq=False, repr=False)
class ProbeOptions(ReadOptions):
    """Linear probes: what each layer's states know about your labels; train a classifier from them.

    bertcli probe -i reviews.csv --column text --label-column label
    bertcli probe -i reviews.csv -m my-encoder -o mine.safetensors
    bertcli classify -m my-encoder+mine.safetensors "A fine film."
    bertcli probe -i train.conllu --words -o probe.html
    bertcli probe -i reviews.csv --column text --label-column label -o layers.pdf

    For each layer a logistic regression with an L2 penalty is trained to predict the
    labels from the layer's states. A text's states are pooled as encode pools them;
    a word is the mean of its pieces. Figures are means over the folds of a
    cross-validation; the penalty C is chosen inside each fold. A label field that is
    a list gives a text several labels, or none. All layers' vectors are in memory at
    once.

    Control is the accuracy on random labels, where each distinct text or word has
    one (mean of ten draws). Selectivity is accuracy minus control: what the probe
    reads from the states rather than learns by heart. Texts with one value in the
    field of --cluster (an author, a noun) are in one fold, and resampled together;
    so are the words of a sentence. The best layer is chosen on
    the folds that measure it, so it looks a little better than it is.

    A probe shows what can be read from a state, not that the model uses it.

    -o FILE.safetensors is a classifier: the probe of the best layer (or --layer),
    fitted to all texts. classify, evaluate, explain, serve and
    bertcli.load() take it behind the name of the same model: MODEL+FILE.
    """

    labels: Any = ()
    pairs: Pairs = None
    _: KW_ONLY
    clusters: Any = None
    keep_going: bool = option(False, "", "Leave out rows that cannot be used, and count them.", panel="Input")
    words: bool = option(False, "", "Predict a tag for each word; FILE has CoNLL's columns, or tokens and tags.")
    folds: int = option(5, "N", "Folds of the cross-validation, 3 to 10. (default: 5)", least=3)
    layer: int | None = option(
        None,
        "N",
        "The layer whose confusions a page or figure shows, and that of a classifier. (default: the best)",
    )
    pooling: ProbePooling | None = option(
        None, "MODE",
        "mean, cls, max, lasttoken, or auto: as the model specifies. (default: auto; of a classifier the better "
        "of mean and cls where the model specifies none)",
    )  # fmt: skip
    normalize: bool = for_python(False, "Scale each text's vector to length 1 before the classifier reads it.")
    save: str | None = for_python(
        None, "Write the probe of the best layer, or of `layer`, to a .safetensors file: a classifier."
    )

    def __post_init__(self) -> None:
        """Errors: BertcliError for more folds than there are t values for, and for options that contradict words."""
        super().__post_init__()
        if self.folds > MOST_FOLDS:
            raise WrongOptions(f"folds (--folds) is {self.folds}: choose 3 to {MOST_FOLDS}.", "folds")
        if self.words and self.pairs is not None:
            raise WrongOptions("Words have no pairs: leave out the second texts, or words (--words).", "words")
        if self.words and self.save is not None:
            raise BertcliError("A saved probe classifies texts, not words: leave out one of save and words.")
        if self.words and (self.pooling is not None or self.normalize):
            raise WrongOptions(
                "A word is the mean of its pieces: leave out pooling and normalize (--pooling), or words (--words).",
                "words",
                "pooling",
            )
        if self.save is not None:
            check_name(self.save)


@dataclass(frozen=True, eq=False, repr=False)
class LabelledTextOptions:
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
    cluster: str | None = option(
        None, "NAME", "Keep texts with the same value in this field in one fold, and resample them together.",
    )  # fmt: skip
    no_header: bool = option(False, "", NO_HEADER, panel="Input")
    delimiter: str | None = option(None, "CHAR", DELIMITER, panel="Input", read=delimiter_named)


def check_name(file: str) -> None:
    """Raise BertcliError for a file to save in that is none, such as the folder that older versions wrote."""
    if ending_of(file) != CLASSIFIER:
        raise BertcliError(
            f"{file} is not a {CLASSIFIER} file. A probe is saved as a small file, no longer as a model's folder: give "
            "FILE.safetensors, and then bertcli classify -m MODEL+FILE.safetensors."
        )


SPEC = ViewSpec(ProbeOptions, reads="labelled texts", has_figure=True)

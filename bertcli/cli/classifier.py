"""The option --classifier, which the commands that use a model's labels take beside those that open the model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bertcli.cli.options import ModelOptions
from bertcli.errors import BertcliError, quoted
from bertcli.tasks.options import option

if TYPE_CHECKING:
    from bertcli.model import Model


def classifier_option() -> Any:
    """Declare the option --classifier: a file that `bertcli probe -o` wrote."""
    return option(None, "FILE", "A classifier for this model, made by bertcli probe -o, in place of its own head.")


def classifiers_option() -> Any:
    """Declare the option --classifier of a command that takes several models."""
    return option(
        None, "FILE", "A classifier made by bertcli probe -o, for the model that it was made for; may be repeated.",
    )  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class ClassifiedModelOptions(ModelOptions):
    """The model, and a classifier of one's own on top of it."""

    classifier: str | None = classifier_option()

    def load_arguments(self, sample: str, note: str = "no model given (-m); using the bundled %s.") -> dict[str, Any]:
        return {**super().load_arguments(sample, note), "classifier": self.classifier}


class Classifiers:
    """Classifiers in files, each for the first model that it was made for."""

    def __init__(self, files: Sequence[str]) -> None:
        """Errors: BertcliError for a file that is no classifier."""
        # Late: it imports NumPy, which --help does without.
        from bertcli.classifier import read_classifier

        self._left = [read_classifier(file) for file in files]

    def put_on(self, model: "Model") -> "Model":
        """The model with the first classifier left that was made for it; unchanged if there is none."""
        if not self._left:
            return model
        from bertcli.classifier import digest_of

        digest = digest_of(model.network, model.tokenizer)
        for classifier in self._left:
            if classifier.digest == digest:
                self._left.remove(classifier)
                return model.with_classifier(classifier)
        return model

    def check_all_used(self, names: Sequence[str]) -> None:
        """Errors: BertcliError naming a classifier that was made for none of the models."""
        for classifier in self._left:
            others = "has" if len(names) == 1 else "have"
            raise BertcliError(
                f"{classifier.file} was made for {quoted(classifier.model)}, and {', '.join(names)} {others} other "
                "weights or another tokenizer: give that model (-m), or make a classifier for this one (bertcli probe "
                "-o)."
            )

"""The option --classifier, which the commands that use a model's labels take beside those that open the model."""

from dataclasses import dataclass
from typing import Any

from bertcli.cli.options import ModelOptions, wrong
from bertcli.tasks.options import option


def classifier_option() -> Any:
    """Declare the option --classifier: a file that `bertcli probe --save` wrote."""
    return option(None, "FILE", "A classifier for this model, made by bertcli probe --save, in place of its own head.")


@dataclass(frozen=True, eq=False, repr=False)
class ClassifiedModelOptions(ModelOptions):
    """The model, and a classifier of one's own on top of it."""

    classifier: str | None = classifier_option()

    def load_arguments(self, sample: str, note: str = "no model given (-m); using the bundled %s.") -> dict[str, Any]:
        return {**super().load_arguments(sample, note), "classifier": self.classifier}


def refuse_several(models: list[str] | None, classifier: str | None) -> None:
    """Refuse several models with a classifier, which fits one. Wrong usage is a typer.BadParameter."""
    if classifier is not None and len(models or ()) > 1:
        raise wrong("--classifier", "a classifier is for one model: give -m once.")

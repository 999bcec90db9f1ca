"""`bertcli.evaluate`: models on labelled texts, from Python."""

from collections.abc import Iterable
from pathlib import Path

from bertcli.errors import BertcliError, quoted
from bertcli.model import Model, load
from bertcli.tasks.options import takes
from bertcli.wings.evaluate.evaluation import Evaluation, check_bound
from bertcli.wings.evaluate.evaluation import evaluate as evaluation_of
from bertcli.wings.evaluate.figures import possible_figures
from bertcli.wings.evaluate.load.data_file import read
from bertcli.wings.evaluate.options import Evaluate

Given = Model | str | Path  # by its name, to be opened


@takes(Evaluate)
def evaluate(data: str | Path, models: Given | Iterable[Given], options: Evaluate) -> Evaluation:
    """Evaluate models on labelled texts as `bertcli evaluate` does: `.record` has what it writes as JSON.

    data: a file or a folder. models: one, or several, which are compared with the first; names are opened one after the
    other. A classifier of your own is one of them: `"MODEL+FILE"`. Options are the command's.
    Errors: BertcliError for data, options and models that cannot be used, and for a figure worse than at_least.
    """
    labelled = read(str(data), options)
    if options.at_least is not None:
        figure, possible = options.at_least[0], possible_figures(labelled, options)
        if figure not in possible:
            known = ", ".join(possible)
            raise BertcliError(
                f"There is no figure {quoted(figure)} for {labelled.task} (at_least); choose from {known}."
            )
    given: Iterable[Given] = [models] if isinstance(models, (Model, str, Path)) else models
    opened = (model if isinstance(model, Model) else load(model) for model in given)
    evaluation = evaluation_of(labelled, opened, options)
    if options.at_least is not None:
        check_bound(evaluation.record, *options.at_least)
    return evaluation

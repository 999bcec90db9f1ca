"""An evaluator for each task: it runs a model on labelled rows and returns an Outcome, from which figures are made."""

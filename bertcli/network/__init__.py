"""The parts of models: how a model is declared (module.py), the ops, layers, and heads. Families are in models/."""

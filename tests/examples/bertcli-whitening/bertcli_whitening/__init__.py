"""A kind of model from outside: sentence vectors that are whitened, by a module that bertcli does not know."""

from bertcli.extensions import Extension

EXTENSION = Extension("whitening", kinds={"bertcli_whitening.Whitening": "bertcli_whitening.kind"})

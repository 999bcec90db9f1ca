"""Names of the package `bertcli`, each with the module that has it; `bertcli/__init__.py` imports one when it is used.

A file of its own, since extensions/plugin.py refuses a plugin that brings one of them. Wings bring more names.
"""

NAMES = {
    "BertConfig": "bertcli.models.bert",
    "BertcliError": "bertcli.errors",
    "Model": "bertcli.model",
    "__version__": "bertcli._version",
    "functional": "bertcli.functional",  # the module itself
    "load": "bertcli.model",
    "params": "bertcli.analysis.params",
    "trace": "bertcli.analysis.trace",
    "variant": "bertcli.model",
}

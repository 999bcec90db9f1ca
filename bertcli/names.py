"""Names that are known before anything else is imported: those of the package, and those of the bundled models.

`bertcli/__init__.py` imports what a name of the package stands for when it is used; extensions/plugin.py refuses a
plugin that brings one of them. Wings bring more names.
"""

MASKED_SAMPLE, SENTIMENT_SAMPLE, SENTENCE_SAMPLE = SAMPLES = (
    "bert-mini-mlm",
    "bert-mini-sentiment",
    "bert-mini-sentence",
)
# Names of the package `bertcli`, each with the module that has it.
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

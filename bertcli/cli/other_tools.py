"""Names that other tools have for options, each with what to write here.

Those of commands are in the declaration of the command, or in its task's spec (`other_words`).
"""

from collections.abc import Container

_PROCESSES = "a long run uses several processes by itself; --threads N bounds them"
_FOLDER = "give -i a folder, or a quoted pattern: -i 'FOLDER/**/*.md'"
_QUERY = "the query is the first argument, without an option"
_SIZES = "other sizes stand in a config.json: --config FILE"
_PROCESSOR = "models run on the processor"
_PAIRS = "two texts are patched at a time; bertcli guide interpret has the mean over many pairs, in ten lines of Python"
_AS_THE_MODEL = "vectors are compared as the model makes them; bertcli encode -o stores others, for search"
_WORDS_PIPED = "words are arguments, or a pipe with one a line: bertcli neighbors < FILE"
_NOTES = "notes are on standard error already; --debug shows where an error came from"

_MODEL_TIMES = "it measures this machine; for a model, time bertcli encode with and without --engine onnx"

# Of an option that a command does not have, or of "COMMAND OPTION": the option that such a command has ("": any), and
# the answer.
MEANT_OPTIONS = {
    "doctor -m": ("", _MODEL_TIMES),
    "doctor --model": ("", _MODEL_TIMES),
    "--batch-size": ("", "texts are put into batches by their numbers of tokens, so there is nothing to set"),
    "--classifier": ("", "a classifier is written after the model's name: -m BASE+FILE.safetensors"),
    "--adapter": ("", "an adapter is written after the model's name: -m BASE+ADAPTER"),
    "--revision": ("", "a branch, tag or commit is written after the model's name: -m NAME@REVISION"),
    "--device": ("", _PROCESSOR),
    "--gpu": ("", _PROCESSOR),
    "--cuda": ("", _PROCESSOR),
    "--quiet": ("", "notes are on standard error: 2> /dev/null leaves them out"),
    "--verbose": ("", _NOTES),
    "-v": ("", _NOTES),
    "--workers": ("--resume", _PROCESSES),
    "--num-workers": ("--resume", _PROCESSES),
    "--jobs": ("--resume", _PROCESSES),
    "-j": ("--resume", _PROCESSES),
    "--truncation": ("--max-length", "a longer text is cut, and a warning says so; --max-length sets the length"),
    "--fp16": ("--dtype", "--dtype says how numbers are stored"),
    "--json": ("--format", "write --format json"),
    "--jsonl": ("--format", "write --format jsonl"),
    "--csv": ("--format", "write --format csv"),
    "--markdown": ("--format", "write --format markdown"),
    "--explain": ("--resume", "bertcli explain shows which words speak for a result"),
    "--labels": ("--stats", "write the prompt as the model reads it, types and text: bertcli guide interpret"),
    "--estimate": ("--stats", "--time measures each operation; bertcli doctor has the rates of this machine"),
    "--task": ("--resume", "the command is the task"),
    "--num-hidden-layers": ("--config", _SIZES),
    "--hidden-size": ("--config", _SIZES),
    "--layers": ("--config", _SIZES),
    "-i": ("--foil", _PAIRS),
    "--input": ("--foil", _PAIRS),
    "--query": ("--query-file", _QUERY),
    "-q": ("--query-file", _QUERY),
    "-r": ("--query-file", _FOLDER),
    "--recursive": ("--query-file", _FOLDER),
    "--vectors": ("--query-file", "stored vectors are given as texts are: -i vectors.npy"),
    "diff --text": ("", "texts stand behind the models: bertcli diff MODEL OTHER TEXT"),
    "export --format": ("", "a graph is written as .onnx: bertcli export MODEL FILE.onnx"),
    "lens --layers": ("", "every layer is shown"),
    "lens --layer": ("", "every layer is shown"),
    "evaluate --versus": ("", "two models are compared where -m is given twice"),
    "--glob": ("--query-file", _FOLDER),
    "search --max-length": ("", "long passages are searched in parts, and none is cut"),
    "tokenize --max-length": ("", "no text is cut here: every token is shown"),
    "similarity --pooling": ("", _AS_THE_MODEL),
    "similarity --truncate-dim": ("", _AS_THE_MODEL),
    "--max-answer-length": ("--no-answer", "an answer has 15 tokens at most; in Python answer(max_answer_length=N)"),
    "--max-answer-len": ("--no-answer", "an answer has 15 tokens at most; in Python answer(max_answer_length=N)"),
    "neighbors -i": ("", _WORDS_PIPED),
    "neighbors --input": ("", _WORDS_PIPED),
}

# What a file of -o is, where a command writes such files.
MEANT_ENDINGS = {
    "--html": ".html",
    "--page": ".html",
    "--svg": ".svg",
    "--png": ".png",
    "--pdf": ".pdf",
    "--graph": ".svg",
    "--plot": ".svg",
    "--figure": ".svg",
}


def answer(command: str, word: str, options: Container[str], written: str) -> str | None:
    """What to write for an option that a command does not have; `written`: the help of its -o, which lists endings."""
    needed, instead = MEANT_OPTIONS.get(f"{command} {word}") or MEANT_OPTIONS.get(word, ("", ""))
    if instead and (not needed or needed in options):
        return instead
    ending = MEANT_ENDINGS.get(word)
    return f"the ending of -o decides: -o FILE{ending}" if ending and ending in written else None


# Our options, each by what other tools call it: for the first of these that the command has.
CALLED_OTHERWISE = {
    "--column": "--col --columns --field --text --text-column --text-field",
    "--candidates": "--labels --candidate-labels --zero-shot --classes --categories",
    "--targets": "--labels --words --candidates --target",
    "--word": "--target --token --targets",
    "--label": "--target --class",
    "--top-k": "-k -n --k --top --topk --top_k --limit --num-results",
    "--max-length": "--max-len --max-seq-length --max-tokens --max_length",
    "--output": "--out --outfile --output-file --to --save --save-to",
    "--input": "--file --files --in --infile --input-file --corpus --folder --dir",
    "--model": "--model-name --model-id --checkpoint --name",
    "--text-pair": "--pair --text2 --second",
    "--layer": "--head --layers",
    "--lines": "--context -A -B",
    "--vocab-size": "--vocab",
    "--seq-len": "--max-length --sequence-length",
    "--prompt": "--prefix --instruction",
    "--id-column": "--id --ids --id-field",
    "--label-column": "--label --labels --label-field --target",
    "--pair-column": "--column2 --text-column-2",
    "--host": "--bind --address",
    "--query-file": "--queries --queries-file",
    "--api-key": "--key --token",
    "--versus": "--other --compare --with",
}


def our_name(word: str, options: Container[str]) -> str | None:
    """The option, of those that a command has, that another tool calls `word`."""
    for ours, others in CALLED_OTHERWISE.items():
        if ours in options and word in others.split():
            return ours
    return None

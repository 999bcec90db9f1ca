"""The one class of errors that a user sees, and how a value that nobody checked is put into its message."""

import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from os import PathLike
from typing import Any, ParamSpec, TypeVar, get_args

P = ParamSpec("P")
R = TypeVar("R")
# Characters of a name that may be a misspelt one: comparing longer ones takes seconds.
LONGEST_COMPARED = 200


class BertcliError(Exception):
    """One sentence on what is wrong and what to do; the command line prints `Error: …` and exits with status 1."""


class WrongOptions(BertcliError):
    """Options that are wrong by themselves, or contradict each other. about: their names in Python."""

    def __init__(self, why: str, *about: str) -> None:
        super().__init__(why)
        self.about = about


class EndedBySignal(SystemExit):
    """The exit of a process that a signal asked to end, such as SIGTERM."""


class UnusableText(BertcliError):
    """A text that a task cannot use; without it the others may be fine."""


class NotFinite(BertcliError):
    """A result that is NaN or infinite, which sound weights never give."""

    def __init__(
        self,
        why: str = "The result holds NaN or infinite numbers: the weights are damaged, or never were right, so use "
        "another model.",
    ) -> None:
        super().__init__(why)


def check_finite(values: Any) -> None:
    """Check an array of results. Errors: BertcliError for NaN or infinite numbers, which sound weights never give."""
    import numpy as np  # late: errors are imported before the number of threads is chosen

    if not np.isfinite(values).all():
        raise NotFinite


class _Short(reprlib.Repr):
    """A value's Python repr, shortened."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = 100

    def repr(self, x: object) -> str:
        text = super().repr(x)
        return text if len(text) <= 120 else f"{text[:58]}...{text[-59:]}"


class _ShortJson(_Short):
    """A value's repr, shortened, with null, true and false as in JSON."""

    def repr_NoneType(self, value: None, level: int) -> str:
        return "null"

    def repr_bool(self, value: bool, level: int) -> str:
        return "true" if value else "false"


_python, _json = _Short(), _ShortJson()


def quoted(value: object) -> str:
    """An untrusted value, for example from JSON, for a message: one printable line of at most 120 characters."""
    return _json.repr(value)


def quoted_object(value: object) -> str:
    """Quote a value passed in by Python code, as `quoted` does."""
    return _python.repr(value)


def number_of(count: int, noun: str) -> str:
    """A count with its noun: "1 text", "2,000 texts"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def nearest(name: str, choices: Iterable[str]) -> str:
    """Suggest names in place of an unknown one: the most similar ones, or any if none is similar."""
    names = [*choices]
    return did_you_mean(name, names) or f"Choose from {', '.join(names)}."


def did_you_mean(name: str, choices: Sequence[str]) -> str:
    """Suggest the names that are most similar to an unknown one; empty if none is similar."""
    from difflib import get_close_matches  # only for mistakes

    close = [choice for choice in choices if name.endswith(f"-{choice}")]
    if not close and len(name) <= LONGEST_COMPARED:
        close = get_close_matches(name, choices, cutoff=0.75)
    return f"Did you mean {' or '.join(close)}?" if close else ""


def first_line(error: Exception) -> str:
    """Return the first line of another library's error, without its location and without a final dot."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


def described(error: BaseException) -> str:
    """An error of foreign code with its class, in one line of limited length: even its text may fail."""
    try:
        text = " ".join(str(error).split())
    except KeyboardInterrupt:
        raise
    except BaseException as failure:
        text = f"its text cannot be read: {type(failure).__name__}"
    return shortened(f"{type(error).__name__}: {text}" if text else type(error).__name__, 500)


def shortened(text: str, most: int) -> str:
    """A text of at most so many characters; of a longer one the beginning and the end."""
    half = (most - 3) // 2
    return text if len(text) <= most else f"{text[:half]}...{text[-half:]}"


def check_choice(what: str, value: str | None, choices: Any) -> None:
    """Refuse a word that is not in `choices`, a Literal; None leaves the choice to the model."""
    if value is not None and not (isinstance(value, str) and value in get_args(choices)):
        raise BertcliError(f"There is no {what} {quoted_object(value)}; choose from {', '.join(get_args(choices))}.")


PATH: Any = str | PathLike
TYPE_NAMES: dict[Any, str] = {
    str: "a text",
    bool: "True or False",
    Real: "a number",
    PATH: "a path",
    Iterable: "a list",
    Sequence: "a list",
    list: "a list",
    Mapping: "a dict",
    dict: "a dict",
    tuple: "a tuple",
}


def check_type(what: str, value: object, expected: Any) -> None:
    """Refuse a value of another type; None leaves the choice to the model."""
    if value is not None and not isinstance(value, expected):
        wanted = TYPE_NAMES.get(expected) or f"of the type {expected.__name__}"
        raise BertcliError(f"{what} is {quoted_object(value)}, which is not {wanted}.")


# Options of other libraries' methods, and what stands for them here.
ELSEWHERE = {
    "attn_implementation": "leave it out, since attention is computed in one way",
    "classifier": "write it after the model's name, 'BASE+FILE.safetensors'",
    "batch_size": "leave it out, since texts are computed together as they fit (batch_tokens: how many tokens)",
    "convert_to_numpy": "leave it out, since the result is a NumPy array",
    "convert_to_tensor": "the result is a NumPy array, of which torch.from_numpy makes a tensor",
    "device": "give the engine to bertcli.load instead; NumPy computes on the processor",
    "device_map": "leave it out, since models run on the processor",
    "low_cpu_mem_usage": "leave it out, since weights are mapped from their file",
    "output_attentions": "bertcli.trace keeps the result of any step (keep=)",
    "output_hidden_states": "bertcli.trace keeps the result of any step (keep=)",
    "output_value": "for a vector of each token use encode_blocks with pooling='none'",
    "precision": "the result is float32; bertcli encode --dtype writes files of other types",
    "return_all_scores": "all labels are given, best first (top_k=1: the best alone)",
    "return_dict": "forward gives hidden states, outputs a dict with the result of every head",
    "show_progress_bar": "leave it out, since nothing is printed",
    "torch_dtype": "leave it out, since weights are read as they are stored and computed in float32",
    "trust_remote_code": "leave it out, since no code of a model's folder is run",
    "use_safetensors": "leave it out, since .safetensors is taken where it is there",
}
# Those that have another name here.
CALLED_ELSEWHERE = {
    "aggregation_strategy": "aggregation",
    "attention_mask": "mask",
    "backend": "engine",
    "cache_folder": "cache_dir",
    "candidate_labels": "candidates",
    "context": "contexts",
    "function_to_apply": "activation",
    "hypothesis_template": "template",
    "ignore_labels": "ignore",
    "input_ids": "ids",
    "inputs": "texts",
    "local_files_only": "offline",
    "model_name_or_path": "model",
    "normalize_embeddings": "normalize",
    "pretrained_model_name_or_path": "model",
    "sentences": "texts",
    "token_type_ids": "segments",
}
# Methods and names of other libraries, and what does that here.
NAMED_ELSEWHERE = {
    "AnalyzerEngine": "bertcli.load opens a model, which has the method tag",
    "AnonymizerEngine": "bertcli.load opens a model, whose tag(text, redact=True) hides entities",
    "AutoModel": "bertcli.load opens a model",
    "AutoTokenizer": "bertcli.load opens a model, which has the method tokenize",
    "CrossEncoder": "bertcli.load opens a reranker, too",
    "HookedTransformer": "bertcli.load opens a model, and bertcli.trace keeps the result of any step (keep=)",
    "KeyBERT": "bertcli.load opens a model, which has the method keywords",
    "SentenceTransformer": "bertcli.load opens a model",
    "SparseTextEmbedding": "bertcli.load opens a model, which has the method encode_sparse",
    "TextCrossEncoder": "bertcli.load opens a reranker, too",
    "TextEmbedding": "bertcli.load opens a model, which has the method encode",
    "anonymize": "tag(text, redact=True) gives the text with its entities hidden",
    "embed": "it is called encode",
    "encode_document": "encode(texts, prompt_name='document') puts a prompt of the model before each text",
    "encode_query": "encode(texts, prompt_name='query') puts a prompt of the model before each text",
    "extract_keywords": "it is called keywords",
    "from_pretrained": "bertcli.load opens a model",
    "get_sentence_embedding_dimension": "encode(text).shape has it",
    "head_view": "bertcli heads TEXT -o FILE.html draws the weights that bertcli.heads(model, text).weights has",
    "model_view": "bertcli heads TEXT -o FILE.html draws the weights that bertcli.heads(model, text).weights has",
    "passage_embed": "encode(texts, prompt_name='document') puts a prompt of the model before each text",
    "patch_pairs": "bertcli guide interpret has the mean of bertcli.patch over many pairs, in ten lines",
    "pipeline": "a model has the tasks as methods: bertcli.load(MODEL).classify(texts)",
    "predict_entities": "tag(text, labels=...) finds entities of any type",
    "predict": "classify labels texts, rank orders documents by a query",
    "query_embed": "encode(texts, prompt_name='query') puts a prompt of the model before each text",
    "rerank": "it is called rank",
    "run_with_cache": "bertcli.trace(model, text, keep=lambda path: True).arrays has the result of every step",
    "run_with_hooks": "bertcli.heads(model, text, ablate=True) sets heads to zero, bertcli.patch replaces activations",
    "to_str_tokens": "tokenize(texts) gives tokens, ids and offsets",
    "to_tokens": "tokenize(texts) gives tokens, ids and offsets",
}


def no_attribute(what: str, name: str) -> AttributeError:
    """Make the error for an attribute that there is not; it says what does here what another library calls so."""
    instead = NAMED_ELSEWHERE.get(name)
    return AttributeError(f"{what} has no attribute {name!r}" + (f": {instead}." if instead else ""))


def check_names(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse options that there are not. Errors: TypeError naming the one that is meant."""
    choices = [*known]
    for name in given:
        if name not in choices:
            if CALLED_ELSEWHERE.get(name) in choices:
                raise TypeError(f"{what} has no option {name!r}: it is called {CALLED_ELSEWHERE[name]}.")
            if name in ELSEWHERE:
                raise TypeError(f"{what} has no option {name!r}: {ELSEWHERE[name]}.")
            raise TypeError(f"{what} has no option {name!r}. {nearest(name, choices)}")


def names_checked(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function, so that a keyword that it does not have is answered as `check_names` does."""
    known = [name for name in signature(function).parameters if name not in ("self", "cls")]

    @wraps(function)
    def checking(*values: P.args, **named: P.kwargs) -> R:
        check_names(f"{function.__name__}()", named, known)
        return function(*values, **named)

    return checking


def check_count(what: str, value: int | str | None, least: int = 1) -> None:
    """Refuse numbers below `least`; None leaves the number to the task."""
    if value is not None:
        check_whole(what, value)
        if int(value) < least:
            raise BertcliError(f"{what} is {value}; it must be at least {least}.")


def check_whole(what: str, value: object) -> None:
    """Refuse anything but a whole number."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise BertcliError(f"{what} is {quoted_object(value)}, which is not a whole number.")

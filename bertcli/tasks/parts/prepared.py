"""Prepare texts for the tokenizer: put a prompt before them, and cut long ones into chunks (chunks.py)."""

import logging
from dataclasses import replace
from typing import NamedTuple, TypeVar

from bertcli.errors import BertcliError, quoted
from bertcli.folder.prompts import Role
from bertcli.loaded_model import LoadedModel
from bertcli.tasks.options import ReadOptions
from bertcli.tasks.prompt_options import PromptedOptions

logger = logging.getLogger("bertcli")
P = TypeVar("P", bound=PromptedOptions)


class Chunking(NamedTuple):
    """Texts of more than `size` tokens are cut into chunks that share up to `overlap` tokens with the one before."""

    size: int
    overlap: int = 0


class Preparation(NamedTuple):
    """The options of reading, the prompt, the chunks; `left_out`: tokens at the beginning that are not pooled."""

    read_options: ReadOptions
    prompt: str
    chunking: Chunking | None
    left_out: int


def for_role(model: LoadedModel, role: Role, options: P) -> P:
    """The options for texts of a role: they get the model's prompt for it, unless the options have another."""
    if options.prompt is not None or options.prompt_name is not None:
        return options
    return replace(options, prompt_name=model.kind.prompt_name(role))


def for_queries(model: LoadedModel, options: P) -> P:
    """The options for queries, beside those that `for_role` makes for documents.

    The default prompt is written out, so that the note about a model without prompts is said of documents alone.
    """
    asked = for_role(model, "query", options)
    named = asked.prompt is not None or asked.prompt_name is not None
    return asked if named else replace(asked, prompt=model.kind.prompt)


def note_prompts(query: str, document: str) -> None:
    """Log the prompts of a search, if there are any."""
    if query or document:
        of_query, of_document = (quoted(prompt) if prompt else "none" for prompt in (query, document))
        logger.info("prompts: %s before the query, %s before what is searched.", of_query, of_document)


def prepare(model: LoadedModel, options: PromptedOptions) -> Preparation:
    """Choose prompt and chunks: the options', else the checkpoint's default prompt.

    Errors: BertcliError for a name that none of its prompts has, and chunks beyond the model's limit.
    """
    kind, read_options = model.kind, options.read_options
    prompt, prompt_name = options.prompt, options.prompt_name
    chunking = None if options.chunk is None else Chunking(*options.chunk_sizes)
    if model.tokenizer.chat is not None and (refusal := kind.refusal_of_chat(model.name)) is not None:
        raise BertcliError(refusal)
    if (refusal := kind.routes.refusal_of_vector(model.name, prompt_name)) is not None:
        raise BertcliError(refusal)
    if prompt_name is not None and prompt_name not in kind.prompts:
        names = f"it has {', '.join(map(quoted, kind.prompts))}"
        choices = names if kind.prompts else "it names none: give the words themselves with --prompt"
        raise BertcliError(f"{model.name} has no prompt {quoted(prompt_name)} (--prompt-name); {choices}.")
    if chunking is not None:
        if chunking.size > model.config.max_tokens:
            raise BertcliError(
                f"chunk (--chunk) is {chunking.size}, more than the {model.config.max_tokens} positions of this model."
            )
        read_options = replace(read_options, max_length=chunking.size)
    if prompt is None:
        prompt = kind.prompt_text(prompt_name)
    left_out = model.tokenizer.prompt_length(prompt) if prompt and not kind.include_prompt else 0
    return Preparation(read_options, prompt, chunking, left_out)

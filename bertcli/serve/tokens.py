"""Routes of the tokenizer."""

from dataclasses import dataclass
from typing import Any

from bertcli.serve.fields import Refused, asked
from bertcli.serve.service import Answer, Ask, Asked, route
from bertcli.serve.vectors import listed


@dataclass(frozen=True, kw_only=True)
class Tokenize(Asked):
    inputs: str | list[str] = asked("A text, or several.")
    add_special_tokens: bool = asked("Whether [CLS], [SEP] and their like are among them.", True)
    prompt_name: str | None = asked("The model's prompt of this name is put before each text.", None)


@route("/tokenize")
async def tokenize(ask: Ask, wanted: Tokenize) -> Answer:
    """The tokens of texts."""
    prompts, tokenizer = ask.served.own.prompts, ask.served.model.tokenizer
    if wanted.prompt_name and wanted.prompt_name not in prompts:
        names = ", ".join(prompts) or "none"
        raise Refused(422, f"prompt_name: the model has no such prompt; it has {names}.", "prompt_name", "unusable")
    prompt = prompts[wanted.prompt_name] if wanted.prompt_name else ""
    texts = [prompt + text for text in listed(wanted.inputs)]

    def tokens() -> Answer:
        return [
            [
                {"id": id, "text": piece, "special": side is None, "start": span[0], "stop": span[1]}
                for id, piece, side, offsets in zip(one.ids, one.pieces, one.sides, one.offsets, strict=True)
                for span in [(None, None) if side is None else offsets]
                if wanted.add_special_tokens or side is not None
            ]
            for one in tokenizer.encode(texts)
        ]

    return await ask.apart(tokens)


@dataclass(frozen=True, kw_only=True)
class Decode(Asked):
    ids: list[int] | list[list[int]] = asked("Ids of the vocabulary, of one text or of several.")
    skip_special_tokens: bool = asked("Whether [CLS], [SEP] and their like are left out.", True)


@route("/decode")
async def decode(ask: Ask, wanted: Decode) -> Answer:
    """The texts of tokens."""
    tokenizer, ids = ask.served.model.tokenizer, wanted.ids
    every: list[Any] = [*ids] if ids and isinstance(ids[0], list) else [ids]
    if not all(0 <= id < tokenizer.vocab_size for ids in every for id in ids):
        raise Refused(422, f"ids: there are ids from 0 to {tokenizer.vocab_size - 1}.", "ids", "wrong_shape")
    roles = ("mask", "cls", "sep", "pad", "unk") if wanted.skip_special_tokens else ()
    left_out = {tokenizer.special_id(role) for role in roles}

    def texts() -> Answer:
        return [tokenizer.spelled([tokenizer.piece(id) for id in ids if id not in left_out]) for ids in every]

    return await ask.apart(texts)

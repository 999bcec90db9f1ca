"""Texts to tokens: open a checkpoint's tokenizer, and run it. Only this package imports the tokenizers library."""

from bertcli.tokens.template import Tokens
from bertcli.tokens.tokenizer import Spelling, Tokenizer, refuse_long

__all__ = ["Spelling", "Tokenizer", "Tokens", "refuse_long"]

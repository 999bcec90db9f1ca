"""Text to tokens. This package is the only importer of tokenizers."""

from bertcli.tokens.template import Tokens
from bertcli.tokens.tokenizer import Spelling, Tokenizer, refuse_long

__all__ = ["Spelling", "Tokenizer", "Tokens", "refuse_long"]

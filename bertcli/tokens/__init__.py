"""Text to tokens. This package is the only importer of tokenizers."""

from bertcli.tokens.framed import Tokens
from bertcli.tokens.tokenizer import Spelling, Tokenizer

__all__ = ["Spelling", "Tokenizer", "Tokens"]

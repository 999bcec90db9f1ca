"""Text to tokens. This package is the only importer of tokenizers."""

from bertcli.tokens.framed import Tokens
from bertcli.tokens.tokenizer import Tokenizer

__all__ = ["Tokenizer", "Tokens"]

"""Attention weights for people to look at: shades in a terminal, a page or a drawing in a file."""

from bertcli.attention.weights import Attention, Choice, Selected, attention_of, keeps_attention, parse_choice

__all__ = ["Attention", "Choice", "Selected", "attention_of", "keeps_attention", "parse_choice"]

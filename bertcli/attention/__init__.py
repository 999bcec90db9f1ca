"""Displays of attention weights: shades in a terminal, a web page or a drawing in a file."""

from bertcli.attention.weights import Attention, Choice, Selected, attention_of, keeps_attention, parse_choice

__all__ = ["Attention", "Choice", "Selected", "attention_of", "keeps_attention", "parse_choice"]

"""Attention weights as a page: one self-contained HTML file with a choice of layer and head."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from html import escape
from importlib.resources import files

import numpy as np

from bertcli.attention.weights import Attention, Choice, printable
from bertcli.errors import BertcliError

MOST = 50_000_000  # weights in a page: 12 heads of 12 layers at 512 tokens are 38 million, a file of 100 MB


def page(attention: Attention, choice: Choice) -> str:
    """All layers and heads of a sentence, the chosen one first; weights are rounded to 1/65535."""
    if attention.weights.size > MOST:
        raise BertcliError(
            f"{attention.weights.size:,} weights are too many for a page: give a shorter text, or write .svg."
        )
    fractions = np.rint(np.clip(attention.weights, 0, 1) * 65535).astype("<u2")
    layers, heads, size, _ = attention.weights.shape
    data = {
        "pieces": [printable(piece) for piece in attention.pieces],
        "shape": [layers, heads, size],
        "layer": choice.layer,
        "head": choice.head,
        "weights": b64encode(fractions.tobytes()).decode("ascii"),
    }
    # Only "<" could end the script element: "</script>", "<!--".
    text = json.dumps(data, ensure_ascii=True).replace("<", "\\u003c")
    filling = {"title": escape(printable(attention.model)), "data": text}
    template = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda place: filling[place[1]], template)

"""Print the formula of each op in the symbols of its step, as MathML and as plain text; nothing is computed from it.

A formula is a tree: a list is a row, ("sub", x, i) and ("sup", x, i) are x with an index, ("frac", a, b) is a fraction,
("root", x) a square root; any other text is a symbol, a number or an operator. Formulas are found by the op's name.
"""

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from bertcli.analysis.trace.steps import Account
from bertcli.extensions.of_kinds import kind_modules
from bertcli.report.page import Markup, element

Formula = Any  # str | list[Formula] | tuple[str, Formula, ...]
OPERATORS = frozenset("=+−·⊙/(),∑→…|≤∈[]") | {"exp", "max", "mean", "cos", "sin", "softmax", "−∞"}


def symbol(name: str) -> Formula:
    """The symbol of an operand, from its name: `Query (Q)` gives Q, `W_Q` an index, `Kᵀ` a T; others stay words."""
    name = name.removesuffix(" (tied)")
    short = re.search(r"\(([^() ]+)\)$", name)
    text = short[1] if short else name
    if text.endswith("ᵀ"):
        return ("sup", symbol(text[:-1]), "T")
    base, _, index = re.sub(r"[{}]", "", text).partition("_")
    if index:
        return ("sub", base, index)
    base, _, power = text.partition("^")
    return ("sup", base, power) if power else text


# By the op's name, with x, y and z for what it reads. `_` and `^` put the next thing below or above, `÷` makes a
# fraction, `√` a root; `{ }` and `" "` make one thing of several. Some depend on the op's settings.
Rule = str | Callable[[Mapping[str, Any]], str]


def _activated(inner: str, settings: Mapping[str, Any]) -> str:
    activation = settings.get("activation")
    return f"{activation.split('_')[0]} ( {inner} )" if activation else inner


def _affine(s: Mapping[str, Any]) -> str:
    return _activated("x · y + b" if s.get("bias") else "x · y", s)


def _norm(s: Mapping[str, Any]) -> str:
    return "{x − μ}÷√{σ^2 + ε}" + " ⊙ γ" * bool(s.get("weight")) + " + β" * bool(s.get("bias"))


def _scores(s: Mapping[str, Any]) -> str:
    return f"{{x · y}}÷√{{{s['terms']} · D}}" if s.get("terms", 1) > 1 else "{x · y}÷√D"


def _seen(s: Mapping[str, Any]) -> str:
    """The condition of a sliding window, −a ≤ i − j ≤ b, with the bounds that it has."""
    window_left, window_right = s.get("window_left"), s.get("window_right")
    if window_left == window_right:
        return f"x where {{| i − j | ≤ {window_left}}} else −∞"
    first = "" if window_right is None else f"{-window_right} ≤ "
    return f"x where {{{first}i − j{'' if window_left is None else f' ≤ {window_left}'}}} else −∞"


RULES: dict[str, Rule] = {
    "embed": "y [ x ]",
    "embed_counted": lambda s: f"z [ {s['padding']} + count ( x ) ]",
    "gather": "x [ y ]",
    "add": "x + y",
    "add_bias": "x + y",
    "add_alibi": "x − slope_head · | i − j |",
    "add_row": "x + y [ 0 ]",
    "multiply": "x ⊙ y",
    "linear": _affine,
    "project": _affine,
    "project_heads": "x · y",
    "experts": lambda s: f"∑_{{e ∈ top {s['top']}}} y_e · {s['activation'].split('_')[0]} ( x · W_e ) · V_e + b",
    "scores": _scores,
    "bucket_scores": _scores,
    "softmax": "{exp x_i}÷{∑_j exp x_j}",
    "attend": "x · y",
    "norm": _norm,
    "new_norm": _norm,
    "rms_norm": lambda s: "x÷√{mean_j x_j^2 + ε} ⊙ " + ("{( 1 + γ )}" if s.get("offset") else "γ"),
    "scale": lambda s: f"x · {s['factor']:.4g}",
    "drop_masks": lambda s: f'x · {{1 − {s["trained"]}}}÷{{1 − "share of masks"}}',
    "last_tokens": "x [ last ]",
    "mean_tokens": "mean_tokens x",
    "rotate": "x_j cos p θ_j − x_{j + D / 2} sin p θ_j",
    "relative_bias": "T [ bucket ( i − j ) ]",
    "add_by_query": "x + y_{i , bucket ( i − j )}",
    "add_by_key": "x + y_{j , bucket ( i − j )}",
    "convolve": lambda s: _activated("∑_k y_k · x_{t + k} + b", s),
    "repeat_heads": "x [ head · KV / A ]",
    "concat": "concat ( x )",
    "within": _seen,
}
OPERATOR_NAMES = {"_": "sub", "^": "sup", "÷": "frac"}
WORD = re.compile(r'"[^"]*"|[{}√_^÷]|[^\s{}√_^÷]+')


@cache
def rules() -> Mapping[str, Rule]:
    """The rules of all ops; those of a kind's ops are in the file formulas.py of its folder."""
    every = dict(RULES)
    for of_kind in kind_modules("formulas"):
        every |= of_kind.RULES
    return every


def formula(op: str, inputs: Sequence[str], output: str, settings: Mapping[str, Any]) -> Formula:
    """`output = …`, with the names of operands and result as symbols; RuntimeError for an op without a rule."""
    rule = rules().get(op)
    if rule is None:
        raise RuntimeError(f"The op {op} has no formula.")
    operands = dict(zip("xyz", map(symbol, inputs), strict=False))
    words = WORD.findall(rule if isinstance(rule, str) else rule(settings))
    return [symbol(output), "=", *_row(deque(words), operands)]


def _row(words: deque[str], operands: Mapping[str, Formula]) -> list[Formula]:
    """Parse words up to the closing brace that belongs to them; `words` is consumed."""
    row: list[Formula] = []
    while words and (word := words.popleft()) != "}":
        if word in OPERATOR_NAMES and row:
            row[-1] = (OPERATOR_NAMES[word], row[-1], _thing(words.popleft(), words, operands))
        else:
            row.append(_thing(word, words, operands))
    return row


def _thing(word: str, words: deque[str], operands: Mapping[str, Formula]) -> Formula:
    """Parse one thing that begins with `word`: a group in braces, a root, an operand (x, y, z), or a symbol."""
    if word == "{":
        row = _row(words, operands)
        return row if len(row) > 1 else row[0]
    if word == "√":
        return ("root", _thing(words.popleft(), words, operands))
    return operands.get(word, word.strip('"'))


def add_formulas(trace: Account) -> None:
    """Add the formula, as plain text, to every step of a trace, in place."""
    for number, step in enumerate(trace.steps):
        tree = formula(step.op, [operand.name for operand in step.inputs], step.output.name, step.settings)
        trace.steps[number] = replace(step, formula=plain(tree))


def plain(tree: Formula) -> str:
    """A formula as text in one line: `Attention scores = (Q · Kᵀ) / √D`."""
    if isinstance(tree, list):
        return " ".join(map(plain, tree)).replace("( ", "(").replace(" )", ")").replace(" ,", ",")
    if not isinstance(tree, tuple):
        return str(tree)
    operator, *inner = tree
    parts = [f"({plain(part)})" if isinstance(part, list) and len(part) > 1 else plain(part) for part in inner]
    if operator == "frac":
        return f"{parts[0]} / {parts[1]}"
    if operator == "root":
        return f"√{parts[0]}"
    base, index = parts
    if operator == "sub":
        # A short index, such as (i, j), needs no parentheses.
        return f"{base}_{index.strip('()')}" if len(index) < 4 else f"{base}_{index}"
    raised = {"T": "ᵀ", "2": "²"}
    return base + raised.get(index, f"^{index}")


def mathml(tree: Formula) -> Markup:
    """A formula as a `<math>` element, which browsers draw and screen readers read."""
    return element("math", _mathml(tree), display="block")


def _mathml(tree: Formula) -> Markup:
    if isinstance(tree, list):
        return element("mrow", *map(_mathml, tree))
    if isinstance(tree, tuple):
        operator, *parts = tree
        return element({"sub": "msub", "sup": "msup", "frac": "mfrac", "root": "msqrt"}[operator], *map(_mathml, parts))
    if tree in OPERATORS:
        return element("mo", tree)
    if tree.isdigit():
        return element("mn", tree)
    return element("mi" if len(tree) == 1 else "mtext", tree)

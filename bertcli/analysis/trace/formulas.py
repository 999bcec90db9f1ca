"""The formula of each op in the symbols of the step that ran it: as MathML, as LaTeX, as plain text.

A formula is a tree: a list is a row, ("sub", x, i) and ("sup", x, i) are x with an index, ("frac", a, b) is a fraction,
("root", x) a square root; any other text is a symbol, a number or an operator. Formulas are found by the op's name.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bertcli.analysis.trace.steps import Account
from bertcli.report.page import Markup, element

Formula = Any  # str | list[Formula] | tuple[str, Formula, ...]
OPERATORS = frozenset("=+−·⊙/(),∑→…|≤∈[]") | {"exp", "max", "mean", "cos", "sin", "softmax", "−∞"}
LATEX = {
    "−": "-", "·": r"\cdot", "⊙": r"\odot", "∑": r"\sum", "→": r"\to", "…": r"\dots", "≤": r"\le", "∈": r"\in",
    "μ": r"\mu", "σ": r"\sigma", "ε": r"\varepsilon", "γ": r"\gamma", "β": r"\beta", "θ": r"\theta", "−∞": r"-\infty",
    "exp": r"\exp", "max": r"\max", "cos": r"\cos", "sin": r"\sin",
}  # fmt: skip


def symbol(name: str) -> Formula:
    """How an operand is written: `Query (Q)` as Q, `W_Q` with an index, `Kᵀ` transposed, others in words."""
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


def _activated(inner: list[Formula], settings: Mapping[str, Any]) -> list[Formula]:
    activation = settings.get("activation")
    return [activation.split("_")[0], "(", *inner, ")"] if activation else inner


def _affine(x: list[Formula], s: Mapping[str, Any]) -> list[Formula]:
    bias = ["+", "b"] if s.get("bias") else []
    return _activated([x[0], "·", x[1], *bias], s)


def _norm(x: list[Formula], s: Mapping[str, Any]) -> list[Formula]:
    normalized = ("frac", [x[0], "−", "μ"], ("root", [("sup", "σ", "2"), "+", "ε"]))
    weight = ["⊙", "γ"] if s.get("weight") else []
    bias = ["+", "β"] if s.get("bias") else []
    return [normalized, *weight, *bias]


def _scores(x: list[Formula], s: Mapping[str, Any]) -> list[Formula]:
    inside = [str(s["terms"]), "·", "D"] if s.get("terms", 1) > 1 else "D"
    return [("frac", [x[0], "·", x[1]], ("root", inside))]


def _looked_up(x: list[Formula], s: Mapping[str, Any]) -> list[Formula]:
    return [x[1], "[", x[0], "]"]


Rule = Callable[[list[Formula], Mapping[str, Any]], list[Formula]]  # from the symbols of operands, and settings


def _between(operator: str) -> Rule:
    return lambda x, s: [x[0], operator, *x[1:2]]


def _rotated(x: list[Formula], s: Mapping[str, Any]) -> list[Formula]:
    angle = ["p", ("sub", "θ", "j")]
    return [("sub", x[0], "j"), "cos", *angle, "−", ("sub", x[0], ["j", "+", "D", "/", "2"]), "sin", *angle]


def _seen(behind: int | None, ahead: int | None) -> list[Formula]:
    """Where a key is seen: −a ≤ i − j ≤ b, with the bounds that there are."""
    if behind == ahead:
        return ["|", "i", "−", "j", "|", "≤", str(behind)]
    first: list[Formula] = [] if ahead is None else [str(-ahead), "≤"]
    return [*first, "i", "−", "j", *([] if behind is None else ["≤", str(behind)])]


RULES: dict[str, Rule] = {
    "embed": _looked_up,
    "embed_counted": lambda x, s: [x[2], "[", str(s["padding"]), "+", "count", "(", x[0], ")", "]"],
    "gather": lambda x, s: [x[0], "[", x[1], "]"],
    "add": _between("+"),
    "add_bias": _between("+"),
    "add_alibi": lambda x, s: [x[0], "−", ("sub", "slope", "head"), "·", "|", "i", "−", "j", "|"],
    "add_row": lambda x, s: [x[0], "+", x[1], "[", "0", "]"],
    "multiply": _between("⊙"),
    "linear": _affine,
    "project": _affine,
    "project_heads": _between("·"),
    "scores": _scores,
    "bucket_scores": _scores,
    "softmax": lambda x, s: [("frac", ["exp", ("sub", x[0], "i")], [("sub", "∑", "j"), "exp", ("sub", x[0], "j")])],
    "attend": _between("·"),
    "norm": _norm,
    "new_norm": _norm,
    "rms_norm": lambda x, s: [
        ("frac", x[0], ("root", [("sub", "mean", "j"), ("sup", ("sub", x[0], "j"), "2"), "+", "ε"])),
        "⊙",
        ["(", "1", "+", "γ", ")"] if s.get("offset") else "γ",
    ],
    "scale": lambda x, s: [x[0], "·", f"{s['factor']:.4g}"],
    "drop_masks": lambda x, s: [x[0], "·", ("frac", ["1", "−", str(s["trained"])], ["1", "−", "share of masks"])],
    "last_tokens": lambda x, s: [x[0], "[", "last", "]"],
    "mean_tokens": lambda x, s: [("sub", "mean", "tokens"), x[0]],
    "rotate": _rotated,
    "relative_bias": lambda x, s: ["T", "[", "bucket", "(", "i", "−", "j", ")", "]"],
    "add_by_query": lambda x, s: [x[0], "+", ("sub", x[1], ["i", ",", "bucket", "(", "i", "−", "j", ")"])],
    "add_by_key": lambda x, s: [x[0], "+", ("sub", x[1], ["j", ",", "bucket", "(", "i", "−", "j", ")"])],
    "convolve": lambda x, s: _activated(
        [("sub", "∑", "k"), ("sub", x[1], "k"), "·", ("sub", x[0], ["t", "+", "k"]), "+", "b"], s
    ),
    "repeat_heads": lambda x, s: [x[0], "[", "head", "·", "KV", "/", "A", "]"],
    "concat": lambda x, s: ["concat", "(", x[0], ")"],
    "within": lambda x, s: [x[0], "where", _seen(s.get("behind"), s.get("ahead")), "else", "−∞"],
}
ONE_IS_ENOUGH = {
    "softmax", "norm", "new_norm", "rms_norm", "scale", "drop_masks", "last_tokens", "mean_tokens", "rotate", "within",
    "relative_bias", "concat", "linear", "project", "repeat_heads",
}  # fmt: skip


def formula(op: str, inputs: Sequence[str], output: str, settings: Mapping[str, Any]) -> Formula:
    """`output = …`, with the names of operands and result as symbols; RuntimeError for an op without a rule."""
    operands: list[Formula] = [symbol(name) for name in inputs]
    if op not in RULES:
        raise RuntimeError(f"The op {op} has no formula.")
    rule = RULES[op]
    if len(operands) < 2 and op not in ONE_IS_ENOUGH:
        listed = [part for operand in operands for part in (operand, ",")]
        return [symbol(output), "=", op, "(", *listed[:-1], ")"]
    return [symbol(output), "=", *rule([*operands, "x"], settings)]


def add_formulas(trace: Account) -> None:
    """Give every step of a trace its formula, as plain text."""
    for number, step in enumerate(trace.steps):
        tree = formula(step.op, [operand.name for operand in step.inputs], step.output.name, step.settings)
        trace.steps[number] = replace(step, formula=plain(tree))


def plain(tree: Formula) -> str:
    """The same in one line: `Attention scores = (Q · Kᵀ) / √D`."""
    if isinstance(tree, list):
        return " ".join(map(plain, tree)).replace("( ", "(").replace(" )", ")").replace(" ,", ",")
    if not isinstance(tree, tuple):
        return str(tree)
    kind, *inner = tree
    parts = [f"({plain(part)})" if isinstance(part, list) and len(part) > 1 else plain(part) for part in inner]
    if kind == "frac":
        return f"{parts[0]} / {parts[1]}"
    if kind == "root":
        return f"√{parts[0]}"
    if kind == "sub":
        return f"{parts[0]}_{parts[1].strip('()')}" if len(parts[1]) < 4 else f"{parts[0]}_{parts[1]}"
    return f"{parts[0]}{'ᵀ' if parts[1] == 'T' else '²' if parts[1] == '2' else f'^{parts[1]}'}"


def mathml(tree: Formula) -> Markup:
    """`<math>`: drawn by browsers, read by screen readers."""
    return element("math", _mathml(tree), display="block")


def _mathml(tree: Formula) -> Markup:
    if isinstance(tree, list):
        return element("mrow", *map(_mathml, tree))
    if isinstance(tree, tuple):
        kind, *parts = tree
        return element({"sub": "msub", "sup": "msup", "frac": "mfrac", "root": "msqrt"}[kind], *map(_mathml, parts))
    if tree in OPERATORS:
        return element("mo", tree)
    return element("mn" if tree.isdigit() else "mi" if len(tree) == 1 else "mtext", tree)


def latex(tree: Formula) -> str:
    """The same for notes in Markdown."""
    if isinstance(tree, list):
        return " ".join(map(latex, tree))
    if isinstance(tree, tuple):
        kind, *parts = tree
        inner = [latex(part) for part in parts]
        if kind == "frac":
            return rf"\frac{{{inner[0]}}}{{{inner[1]}}}"
        return rf"\sqrt{{{inner[0]}}}" if kind == "root" else f"{inner[0]}{'_' if kind == 'sub' else '^'}{{{inner[1]}}}"
    if tree in LATEX:
        return LATEX[tree]
    return tree if len(tree) == 1 or tree.isdigit() else rf"\text{{{tree.replace('_', ' ')}}}"

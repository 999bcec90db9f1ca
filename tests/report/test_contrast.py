"""Contrast on pages, by WCAG 2.2: 4.5:1 for text, 3:1 for lines that mean something, in light and in dark."""

import re
from importlib.resources import files

import pytest

from bertcli.report import charts

CSS = files("bertcli.report").joinpath("page.css").read_text(encoding="utf-8")
LIGHT, DARK = (dict(re.findall(r"--([\w-]+): ([^;]+);", block)) for block in re.findall(r":root \{(.*?)\}", CSS, re.S))
THEMES = {"light": LIGHT, "dark": LIGHT | DARK}
# The exponent with which a dark page draws shades.
(POWER,) = {float(power) for power in re.findall(r"pow\(var\(--shade\), ([\d.]+)\)", CSS)}
Color = tuple[float, ...]


def color(text: str) -> Color:
    """`#fff`, `#16161a` or `28 98 168` as red, green, blue from 0 to 255."""
    if not text.startswith("#"):
        return tuple(map(float, text.split()))
    digits = text[1:] if len(text) == 7 else "".join(2 * digit for digit in text[1:])
    return tuple(float(int(digits[i : i + 2], 16)) for i in (0, 2, 4))


def over(front: Color, behind: Color, share: float) -> Color:
    return tuple(share * a + (1 - share) * b for a, b in zip(front, behind, strict=True))


def luminance(of: Color) -> float:
    linear = [c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in of]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: Color, other: Color) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_computed_as_wcag_does() -> None:
    assert contrast(color("#000"), color("#fff")) == pytest.approx(21)
    assert contrast(color("#777"), color("#fff")) == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("theme", THEMES)
def test_text_stands_out_from_paper_and_from_the_strongest_shade(theme: str) -> None:
    colors = {name: THEMES[theme][name] for name in ("ink", "paper", "quiet", "for", "against", "focus")}
    ink, paper, quiet, blue, red, focus = map(color, colors.values())
    assert min(contrast(ink, paper), contrast(quiet, paper), contrast(ink, blue), contrast(ink, red)) >= 4.5
    assert contrast(focus, paper) >= 3


@pytest.mark.parametrize("theme", THEMES)
def test_lines_of_charts_stand_out_from_paper(theme: str) -> None:
    ink, paper = (color(THEMES[theme][name]) for name in ("ink", "paper"))
    opacities = {float(value) for value in re.findall(r"\.(?:quiet|beside) \{[^}]*opacity: ([\d.]+)", charts.STYLE)}
    assert opacities
    assert min(contrast(over(ink, paper, opacity), paper) for opacity in opacities) >= 3


def test_rules_of_tables_stand_out_on_a_dark_page() -> None:
    assert contrast(color(THEMES["dark"]["line"]), color(THEMES["dark"]["paper"])) >= 3


@pytest.mark.parametrize(("theme", "power"), [("light", 1.0), ("dark", POWER)])
@pytest.mark.parametrize("side", ["for", "against"])
def test_a_shade_of_4_percent_is_told_from_one_of_20(theme: str, power: float, side: str) -> None:
    full, paper = (color(THEMES[theme][name]) for name in (side, "paper"))
    weak, stronger = (over(full, paper, share**power) for share in (0.04, 0.2))
    assert contrast(weak, stronger) >= 1.1
    assert contrast(weak, paper) >= 1.02

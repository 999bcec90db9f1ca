"""Take the pictures of the README again: `python tests/pictures.py`, with Chromium and chromedriver.

Each has two pixels for one as it is shown on GitHub, and its file notes the version that it shows.
"""

import base64
import io
import tempfile
import time
from pathlib import Path
from typing import Any

from helpers.browser import open_browser
from helpers.terminal import bertcli
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from bertcli import __version__

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / ".github" / "images"
SENTENCE = "She poured a cup of hot [MASK]."
WHOLE, HALF = 880, 440  # CSS pixels: as wide as a README on GitHub, and two pictures beside each other
# In the last layer: how much head 1 looks from [MASK] to the word before it.
NUMBER = "encoder.layers.3.attention.softmax@1,8,7"
COLORS = 128


# What begins a picture: the first thing on a page with these words.
BEGIN = """
const all = document.evaluate(`//*[starts-with(normalize-space(text()), "${arguments[0]}")]`, document, null, 5, null);
scrollBy(0, all.iterateNext().getBoundingClientRect().top - 12);
"""


def page(browser: Any, width: int, height: int, *arguments: str | Path, at: str = "", begin: str = "") -> Image.Image:
    """What is seen of a page that a command writes, at an address in it, or from these words."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        written(file, *arguments)
        size = {"width": width, "height": height, "deviceScaleFactor": 2, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        browser.get(f"{file.as_uri()}#{at}")
        if begin:
            browser.execute_script(BEGIN, begin)
        time.sleep(1)  # until it is painted
        shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    return Image.open(io.BytesIO(base64.b64decode(shot["data"])))


def figure(*arguments: str | Path) -> Image.Image:
    """The figure that a command writes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figure.png"
        written(file, *arguments)
        return Image.open(io.BytesIO(file.read_bytes()))


def written(file: Path, *arguments: str | Path) -> None:
    """Run a command that writes a file."""
    done = bertcli(*arguments, "-o", file)
    assert done.status == 0, done.err


def save(image: Image.Image, name: str) -> None:
    """Write a picture with few colors, in a fifth of the bytes."""
    note = PngInfo()
    note.add_text("Software", f"bertcli {__version__}")
    few = image.convert("RGB").quantize(COLORS, dither=Image.Dither.NONE)
    few.save(IMAGES / name, optimize=True, pnginfo=note)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as profile:
        browser = open_browser(Path(profile))
        try:
            save(page(browser, WHOLE, 960, "trace", SENTENCE, at=NUMBER), "pass.png")
            evaluate = ("evaluate", ROOT / "tests/data/reviews.csv", "-m", "bert-mini-sentiment")
            save(page(browser, HALF, 610, *evaluate, begin="bert-mini-sentiment: confusion"), "evaluate.png")
        finally:
            browser.quit()
    save(figure("lens", SENTENCE), "lens.png")

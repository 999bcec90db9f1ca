"""The server's page for people, in a real browser: every task, three widths, light and dark, by keyboard alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Made
from helpers.browser import until
from helpers.served import Running, serving
from reference import task_cases as cases
from reference.patch_cases import folder_of

import bertcli
from bertcli.wings.serve.service import Limits

EXPECTED = {  # by model and button, what the result begins with
    ("bert-mini-sentence", "Compare"): "0 1 2",
    ("bert-mini-sentence", "Rank"): "A dog ran home. 0.5554",
    ("bert-mini-mlm", "Fill masks"): "tea 19.8 % water",
    ("bert-mini-mlm", "Score"): "Pseudo-perplexity 2.05",
    ("bert-mini-sentiment", "Classify"): "positive 0.9551 negative 0.0449",
}


@pytest.fixture(scope="module")
def running(made: Made) -> Iterator[Running]:
    names = [*dict.fromkeys(name for name, _ in EXPECTED)]
    folders = [str(made(**keywords)) for keywords in (cases.TAGGER, cases.READER, cases.INFERENCE)]
    with serving([bertcli.load(name) for name in [*names, *folders]]) as server:
        yield server


def resize(browser: Any, width: int, scheme: str) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def show(browser: Any, url: str, width: int, scheme: str) -> None:
    resize(browser, width, scheme)
    browser.get_log("browser")  # of another test's page
    browser.get(url)


def ran(browser: Any) -> str:
    """The text of the result, once it is there."""
    until(
        browser,
        lambda _: browser.execute_script(
            "const result = document.getElementById('result');"
            "return result.childElementCount && !result.classList.contains('waits')"
        ),
    )
    return " ".join(browser.execute_script("return document.getElementById('result').innerText").split())


def test_every_task_of_every_model_can_be_tried(browser: Any, running: Running) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select

    show(browser, f"{running.url}/", 360, "dark")
    tried = {}
    for served in running.given("/info")["models"]:
        Select(browser.find_element(By.ID, "model")).select_by_value(served["model_id"])
        for number in range(len(browser.find_elements(By.CSS_SELECTOR, "[role=tab]"))):
            tab = browser.find_elements(By.CSS_SELECTOR, "[role=tab]")[number]
            name = tab.text
            tab.click()
            browser.find_element(By.CSS_SELECTOR, "#ask [type=submit]").click()
            tried[served["model_id"], name] = ran(browser)
            wrong = browser.find_elements(By.CSS_SELECTOR, "#result .wrong")
            assert [one.text for one in wrong] == []
            for width, scheme in ((800, "light"), (1400, "dark"), (360, "dark")):
                resize(browser, width, scheme)
                across = browser.execute_script(
                    "const root = document.documentElement; return [root.scrollWidth, root.clientWidth]"
                )
                assert across[0] <= across[1], (name, width)
            assert browser.find_element(By.ID, "curl").text.startswith(f"curl {running.url}/")
    assert browser.get_log("browser") == []
    assert {name for _, name in tried} >= {"Entities", "Answer", "Labels of your own"}
    for key, beginning in EXPECTED.items():
        assert tried[key].startswith(beginning), key


def test_the_page_works_by_keyboard_alone_and_says_what_is_wrong(browser: Any, running: Running) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    show(browser, f"{running.url}/", 800, "light")
    reached = []
    for _ in range(5):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        reached.append(browser.switch_to.active_element.get_attribute("id") or browser.switch_to.active_element.text)
    assert reached == ["model", "Compare", "text", "Run", "look"]
    box = browser.find_element(By.ID, "text")
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys("<b>one</b>", Keys.ENTER, "two")
    box.send_keys(Keys.CONTROL, Keys.ENTER)
    assert "<b>one</b>" in ran(browser)
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys(Keys.DELETE)
    box.send_keys(Keys.CONTROL, Keys.ENTER)
    until(browser, lambda _: browser.find_elements(By.CSS_SELECTOR, "#result .wrong"))
    assert browser.find_element(By.CSS_SELECTOR, "#result .wrong").text == "The input is empty: send at least one text."


def test_the_example_has_the_models_own_mask_and_so_has_what_was_typed(browser: Any, tmp_path: Path) -> None:
    """RoBERTa's is <mask>: with [MASK] the first click would be refused."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select

    roberta = bertcli.load(folder_of(tmp_path / "roberta", "roberta"))
    with serving([roberta, bertcli.load("bert-mini-mlm")]) as running:
        show(browser, f"{running.url}/", 800, "light")
        for name, mask in ((roberta.name, "<mask>"), ("bert-mini-mlm", "[MASK]")):
            Select(browser.find_element(By.ID, "model")).select_by_value(name)
            (tab,) = (one for one in browser.find_elements(By.CSS_SELECTOR, "[role=tab]") if one.text == "Fill masks")
            tab.click()
            box = browser.find_element(By.ID, "text")
            assert box.get_attribute("value") == f"She poured a cup of hot {mask}."
            browser.find_element(By.CSS_SELECTOR, "#ask [type=submit]").click()
            assert "%" in ran(browser)
            assert browser.find_elements(By.CSS_SELECTOR, "#result .wrong") == []
        box.send_keys(Keys.CONTROL, "a")
        box.send_keys("Cold [MASK].")
        Select(browser.find_element(By.ID, "model")).select_by_value(roberta.name)
        assert browser.find_element(By.ID, "text").get_attribute("value") == "Cold <mask>."


def test_the_pass_of_a_text_asks_for_others(browser: Any, running: Running) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    show(browser, f"{running.url}/pass?text=Hot+%5BMASK%5D.&model=bert-mini-mlm", 1400, "light")
    box = browser.find_element(By.CSS_SELECTOR, "#ask input[name=text]")
    assert box.get_attribute("value") == "Hot [MASK]."
    # Here nothing is left out: numbers of the first layer and of the last are worked out.
    for layer in (0, 3):
        path = f"encoder.layers.{layer}.attention.query"
        shown = browser.execute_script("return workedOut(arguments[0], 0, 1, 5)", path)
        assert abs(shown["shown"] - shown["sum"]) <= 1e-4 * max(1, abs(shown["shown"]))
    box.clear()
    box.send_keys("Cold water.", Keys.ENTER)
    until(browser, lambda _: "Cold" in browser.current_url)
    assert "text=Cold+water." in browser.current_url
    assert "water" in browser.find_element(By.ID, "tokens").text
    assert [entry for entry in browser.get_log("browser") if "favicon" not in entry["message"]] == []


def test_with_a_key_the_page_asks_for_it_and_shows_nothing_before(browser: Any) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    with serving([bertcli.load("bert-mini-sentence")], Limits(quiet=True, api_key="secret")) as running:
        assert running.ask("/pass?text=a").status == 401
        show(browser, f"{running.url}/", 800, "light")
        form = browser.find_element(By.ID, "ask")
        model = browser.find_element(By.ID, "model")
        assert not form.is_displayed()
        assert not model.is_displayed()
        assert ran(browser) == (
            "This server asks for a key: the one that it was started with (--api-key or BERTCLI_API_KEY)."
        )
        key = browser.switch_to.active_element  # where one types at once
        assert key.get_attribute("id") == "key"
        key.send_keys("wrong", Keys.ENTER)
        until(browser, lambda _: browser.find_elements(By.CSS_SELECTOR, "#result .wrong"))
        assert "The API key is missing or wrong" in ran(browser)
        assert not form.is_displayed()
        key.clear()
        key.send_keys("secret")
        browser.find_element(By.CSS_SELECTOR, "#unlock [type=submit]").click()
        until(browser, lambda _: form.is_displayed())
        assert model.is_displayed()
        browser.find_element(By.CSS_SELECTOR, "#ask [type=submit]").click()
        assert ran(browser).startswith("0 1 2")
        assert '-H "Authorization: Bearer $KEY" -d' in browser.find_element(By.ID, "curl").text

"""Hostile recordings in a real browser: each page shows them as text. Anything that runs fails the fixture `pages`."""

from __future__ import annotations

import re
from typing import Any

import pytest
from browsing import WIDE, Look, check_accessibility, screenshot
from hostile import HOSTILE_NAMES, MARK

pytestmark = pytest.mark.slow

CONVERSATIONS = ("hostile", "hostile~2C~20shrunk")
UNSAFE = """() => [...document.querySelectorAll('*')].flatMap(element =>
  [...element.attributes]
    .filter(one => !(one.name === 'style' && /^height: [0-9.]+px;$/.test(one.value)))
    .filter(one => one.name.startsWith('on') || one.name === 'style' || /^\\s*(javascript|data):/i.test(one.value))
    .filter(one => !(element.localName === 'img' && one.value.startsWith('data:image/')))
    .map(one => `${element.localName} ${one.name}=${one.value.slice(0, 80)}`)
    .concat(element.matches('iframe, object, embed, base, style, script:not([src^="/"])')
      ? [element.outerHTML.slice(0, 80)] : []))
"""
"""A script that returns all event handlers, styles, foreign elements and addresses that run a script.

Heights are allowed: a script of the page sets them.
"""


def check_harmless(page: Any) -> None:
    """Fail if a hostile text became part of the page."""
    assert page.evaluate(f"window.{MARK} === undefined")
    assert page.evaluate(UNSAFE) == []


def open_everything(page: Any) -> None:
    """Open each folded part of the page."""
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    page.wait_for_load_state("networkidle")


@pytest.mark.parametrize("look", [WIDE, Look("dark", 390)], ids=str)
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_hostile_conversation_runs_nothing(pages, hostile_site, name, look):
    page = pages.open(f"{hostile_site}/c/store/{name}", look)
    check_harmless(page)
    open_everything(page)
    check_harmless(page)
    screenshot(page, f"{name}-{look}-whole", whole=True)
    check_accessibility(page)


def test_the_list_shows_hostile_names_as_text(pages, hostile_site):
    page = pages.open(hostile_site)
    check_harmless(page)
    text = page.locator("main").inner_text()
    for name in HOSTILE_NAMES[:2]:
        assert name in text
    screenshot(page, "list-hostile")
    check_accessibility(page)


def test_each_hostile_name_has_its_figures(pages, hostile_site):
    """HTML reads a carriage return as a line break, so a name in an attribute was another name."""
    page = pages.open(hostile_site)
    until_empty = "() => document.querySelectorAll('td[data-figure]').length === 0"
    page.wait_for_function(until_empty)
    assert "There is no conversation" not in page.locator("main").inner_text()


@pytest.mark.parametrize("number", range(len(HOSTILE_NAMES)))
def test_hostile_name_opens_its_conversation(pages, hostile_site, number):
    page = pages.open(hostile_site)
    links = page.locator('a[href^="/c/store/"]')
    names = [re.sub(r"\s+", " ", name).strip() for name in links.all_inner_texts()]
    assert len(names) == len(HOSTILE_NAMES) + len(CONVERSATIONS)
    links.nth(number).click()
    page.wait_for_url("**/c/store/*")
    check_harmless(page)


def test_each_link_of_a_hostile_conversation_leads_to_this_site(pages, hostile_site):
    page = pages.open(f"{hostile_site}/c/store/hostile")
    open_everything(page)
    targets = page.eval_on_selector_all("[href], [src], [action]", "all => all.map(e => e.href || e.src || e.action)")
    strange = [str(target) for target in targets if not str(target).startswith(f"{hostile_site}/")]
    assert [target for target in strange if "[object" not in target] == []

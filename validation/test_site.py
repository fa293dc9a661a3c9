"""The documentation as a site, in a real Chromium: lengths of pages, formulas, tables, and the search.

The browser is the machine's own, or the program that BTQUEUE_CHROMIUM names. Without one the tests are
skipped; they fail if it is named and missing.
"""

import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
SCREEN = (1200, 800)
"""Width and height (pixels) of a screen."""
PHONE = 400
"""Width (pixels) of a phone."""
WORDS, SCREENS = 3000, 15
"""Most words and most screens of a page."""

PAGE = """() => {
    const article = document.querySelector("article.bd-article") || document.body;
    const left = (one) => one.getBoundingClientRect().x;
    const start = (one) => left(one.querySelector("math")) - left(one);
    return {
        words: (article.innerText.match(/\\S+/g) || []).length,
        height: article.getBoundingClientRect().height,
        width: document.documentElement.scrollWidth,
        formulas: [...article.querySelectorAll("div.math")].filter((one) => one.offsetWidth).map(start),
    };
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    options = ["-q", "-D", "nb_execution_mode=off"]
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(DOCS), str(folder)], capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def page(site, chromium):
    return chromium.new_page(base_url=f"{site.as_uri()}/")


@pytest.mark.long  # the site is built: minutes
def test_every_page_can_be_read_at_a_screen_and_on_a_phone(site, page):
    names = [path.relative_to(site).as_posix() for path in sorted(site.rglob("*.html"))]
    names = [name for name in names if not name.startswith(("_", "genindex", "py-modindex", "search"))]
    assert len(names) > 50
    wrong = []
    for name in names:
        page.set_viewport_size({"width": SCREEN[0], "height": SCREEN[1]})
        page.goto(name)
        seen = page.evaluate(PAGE)
        if seen["words"] > WORDS or seen["height"] > SCREENS * SCREEN[1]:
            wrong.append(f"{name}: {seen['words']} words, {seen['height'] / SCREEN[1]:.1f} screens")
        if any(start > 100 for start in seen["formulas"]):
            wrong.append(f"{name}: a formula stands to the right, {seen['formulas']}")
        page.set_viewport_size({"width": PHONE, "height": SCREEN[1]})
        if (width := page.evaluate(PAGE)["width"]) > PHONE:
            wrong.append(f"{name}: {width} pixels wide on a phone")
    assert wrong == []


@pytest.mark.long
@pytest.mark.parametrize("word", ["sensitivity", "dimension", "sweep", "check", "explore"])
def test_the_search_finds_the_guide_first(page, word):
    page.goto(f"search.html?q={word}")
    first = page.locator("#search-results ul.search li > a").first
    first.wait_for()
    page.locator("#search-results .search-summary").wait_for()
    assert first.get_attribute("href").partition("?")[0].startswith(f"how-to/{word}")

"""Journeys through the page in a real Chromium: the machine's own, or what BTQUEUE_CHROMIUM names."""

import base64
import csv
import io
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import btqueue as bt
from btqueue.study.evaluate import evaluate

SETS = {"traffic.load_kbps": 60, "run.duration_s": 20, "run.warmup_s": 5, "run.replications": 3}
WAIT_MS = 600_000
"""Longest time for what compilers may have to be run for."""
COMPLETE = re.compile("complete|done")
BOX = """(part) => {
    const box = document.querySelector(part)?.getBoundingClientRect();
    return box && box.width > 0 ? { x: box.x, width: box.width, height: box.height } : null;
}"""
"""The place of the first element that a selector finds, once it is shown."""


@pytest.fixture(scope="module")
def address():
    """The printed address of `btqueue explore`, as a user starts it."""
    sets = [word for key, value in SETS.items() for word in ("--set", f"{key}={value}")]
    command = [sys.executable, "-m", "btqueue", "explore", "venugopal-2006/piconet", *sets]
    command += ["--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as program:
        assert program.stdout is not None
        line = program.stdout.readline().strip()
        assert line.startswith("http://127.0.0.1:"), line
        yield line
        program.terminate()
        program.wait(20)


@pytest.fixture
def visit(chromium: Browser, address):
    """Open the page in a fresh profile; errors of its script and requests to elsewhere fail the journey."""
    contexts, wrong = [], []

    def go(link: str = "", **settings) -> Page:
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
        origin = address.partition("?")[0]
        page.on("request", lambda sent: None if sent.url.startswith(origin) else wrong.append(sent.url))
        page.goto(address)
        if link:
            page.goto("about:blank")
            page.goto(link)
        settled(page)
        return page

    yield go
    for context in contexts:
        context.close()
    assert [line for line in wrong if not line.startswith(("about:", "data:", "blob:"))] == []


def settled(page: Page, side: str = "A", state: str | re.Pattern[str] = COMPLETE) -> None:
    """Wait until all is drawn; keys move while they are ranked, until it is "done"."""
    expect(page.locator(f"#side-{side}")).to_have_attribute("data-state", state, timeout=WAIT_MS)


def unfold(page: Page, side: str = "A", *, unfolded: bool = True) -> None:
    """Show the keys that are folded away, or fold them."""
    every = page.locator(f"#side-{side} form details")
    every.evaluate_all("(all, open) => { for (const one of all) one.open = open; }", unfolded)


CURVES = "[...document.querySelectorAll('#side-A path.curve')].map((one) => one.getAttribute('d'))"


def curves(page: Page) -> list[str]:
    return page.evaluate(CURVES)


def slider(page: Page, key: str, side: str = "A"):
    """The slider of a key, also one that is folded away."""
    unfold(page, side)
    return page.locator(f"#side-{side} [data-key='{key}'] input[type=range]")


def text_of(page: Page, side: str = "A") -> str:
    return page.locator(f"#side-{side} .toml").text_content() or ""


def test_01_the_page_opens_and_draws(visit):
    page = visit()
    expect(page.locator("#side-A h2")).to_have_text(re.compile("two peripherals"))
    expect(page.locator("figcaption")).to_have_text(
        ["Goodput (kbit/s)", "Round trip (s)", "Message delay (s)", "Losses", "Queues (packet)"]
    )
    assert len(curves(page)) >= 6 and all(path.startswith("M") for path in curves(page))
    expect(page.locator(".network circle")).to_have_count(3)
    expect(page.locator("#side-A .state")).to_contain_text("50 of 50 points")
    # Those that matter first: once all have been tried, a network below its limit depends on its load.
    expect(page.locator("#side-A .first [data-key='traffic.load_kbps']")).to_be_visible(timeout=WAIT_MS)


def test_02_dragging_a_slider_redraws(visit):
    page = visit()
    settled(page, state="done")
    before, handle = curves(page), slider(page, "traffic.message_bytes")
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 5, box["y"] + box["height"] / 2)
    page.mouse.down()
    seen = [before]  # redrawn on the way, not at the end only
    for step in range(1, 5):
        page.mouse.move(box["x"] + box["width"] * (0.2 + 0.15 * step), box["y"] + box["height"] / 2)
        page.wait_for_function(f"(was) => `${{{CURVES}}}` !== `${{was}}`", arg=seen[-1], timeout=WAIT_MS)
        settled(page)
        seen.append(curves(page))
    page.mouse.up()
    shown = float(handle.locator("xpath=..").locator("input[type=number]").input_value())
    assert tomllib.loads(text_of(page))["traffic"]["message_bytes"] == shown != 1460
    assert curves(page) != before


FOCUSED = "(({id, className, textContent}) => [id, className, textContent.trim()])(document.activeElement)"


def test_03_everything_is_reached_by_keyboard(visit):
    page = visit()
    settled(page, state="done")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    reached = []
    for _ in range(500):
        page.keyboard.press("Tab")
        here = page.evaluate(FOCUSED)
        reached.append(here[0] or here[1] or here[2])
        if here[2] == "All other keys":
            page.keyboard.press("Enter")  # unfolds them
        if here[0] == "A-polling.limit":
            page.keyboard.press("ArrowRight")
        if here[1] == "save-data":
            break
    wanted = {"A-polling.limit", "A-radio.model", "along", "copy-toml", "save-figure", "save-data"}
    assert wanted <= set(reached)
    expect(page.locator("#side-A .toml")).to_contain_text("limit = 6")
    settled(page)


def test_04_on_a_phone_nothing_leaves_the_screen(visit):
    page = visit(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for part in (".first input[type=range]", "figure svg", ".copy-toml"):
        # in one step: curves are drawn again while answers come in
        box = page.wait_for_function(BOX, arg=f"#side-A {part}", timeout=WAIT_MS).json_value()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 360
        assert part == "figure svg" or box["height"] >= 30  # a finger wide
    unfold(page)  # wherever a key stands
    page.locator("#side-A .control select").first.tap()


COLOUR = """(part) => {
    const one = document.querySelector(`#side-A ${part}`);
    const { color, fill, stroke } = getComputedStyle(one);
    return one.closest("svg") ? (fill === "none" ? stroke : fill) : color;
}"""
"""Found and read in one step: a curve may be drawn anew at any time."""


def brightness(colour: str) -> float:
    return sum(map(float, re.findall(r"[\d.]+", colour)[:3])) / 3


def test_05_dark_mode_follows_the_system(visit):
    page = visit(color_scheme="dark")
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert brightness(paper) < 60
    for part in ("h2", "figcaption", "svg text", "svg .curve", ".state"):
        page.locator(f"#side-A {part}").first.wait_for()
        assert brightness(page.evaluate(COLOUR, part)) > 120, part


def paths(page: Page, look: str) -> list[str]:
    return page.locator(f"#side-A path.curve{look}").evaluate_all(
        "(all) => all.map((one) => one.getAttribute('d'))"
    )


def test_06_a_second_scenario_is_drawn_in_the_same_charts(visit):
    page = visit()
    page.get_by_role("button", name="Two scenarios").click()
    settled(page, "B")
    left, right = page.locator("#side-A").bounding_box(), page.locator("#side-B").bounding_box()
    assert left and right and right["x"] >= left["x"] + left["width"] and right["y"] == left["y"]
    slider(page, "polling.limit", "B").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#side-B .toml")).to_contain_text("limit = 4")
    assert "limit = 4" not in text_of(page)
    unfold(page, "B", unfolded=False)
    settled(page, "B")
    expect(page.locator("#side-B .charts")).to_be_hidden()
    numbers = page.locator("#side-A .control input[type=number]")
    wide = numbers.evaluate_all("(all) => all.map((one) => one.value).filter((one) => one.length > 9)")
    assert wide == []  # wider than its field
    first, second = paths(page, ":not(.other)"), paths(page, ".other")
    assert len(first) == len(second) > 5 and first != second
    for side in "AB":
        expect(page.locator("figure:first-child .legend")).to_contain_text(f"{side}: goodput")
    low = page.locator("#side-A .low")
    low.fill("40")
    low.press("Enter")
    for side in "AB":  # one axis for both
        settled(page, side)
    assert len(re.findall(r"along[AB]=traffic.load_kbps\+40\+", page.url)) == 2


def test_07_the_link_and_the_toml_hold_the_scenario_and_no_token(visit, address):
    page = visit()
    slider(page, "polling.limit").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#side-A .toml")).to_contain_text("limit = 6")
    settled(page)
    wanted = bt.load("venugopal-2006/piconet", {**SETS, "polling.limit": 6})
    page.get_by_role("button", name="Copy TOML").click()
    expect(page.locator("#said")).to_have_text("TOML copied")
    assert bt.Scenario.from_dict(tomllib.loads(page.evaluate("navigator.clipboard.readText()"))) == wanted
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#said")).to_contain_text("Link copied")
    link, token = page.evaluate("navigator.clipboard.readText()"), address.partition("token=")[2]
    for place in (link, page.url, page.content()):
        assert token not in place
    other = visit(link)
    assert bt.Scenario.from_dict(tomllib.loads(text_of(other))) == wanted


def test_08_figure_and_data_are_saved(visit):
    page = visit()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download data").click()
    rows = list(csv.DictReader(io.StringIO(Path(saved.value.path()).read_text())))
    goodput = [row for row in rows if row["engine"] == "solve" and row["metric"] == "goodput_kbps"]
    assert len(goodput) == 50
    place = goodput[10]
    there = {**SETS, "traffic.load_kbps": float(place["traffic.load_kbps"])}
    answer = evaluate(bt.load("venugopal-2006/piconet", there))  # simulated where theory does not stand
    assert float(place["mean"]) == pytest.approx(answer.mean("goodput_kbps"))
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download figure").click()
    picture = Path(saved.value.path()).read_text()
    assert picture.startswith("<svg") and "Goodput" in picture
    assert "var(" not in picture and "class=" not in picture


def test_09_simulated_points_come_with_intervals(visit):
    page = visit()
    dots = page.locator("figure:first-child circle.dot.s0")
    expect(dots).to_have_count(7, timeout=WAIT_MS)
    assert "±" in (dots.nth(3).locator("title").text_content() or "")
    expect(page.locator("figure:first-child line.bar.s0")).to_have_count(7)
    expect(page.locator(".numbers")).to_contain_text("simulation ± 95 %")
    expect(page.locator(".network")).to_contain_text("% of slots")
    simulated = bt.simulate(bt.load("venugopal-2006/piconet", SETS))
    row = page.locator(".numbers tr", has_text=re.compile("^goodput")).first.locator("td").nth(2)
    shown = float((row.text_content() or "").split(" ")[0])
    assert shown == pytest.approx(float(simulated.goodput_kbps.mean()), rel=1e-3)


def test_10_bad_values_are_refused_in_words(visit):
    page = visit()
    slider(page, "polling.limit")
    number = page.get_by_label("polling.limit, exact")
    number.fill("0")
    number.press("Enter")
    expect(page.locator("#side-A .problem")).to_contain_text("[polling] limit = 0")
    expect(page.locator("#side-A .state")).to_have_text("refused")


def test_11_the_pointer_reads_values_of_the_nearest_point(visit):
    page = visit()
    settled(page, state="done")
    chart = page.locator("figure:first-child svg")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] / 2)
    told = page.locator("figure:first-child .read").text_content() or ""
    place, goodput = re.findall(r"traffic.load_kbps ([\d.]+): goodput ([\d.]+)", told)[0]
    answer = evaluate(bt.load("venugopal-2006/piconet", {**SETS, "traffic.load_kbps": float(place)}))
    # the nearest point, rounded
    assert float(goodput) == pytest.approx(answer.mean("goodput_kbps"), rel=0.02)
    assert re.search(r"\(simulated at [\d.]+: [\d.]+ ± [\d.]+\)", told)
    page.mouse.move(5, 5)
    expect(page.locator("figure:first-child .read")).to_have_text("")


def test_13_bounds_are_drawn_and_kept_in_the_link(visit):
    page = visit()
    page.locator("#bounds").fill("rtt_s <= 0.2, goodput_kbps >= 50")
    expect(page.locator("line.bound")).to_have_count(2)
    for title, words in (("Goodput", "≥ 50"), ("Round trip", "≤ 0.2")):
        expect(page.locator("figure", has_text=title).first).to_contain_text(words)
    other = visit(page.url)
    assert other.locator("#bounds").input_value() == "rtt_s <= 0.2, goodput_kbps >= 50"
    expect(other.locator("line.bound")).to_have_count(2)
    other.locator("#bounds").fill("loudness >= 3")
    expect(other.locator("#said")).to_have_text("No chart shows loudness.")
    # a unit was ignored, so that 200 ms was drawn as 200 s
    other.locator("#bounds").fill("rtt_s <= 200 ms, p95(delay_s, a) <= 1, goodput_kbps >= 50")
    expect(other.locator("line.bound")).to_have_count(1)
    expect(other.locator("#said")).to_contain_text("Not drawn: rtt_s <= 200 ms, p95(delay_s, a) <= 1.")


def test_14_flows_that_differ_have_their_colours_and_their_rows(visit, address):
    """A download has no delay of messages: there the sensors beside it had its colour."""
    toml = """
        [network]
        peripherals = 3
        flows = [
            { from = "c1", to = "p1.1", name = "download", law = "greedy" },
            { from = "p1.2", to = "c1", group = "sensors" }, { from = "p1.3", to = "c1", group = "sensors" },
        ]
        [traffic]
        load_kbps = 4
        message_bytes = 100
        [run]
        duration_s = 4
        warmup_s = 1
        replications = 2
    """
    packed = base64.urlsafe_b64encode(toml.encode()).decode().rstrip("=")
    page = visit(f"{address.partition('?')[0]}#A={packed}")
    settled(page, state="done")
    looks = {
        (number, entry.inner_text().split()[-1]): entry.locator("b").get_attribute("class")
        for number in range(3)
        for entry in page.locator("figure").nth(number).locator(".legend span").all()
    }
    assert looks[0, "sensors"] == looks[1, "sensors"] == looks[2, "sensors"] != looks[0, "download"]
    rows = page.locator(".numbers tr").all_inner_texts()
    cells = [row.split("\t") for row in rows if row.startswith("goodput")]
    goodput = {title: simulated.split()[0] for title, _, _, simulated in cells}
    assert list(goodput) == ["goodput, download", "goodput, sensors"]
    delays = [row.split("\t")[0] for row in rows if row.startswith("message delay,")]
    assert "message delay, sensors" in delays and "message delay, download" not in delays
    assert float(goodput["goodput, download"]) > 100 > float(goodput["goodput, sensors"])
    # groups have a line of their mean and of their 95th percentile
    entries = page.locator("figure").nth(2).locator(".legend span").all_inner_texts()
    assert [entry.partition(" ")[2] for entry in entries] == ["sensors", "sensors, 95 %"]
    page.locator("#bounds").fill("delay_s <= 0.1, delay_p95_s <= 0.2, delay_p50_s <= 0.2")
    expect(page.locator("line.bound")).to_have_count(2)
    expect(page.locator("#said")).to_have_text("No chart shows delay_p50_s.")


def test_15_stretches_at_which_theory_is_in_doubt_are_pale(visit):
    page = visit()
    settled(page, state="done")  # all that theory doubts is simulated by now
    expect(page.locator("path.curve.doubted")).to_have_count(0)
    doubted = page.evaluate("""() => {
        const { curve } = sides.A;
        curve.kinds = curve.kinds.map((_, number) => number === 10 ? "solved, in doubt" : "solved");
        draw();
        return [...document.querySelectorAll("path.curve.doubted")].map((one) => one.getAttribute("d"));
    }""")
    assert len(doubted) >= 6 and all(path.count("M") == path.count("L") == 2 for path in doubted)

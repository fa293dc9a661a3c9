"""How long a user of `btqueue explore` waits in a real browser for the first curve.

`python validation/benchmarks/explorer_latency.py [SCENARIO ...]` opens the page five times, then moves the
sliders of the three keys of largest effect, six positions each. A time ends when the curve is on the screen,
one frame after it is drawn. A key's first two positions may load compiled models, and are told apart.
"""

import shutil
import statistics
import subprocess
import sys
from subprocess import DEVNULL, PIPE

from playwright.sync_api import Browser, Page, sync_playwright

SCENARIOS = (
    "venugopal-2006/piconet",
    "venugopal-2006/piconet-4",
    "chen-2004/adaptive-1",
    "practice/ward",
    "practice/car",
)
OPENED, KEYS, POSITIONS, REST_MS = 5, 3, 6, 500

FIRST_CURVE = """new MutationObserver((_, seen) => {
    if (!document.querySelector("path.curve")) return;
    seen.disconnect();
    requestAnimationFrame(() => setTimeout(() => { window.firstCurve = performance.now(); }));
}).observe(document, { childList: true, subtree: true });"""
MOVED = """([key, value]) => new Promise((done) => {
    const began = performance.now(), drawn = HEARD.curve;
    HEARD.curve = (...about) => {
        HEARD.curve = drawn;
        drawn(...about);
        requestAnimationFrame(() => setTimeout(() => done([performance.now() - began, about[0].solved])));
    };
    const range = document.querySelector(`#side-A [data-key="${key}"] input[type=range]`);
    range.value = value;
    range.dispatchEvent(new Event("input", { bubbles: true }));
})"""
SLIDERS = """(count) => ranked(sides.A).filter((one) => one.low !== null && one.key !== sides.A.along)
    .slice(0, count).map(({ key, low, high }) => [key, low, high])"""


def opened(browser: Browser, address: str) -> Page:
    """Open the page in a fresh profile and wait for its first curve."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.add_init_script(FIRST_CURVE)
    page.goto(address)
    page.wait_for_function("() => window.firstCurve > 0", timeout=600_000)
    return page


def measure(browser: Browser, address: str) -> str:
    """Return the times of one scenario, in words."""
    loads = []
    for _ in range(OPENED):
        page = opened(browser, address)
        loads.append(page.evaluate("firstCurve"))
        page.close()
    page = opened(browser, address)
    page.wait_for_function("() => sides.A.section.dataset.state === 'done'", timeout=600_000)
    firsts, times, solved = [], [], []
    for key, low, high in page.evaluate(SLIDERS, KEYS):
        for number in range(POSITIONS):
            value = low + (high - low) * (number + 0.5) / POSITIONS
            wait_ms, points = page.evaluate(MOVED, [key, value])
            (firsts if number < 2 else times).append(wait_ms)
            solved.append(points)
            page.wait_for_timeout(REST_MS)
    return (
        f"page: first curve after {statistics.median(loads):.0f} ms (median of {len(loads)}); slider: "
        f"{statistics.median(times):.0f} ms (median), {max(times):.0f} ms (longest of {len(times)}), "
        f"first positions {max(firsts):.0f} ms (longest of {len(firsts)}); "
        f"{statistics.median(solved):.0f} points"
    )


def main(names: list[str]) -> None:
    """Print the times of each scenario."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name in names:
            command = [sys.executable, "-m", "btqueue", "explore", name, "--port", "0", "--no-browser"]
            with subprocess.Popen(command, stdout=PIPE, stderr=DEVNULL, text=True) as program:
                assert program.stdout is not None
                try:
                    print(f"{name}: {measure(browser, program.stdout.readline().strip())}", flush=True)
                finally:
                    program.terminate()
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:] or list(SCENARIOS))

"""Fairness among simultaneous connections: Jain's index of their throughputs.

The paper draws no figure of it; section III.E gives 0.997 for two connections and 0.875 for many, which are
marked at seven. Window 64 KB, packets of 1,500 bytes, all seven peripherals polled.

In the simulation sharing becomes less fair with more connections, too, because they compete for one buffer
of the gateway, but far less: seven connections differ by some 12 %, the testbed's by 38 %. Even that
belongs to the length of the transfers: over 600 s seven connections share with an index of 0.999, and so
they do in the model, which answers for long runs.
"""

from collections.abc import Iterator

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures import Picture, Work, curves
from btqueue.reproduction.figures.curve_panels import curve_of, metric_panel
from btqueue.reproduction.figures.published import Stated, mark_key, mark_point
from btqueue.reproduction.figures.work import runs_note

CLAIMS = ("III.E-fairness-2", "III.E-fairness-many", "III.E-fairness-vs-connections", "III.E-jain-reading")
PUBLISHED = {2: (0.997, 0.015), 7: (0.875, 0.08)}
"""Index and its tolerance, by number of connections."""


def draw(work: Work) -> Iterator[Picture]:
    """Yield the picture."""
    whole = work.scenario("connections", {"run.replications": 20})
    found = work.sweep(whole, {"network.active_flows": range(2, 8)})

    def finish(axes):
        for count, (value, tolerance) in PUBLISHED.items():
            one = Stated("fairness", value, tolerance, whole, "section III.E")
            mark_point(axes, count + 0.12, one)  # beside the simulated point
        axes.set(xlim=(1.7, 7.4), ylim=(0.75, 1.02))

    panel = metric_panel(
        "fairness", [curve_of(found, "fairness", "Jain's index")], xlabel="connections", finish=finish
    )
    note = f"Simulated: {runs_note(whole)}."
    title = "Suliman 2005, section III.E: fairness among connections"
    yield Picture(curves([panel], title=title, size=(6.2, 4.2), note=note, zero=False, more=[mark_key()]))


if __name__ == "__main__":
    run_script(__file__)

"""Figure 3.1: the radio as a two-state chain.

A link is good or bad for exponential times. The stays and error rates are read from the scenarios of
chapters 5 and 6; the packet error rates below the states are those of the packets that the scenario uses.
"""

from collections.abc import Iterator

from matplotlib.figure import Figure

from btqueue.baseband.packets import packet_types
from btqueue.cli.figures import run_script
from btqueue.plotting import house_style
from btqueue.reproduction.figures import Picture, Work
from btqueue.reproduction.figures.diagrams import Transition, state_machine


def draw(work: Work) -> Iterator[Picture]:
    """Yield the chain with the rates of both chapters."""
    with house_style():
        figure = Figure(figsize=(9.0, 3.0), layout="constrained")
        chapters = (("chapter 5", "piconet-errors-original"), ("chapter 6", "piconet-errors"))
        for axes, (chapter, name) in zip(figure.subplots(1, 2), chapters, strict=True):
            scenario = work.scenario(name)
            radio = scenario.radio
            leave = [
                Transition("good", "bad", f"1 / {1000 * radio.good_s:g} ms"),
                Transition("bad", "good", f"1 / {1000 * radio.bad_s:g} ms"),
            ]
            state_machine(axes, leave, {"good": (0.0, 0.0), "bad": (3.0, 0.0)}, radius=0.5)
            for x, ber in ((0.0, radio.ber_good), (3.0, radio.ber_bad)):
                types = packet_types(scenario.link.packets)
                losses = [f"{kind.name}: {1 - (1 - ber) ** (8 * kind.payload_bytes):.3g}" for kind in types]
                text = "\n".join([f"bit errors {ber:g}", "packets lost", *losses])
                axes.text(x, -0.75, text, ha="center", va="top", fontsize=8, linespacing=1.3)
            axes.set_ylim(-1.8, 0.9)
            axes.set_title(f"{chapter} ({name})")
        figure.suptitle(f"{work.citation}: two-state radio")
        yield Picture(figure)


if __name__ == "__main__":
    run_script(__file__)

"""The vocabulary of results: one name, unit and meaning for each metric, whoever computes it."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import xarray


class Metric(NamedTuple):
    """Unit, heading and meaning of a metric."""

    unit: str
    long_name: str
    description: str


METRICS: Final = MappingProxyType(
    {
        "goodput_kbps": Metric("kbit/s", "goodput", "application bytes delivered in order, per flow"),
        "throughput_kbps": Metric(
            "kbit/s",
            "throughput",
            "application bytes of all segments sent, retransmissions included, per flow",
        ),
        "rtt_s": Metric("s", "round-trip time", "mean of the sender's round-trip samples, per flow"),
        "delay_s": Metric(
            "s", "message delay", "mean time from a message's arrival to its delivery in order, per flow"
        ),
        "cwnd_segments": Metric(
            "segment", "congestion window", "mean of cwnd over acknowledgements, per flow"
        ),
        "window_segments": Metric(
            "segment", "window used", "mean of min(cwnd, receive window) over acknowledgements, per flow"
        ),
        "timeouts_per_s": Metric(
            "1/s", "timeouts", "expiries of the retransmission timer per second, per flow"
        ),
        "fast_retransmits_per_s": Metric(
            "1/s", "fast retransmits", "entries into fast recovery per second, per flow"
        ),
        "segment_loss": Metric(
            "1", "segment loss", "share of data segments sent that did not arrive, per flow"
        ),
        "loss_token_buffer": Metric(
            "1", "loss at the token buffer", "share of packets refused by a full token buffer S"
        ),
        "loss_baseband_buffer": Metric(
            "1", "loss at the baseband queue", "share of packets refused by a full uplink queue L"
        ),
        "loss_radio": Metric(
            "1", "loss on the radio", "share of packets that arrive damaged by bit errors, over all hops"
        ),
        "queue_packets": Metric("packet", "queue length", "time-average number of packets in a queue"),
        "cycle_s": Metric("s", "polling cycle", "mean time between two visits to the same peripheral"),
        "slot_utilisation": Metric("1", "slot utilisation", "share of the slots that carry data packets"),
        "fairness": Metric("1", "fairness", "Jain's index of the goodputs of all flows"),
    }
)
"""Every metric by name, in the order in which reports show them."""


def describe(dataset: xarray.Dataset) -> xarray.Dataset:
    """Return *dataset* with ``units``, ``long_name`` and ``description`` set on every known metric.

    A variable ``<metric>_ci95`` (half-width of a 95 % interval) gets the unit of its metric. Variables that
    are no metrics are left as they are.
    """
    described = dataset.copy()
    for name, variable in described.data_vars.items():
        base = str(name).removesuffix("_ci95")
        metric = METRICS.get(base)
        if metric is not None:
            half_width = base != name
            variable.attrs["units"] = metric.unit
            variable.attrs["long_name"] = (
                f"{metric.long_name}, 95 % half-width" if half_width else metric.long_name
            )
            variable.attrs["description"] = metric.description
    return described

"""Symbols of the closed forms: for each subject the symbol's name, its unit and its meaning."""

from collections.abc import Mapping

Notation = Mapping[str, tuple[str, str]]
"""Name of a symbol -> (unit, meaning)."""

QUEUES: Notation = {
    "lambda": ("packets/slot", "arrival rate"),
    "lambda_1": ("packets/slot", "arrival rate of the first queue"),
    "lambda_2": ("packets/slot", "arrival rate of the second"),
    "b": ("slots", "mean service time"),
    "b_2": ("slots²", "mean square of the service time"),
    "b_11": ("slots", "mean service time of the first queue"),
    "b_12": ("slots", "mean service time of the second"),
    "b_21": ("slots²", "mean square of the service time of the first"),
    "b_22": ("slots²", "mean square of the service time of the second"),
    "k": ("packets", "mean size of a random packet's batch, E[X²]/E[X]"),
    "v": ("slots", "mean vacation"),
    "v_2": ("slots²", "mean square of a vacation"),
    "w": ("slots", "mean walk between queues"),
    "w_2": ("slots²", "mean square of a walk"),
    "s": ("slots", "mean of all walks of a cycle"),
    "s_2": ("slots²", "mean square of all walks of a cycle"),
    "rho": ("1", "load"),
    "K": ("packets", "room, packet in service included"),
    "M": ("packets", "limit of a visit"),
    "N": ("1", "number of queues or stations"),
    "l": ("slots", "mean length of a packet"),
    "l_2": ("slots²", "mean square of a packet's length"),
}

SOURCES: Notation = {
    "r": ("packets/slot", "rate"),
    "c": ("1", "squared coefficient of variation of the gaps"),
    "p": ("1", "probability that an idle slot follows an active one"),
    "q": ("1", "probability that an active slot follows an idle one"),
    "Lambda": ("1/s", "rate of packets that an answer can ride on"),
    "T": ("s", "timer, or time between ticks"),
    "tau": ("byte/s", "token rate"),
    "a": ("byte", "payload of a segment"),
    "g": ("byte", "tokens that a segment costs"),
    "x_1": ("any", "first share"),
    "x_2": ("any", "second share"),
    "x_3": ("any", "third share"),
}

RADIO: Notation = {
    "b": ("1", "bit error rate"),
    "b_G": ("1", "bit error rate in the good state"),
    "b_B": ("1", "bit error rate in the bad state"),
    "rho_G": ("s", "mean good period"),
    "rho_B": ("s", "mean bad period"),
    "h": ("1", "share of packets detected"),
    "s": ("1", "share of bodies intact"),
    "r": ("1", "share of answers decoded"),
    "R": ("1", "most attempts"),
}

BASEBAND: Notation = {
    "u": ("byte", "user payload of a packet"),
    "n": ("slots", "length of a packet"),
    "m": ("slots", "length of its answer"),
    "g": ("slots", "free slots in one piece"),
    "P": ("slots", "period of the reservations"),
    "T_s": ("s", "length of a slot"),
    "N": ("1", "number of peripherals"),
    "D": ("slots", "slots of a segment on one hop"),
    "A": ("slots", "slots of its acknowledgement on one hop"),
    "b": ("1", "bit error rate"),
}

TCP: Notation = {
    "p": ("1", "segment loss"),
    "b": ("segments", "segments for each acknowledgement"),
    "RTT": ("s", "round-trip time"),
    "T_0": ("s", "first timeout"),
    "W_m": ("segments", "receive window"),
}

PICONET: Notation = {
    "N": ("1", "stations"),
    "F": ("frames", "frames of a segment"),
    "D": ("slots", "frames of a segment"),
    "K": ("packets", "packets of an acknowledgement"),
    "A": ("slots", "frames of an acknowledgement"),
    "M": ("frames", "limit of a visit"),
    "v": ("visits", "visits of a lone segment"),
    "f": ("1", "1 if a segment fills its last visit, else 0"),
    "k": ("1", "1 if an acknowledgement fills its visit, else 0"),
    "V": ("visits", "visits that a segment and its acknowledgement fill"),
    "T_s": ("s", "length of a slot"),
    "lambda": ("segments/s", "load of each flow"),
    "tau": ("byte/s", "token rate"),
    "beta": ("byte", "tokens that a bucket holds"),
    "g": ("byte", "tokens for the packets of a segment"),
    "g_A": ("byte", "tokens for an acknowledgement"),
    "b": ("s", "time of the bottleneck for a segment"),
    "e": ("s", "time elsewhere"),
    "h": ("1", "hops"),
    "p": ("1", "error rate of packets, by their time on the air"),
    "W": ("segments", "receive window"),
    "R": ("s", "round trip of a lone segment"),
    "s": ("s", "time of a segment at the slowest link"),
    "B": ("segments", "segments that may wait for that link"),
}

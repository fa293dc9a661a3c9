"""Records of links of Bluetooth Low Energy."""

from btqueue.simulator.records.conventions import flags, integers, reals, record_type

DOWN, UP = 0, 1
"""Places in the pairs of a link: the central sends, the peripheral sends."""
ANCHOR, CENTRAL_SENDS, PERIPHERAL_SENDS = range(3)
"""The phase that a link's timer ends: the wait for the next event, or a PDU."""
FRAME_BEGINS, FRAME_ENDS = 1, 2
"""Bits of a packet's `tokens`: it is the first PDU of its K-frame, and takes a credit, or the last one."""

le_link_dtype = record_type(
    integers("timer stream central peripheral"),
    integers("ports", 2),
    integers("first_neighbour neighbours first_of_central"),
    # options
    integers("interval step interval_spread length event_overhead largest most_exchanges frame_space"),
    integers("empty credit_type subrate latency supervision_timeout buffers returned_every iso_interval"),
    integers("iso_length first_class classes"),
    flags("event_extension anywhere"),
    reals("offset accuracy"),
    # drawn at the start
    reals("pace period anchor"),
    # the event
    integers("phase exchanges window_end channel_class reserved_until last_served last_valid last_heard"),
    integers("skipped"),
    flags("failed"),
    # both directions: the PDU on the air or not yet acknowledged, and the K-frames
    integers("type pending got errors done", 2),
    integers("credits charged unreturned owed carried", 2),
    # statistics
    integers("events missed taken exchanged disconnections on_air wakes sent heard spaces"),
    # currents of the peripheral
    reals("tx_ma rx_ma idle_ma event_uc sleep_ua supply_v"),
)
"""A connection; all times in ns. `length`: of a reservation; `largest`: the exchange that has to fit before
another one starts, 0: itself; `frame_space`: T_IFS; `empty`: air time of an empty PDU; `credit_type`: packet
type of a PDU that returns credits. `offset`: share of the interval, or of lengths, at which the first anchor
is; `accuracy`: most relative error of a clock; `pace`: the central's clock. `period`: from one event to the
next; `anchor`: of the next event. `first_class`: row of `error_rates` of the first of its `classes` of
channels.

`type`: packet type, NOTHING for an empty PDU; `pending`: the PDU is not acknowledged as far as its sender
knows; `got`: the far side has it; `errors`: in a row; `done`: PDUs that came
across in the event. `charged`: the K-frame at the head has its credit; `unreturned`: K-frames since credits
were returned last; `owed`: credits to be returned, `carried`: those in the PDU. `events` that were to take
place, `missed` and `taken` ones. Currents are named as in `[energy]` of a scenario."""

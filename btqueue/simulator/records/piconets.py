"""Records of piconets, of their links to peripherals, and of bridges between them."""

import numpy as np

from btqueue.simulator.records.conventions import record_type

PICONETS_A_BRIDGE = 8
"""Most piconets that one device belongs to."""
AIR_HISTORY = 8
"""Transmissions that a piconet remembers, to find out what overlapped a packet."""

DOWNLINK_HALF, UPLINK_HALF, PAUSE, BEFORE_VISIT, NO_STATION = range(5)
"""What a central's timer ends: a half-frame, the wait for a free slot, or for its own return to its piconet,
or for a time at which some station is there to be polled."""
E_LIMITED, EXHAUSTIVE, GATED, FEP, LWRR, PRC_LWRR, SLQ, LDQ = range(8)

piconet_dtype = record_type(
    [
        ("timer", np.int64),
        ("stream", np.int64),
        ("node", np.int64),
        ("first_link", np.int64),
        ("links", np.int64),
        ("plain", np.bool_),
        ("discipline", np.int64),
        ("limit", np.int64),
        ("max_weight", np.int64),
        # the visit in progress: `station` counts from `first_link`
        ("station", np.int64),
        ("frame", np.int64),
        ("visit_limit", np.int64),
        ("gate_down", np.int64),
        ("gate_up", np.int64),
        ("carried_data", np.bool_),
        ("visiting", np.bool_),
        ("phase", np.int64),
        ("packet", np.int64),
        ("on_air_type", np.int64),
        ("on_air_bytes", np.int64),
        ("hit", np.bool_),
        ("polled", np.bool_),
        # what is in the queues of its links; at 0 only POLL and NULL can follow
        ("waiting", np.int64),
        # sleep: a piconet with nothing to send is not played, and woken by the next packet
        ("can_sleep", np.bool_),
        ("asleep", np.bool_),
        ("idle_since", np.int64),
        # cycles of the disciplines that change the order or skip members
        ("cycle", np.int64),
        ("cycle_position", np.int64),
        ("order", np.int64, (8,)),
        ("cycle_carried_data", np.bool_),
        # its central or one of its links keeps to the windows of a bridge
        ("rendezvous", np.bool_),
        # they agree on meetings: the central rests after one for `rest` times its length
        ("meets", np.bool_),
        ("rest", np.float64),
        # voice: slots reserved at the start of every period
        ("voice_period", np.int64),
        ("voice_reserved", np.int64),
        # a central that is a bridge itself
        ("bridge", np.int64),
        ("away", np.bool_),
        # a bridge among its members
        ("bridge_answered", np.bool_),
        # what was on the air lately, for collisions with other piconets
        ("air_next", np.int64),
        ("air_start", np.int64, (AIR_HISTORY,)),
        ("air_end", np.int64, (AIR_HISTORY,)),
        # statistics
        ("visits", np.int64),
    ]
)
"""`plain`: none of the rarer options is in use, so a half-frame takes the short way: no ARQ, adaptation,
voice, windows, gated service, baseband delay, limited node buffers, collisions or log."""

link_dtype = record_type(
    [
        ("piconet", np.int64),
        ("node", np.int64),
        ("up", np.int64),
        ("down", np.int64),
        ("bridge", np.int64),
        ("limit", np.int64),
        ("active", np.bool_),
        ("weight", np.int64),
        ("skip_until_cycle", np.int64),
        ("skip_until", np.int64),
        # the meeting that its bridge and central have agreed upon, and what they remember of earlier ones
        ("meeting_start", np.int64),
        ("meeting_end", np.int64),
        ("agreed_at", np.int64),
        ("need", np.float64),
        # statistics
        ("visits", np.int64),
        ("data_slots", np.int64),
    ]
)
"""A peripheral's membership of a piconet; `up` and `down` are its ports, `bridge` the bridge that it is.
`need`: the part of the time that its exchange takes, as it is estimated at its meetings."""

VISIT, WHOLE_CYCLES, COMPLETE = 0, 1, 2
WALK_IN, SNIFF, PSEUDO_RANDOM, COORDINATED = 0, 1, 2, 3

bridge_dtype = record_type(
    [
        ("node", np.int64),
        ("timer", np.int64),
        ("stream", np.int64),
        ("schedule", np.int64),
        ("residence", np.int64),
        ("residence_cycles", np.int64),
        ("count", np.int64),
        ("piconets", np.int64, (PICONETS_A_BRIDGE,)),
        ("links", np.int64, (PICONETS_A_BRIDGE,)),
        ("own", np.int64),
        ("current", np.int64),
        ("present_from", np.int64),
        ("visits_here", np.int64),
        ("window", np.int64),
        ("longest_interval", np.int64),
        ("offset", np.int64),
        ("seed", np.int64),
        ("switch_delay", np.bool_),
        ("patience", np.int64),
        ("switches", np.int64),
    ]
)
"""A device in several piconets. `links[k]` is its membership of `piconets[k]`, NOTHING where it is the
central, of the piconet `own` (or NOTHING); `current`: where it is (or goes to), there from `present_from`
on. `window`: ns of a rendezvous, or, if it agrees on meetings, the least from one to the next, and
`longest_interval` the most; `seed`: of its pseudo-random windows, drawn when it starts; `patience`: ns that
it waits to be polled, at least, before it goes on unserved; 0 stands for ever."""

"""Records of piconets, of their links to peripherals, and of bridges between them."""

from btqueue.simulator.records.conventions import flags, integers, record_type

PICONETS_A_BRIDGE = 8
"""Most piconets that one device belongs to."""

DOWNLINK_HALF, UPLINK_HALF, PAUSE, BEFORE_VISIT, NO_STATION = range(5)
"""The phase that a central's timer ends: a half-frame, or the wait for a free slot, for the return of the
central to its piconet, or for a station that can be polled."""
# Values of keys of a scenario, and the numbers that stand for them in the same order.
DISCIPLINES = ("e-limited", "exhaustive", "gated", "fep", "lwrr", "prc-lwrr", "slq", "ldq")
E_LIMITED, EXHAUSTIVE, GATED, FEP, LWRR, PRC_LWRR, SLQ, LDQ = range(8)

piconet_dtype = record_type(
    integers("timer stream node first_link links discipline limit max_weight"),
    flags("plain"),
    # the visit in progress: `station` counts from `first_link`
    integers("station frame visit_limit gate_down gate_up phase packet on_air_type on_air_bytes"),
    flags("carried_data visiting hit polled held_back"),
    # packets in the queues of its links; at 0 only POLL and NULL can follow
    integers("waiting"),
    # sleep: a piconet with nothing to send is not played, and woken by the next packet
    integers("idle_since"),
    flags("can_sleep asleep"),
    # cycles of the disciplines that change the order or skip members
    integers("cycle cycle_position"),
    integers("order", 8),
    flags("cycle_carried_data"),
    # its central or one of its links keeps to the windows of a bridge
    flags("rendezvous"),
    # voice: slots reserved at the start of every period
    integers("voice_period voice_reserved"),
    # links whose damaged packets are repeated: their number (0 if none is ever damaged), the packet type, its
    # slots, the window of a link (slots), and when the repetitions of the period are over
    integers("voice_links voice_type voice_slots voice_window voice_over"),
    # a central that is a bridge itself
    integers("bridge"),
    flags("away"),
    # a bridge among its members
    flags("bridge_answered"),
    # statistics
    integers("visits voice_repeated"),
)
"""`voice_repeated`: slots of repetitions of voice packets.
`held_back`: the answer of the frame did not fit before a voice slot.
`plain`: none of the rarer options is in use, so half-frames use the faster code: no ARQ, adaptation,
voice, windows, gated service, baseband delay, limited node buffers or log."""

link_dtype = record_type(
    integers("piconet node up down bridge limit weight skip_until_cycle skip_until"),
    flags("active"),
    # statistics
    integers("visits data_slots"),
)
"""A peripheral's membership of a piconet; `up` and `down` are its ports, `bridge` the bridge that it is."""

RESIDENCES = ("visit", "cycle", "complete")
VISIT, WHOLE_CYCLES, COMPLETE = range(3)
SCHEDULES = ("walk-in", "sniff", "pcss")
WALK_IN, SNIFF, PSEUDO_RANDOM = range(3)

bridge_dtype = record_type(
    integers("node stream schedule residence residence_cycles count own current present_from visits_here"),
    integers("window offset seed"),
    integers("piconets links", PICONETS_A_BRIDGE),
    flags("switch_delay"),
)
"""A device in several piconets. `links[k]` is its membership of `piconets[k]`, NOTHING where it is the
central, of the piconet `own` (or NOTHING); `current`: where it is (or goes to), there from `present_from`
on. `window`: ns of a rendezvous; `seed`: of its pseudo-random windows, drawn when it starts."""

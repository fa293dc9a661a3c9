"""Johansson, Kihl and Körner (2000): the claims that can be checked, one function each."""

from btqueue.reproduction.claims.johansson_2000 import delay, goodput, senders

CHECKS = {
    "goodput-asymmetric": goodput.goodput_asymmetric,
    "goodput-symmetric": goodput.goodput_symmetric,
    "goodput-against-pep": goodput.goodput_against_pep,
    "asymmetric-over-symmetric": goodput.asymmetric_over_symmetric,
    "usable-at-pep-50": goodput.half_of_all_packets_lost,
    "overload": goodput.overload,
    "delay-u-shaped": delay.delay_is_u_shaped,
    "piggybacked-share": delay.piggybacked_share,
    "bursts-cost-delay": delay.bursts_cost_delay,
    "half-the-buffer": delay.half_the_buffer,
    "vegas-bounds": senders.vegas_bounds,
    "vegas-bounds-with-more-peripherals": senders.vegas_bounds_with_more_peripherals,
    "load-normalisation": goodput.load_is_normalised,
    "repetition-costs-one-turn": senders.repetition_costs_one_turn,
    "vegas-over-reno": senders.vegas_over_reno,
    "repetition-is-needed": senders.repetition_is_needed,
}

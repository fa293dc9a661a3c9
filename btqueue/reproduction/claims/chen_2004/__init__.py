"""Chen, Kapoor, Sanadidi and Gerla (2004): the claims that can be checked, one function each."""

from btqueue.reproduction.claims.chen_2004 import hops, links, outages

CHECKS = {
    "attempts": links.attempts,
    "link-throughput": links.link_throughput,
    "two-hops-halve": hops.two_hops_halve,
    "four-hops-as-two": hops.four_hops_as_two,
    "adaptation-wins": hops.adaptation_wins,
    "gain-grows": hops.gain_grows,
    "regular-starves": hops.regular_starves,
    "alternating": hops.alternating,
    "idle-senders": outages.idle_senders,
}

"""One theory for every network: stations with laws, classes of flows, and one fixed point of their rates."""

"""Figure 7: TCP over CDPD session by session, downtown, messages of 1 KB.

As figure 6, for a client that stays in one place: no outages, at good and at bad times (0.1 and 2 % of the
blocks lost; the paper's error rates stand in its pictures only). Signal strength, of which this figure
shows that it hardly matters, and congestion of the cell are not in the simulator.
"""

from btqueue.reproduction.figures.avancha_2002 import at_rest

CLAIMS = ("5.2.1-rssi", "5.2.1-bler", "5.2.1-locations")

draw = at_rest("cdpd-tcp", (1024,), "TCP")

"""Figure 10: CentaurusComm over CDPD session by session, messages of 1 KB (caption) or 128 bytes (text).

Caption and text of the paper contradict each other, so both are drawn. Signal strength and congestion of
the cell, which the paper plots as well, are not in the simulator; nor is the ejection of a modem from its
channel, which the paper makes responsible for most peaks. Here peaks are lost control messages, after which
a session hangs until the watchdog (10 s, our reading), and data packets that are sent again.
"""

from btqueue.reproduction.figures.avancha_2002 import at_rest

CLAIMS = ("5.2.2-peaks-ejection",)

draw = at_rest("cdpd-centaurus", (1024, 128), "CentaurusComm", 3000)

"""Figure 11: CentaurusComm over CDPD session by session, messages of 4 KB (caption) or 8 KB (text).

Caption and text of the paper contradict each other, so both are drawn. As in figure 10, signal strength,
congestion of the cell and ejection from the channel are not in the simulator, and peaks are lost control
messages (the watchdog, 10 s each) and rounds of packets that are sent again, 2 s each.
"""

from btqueue.reproduction.figures.avancha_2002 import at_rest

CLAIMS = ("5.2.2-peaks-ejection",)

draw = at_rest("cdpd-centaurus", (4096, 8192), "CentaurusComm", 4000)

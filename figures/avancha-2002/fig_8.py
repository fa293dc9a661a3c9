"""Figure 8: TCP over CDPD session by session, messages of 4,096 bytes beside messages of 1,024.

As figure 7. The paper finds that large messages suffer more than small ones, and so does this: at bad times
a session of 4,096 bytes takes five times as long as at good ones, one of 1,024 bytes three times. At 4,096
bytes the modem's buffer refuses packets at good times, too, so that the efficiency is below 1 without any
loss on the air.
"""

from btqueue.reproduction.figures.avancha_2002 import at_rest

CLAIMS = ("5.2.1-large-prone", "5.2.1-rssi")

draw = at_rest("cdpd-tcp", (4096, 1024), "TCP", 6000)

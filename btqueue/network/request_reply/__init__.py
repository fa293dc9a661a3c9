"""Sessions of requests and replies, by TCP and by CentaurusComm (Avancha 2002)."""

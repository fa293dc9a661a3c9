"""Sources of messages: arrivals, delivery, request-reply sessions."""

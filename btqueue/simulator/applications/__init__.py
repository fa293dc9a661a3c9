"""Sources of messages and what becomes of them: arrivals, delivery, request-reply sessions."""

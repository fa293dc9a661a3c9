"""What comes: batches, streams of batches, Markovian arrivals."""

"""What decisions are worth as a function of the threshold t*, for all thresholds at once."""

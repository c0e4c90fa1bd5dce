"""What each command returns, as blocks, data and rows: one file a result, for the formats to write."""

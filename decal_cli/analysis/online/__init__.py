"""Over time: rows in order, forecasters that never look ahead, and what acting on them is worth."""

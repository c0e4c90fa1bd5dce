"""What the commands compute, one file a verb: from checked rows to a result."""

"""What the commands compute, one file for each verb: from checked rows to a result."""

"""What is learned on some rows and judged on others: recalibration, regions of the features, the probe."""

"""What is fitted on some rows and evaluated on others: recalibration, regions of the features, the probe."""

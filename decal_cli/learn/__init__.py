"""What learns: recalibrators and models on features, folds and held-out scores, probes and regions, model files."""

"""What other tools load of decal: an evaluator of MLflow and a plugin of pytest."""

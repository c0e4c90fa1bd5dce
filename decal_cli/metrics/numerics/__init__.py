"""The algorithms behind the metrics: envelopes, transport, kernels, cross-fitted losses."""

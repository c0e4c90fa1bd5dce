"""The algorithms behind the methods: Newton steps, logistic regression and trees as plain arrays."""

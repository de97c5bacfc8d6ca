"""Parts that kernels and the judge share."""

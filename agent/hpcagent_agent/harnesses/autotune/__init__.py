"""A source-to-source optimiser without a model: dependence analysis, loop transformations, a short search."""

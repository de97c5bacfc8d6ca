"""The kernel corpus: manifests, sizes, draws and the comparison of outputs."""

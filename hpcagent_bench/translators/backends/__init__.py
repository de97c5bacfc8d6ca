"""From the typed form to C, C++, Fortran and numba."""

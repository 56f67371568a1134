"""One file per algorithm of the paper: pure functions on tensor forms and arrays."""

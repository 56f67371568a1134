"""One script per claim: ``python -m benchmarks.must_show.NAME [--quick]``; exit code 1 when a bar is missed."""

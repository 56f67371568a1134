"""The benchmark (``python -m benchmarks``) and one script per claim (``benchmarks.must_show``)."""

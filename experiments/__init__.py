"""The paper's claims, measured: one file a claim.

``python -m experiments`` runs them all, prints their tables, keeps the data in ``experiments/results``, draws the
figures in ``docs/images/experiments``, and writes ``docs/experiments.md`` from the data.
"""

"""From samples to atoms: what a fit is made of."""

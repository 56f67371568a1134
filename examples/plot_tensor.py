"""
A noisy tensor
==============

Thirty orthonormal components in forty dimensions, hidden under an error that was made to mislead: it has maxima of its
own in every direction, and a spectral norm of 0.3, a third of the weights.
"""

# %%
# The tensor, an array of shape ``(40, 40, 40, 40)``, and its decomposition.  Neither rank nor error is given.

import quartic
import quartic.report

planted = quartic.datasets.planted_tensor(d=40, n=30, eps=0.3, error="trap", random_state=0)
result = quartic.decompose(planted.tensor, random_state=0)
print(result.summary())

# %%
# The spectrum of the tensor, seen as a matrix, has a gap after the thirtieth eigenvalue; the certificates say how far
# each component can be trusted, whatever the error is.

figure = quartic.report.plot(result)

# %%
# Here the truth is known: every component is found, and its squared correlation lies above its certificate.

match = quartic.metrics.match(planted.components, result.components)
print(f"{match.found()} of 30 found; the worst squared correlation is {match.squared.min():.4f},")
print(f"the smallest certificate {result.certificates.min():.4f}")

"""
The idea in pictures
====================

Why a covariance can not tell atoms from any rotation of them, while a fourth moment can, and how components are read
off a spectrum.
"""

# %%
# Two atoms, sparse coefficients.  The covariance (dashed) is round after whitening: it says nothing about where the
# atoms (arrows) point.  The samples do: most lie on a line along an atom.

import matplotlib.pyplot as plt
import numpy as np

import quartic

data = quartic.datasets.nice_samples(2000, 2, p=0.3, coefficients="gaussian", dictionary="orthonormal", random_state=1)
Y, A = data.samples, data.components
figure, ax = plt.subplots(figsize=(4.4, 4), layout="constrained")
ax.scatter(*Y.T, s=4, color="#0072B2", alpha=0.5)
angle = np.linspace(0, 2 * np.pi, 200)
spread = np.std(Y)
ax.plot(2 * spread * np.cos(angle), 2 * spread * np.sin(angle), color="#444444", linestyle="--", label="covariance")
for a in A:
    ax.annotate("", 2.5 * a, (0, 0), arrowprops={"arrowstyle": "->", "color": "#B84A00", "lw": 2})
ax.set(title="samples, and two atoms", aspect="equal", xlim=(-3, 3), ylim=(-3, 3))
ax.legend(loc="lower left")

# %%
# The fourth moment in a direction, ``E <y, u>^4``, is largest along the atoms (vertical lines); the second moment is
# flat.

U = np.column_stack((np.cos(angle), np.sin(angle)))
moments, ax = plt.subplots(figsize=(5.4, 3.6), layout="constrained")
for power, style in ((2, "--"), (4, "-")):
    moment = np.mean((Y @ U.T) ** power, axis=0)
    ax.plot(np.degrees(angle), moment / moment.mean(), style, color="#0072B2", label=f"moment of order {power}")
for a in np.concatenate((A, -A)):
    ax.axvline(np.degrees(np.arctan2(a[1], a[0])) % 360, color="#B84A00", linewidth=1)
ax.set(title="moment in each direction", xlabel="direction, degrees", ylabel="relative to its mean")
ax.legend()

# %%
# In more dimensions nobody can try all directions.  Seen as a matrix on symmetric matrices, the fourth cumulant has the
# ``a a'`` of the atoms as leading eigenvectors, with a gap below them.

data = quartic.datasets.nice_samples(8000, 20, dictionary="orthonormal", random_state=0)
model = quartic.SpectralDictionaryLearning().fit(data.samples)
spectrum = model.plot(truth=data.components)

# %%
# A random combination of the leading eigenvectors is a matrix whose eigenvectors are, roughly, the atoms: each bright
# square in a row of its own says that one eigenvector is one atom.

from quartic.algorithms.contract import candidates, contract
from quartic.algorithms.truncate import full_spectrum
from quartic.moments import FourthMoment

moment = FourthMoment(model.frame_).update(data.samples)
span = full_spectrum(moment.cumulant()).head(20).flattened()
rough = candidates(contract(span, 1, np.random.default_rng(0)), 20)
whitened = data.components @ model.frame_.forward
whitened /= np.linalg.norm(whitened, axis=1, keepdims=True)
match = quartic.metrics.match(rough, whitened)
matrix, ax = plt.subplots(figsize=(4, 3.6), layout="constrained")
ax.imshow(match.table[:, match.columns], cmap="cividis", vmin=0, vmax=1)
ax.set(title="one contraction: squared correlations", xlabel="atom", ylabel="eigenvector")

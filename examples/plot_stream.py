"""
Samples that come in batches
============================

``partial_fit`` keeps moments, not samples: memory does not grow, and certificates tell when there is enough.
"""

# %%
# Batches of 500 samples; after each, how many of the atoms are certified.

import warnings

import matplotlib.pyplot as plt

import quartic

data = quartic.datasets.nice_samples(12_000, 15, random_state=0)
model = quartic.SpectralDictionaryLearning(15)
seen, certified, found = [], [], []
with warnings.catch_warnings():
    warnings.simplefilter("ignore", quartic.DecompositionWarning)  # too few samples, at first
    for start in range(0, 12_000, 500):
        model.partial_fit(data.samples[start : start + 500])
        seen.append(model.n_samples_seen_)
        certified.append(int(model.certified_.sum()))
        found.append(quartic.metrics.match(data.components, model.components_).found(0.95))

figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.plot(seen, found, "o-", color="#0072B2", label="found, squared correlation 0.95")
ax.plot(seen, certified, "s--", color="#B84A00", label="certified")
ax.set(xlabel="samples seen", ylabel="atoms", ylim=(-0.5, 15.5), title="15 atoms, 500 samples at a time")
ax.legend()

# %%
# Moments of several machines add, if they share a frame.

frame = quartic.Covariance().update(data.samples[:2000]).frame()
parts = [quartic.FourthMoment(frame).update(data.samples[k::3]) for k in range(3)]
together = quartic.SpectralDictionaryLearning(15).fit_moment(parts[0].merge(parts[1]).merge(parts[2]))
print(together.status_)

"""
In place of FastICA
===================

``SpectralICA`` in a scikit-learn pipeline, next to ``FastICA``: the same interface, and a word on which sources to
trust.
"""

# %%
# Sources with a common envelope, as in recordings where several are active at the same time, on ten sensors.

import numpy as np
from sklearn.decomposition import FastICA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import quartic

rng = np.random.default_rng(0)
envelope = np.abs(rng.standard_normal((30_000, 5)).repeat(2, axis=1))  # pairs of sources share one
sources = envelope * rng.laplace(size=(30_000, 10))
mixing = rng.standard_normal((10, 10))
recording = sources @ mixing.T

pipelines = {
    "SpectralICA": make_pipeline(StandardScaler(), quartic.SpectralICA(10)),
    "FastICA": make_pipeline(StandardScaler(), FastICA(10, whiten="unit-variance", max_iter=1000, random_state=0)),
}
for name, pipeline in pipelines.items():
    estimated = pipeline.fit_transform(recording)
    match = quartic.metrics.match(sources.T, estimated.T)
    print(f"{name}: {match.found(0.95)} of 10 sources at squared correlation 0.95, worst {match.squared.min():.3f}")

# %%
# FastICA gives ten sources, whatever the data are.  Here each has a certificate, and sources that are active together
# are named.

model = pipelines["SpectralICA"][-1]
print(model.status_)
print(np.round(model.certificates_, 2))
print([group.tolist() for group in model.groups_])

# %%
# As in MNE for recordings of the brain: channels are rows and times columns, an artefact is known by its correlation
# with a channel of its own (the eyes, say), its source is left out, and the recording put together again without it.

eyes = sources[:, 0] + 0.3 * rng.standard_normal(30_000)
channels = recording.T + 5.0  # (10 channels, 30,000 times), with an offset

ica = quartic.SpectralICA(10).fit(channels.T)
activity = ica.transform(channels.T)
likeness = [abs(np.corrcoef(eyes, activity[:, k])[0, 1]) for k in range(10)]
blink = int(np.argmax(likeness))
print(f"source {blink}: correlation {likeness[blink]:.2f} with the eyes, certificate {ica.certificates_[blink]:.2f}")

activity[:, blink] = 0
cleaned = ica.inverse_transform(activity).T
without = (sources[:, 1:] @ mixing[:, 1:].T).T + 5.0
wrong = np.linalg.norm(cleaned - without) / np.linalg.norm(channels - without)
print(f"of the artefact, {wrong:.1%} is left in the channels, or was taken from what is not artefact")

# %%
figure = model.plot()

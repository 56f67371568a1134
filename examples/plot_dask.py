"""
Data in a Dask array
====================

The same estimators take Dask arrays and dataframes: only sums, and a subsample, come to the caller.  Zarr, HDF5 and
Parquet are opened by ``quartic.open_samples``.
"""

# %%
# A Dask array in chunks of 5,000 rows; it may as well be larger than memory, or live on a cluster.

import dask.array as da

import quartic

data = quartic.datasets.nice_samples(40_000, 20, random_state=0)
X = da.from_array(data.samples, chunks=(5_000, -1))
model = quartic.SpectralDictionaryLearning(random_state=0).fit(X)
print(model.status_)
print(model.report_.summary())

# %%
# The answer is that of the same samples in memory, and codes come as a Dask array.

alone = quartic.SpectralDictionaryLearning(random_state=0).fit(data.samples)
match = quartic.metrics.match(alone.components_, model.components_)
print(f"1 - squared correlation to the fit in memory: {1 - match.squared.min():.1e}")
print(model.transform(X))

# %%
figure = model.plot()

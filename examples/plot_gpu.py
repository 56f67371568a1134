"""
Arrays on a GPU
===============

Arrays of PyTorch, CuPy and JAX stay in their library and on their device.  Without a GPU this example runs on the
processor, and without PyTorch with NumPy.
"""

# %%
# A device, if there is one.  SciPy's own support for such arrays is switched on before it is first imported.

import os
import time

os.environ["SCIPY_ARRAY_API"] = "1"
import quartic

data = quartic.datasets.nice_samples(100_000, 48, dtype="float32", random_state=0)
try:
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    X = torch.asarray(data.samples, device=device)
except ImportError:
    device, X = "NumPy on the processor", data.samples
print(f"samples of type {type(X).__module__} on: {device}")

# %%
# scikit-learn's switch turns array dispatch on; fitted attributes are arrays of the same library.

from sklearn import config_context

with config_context(array_api_dispatch=True):
    start = time.perf_counter()
    model = quartic.SpectralDictionaryLearning(48).fit(X)
    print(f"{model.status_} {time.perf_counter() - start:.2f} s")
    print(type(model.components_))

# %%
# ``to_numpy`` brings a model home.

model = model.to_numpy()
print(quartic.metrics.match(data.components, model.components_).found(), "of 48 found")
figure = model.plot()

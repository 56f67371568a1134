"""
Reading a run that failed
=========================

Too few samples of too many atoms: what the status, the report and the diagnosis say, and what helps.
"""

# %%
# 300 samples in 40 dimensions.  The warning says what is missing; the model is there all the same.

import warnings

import quartic

data = quartic.datasets.nice_samples(20_000, 40, random_state=0)
few = data.samples[:300]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model = quartic.SpectralDictionaryLearning(40).fit(few)
print(caught[0].message)
print(f"{int(model.certified_.sum())} certified, status {model.status_.code!r}")

# %%
# The diagnosis looks at the data alone, and names what they lack.

print(model.diagnose(few).summary())

# %%
# The pictures: no gap in the spectrum, no certificate above 1/2.  ``model.write_report("report.html")`` writes them
# with everything else into one page.

figure = model.plot()

# %%
# The remedy was more samples.

model.fit(data.samples)
print(model.status_)

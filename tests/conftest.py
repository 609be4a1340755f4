"""Of all tests: rubbish is collected rarely, since that walks over all that JAX has traced."""

import gc

gc.set_threshold(50_000, 50, 100)

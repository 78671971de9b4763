"""Everything that the compiled loops do for a tessellated kernel, for any number of rows."""

from __future__ import annotations

import numpy as np

from tessella.backend import KernelOnDemand
from tessella.kernels import TessellatedKernels

WORKS = ("gram", "cross", "gradient", "scores", "product")
P = np.eye(10)
KERNELS = TessellatedKernels()


def rows(m):
    rng = np.random.default_rng(5)
    return rng.random((m, 4)), rng.standard_normal(m)


def gram(m, n_jobs):
    return KERNELS.bind(rows(m)[0], n_jobs=n_jobs).gram(P)


def cross(m, n_jobs):
    X, _ = rows(m)
    return KERNELS.cross(X[::-1], X, P, n_jobs=n_jobs)


def gradient(m, n_jobs):
    X, w = rows(m)
    return KERNELS.bind(X, n_jobs=n_jobs).gradient(w)


def scores(m, n_jobs):
    X, w = rows(m)
    return KERNELS.scores(X[::-1], X, P, w, n_jobs=n_jobs)


def product(m, n_jobs):
    X, w = rows(m)
    K = KernelOnDemand(max_bytes=0)
    bound = KERNELS.bind(X, n_jobs=1)
    K.hold(bound.product_form(bound.cone.factors(P)))
    return K.product(w, n_jobs)

"""Fits in leaves on the workers of a Dask cluster.

The estimators of this package have the parameters of those in :mod:`tessella.estimators` and learn
the same models. Rows are chunks of Dask collections, leaves are tasks on the workers, and the
process of the client chooses the kernel. It needs the packages of ``pip install "tessella[dask]"``.
"""

try:
    import dask
    import distributed
except ImportError as error:
    raise ImportError(
        'tessella.dask needs dask and distributed: pip install "tessella[dask]"'
    ) from error

from tessella.dask._cluster import ClusterError
from tessella.dask._estimators import DaskLearnedKernelSVC, DaskLearnedKernelSVR

__all__ = ["ClusterError", "DaskLearnedKernelSVC", "DaskLearnedKernelSVR"]

del dask, distributed

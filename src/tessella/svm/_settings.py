"""The tuned constants of the dual solver, and the reason for each."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class CostModel:
    """Estimated durations of the steps of :func:`solve_dual`, in seconds on one core.

    Only the ratios of the durations matter: the solver gives each kind of step a similar share
    of the time. Estimates are used in place of measured times so that the same problem always
    takes the same steps.

    Attributes
    ----------
    pair_fixed : float
        Part of a pair step that does not depend on the number of samples.
    pair_per_sample : float
        Part of a pair step that is proportional to the number of samples m, because it reads
        three rows of the kernel matrix.
    block_per_sample : float
        Part of a pair step in a block that is proportional to the number of all samples: a row of
        the kernel matrix is read after the last of several steps that move its sample.
    product_per_entry : float
        Part of the product of the kernel matrix with a dual vector that is proportional to the
        number of samples times the number of entries of the vector that are not zero.
    newton_fixed : float
        Part of a Newton step that does not depend on its size: several calls of NumPy and SciPy.
    solve_per_entry : float
        Part of a linear system of side f that is proportional to f²: copying the matrix and
        solving with its factor.
    solve_per_cube : float
        Part of a linear system of side f that is proportional to f³: a Cholesky factorisation
        of f³/3 operations at 17 billion operations per second.
    interior_point_steps : int
        Number of factorisations of a typical run of the interior point method.
    interior_point_fixed : float
        Part of an interior point step that does not depend on its size.
    interior_point_per_entry : float
        Part of an interior point step with the whole matrix of m samples that is proportional to
        m²: copying the matrix and solving with its factor.
    factor_fixed : float
        Part of the search for a factor that is proportional to the number r of its rows.
    factor_per_entry : float
        Part of the search for a factor with r rows of m samples that is proportional to m r².
    low_rank_per_entry : float
        Part of an interior point step with a matrix of m samples and rank r that is proportional
        to m r².
    """

    pair_fixed: float = 1e-7  # choosing the pair and solving for two variables
    pair_per_sample: float = 1e-9  # three rows, mostly read from a cache
    block_per_sample: float = 4e-10  # a row is computed or read once in several steps
    product_per_entry: float = 3e-10  # entries that are read from memory or computed
    newton_fixed: float = 5e-4  # a dozen calls from Python
    solve_per_entry: float = 1e-8  # the matrix is gathered from scattered rows
    solve_per_cube: float = 2e-11  # LAPACK with one thread
    interior_point_steps: int = 20  # it hardly depends on the data
    interior_point_fixed: float = 3e-5  # its steps are compiled
    interior_point_per_entry: float = 2e-9  # the matrix is copied as it lies
    factor_fixed: float = 7e-6  # a few calls from Python for each row
    factor_per_entry: float = 1e-10  # products of a matrix with vectors
    low_rank_per_entry: float = 1e-10  # products of matrices with few rows

    def pair_step(self, size: int, block: int) -> float:
        """Return the estimated duration of a pair step, in a block of `size` samples or of all."""
        if block == 0:
            return self.pair_fixed + self.pair_per_sample * size
        return self.pair_fixed + self.pair_per_sample * block + self.block_per_sample * size

    def newton_step(self, free: int) -> float:
        """Return the estimated duration of a Newton step with `free` free samples."""
        return self.newton_fixed + self.solve_per_entry * free**2 + self.solve_per_cube * free**3

    def gradient(self, size: int, moved: int) -> float:
        """Return the estimated duration of updating a gradient by the samples that moved."""
        return self.product_per_entry * size * moved

    def interior_point(self, size: int) -> float:
        """Return the estimated duration of an interior point run with `size` samples."""
        step = self.interior_point_fixed + self.interior_point_per_entry * size**2
        return self.interior_point_steps * (step + self.solve_per_cube * size**3)

    def factorisation(self, size: int, most: int) -> float:
        """Return the estimated duration of the search for a factor with at most `most` rows."""
        return self.factor_fixed * most + self.factor_per_entry * size * most**2

    def low_rank(self, size: int, rank: int) -> float:
        """Return the estimated duration of an interior point run with a matrix of low rank."""
        step = self.interior_point_fixed + self.low_rank_per_entry * size * rank**2
        return self.interior_point_steps * step


@dataclass(frozen=True)
class DualSettings:
    """The tuned constants of :func:`solve_dual`.

    The defaults are meant for every problem. Other values are useful to examine the solver, for
    example to leave out one kind of step.

    Attributes
    ----------
    costs : CostModel
        Estimated durations of the steps.
    min_pair_steps : int
        Smallest number of pair steps between two decisions about the next kind of step.
    least_blocks : int
        Smallest number of samples for which pair steps are taken in blocks.
    block_share : int
        A block has this fraction (one divided by the setting) of the samples, within its bounds.
    min_block, max_block : int
        Smallest and largest number of samples of a block; a largest number of zero means that
        there are no blocks.
    warm_pair_share : int
        With a warm start, the first Newton step follows after pair steps that take this fraction
        (one divided by the setting) of its duration.
    warm_newton_ratio : float
        With a warm start, the first Newton step may take this many times as long as the pair
        steps before it. The ratio is one from the second Newton step on.
    pair_growth : int
        Factor of the number of pair steps after a Newton step that found no better point.
    max_idle_rounds : int
        Number of rounds without progress after which Newton steps are given up.
    objective_resolution : float
        Relative increase of the objective that counts as progress.
    gap_progress : float
        Factor by which the smallest gap has to shrink to count as progress.
    max_free : int
        Largest number of free samples of a Newton step.
    max_pinning_rounds : int
        How often a Newton step may fix samples at their bounds and solve again.
    max_pinned_share : int
        A Newton step fixes at most this fraction (one divided by the setting) of its samples.
    ridges_float64 : tuple of float
        Numbers added to the diagonal of the matrix of a Newton step, relative to the mean of
        the diagonal, when the kernel matrix is stored in double precision. They are tried in
        turn until one gives a better point.
    ridges_float32 : tuple of float
        The same numbers for a kernel matrix that is stored in single precision.
    max_interior_point_size : int
        Largest number of samples for which the interior point method is used.
    max_interior_point_runs : int
        How often the interior point method may take over; zero means never.
    interior_point_share : float
        The interior point method takes over once the other steps have taken this fraction of
        its estimated duration.
    interior_point_tol : float
        Tolerance of the first run of the interior point method, relative to that of the solver.
        Every later run multiplies it by the same factor once more.
    min_interior_point_tol : float
        Smallest tolerance of the interior point method.
    least_rank : int
        A factor of low rank is looked for once the use of one with this rank would pay.
    search_share : float
        A factor of low rank is looked for once the other steps have taken this many times the
        estimated duration of the search.
    least_low_rank : int
        The smallest of the largest ranks up to which a kernel matrix is factorised.
    low_rank_share : int
        A matrix of low rank has at most this fraction (one divided by the setting) of the number
        of samples as its rank.
    low_rank_entries : int
        Largest number of entries of a factor of low rank; zero means that there is none.
    low_rank_tol : float
        Part of the trace of the kernel matrix that a factor of low rank may miss.
    assumed_free_share : int
        Earlier Newton steps are taken to have had this fraction (one divided by the setting) of
        the samples free.
    """

    costs: CostModel = field(default_factory=CostModel)
    min_pair_steps: int = 200  # each decision costs a pass over all samples
    least_blocks: int = 1000  # fewer rows of the kernel matrix are in the cache of the processor
    block_share: int = 16  # then a round takes as long within its block as with all other samples
    min_block: int = 256  # the best pairs of fewer samples are found by chance
    max_block: int = 512  # a matrix of 2 MB, in the cache of the processor
    warm_pair_share: int = 8  # a warm start mostly knows which samples are free
    warm_newton_ratio: float = 10.0  # for the same reason
    pair_growth: int = 4  # the free samples have not settled yet
    max_idle_rounds: int = 20  # a single round without progress can be chance
    objective_resolution: float = 1e-14  # a sum of thousands of products has this rounding error
    gap_progress: float = 0.9  # the gap is not monotone: smaller changes are noise
    max_free: int = 8000  # a matrix of 0.5 GB, and about 10 s
    max_pinning_rounds: int = 12  # beyond that, pair steps are faster
    max_pinned_share: int = 3  # with more at a bound, the free samples are not known yet
    ridges_float64: tuple[float, ...] = (1e-13, 1e-10)  # above the rounding of the factorisation
    ridges_float32: tuple[float, ...] = (1e-7, 1e-5)  # above the rounding of the entries
    max_interior_point_size: int = 4000  # twenty factorisations of a matrix of 128 MB
    max_interior_point_runs: int = 3  # another run from nearly the same point gains little
    interior_point_share: float = 0.25  # the total is then at most 1.25 times the best choice
    interior_point_tol: float = 0.1  # pair steps have to reach the tolerance from there
    min_interior_point_tol: float = 1e-9  # below, rounding ends the method
    least_rank: int = 16  # fewer features are seldom of low rank
    search_share: float = 1.0  # most matrices with many samples have no low rank
    least_low_rank: int = 64  # a factor with so few rows costs less than its products
    low_rank_share: int = 16  # the run then takes a small part of the time of the pair steps
    low_rank_entries: int = 4_000_000  # 32 MB
    low_rank_tol: float = 1e-6  # with more, the pair steps begin far from the optimum
    assumed_free_share: int = 4  # typical of problems on which the solver creeps

    def block(self, size: int) -> int:
        """Return the number of samples of a block of a problem, or zero if it has no blocks."""
        if size < max(self.least_blocks, 2) or self.max_block == 0:
            return 0
        return min(size, max(self.min_block, min(self.max_block, size // self.block_share)))

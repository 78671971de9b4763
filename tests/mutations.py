"""Break the library on purpose and see that the tests notice.

Each mutation is a fragment of one file of the library and a broken replacement: a wrong sign, a
dropped term, an end one too early, a race. It is made in a copy of the package, never in the
working tree, and the tests named with it are run on that copy. They have to pass without the
mutation and to fail with it.

    python tests/mutations.py                  # all mutations of the Python code
    python tests/mutations.py --only newton    # those with this word in their function or file
    python tests/mutations.py --compiled       # also those of the C++ core, which is rebuilt

The exit status is 1 when a mutant survives, and 2 when a mutation cannot be tried: its fragment
is not there exactly once, or the mutant cannot even be imported. Needs an installation with the
``test`` extra; ``--compiled`` also a compiler, scikit-build-core and nanobind.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "tessella"
SECONDS = 600  # for the tests of one mutation; a mutant that does not end is noticed

# Development installations answer for the package before the path is looked at; not here.
SITE = """
import sys
sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != "ScikitBuildRedirectingFinder"]
"""


@dataclass(frozen=True)
class Mutation:
    """A broken line.

    Attributes
    ----------
    function : str
        What is broken.
    file : str
        Where it is, within the package.
    old, new : str
        The fragment, which occurs once in the file, and what takes its place.
    tests : tuple of str
        Files, below ``tests/``, of the tests that should notice.
    """

    function: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def compiled(self) -> bool:
        """Whether the core has to be built again."""
        return self.file.endswith((".cpp", ".hpp"))

    def applied(self, text: str) -> str:
        """The text of the file with the mutation."""
        if text.count(self.old) != 1:
            raise MutationError(
                f"{self.function}: {self.file} has {text.count(self.old)} times {self.old!r}, "
                "expected once."
            )
        return text.replace(self.old, self.new)


class MutationError(Exception):
    """A mutation that cannot be tried."""


CONFORMANCE = "kernels/test_conformance.py"
TESSELLATED = "kernels/test_tessellated.py"
OTHER_SETS = "kernels/test_other_sets.py"
SCALING = "kernels/test_scaling.py"
SINGLE = "kernels/test_single.py"
PRODUCT_FORM = "backend/test_product_form.py"
FEATURES = "features/test_kernel_features.py"
RELEVANCE = "inspection/test_relevance.py"
FRANK_WOLFE = "solvers/test_frank_wolfe.py"
APD = "solvers/test_apd.py"
DUAL = "svm/test_dual.py"
BACKEND = "backend/test_backend.py"
INSTRUCTION_SETS = "backend/test_instruction_sets.py"
THREADS = "faults/test_threads.py"
SIGNALS = "faults/test_signals.py"
INTERIOR = "svm/test_interior.py"
PROPERTIES = "estimators/test_properties.py"
ESTIMATORS = "estimators/test_estimators.py"
CONES = "cones/test_cones.py"
SADDLE_POINT = "problems/test_saddle_point.py"
JOINT = "solvers/test_joint.py"
WORKING_SET = "solvers/test_working_set.py"
SQUARED = "solvers/test_squared_loss.py"
LOSS = "svm/test_loss.py"
LEAVE_ONE_OUT = "estimators/test_leave_one_out.py"
SUMS = "solvers/test_sums.py"
WEIGHTS = "multiple_kernels/test_solvers.py"
RULES = "multiple_kernels/test_rules.py"
MERGED_ROWS = "estimators/test_merged_rows.py"
RIDGE_LOO = "leave_one_out/test_ridge.py"
SVM_LOO = "leave_one_out/test_svm.py"
ESTIMATOR_LOO = "estimators/test_leave_one_out_svm.py"
GRADIENT = "leave_one_out/test_gradient.py"
HELD_OUT = "leave_one_out/test_held_out.py"
FAMILIES = "automatic/test_families.py"
ENCODINGS = "automatic/test_encodings.py"
AVERAGE = "automatic/test_average.py"
LEAVES = "automatic/test_leaves.py"
TABLES = "automatic/test_tables.py"
QUALITY = "automatic/test_quality.py"
PROBABILITIES = "automatic/test_probabilities.py"
LIMITS = "automatic/test_limits.py"
GROWTH = "automatic/test_growth.py"
CERTIFICATES = "faults/test_certificates.py"
SCALES = "faults/test_scales.py"
FAULTY_FILES = "faults/test_files.py"
AUTOMATIC_FILES = "automatic/test_model_files.py"

MUTATIONS = (
    # ---- certificates and scales
    Mutation(
        "DualPoint.lower (rounding)",
        "problems/_saddle_point.py",
        "return value - self._allowance(self._rounding_of_lower",
        "return value - 0.0 * self._allowance(self._rounding_of_lower",
        ("problems/test_saddle_point.py",),
    ),
    Mutation(
        "DualPoint.upper (rounding)",
        "problems/_saddle_point.py",
        "return value + self._allowance(rounding",
        "return value + 0.0 * self._allowance(rounding",
        ("problems/test_saddle_point.py",),
    ),
    Mutation(
        "SaddlePoint.largest_feature_norms (degree)",
        "problems/_saddle_point.py",
        "max(1, self.cone.degree) ** 0.5 * self.centre_norms",
        "self.centre_norms",
        ("problems/test_saddle_point.py",),
    ),
    Mutation(
        "DualPoint.upper (infeasible)",
        "problems/_saddle_point.py",
        "if not self._problem.has_unit_trace(P):",
        "if False:",
        ("problems/test_saddle_point.py",),
    ),
    Mutation(
        "project_on_simplex (shift)",
        "cones/_cone.py",
        "values = values - values[top] * (sizes[top] / sizes)",
        "values = values - (values * sizes).max() / sizes",
        ("cones/test_cones.py",),
    ),
    Mutation(
        "_Shared._distances (large norms)",
        "kernels/_functions.py",
        "> _LARGEST_SQUARE:",
        "> np.inf:",
        ("kernels/test_other_sets.py",),
    ),
    Mutation(
        "relative_gap (not finite)",
        "svm/_solution.py",
        "if not (np.isfinite(upper) and np.isfinite(lower)):",
        "if upper == np.inf:",
        (CERTIFICATES,),
    ),
    Mutation(
        "relative_gap (contradiction)",
        "svm/_solution.py",
        "if -_ROUNDING * size <= difference <= 0.0:",
        "if difference <= 0.0:",
        (CERTIFICATES,),
    ),
    Mutation(
        "DualPoint._form (NaN)",
        "problems/_saddle_point.py",
        "if not value < 0.0:",
        "if value > 0.0:",
        (CERTIFICATES,),
    ),
    Mutation(
        "DualPoint._form (indefinite)",
        "problems/_saddle_point.py",
        "if value < -_ROUNDING * reach:",
        "if value < -np.inf:",
        (CERTIFICATES,),
    ),
    Mutation(
        "Run._keep (not finite)",
        "solvers/_run.py",
        "if np.isfinite(certificate.upper) and certificate.upper < self.value:",
        "if self._best is None or certificate.upper < self.value:",
        (CERTIFICATES,),
    ),
    Mutation(
        "solve_dual (not finite)",
        "svm/_dual.py",
        "if not (np.isfinite(objective) and np.isfinite(primal)):",
        "if objective == np.inf:",
        (CERTIFICATES,),
    ),
    Mutation(
        "FunctionKernel (not finite)",
        "kernels/_functions.py",
        "if not np.isfinite(values.sum()) and not np.isfinite(values).all():",
        "if values.size == 0:",
        (CERTIFICATES,),
    ),
    Mutation(
        "_check_functions (indefinite)",
        "kernels/_dictionary.py",
        "if eigenvalues[0] < -_INDEFINITENESS * float(np.abs(eigenvalues).sum()):",
        "if eigenvalues[-1] < 0.0:",
        (CERTIFICATES,),
    ),
    Mutation(
        "with_attained_value",
        "estimators/_attained.py",
        "if attained <= state.objective_:",
        "if attained >= state.objective_:",
        (CERTIFICATES,),
    ),
    Mutation(
        "run_solver (others)",
        "solvers/_fallback.py",
        'if name != "auto" or problem.fixed is not None',
        'if name == "auto" or problem.fixed is not None',
        (CERTIFICATES,),
    ),
    Mutation(
        "_Continuation.known",
        "solvers/_fallback.py",
        "return [(own.parameter, own.w), (own.parameter, own.w_bound)]",
        "return []",
        (CERTIFICATES,),
    ),
    Mutation(
        "run_solver (iterations that are left)",
        "solvers/_fallback.py",
        "steps = max_iter - result.n_iter",
        "steps = max_iter",
        (CERTIFICATES,),
    ),
    Mutation(
        "fitted_state (proof of the bound)",
        "estimators/_state.py",
        "proved = np.array_equal(result.w, result.w_bound)",
        "proved = len(result.w) > 0",
        (CERTIFICATES,),
    ),
    Mutation(
        "StandardisedTarget.of (units)",
        "estimators/_standardised.py",
        "exponent = int(np.frexp(np.abs(y).max())[1])",
        "exponent = 0",
        (SCALES,),
    ),
    Mutation(
        "_mean_and_scale (units)",
        "kernels/_dictionary.py",
        "unit = np.where(size > 0, size, 1.0)",
        "unit = np.ones_like(size)",
        (SCALES,),
    ),
    # ---- automatic models
    Mutation(
        "_eigenpairs (constant kernels)",
        "leave_one_out/_ridge.py",
        "scale = max(size, float(np.abs(matrix.diagonal()).max()))",
        "scale = float(np.abs(matrix.diagonal()).max())",
        (RIDGE_LOO,),
    ),
    Mutation(
        "leave_one_out_gradient (divisors)",
        "leave_one_out/_gradient.py",
        "M = _scaled_square(H, np.sqrt(fraction * slopes))",
        "M = -_scaled_square(H, np.sqrt(fraction * slopes))",
        (GRADIENT,),
    ),
    Mutation(
        "leave_one_out_gradient (coefficients)",
        "leave_one_out/_gradient.py",
        "M -= 0.5 * (cross + cross.T)",
        "M += 0.5 * (cross + cross.T)",
        (GRADIENT,),
    ),
    Mutation(
        "leave_one_out_gradient (fractions)",
        "leave_one_out/_gradient.py",
        "divisor = (1.0 - fraction) / ridge + fraction * np.diag(H)",
        "divisor = np.diag(H)",
        (GRADIENT,),
    ),
    Mutation(
        "leave_one_out_gradient (by C)",
        "leave_one_out/_gradient.py",
        " + float(slopes @ ((1.0 - fraction) / ridge))",
        "",
        (GRADIENT,),
    ),
    Mutation(
        "_centred_inverse (the intercept)",
        "leave_one_out/_gradient.py",
        "    H -= np.outer(sums, sums / sums.sum())\n",
        "",
        (GRADIENT,),
    ),
    Mutation(
        "LaplaceFamily.gradient",
        "automatic/_families.py",
        "return -np.exp(scales) * absolute_pair_sums",
        "return -absolute_pair_sums",
        (FAMILIES,),
    ),
    Mutation(
        "_square_sums",
        "automatic/_families.py",
        'np.einsum("ij,ij->j", Z, W @ Z) - W.sum(axis=1) @ (Z * Z)',
        'W.sum(axis=1) @ (Z * Z) - np.einsum("ij,ij->j", Z, W @ Z)',
        (FAMILIES,),
    ),
    Mutation(
        "TessellatedFamily.gradient (smallest margin)",
        "automatic/_families.py",
        "margins = np.where(np.exp(-scales) > _SMALLEST_MARGIN, np.exp(-scales), 0.0)",
        "margins = np.exp(-scales)",
        (FAMILIES,),
    ),
    Mutation(
        "MaternFamily.gradient",
        "automatic/_families.py",
        "W / (1.0 + self._distances(A, scales, None))",
        "W",
        (FAMILIES,),
    ),
    Mutation(
        "_shrunk_means (rare categories)",
        "automatic/_encodings.py",
        "    shrunk[counts < _LEAST_MEAN_ROWS] = average\n",
        "",
        (ENCODINGS,),
    ),
    Mutation(
        "_shrunk_means (weights)",
        "automatic/_encodings.py",
        "weights=weight * y, minlength",
        "weights=y, minlength",
        (ENCODINGS,),
    ),
    Mutation(
        "_indicators (unknown categories)",
        "automatic/_encodings.py",
        "np.where(column < 0, -2.0, column)",
        "np.where(column < 0, -1.0, column)",
        (ENCODINGS,),
    ),
    Mutation(
        "Encoding.sources",
        "automatic/_encodings.py",
        "own = [numbers, numbers[self.gappy], np",
        "own = [numbers, self.gappy, np",
        (ENCODINGS,),
    ),
    Mutation(
        "left_out_fraction (coincidences)",
        "automatic/_copies.py",
        "return np.minimum(1.0, 1.0 / weight)",
        "return np.ones(len(weight))",
        (QUALITY,),
    ),
    Mutation(
        "left_out_fraction (copies)",
        "automatic/_copies.py",
        "        return np.ones(len(weight))\n    return np.minimum",
        "        return np.minimum(1.0, 1.0 / weight)\n    return np.minimum",
        (QUALITY,),
    ),
    Mutation(
        "greedy_average",
        "automatic/_average.py",
        "grown = np.diag(products) + 2.0 * products @ counts",
        "grown = np.diag(products) + products @ counts",
        (AVERAGE,),
    ),
    Mutation(
        "soft_average",
        "automatic/_average.py",
        "(errors / smallest - 1.0) * n_rows",
        "(errors / smallest - 1.0)",
        (AVERAGE,),
    ),
    Mutation(
        "Leaves.of",
        "automatic/_leaves.py",
        "self.column[own]] > self.threshold[own]",
        "self.column[own]] >= self.threshold[own]",
        (LEAVES,),
    ),
    Mutation(
        "FittedMachine.outputs (leaves)",
        "automatic/_machines.py",
        "rows, known = np.flatnonzero(leaf == k), training_leaf == k",
        "rows, known = np.flatnonzero(leaf == k), training_leaf >= 0",
        (LEAVES,),
    ),
    Mutation(
        "SquaredError.solve (C)",
        "automatic/_losses.py",
        "dual = DualProblem.ridge(Y, C * weight)",
        "dual = DualProblem.ridge(Y, 1e-3 * C * weight)",
        (LEAVES,),
    ),
    Mutation(
        "_own_parts (folds)",
        "automatic/_search.py",
        "np.stack(scores)[fold, np.arange(len(fold))]",
        "np.stack(scores)[fold - 1, np.arange(len(fold))]",
        (QUALITY,),
    ),
    Mutation(
        "LogTarget.backward",
        "automatic/_targets.py",
        "return self.sign * (factor * self._positive(scores) - self.shift)",
        "return self.sign * (factor * self._positive(scores) + self.shift)",
        (QUALITY,),
    ),
    Mutation(
        "LogTarget.fit (lower tails)",
        "automatic/_targets.py",
        "sign = float(np.sign(skewness))",
        "sign = 1.0",
        (QUALITY,),
    ),
    Mutation(
        "fit_calibration (slope)",
        "automatic/_calibration.py",
        "slope = share * (softmax(logits, axis=1) - actual)",
        "slope = share * (actual - softmax(logits, axis=1))",
        (PROBABILITIES,),
    ),
    Mutation(
        "fit_calibration (weights)",
        "automatic/_calibration.py",
        "share = (weight / weight.sum())[:, None]",
        "share = np.full((len(weight), 1), 1.0 / len(weight))",
        (PROBABILITIES,),
    ),
    Mutation(
        "fit_calibration (signs)",
        "automatic/_calibration.py",
        "bounds = [(0.0, None)] * 2",
        "bounds = [(None, None)] * 2",
        (PROBABILITIES,),
    ),
    Mutation(
        "Search._is_poor",
        "automatic/_search.py",
        " or self._is_poor(fold):",
        ":",
        (TABLES,),
    ),
    Mutation(
        "interval_radius",
        "automatic/_calibration.py",
        "level = coverage * (total[-1] + total[-1] / len(residuals))",
        "level = coverage * total[-1]",
        (PROBABILITIES,),
    ),
    Mutation(
        "BaseAutomatic._learn (rows of an encoding)",
        "automatic/_base.py",
        "rows.weight / min(1.0, rows.weight.mean())",
        "weight",
        (TABLES,),
    ),
    Mutation(
        "TableReader.read (bits of gaps)",
        "automatic/_table.py",
        "        table[np.isnan(table)] = np.nan  #",
        "        #",
        (TABLES,),
    ),
    Mutation(
        "Clock.check",
        "automatic/_clock.py",
        "if self.left <= self._reserved + needed:",
        "if False:",
        (LIMITS,),
    ),
    Mutation(
        "held_out_gradient (intercepts)",
        "leave_one_out/_held_out.py",
        "(back.sum(axis=0) - slopes.sum(axis=0))",
        "back.sum(axis=0)",
        (HELD_OUT,),
    ),
    Mutation(
        "held_out_gradient (by C)",
        "leave_one_out/_held_out.py",
        "by_ridge = -float(ridge @",
        "by_ridge = -float(weight[:n_fitted] @",
        (HELD_OUT,),
    ),
    Mutation(
        "held_out_gradient (weights of the error)",
        "leave_one_out/_held_out.py",
        "share = weight[n_fitted:] / weight[n_fitted:].sum()",
        "share = np.full(len(K) - n_fitted, 1.0 / (len(K) - n_fitted))",
        (HELD_OUT,),
    ),
    Mutation(
        "Growth.n_rows",
        "automatic/_growth.py",
        "settings.grown and fitted >= settings.search_rows",
        "settings.grown",
        (GROWTH,),
    ),
    Mutation(
        "Growth._descended (last step)",
        "automatic/_growth.py",
        "return self._entry((grown,), after)",
        "return self._entry((machine,), before)",
        (GROWTH,),
    ),
    Mutation(
        "Average.held_out (entries without a share)",
        "automatic/_base.py",
        "for share, entry in parts if share > 0",
        "for share, entry in parts",
        (GROWTH,),
    ),
    Mutation(
        "Search.run (Ctrl-C)",
        "automatic/_search.py",
        "            if not self.entries:\n                raise\n",
        "            raise\n",
        (LIMITS,),
    ),
    Mutation(
        "Encoder._place",
        "persistence/_coding.py",
        "        if id(value) not in self._places:",
        "        if True:",
        (AUTOMATIC_FILES,),
    ),
    Mutation(
        "Leaves.is_tree",
        "automatic/_leaves.py",
        "            and np.array_equal(np.sort(children), np.arange(1, len(self.column)))\n",
        "",
        (LEAVES,),
    ),
    # ---- leave-one-out
    Mutation(
        "Centring",
        "leave_one_out/_centring.py",
        "bend = 0.5 * self._factor",
        "bend = self._factor",
        (RIDGE_LOO,),
    ),
    Mutation(
        "_spread_without (copies)",
        "leave_one_out/_ridge.py",
        "(weight - removed)[:, None] + removed[:, None] * spread",
        "removed[:, None] * spread",
        (RIDGE_LOO,),
    ),
    Mutation(
        "_eigenpairs (rounding)",
        "leave_one_out/_ridge.py",
        "np.where(values > rounding, values, 0.0)",
        "np.abs(values)",
        (RIDGE_LOO,),
    ),
    Mutation(
        "RidgePath._fill_groups",
        "leave_one_out/_ridge.py",
        "root = np.sqrt(shrunk)",
        "root = shrunk",
        (RIDGE_LOO,),
    ),
    Mutation(
        "RidgePath.best",
        "leave_one_out/_ridge.py",
        "_REFINEMENTS = 2",
        "_REFINEMENTS = 0",
        (RIDGE_LOO,),
    ),
    Mutation(
        "_exchange_columns",
        "leave_one_out/_faces.py",
        "columns[np.ix_(free, rest)] = transfer[:, :count].T",
        "columns[np.ix_(free, rest)] = -transfer[:, :count].T",
        (SVM_LOO,),
    ),
    Mutation(
        "_changed (edge of the tube)",
        "leave_one_out/_faces.py",
        "np.where(sign == 0.0, np.sign(excess), sign)",
        "np.where(sign == 0.0, 1.0, sign)",
        (SVM_LOO,),
    ),
    Mutation(
        "svm_leave_one_out (copies)",
        "leave_one_out/_svm.py",
        "target = np.clip(point.w, kept * dual.lower, kept * dual.upper)",
        "target = np.zeros(dual.size)",
        (SVM_LOO,),
    ),
    Mutation(
        "_verified",
        "leave_one_out/_svm.py",
        "good = (breach.max(axis=1) <= limit) & balanced",
        "good = (breach.max(axis=1) <= np.inf) | balanced",
        (SVM_LOO,),
    ),
    Mutation(
        "SvmLeaveOneOutMixin (class weights)",
        "estimators/_fit_rows.py",
        "np.bincount(of_given[seen], self.weight[seen], count).astype(np.float64)",
        "self.problem.rows.weight",
        (ESTIMATOR_LOO,),
    ),
    # ---- tessellated kernels
    Mutation(
        "Basis.split",
        "kernels/_tessellated_basis.py",
        "if self.pointwise else first - second",
        "if self.pointwise else first + second",
        (TESSELLATED,),
    ),
    Mutation(
        "Basis.join",
        "kernels/_tessellated_basis.py",
        "D[half:, half:] += low",
        "D[half:, half:] += 0.0 * low",
        (CONFORMANCE,),
    ),
    Mutation(
        "Basis.mean_power",
        "kernels/_tessellated_basis.py",
        "for k in range(power + 1):",
        "for k in range(power):",
        (TESSELLATED,),
    ),
    Mutation(
        "Side (corner outside the box)",
        "kernels/_tessellated_basis.py",
        "self.corner: FloatArray = np.minimum(np.maximum(X, basis.lower), basis.upper)",
        "self.corner: FloatArray = np.maximum(X, basis.lower)",
        (TESSELLATED,),
    ),
    Mutation(
        "Side.condensed",
        "kernels/_tessellated_basis.py",
        "(0.5 * self.basis.box_moments[0, 0] * (low @ low.T))",
        "(self.basis.box_moments[0, 0] * (low @ low.T))",
        (CONFORMANCE,),
    ),
    Mutation(
        "Side.diag",
        "kernels/_tessellated_basis.py",
        "self._times_moments(k, self.volume)",
        "self._times_moments(k, self.moment_ratio)",
        (CONFORMANCE,),
    ),
    Mutation(
        "ProductPair.subtract_means",
        "kernels/_tessellated_pair.py",
        "shift = 0.5 * row_means.mean() - row_means",
        "shift = row_means.mean() - row_means",
        (CONFORMANCE,),
    ),
    Mutation(
        "push (rows of zeros)",
        "kernels/_tessellated_pair.py",
        "np.logical_or.reduce([part.any(axis=1) for part, _ in parts])",
        "np.logical_or.reduce([part.all(axis=1) for part, _ in parts])",
        (CONFORMANCE, TESSELLATED),
    ),
    Mutation(
        "tiles (rows)",
        "kernels/_tessellated_pair.py",
        "yield slice(row, min(n_rows, row + TILE))",
        "yield slice(row, min(n_rows, row + TILE - 1))",
        (TESSELLATED,),
    ),
    Mutation(
        "ProductPair._tiled (mirror image)",
        "kernels/_tessellated_pair.py",
        "out[rows, cols] = out[cols, rows].T if mirrored",
        "out[rows, cols] = out[rows, cols].T if mirrored",
        (TESSELLATED,),
    ),
    Mutation(
        "TessellatedMoments.gradient",
        "kernels/_tessellated.py",
        "cross[:, g] = np.outer(",
        "cross[:, g] = -np.outer(",
        (CONFORMANCE,),
    ),
    Mutation(
        "TessellatedMoments._factored_sensitivities",
        "kernels/_tessellated.py",
        "h = self._moment_sums[0] @ high + basis.box_moments[0, 0] * tail",
        "h = self._moment_sums[0] @ high",
        (CONFORMANCE,),
    ),
    Mutation(
        "TessellatedKernels.resolve",
        "kernels/_tessellated.py",
        "factors = 1.0 / np.sqrt(np.where(positive, mean_square, 1.0))",
        "factors = 1.0 / np.where(positive, mean_square, 1.0)",
        (TESSELLATED,),
    ),
    # ---- other kernel sets, and what all share
    Mutation(
        "BoundFeatures.factor_gram (centring)",
        "kernels/_features.py",
        "            phi_right -= phi_right.mean(axis=0)\n",
        "",
        (CONFORMANCE,),
    ),
    Mutation(
        "BoundFeatures.factor_gram (blocks of rows)",
        "kernels/_features.py",
        "rows = slice(start, start + _GRAM_ROWS)",
        "rows = slice(start, start + _GRAM_ROWS - 1)",
        (OTHER_SETS,),
    ),
    Mutation(
        "BoundFeatures.factor_gram (symmetry)",
        "kernels/_features.py",
        "corner[...] = 0.5 * (corner + corner.T)",
        "corner[...] = corner",
        (OTHER_SETS,),
    ),
    Mutation(
        "row_tiles",
        "kernels/_predictor.py",
        "return [slice(start, start + step) for start in range(0, n_rows, step)]",
        "return [slice(start, start + step - 1) for start in range(0, n_rows, step)]",
        (OTHER_SETS,),
    ),
    Mutation(
        "FactoredSensitivities.gram",
        "kernels/_sensitivity.py",
        "np.column_stack([g, beyond])",
        "np.column_stack([g, 0.0 * beyond])",
        (CONFORMANCE,),
    ),
    Mutation(
        "_gram of sensitivities (blocks of rows)",
        "kernels/_sensitivity.py",
        "rows, cols = slice(start, start + _BLOCK), slice(start, None)",
        "rows, cols = slice(start, start + _BLOCK - 1), slice(start, None)",
        (CONFORMANCE,),
    ),
    Mutation(
        "DenseSensitivities.matrix",
        "kernels/_sensitivity.py",
        "packed *= np.where(row == column, 1.0, np.sqrt(2.0))",
        "packed *= np.where(row == column, 1.0, 2.0)",
        (CONFORMANCE,),
    ),
    Mutation(
        "RowwiseSensitivities.gram",
        "kernels/_sensitivity.py",
        "block += lh[i][:, theirs] * lh[j][:, ours].T",
        "block -= lh[i][:, theirs] * lh[j][:, ours].T",
        (CONFORMANCE,),
    ),
    Mutation(
        "RowwiseSensitivities.stacked",
        "kernels/_sensitivity.py",
        "[part._group + offsets[k] for k, part in enumerate(parts)]",
        "[part._group for k, part in enumerate(parts)]",
        (CONFORMANCE,),
    ),
    Mutation(
        "UnitBox.fit",
        "kernels/_scaling.py",
        "return 4 * np.finfo(float).eps",
        "return 0 * np.finfo(float).eps",
        (OTHER_SETS,),
    ),
    Mutation(
        "UnitBox.apply",
        "kernels/_scaling.py",
        "(raw - self.offset) / self.span",
        "(raw - self.offset) * self.span",
        (CONFORMANCE,),
    ),
    Mutation(
        "UnitBox._pulled",
        "kernels/_scaling.py",
        "0.5 + np.repeat(scale, self.counts) * (self.heights - 0.5)",
        "np.repeat(scale, self.counts) * self.heights",
        (SCALING,),
    ),
    Mutation(
        "UnitBox.invert",
        "kernels/_scaling.py",
        "np.interp(scaled[:, k], heights, knots)",
        "scaled[:, k]",
        (SCALING,),
    ),
    Mutation(
        "quantiles (middle of the interval)",
        "kernels/_scaling.py",
        "(np.cumsum(mass) - 0.5 * mass)",
        "np.cumsum(mass)",
        (SCALING,),
    ),
    Mutation(
        "quantiles (both neighbours of a level)",
        "kernels/_scaling.py",
        "np.unique(np.concatenate([above, np.maximum(above - 1, 0)]))",
        "np.unique(above)",
        (SCALING,),
    ),
    Mutation(
        "robust scaling (tails)",
        "kernels/_scaling.py",
        "1.0 - 0.25 / np.maximum(np.abs(z), 1.0)",
        "1.0 - 0.25 / np.maximum(np.abs(z), 1.0) ** 2",
        (SCALING,),
    ),
    Mutation(
        "Basis.mean_power (margins per feature)",
        "kernels/_tessellated_basis.py",
        "else self.upper[variable]",
        "else self.upper[0]",
        ("kernels/test_tessellated.py",),
    ),
    # ---- single kernels
    Mutation(
        "LaplaceSide.factors (rows beyond the range)",
        "kernels/_distances.py",
        "np.exp(-centred.sum(axis=1) - beyond)",
        "np.exp(-centred.sum(axis=1))",
        (SINGLE,),
    ),
    Mutation(
        "LaplaceSide.product",
        "kernels/_distances.py",
        "weights[used] * self.factor[used, None]",
        "weights[used]",
        (SINGLE,),
    ),
    Mutation(
        "GaussianSide.tile (cancellation)",
        "kernels/_distances.py",
        "_LARGEST_NORM = 1e6",
        "_LARGEST_NORM = 1e60",
        (SINGLE,),
    ),
    Mutation(
        "BoundSingleKernel.product_form (centring)",
        "kernels/_single.py",
        "0.5 * means.mean() - means",
        "means.mean() - means",
        (SINGLE,),
    ),
    Mutation(
        "one SVM for a single kernel",
        "estimators/_base.py",
        "bound.cone.dimension == 1 and",
        "bound.cone.dimension == 0 and",
        ("estimators/test_families.py",),
    ),
    # ---- noise and slopes
    Mutation(
        "noise_level (degrees of freedom)",
        "estimators/_noise.py",
        "ridge * float(a @ a) / float(H.sum())",
        "float(a @ a) / float(H.sum()) ** 2",
        ("estimators/test_noise.py",),
    ),
    Mutation(
        "noise_level (estimates remembered by rows and target)",
        "estimators/_noise.py",
        "key = _digest(X, y, weight)",
        "key = _digest(X, weight)",
        ("estimators/test_noise.py",),
    ),
    Mutation(
        "paper_settings (the tube)",
        "estimators/_paper.py",
        '"regression": {"epsilon": 0.1}',
        '"regression": {"epsilon": "auto"}',
        ("estimators/test_paper_settings.py",),
    ),
    Mutation(
        "relevance_scale (steps before the pull)",
        "inspection/_slopes.py",
        "_STEP * box.feature_scale[k]",
        "_STEP",
        ("inspection/test_slopes.py",),
    ),
    # ---- dictionaries and sums
    Mutation(
        "BoundDictionary.forms (entries off the diagonal)",
        "kernels/_bound_dictionary.py",
        "weights = np.outer(own_w[own], 2.0 * own_w[own.start :])",
        "weights = np.outer(own_w[own], own_w[own.start :])",
        (CONFORMANCE,),
    ),
    Mutation(
        "_Shared._distances",
        "kernels/_functions.py",
        "squares -= 2.0 * self.products",
        "squares -= self.products",
        ("multiple_kernels/test_dictionary.py",),
    ),
    Mutation(
        "BoundDictionary._kept (weights of the matrix)",
        "kernels/_bound_dictionary.py",
        "return kept is not None and np.array_equal(kept, weights)",
        "return kept is not None",
        (WEIGHTS,),
    ),
    Mutation(
        "_centre",
        "kernels/_bound_dictionary.py",
        "means -= 0.5 * means.mean()",
        "means -= means.mean()",
        (CONFORMANCE,),
    ),
    Mutation(
        "BoundSum._gram (a part)",
        "kernels/_sum.py",
        "        for part, factor in own[1:]:",
        "        for part, factor in own[2:]:",
        (CONFORMANCE,),
    ),
    Mutation(
        "KernelSum.resolve (constant columns)",
        "kernels/_sum.py",
        "part.on_features(varying) if some_constant and not part.names_features else part",
        "part",
        (CONFORMANCE,),
    ),
    Mutation(
        "KernelsOnFeatures.seen (order of the columns)",
        "kernels/_on_features.py",
        "rows[:, list(self.features)]",
        "rows[:, sorted(self.features)]",
        (CONFORMANCE,),
    ),
    # ---- cones
    Mutation(
        "project_on_simplex",
        "cones/_cone.py",
        "last = np.flatnonzero(sorted_values > shifts * inverse)[-1]",
        "last = len(shifts) - 1",
        (CONES,),
    ),
    Mutation(
        "Search (a constant)",
        "automatic/_search.py",
        "_CS = np.concatenate([[_CONSTANT_C], np.geomspace(0.1, 1e6, 15)])",
        "_CS = np.geomspace(0.1, 1e6, 16)",
        (SCALES,),
    ),
    Mutation(
        "LogTarget.fit (far from zero)",
        "automatic/_targets.py",
        "zero < own.min() < zero + _FAR",
        "zero < own.min()",
        (SCALES,),
    ),
    Mutation(
        "_check_certificate (infinite gaps)",
        "persistence/_checks.py",
        "near = np.isfinite(expected) and ",
        "near = ",
        (FAULTY_FILES,),
    ),
    Mutation(
        "_check_predictions",
        "persistence/_checks.py",
        "    _check_predictions(model)\n",
        "",
        (FAULTY_FILES,),
    ),
    Mutation(
        "_check_range (rows)",
        "persistence/_checks.py",
        "if not ((rows >= low) & (rows <= high)).all():",
        "if not (rows >= low).all():",
        (FAULTY_FILES,),
    ),
    Mutation(
        "_has_place_in (overflow)",
        "estimators/_checkpoint.py",
        " and bool(np.isfinite(dual.kappa(w)))",
        "",
        (FAULTY_FILES,),
    ),
    Mutation(
        "project_on_simplex (sizes of vertices)",
        "cones/_cone.py",
        "np.maximum(values - shifts[last] / sizes, 0.0)",
        "np.maximum(values - shifts[last], 0.0)",
        (CONES,),
    ),
    Mutation(
        "Cone.support",
        "cones/_cone.py",
        "return float(spectrum.values.max(initial=0.0))",
        "return max(0.0, float(spectrum.values.mean()))",
        (CONES, SADDLE_POINT),
    ),
    Mutation(
        "Cone.trimmed",
        "cones/_cone.py",
        "price = np.maximum(lent, taken)",
        "price = lent",
        (CONES,),
    ),
    Mutation(
        "PSD.spectrum (trace n)",
        "cones/_psd.py",
        "return Spectrum(self.total * values, vectors)",
        "return Spectrum(values, vectors)",
        (CONES, SADDLE_POINT),
    ),
    Mutation(
        "MatrixScaling.towards (sign of the correction)",
        "cones/_psd.py",
        "return target - error",
        "return target + error",
        (CONES,),
    ),
    Mutation(
        "WeightScaling.towards (sign)",
        "cones/_nonnegative.py",
        "mu / self._middle - self._middle",
        "mu / self._middle + self._middle",
        (CONES,),
    ),
    Mutation(
        "MatrixScaling.room",
        "cones/_psd.py",
        "np.linalg.eigvalsh(change / root / root[:, None])[0]",
        "np.linalg.eigvalsh(change / root / root[:, None])[-1]",
        (CONES,),
    ),
    Mutation(
        "ProductScaling.room",
        "cones/_product.py",
        "return min(rooms, default=np.inf)",
        "return max(rooms, default=np.inf)",
        (CONES,),
    ),
    # ---- the problem
    Mutation(
        "DualPoint.lower (half)",
        "problems/_saddle_point.py",
        "value = self._problem.dual.kappa(self.w) - 0.5 * self.support",
        "value = self._problem.dual.kappa(self.w) - self.support",
        (SADDLE_POINT,),
    ),
    Mutation(
        "DualPoint.dual_value (sign)",
        "problems/_saddle_point.py",
        "kappa(self.w) - 0.5 * inner(self.gradient, P)",
        "kappa(self.w) + 0.5 * inner(self.gradient, P)",
        (SADDLE_POINT, SUMS),
    ),
    Mutation(
        "DualPoint.upper (norm)",
        "problems/_saddle_point.py",
        "value = 0.5 * self._form(P, scores) + loss",
        "return loss, intercept",
        (SADDLE_POINT,),
    ),
    # ---- the interior point iteration
    Mutation(
        "_NewtonSystem.corrector (correction of the halves)",
        "svm/_interior_point.py",
        "aim - self._below * state.zl - affine.alpha * affine.zl,",
        "aim - self._below * state.zl,",
        (JOINT, INTERIOR),
    ),
    Mutation(
        "_NewtonSystem.corrector (correction of the cone)",
        "svm/_interior_point.py",
        "self.scaling.towards(mu, affine.X, affine.Z),",
        "self.scaling.towards(mu),",
        (JOINT,),
    ),
    Mutation(
        "_NewtonSystem._border (sign of the trace)",
        "svm/_interior_point.py",
        "rows = np.vstack([rows, -self._J.apply(self._unit)])",
        "rows = np.vstack([rows, self._J.apply(self._unit)])",
        (JOINT,),
    ),
    Mutation(
        "_NewtonSystem._step (residual of the sum)",
        "svm/_interior_point.py",
        "target[:count] += method.sum_residual",
        "target[:count] -= method.sum_residual",
        (JOINT,),
    ),
    Mutation(
        "_MachineFactors.solve (coupling of the machines)",
        "svm/_interior_point.py",
        "solution: FloatArray = alone - self._solved @ coupling",
        "solution: FloatArray = alone",
        (WEIGHTS,),
    ),
    # ---- solvers
    Mutation(
        "RestrictedProblem.linearise (held samples)",
        "solvers/central_path.py",
        "scores=K @ w + self._held.apply(M),",
        "scores=K @ w,",
        (WORKING_SET,),
    ),
    Mutation(
        "_WorkingSet._solve_svm (samples that moved although held)",
        "solvers/working_set.py",
        "self._restless |= self._is_held & far",
        "self._restless |= self._restless & far",
        (WORKING_SET,),
    ),
    Mutation(
        "_WorkingSet._choose_rows (support vectors of earlier rounds)",
        "solvers/working_set.py",
        "        self._seen |= w != 0.0\n        seen, most",
        "        self._seen = dual.free(w)\n        seen, most",
        (WORKING_SET,),
    ),
    Mutation(
        "Run.replace (bound of the new pair)",
        "solvers/_run.py",
        "met = self.gap <= self.tol\n        self.raise_bound(point)\n",
        "met = self.gap <= self.tol\n",
        (JOINT,),
    ),
    Mutation(
        "_WeightLine.slope (sign)",
        "solvers/simple_mkl.py",
        "return -0.5 * forms",
        "return 0.5 * forms",
        (WEIGHTS,),
    ),
    Mutation(
        "_descent_direction (weights at zero)",
        "solvers/simple_mkl.py",
        "    direction[(weights <= 0) & (direction < 0)] = 0.0\n",
        "",
        (WEIGHTS,),
    ),
    Mutation(
        "alignment_system (centring)",
        "multiple_kernels/rules.py",
        "centred = tile - mean[own][:, None] - (mean - grand[number])",
        "centred = tile - mean[own][:, None] - mean",
        (RULES,),
    ),
    # ---- the SVM
    Mutation(
        "newton_step (kink of the tube)",
        "svm/_newton.py",
        "slope = gradient[free] - dual.epsilon[free]",
        "slope = gradient[free] + dual.epsilon[free]",
        (DUAL, INTERIOR),
    ),
    Mutation(
        "newton_step (bounds)",
        "svm/_newton.py",
        "low = np.where(start > 0, 0.0, dual.lower[free])",
        "low = np.where(start > 0, dual.lower[free], 0.0)",
        (DUAL, INTERIOR),
    ),
    Mutation(
        "_direction (equation of the sum)",
        "svm/_newton.py",
        "direction: FloatArray = solved_slope - solved @ multipliers",
        "direction: FloatArray = solved_slope + solved @ multipliers",
        (DUAL, INTERIOR),
    ),
    Mutation(
        "Halves.of",
        "svm/_halves.py",
        "cost=sign * dual.linear[sample] - dual.epsilon[sample],",
        "cost=sign * dual.linear[sample],",
        (INTERIOR,),
    ),
    Mutation(
        "Halves.split",
        "svm/_halves.py",
        "result[other] = self.sign[other] * (dw[sample] - self.sign[safe] * result[safe])",
        "result[other] = self.sign[other] * (dw[sample] + self.sign[safe] * result[safe])",
        (INTERIOR,),
    ),
    # ---- the squared loss
    Mutation(
        "SquaredLoss.curvature",
        "svm/_loss.py",
        "return 1.0 / self.C",
        "return self.C",
        (LOSS, SQUARED),
    ),
    Mutation(
        "SquaredLoss.best_intercept (weights)",
        "svm/_loss.py",
        "return float(self.C @ residual) / float(self.C.sum())",
        "return float(residual.mean())",
        (LOSS, SQUARED),
    ),
    Mutation(
        "RidgeInverse.form (the sum of the dual vector)",
        "svm/_smooth.py",
        "half.T @ half - np.outer(border, border / self._total)",
        "half.T @ half",
        (SQUARED,),
    ),
    Mutation(
        "InteriorPoint (curvature)",
        "svm/_interior_point.py",
        "bent = halves.curvature * state.alpha",
        "bent = 0.0 * state.alpha",
        (SQUARED,),
    ),
    Mutation(
        "newton (gradient of the model)",
        "solvers/newton.py",
        "self._half_gradient = 0.5 * D",
        "self._half_gradient = -0.5 * D",
        (SQUARED,),
    ),
    Mutation(
        "SharedKernels._own (other rows of another machine)",
        "kernels/_shared.py",
        "if not np.array_equal(self.spread(own), rows):",
        "if len(own) > len(rows):",
        (SQUARED,),
    ),
    Mutation(
        "BaseLearnedRidge._merged_loo_scores (copies)",
        "estimators/_ridge.py",
        "left_out=1.0 / np.maximum(rows.copies, 1.0),",
        "left_out=np.ones(len(X)),",
        (LEAVE_ONE_OUT,),
    ),
    # ---- a floor
    Mutation(
        "MomentsWithFloor.face_gradient",
        "kernels/_floor.py",
        "return free + (self._floor * self._centre_form) * unit",
        "return free",
        (CONFORMANCE, SQUARED),
    ),
    Mutation(
        "SensitivitiesWithFloor.gram",
        "kernels/_floor.py",
        "total: FloatArray = mixed + mixed.T",
        "total: FloatArray = 2.0 * mixed",
        (CONFORMANCE,),
    ),
    Mutation(
        "raised_parameter",
        "kernels/_floor.py",
        "return (1.0 - floor) * P + (floor * cone.trace(P)) * cone.centre",
        "return P + (floor * cone.trace(P)) * cone.centre",
        (CONFORMANCE, SQUARED),
    ),
    # ---- quadratic forms of kernels on one feature
    Mutation(
        "GaussianSeries.sums (terms)",
        "kernels/_expansions.py",
        "np.searchsorted(-self.terms, -orders)",
        "np.searchsorted(-self.terms, -orders - 4)",
        ("multiple_kernels/test_dictionary.py",),
    ),
    Mutation(
        "GaussianSeries.of (centres)",
        "kernels/_expansions.py",
        "centres = 0.5 * (low + high)",
        "centres = low",
        ("multiple_kernels/test_dictionary.py",),
    ),
    Mutation(
        "GaussianSeries.sums (factorials)",
        "kernels/_expansions.py",
        "gammaln(orders + 1.0)",
        "gammaln(orders + 2.0)",
        ("multiple_kernels/test_dictionary.py",),
    ),
    Mutation(
        "series_length (what is left out)",
        "kernels/_expansions.py",
        "_LOG_TAIL = -42.0",
        "_LOG_TAIL = -24.0",
        ("multiple_kernels/test_dictionary.py",),
    ),
    Mutation(
        "PolynomialSeries.of (offset)",
        "kernels/_expansions.py",
        "offset ** (degree - power)",
        "offset**power",
        ("multiple_kernels/test_dictionary.py",),
    ),
    Mutation(
        "PolynomialSeries.forms (features)",
        "kernels/_expansions.py",
        "[:, self.place]",
        "[:, self.place - 1]",
        ("multiple_kernels/test_dictionary.py",),
    ),
    Mutation(
        "BoundDictionary.forms (normalisation)",
        "kernels/_bound_dictionary.py",
        "forms[known] = self.kernels.factors[known] * series",
        "forms[known] = series",
        ("multiple_kernels/test_dictionary.py",),
    ),
    Mutation(
        "BoundDictionary._series (cosine)",
        "kernels/_bound_dictionary.py",
        "if not self.kernels.cosine:",
        "if self.kernels is not None:",
        ("multiple_kernels/test_dictionary.py",),
    ),
    # ---- what users see of the bookkeeping of fits, searches and data
    Mutation(
        "DualProblem.movable (samples that fall)",
        "svm/_problem.py",
        "w[rows] > self.lower[rows], count)",
        "w[rows] >= self.lower[rows], count)",
        ("solvers/test_several_machines.py",),
    ),
    Mutation(
        "DualProblem.movable (samples that rise)",
        "svm/_problem.py",
        "w[rows] < self.upper[rows], count)",
        "w[rows] <= self.upper[rows], count)",
        ("solvers/test_several_machines.py",),
    ),
    Mutation(
        "Monomials",
        "kernels/_monomials.py",
        "for columns in self._factors[1:]:",
        "for columns in self._factors[1:2]:",
        ("kernels/test_predictor.py",),
    ),
    Mutation(
        "FunctionKernel (no rows)",
        "kernels/_functions.py",
        "if not len(left) or not len(right):",
        "if not len(left):",
        ("multiple_kernels/test_dictionary.py",),
    ),
    Mutation(
        "stacked_to_merged",
        "estimators/_layouts.py",
        "        start += len(rows)\n",
        "",
        ("estimators/test_layouts.py",),
    ),
    Mutation(
        "DualLayouts.stacked_to_given",
        "estimators/_layouts.py",
        "given[:, self.given_rows] = stacked_to_merged(",
        "given[:, np.sort(self.given_rows)] = stacked_to_merged(",
        ("estimators/test_layouts.py",),
    ),
    Mutation(
        "DualLayouts.given_to_stacked",
        "estimators/_layouts.py",
        "return merged_to_stacked(self.machine_rows, given[:, self.given_rows])",
        "return merged_to_stacked(self.machine_rows, given[:, np.sort(self.given_rows)])",
        ("estimators/test_layouts.py",),
    ),
    Mutation(
        "winners (a score of zero)",
        "estimators/_machines.py",
        "        votes[:, first] += score > 0\n        votes[:, second] += score <= 0",
        "        votes[:, first] += score >= 0\n        votes[:, second] += score < 0",
        ("estimators/test_several_classes.py",),
    ),
    Mutation(
        "one_vs_rest_scores (a score of zero)",
        "estimators/_machines.py",
        "        votes[:, first] += score >= 0\n        votes[:, second] += score < 0",
        "        votes[:, first] += score > 0\n        votes[:, second] += score <= 0",
        ("estimators/test_several_classes.py",),
    ),
    Mutation(
        "one_vs_rest_scores (confidence)",
        "estimators/_machines.py",
        "confidence / (3.0 * (np.abs(confidence) + 1.0))",
        "confidence / (3.0 * (np.abs(confidence) + 2.0))",
        ("estimators/test_several_classes.py",),
    ),
    Mutation(
        "representative_rows (weights)",
        "estimators/_relevance.py",
        "weight = np.cumsum(rows.weight[order])",
        "weight = np.cumsum(np.ones(len(order)))",
        ("estimators/test_relevance_attributes.py",),
    ),
    Mutation(
        "representative_rows (units)",
        "estimators/_relevance.py",
        "scaled.sum(axis=1), rows.y))",
        "rows.X.sum(axis=1), np.zeros(len(rows.X))))",
        ("estimators/test_relevance_attributes.py",),
    ),
    Mutation(
        "representative_rows (few rows)",
        "estimators/_relevance.py",
        "return rows.X.copy()",
        "return rows.X[1:].copy()",
        ("estimators/test_relevance_attributes.py",),
    ),
    Mutation(
        "hold_out (classes)",
        "estimators/_early_stopping.py",
        "stratify=y[present] if stratify else None,",
        "stratify=None,",
        ("estimators/test_early_stopping.py",),
    ),
    Mutation(
        "ValidationSet.score (weights)",
        "estimators/_early_stopping.py",
        "sample_weight=self.weight))",
        "sample_weight=None))",
        ("estimators/test_early_stopping.py",),
    ),
    Mutation(
        "ScoreMonitor (first best score)",
        "estimators/_early_stopping.py",
        "int(np.argmax(self._scores))",
        "(len(self._scores) - 1 - int(np.argmax(self._scores[::-1])))",
        ("estimators/test_early_stopping.py",),
    ),
    Mutation(
        "ScoreMonitor (same model)",
        "estimators/_early_stopping.py",
        "if record.value != self._scored_value:",
        "if record is not None:",
        ("estimators/test_early_stopping.py",),
    ),
    Mutation(
        "relevance_seconds (kernels with a weight)",
        "inspection/_summary.py",
        "for k in np.flatnonzero(part.parameter)]",
        "for k in range(len(part.parameter))]",
        ("estimators/test_notebook.py",),
    ),
    Mutation(
        "relevance_seconds (support vectors)",
        "inspection/_summary.py",
        "7.5e-5 * n_support * width",
        "7.5e-5 * width",
        ("estimators/test_notebook.py",),
    ),
    Mutation(
        "quick_relevance",
        "inspection/_summary.py",
        "relevance_seconds(model) <= _QUICK_SECONDS",
        "relevance_seconds(model) <= np.inf",
        ("estimators/test_notebook.py",),
    ),
    Mutation(
        "default_grid",
        "model_selection/_grid.py",
        'and "delta" in learner.kernels.get_params()',
        'and "degree" in learner.kernels.get_params()',
        ("model_selection/test_kernel_path_cv.py",),
    ),
    Mutation(
        "SearchResults.remaining_candidates (variance)",
        "model_selection/_results.py",
        "/ max(1, len(indices) - 1)",
        "/ len(indices) / 2",
        ("model_selection/test_kernel_path_cv.py",),
    ),
    Mutation(
        "SearchResults.remaining_candidates (first fold)",
        "model_selection/_results.py",
        "least = float(np.median(means))",
        "least = float(means.mean())",
        ("model_selection/test_kernel_path_cv.py",),
    ),
    Mutation(
        "split_paths",
        "model_selection/_path.py",
        "if independent else len(path.candidates)",
        "if path else len(path.candidates)",
        ("model_selection/test_kernel_path_cv.py",),
    ),
    Mutation(
        "predict (categories as text)",
        "cli/_predict.py",
        "if kind == CATEGORY]",
        "if kind != CATEGORY]",
        ("cli/test_automatic.py",),
    ),
    Mutation(
        "Table._values (empty cells)",
        "cli/_tables.py",
        "t if t and t.strip() else None",
        't if t else ""',
        ("cli/test_automatic.py",),
    ),
    Mutation(
        "is_far_from_optimal",
        "inspection/_summary.py",
        "return not gap <= max(tol, LARGEST_USABLE_GAP)",
        "return not gap <= max(tol, 100 * LARGEST_USABLE_GAP)",
        ("estimators/test_notebook.py",),
    ),
    Mutation(
        "linear_share",
        "inspection/_linearity.py",
        "features = features - features.mean(axis=0)",
        "features = features - 0.9 * features.mean(axis=0)",
        ("inspection/test_linearity.py",),
    ),
    Mutation(
        "convergence_message (remedy)",
        "estimators/_convergence.py",
        'precise = "" if estimator.precision == "float64" else',
        'precise = "" if estimator.precision == "float32" else',
        ("estimators/test_multiple_kernels.py",),
    ),
    Mutation(
        "load (a description)",
        "datasets/_load.py",
        "info = REGISTRY[name] if isinstance(name, str) else name",
        "info = REGISTRY[name if isinstance(name, str) else name.name]",
        ("datasets/test_datasets.py",),
    ),
    # ---- estimators and what looks at them
    Mutation(
        "TrainingSet.build (rows of weight zero)",
        "estimators/_training_set.py",
        "np.flatnonzero(sample_weight > 0)",
        "np.flatnonzero(sample_weight >= 0)",
        (ESTIMATORS, PROPERTIES),
    ),
    Mutation(
        "TrainingSet.build (weights of equal rows)",
        "estimators/_training_set.py",
        "weight = _sorted_sums(sample_weight[positive], inverse, len(first))",
        "weight = sample_weight[positive[first]]",
        (ESTIMATORS, PROPERTIES),
    ),
    Mutation(
        "_sorted_sums",
        "estimators/_training_set.py",
        'order = np.argsort(values, kind="stable")',
        "order = np.arange(len(values))",
        (MERGED_ROWS,),
    ),
    Mutation(
        "feature_relevance",
        "inspection/_relevance.py",
        "_mean(table.var(axis=1))",
        "_mean(table.var(axis=0))",
        (RELEVANCE,),
    ),
    Mutation(
        "interaction_relevance",
        "inspection/_relevance.py",
        "        both -= both.mean(axis=2, keepdims=True)\n",
        "",
        (RELEVANCE,),
    ),
    Mutation(
        "quantile_levels",
        "inspection/_relevance.py",
        "places = (np.arange(count) + 0.5) * (len(values) / count)",
        "places = np.arange(count) * (len(values) / count)",
        (RELEVANCE,),
    ),
    Mutation(
        "_Function._spread",
        "inspection/_relevance.py",
        "places = (np.arange(count) + 0.5) * (len(X) / count)",
        "places = np.arange(count)",
        (RELEVANCE,),
    ),
    # ---- features
    Mutation(
        "scores_from_sample (what the sample knows)",
        "features/_landmarks.py",
        "rest[tile] -= (known**2).sum(axis=0)",
        "rest[tile] += (known**2).sum(axis=0)",
        (FEATURES,),
    ),
    Mutation(
        "scores_from_sample (chances)",
        "features/_landmarks.py",
        "K[np.diag_indices_from(K)] += ridge * chance",
        "K[np.diag_indices_from(K)] += ridge",
        (FEATURES,),
    ),
    Mutation(
        "_k_means (copies of a row)",
        "features/_landmarks.py",
        "np.bincount(label, weights=counts * x, minlength=count)",
        "np.bincount(label, weights=x, minlength=count)",
        (FEATURES,),
    ),
    # ---- first-order solvers
    Mutation(
        "FrankWolfeStage._slope",
        "solvers/frank_wolfe.py",
        "return -0.5 * float(self._w @",
        "return 0.5 * float(self._w @",
        (FRANK_WOLFE,),
    ),
    Mutation(
        "FrankWolfeStage._move (open loop)",
        "solvers/frank_wolfe.py",
        "length = 2.0 / (iteration + 2)",
        "length = 2.0 / (iteration + 1)",
        (FRANK_WOLFE,),
    ),
    Mutation(
        "FrankWolfeStage._exchange",
        "solvers/frank_wolfe.py",
        "direction = share * (point.best_response - source)",
        "direction = point.best_response - source",
        (FRANK_WOLFE,),
    ),
    Mutation(
        "add_scaled (blocks of rows)",
        "solvers/frank_wolfe.py",
        "change[start : start + rows]",
        "change[0:rows]",
        (FRANK_WOLFE,),
    ),
    Mutation(
        "search_root",
        "solvers/frank_wolfe.py",
        "here = low + (high - low) * low_slope / (low_slope - high_slope)",
        "here = low + (high - low) * low_slope / (low_slope + high_slope)",
        (FRANK_WOLFE,),
    ),
    Mutation(
        "AcceleratedStage._trial (extrapolation)",
        "solvers/apd.py",
        "S = here.half_gradient + theta *",
        "S = here.half_gradient - theta *",
        (APD,),
    ),
    Mutation(
        "AcceleratedStage._trial (proximal term)",
        "solvers/apd.py",
        "linear = self._problem.dual.linear + here.Mw / tau",
        "linear = self._problem.dual.linear",
        (APD,),
    ),
    Mutation(
        "AcceleratedStage._advance (test of a step)",
        "solvers/apd.py",
        "if self._safe or step <= self._allowed:",
        "if True:",
        (APD,),
    ),
    Mutation(
        "_safe_steps",
        "solvers/apd.py",
        "L_aa / (2.0 * L_aP**2)",
        "L_aa / (2.0 * L_aP)",
        (APD,),
    ),
    # ---- threads and signals
    Mutation(
        "effective_threads",
        "backend/_threads.py",
        "return min(wanted, max(_MOST_THREADS, cores))",
        "return wanted",
        (BACKEND,),
    ),
    Mutation(
        "DualSolution.unless_interrupted",
        "svm/_solution.py",
        "            raise KeyboardInterrupt\n",
        "            pass\n",
        (SIGNALS,),
    ),
    Mutation(
        "Checkpoint (exception of a signal handler)",
        "estimators/_checkpoint.py",
        "if error.errno is None:",
        "if False:",
        (SIGNALS,),
    ),
    # ---- the compiled core
    Mutation(
        "max_product_apply (race)",
        "_core/max_product.cpp",
        "std::vector<double>& sums = block.sums;",
        "static std::vector<double> sums; sums.assign(kRows * columns, 0.0);",
        (TESSELLATED, PRODUCT_FORM),
    ),
    Mutation(
        "for_row_blocks (race)",
        "_core/max_product.cpp",
        "body(own[place], first,",
        "body(own[0], first,",
        (TESSELLATED, PRODUCT_FORM),
    ),
    Mutation(
        "worth_threads",
        "_core/max_product.cpp",
        "kWorthThreads = 1 << 24;",
        "kWorthThreads = 1 << 30;",
        (TESSELLATED,),
    ),
    Mutation(
        "min_product",
        "_core/panel_loops.hpp",
        "block[i][h] = block[i][h] * lower_of(u, column[h]);",
        "block[i][h] = block[i][h] * column[h];",
        (TESSELLATED,),
    ),
    Mutation(
        "KernelRows::product",
        "_core/kernel_rows.cpp",
        "first_sum[t] += w[k] * first_[k * thin + t];",
        "first_sum[t] = w[k] * first_[k * thin + t];",
        (PRODUCT_FORM,),
    ),
    Mutation(
        "KernelRows::free_slot",
        "_core/kernel_rows.cpp",
        "  slot_of_row_[slots_[slot].row] = kNone;\n",
        "",
        (PRODUCT_FORM,),
    ),
    Mutation(
        "values_at",
        "_core/sweep_loops.hpp",
        "below = zero - residual - epsilon;",
        "below = zero - residual + epsilon;",
        (DUAL,),
    ),
    Mutation(
        "absolute_sum",
        "_core/sweep_loops.hpp",
        "double sum = sum_of(even + odd);",
        "double sum = sum_of(even);",
        (FAMILIES,),
    ),
    Mutation(
        "sum_of (order of an instruction set)",
        "_core/lanes.hpp",
        "  for (std::size_t k = 0; k < kLanes; ++k) sum += entry[k];\n",
        "  for (std::size_t p = 0; p < kParts; ++p)\n"
        "    for (std::size_t k = p; k < kLanes; k += kParts) sum += entry[k];\n",
        (INSTRUCTION_SETS,),
    ),
    Mutation(
        "Pool::serve (two threads at one place)",
        "_core/threads.cpp",
        "const std::size_t place = job->open--;",
        "const std::size_t place = 1; job->open--;",
        (TESSELLATED, PRODUCT_FORM),
    ),
    Mutation(
        "forget_the_pool",
        "_core/threads.cpp",
        "{ the_pool.store(nullptr); }",
        "{}",
        (THREADS,),
    ),
    Mutation(
        "interrupted",
        "_core/module.cpp",
        "  if (!PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) throw nb::python_error();\n",
        "",
        (SIGNALS,),
    ),
)


class Copy:
    """A copy of the package that comes first on the path of the processes it runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.package = folder / "tessella"
        shutil.copytree(PACKAGE, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        native = Path(importlib.import_module("tessella._core._native").__file__ or "")
        shutil.copy(native, self.package / "_core")
        (folder / "sitecustomize.py").write_text(SITE)
        inherited = [path for path in [os.environ.get("PYTHONPATH")] if path]
        self._env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(folder), *inherited]),
            # A mutant may have the size and the second of the file before it.
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        where = self._run("-c", "import tessella; print(tessella.__file__)").stdout.strip()
        if Path(where).parent.resolve() != self.package.resolve():
            raise MutationError(f"The copy is not what is imported, but {where}.")

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=self._env, capture_output=True, text=True, timeout=SECONDS
        )

    def failed_test(self, tests: tuple[str, ...]) -> str | None:
        """The first test that fails, or None if all pass."""
        files = [f"tests/{name}" for name in tests]
        options = ["-x", "-q", "-p", "no:cacheprovider", "--tb=short"]
        try:
            done = self._run("-m", "pytest", *options, *files)
        except subprocess.TimeoutExpired:
            return "(did not end)"
        if done.returncode == 0:
            return None
        if done.returncode < 0:
            return f"(the process was ended by signal {-done.returncode})"
        found = re.search(r"^(?:FAILED|ERROR) (\S+::.+?)( - |$)", done.stdout, re.MULTILINE)
        if done.returncode != 1 or found is None:
            raise MutationError(f"no test ran:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return found[1].removeprefix("tests/")


class Core:
    """The compiled core, built from a copy of the sources; what has not changed is kept."""

    def __init__(self, folder: Path) -> None:
        self._source = folder / "source"
        self._wheels = folder / "wheels"
        self._source.mkdir()
        for name in ("CMakeLists.txt", "pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, self._source)
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "src", self._source / "src", ignore=ignore)
        self.package = self._source / "src" / "tessella"

    def build(self, target: Path) -> None:
        """Put the module where `target`, the folder of a package's core, holds one."""
        shutil.rmtree(self._wheels, ignore_errors=True)
        options = ["--no-build-isolation", "--no-deps", "--quiet", "--disable-pip-version-check"]
        command = [sys.executable, "-m", "pip", "wheel", *options, "-w", str(self._wheels), "."]
        done = subprocess.run(command, cwd=self._source, capture_output=True, text=True)
        if done.returncode:
            raise MutationError(f"the core was not built:\n{done.stdout}{done.stderr}")
        for old in (*target.glob("_native*.so"), *target.glob("_native*.pyd")):
            old.unlink()
        with zipfile.ZipFile(next(self._wheels.glob("*.whl"))) as wheel:
            name = next(
                n for n in wheel.namelist() if "/_native." in n and n[-3:] in (".so", "pyd")
            )
            (target / Path(name).name).write_bytes(wheel.read(name))


def try_mutation(mutation: Mutation, copy: Copy, core: Core | None) -> str | None:
    """The test that notices, or None; the copy is left as it was."""
    package = copy.package if core is None else core.package
    file = package / mutation.file
    whole = file.read_text()
    file.write_text(mutation.applied(whole))
    try:
        if core is not None:
            core.build(copy.package / "_core")
        return copy.failed_test(mutation.tests)
    finally:
        file.write_text(whole)


def row(*cells: str) -> str:
    """A line of the table."""
    widths = (44, 64, 60)
    return "  ".join([*(c.ljust(w) for c, w in zip(cells, widths, strict=False)), cells[-1]])


def short(text: str, width: int = 64) -> str:
    """One line of at most some characters."""
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"


def main() -> int:
    """Try the mutations; see the head of this file."""
    parser = argparse.ArgumentParser(description="Break the library and see that tests notice.")
    parser.add_argument("--only", default="", help="a word of the function or the file")
    parser.add_argument("--compiled", action="store_true", help="also mutations of the C++ core")
    options = parser.parse_args()
    # Tests of Ctrl-C need it to work; a shell turns it off for what it runs in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    chosen = [m for m in MUTATIONS if options.only in f"{m.function} {m.file}"]
    chosen = [m for m in chosen if options.compiled or not m.compiled]
    survived, errors = [], []
    for mutation in MUTATIONS:  # all of them, so that the list cannot rot
        try:
            mutation.applied((PACKAGE / mutation.file).read_text())
        except (MutationError, OSError) as error:
            errors.append(str(error))
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder) / "copy")
        core = Core(Path(folder)) if any(m.compiled for m in chosen) else None
        if core is not None:
            core.build(copy.package / "_core")
        needed = tuple(dict.fromkeys(name for m in chosen for name in m.tests))
        failed = copy.failed_test(needed) if needed else None
        if failed is not None:
            errors.append(f"{failed} fails without any mutation.")
            chosen = []
        print(row("function", "mutation", "noticed by", "seconds"), flush=True)
        for mutation in sorted(chosen, key=lambda m: m.compiled):
            start = time.monotonic()
            try:
                test = try_mutation(mutation, copy, core if mutation.compiled else None)
            except MutationError as error:
                errors.append(str(error))
                test = "(could not be tried)"
            if test is None:
                survived.append(mutation.function)
            change = short(f"{mutation.old} -> {mutation.new.strip() or '(nothing)'}")
            seconds = f"{time.monotonic() - start:.0f}"
            print(row(mutation.function, change, test or "NOBODY", seconds), flush=True)
    for error in errors:
        print(f"error: {error}")
    print(f"{len(chosen) - len(survived)} of {len(chosen)} mutants noticed.")
    if errors:
        return 2
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())

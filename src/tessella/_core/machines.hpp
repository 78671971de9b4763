// Several machines that see different parts of the same rows, as those of pairs of classes do.
//
// The kernel matrix of a machine is that of max_product.hpp on its rows. Threads take one machine after the other, so results do not depend on their
// number, and each holds the matrix of the machine that it works on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "max_product.hpp"
#include "svm_dual.hpp"

namespace tessella {

// Samples of all machines follow one another. Machine c has the samples starts[c] to starts[c + 1],
// and sample k is the row index[k].
struct Machines {
  KernelSide rows;
  FactorSizes sizes;
  std::size_t count;           // of machines
  const std::int64_t* starts;  // count + 1 of them
  const std::int64_t* index;

  std::size_t size(std::size_t machine) const {
    return static_cast<std::size_t>(starts[machine + 1] - starts[machine]);
  }
};

// What tells when and how well the machines from `first` to `last` are to be solved.
struct MachineLimits {
  std::size_t first, last;
  double tol;                      // relative gap of each machine
  std::int64_t steps_per_sample;  // after which a machine is left to the caller
};

// Solves the duals of some machines by pair steps, from w; `problem` has the samples of all
// machines. Each machine has a report, of kMaxIter if it needs more steps.
void solve_machines(const Machines& machines, const DualProblem& problem,
                    const MachineLimits& limits, double* w, double* gradient, DualReport* reports,
                    int threads);

// The kernel matrices of all machines, one after the other.
void machine_matrices(const Machines& machines, double* out, int threads);

// out[k] = sum over the samples l of the machine of sample k of B[k, l] weights[l], where weights
// and out are (samples, columns) and rows of zeros in weights cost nothing.
void push_machines(const Machines& machines, const double* weights, std::size_t columns,
                   double* out, int threads);

}  // namespace tessella

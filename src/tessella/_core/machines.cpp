#include "machines.hpp"

#include <algorithm>

#include "loops.hpp"
#include "panels.hpp"
#include "threads.hpp"

namespace tessella {
namespace {

std::size_t largest(const Machines& machines) {
  std::size_t result = 1;
  for (std::size_t c = 0; c < machines.count; ++c) result = std::max(result, machines.size(c));
  return result;
}

// Below about a millisecond of work one thread is better, see max_product.cpp.
std::size_t useful_places(const Machines& machines, std::size_t count, int threads) {
  constexpr std::size_t kWorthThreads = 1 << 24;
  const FactorSizes& sizes = machines.sizes;
  const std::size_t entry = sizes.features + sizes.rank + 2 * sizes.thin + 2;
  std::size_t entries = 0;
  for (std::size_t c = 0; c < machines.count; ++c) entries += machines.size(c) * machines.size(c);
  return thread_places(count, 1, entries * entry > kWorthThreads ? threads : 1);
}

// The factors of the samples of one machine, and the loops over them. Nothing is allocated after
// the construction and keep_rows().
class MachineKernel : public RowsOnce {
 public:
  explicit MachineKernel(const Machines& machines)
      : machines_(machines), sizes_(machines.sizes), block_(sizes_) {
    const std::size_t most = largest(machines);
    room_.reserve(most * sizes_.features);
    high_.reserve(most * sizes_.rank);
    first_.reserve(most * sizes_.thin);
    second_.reserve(most * sizes_.thin);
    panels_.reserve(most, sizes_);
  }

  // Memory for the rows of a solver.
  void keep_rows() { RowsOnce::reserve(largest(machines_)); }

  double diagonal(std::size_t k) const override {
    double product = 1.0;
    for (std::size_t f = 0; f < sizes_.features; ++f) product *= room_[k * sizes_.features + f];
    const double* high = high_.data() + k * sizes_.rank;
    return product * dot(high, high, sizes_.rank) +
           2.0 * dot(first_.data() + k * sizes_.thin, second_.data() + k * sizes_.thin, sizes_.thin);
  }

  void take(std::size_t machine) {
    const std::size_t begin = static_cast<std::size_t>(machines_.starts[machine]);
    size_ = machines_.size(machine);
    const Factors& all = machines_.rows.factors;
    gather(all.room, begin, sizes_.features, room_);
    gather(all.high, begin, sizes_.rank, high_);
    gather(all.first, begin, sizes_.thin, first_);
    gather(all.second, begin, sizes_.thin, second_);
    panels_.pack(factors(), size_, sizes_);
  }

  void matrix(double* out) {
    for (std::size_t i = 0; i < size_; i += kRows) {
      const std::size_t count = std::min(kRows, size_ - i);
      row_loops<double>().kernel_rows(block_.pack(factors(), i, count), count, panels_.factors(),
                                      size_, sizes_, out + i * size_, size_);
    }
  }

  // The rows of the machine that was taken, to be computed as a solver asks for them.
  RowsOnce& rows() {
    begin(size_);
    return *this;
  }

 protected:
  void compute(std::size_t k, double* out) const override {
    const Factors row{room_.data() + k * sizes_.features, high_.data() + k * sizes_.rank,
                      first_.data() + k * sizes_.thin, second_.data() + k * sizes_.thin};
    row_loops<double>().kernel_row(row, panels_.factors(), size_, sizes_, out);
  }

 private:
  Factors factors() const { return {room_.data(), high_.data(), first_.data(), second_.data()}; }

  void gather(const double* all, std::size_t begin, std::size_t width, std::vector<double>& out) {
    out.resize(size_ * width);
    for (std::size_t i = 0; i < size_; ++i)
      std::copy_n(all + static_cast<std::size_t>(machines_.index[begin + i]) * width, width,
                  out.data() + i * width);
  }

  const Machines& machines_;
  const FactorSizes sizes_;
  std::vector<double> room_, high_, first_, second_;
  FactorPanels panels_;
  FactorBlock block_;
};

struct SolvingPlace {
  explicit SolvingPlace(const Machines& machines) : kernel(machines) {
    kernel.keep_rows();
    workspace.reserve(largest(machines));
  }

  MachineKernel kernel;
  DualWorkspace workspace;
};

// The rows of one machine for products with its max-product matrix.
struct PushingPlace {
  PushingPlace(const Machines& machines, std::size_t columns)
      : rows(machines.sizes.features), sums(kRows * columns) {
    const std::size_t most = largest(machines);
    gathered.reserve(most * machines.sizes.features);
    used.reserve(most);
    packed.reserve(panel_count(most) * kPanel * machines.sizes.features);
    weights.reserve(panel_count(most) * kPanel * columns);
  }

  RowBlock rows;
  std::vector<double> gathered, packed, weights, sums;
  std::vector<std::size_t> used;
};

void push_machine(const Machines& machines, std::size_t machine, const double* weights,
                  std::size_t columns, double* out, PushingPlace& own) {
  const std::size_t begin = static_cast<std::size_t>(machines.starts[machine]);
  const std::size_t size = machines.size(machine), features = machines.sizes.features;
  const double* room = machines.rows.factors.room;
  const auto row_of = [&](std::size_t k) {
    return room + static_cast<std::size_t>(machines.index[begin + k]) * features;
  };
  own.used.clear();
  own.gathered.clear();
  for (std::size_t k = 0; k < size; ++k) {
    const double* weight = weights + (begin + k) * columns;
    if (std::all_of(weight, weight + columns, [](double x) { return x == 0.0; })) continue;
    own.used.push_back(k);
    own.gathered.insert(own.gathered.end(), row_of(k), row_of(k) + features);
  }
  std::fill_n(out + begin * columns, size * columns, 0.0);
  const std::size_t used = own.used.size();
  if (used == 0) return;
  pack_panels(own.gathered.data(), used, features, own.packed);
  const std::size_t panels = panel_count(used), padded = panels * kPanel;
  own.weights.assign(columns * padded, 0.0);
  for (std::size_t j = 0; j < used; ++j)
    for (std::size_t c = 0; c < columns; ++c)
      own.weights[c * padded + j] = weights[(begin + own.used[j]) * columns + c];
  own.gathered.clear();
  for (std::size_t k = 0; k < size; ++k)
    own.gathered.insert(own.gathered.end(), row_of(k), row_of(k) + features);
  const Loops& table = loops();
  for (std::size_t i = 0; i < size; i += kRows) {
    const std::size_t count = std::min(kRows, size - i);
    const double* packed_rows = own.rows.pack(own.gathered.data(), i, count);
    std::fill(own.sums.begin(), own.sums.end(), 0.0);
    for (std::size_t p = 0; p < panels; p += kStrip)
      table.apply_strip(packed_rows, own.packed.data() + p * kPanel * features,
                        std::min(kStrip, panels - p), features, own.weights.data() + p * kPanel,
                        padded, columns, own.sums.data());
    std::copy_n(own.sums.data(), count * columns, out + (begin + i) * columns);
  }
}

}  // namespace

void solve_machines(const Machines& machines, const DualProblem& problem,
                    const MachineLimits& limits, double* w, double* gradient, DualReport* reports,
                    int threads) {
  const std::size_t count = limits.last - limits.first;
  const std::size_t places = useful_places(machines, count, threads);
  std::vector<SolvingPlace> own;
  own.reserve(places);
  for (std::size_t k = 0; k < places; ++k) own.emplace_back(machines);
  parallel_for(count, 1, places, [&](std::size_t place, std::size_t begin, std::size_t end) noexcept {
    SolvingPlace& here = own[place];
    for (std::size_t c = limits.first + begin; c < limits.first + end; ++c) {
      const std::size_t at = static_cast<std::size_t>(machines.starts[c]), size = machines.size(c);
      here.kernel.take(c);
      const DualProblem part{size, problem.linear + at, problem.epsilon + at, problem.lower + at,
                             problem.upper + at};
      DualLimits part_limits{};
      part_limits.tol = limits.tol;
      part_limits.max_iter = limits.steps_per_sample * static_cast<std::int64_t>(size);
      part_limits.seconds = -1.0;
      reports[c] = solve_small_dual(here.kernel.rows(), part, part_limits, w + at, gradient + at,
                                    here.workspace);
    }
  });
}

void machine_matrices(const Machines& machines, double* out, int threads) {
  std::vector<std::size_t> offsets(machines.count);
  std::size_t total = 0;
  for (std::size_t c = 0; c < machines.count; ++c) {
    offsets[c] = total;
    total += machines.size(c) * machines.size(c);
  }
  const std::size_t places = useful_places(machines, machines.count, threads);
  std::vector<MachineKernel> own;
  own.reserve(places);
  for (std::size_t k = 0; k < places; ++k) own.emplace_back(machines);
  parallel_for(machines.count, 1, places,
               [&](std::size_t place, std::size_t begin, std::size_t end) noexcept {
                 for (std::size_t c = begin; c < end; ++c) {
                   own[place].take(c);
                   own[place].matrix(out + offsets[c]);
                 }
               });
}

void push_machines(const Machines& machines, const double* weights, std::size_t columns,
                   double* out, int threads) {
  const std::size_t places = useful_places(machines, machines.count, threads);
  std::vector<PushingPlace> own;
  own.reserve(places);
  for (std::size_t k = 0; k < places; ++k) own.emplace_back(machines, columns);
  parallel_for(machines.count, 1, places,
               [&](std::size_t place, std::size_t begin, std::size_t end) noexcept {
                 for (std::size_t c = begin; c < end; ++c)
                   push_machine(machines, c, weights, columns, out, own[place]);
               });
}

}  // namespace tessella

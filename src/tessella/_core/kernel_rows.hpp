// Rows of a kernel matrix in product form, computed when they are asked for and kept.
//
//   K[i, j] = (prod_f min(room_i[f], room_j[f])) (high_i . high_j) + first_i . second_j
//                                                                  + second_i . first_j
//
// A solver that visits the rows of the support vectors only never pays for the others; the most
// recently used rows are kept within a given memory.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "loops.hpp"
#include "panels.hpp"

namespace tessella {

template <class T>
class KernelRows {
 public:
  using Entry = T;
  static constexpr bool kComputed = true;  // not found in memory
  KernelRows() = default;
  KernelRows(const KernelRows&) = delete;
  KernelRows& operator=(const KernelRows&) = delete;

  // Forgets all rows but keeps their memory for those of the new kernel. All matrices have
  // `count` rows and are copied.
  void reset(const Factors& factors, std::size_t count, const FactorSizes& sizes,
             std::size_t capacity);

  std::size_t size() const { return count_; }

  // Valid until three other rows have been asked for.
  const T* row(std::size_t k);

  double diagonal(std::size_t k) const;

  // out = K w, in double precision, without the rows.
  void product(const double* w, double* out, int threads) const;
  // out += K times the vector of the moves, in the same way.
  void add_rows(const Moves& moves, double* out, int threads) const;
  // out[i, j] = K[rows[i], columns[j]]
  void entries(const std::size_t* rows, std::size_t count, const std::size_t* columns,
               std::size_t width, T* out, std::size_t stride, int threads) const;

 private:
  struct Slot {
    std::unique_ptr<T[]> values;
    std::size_t row, newer, older;
  };
  struct FactorRows {
    std::vector<double> room, high, first, second;
    Factors factors() const { return {room.data(), high.data(), first.data(), second.data()}; }
  };
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  void compute(std::size_t k, T* out) const;
  FactorRows factors_of(const std::size_t* rows, std::size_t count) const;
  std::size_t free_slot();
  void unlink(std::size_t slot);
  void put_newest(std::size_t slot);

  std::size_t count_ = 0, capacity_ = 0;
  FactorSizes sizes_{0, 0, 0};
  std::vector<double> room_, high_, first_, second_;  // row-major
  FactorPanels panels_;
  std::vector<std::size_t> slot_of_row_;
  std::vector<Slot> slots_;
  std::size_t used_ = 0, newest_ = kNone, oldest_ = kNone;
};

}  // namespace tessella

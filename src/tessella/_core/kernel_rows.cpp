#include "kernel_rows.hpp"

#include <algorithm>

#include "max_product.hpp"

namespace tessella {

template <class T>
void KernelRows<T>::reset(const Factors& factors, std::size_t count, const FactorSizes& sizes,
                          std::size_t capacity) {
  if (count != count_) slots_.clear();  // rows of another length
  count_ = 0;                           // until all is there: memory may run out below
  capacity_ = std::max<std::size_t>(4, std::min(capacity, count));
  if (slots_.size() > capacity_) slots_.resize(capacity_);
  sizes_ = sizes;
  room_.assign(factors.room, factors.room + count * sizes.features);
  high_.assign(factors.high, factors.high + count * sizes.rank);
  first_.assign(factors.first, factors.first + count * sizes.thin);
  second_.assign(factors.second, factors.second + count * sizes.thin);
  panels_ = FactorPanels(factors, count, sizes);
  slot_of_row_.assign(count, kNone);
  used_ = 0;
  newest_ = oldest_ = kNone;
  count_ = count;
}

template <class T>
void KernelRows<T>::compute(std::size_t k, T* out) const {
  const Factors row{room_.data() + k * sizes_.features, high_.data() + k * sizes_.rank,
                    first_.data() + k * sizes_.thin, second_.data() + k * sizes_.thin};
  row_loops<T>().kernel_row(row, panels_.factors(), count_, sizes_, out);
}

template <class T>
const T* KernelRows<T>::row(std::size_t k) {
  std::size_t slot = slot_of_row_[k];
  if (slot == kNone) {
    slot = free_slot();
    compute(k, slots_[slot].values.get());
    slots_[slot].row = k;
    slot_of_row_[k] = slot;
    put_newest(slot);
  } else if (slot != newest_) {
    unlink(slot);
    put_newest(slot);
  }
  return slots_[slot].values.get();
}

template <class T>
std::size_t KernelRows<T>::free_slot() {
  if (used_ < capacity_) {
    if (used_ == slots_.size())
      slots_.push_back({std::unique_ptr<T[]>(new T[count_]), kNone, kNone, kNone});
    return used_++;
  }
  const std::size_t slot = oldest_;
  unlink(slot);
  slot_of_row_[slots_[slot].row] = kNone;
  return slot;
}

template <class T>
void KernelRows<T>::unlink(std::size_t slot) {
  const std::size_t newer = slots_[slot].newer, older = slots_[slot].older;
  (newer == kNone ? newest_ : slots_[newer].older) = older;
  (older == kNone ? oldest_ : slots_[older].newer) = newer;
}

template <class T>
void KernelRows<T>::put_newest(std::size_t slot) {
  slots_[slot].newer = kNone;
  slots_[slot].older = newest_;
  if (newest_ != kNone) slots_[newest_].newer = slot;
  newest_ = slot;
  if (oldest_ == kNone) oldest_ = slot;
}

template <class T>
double KernelRows<T>::diagonal(std::size_t k) const {
  const auto [features, rank, thin] = sizes_;
  double product = 1.0;
  for (std::size_t f = 0; f < features; ++f) product *= room_[k * features + f];
  const double* high = high_.data() + k * rank;
  return product * dot(high, high, rank) +
         2.0 * dot(first_.data() + k * thin, second_.data() + k * thin, thin);
}

template <class T>
void KernelRows<T>::product(const double* w, double* out, int threads) const {
  std::fill_n(out, count_, 0.0);
  add_rows(nonzeros(w, count_), out, threads);
}

template <class T>
void KernelRows<T>::add_rows(const Moves& moves, double* out, int threads) const {
  const FactorRows moved = factors_of(moves.rows.data(), moves.rows.size());
  kernel_apply({count_, {room_.data(), high_.data(), first_.data(), second_.data()}},
               {moves.rows.size(), moved.factors()}, sizes_, moves.amounts.data(), out, threads);
}

template <class T>
void KernelRows<T>::entries(const std::size_t* rows, std::size_t count, const std::size_t* columns,
                            std::size_t width, T* out, std::size_t stride, int threads) const {
  const FactorRows left = factors_of(rows, count), right = factors_of(columns, width);
  kernel_matrix<T>({count, left.factors()}, {width, right.factors()}, sizes_, out, stride,
                   threads);
}

template <class T>
typename KernelRows<T>::FactorRows KernelRows<T>::factors_of(const std::size_t* rows,
                                                             std::size_t count) const {
  const auto taken = [&](const std::vector<double>& matrix, std::size_t width) {
    std::vector<double> part(count * width);
    for (std::size_t i = 0; i < count; ++i)
      std::copy_n(matrix.data() + rows[i] * width, width, part.data() + i * width);
    return part;
  };
  return {taken(room_, sizes_.features), taken(high_, sizes_.rank), taken(first_, sizes_.thin),
          taken(second_, sizes_.thin)};
}

template class KernelRows<float>;
template class KernelRows<double>;

}  // namespace tessella

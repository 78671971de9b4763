#include "kernel_rows.hpp"

#include <algorithm>

#include "max_product.hpp"
#include "panels.hpp"

namespace tessella {
namespace {

// Panels of all samples; together with the rows of one sample they give its row of K.
struct Panels {
  const double *room, *high, *first, *second;
};

template <class T>
TESSELLA_INLINE void one_row_impl(const double* room, const double* high, const double* first,
                                  const double* second, const Panels& panels,
                                  std::size_t count, std::size_t features, std::size_t rank,
                                  std::size_t thin, T* out) {
  const auto dot = [](const double* row, const double* panel, std::size_t inner, Lanes* sum) {
    for (std::size_t f = 0; f < inner; ++f, panel += kPanel) {
      const Lanes u = all(row[f]);
      for (std::size_t h = 0; h < kHalves; ++h) {
        Lanes column;
        load(panel + h * kLanes, column);
        sum[h] += u * column;
      }
    }
  };
  for (std::size_t j = 0; j < count; j += kPanel) {
    Lanes result[kHalves], factor[kHalves], mirrored[kHalves];
    for (std::size_t h = 0; h < kHalves; ++h) {
      result[h] = all(1.0);
      factor[h] = mirrored[h] = all(0.0);
    }
    const double* panel = panels.room + j * features;
    for (std::size_t f = 0; f < features; ++f, panel += kPanel) {
      const Lanes u = all(room[f]);
      for (std::size_t h = 0; h < kHalves; ++h) {
        Lanes column;
        load(panel + h * kLanes, column);
        result[h] *= lower_of(u, column);
      }
    }
    dot(high, panels.high + j * rank, rank, factor);
    for (std::size_t h = 0; h < kHalves; ++h) {
      result[h] *= factor[h];
      factor[h] = all(0.0);
    }
    dot(first, panels.second + j * thin, thin, factor);
    dot(second, panels.first + j * thin, thin, mirrored);
    T whole[kPanel];
    for (std::size_t h = 0; h < kHalves; ++h) {
      result[h] += factor[h] + mirrored[h];
      save(result[h], whole + h * kLanes);
    }
    std::copy(whole, whole + std::min(kPanel, count - j), out + j);
  }
}

TESSELLA_SIMD void one_row(const double* room, const double* high, const double* first,
                           const double* second, const Panels& panels, std::size_t count,
                           std::size_t features, std::size_t rank, std::size_t thin, float* out) {
  one_row_impl(room, high, first, second, panels, count, features, rank, thin, out);
}
TESSELLA_SIMD void one_row(const double* room, const double* high, const double* first,
                           const double* second, const Panels& panels, std::size_t count,
                           std::size_t features, std::size_t rank, std::size_t thin,
                           double* out) {
  one_row_impl(room, high, first, second, panels, count, features, rank, thin, out);
}

double dot(const double* a, const double* b, std::size_t size) {
  double sum = 0.0;
  for (std::size_t k = 0; k < size; ++k) sum += a[k] * b[k];
  return sum;
}

}  // namespace

template <class T>
void KernelRows<T>::reset(const double* room, const double* high, const double* first,
                          const double* second, std::size_t count, std::size_t features,
                          std::size_t rank, std::size_t thin, std::size_t capacity) {
  if (count != count_) slots_.clear();  // rows of another length
  count_ = count, features_ = features, rank_ = rank, thin_ = thin;
  capacity_ = std::max<std::size_t>(4, std::min(capacity, count));
  if (slots_.size() > capacity_) slots_.resize(capacity_);
  room_.assign(room, room + count * features);
  high_.assign(high, high + count * rank);
  first_.assign(first, first + count * thin);
  second_.assign(second, second + count * thin);
  room_panels_ = pack_panels(room, count, features);
  high_panels_ = pack_panels(high, count, rank);
  first_panels_ = pack_panels(first, count, thin);
  second_panels_ = pack_panels(second, count, thin);
  slot_of_row_.assign(count, kNone);
  used_ = 0;
  newest_ = oldest_ = kNone;
}

template <class T>
void KernelRows<T>::compute(std::size_t k, T* out) const {
  const Panels panels{room_panels_.data(), high_panels_.data(), first_panels_.data(),
                      second_panels_.data()};
  one_row(room_.data() + k * features_, high_.data() + k * rank_, first_.data() + k * thin_,
          second_.data() + k * thin_, panels, count_, features_, rank_, thin_, out);
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
  double product = 1.0;
  for (std::size_t f = 0; f < features_; ++f) product *= room_[k * features_ + f];
  const double* high = high_.data() + k * rank_;
  return product * dot(high, high, rank_) +
         2.0 * dot(first_.data() + k * thin_, second_.data() + k * thin_, thin_);
}

template <class T>
void KernelRows<T>::product(const double* w, double* out, int threads) const {
  std::vector<std::size_t> support;
  std::vector<double> first_sum(thin_, 0.0), second_sum(thin_, 0.0);
  for (std::size_t k = 0; k < count_; ++k) {
    if (w[k] == 0.0) continue;
    support.push_back(k);
    for (std::size_t t = 0; t < thin_; ++t) {
      first_sum[t] += w[k] * first_[k * thin_ + t];
      second_sum[t] += w[k] * second_[k * thin_ + t];
    }
  }
  const std::size_t size = support.size();
  std::vector<double> room(size * features_), weights(rank_ * size), pushed(count_ * rank_);
  for (std::size_t s = 0; s < size; ++s) {
    std::copy_n(room_.data() + support[s] * features_, features_, room.data() + s * features_);
    for (std::size_t r = 0; r < rank_; ++r)
      weights[r * size + s] = w[support[s]] * high_[support[s] * rank_ + r];
  }
  if (rank_ > 0)
    max_product_apply(room_.data(), count_, room.data(), size, features_, weights.data(), rank_,
                      pushed.data(), threads);
  for (std::size_t k = 0; k < count_; ++k)
    out[k] = dot(high_.data() + k * rank_, pushed.data() + k * rank_, rank_) +
             dot(first_.data() + k * thin_, second_sum.data(), thin_) +
             dot(second_.data() + k * thin_, first_sum.data(), thin_);
}

template class KernelRows<float>;
template class KernelRows<double>;

}  // namespace tessella

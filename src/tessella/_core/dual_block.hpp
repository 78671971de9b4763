// Many pair steps on a few samples at a time.
//
// A pair step of the whole problem reads three rows of the kernel matrix, and nearly all it learns
// from them is which pair comes next. A block consists of the samples that violate the optimality
// conditions most and of samples that were in the block before. Its own kernel matrix stays in the
// cache of the processor for hundreds of pair steps, and afterwards each row of a sample that moved
// is read or computed once, for all samples and by all threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "loops.hpp"
#include "pair_steps.hpp"
#include "svm_dual.hpp"

namespace tessella {

template <class T>
class Block {
 public:
  // Of at most `capacity` samples out of `size`.
  Block(std::size_t capacity, std::size_t size)
      : capacity_(capacity),
        stride_(capacity + kApart),
        marks_(size, 0),
        kernel_(capacity * stride_) {
    for (auto* values : {&epsilon_, &lower_, &upper_, &diagonal_, &w_, &gradient_, &up_, &down_})
      values->resize(capacity);
  }

  // Chooses the samples of the next round, among them the two that violate the optimality
  // conditions most. The largest derivative of the objective when a sample grows is ends.up, the
  // smallest when one shrinks ends.down, which is less.
  template <class Rows>
  void choose(const Rows& rows, const Samples& all, const Extremes& ends, int threads) {
    // Of each round a quarter is new: with more, samples leave before they have found their values.
    const std::size_t fresh = arrivals_.empty() ? capacity_ : capacity_ / 4;
    const std::size_t each = std::max<std::size_t>(1, fresh / 2);
    added_.clear();
    chosen_ = 0;
    choose_violators(all, ends, each, true);
    choose_violators(all, ends, each, false);
    choose_members(all);
    replace_members();
    fill_kernel(rows, threads);
    read(all);
  }

  // Takes pair steps until the violation within the block is at most `stop`, and at most `most`.
  // Returns their number.
  std::int64_t solve(double stop, std::int64_t most) {
    const RowLoops<T>& loops = row_loops<T>();
    const Samples s = samples();
    Candidate up = tessella::loops().of_double.update_and_find_up(s.gradient, s.gradient, 0.0,
                                                                  s.gradient, s.up_offset, s.size);
    std::int64_t steps = 0;
    while (steps < most) {
      const T* row_i = kernel_row(up.index);
      const Partner partner =
          loops.find_partner(row_i, Growing{up.value, s.diagonal[up.index]}, s.diagonal,
                             s.gradient, s.down_offset, s.curvature_floor, s.size);
      if (partner.gain <= 0.0) break;
      const std::size_t j = partner.index;
      // The partner is not the sample that violates most, which is looked for only near the end.
      if (up.value - (s.gradient[j] - s.down_offset[j]) <= stop && violation(s) <= stop) break;
      const double step = move_pair(s, up.index, j, static_cast<double>(row_i[j]));
      if (step == 0.0) break;
      ++steps;
      up = loops.update_and_find_up(row_i, kernel_row(j), step, s.gradient, s.up_offset, s.size);
    }
    return steps;
  }

  // Writes the new values of the samples that moved, and returns by how much they fell: the
  // gradient changes by K times that.
  const Moves& write(const Samples& all) {
    moves_.rows.clear();
    moves_.amounts.clear();
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const std::size_t k = members_[i];
      if (w_[i] == all.w[k]) continue;
      moves_.rows.push_back(k);
      moves_.amounts.push_back(all.w[k] - w_[i]);
      all.w[k] = w_[i];
      refresh_offsets(all, k);
    }
    return moves_;
  }

 private:
  static constexpr char kMember = 1, kChosen = 2;  // of the last round, of the next one
  // Between rows of the block: with a power of two, all entries of a column would compete for the
  // same few lines of a cache.
  static constexpr std::size_t kApart = 8;

  T* kernel_row(std::size_t i) { return kernel_.data() + i * stride_; }

  static double violation(const Samples& s) {
    const Extremes ends = loops().extremes_of(s.gradient, s.up_offset, s.down_offset, s.size);
    return ends.up - ends.down;
  }

  void choose_one(std::size_t k) {
    if ((marks_[k] & kChosen) != 0 || chosen_ == capacity_) return;
    if ((marks_[k] & kMember) == 0) added_.push_back(k);
    marks_[k] |= kChosen;
    ++chosen_;
  }

  // Chooses the `count` samples that violate the conditions most by growing or by shrinking, of
  // equal ones those that come first. Only samples beyond a part of the largest violation are
  // compared, which nearly always has room for as many as in the last round.
  void choose_violators(const Samples& all, const Extremes& ends, std::size_t count,
                        bool growing) {
    const double* offset = growing ? all.up_offset : all.down_offset;
    const double sign = growing ? 1.0 : -1.0, zero = growing ? ends.down : ends.up;
    const double largest = ends.up - ends.down;
    double& part = part_[growing ? 0 : 1];
    while (true) {
      ranked_.clear();
      const double least = part * largest;
      for (std::size_t k = 0; k < all.size; ++k) {
        const double violation = sign * ((all.gradient[k] - offset[k]) - zero);
        if (violation > least) ranked_.emplace_back(-violation, k);
      }
      if (ranked_.size() >= count || part == 0.0) break;
      part = part > 0.1 ? 0.5 * part : 0.0;
    }
    if (ranked_.size() > count) {
      const auto end = ranked_.begin() + static_cast<std::ptrdiff_t>(count);
      std::nth_element(ranked_.begin(), end, ranked_.end());
      part = std::max(0.0, 0.9 * (-end->first / largest));
      ranked_.erase(end, ranked_.end());
    }
    // In an order that does not depend on how the library has found them.
    std::sort(ranked_.begin(), ranked_.end());
    for (const auto& entry : ranked_) choose_one(entry.second);
  }

  // Fills the block with members of the last round: free ones first, and those that came last.
  void choose_members(const Samples& all) {
    for (const bool free : {true, false})
      for (auto slot = arrivals_.rbegin(); slot != arrivals_.rend(); ++slot)
        if (is_free(all, members_[*slot]) == free) choose_one(members_[*slot]);
  }

  // Gives the places of members that leave to new ones. None stays empty: members leave only if
  // the block is full.
  void replace_members() {
    places_.clear();
    std::size_t stayed = 0;
    for (const std::size_t slot : arrivals_) {
      char& mark = marks_[members_[slot]];
      if ((mark & kChosen) != 0) {
        mark = kMember;
        arrivals_[stayed++] = slot;
      } else {
        mark = 0;
        places_.push_back(slot);
      }
    }
    arrivals_.resize(stayed);
    for (std::size_t i = 0; i < added_.size(); ++i) {
      if (i == places_.size()) {
        places_.push_back(members_.size());
        members_.push_back(0);
      }
      members_[places_[i]] = added_[i];
      marks_[added_[i]] = kMember;
      arrivals_.push_back(places_[i]);
    }
  }

  // Computes the rows of new members, which are their columns too.
  template <class Rows>
  void fill_kernel(const Rows& rows, int threads) {
    const std::size_t count = members_.size();
    new_rows_.resize(added_.size() * stride_);
    rows.entries(added_.data(), added_.size(), members_.data(), count, new_rows_.data(), stride_,
                 threads);
    constexpr std::size_t kTogether = 8;  // columns, so that rows are read and written in a line
    for (std::size_t first = 0; first < added_.size(); first += kTogether) {
      const std::size_t last = std::min(first + kTogether, added_.size());
      for (std::size_t j = 0; j < count; ++j)
        for (std::size_t i = first; i < last; ++i)
          kernel_row(j)[places_[i]] = new_rows_[i * stride_ + j];
    }
    for (std::size_t i = 0; i < added_.size(); ++i)
      std::copy_n(new_rows_.data() + i * stride_, count, kernel_row(places_[i]));
  }

  void read(const Samples& all) {
    floor_ = all.curvature_floor;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const std::size_t k = members_[i];
      epsilon_[i] = all.epsilon[k];
      lower_[i] = all.lower[k];
      upper_[i] = all.upper[k];
      diagonal_[i] = all.diagonal[k];
      w_[i] = all.w[k];
      gradient_[i] = all.gradient[k];
      up_[i] = all.up_offset[k];
      down_[i] = all.down_offset[k];
    }
  }

  Samples samples() {
    return {members_.size(), epsilon_.data(), lower_.data(), upper_.data(), diagonal_.data(),
            w_.data(), gradient_.data(), up_.data(), down_.data(), floor_};
  }

  const std::size_t capacity_, stride_;
  std::size_t chosen_ = 0;
  std::vector<std::size_t> members_;   // by their places in the block
  std::vector<std::size_t> arrivals_;  // places, of the member that came first at first
  std::vector<std::size_t> added_, places_;
  std::vector<char> marks_;
  std::vector<T> kernel_, new_rows_;  // in rows of `stride_`
  std::vector<double> epsilon_, lower_, upper_, diagonal_, w_, gradient_, up_, down_;
  double floor_ = 0.0;
  double part_[2] = {0.5, 0.5};
  std::vector<std::pair<double, std::size_t>> ranked_;
  Moves moves_;
};

}  // namespace tessella

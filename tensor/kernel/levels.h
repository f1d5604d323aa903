#pragma once
/// The level (level.h) in use: chosen once in a process, for all tables of kernels.
#include <atomic>
#include <cstddef>

namespace ferrite::detail {

/// Returns the position of the level in use in the list of FERRITE_EACH_LEVEL. The first call that does not throw the
/// error of choose_level decides.
std::size_t level_in_use();

/// The tables of one kind, one for each level, and access to that of the level in use.
template <class Table>
class TableInUse {
 public:
  /// Stores the tables in the order of FERRITE_EACH_LEVEL, which must be constants.
  explicit constexpr TableInUse(const Table* const* of_levels) : of_levels_(of_levels) {}

  /// Returns the table of the level in use. The first calls in a process may throw the error of choose_level.
  const Table& get() const {
    const Table* const chosen = chosen_.load(std::memory_order_relaxed);  // a constant: nothing else is published
    return chosen ? *chosen : choose();
  }

 private:
  [[gnu::cold, gnu::noinline]] const Table& choose() const {
    const Table* const chosen = of_levels_[level_in_use()];
    chosen_.store(chosen, std::memory_order_relaxed);
    return *chosen;
  }

  const Table* const* of_levels_;
  mutable std::atomic<const Table*> chosen_{nullptr};
};

/// The tables of f32 and of f64 of one kind.
template <template <class> class Table>
struct FloatTablesInUse {
  TableInUse<Table<float>> f32;
  TableInUse<Table<double>> f64;

  /// Returns the table for T. Throws as TableInUse does.
  template <class T>
  const Table<T>& of() const {
    if constexpr (sizeof(T) == 4) {
      return f32.get();
    } else {
      return f64.get();
    }
  }
};

}  // namespace ferrite::detail

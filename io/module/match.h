#pragma once
/// Which variable of a module is which tensor of a file.
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ferrite/io/module_file.h"

namespace ferrite::io::detail {

inline constexpr std::string_view kStatePrefix = "optimizer.";
inline constexpr std::string_view kModuleStatePrefix = "state.";
inline constexpr std::string_view kAliasPrefix = "alias:";

/// A variable and where its value stands in a file.
struct Slot {
  std::string name;  ///< in the file
  Variable variable;
  bool transposed = false;

  /// Whether it counts the steps of parameters, of which 0.1.0 kept one number, f64, for a group.
  bool counts_steps() const;
  /// The shape in the file.
  Shape file_shape() const;
};

/// How elements are read for a variable: as they are stored, where its dtype is only stored.
Elements elements_for(Dtype dtype);
/// Whether a file holds a tensor in this very dtype, so that nothing is converted.
bool held_as(const TensorInfo& info, Dtype dtype);

std::vector<Slot> slots_of(const nn::Module& module, const std::string& prefix,
                           const std::vector<nn::Named<State>>& states, bool module_states, std::string_view where);

/// All variables of a module as the options (for saving or loading) ask for them, then the states. Throws IoError when
/// two of them claim one name in the file.
template <class Options>
std::vector<Slot> slots_of(const nn::Module& module, const Options& options, std::string_view where) {
  return slots_of(module, options.prefix, options.states, options.module_states, where);
}

/// Whether a file holds one number where the variable has one for each parameter: it was written by a version that
/// counted steps for a group.
bool is_count_of_group(const Slot& slot, const TensorInfo& info);

/// The axes of a matrix exchanged, row-major.
Tensor transposed(const Tensor& matrix);

/// Which tensor of a file goes into which variable, and all that does not fit.
class Match {
 public:
  struct Pair {
    const Slot* slot;
    std::string_view source;  ///< name in the file
  };

  /// The slots must outlive the match. Settings of the module that the file has are compared.
  Match(const std::vector<Slot>& slots, const std::vector<nn::Setting>& settings, const TensorFile& file,
        const LoadOptions& options);

  /// One for every variable that gets a value.
  const std::vector<Pair>& pairs() const { return pairs_; }
  const LoadReport& report() const { return report_; }
  /// Throws the IoError that lists all problems, if there are any.
  void check() const;

 private:
  std::optional<std::string_view> source_of(const std::string& name) const;
  void read_names();
  void match(const Slot& slot);
  void check_setting(const nn::Setting& setting);
  void find_missing(const std::vector<Slot>& slots);
  void find_unexpected();
  void check_fit(const Slot& slot, std::string_view source);
  void check_equal(const Slot& slot, std::string_view first, std::string_view second);
  bool concerns_us(std::string_view name) const;
  bool lacks_all_states() const;
  std::string prefix_advice() const;
  std::vector<std::string> name_problems(bool hints) const;

  const TensorFile& file_;
  const LoadOptions& options_;
  std::vector<std::string_view> names_;
  std::unordered_set<std::string_view> known_;
  Metadata metadata_;
  std::unordered_set<std::string_view> used_;
  std::unordered_map<const void*, std::string_view> first_source_;  // of a variable
  std::vector<Pair> pairs_;
  std::vector<std::string> problems_;
  std::vector<Shape> missing_shapes_;  // beside report_.missing
  LoadReport report_;
};

}  // namespace ferrite::io::detail

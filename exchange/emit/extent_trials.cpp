/// Checks dynamic axes, and chooses the extents that are tried.
#include "ferrite/exchange/emit/extent_trials.h"

#include <algorithm>
#include <numeric>

namespace ferrite::exchange::detail {
namespace {

constexpr std::int64_t kMostApart = std::int64_t{1} << 31;

/// Adds sizes of which one at a time is another.
template <class F>
void add_each(const ExtentTrials::Sizes& base, const F& other, std::vector<ExtentTrials::Sizes>& all) {
  for (std::size_t k = 0; k < base.size(); ++k) {
    all.push_back(base);
    all.back()[k] = other(k);
  }
}

}  // namespace

ExtentTrials::ExtentTrials(const std::string& who, std::span<const Spec> inputs, const std::vector<DynamicAxis>& axes)
    : inputs_(inputs), axes_(axes) {
  const auto refuse = [&](const std::string& what) { throw ValueError(who + ": " + what); };
  for (const DynamicAxis& a : axes) {
    if (a.name.empty()) refuse("a dynamic axis needs a name: input " + std::to_string(a.input));
    if (a.input >= inputs.size() || a.axis < 0 || a.axis >= inputs[a.input].shape.rank())
      refuse("there is no axis " + std::to_string(a.axis) + " of input " + std::to_string(a.input) + " for '" + a.name +
             "'");
    if (a.multiple < 1) refuse("extents must be a positive number apart: " + std::to_string(a.multiple));
    const std::int64_t extent = inputs[a.input].shape[a.axis];
    if (extent % a.multiple != 0)
      refuse("'" + a.name + "' is " + std::to_string(extent) + " in axis " + std::to_string(a.axis) + " of input " +
             std::to_string(a.input) + ", no multiple of " + std::to_string(a.multiple) +
             "; give an input of such an extent");
    const auto k = static_cast<std::size_t>(std::ranges::find(names_, a.name) - names_.begin());
    if (k == names_.size()) {
      names_.push_back(a.name);
      given_.push_back(extent);
      steps_.push_back(1);
    }
    if (given_[k] != extent)
      refuse("the axes of '" + a.name + "' differ: " + std::to_string(given_[k]) + " and " + std::to_string(extent));
    if (steps_[k] > kMostApart / a.multiple) refuse("extents of '" + a.name + "' are too far apart");
    steps_[k] = std::lcm(steps_[k], a.multiple);
  }
}

std::vector<ExtentTrials::Sizes> ExtentTrials::near_sizes() const {
  Sizes base;
  for (std::size_t k = 0; k < names_.size(); ++k)
    base.push_back(given_[k] + steps_[k] * (2 + 3 * static_cast<std::int64_t>(k)));
  std::vector<Sizes> all{base};
  for (const std::int64_t more : {1, 2, 3, 4, 6, 7})  // all rests of a division by up to 8
    add_each(
        base, [&](std::size_t k) { return base[k] + more * steps_[k]; }, all);
  all.push_back(base);
  for (std::size_t k = 0; k < names_.size(); ++k) all.back()[k] += (5 + 2 * static_cast<std::int64_t>(k)) * steps_[k];
  return all;
}

std::vector<ExtentTrials::Sizes> ExtentTrials::far_sizes() const {
  const Sizes base = near_sizes()[0];
  std::vector<Sizes> all;
  const auto about = [&](std::size_t k, std::int64_t n) { return base[k] + (n - base[k]) / steps_[k] * steps_[k]; };
  add_each(
      base, [&](std::size_t k) { return about(k, base[k] + 61); }, all);
  for (const std::int64_t divisor : {240, 720})  // what most numbers divide
    add_each(
        base, [&](std::size_t k) { return about(k, (base[k] / divisor + 1) * divisor); }, all);
  all.push_back(base);
  for (std::size_t k = 0; k < names_.size(); ++k) all.back()[k] += (127 + 2 * static_cast<std::int64_t>(k)) * steps_[k];
  return all;
}

ExtentTrials::Sizes ExtentTrials::halfway(const Sizes& from, const Sizes& to) const {
  Sizes middle = from;
  for (std::size_t k = 0; k < middle.size(); ++k) middle[k] += (to[k] - from[k]) / 2 / steps_[k] * steps_[k];
  return middle;
}

std::vector<ExtentTrials::Sizes> ExtentTrials::small_sizes() const {
  const Sizes base = near_sizes()[0];
  std::vector<Sizes> all;
  for (const std::int64_t more : {0, 1}) {
    Sizes least;
    for (std::size_t k = 0; k < names_.size(); ++k)
      least.push_back((std::max<std::int64_t>(given_[k], 1) - 1) % steps_[k] + 1 + more * steps_[k]);
    add_each(
        base, [&](std::size_t k) { return least[k]; }, all);
    all.push_back(least);
  }
  return all;
}

std::string ExtentTrials::text(const Sizes& sizes) const {
  std::string s;
  for (std::size_t k = 0; k < names_.size(); ++k)
    s += (k == 0 ? "" : ", ") + names_[k] + " is " + std::to_string(sizes[k]);
  return s;
}

std::vector<Spec> ExtentTrials::specs(const Sizes& sizes) const {
  std::vector<Spec> out(inputs_.begin(), inputs_.end());
  for (const DynamicAxis& a : axes_)
    out[a.input].shape[a.axis] = sizes[static_cast<std::size_t>(std::ranges::find(names_, a.name) - names_.begin())];
  return out;
}

}  // namespace ferrite::exchange::detail

/// The values of epochs.
#include <algorithm>
#include <limits>

#include "ferrite/train/callback.h"

namespace ferrite::train {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

}  // namespace

double Logs::operator[](std::string_view name) const {
  for (const auto& [n, value] : values_)
    if (n == name) return value;
  return kNothing;
}

bool Logs::contains(std::string_view name) const {
  return std::any_of(values_.begin(), values_.end(), [&](const auto& v) { return v.first == name; });
}

void Logs::set(std::string_view name, double value) {
  for (auto& [n, old] : values_) {
    if (n != name) continue;
    old = value;
    return;
  }
  values_.emplace_back(name, value);
}

const std::vector<double>& History::operator[](std::string_view name) const {
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (names_[i] == name) return values_[i];
  std::string list;
  for (const std::string& n : names_) list += (list.empty() ? "" : ", ") + n;
  throw ValueError("history: there is no '" + std::string(name) + "'; there are " + (list.empty() ? "none" : list));
}

Logs History::at(std::int64_t epoch) const {
  if (epoch < 0 || epoch >= epochs_)
    throw ShapeError("history: there is no epoch " + std::to_string(epoch) + ", there are " + std::to_string(epochs_));
  Logs logs;
  for (std::size_t i = 0; i < names_.size(); ++i) logs.set(names_[i], values_[i][static_cast<std::size_t>(epoch)]);
  return logs;
}

void History::add(const Logs& logs) {
  ++epochs_;
  for (std::vector<double>& v : values_) v.push_back(kNothing);
  for (const auto& [name, value] : logs) set(name, value);
}

void History::set(std::string_view name, double value) {
  if (epochs_ == 0) throw ShapeError("history: no epoch has ended yet");
  const auto i = static_cast<std::size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
  if (i == names_.size()) {
    names_.emplace_back(name);
    values_.emplace_back(static_cast<std::size_t>(epochs_), kNothing);
  }
  values_[i].back() = value;
}

void Callback::restore(const std::vector<double>& state) {
  if (!state.empty())
    throw ValueError("callback " + name() + ": it remembers nothing, got " + std::to_string(state.size()) + " numbers");
}

}  // namespace ferrite::train

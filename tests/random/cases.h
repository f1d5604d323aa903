#pragma once
/// Programs that were found to fail: made small, written as text, read again.
#include <filesystem>
#include <functional>
#include <string>

#include "ferrite/compile/graph.h"
#include "ferrite/compile/plan.h"

namespace cases {

/// A program without variables, and what it is given.
struct Case {
  ferrite::Graph graph;
  ferrite::Tensors inputs;
};

/// What differs between the nodes applied one by one and a plan: a result or an error; empty for nothing.
std::string difference(const Case& c, const ferrite::PlanOptions& options);

/// The smallest program that still shows a fault, as far as cutting helps: an earlier value is the only result, a value
/// is given instead of computed.
Case reduced(Case c, const std::function<bool(const Case&)>& shows);

/// The program's text, then that of a program that gives its inputs.
std::string text(const Case& c);
Case parse(const std::string& text);
Case read(const std::filesystem::path& path);

/// Reduces a program that fails with these options and writes it to <folder>/<seed>.txt; gives what was done, in words.
std::string reduce_and_write(const std::string& folder, std::uint64_t seed, const ferrite::Graph& g,
                             const ferrite::Tensors& inputs, const ferrite::PlanOptions& options);

}  // namespace cases

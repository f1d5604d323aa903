#pragma once
/// The parts of the program that scripts/digests runs: cases, and the lines that it prints for each.
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "ferrite/ferrite.h"

namespace digests {

using namespace ferrite;

/// Writes lines "<case> <section> <text>".
class Printer {
 public:
  /// Prints to `out`; `full` adds values and programs as text to their digests.
  Printer(std::ostream& out, bool full) : out_(out), full_(full) {}

  void begin(const std::string& name) { name_ = name; }
  void line(const std::string& section, std::string text);
  /// Prints a line for a fault, which makes the program fail.
  void fault(const std::string& section, const std::string& text);
  bool full() const { return full_; }
  bool failed() const { return failed_; }

 private:
  std::ostream& out_;
  bool full_;
  bool failed_ = false;
  std::string name_;
};

struct Case {
  std::string name;  ///< name without blanks, which must never change
  std::function<void(Printer&)> run;
};

/// A program with its data, made again for every run because modules hold state.
struct Instance {
  Tensors inputs{};
  std::function<Tensors(const Tensors&)> f{};  ///< function to run; holds its module
  std::vector<Parameter> parameters{};         ///< parameters to differentiate by, besides the float inputs
};
using Make = std::function<Instance()>;

/// The expectation of a planned or compiled run: the bits of the eager one (same), or lines of its own (own).
enum class Planned { same, own };

/// Makes a case of values, gradients and second gradients, eager and planned, with the program, its plan and what a
/// tape saves for each. `costs` adds allocations and locks of a run.
Case derivatives(const std::string& name, Make make, bool costs = true, Planned planned = Planned::same);

/// A step that assigns variables: its results in five calls, then the variables' values, eager and compiled.
struct Training {
  Tensors inputs{};
  std::function<Tensors(const Tensors&)> step{};
  std::vector<Variable> variables{};
};
Case training(const std::string& name, std::function<Training()> make, Planned planned = Planned::same);

/// Makes a case of a stream over x [T, B, D], whose outputs must be those of the layer on the whole sequence, and its
/// states.
Case streamed(const std::string& name, std::function<std::unique_ptr<nn::Layer>()> make, const Tensor& x);

/// Makes a case of results that are neither differentiated nor planned.
Case values(const std::string& name, std::function<Tensors()> f);
/// Makes a case of a text that describes values, a graph, a plan, ...
Case text(const std::string& name, const std::string& section, std::function<std::string()> f);

std::vector<Case> random_cases(std::uint64_t first, std::uint64_t count);
std::vector<Case> operation_cases();
std::vector<Case> layer_cases();
std::vector<Case> recurrent_cases();
std::vector<Case> custom_cases();
std::vector<Case> scan_cases();
std::vector<Case> training_cases();
std::vector<Case> stream_cases();

/// Describes how the scans in a graph are taken apart: what is hoisted, what remains of a step, what is saved.
std::vector<std::string> scans_of(const Graph& g);

/// Returns all results of a recurrent layer as one list.
inline Tensors results_of(const nn::RecurrentResult& r) {
  Tensors all{r.output, r.state};
  if (r.cell.defined()) all.push_back(r.cell);
  return all;
}

/// Returns numbers from low to high, the same for the same stream.
inline Tensor data(const Shape& shape, std::uint64_t stream = 1, Dtype dtype = Dtype::f32, double low = -1,
                   double high = 1) {
  return uniform(shape, {11, stream, 0}, low, high, dtype);
}
/// Returns integers in [0, n).
inline Tensor below(std::int64_t n, const Shape& shape, std::uint64_t stream = 1) {
  return cast(uniform(shape, {12, stream, 0}, 0, static_cast<double>(n)), Dtype::i64);
}

}  // namespace digests

// Random programs are the same eager, planned, fused and compiled, to the bit, and have equal errors.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ferrite/compile/compile.h"
#include "ferrite/compile/passes.h"
#include "random/cases.h"
#include "random/programs.h"
#include "random/seeds.h"
#include "support/sanitized.h"

using namespace ferrite;

namespace {

const PlanOptions kOptions[] = {{}, {.fuse = false}, {.reuse = false}};

/// The results of a run, or the message of its error.
struct Outcome {
  std::vector<Tensor> results;
  std::string error;
};

template <class F>
Outcome outcome_of(F&& f) {
  try {
    const Tensors all = f();
    return {{all.begin(), all.end()}, {}};
  } catch (const Error& e) {
    return {{}, e.what()};
  }
}

std::string difference(const Outcome& got, const Outcome& wanted) {
  if (got.error != wanted.error) return "error '" + got.error + "' instead of '" + wanted.error + "'";
  for (std::size_t i = 0; i < wanted.results.size(); ++i) {
    const auto same = support::identical(got.results[i], wanted.results[i]);
    if (same) continue;
    std::ostringstream text;
    text << "result " << i << ": " << same.message();
    return text.str();
  }
  return {};
}

/// Checks one program in every way that it can run.
void check(std::uint64_t seed) {
  const programs::WideProgram f(seed);
  const Tensors in = f.values();
  const Outcome eager = outcome_of([&] { return f.run(in); });
  for (const PlanOptions& options : kOptions) {
    const auto compiled = compile([&](const Tensors& x) { return f.run(x); }, options);
    const Outcome got = outcome_of([&] { return compiled(in); });
    // Of several errors, those of shapes are found while tracing, before any value is read.
    const bool refused_by_both = compiled.plans() == 0 && !got.error.empty() && !eager.error.empty();
    const std::string text = refused_by_both ? "" : difference(got, eager);
    BOOST_TEST(text.empty(),
               "seed " << seed << ", fuse " << options.fuse << ", reuse " << options.reuse << ": " << text);
    if (text.empty()) continue;
    const char* const folder = std::getenv("FERRITE_CASES");
    if (folder && compiled.plans() > 0)
      BOOST_TEST_MESSAGE("reduced to " << cases::reduce_and_write(folder, seed, compiled.graph(), in, options));
    return;
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(random_programs)

BOOST_AUTO_TEST_CASE(give_the_bits_and_the_errors_of_eager_ones) {
  const seeds::Range range = seeds::asked_for(support::unless_sanitized(2000U, 100U));
  for (std::uint64_t k = 0; k < range.count; ++k) check(range.first + k);
}

/// The programs are elementwise, of the kind that kernels are made of, including long ones.
BOOST_AUTO_TEST_CASE(of_elementwise_operations_give_the_bits_of_eager_ones) {
  const seeds::Range range = seeds::asked_for(support::unless_sanitized(2000U, 100U));
  for (std::uint64_t k = 0; k < range.count; ++k)
    for (const PlanOptions& options : kOptions) {
      const std::string text = programs::difference(programs::Program(range.first + k), options);
      BOOST_TEST(text.empty(), "seed " << range.first + k << ", fuse " << options.fuse << ", reuse " << options.reuse
                                       << ": " << text);
    }
}

/// These are reduced cases that random programs once found.
BOOST_AUTO_TEST_CASE(cases_that_were_found) {
  std::size_t count = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(FERRITE_SOURCE_DIR) + "/tests/random/cases")) {
    const cases::Case c = cases::read(file.path());
    for (const PlanOptions& options : kOptions) {
      const std::string text = cases::difference(c, options);
      BOOST_TEST(text.empty(), file.path().filename().string() << ", fuse " << options.fuse << ": " << text);
    }
    ++count;
  }
  BOOST_TEST(count > 0U);
}

/// A fault is found, and the program that shows it is made small.
BOOST_AUTO_TEST_CASE(a_failing_program_is_reduced) {
  const auto has_tanh = [](const cases::Case& c) {  // represents "shows the fault"
    for (const Graph::Node& n : c.graph.nodes)
      if (n.op->name == "tanh") return true;
    return false;
  };
  cases::Case whole;
  for (std::uint64_t seed = 1; whole.graph.nodes.size() < 10 || !has_tanh(whole); ++seed) {
    const programs::Program f(seed);
    whole = {trace([&](const Tensors& x) { return f(x); }, {f.specs().data(), f.specs().size()}), f.inputs()};
    passes::remove_dead_code(whole.graph);
  }
  const cases::Case small = cases::reduced(whole, has_tanh);
  BOOST_TEST(has_tanh(small));
  BOOST_TEST(small.graph.nodes.size() == 1U);
  const cases::Case back = cases::parse(cases::text(small));
  BOOST_TEST(back.graph.str() == small.graph.str());
  BOOST_TEST(support::identical(back.inputs[0], small.inputs[0]));
}

BOOST_AUTO_TEST_SUITE_END()

// Every operation, composed function and loss has one example, which executes it and whose printed digits are safe.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "conformance/cases.h"
#include "conformance/header_text.h"
#include "conformance/operation_examples.h"
#include "ferrite/compile/operations.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/nn/operations.h"
#include "ferrite/tensor/recorder.h"
#include "support/compare.h"

namespace {

using conformance::OperationExample;
using ferrite::Primitive;
using ferrite::Tensor;
using ferrite::Tensors;

std::map<std::string_view, const Primitive*> records() {
  std::map<std::string_view, const Primitive*> all;
  for (const auto& list : {ferrite::primitives(), ferrite::nn::operations(), ferrite::program_operations(),
                           ferrite::composites(), ferrite::nn::composites()})
    for (const Primitive* op : list) all[op->name] = op;
  return all;
}

using Operations = std::set<const Primitive*>;

/// Notes which operations run.
class Executed final : public ferrite::Recorder {
 public:
  /// Composites run as one application each if `whole`, else as their parts.
  Executed(Operations& operations, bool whole) : operations_(operations), whole_(whole) {}
  void record(const Primitive& op, const ferrite::Attrs&, ferrite::Inputs, std::span<Tensor>) override {
    operations_.insert(&op);
  }
  void read(const ferrite::Variable&, Tensor&) override {}
  bool write(const ferrite::Variable&, const Tensor&) override { return false; }
  bool keeps_composites() const override { return whole_; }

 private:
  Operations& operations_;
  bool whole_;
};

/// Adds the operations of an example's program; none if it reads values or makes variables.
void add_traced(const OperationExample& e, Operations& operations) {
  try {
    const ferrite::Graph program = ferrite::trace([&](const Tensors&) { return e.value(); }, {});
    for (const ferrite::Graph::Node& n : program.nodes) operations.insert(n.op);
  } catch (const ferrite::TraceError&) {
  }
}

/// Returns the operations that an example executes, and those of its program: some are only in programs.
Operations executed_by(const OperationExample& e) {
  Operations operations;
  const Tensors shown = e.value();
  for (const bool whole : {false, true}) {
    Executed executed(operations, whole);
    const ferrite::NewFrame frame(executed);
    const Tensors value = e.value();
    BOOST_TEST_REQUIRE(value.size() == shown.size(), e.name);
    for (std::size_t k = 0; k < value.size(); ++k)
      BOOST_TEST(support::identical(value[k], shown[k]), e.name << ": the value that is shown is another one");
  }
  add_traced(e, operations);
  return operations;
}

/// Values of functions without a record, by hand.
const std::map<std::string_view, double> kByHand = {
    {"reduce_loss", 1},      // the mean of the element 1 alone
    {"dice_loss", 1.0 / 3},  // 1 - (2 * 0.5 + 1) / (1 + 1 + 1)
    {"accuracy", 0.5},       // of the classes 0 and 1 that are predicted, the first is right
    // |2 Y - Y| / |Y| = 1; ln 2 at the frequencies 0 and 1 of a constant under a Hann window of 4, 0 at 2, where both
    // are 0
    {"multi_resolution_stft_loss", 1 + 2 * std::log(2.0) / 3},
};

/// Returns whether an element prints the same digits if it is off by more than kernels of different instruction sets
/// are: 2e-6 of it. Numbers that are nearly 0 print their errors.
bool is_safe(double x) {
  if (!std::isfinite(x) || x == 0) return true;
  const auto text = [](double v) { return conformance::result_of({ferrite::full({}, v, ferrite::Dtype::f64)}); };
  return std::fabs(x) > 1e-5 && text(x * (1 - 2e-6)) == text(x) && text(x * (1 + 2e-6)) == text(x);
}

/// Returns the faults of an example as text.
std::vector<std::string> faults_of(std::string_view code) {
  std::vector<std::string> faults;
  if (code.size() > 100) faults.push_back("has more than 100 characters");
  if (code.find("( ") != std::string_view::npos) faults.push_back("has a blank after a parenthesis");
  return faults;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(operation_examples)

BOOST_AUTO_TEST_CASE(every_entry_has_one_example) {
  std::multiset<std::string_view> names;
  for (const OperationExample& e : conformance::operation_examples()) names.insert(e.name);
  for (const auto& [name, op] : records())
    BOOST_TEST(names.erase(name) == 1U, name << " needs one example; see tests/conformance/operation_examples.h");
  std::string losses;
  for (const char* header : {"reduction", "regression", "classification", "ranking", "sequence", "audio"})
    losses += pages::file_text("nn/losses/" + std::string(header) + ".h");
  for (const std::string_view name : names) {
    BOOST_TEST(names.count(name) == 1U, name << " has several examples");
    BOOST_TEST(losses.find(" " + std::string(name) + "(const Tensor&") != std::string::npos, name << " is no loss");
    BOOST_TEST(kByHand.contains(name), name << " has no record: its value needs one by hand");
  }
  BOOST_TEST(names.size() == kByHand.size());
}

BOOST_AUTO_TEST_CASE(every_example_executes_its_operation) {
  const auto known = records();
  for (const OperationExample& e : conformance::operation_examples())
    if (const auto op = known.find(e.name); op != known.end())
      BOOST_TEST(executed_by(e).contains(op->second), e.name << " is not executed by " << e.code);
  const Operations of_add = executed_by(conformance::example_of("add"));
  BOOST_TEST(!of_add.contains(known.at("sub")));
  BOOST_TEST(!of_add.contains(known.at("mean")));
}

BOOST_AUTO_TEST_CASE(functions_without_a_record_give_values_by_hand) {
  for (const auto& [name, wanted] : kByHand) {
    const double value = conformance::doubles(conformance::example_of(name).value()[0])[0];
    BOOST_TEST(std::fabs(value - wanted) < 1e-6, name << " is " << value << ", not " << wanted);
  }
}

BOOST_AUTO_TEST_CASE(digits_do_not_depend_on_the_machine) {
  BOOST_TEST(!is_safe(1e-8));
  BOOST_TEST(!is_safe(0.12345));
  BOOST_TEST(is_safe(0.12346));
  BOOST_TEST(is_safe(0.5));
  for (const OperationExample& e : conformance::operation_examples())
    for (const Tensor& x : e.value())
      if (ferrite::is_float(x.dtype()) && x.numel() <= 12)
        for (const double v : conformance::doubles(x)) BOOST_TEST(is_safe(v), e.name << " prints " << v);
}

BOOST_AUTO_TEST_CASE(expressions_fit_a_cell) {
  BOOST_TEST(faults_of(std::string(101, 'x')).size() == 1U);
  BOOST_TEST(faults_of("f( x)").size() == 1U);
  for (const OperationExample& e : conformance::operation_examples())
    for (const std::string& fault : faults_of(e.code)) BOOST_ERROR(e.name << ": " << e.code << " " << fault);
}

BOOST_AUTO_TEST_CASE(values_and_names_as_pages_show_them) {
  const Tensor x = Tensor::from({1.f, -0.123456f, NAN, -INFINITY, 0.5f, 2.f}, {2, 3});
  BOOST_TEST(conformance::result_of({x}) == "`[[1, -0.1235, NaN], [-inf, 0.5, 2]]`");
  BOOST_TEST(conformance::result_of({ferrite::arange(2), Tensor::from({true, false})}) == "`[0, 1]`, `[true, false]`");
  BOOST_TEST(conformance::result_of({ferrite::zeros({13})}) == "`f32[13]`");
  BOOST_TEST(conformance::in_table("`a || b`") == "`a \\|\\| b`");
  OperationExample e = conformance::example_of("argmax");
  BOOST_TEST(conformance::pytorch_of(e) == "`torch.argmax` with dim=-1");
  e.pytorch = "`torchaudio.functional.rnnt_loss`";
  BOOST_TEST(conformance::pytorch_of(e) == e.pytorch);
  BOOST_CHECK_THROW((void)conformance::example_of("no such operation"), std::out_of_range);
}

BOOST_AUTO_TEST_SUITE_END()

// Programs written as ONNX and read again: the same numbers, open extents, names, and errors.
#include "ferrite/exchange/onnx_export.h"

#include <boost/test/unit_test.hpp>
#include <optional>
#include <set>
#include <sstream>

#include "conformance/header_text.h"
#include "ferrite/nn/recurrent/mlstm.h"
#include "onnx/exported_cases.h"
#include "onnx/wire.h"
#include "support/compare.h"

using namespace ferrite;
using onnx_test::has_integer_bits;
using onnx_test::ProgramCase;
using onnx_test::written;

BOOST_AUTO_TEST_SUITE(onnx_export)

/// Operations that ONNX lacks, or has with other bits, and that are written as others: they agree to rounding.
const std::set<std::string> kRounded{"atan2",
                                     "celu",
                                     "convolution_weights",
                                     "ctc_loss",
                                     "ctc_loss_grad",
                                     "elu",
                                     "erfc",
                                     "exp2",
                                     "expm1",
                                     "fft",
                                     "floor_divide",
                                     "fold_windows",
                                     "gelu",
                                     "gelu_grad",
                                     "gru_reset_before_sequence_grad",
                                     "gru_sequence_grad",
                                     "hardsigmoid",
                                     "hardswish",
                                     "hypot",
                                     "irfft",
                                     "linear_recurrence",
                                     "linear_scan",
                                     "linear_scan_grad",
                                     "log10",
                                     "log1p",
                                     "log2",
                                     "log_sigmoid",
                                     "logaddexp",
                                     "lstm_sequence_grad",
                                     "min_gru_scan",
                                     "min_gru_scan_grad",
                                     "min_lstm_scan",
                                     "min_lstm_scan_grad",
                                     "mish",
                                     "mish_grad",
                                     "peephole_lstm_sequence_grad",
                                     "pool_spread",
                                     "pool_sum",
                                     "remainder",
                                     "resample_gradient",
                                     "rfft",
                                     "rnn_relu_sequence_grad",
                                     "rnn_sequence_grad",
                                     "rnnt_loss",
                                     "rnnt_loss_grad",
                                     "selective_scan",
                                     "selective_scan_grad",
                                     "selu",
                                     "silu",
                                     "sinc",
                                     "softplus"};

void check(const ProgramCase& c, std::set<std::string>& rounded, const std::string& name) {
  BOOST_TEST_CONTEXT(c.name) {
    const Tensors y = wire::parsed(written(c)).run(c.arguments);
    BOOST_TEST_REQUIRE(y.size() == c.results.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
      BOOST_TEST(support::within(y[i], c.results[i], c.tolerance));
      if (!support::identical(y[i], c.results[i])) rounded.insert(name);
    }
  }
}

const exchange::ExportRefusal* refusal_of(const Primitive& op) {
  for (const exchange::ExportRefusal& r : onnx::onnx_refusals())
    if (r.operation == op.name) return &r;
  return nullptr;
}
bool refused(const Primitive& op) { return refusal_of(op) != nullptr; }

BOOST_AUTO_TEST_CASE(every_operation_comes_back_or_is_refused) {
  std::set<std::string> rounded;
  std::size_t refusals = 0;
  for (const Primitive* op : exchange_test::all_operations()) {
    BOOST_TEST(onnx::has_onnx(*op) != refused(*op),
               op->name << " needs a lowering in exchange/onnx_export, or a reason in the list of refusals");
    refusals += refused(*op);
    if (refused(*op)) continue;
    for (const ProgramCase& c : exchange_test::operation_cases(*op)) {
      if (has_integer_bits(c))
        BOOST_CHECK_EXCEPTION((void)onnx::to_onnx(c.graph), onnx::ExportError, support::says("not of these types"));
      else if (c.name != "gelu tail" && c.name != "hardswish special values")  // erf cancels there; NaN by definition
        check(c, rounded, std::string(op->name));
    }
  }
  BOOST_TEST(refusals == onnx::onnx_refusals().size(), "a refusal names no operation");
  for (const std::string& name : rounded) BOOST_TEST(kRounded.contains(name), name);
}

/// Returns the nodes of an operation in its first case that can be written.
std::string nodes_of(const Primitive& op) {
  const std::vector<ProgramCase> cases = exchange_test::operation_cases(op);
  const auto first = std::ranges::find_if_not(cases, has_integer_bits);
  std::istringstream report(wire::parsed(written(*first)).report());
  std::string nodes;
  for (std::string line; std::getline(report, line) && line[0] != '"';)
    if (!line.starts_with("Constant:")) nodes += (nodes.empty() ? "" : ", ") + line.substr(0, line.find(':'));
  return nodes;
}

constexpr const char* kWrittenOperations = "## Written\n";

/// Returns the part of docs/onnx-operations.md about export, from its heading to the end of the page.
std::string written_operations() {
  std::ostringstream s;
  s << kWrittenOperations
    << "\n"
       "The table lists the nodes that `onnx::to_onnx` writes for the first sample of each operation, without "
       "constants.\n"
       "Where the second column says `bits`, a file that is read again gives the operation's bits; elsewhere it "
       "agrees\n"
       "within rounding. Composed functions are written as their parts. `test_onnx` generates this part of the page.\n"
       "\n"
       "| operation | read again | nodes |\n|---|---|---|\n";
  for (const Primitive* op : exchange_test::all_operations())
    if (!refused(*op))
      s << "| `" << op->name << "` | " << (kRounded.contains(std::string(op->name)) ? "rounded" : "bits") << " | "
        << nodes_of(*op) << " |\n";
  s << "| `scan`, `scan_checkpointed` | bits | Scan |\n\n### Not written\n\n| operation | why | what to do "
       "|\n|---|---|---|\n";
  for (const exchange::ExportRefusal& r : onnx::onnx_refusals())
    s << "| `" << r.operation << "` | " << r.reason << " | " << r.hint << " |\n";
  s << "\n`bitwise_and`, `bitwise_or` and `bitwise_xor` are written for booleans only: the bits of integers need opset "
       "18.\n";
  return s.str();
}

/// Only the part about export is generated; the part about import is written by hand.
BOOST_AUTO_TEST_CASE(onnx_operations_md) {
  const std::string path = "docs/onnx-operations.md", page = pages::file_text(path);
  const std::size_t heading = page.find(kWrittenOperations);
  BOOST_TEST_REQUIRE(heading != std::string::npos, path << " has no heading 'Written'");
  pages::check_page(path, page.substr(0, heading) + written_operations());
}

BOOST_AUTO_TEST_CASE(whole_programs_come_back) {
  std::set<std::string> rounded;  // sums of scans' gradients; running sums and logarithms of sums in xLSTM
  for (const ProgramCase& c : onnx_test::whole_programs()) check(c, rounded, c.name);
  for (const std::string& name : rounded) {
    const bool expected = name.find("gradient") != std::string::npos || name.ends_with(" step") ||
                          name.starts_with("scan keeping") || name == "scan lengths" || name == "layers as locations" ||
                          name.starts_with("an mlstm") || name.starts_with("an slstm");
    BOOST_TEST(expected, name);
  }
}

/// Layers whose recurrence, mean over a plane or overlap of frames is written as other operations.
const std::set<std::string> kRoundedLayers{"AdaptiveAvgPool", "InverseStft", "Lru", "Mamba", "MinGru",
                                           "MinLstm",         "RgLru",       "S5",  "Stft"};

/// The batch is left open; the file runs at the batch of the trace and at others.
BOOST_AUTO_TEST_CASE(every_layer_comes_back_at_any_batch) {
  std::set<std::string> rounded;
  for (const onnx_test::LayerWithInput& layer : onnx_test::layers_with_inputs()) {
    BOOST_TEST_CONTEXT(layer.name) {
      const onnx::Model model = wire::parsed(written(layer));
      BOOST_TEST(model.inputs()[0].shape[0] == "batch");
      for (const std::int64_t batch : {1, 2, 5}) {
        const Tensor in = onnx_test::with_batch(layer.x, batch);
        const Tensor y = model.run({in})[0], wanted = layer(in);
        BOOST_TEST(support::within(y, wanted, 1e-6));
        if (!support::identical(y, wanted)) rounded.insert(layer.name);
      }
    }
  }
  for (const std::string& name : rounded) BOOST_TEST(kRoundedLayers.contains(name), name);
}

/// Reads a layer on sequences again, with batch and time left open; nullopt if that is refused.
std::optional<onnx::Model> with_open_time(const onnx_test::LayerWithInput& layer) {
  const auto f = [&](const Tensors& in) -> Tensors { return {layer(in[0])}; };
  const std::vector<Spec> specs{layer.x.spec()};
  try {
    return wire::parsed(
        onnx::to_onnx(f, specs, {.dynamic = {{.axis = 0, .name = "batch"}, {.axis = 1, .name = "time"}}}));
  } catch (const onnx::ExportError&) {
    return {};
  }
}

/// All layers do, except those whose form depends on the number of steps: chunks, frames with a hop.
BOOST_AUTO_TEST_CASE(layers_on_sequences_come_back_at_any_time) {
  std::vector<onnx_test::LayerWithInput> layers = onnx_test::layers_with_inputs();
  const nn::MLstmOptions by_steps{.embedding_dim = 4, .num_heads = 2, .round_up_to = 8, .chunk = 1};
  layers.push_back({"MLstm by steps", std::make_shared<nn::MLstm>(by_steps, nn::Init{.seed = 7}), ones({1, 8, 4})});
  std::vector<std::string> refused;
  for (const onnx_test::LayerWithInput& layer : layers) {
    const Shape& x = layer.x.shape();
    if (x.rank() != 3 || !is_float(layer.x.dtype())) continue;
    const auto model = with_open_time(layer);
    if (!model) {
      refused.push_back(layer.name);
      continue;
    }
    BOOST_TEST_CONTEXT(layer.name) {
      for (const auto& [batch, more] : {std::pair{1, 0}, {3, 2}, {2, 60}}) {
        const Tensor in = uniform({batch, x[1] + more, x[2]}, {.seed = 9}, -1, 1);
        if (layer.name == "LearnedPositions" && in.shape()[1] > 9)  // it has no more positions
          BOOST_CHECK_THROW((void)model->run({in}), onnx::OnnxError);
        else
          BOOST_TEST(support::within(model->run({in})[0], layer(in), 1e-5));
      }
    }
  }
  BOOST_TEST(refused == (std::vector<std::string>{"MLstm"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

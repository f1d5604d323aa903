#pragma once
/// Models with inputs and expected outputs in folders: model.onnx, input_K.pb, output_K.pb, and tolerances.txt.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "ferrite/compile/compile.h"
#include "ferrite/exchange/onnx.h"
#include "ferrite/exchange/onnx/onnx_graph.h"
#include "support/compare.h"

namespace case_folders {

using namespace ferrite;
namespace fs = std::filesystem;

/// Returns the folder of cases that an environment variable names; prints a message if it names none.
inline const char* folder_in(const char* variable) {
  const char* const root = std::getenv(variable);
  if (root) return root;
  BOOST_TEST_MESSAGE("skipped: " << variable << " is not set");
  std::cout << "skipped: " << variable << " is not set\n";
  return nullptr;
}

inline std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Returns input_0.pb, input_1.pb, ...; types that Ferrite does not have throw.
inline Tensors tensors_of(const fs::path& folder, const std::string& kind) {
  Tensors all;
  for (int i = 0;; ++i) {
    const fs::path path = folder / (kind + "_" + std::to_string(i) + ".pb");
    if (!fs::exists(path)) return all;
    all.push_back(onnx::detail::read_tensor(text_of(path), path.string(), {}).tensor);
  }
}

/// Returns the difference of two tensors unless |a - b| <= atol + rtol |b| and NaN match, as the ONNX project's runner
/// compares.
inline std::string difference(const Tensor& a, const Tensor& b, double rtol, double atol) {
  if (a.shape() != b.shape()) return "the shape is " + a.shape().str() + ", not " + b.shape().str();
  const auto x = cast(a, Dtype::f64).to_vector<double>(), y = cast(b, Dtype::f64).to_vector<double>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
    if (!(std::fabs(x[i] - y[i]) <= atol + rtol * std::fabs(y[i])))
      return "element " + std::to_string(i) + " is " + std::to_string(x[i]) + ", not " + std::to_string(y[i]);
  }
  return {};
}

struct Outcome {
  std::string refused;  ///< why the model is refused
  std::string wrong;    ///< difference from the expected outputs
  std::string eager;    ///< why it is not compiled: a shape depends on the values of inputs
};

inline Outcome tried(const fs::path& folder) {
  double rtol = 1e-3, atol = 1e-7;
  std::ifstream(folder / "tolerances.txt") >> rtol >> atol;
  Outcome out;
  try {
    const Tensors in = tensors_of(folder, "input"), expected = tensors_of(folder, "output");
    const onnx::Model model = onnx::read(folder / "model.onnx");
    const Tensors eager = model.run(in);
    for (std::size_t i = 0; i < expected.size() && out.wrong.empty(); ++i)
      out.wrong = difference(eager[i], expected[i], rtol, atol);
    if (!out.wrong.empty()) return out;
    // If inputs other than the first determine shapes, they become constants of the model.
    for (const bool constants : {false, true}) {
      try {
        onnx::ReadOptions options;
        for (std::size_t i = 1; constants && i < in.size(); ++i) options.constants[model.inputs()[i].name] = in[i];
        const onnx::Model again = onnx::read(folder / "model.onnx", options);
        Tensors first;
        if (constants && in.size() > 0) first.push_back(in[0]);
        for (const bool fuse : {false, true}) {
          const auto compiled = compile([&](const Tensors& x) { return again.run(x); }, {.fuse = fuse});
          const Tensors planned = compiled(constants ? first : in);
          for (std::size_t i = 0; i < expected.size(); ++i)
            if (!support::identical(planned[i], eager[i]))
              out.wrong = std::string(fuse ? "fused" : "planned") + ", output " + std::to_string(i) + " differs";
        }
        out.eager.clear();
        break;
      } catch (const std::exception& e) {
        out.eager = e.what();
      }
    }
  } catch (const Error& e) {
    out.refused = e.what();
  }
  return out;
}

}  // namespace case_folders

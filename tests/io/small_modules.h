#pragma once
/// Small modules with known values, their files, and ways to compare them.
#include <boost/test/unit_test.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "ferrite/io/module_file.h"
#include "ferrite/io/safetensors.h"
#include "ferrite/tensor/ops.h"

namespace io_test {

using ferrite::Buffer;
using ferrite::Dtype;
using ferrite::FileLayout;
using ferrite::IoError;
using ferrite::Parameter;
using ferrite::Shape;
using ferrite::State;
using ferrite::Tensor;
namespace io = ferrite::io;
namespace nn = ferrite::nn;

/// Returns first, first + 1, ... in row-major order.
inline Tensor counting(const Shape& shape, double first, Dtype dtype = Dtype::f32) {
  std::vector<double> values(static_cast<std::size_t>(shape.numel()));
  std::iota(values.begin(), values.end(), first);
  return ferrite::cast(Tensor::from(values, shape), dtype);
}

inline nn::Fill from(double first) {
  const auto count = [first](const Shape& shape, const ferrite::RandomKey&, Dtype dtype) {
    return counting(shape, first, dtype);
  };
  return nn::Fill(count, /*random=*/false);
}

inline nn::Init doubles() {
  nn::Init init;
  init.dtype = Dtype::f64;
  return init;
}

/// A matrix [in, out] that files keep as [out, in], and a bias [out].
struct Dense : nn::Module {
  Parameter weight, bias;
  Dense(std::int64_t in, std::int64_t out, double first, const nn::Init& init = {}) {
    weight = parameter("weight", {in, out}, from(first), init, FileLayout::transposed);
    bias = parameter("bias", {out}, from(-first), init);
  }
};

struct Net : nn::Module {
  Dense body{2, 3, 10};
  Dense head{3, 1, 20};
  Buffer mean, steps;
  Net() {
    adopt("body", body);
    adopt("head", head);
    mean = buffer("mean", counting({2}, 30));
    steps = buffer("steps", Tensor::from({std::int64_t{7}}));
  }
};

/// A module with two names for one parameter.
struct Tied : nn::Module {
  Dense a{2, 2, 1};
  Tied() {
    adopt("first", a);
    adopt("second", a);
  }
};

struct Outer : nn::Module {
  Net net;
  Outer() { adopt("model", net); }
};

inline io::TensorFile file_of(const std::vector<io::NamedTensor>& tensors, const io::Metadata& metadata = {}) {
  static std::vector<std::vector<std::byte>> kept;
  kept.push_back(io::serialize_safetensors(tensors, metadata));
  return io::parse_safetensors(kept.back(), "m.safetensors");
}

inline io::TensorFile file_of(const nn::Module& module, const io::SaveOptions& options = {}) {
  const io::ModuleContents what = io::contents(module, options);
  return file_of(what.tensors, what.metadata);
}

/// Returns the tensors of Net as a file has them, to be damaged.
inline std::vector<io::NamedTensor> tensors_of_net(double first = 100) {
  return {
      {"body.weight", counting({3, 2}, first)}, {"body.bias", counting({3}, first)},
      {"head.weight", counting({1, 3}, first)}, {"head.bias", counting({1}, first)},
      {"mean", counting({2}, first)},           {"steps", Tensor::from({std::int64_t{9}})},
  };
}

inline void replace(std::vector<io::NamedTensor>& tensors, const std::string& name, const Tensor& value) {
  for (io::NamedTensor& tensor : tensors)
    if (tensor.name == name) tensor.tensor = value;
}

/// Returns everything a module holds, as the bytes of its file.
inline std::vector<std::byte> snapshot(const nn::Module& module) {
  const io::ModuleContents what = io::contents(module);
  return io::serialize_safetensors(what.tensors, what.metadata);
}

/// Returns the text of the error of loading; checks that the module is as before.
inline std::string error_of(const nn::Module& module, const io::TensorFile& file, const io::LoadOptions& options = {}) {
  const std::vector<std::byte> before = snapshot(module);
  std::string text;
  try {
    io::load(module, file, options);
  } catch (const IoError& error) {
    text = error.what();
  }
  BOOST_TEST((snapshot(module) == before), "the module has changed");
  BOOST_TEST(!text.empty(), "no error was thrown");
  return text;
}

inline std::vector<float> values(const ferrite::Variable& variable) { return variable.peek().to_vector<float>(); }
inline std::vector<float> list(std::initializer_list<float> v) { return v; }

inline bool equal_modules(const nn::Module& a, const nn::Module& b) { return snapshot(a) == snapshot(b); }

inline void clear(const nn::Module& module) {
  for (const auto& [name, variable] : module.named_parameters())
    variable.assign(ferrite::zeros(variable.shape(), variable.dtype()));
  for (const auto& [name, variable] : module.named_buffers())
    variable.assign(ferrite::zeros(variable.shape(), variable.dtype()));
}

}  // namespace io_test

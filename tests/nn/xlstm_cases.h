#pragma once
// The cases of tests/data/make_xlstm_fixtures.py as layers.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ferrite/io/module_file.h"
#include "ferrite/nn/recurrent/mlstm.h"
#include "ferrite/nn/recurrent/slstm.h"
#include "ferrite/tensor/cumulative.h"
#include "ferrite/tensor/math.h"
#include "support/compare.h"
#include "support/fixtures.h"

namespace xlstm_cases {

using namespace ferrite;

inline const io::TensorFile& file() {
  static const io::TensorFile f = support::fixture("xlstm.safetensors");
  return f;
}

/// The options of each case, except chunks.
inline const std::map<std::string, nn::MLstmOptions> kMatrix = {
    {"mlstm_plain", {.embedding_dim = 6, .num_heads = 2, .round_up_to = 8}},
    {"mlstm_bias",
     {.embedding_dim = 4,
      .num_heads = 2,
      .proj_factor = 1.6,
      .round_up_to = 4,
      .conv1d_kernel_size = 2,
      .qkv_proj_blocksize = 2,
      .bias = true}},
    {"mlstm_long",
     {.embedding_dim = 4,
      .num_heads = 1,
      .proj_factor = 1.5,
      .round_up_to = 8,
      .conv1d_kernel_size = 3,
      .qkv_proj_blocksize = 1}},
    {"mlstm_one_step", {.embedding_dim = 4, .num_heads = 2, .round_up_to = 4}}};
inline const std::map<std::string, nn::SLstmOptions> kScalar = {
    {"slstm_plain", {.embedding_dim = 8, .num_heads = 2}},
    {"slstm_no_conv", {.embedding_dim = 8, .num_heads = 2, .conv1d_kernel_size = 0, .group_norm_weight = false}},
    {"slstm_long", {.embedding_dim = 4, .num_heads = 1, .conv1d_kernel_size = 2}},
    {"slstm_one_step", {.embedding_dim = 4, .num_heads = 1}}};

/// Returns a parameter of the file as it is stored in memory.
inline Tensor in_memory(const Parameter& p, const Tensor& in_file) {
  return p.layout() == FileLayout::transposed ? contiguous(transpose(in_file)) : in_file;
}

/// Gives a layer the weights of a case: those of the package's state_dict, if there is one.
template <class Layer>
std::unique_ptr<Layer> loaded(const std::string& name, std::unique_ptr<Layer> layer, Dtype dtype) {
  if (name.ends_with("_plain")) {
    io::load(*layer, support::fixture_path(name.substr(0, 5) + ".pt"));
    return layer;
  }
  for (const auto& [parameter, variable] : layer->named_parameters())
    variable.assign(cast(in_memory(variable, file().tensor(name + "/p/" + parameter)), dtype));
  return layer;
}

/// Makes the layer of a case; `chunk` is for layers that have it.
inline std::unique_ptr<nn::SequenceLayer> layer(const std::string& name, Dtype dtype, std::int64_t chunk = 64) {
  if (name.starts_with("slstm"))
    return loaded<nn::SequenceLayer>(name, std::make_unique<nn::SLstm>(kScalar.at(name), nn::Init{.dtype = dtype}),
                                     dtype);
  nn::MLstmOptions options = kMatrix.at(name);
  options.chunk = chunk;
  return loaded<nn::SequenceLayer>(name, std::make_unique<nn::MLstm>(options, nn::Init{.dtype = dtype}), dtype);
}

inline std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, options] : kMatrix) all.push_back(name);
  for (const auto& [name, options] : kScalar) all.push_back(name);
  return all;
}

/// Returns chunks to try: one step, several with a remainder, all at once.
inline std::vector<std::int64_t> chunks(const std::string& name) {
  return name.starts_with("mlstm") ? std::vector<std::int64_t>{1, 4, 64} : std::vector<std::int64_t>{64};
}

/// Moves parameters away from the values of a new layer.
template <class Layer>
void stir(const Layer& layer) {
  std::uint64_t n = 0;
  for (const auto& p : layer.named_parameters()) {
    const Tensor value = p.variable.peek();
    p.variable.assign(value + normal(value.shape(), {.seed = 31, .stream = ++n}, 0, 0.3, value.dtype()));
  }
}

}  // namespace xlstm_cases

/// Reads the nets of commands and makes inputs for them.
#include "subject.h"

#include "ferrite/io/module_file.h"
#include "ferrite/io/nam.h"
#include "ferrite/io/rtneural.h"
#include "ferrite/io/safetensors.h"
#include "ferrite/tensor/ops.h"
#include "words.h"

namespace ferrite::tools {
namespace {

Tensor random_input(const Spec& spec, std::int64_t below) {
  if (is_float(spec.dtype)) return uniform(spec.shape, {.seed = 2}, -1, 1);
  return cast(uniform(spec.shape, {.seed = 2}, 0, static_cast<double>(below)), Dtype::i64);
}

Subject on_sequences(std::shared_ptr<nn::Layer> net, std::int64_t batch, std::int64_t steps) {
  const nn::StepInput in = net->step_input();
  return {std::move(net), random_input({{batch, steps, in.width}, in.dtype}, 1), steps};
}

Subject of_network(const std::shared_ptr<dsl::Network>& net, std::int64_t batch, std::int64_t steps) {
  const auto& [kind, size, space] = net->input();
  if (kind == dsl::InputKind::features) return {net, random_input({{batch, size}, Dtype::f32}, 1), 1};
  if (kind == dsl::InputKind::tokens) return {net, random_input({{batch, steps}, Dtype::i64}, size), steps};
  if (kind == dsl::InputKind::image) {
    Shape shape{batch, size};
    for (const std::int64_t n : space) shape.push_back(n);
    return {net, random_input({shape, Dtype::f32}, 1), 1};
  }
  return {net, random_input({{batch, steps, size}, Dtype::f32}, 1), steps};
}

}  // namespace

dsl::Network trained(const std::filesystem::path& path) {
  const io::TensorFile file = io::read_safetensors(path);
  const io::Metadata metadata = file.metadata();
  const auto words = metadata.find(kNet);
  if (words == metadata.end())
    throw ValueError(path.string() + ": does not say what net it is of; `ferrite train` writes files that do");
  dsl::Network net = parse_words(words->second).build(/*seed=*/0);
  io::load(net, file);
  net.eval();
  return net;
}

Subject subject_of(const std::string& net, std::int64_t batch, std::int64_t steps) {
  if (net.find('(') != std::string::npos)
    return of_network(std::make_shared<dsl::Network>(parse_words(net).build(/*seed=*/1)), batch, steps);
  const std::filesystem::path ending = std::filesystem::path(net).extension();
  if (ending == ".safetensors") return of_network(std::make_shared<dsl::Network>(trained(net)), batch, steps);
  if (ending == ".nam") return on_sequences(io::read_nam(net).layer, batch, steps);
  return on_sequences(io::read_rtneural(net), batch, steps);
}

}  // namespace ferrite::tools

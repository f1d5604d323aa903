/// Reads the nets of commands and makes inputs for them.
#include "subject.h"

#include "ferrite/tensor/ops.h"
#include "ferrite/train/net_file.h"
#include "ferrite/train/words.h"

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

Subject subject_of(const std::string& net, std::int64_t batch, std::int64_t steps) {
  if (net.find('(') != std::string::npos)
    return of_network(std::make_shared<dsl::Network>(train::parse_words(net).build(/*seed=*/1)), batch, steps);
  if (std::filesystem::path(net).extension() == ".safetensors")
    return of_network(std::make_shared<dsl::Network>(train::read_network(net)), batch, steps);
  return on_sequences(train::read_net(net).net, batch, steps);
}

}  // namespace ferrite::tools

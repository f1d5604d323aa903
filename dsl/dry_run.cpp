#include "ferrite/dsl/detail/dry_run.h"

#include "ferrite/tensor/recorder.h"

namespace ferrite::dsl::detail {
namespace {

/// Sees every application on shapes alone.
class Shapes : public Recorder {
 public:
  void record(const Primitive&, const Attrs&, Inputs, std::span<Tensor>) override {}
  void read(const Cell&, Tensor&) override {}
  bool write(const Cell&, const Tensor&) override { return true; }
  bool tracing() const override { return true; }
};

/// Also adds up what the operations cost.
class Counter final : public Shapes {
 public:
  void record(const Primitive& op, const Attrs& attrs, Inputs in, std::span<Tensor> out) override {
    Specs from, to;
    for (const Tensor& x : in) from.push_back(x.spec());
    for (const Tensor& x : out) to.push_back(x.spec());
    cost += cost_of(op, {from.data(), from.size()}, {to.data(), to.size()}, attrs);
  }
  Cost cost;
};

void replace_leading(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + 1)) {
    const char after = at + from.size() < text.size() ? text[at + from.size()] : ' ';
    if (after == ',' || after == ']') text.replace(at, from.size(), to);
  }
}

}  // namespace

Spec dry_run(const nn::Layer& layer, const Spec& input) {
  Shapes shapes;
  const NewFrame frame(shapes);
  return layer(Tensor::abstract(input)).spec();
}

std::int64_t multiply_adds(const nn::Layer& layer, const Spec& input) {
  Counter counter;
  const NewFrame frame(counter);
  (void)layer(Tensor::abstract(input));
  return counter.cost.multiply_adds;
}

bool has_time(const Spec& spec) {
  const int least = is_float(spec.dtype) ? 3 : 2;
  return spec.shape.rank() >= least && spec.shape[1] == kTime;
}

bool depends_on_steps(const nn::Layer& layer, const Spec& input, const Spec& output) {
  if (!has_time(input)) return false;
  constexpr std::int64_t fewer = 2;
  Spec other = input;
  other.shape[1] = fewer;
  Shape seen = dry_run(layer, other).shape;
  if (has_time(output) && seen.rank() > 1 && seen[1] == fewer) seen[1] = kTime;
  return seen != output.shape;
}

Spec single(const Spec& spec) {
  Spec s = spec;
  if (has_time(spec)) s.shape[1] = 1;
  if (s.shape.rank() > 0 && s.shape[0] == kBatch) s.shape[0] = 1;
  return s;
}

std::string symbolic(const std::string& text) {
  std::string s = text;
  replace_leading(s, "[" + std::to_string(kBatch), "[B");
  replace_leading(s, "[B, " + std::to_string(kTime), "[B, T");
  return s;
}

}  // namespace ferrite::dsl::detail

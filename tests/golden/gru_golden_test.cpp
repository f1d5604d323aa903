// nn::Gru compared with torch.nn.GRU: tests/data/make_gru_fixtures.py writes the cases.
#include "ferrite/autograd/tape.h"
#include "ferrite/nn/recurrent/gru.h"
#include "support/compare.h"
#include "support/fixtures.h"

using namespace ferrite;
using support::distance;
using support::within;

namespace {

constexpr int kCases = 24;
constexpr double kTolerance = 1e-12;  // f64, docs/numerics.md rule 11

/// One case of the fixture, whose matrices of parameters are transposed to our layout.
class Case {
 public:
  Case(int number, Dtype dtype) : prefix_((number < 10 ? "0" : "") + std::to_string(number) + "/"), dtype_(dtype) {}

  bool has(const std::string& name) const { return file_.contains(prefix_ + name); }
  Tensor operator[](const std::string& name) const {
    const Tensor t = cast(file_.tensor(prefix_ + name), dtype_);
    return name.ends_with("w_ih") || name.ends_with("w_hh") ? contiguous(transpose(t)) : t;
  }
  nn::Gru gru() const {
    nn::Gru g((*this)["w_ih"].shape()[0], (*this)["w_hh"].shape()[0], {.dtype = dtype_});
    g.weights().weight_ih.assign((*this)["w_ih"]);
    g.weights().weight_hh.assign((*this)["w_hh"]);
    g.weights().bias_ih.assign((*this)["b_ih"]);
    g.weights().bias_hh.assign((*this)["b_hh"]);
    return g;
  }
  /// Returns the largest error of a result: in f32 twice PyTorch's own gap if that is more (docs/numerics.md rule 11),
  /// the larger of those with and without fused multiply-add.
  double tolerance(const std::string& name) const {
    if (dtype_ == Dtype::f64) return kTolerance;
    const std::vector<double> gaps = support::doubles(file_.tensor(prefix_ + name + "32"));
    return std::max(1e-6, 2 * std::max(gaps[0], gaps[1]));
  }
  Tensor loss(const nn::RecurrentResult& r) const {
    return sum(r.output * (*this)["cy"]) + sum(r.state * (*this)["ch"]);
  }

 private:
  io::TensorFile file_ = support::fixture("gru.safetensors");
  std::string prefix_;
  Dtype dtype_;
};

std::vector<Parameter> parameters(const nn::Gru& g) { return g.parameters(); }
const char* const kNames[] = {"w_ih", "w_hh", "b_ih", "b_hh"};

void check(int number, Dtype dtype) {
  const Case c(number, dtype);
  const nn::Gru gru = c.gru();
  Tape tape;
  const Tensor x = tape.watch(c["x"]);
  const Tensor h0 = c.has("h0") ? tape.watch(c["h0"]) : Tensor();
  const nn::RecurrentResult r = gru.run(x, {.state = h0});
  BOOST_TEST(within(r.output, c["y"], c.tolerance("y")));
  BOOST_TEST(within(r.state, c["h_n"], c.tolerance("h_n")));
  const Tensor loss = c.loss(r);
  const Tensors g = tape.grad(loss, parameters(gru), {.retain = true});
  for (std::size_t i = 0; i < 4; ++i)
    BOOST_TEST(within(g[i], c[std::string("g") + kNames[i]], c.tolerance(std::string("g") + kNames[i])),
               "gradient of " << kNames[i]);
  BOOST_TEST(within(tape.grad(loss, {x}, {.retain = true})[0], c["gx"], c.tolerance("gx")));
  if (h0.defined()) BOOST_TEST(within(tape.grad(loss, {h0})[0], c["gh0"], c.tolerance("gh0")));
}

void check_double_backward(int number) {
  const Case c(number, Dtype::f64);
  if (!c.has("u_x")) return;
  const nn::Gru gru = c.gru();
  Tape tape;
  const Tensor x = tape.watch(c["x"]);
  const Tensor h0 = c.has("h0") ? tape.watch(c["h0"]) : Tensor();
  const Tensor loss = c.loss(gru.run(x, {.state = h0}));
  const Tensors g = tape.grad(loss, parameters(gru), {.create_graph = true});
  Tensor total = sum(tape.grad(loss, {x}, {.create_graph = true})[0] * c["u_x"]);
  if (h0.defined()) total = total + sum(tape.grad(loss, {h0}, {.create_graph = true})[0] * c["u_h0"]);
  for (std::size_t i = 0; i < 4; ++i) total = total + sum(g[i] * c[std::string("u_") + kNames[i]]);
  const Tensors d = tape.grad(total, parameters(gru), {.retain = true});
  for (std::size_t i = 0; i < 4; ++i)
    BOOST_TEST(within(d[i], c[std::string("d_") + kNames[i]], kTolerance), "second gradient of " << kNames[i]);
  BOOST_TEST(within(tape.grad(total, {x}, {.retain = true})[0], c["d_x"], kTolerance));
  if (h0.defined()) BOOST_TEST(within(tape.grad(total, {h0})[0], c["d_h0"], kTolerance));
}

/// Returns how far the last state of a case is from PyTorch's when the columns of gates a and b are exchanged.
double error_with_gates_exchanged(int a, int b) {
  const Case c(7, Dtype::f64);
  const nn::Gru gru = c.gru();
  const auto exchanged = [&](const Tensor& t) {
    Tensors parts = chunk(t, 3, -1);
    std::swap(parts[static_cast<std::size_t>(a)], parts[static_cast<std::size_t>(b)]);
    return concat(std::span<const Tensor>(parts.data(), parts.size()), -1);
  };
  for (const Parameter& p : parameters(gru)) p.assign(exchanged(p.peek()));
  return distance(gru.run(c["x"], {.state = c["h0"]}).state, c["h_n"]);
}

/// A GRU as a separate loop, so that its mistakes can be chosen.
struct Variant {
  bool bias_outside_reset = false;
  bool update_inverted = false;
  bool reset_before_product = false;
};
double error_of(const Variant& v) {
  const Case c(7, Dtype::f64);
  const Tensor w_ih = c["w_ih"], w_hh = c["w_hh"], b_ih = c["b_ih"], b_hh = c["b_hh"];
  const std::int64_t H = w_hh.shape()[0];
  const auto gate = [&](const Tensor& t, int k) { return slice(t, -1, k * H, (k + 1) * H); };
  Tensor h = c["h0"];
  for (const Tensor& x : unbind(c["x"], 1)) {
    const Tensor i = matmul(x, w_ih) + b_ih;
    const Tensor g = matmul(h, w_hh) + b_hh;
    const Tensor r = sigmoid(gate(i, 0) + gate(g, 0));
    const Tensor z = sigmoid(gate(i, 1) + gate(g, 1));
    Tensor inner = r * gate(g, 2);
    if (v.bias_outside_reset) inner = r * matmul(h, gate(w_hh, 2)) + gate(b_hh, 2);
    if (v.reset_before_product) inner = matmul(r * h, gate(w_hh, 2)) + gate(b_hh, 2);
    const Tensor n = tanh(gate(i, 2) + inner);
    h = v.update_inverted ? h + z * (n - h) : n + z * (h - n);
  }
  return distance(h, c["h_n"]);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(gru)

BOOST_AUTO_TEST_CASE(values_and_gradients_f64) {
  for (int k = 0; k < kCases; ++k) BOOST_TEST_CONTEXT("case " << k) check(k, Dtype::f64);
}

BOOST_AUTO_TEST_CASE(values_and_gradients_f32) {
  for (int k = 0; k < kCases; ++k) BOOST_TEST_CONTEXT("case " << k) check(k, Dtype::f32);
}

BOOST_AUTO_TEST_CASE(double_backward) {
  for (int k = 0; k < kCases; ++k) BOOST_TEST_CONTEXT("case " << k) check_double_backward(k);
}

BOOST_AUTO_TEST_CASE(exchanged_gates_are_noticed) {
  BOOST_TEST(error_with_gates_exchanged(0, 1) > 1e-3);
  BOOST_TEST(error_with_gates_exchanged(0, 2) > 1e-3);
  BOOST_TEST(error_with_gates_exchanged(1, 2) > 1e-3);
}

BOOST_AUTO_TEST_CASE(other_equations_are_noticed) {
  BOOST_TEST(error_of({}) < kTolerance);
  BOOST_TEST(error_of({.bias_outside_reset = true}) > 1e-3);
  BOOST_TEST(error_of({.update_inverted = true}) > 1e-3);
  BOOST_TEST(error_of({.reset_before_product = true}) > 1e-3);
}

BOOST_AUTO_TEST_SUITE_END()

// The interface of recorders, tested with a small tracer independent of the real one: a training step written once runs
// eagerly and as a recording that takes its variables as inputs and outputs.
#include <map>
#include <thread>

#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/recorder.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

/// Records applications over values numbered by identity; variables that are read become inputs, written ones outputs.
class SmallTracer final : public Recorder {
 public:
  struct Node {
    const Primitive* op;
    Attrs attrs;
    std::vector<const void*> in, out;
  };
  void record(const Primitive& op, const Attrs& attrs, Inputs in, std::span<Tensor> out) override {
    Node n{&op, attrs, {}, {}};
    for (const Tensor& x : in) n.in.push_back(keep(x));
    for (const Tensor& y : out) n.out.push_back(keep(y));
    nodes.push_back(n);
  }
  void read(const Variable& variable, Tensor& value) override {
    auto [at, fresh] = variables.try_emplace(variable.identity(), Tensor::abstract(value.spec()));
    if (fresh) inputs.emplace_back(variable, keep(at->second));
    value = at->second;
  }
  bool write(const Variable& variable, const Tensor& value) override {
    variables[variable.identity()] = value.unmarked();
    outputs.emplace_back(variable, keep(value));
    return true;
  }
  bool tracing() const override { return true; }

  /// Runs the recording on the variables' present values and assigns the results.
  void replay() const {
    std::map<const void*, Tensor> values;
    for (const auto& [id, t] : alive)
      if (!t.is_abstract()) values[id] = t;
    for (const auto& [variable, id] : inputs) values[id] = variable.peek();
    for (const Node& n : nodes) {
      InlineVector<const Tensor*, 4> in;
      for (const void* id : n.in) in.push_back(&values.at(id));
      const Tensors out = n.op->apply({in.data(), in.size()}, n.attrs);
      for (std::size_t i = 0; i < out.size(); ++i) values[n.out[i]] = out[i];
    }
    for (const auto& [variable, id] : outputs) variable.assign(values.at(id));
  }

  std::vector<Node> nodes;
  std::vector<std::pair<Variable, const void*>> inputs, outputs;

 private:
  const void* keep(const Tensor& t) {
    alive.try_emplace(t.identity(), t.unmarked());
    return t.identity();
  }
  std::map<const void*, Tensor> variables;
  std::map<const void*, Tensor> alive;
};

/// Linear regression by stochastic gradient descent, with its rate in a variable.
struct Regression {
  Parameter w{"w", uniform({3, 1}, {1, 1, 1})};
  Parameter b{"b", zeros({1})};
  State rate{"rate", full({}, 0.1)};
  Tensor x = uniform({8, 3}, {1, 2, 1}, -1, 1);
  Tensor y = uniform({8, 1}, {1, 3, 1}, -1, 1);

  void step() const {
    Tape tape;
    const Tensor loss = mean(square(matmul(x, w) + b - y));
    const Tensors g = tape.grad(loss, std::vector<Parameter>{w, b});
    w.assign(w.value() - rate.value() * g[0]);
    b.assign(b.value() - rate.value() * g[1]);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(recorders)

BOOST_AUTO_TEST_CASE(a_training_step_traces_and_replays) {
  const Regression eager;
  const Regression traced;
  SmallTracer tracer;
  {
    const NewFrame frame(tracer);
    traced.step();
  }
  BOOST_TEST(identical(traced.w.peek(), eager.w.peek()));  // tracing changed nothing
  BOOST_TEST(tracer.inputs.size() == 3U);                  // w, b and the rate: none is a constant
  BOOST_TEST(tracer.outputs.size() == 2U);
  for (int i = 0; i < 5; ++i) {
    eager.step();
    tracer.replay();
  }
  BOOST_TEST(identical(traced.w.peek(), eager.w.peek()));
  BOOST_TEST(identical(traced.b.peek(), eager.b.peek()));
  traced.rate.assign(full({}, 0.0));
  const Tensor before = traced.w.peek();
  tracer.replay();
  BOOST_TEST(identical(traced.w.peek(), before));
}

BOOST_AUTO_TEST_CASE(reading_a_traced_value_throws) {
  SmallTracer tracer;
  const NewFrame frame(tracer);
  const Tensor x = ones({2}) + 1;
  BOOST_TEST(x.is_abstract());
  BOOST_CHECK_EXCEPTION((void)x.to_vector<float>(), TraceError, says("values of a traced tensor f32[2] were read"));
}

BOOST_AUTO_TEST_CASE(a_traced_value_may_not_leave_its_trace) {
  Tensor escaped;
  SmallTracer tracer;
  {
    const NewFrame frame(tracer);
    escaped = ones({2});
  }
  BOOST_CHECK_EXCEPTION((void)(escaped + 1), TraceError,
                        says("add: a traced tensor f32[2] was used outside its trace"));
  const Parameter p("p", zeros({2}));
  BOOST_CHECK_EXCEPTION(p.assign(escaped), TraceError, says("'p' was given a traced value"));
}

BOOST_AUTO_TEST_CASE(an_empty_frame_hides_the_tape_outside) {
  Tape tape;
  const Tensor x = tape.watch(ones({2}));
  {
    const NewFrame frame;
    (void)(x * 2);
  }
  BOOST_TEST(tape.size() == 0U);
  (void)(x * 2);
  BOOST_TEST(tape.size() == 1U);
}

BOOST_AUTO_TEST_CASE(shapes_are_checked_while_tracing) {
  SmallTracer tracer;
  const NewFrame frame(tracer);
  BOOST_CHECK_THROW((void)(ones({2}) + ones({3})), ShapeError);
}

BOOST_AUTO_TEST_CASE(assign_checks_shape_and_dtype) {
  const Parameter p("layer.weight", zeros({2}));
  BOOST_CHECK_EXCEPTION(p.assign(zeros({3})), ShapeError, says("assign: 'layer.weight' has shape [2], got [3]"));
  BOOST_CHECK_EXCEPTION(p.assign(zeros({2}, Dtype::f64)), DtypeError, says("holds f32[2], got f64[2]"));
}

BOOST_AUTO_TEST_CASE(two_threads_record_for_themselves) {
  const Regression model;
  Tensors g[2];
  const auto run = [&](int k) {
    for (int i = 0; i < 50; ++i) {
      Tape tape;
      const Tensor loss = mean(square(matmul(model.x, model.w) - model.y));
      g[k] = tape.grad(loss, std::vector<Parameter>{model.w, model.b});
    }
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  BOOST_TEST(identical(g[0][0], g[1][0]));
  BOOST_TEST(!g[0][1].defined());  // b was not read
}

BOOST_AUTO_TEST_SUITE_END()

// Two layers that share a parameter: it is counted, trained, cloned, compiled and saved once; and assignments that
// would leave the old parameter registered.
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/io/module_file.h"
#include "ferrite/io/torch.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/layers/sequential.h"
#include "ferrite/nn/optim/sgd.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

struct Pair : nn::Module {
  nn::Linear a{2, 2, {.seed = 0, .prefix = "a"}, false};
  nn::Linear b{2, 2, {.seed = 0, .prefix = "b"}, false};
  Pair() { adopt("a", a), adopt("b", b); }
  Tensor forward(const Tensor& x) const { return b(a(x)); }
};

Tensor twos() { return full({2, 2}, 2); }

}  // namespace

BOOST_AUTO_TEST_SUITE(tying)

BOOST_AUTO_TEST_CASE(tied_layers_share_one_parameter_wherever_it_is_registered) {
  const Pair net;
  net.b.weight.tie(net.a.weight);
  BOOST_TEST((net.b.weight == net.a.weight));
  BOOST_TEST((net.named_parameters()[1].variable == net.a.weight));
  BOOST_TEST((net.b.named_parameters()[0].variable == net.a.weight));
  BOOST_TEST(net.named_parameters().size() == 2U);
  BOOST_TEST(net.parameters().size() == 1U);
  BOOST_TEST(net.parameter_count() == 4);
  net.b.weight.assign(twos());
  BOOST_TEST(identical(net.a.weight.peek(), twos()));
}

/// loss = sum(x W W), x = [1 1], W = 2 everywhere: d/dW = x^T (1 W^T) + (x W)^T 1 = 4 + 4.
BOOST_AUTO_TEST_CASE(a_tied_parameter_gets_the_sum_of_its_gradients) {
  const Pair net;
  net.b.weight.tie(net.a.weight);
  net.a.weight.assign(twos());
  nn::Sgd sgd(net.parameters(), {.learning_rate = 0.25});
  const auto step = [&](const Tensor& x) {
    Tape tape;
    const Tensor loss = sum(net.forward(x));
    sgd.step(tape.grad(loss, net.parameters()));
    return loss;
  };
  (void)step(ones({1, 2}));
  BOOST_TEST(identical(net.b.weight.peek(), zeros({2, 2})));
  net.a.weight.assign(twos());
  (void)compile(step)(ones({1, 2}));
  BOOST_TEST(identical(net.b.weight.peek(), zeros({2, 2})));
}

BOOST_AUTO_TEST_CASE(assigning_to_a_registered_parameter_ties_it) {
  Pair net;
  net.b.weight = net.a.weight;
  BOOST_TEST(net.parameters().size() == 1U);
  BOOST_TEST((net.named_parameters()[1].variable == net.b.weight));
  nn::Linear c(2, 2, {.seed = 0}, false);
  c.weight = Parameter("other", twos(), FileLayout::transposed);
  BOOST_TEST(identical(c.named_parameters()[0].variable.peek(), twos()));
  c.weight.assign(ones({2, 2}));
  BOOST_TEST(identical(c.named_parameters()[0].variable.peek(), ones({2, 2})));
  Parameter handle = c.weight;  // copying a handle is allowed
  handle = net.a.weight;
  BOOST_TEST(!(c.weight == net.a.weight));
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_not_tied) {
  nn::Linear a(2, 2, {.seed = 0, .prefix = "a"});
  nn::Linear b(2, 3, {.seed = 0, .prefix = "b"});
  const nn::Embedding table(2, 2, {.seed = 0, .prefix = "t"});
  BOOST_CHECK_EXCEPTION(b.weight.tie(a.weight), ShapeError, says("tie: 'b.weight' and 'a.weight' have shapes"));
  BOOST_CHECK_EXCEPTION(b.weight = a.weight, ShapeError, says("tie: 'b.weight' and 'a.weight' have shapes"));
  BOOST_CHECK_EXCEPTION(a.weight.tie(nn::Linear(2, 2, {.seed = 0, .dtype = Dtype::f64}).weight), DtypeError,
                        says("hold f32"));
  BOOST_CHECK_EXCEPTION(a.weight.tie(table.weight), ValueError, says("one is transposed in files"));
  BOOST_CHECK_EXCEPTION(a.weight.tie(Parameter()), Error, says("tie: 'a.weight' was given an empty handle"));
  BOOST_CHECK_EXCEPTION(a.bias = Parameter(), Error, says("tie: 'a.bias' was given an empty handle"));
  BOOST_TEST(a.parameters().size() == 2U);
  BOOST_TEST((a.named_parameters()[0].variable == a.weight));
}

BOOST_AUTO_TEST_CASE(clones_are_tied_as_the_original) {
  nn::Sequential net;
  net.add("a", std::make_unique<nn::Linear>(2, 2, nn::Init{.seed = 0}));
  net.add("b", std::make_unique<nn::Linear>(2, 2, nn::Init{.seed = 0}));
  net.named_parameters()[2].variable.tie(net.named_parameters()[0].variable);
  const auto copy = net.clone();
  BOOST_TEST(copy->parameters().size() == 3U);
  BOOST_TEST((copy->named_parameters()[2].variable == copy->named_parameters()[0].variable));
  BOOST_TEST(!(copy->named_parameters()[0].variable == net.named_parameters()[0].variable));
}

BOOST_AUTO_TEST_CASE(an_optimiser_made_before_tying_is_refused) {
  const Pair net;
  nn::Sgd sgd(net.parameters(), {.learning_rate = 1});
  net.b.weight.tie(net.a.weight);
  net.a.weight.assign(twos());
  BOOST_CHECK_EXCEPTION(sgd.step(Tensors{ones({2, 2}), ones({2, 2})}), ValueError,
                        says("optimizer: the parameter 'a.weight' is given twice"));
  BOOST_TEST(identical(net.a.weight.peek(), twos()));
}

BOOST_AUTO_TEST_CASE(a_function_compiled_before_tying_is_traced_again) {
  const Pair net;
  const auto f = compile([&](const Tensor& x) {
    net.a.weight.assign(net.a.weight.value() + 1);
    return net.forward(x);
  });
  (void)f(ones({1, 2}));
  net.b.weight.tie(net.a.weight);
  net.a.weight.assign(ones({2, 2}));
  BOOST_TEST(identical(f(ones({1, 2})), full({1, 2}, 16)));  // [1 1] W W with W = 2
}

BOOST_AUTO_TEST_CASE(files_hold_a_tied_parameter_once_and_may_hold_it_twice) {
  const Pair net;
  net.b.weight.tie(net.a.weight);
  net.a.weight.assign(twos());
  const io::ModuleContents once = io::contents(net);
  BOOST_TEST(once.tensors.size() == 1U);
  // PyTorch's state_dict has both names and requires both.
  const std::vector<io::NamedTensor> both = io::contents(net, {.every_name = true}).tensors;
  BOOST_TEST(both.size() == 2U);
  for (const auto& tensors : {once.tensors, both}) {
    const Pair other;
    other.b.weight.tie(other.a.weight);
    const std::vector<std::byte> bytes = io::serialize_torch(tensors);
    io::load(other, io::parse_torch(bytes));
    BOOST_TEST(identical(other.b.weight.peek(), twos()));
  }
  const Pair apart;
  const std::vector<std::byte> bytes = io::serialize_torch(both);
  io::load(apart, io::parse_torch(bytes));
  BOOST_TEST(identical(apart.b.weight.peek(), twos()));
}

BOOST_AUTO_TEST_CASE(an_adopted_layer_cannot_be_replaced_unseen) {
  Pair net;
  const Tensor before = net.b.weight.peek();
  BOOST_CHECK_EXCEPTION(net.b = nn::Linear(2, 2, {.seed = 0}, false), ValueError,
                        says("module: was adopted by another module"));
  BOOST_TEST(identical(net.b.weight.peek(), before));
  Pair other;
  other.a.weight.assign(twos());
  net = std::move(other);  // assigning the whole is allowed
  BOOST_TEST((net.named_parameters()[0].variable == net.a.weight));
  BOOST_TEST(identical(net.a.weight.peek(), twos()));
}

BOOST_AUTO_TEST_CASE(a_module_registers_a_name_once) {
  struct Twice : nn::Module {
    Twice() {
      (void)buffer("x", ones({1}));
      (void)buffer("x", ones({1}));
    }
  };
  BOOST_CHECK_EXCEPTION(Twice(), ValueError, says("module: the name 'x' is taken"));
}

BOOST_AUTO_TEST_SUITE_END()

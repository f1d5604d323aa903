// Null functions, null cells and objects that were moved from: errors that say so, never a crash.
#include "ferrite/dsl/builder.h"
#include "ferrite/io/module_file.h"
#include "ferrite/nn/custom.h"
#include "ferrite/nn/layers.h"
#include "ferrite/nn/lstm.h"
#include "ferrite/nn/stream.h"
#include "support/compare.h"

using namespace ferrite;
using support::says;

BOOST_AUTO_TEST_SUITE(misuse)

BOOST_AUTO_TEST_CASE(null_functions) {
  BOOST_CHECK_EXCEPTION(nn::Activation("x", nullptr), ValueError, says("activation: the function of 'x' is null"));
  BOOST_CHECK_EXCEPTION(nn::Custom(nullptr, 2, 3), ValueError, says("custom: the function that makes cells is null"));
  const auto none = [](std::int64_t, const nn::Init&) { return std::unique_ptr<nn::CustomCell>(); };
  BOOST_CHECK_EXCEPTION(nn::Custom(none, 2, 3), ValueError, says("gave null for 'cell_l0'"));
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(2).recurrent(nullptr, 3).build(0), ValueError, says("makes cells is null"));
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(2).stage("a", nullptr), ValueError, says("stage: the part is empty"));
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(2).residual(nullptr), ValueError, says("residual: the part is empty"));
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(2).repeat(2, nullptr), ValueError, says("repeat: the part is empty"));
  BOOST_CHECK_EXCEPTION((void)unroll(ones({1, 2, 3}), {}, nullptr, {}), ValueError, says("unroll: the step is null"));
  BOOST_CHECK_EXCEPTION(Parameter("p", Spec{{2}, Dtype::f32}, nullptr), ValueError, says("its first value is null"));
  BOOST_CHECK_EXCEPTION(io::TensorFile("f", nullptr), Error, says("tensor file: has no contents"));
  const io::TensorFile file = io::tensor_file_of({}, "f");
  BOOST_CHECK_EXCEPTION((void)file.renamed(nullptr), ValueError, says("renamed: the function is null"));
}

BOOST_AUTO_TEST_CASE(empty_handles) {
  const Parameter none;
  BOOST_TEST(!none.defined());
  BOOST_CHECK_EXCEPTION((void)none.value(), Error, says("cell: empty handle"));
  BOOST_CHECK_EXCEPTION((void)none.peek(), Error, says("cell: empty handle"));
  BOOST_CHECK_EXCEPTION((void)(none * 2), Error, says("cell: empty handle"));
  BOOST_CHECK_EXCEPTION(none.assign(ones({2})), Error, says("cell: empty handle"));
  BOOST_CHECK_EXCEPTION((void)none.shape(), Error, says("cell: empty handle"));
  BOOST_CHECK_EXCEPTION((void)none.name(), Error, says("cell: empty handle"));
}

template <class L>
void check_moved_from(L layer, const Tensor& x) {
  const L now = std::move(layer);
  BOOST_TEST((void(now(x)), true));
  const L& gone = layer;  // NOLINT: it is what is tried
  const auto moved = says("moved from");
  BOOST_CHECK_EXCEPTION((void)gone(x), Error, moved);
  BOOST_CHECK_EXCEPTION((void)gone.parameters(), Error, moved);
  BOOST_CHECK_EXCEPTION((void)gone.parameter_count(), Error, moved);
  BOOST_CHECK_EXCEPTION((void)gone.named_parameters(), Error, moved);
  BOOST_CHECK_EXCEPTION((void)gone.training(), Error, moved);
  BOOST_CHECK_EXCEPTION(gone.eval(), Error, moved);
  BOOST_CHECK_EXCEPTION((void)gone.stream(), Error, moved);
  BOOST_CHECK_EXCEPTION((void)io::contents(gone), Error, moved);
  BOOST_CHECK_THROW((void)gone.clone(), Error);
  struct Parent : nn::Module {
    explicit Parent(const nn::Module& child) { adopt("child", child); }
  };
  BOOST_CHECK_EXCEPTION(Parent{gone}, Error, moved);
}

BOOST_AUTO_TEST_CASE(modules_that_were_moved_from) {
  const nn::Init init{.seed = 1};
  check_moved_from(nn::Linear(2, 3, init), ones({1, 2}));
  check_moved_from(nn::Embedding(2, 3, init), zeros({1, 2}, Dtype::i64));
  check_moved_from(nn::LayerNorm(2), ones({1, 2}));
  check_moved_from(nn::Dropout(0.5, init), ones({1, 2}));
  check_moved_from(nn::Gru(2, 3, {.dropout = 0.5}, init), ones({1, 4, 2}));
  check_moved_from(nn::Lstm(2, 3, {}, init), ones({1, 4, 2}));
  check_moved_from(nn::custom<nn::LayerNormGruCell>(2, 3, {}, init), ones({1, 4, 2}));
  check_moved_from(dsl::sequence(2).gru(3).build(0), ones({1, 4, 2}));
  nn::Gru gru(2, 3, {}, init);
  const nn::Gru now = std::move(gru);
  BOOST_CHECK_EXCEPTION((void)gru.run(ones({1, 4, 2})), Error, says("moved from"));
  BOOST_CHECK_EXCEPTION((void)gru.weights(), Error, says("moved from"));
  nn::Sequential chain;
  const nn::Sequential taken = std::move(chain);
  BOOST_CHECK_EXCEPTION(chain.add("a", std::make_unique<nn::Flatten>()), Error, says("moved from"));
}

BOOST_AUTO_TEST_CASE(streams_and_files_that_were_moved_from) {
  const nn::Gru gru(2, 3, {}, {.seed = 1});
  nn::Stream stream = gru.stream();
  nn::Stream now = std::move(stream);
  std::vector<float> x(2), y(3);
  now.step(x, y);
  BOOST_CHECK_EXCEPTION(stream.step(x, y), Error, says("stream: was moved from"));
  BOOST_CHECK_EXCEPTION(stream.clone().step(x, y), Error, says("stream: was moved from"));
  stream.reset(), stream.refresh();
  BOOST_TEST(stream.save().empty());
  io::TensorFile file = io::tensor_file_of({{"a", ones({2})}}, "f");
  const io::TensorFile taken = std::move(file);
  BOOST_CHECK_EXCEPTION((void)file.size(), Error, says("tensor file: has no contents"));
  BOOST_CHECK_EXCEPTION((void)file.names(), Error, says("tensor file: has no contents"));
  BOOST_CHECK_EXCEPTION((void)file.tensor("a"), Error, says("tensor file: has no contents"));
}

BOOST_AUTO_TEST_SUITE_END()

// The table in docs/from-pytorch.md of names that mean something else in PyTorch: every row is true of the code.
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <set>

#include "ferrite/nn/layers/attention.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/sgd.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/nn/recurrent/rnn.h"
#include "ferrite/tensor/normalization.h"
#include "ferrite/tensor/shapes.h"
#include "ferrite/train/loss.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::within;

namespace {

/// Returns the first cell of each row.
std::set<std::string> rows_of_the_page() {
  std::ifstream file(std::string(FERRITE_SOURCE_DIR) + "/docs/from-pytorch.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t begin = text.find("## The same name, another meaning"), end = text.find("\n## ", begin + 1);
  BOOST_REQUIRE(begin != std::string::npos);
  std::set<std::string> rows;
  for (std::size_t at = text.find("\n| `", begin); at < end; at = text.find("\n| `", at + 1))
    rows.insert(text.substr(at + 3, text.find(" | ", at) - at - 3));
  return rows;
}

/// Weights 2, 1 and 3 for the classes 0, 1 and 2; there are as many classes as targets.
const Tensor kWeight = Tensor::from<float>({2, 1, 3});
const Tensor kTargets = Tensor::from<std::int64_t>({2, 0, 2});

Tensor scores() { return uniform({3, 3}, {.seed = 1}, -2, 2); }
/// Returns the weight of each target's class.
Tensor of_classes() { return Tensor::from<float>({3, 2, 3}); }
Tensor weighted_mean(const Tensor& losses, const Tensor& weights) { return sum(losses * weights) / sum(weights); }

template <class Loss>
void check_class_losses(const Loss& loss, const Tensor& x) {
  const Tensor each = loss(x, {.reduction = nn::Reduction::none});
  BOOST_TEST(within(loss(x, {.class_weight = kWeight}), weighted_mean(each, of_classes()), 1e-6));
  BOOST_TEST(within(loss(x, {.element_weight = kWeight}), weighted_mean(each, kWeight), 1e-6));
}

/// Tests by row; expected values are sums by hand over the losses of elements.
const std::map<std::string, std::function<void()>> kRows = {
    {"`F.cross_entropy(x, y, weight=w)`, `F.nll_loss`: a weight for each class",
     [] {
       check_class_losses(
           [](const Tensor& x, const nn::ClassLossOptions& o) { return nn::cross_entropy(x, kTargets, o); }, scores());
       check_class_losses([](const Tensor& x, const nn::ClassLossOptions& o) { return nn::nll_loss(x, kTargets, o); },
                          log_softmax(scores(), 1));
     }},
    {"`F.multi_margin_loss(x, y, weight=w)`: a weight for each class",
     [] {
       const auto loss = [](const nn::MultiMarginParameters& p, const nn::LossOptions& o) {
         return nn::multi_margin_loss(scores(), kTargets, p, o);
       };
       const Tensor each = loss({}, {.reduction = nn::Reduction::none});
       BOOST_TEST(within(loss({.class_weight = kWeight}, {}), mean(each * of_classes()), 1e-6));
       BOOST_TEST(within(loss({}, {.element_weight = kWeight}), weighted_mean(each, kWeight), 1e-6));
     }},
    {"`F.multilabel_soft_margin_loss(x, y, weight=w)`: a weight for each class",
     [] {
       const Tensor y = eye(3), x = scores(), none;
       const Tensor terms = nn::bce_with_logits(x, y, nn::Reduction::none);
       BOOST_TEST(within(nn::multilabel_soft_margin_loss(x, y, kWeight), mean(terms * kWeight), 1e-6));
       BOOST_TEST(within(nn::multilabel_soft_margin_loss(x, y, none, {.element_weight = kWeight}),
                         weighted_mean(mean(terms, {1}), kWeight), 1e-6));
     }},
    {"`F.mse_loss(x, y, weight=w)`, `F.binary_cross_entropy(x, y, weight=w)`: a weight for each element",
     [] {
       const Tensor x = uniform({3}, {.seed = 2}, 0.1, 0.9), y = uniform({3}, {.seed = 3}, 0.1, 0.9);
       BOOST_TEST(within(nn::mse_loss(x, y, {.element_weight = kWeight}), weighted_mean(square(x - y), kWeight), 1e-6));
       const Tensor each = nn::bce(x, y, {.reduction = nn::Reduction::none});
       BOOST_TEST(within(nn::bce(x, y, {.element_weight = kWeight}), mean(each * kWeight), 1e-6));
     }},
    {"`F.cross_entropy(x, y)` of `[B, C, T]`: the classes are the second axis",
     [] {
       const Tensor x = uniform({1, 3, 3}, {.seed = 4}, -2, 2), y = unsqueeze(kTargets, 0);
       const Tensor second = nn::cross_entropy(x, y, {.classes_last = false});
       const Tensor last = nn::cross_entropy(x, y, {.classes_last = true});
       BOOST_TEST(within(second, nn::cross_entropy(transpose(select(x, 0, 0)), kTargets), 1e-6));
       BOOST_TEST(within(last, nn::cross_entropy(select(x, 0, 0), kTargets), 1e-6));
       BOOST_CHECK_THROW((void)nn::cross_entropy(x, y), ValueError);
       train::Batch batch;
       batch.fields = {x, y};
       batch.lengths = {Tensor(), Tensor()};
       BOOST_TEST(identical(train::Loss("cross_entropy_classes_second")(x, batch), second));
       BOOST_TEST(identical(train::Loss("cross_entropy_classes_last")(x, batch), last));
       BOOST_CHECK_EXCEPTION((void)train::Loss("cross_entropy")(x, batch), ValueError,
                             support::says("name it 'cross_entropy_classes_last' for [B, ..., C]"));
     }},
    {"`torch.argmax(x)`, `torch.argmin(x)`: of all elements",
     [] {
       const Tensor x = Tensor::from<float>({1, 5, 2, 9, 0, 3}, {2, 3});
       BOOST_TEST(identical(argmax(x), Tensor::from<std::int64_t>({1, 0})));
       BOOST_TEST(identical(argmin(x), Tensor::from<std::int64_t>({0, 1})));
       BOOST_TEST(argmax(flatten(x)).item<std::int64_t>() == 3);
     }},
    {"`torch.cross(a, b)`: along the first axis of extent 3",
     [] {
       const Tensor a = scores(), b = uniform({3, 3}, {.seed = 5}, -2, 2);
       BOOST_TEST(identical(cross(a, b), cross(a, b, 1)));
       BOOST_TEST(!identical(cross(a, b), cross(a, b, 0)));
     }},
    {"`F.layer_norm(x, (4, 5))`, `F.rms_norm`: the extents of the last axes",
     [] {
       const Tensor x = uniform({2, 4, 5}, {.seed = 6}, -2, 2), rows = reshape(x, {2, 20});
       BOOST_TEST(within(layer_norm(x, 2), reshape(layer_norm(rows), {2, 4, 5}), 1e-6));
       BOOST_TEST(within(rms_norm(x, 2), reshape(rms_norm(rows), {2, 4, 5}), 1e-6));
     }},
    {"`F.pad(x, (1, 2))`: pairs from the last axis on",
     [] {
       BOOST_TEST((pad(ones({2, 3}), {0, 1}, {0, 2}).shape() == Shape{2, 6}));
     }},
    {"`F.one_hot(y, 4)`: int64",
     [] {
       BOOST_TEST((one_hot(kTargets, 4).dtype() == Dtype::f32));
       BOOST_TEST((one_hot(kTargets, 4, Dtype::i64).dtype() == Dtype::i64));
     }},
    {"`nn.GRU(3, 4)`, `nn.LSTM`, `nn.RNN`: `[T, B, D]` unless `batch_first=True`",
     [] {
       const Tensor x = uniform({2, 5, 3}, {.seed = 7}, -1, 1);
       const auto check = [&]<class L, class O>(const O&, const L*) {
         const L rows(3, 4, O{}, {.seed = 1}), steps(3, 4, O{.batch_first = false}, {.seed = 1});
         BOOST_TEST(within(rows(x), transpose(steps(transpose(x, 0, 1)), 0, 1), 1e-6));
         const Tensor all = rows(x), first = rows(slice(x, 1, 0, 1));
         BOOST_TEST(within(contiguous(slice(all, 1, 0, 1)), first, 1e-6));  // axis 1 is the time
       };
       check(nn::GruOptions{}, static_cast<const nn::Gru*>(nullptr));
       check(nn::LstmOptions{}, static_cast<const nn::Lstm*>(nullptr));
       check(nn::RnnOptions{}, static_cast<const nn::Rnn*>(nullptr));
     }},
    {"`nn.MultiheadAttention(8, 2)`: `[T, B, E]` unless `batch_first=True`",
     [] {
       const nn::MultiheadAttention layer({.embed_dim = 8, .num_heads = 2}, {.seed = 1});
       const Tensor x = uniform({2, 5, 8}, {.seed = 8}, -1, 1);
       BOOST_TEST(within(contiguous(slice(layer(x), 0, 1, 2)), layer(slice(x, 0, 1, 2)), 1e-6));  // axis 0 is the batch
     }},
    {"`nn.Linear(3, 4).weight`: `[4, 3]`",
     [] {
       BOOST_TEST((nn::Linear(3, 4).weight.shape() == Shape{3, 4}));
     }},
    {"`torch.optim.SGD(p)`: `lr=1e-3`", [] { BOOST_TEST(nn::SgdOptions{}.learning_rate == 1e-2); }}};

}  // namespace

BOOST_AUTO_TEST_SUITE(from_pytorch)

BOOST_AUTO_TEST_CASE(names_that_mean_something_else_are_as_the_table_says) {
  std::set<std::string> tried;
  for (const auto& [row, shown] : kRows) BOOST_TEST_CONTEXT(row) {
      tried.insert(row);
      shown();
    }
  const std::set<std::string> rows = rows_of_the_page();
  for (const std::string& row : rows) BOOST_TEST(tried.contains(row), "nothing shows the row " << row);
  for (const std::string& row : tried) BOOST_TEST(rows.contains(row), "the page has no row " << row);
}

BOOST_AUTO_TEST_SUITE_END()

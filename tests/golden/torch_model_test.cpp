// A model of every kind of recurrent layer, saved by torch.save(model.state_dict()): loaded in one line, it has
// PyTorch's numbers. tests/data/make_torch_model.py writes it.
#include "ferrite/io/module_file.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/nn/recurrent/rnn.h"
#include "support/compare.h"
#include "support/fixtures.h"

using namespace ferrite;
using support::within;

namespace {

struct Model : nn::Module {
  nn::Init init;
  nn::Gru encoder;
  nn::Lstm middle;
  nn::Rnn last;
  nn::LayerNorm norm;
  nn::Linear head;

  explicit Model(Dtype dtype)
      : init{1, {}, dtype},
        encoder(4, 5, {.layers = 2, .bidirectional = true}, init),
        middle(10, 6, {.layers = 2, .proj_size = 3}, init),
        last(3, 4, {.bias = false, .nonlinearity = nn::Nonlinearity::relu}, init),
        norm(4, init),
        head(4, 2, init) {
    adopt("encoder", encoder), adopt("middle", middle), adopt("last", last), adopt("norm", norm), adopt("head", head);
  }
  Tensor operator()(const Tensor& x, const Tensor& lengths) const {
    const nn::Context context{.lengths = lengths};
    return head(norm(last(middle(encoder(x, context), context), context)));
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(torch_model)

BOOST_AUTO_TEST_CASE(loads_in_one_line_and_gives_pytorchs_numbers) {
  const io::TensorFile wanted = support::fixture("torch_model.safetensors");
  for (const Dtype dtype : {Dtype::f64, Dtype::f32}) {
    const Model model(dtype);
    io::load(model, support::fixture_path("torch_model.pt"));
    const Tensor y = model(cast(wanted.tensor("x"), dtype), wanted.tensor("lengths"));
    BOOST_TEST(within(y, wanted.tensor("y"), dtype == Dtype::f64 ? 1e-12 : 1e-6));
  }
}

BOOST_AUTO_TEST_SUITE_END()

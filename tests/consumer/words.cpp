// A program that imports every name of std and of ferrite and has types with ordinary names. The test is that it
// compiles. Only the headers <stack> and <valarray> are left out, whose stack and slice conflict with ours.
#include <ferrite/ferrite.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <complex>
#include <deque>
#include <filesystem>
#include <functional>
#include <iostream>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <ranges>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

using namespace std;
using namespace ferrite;

struct Block {
  int height = 1;
};
struct Range {
  double first = 0, last = 1;
};
struct Layout {
  string name = "wide";
};
struct Sample {
  float left = 0, right = 0;
};
struct Reads {
  int count = 0;
};
struct Dense {
  vector<float> elements;
};
struct Writer {
  ostream* to = &cout;
};
int threads = 2;

namespace {

int wrong = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  cerr << "wrong: " << what << '\n';
  ++wrong;
}

bool every(const Tensor& t) { return sum(!t).item<int64_t>() == 0; }

void comparisons() {
  const Tensor a = Tensor::from({1.0F, 2.0F, 3.0F}), b = Tensor::from({3.0F, 2.0F, 1.0F});
  expect(every(eq(lt(a, b), a < b) && eq(le(a, b), a <= b)), "less");
  expect(every(eq(gt(a, b), a > b) && eq(ge(a, b), a >= b)), "greater");
  expect(every(ne(a, b) || eq(a, 2)), "equal");
  expect(less<>()(1, 2) && greater<int>()(2, 1), "those of std are still there");
}

void functions() {
  const Tensor x = arange(0.0, 6.0, 1.0);
  expect(max(x).item() == 5 && min(x, {0}).item() == 0 && max(1, 2) == 2, "max and min");
  expect(max(abs(-x)).item() == 5 && abs(-3) == 3, "abs");
  (void)(exp(x) + log(x + 1) + sqrt(x) + sin(x) + cos(x) + tanh(x) + erf(x) + pow(x, 2.0) + clamp(x, 0, 1));
  expect(exp(0.0) == 1 && sqrt(4.0) == 2 && clamp(7, 0, 3) == 3, "numbers are still numbers");
  expect(select(reshape(x, {2, 3}), 0, 1).numel() == 3, "select");
  expect(transpose(reshape(x, {2, 3})).size(0) == 3, "transpose");
  expect(where(x < 3, x, 0.0).numel() == 6 && cast(x, Dtype::f64).numel() == 6, "where and cast");
  expect(split(x, 2).size() == 3 && chunk(x, 2).size() == 2 && unbind(x).size() == 6, "split, chunk, unbind");
  expect(mean(x).item() == 2.5F && prod(x).item() == 0 && argmax(x).item<int64_t>() == 5, "reductions");
  expect(full({2}, 1).numel() == 2 && zeros({2}).numel() == ones({2}).numel(), "creation");
}

void own_words() {
  const Block block;
  const Range range;
  const Layout layout;
  const Sample sample;
  const Reads reads;
  const Dense dense;
  const Writer writer;
  expect(block.height == 1 && range.last == 1 && layout.name == "wide" && sample.left == 0 && reads.count == 0 &&
             dense.elements.empty() && writer.to == &cout && threads == 2,
         "a program's own words");
  set_threads(threads);
  expect(thread_count() == 2, "threads");
}

void training() {
  using namespace ferrite::nn;
  const dsl::Network net = dsl::sequence(3).gru(4).last_step().linear(2).build(0);
  Adam adam(net.parameters(), {.learning_rate = 1e-2});
  Tape tape;
  const Tensor loss = cross_entropy(net(ones({2, 5, 3})), Tensor::from<int64_t>({0, 1}));
  expect(adam.step(tape.grad(loss, net.parameters())), "a step");
  const function<Tensor(const Tensor&)> f = [&](const Tensor& x) { return net(x); };
  expect(f(ones({1, 5, 3})).numel() == 2, "std::function");
}

void files() {
  const filesystem::path path = filesystem::temp_directory_path() / ("ferrite-words-" + to_string(random_device()()));
  const vector<io::NamedTensor> tensors = {{"a", ones({2})}};
  io::write_tensors(path.string() + ".npz", tensors);
  expect(io::read_tensors(path.string() + ".npz").tensor("a").numel() == 2, "read_tensors");
  filesystem::remove(path.string() + ".npz");
  const string text = R"({"layers": [{"type": "dense", "weights": [[[1]], [0]]}]})";
  expect(io::parse_rtneural(as_bytes(span(text)))->size() == 1, "parse_rtneural");
  const string weights = R"({"gru.kernel": [[1, 2, 3]], "gru.recurrent_kernel": [[1, 2, 3]]})";
  expect(io::from_keras(io::parse_json_weights(as_bytes(span(weights)))).size() == 2, "from_keras");
  expect(!io::checksum(tensors, {}).empty(), "checksum");
}

}  // namespace

int main() {
  comparisons();
  functions();
  own_words();
  training();
  files();
  return wrong;
}

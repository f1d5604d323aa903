// Models that are read and exported again with open extents: what they compute from extents remains arithmetic.
#include <boost/test/unit_test.hpp>

#include "exchange/program_cases.h"
#include "ferrite/exchange/onnx.h"
#include "ferrite/exchange/onnx_export.h"
#include "ferrite/exchange/stablehlo.h"
#include "ferrite/tensor/convolution.h"
#include "ferrite/tensor/pooling.h"
#include "ferrite/tensor/random.h"
#include "onnx/exporting.h"
#include "onnx/wire.h"
#include "support/compare.h"

using namespace ferrite;
using exporting::exported;
using exporting::Function;
using exporting::numbers;
using support::says;
using wire::parsed;

namespace {

/// Exports a graph x -> y again with its first axis open.
onnx::Model with_open_rows(const onnx::Model& model, std::int64_t rows = 4) {
  const Function read = [&](const Tensors& in) { return model.run(in); };
  return parsed(exported(read, {{{rows, 3}}}, {.dynamic = {{.name = "n"}}}));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(onnx_open_extents)

/// A condition on its extents, numbers that only a constant has (Unique), and a range of floats.
BOOST_AUTO_TEST_CASE(what_a_model_computes_from_extents_stays_open) {
  using namespace wire;
  constexpr std::size_t kFloat = 1, kInt64 = 7;
  const auto to_float = [](const std::string& in, const std::string& out) {
    return node("Cast", in, out, int_attribute("to", kFloat));
  };
  const std::string branches =
      graph_attribute("then_branch", graph(node("Relu", "x", "a"), {}, {"a"})) +
      graph_attribute("else_branch", graph(node("ReduceSum", "x", "b"), {}, {"b"}));  // of another rank
  const std::string content =
      initialiser(tensor<std::int64_t>("zero", kInt64, {}, {0})) +
      initialiser(tensor<std::int64_t>("one", kInt64, {1}, {1})) +
      initialiser(tensor<float>("begin", kFloat, {}, {0.5F})) + initialiser(tensor<float>("step", kFloat, {}, {1})) +
      node("Shape", "x", "shape") + node_of("Gather", {"shape", "zero"}, {"n"}) +
      node_of("Gather", {"shape", "one"}, {"width"}) + node("Unique", "width", "widths") + to_float("widths", "scale") +
      node_of("Greater", {"n", "zero"}, {"some"}) + node("If", "some", "positive", branches) + to_float("n", "end") +
      node_of("Range", {"begin", "end", "step"}, {"rows"}) + node_of("Unsqueeze", {"rows", "one"}, {"column"}) +
      node_of("Mul", {"positive", "scale"}, {"scaled"}) + node_of("Add", {"scaled", "column"}, {"y"});
  const onnx::Model model = parsed(model_of(graph(content, {"x"}, {"y"})));
  const Function read = [&](const Tensors& in) { return model.run(in); };
  const onnx::Model again = parsed(exported(read, {{{4, 3}}}, {.dynamic = {{.name = "n"}}}));
  for (const std::int64_t n : {1, 2, 9}) {
    const Tensor x = numbers({n, 3}), column = unsqueeze(arange(0.5, static_cast<double>(n)), 1);
    BOOST_TEST(support::identical(model.run({x})[0], relu(x) * 3 + column));
    BOOST_TEST(support::identical(again.run({x})[0], relu(x) * 3 + column));
  }
}

/// An extent is used as a number among data, in the graph and within a node, not only as the shape of a Reshape.
BOOST_AUTO_TEST_CASE(an_extent_as_data_stays_open) {
  using namespace wire;
  const std::string rows = int_attribute("start", 0) + int_attribute("end", 1);
  const std::string mean = initialiser(tensor<std::int64_t>("zero", 7, {1}, {0})) + node("Shape", "x", "rows", rows) +
                           node_of("Squeeze", {"rows", "zero"}, {"n"}) +
                           node("Cast", "n", "count", int_attribute("to", 1)) + node_of("Div", {"x", "count"}, {"y"});
  const std::string body =
      graph(node("Shape", "x", "inner_rows", rows) + node("Cast", "inner_rows", "count", int_attribute("to", 1)) +
                node_of("Div", {"s", "count"}, {"part"}) + node_of("Add", {"part", "e"}, {"next"}),
            {"s", "e"}, {"next"});
  const std::string recurrence =
      initialiser(tensor<float>("begin", 1, {}, {0.5F})) + node("Transpose", "x", "columns") +
      node_of("ReduceSum", {"columns"}, {"state"}, int_attribute("keepdims", 0)) +
      initialiser(tensor<std::int64_t>("one", 7, {1}, {1})) + node_of("Unsqueeze", {"x", "one"}, {"steps"}) +
      node_of("Reshape", {"state", "one"}, {"flat"}) + node_of("Expand", {"flat", "three"}, {"first"}) +
      initialiser(tensor<std::int64_t>("three", 7, {2}, {1, 3})) +
      node_of("Scan", {"first", "steps"}, {"y"}, int_attribute("num_scan_inputs", 1) + graph_attribute("body", body));
  for (const std::string& content : {mean, recurrence}) {
    const onnx::Model model = parsed(model_of(graph(content, {"x"}, {"y"})));
    const onnx::Model again = with_open_rows(model);
    for (const std::int64_t n : {1, 3, 12}) {
      const Tensor x = numbers({n, 3});
      BOOST_TEST(support::identical(again.run({x})[0], model.run({x})[0]));
    }
  }
}

/// If there are fewer rows than the slice takes from the end, it must not count from the end again.
BOOST_AUTO_TEST_CASE(slices_of_the_last_rows_end_where_there_are_none) {
  using namespace wire;
  for (const auto& [begin, end] : {std::pair{-5, 100}, {-5, -2}, {0, -5}}) {
    const std::string content = initialiser(tensor<std::int64_t>("begin", 7, {1}, {begin})) +
                                initialiser(tensor<std::int64_t>("end", 7, {1}, {end})) +
                                node_of("Slice", {"x", "begin", "end"}, {"y"});
    const onnx::Model model = parsed(model_of(graph(content, {"x"}, {"y"})));
    if (end == 100) {  // rows beyond the hundredth are not included
      BOOST_CHECK_THROW((void)with_open_rows(model), onnx::ExportError);
      continue;
    }
    const onnx::Model again = with_open_rows(model);
    for (const std::int64_t n : {1, 2, 3, 4, 5, 12}) {
      const Tensor x = numbers({n, 3});
      BOOST_TEST(support::identical(again.run({x})[0], model.run({x})[0]), n << " rows");
    }
  }
}

/// Numbers that are linear near the extents of the example, but not far above or below them.
BOOST_AUTO_TEST_CASE(numbers_that_bend_are_refused) {
  using namespace wire;
  const std::string n = initialiser(tensor<std::int64_t>("zero", 7, {}, {0})) +
                        initialiser(tensor<std::int64_t>("one", 7, {}, {1})) + node("Shape", "x", "shape") +
                        node_of("Gather", {"shape", "zero"}, {"n"});
  const auto range = [&](const std::string& op, std::int64_t bound) {
    const std::string content = n + initialiser(tensor<std::int64_t>("bound", 7, {}, {bound})) +
                                node_of(op, {"n", "bound"}, {"m"}) + node_of("Range", {"zero", "m", "one"}, {"y"});
    return parsed(model_of(graph(content, {"x"}, {"y"})));
  };
  const auto refused = [](const onnx::Model& model) {
    BOOST_CHECK_EXCEPTION((void)with_open_rows(model), onnx::ExportError,
                          says("an extent that should stay open is fixed"));
  };
  for (const auto& [op, bound] : {std::pair{"Add", 3}, {"Sub", 5}}) {  // also where none remains
    const onnx::Model model = range(op, bound), again = with_open_rows(model);
    for (const std::int64_t rows : {1, 7})
      BOOST_TEST(support::identical(again.run({numbers({rows, 3})})[0], model.run({numbers({rows, 3})})[0]));
  }
  refused(range("Min", 30));  // far above
  refused(range("Max", 3));   // below
  refused(range("Div", 64));
  const std::string shape = n + initialiser(tensor<std::int64_t>("three", 7, {1}, {3})) +
                            node_of("Max", {"n", "three"}, {"m"}) + node("ConstantOfShape", "m", "y");
  refused(parsed(model_of(graph(shape, {"x"}, {"y"}))));
  const std::string first = initialiser(tensor<std::int64_t>("begin", 7, {1}, {0})) +
                            initialiser(tensor<std::int64_t>("end", 7, {1}, {16})) +
                            node_of("Slice", {"x", "begin", "end"}, {"y"});
  refused(parsed(model_of(graph(first, {"x"}, {"y"}))));
  // The program sums along as many of the axes 0 and 1 as there are rows.
  const std::string axes = initialiser(tensor<std::int64_t>("both", 7, {2}, {0, 1})) +
                           initialiser(tensor<std::int64_t>("begin", 7, {1}, {0})) +
                           node("Shape", "x", "rows", int_attribute("start", 0) + int_attribute("end", 1)) +
                           node_of("Slice", {"both", "begin", "rows"}, {"axes"}) +
                           node_of("ReduceSum", {"x", "axes"}, {"y"});
  refused(parsed(model_of(graph(axes, {"x"}, {"y"}))));
  const std::string last =
      n + initialiser(tensor<std::int64_t>("three", 7, {}, {3})) + node_of("Sub", {"n", "three"}, {"m"}) +
      node_of("Reshape", {"m", "list"}, {"begin"}) + initialiser(tensor<std::int64_t>("list", 7, {1}, {1})) +
      initialiser(tensor<std::int64_t>("end", 7, {1}, {1 << 20})) + node_of("Slice", {"x", "begin", "end"}, {"y"});
  refused(parsed(model_of(graph(last, {"x"}, {"y"}))));  // with one row it begins at -2, which is the first row
  const std::string backwards = initialiser(tensor<std::int64_t>("begin", 7, {1}, {-3})) +
                                initialiser(tensor<std::int64_t>("end", 7, {1}, {-(1 << 20)})) +
                                initialiser(tensor<std::int64_t>("axis", 7, {1}, {0})) +
                                initialiser(tensor<std::int64_t>("step", 7, {1}, {-1})) +
                                node_of("Slice", {"x", "begin", "end", "axis", "step"}, {"y"});
  refused(parsed(model_of(graph(backwards, {"x"}, {"y"}))));
  refused(parsed(model_of(graph(node("Squeeze", "x", "y"), {"x"}, {"y"}))));  // a single row loses its axis
  const std::string few = n + initialiser(tensor<std::int64_t>("four", 7, {}, {4})) +
                          node_of("Range", {"zero", "n", "one"}, {"all"}) + node_of("Mod", {"all", "four"}, {"some"}) +
                          node("Unique", "some", "y");
  refused(parsed(model_of(graph(few, {"x"}, {"y"}))));
}

/// The branch is refused even if the compared extents agree.
BOOST_AUTO_TEST_CASE(a_branch_for_some_extents_is_refused) {
  using namespace wire;
  const std::string branches = graph_attribute("then_branch", graph(node("Relu", "x", "a"), {}, {"a"})) +
                               graph_attribute("else_branch", graph(node("Neg", "x", "b"), {}, {"b"}));
  const auto exported_where_above = [&](std::int64_t bound, std::int64_t axis) {
    const std::string content = initialiser(tensor<std::int64_t>("bound", 7, {}, {bound})) +
                                initialiser(tensor<std::int64_t>("axis", 7, {}, {axis})) + node("Shape", "x", "shape") +
                                node_of("Gather", {"shape", "axis"}, {"n"}) +
                                node_of("Greater", {"n", "bound"}, {"c"}) + node("If", "c", "y", branches);
    const onnx::Model model = parsed(model_of(graph(content, {"x"}, {"y"})));
    const Function read = [&](const Tensors& in) { return model.run(in); };
    (void)exported(read, {{{4, 3}}}, {.dynamic = {{.name = "n"}}});
    (void)exchange::to_stablehlo(read, std::vector<Spec>{{{4, 3}}}, {.dynamic = {{.name = "n"}}});
  };
  BOOST_CHECK_NO_THROW(exported_where_above(0, 0));
  BOOST_CHECK_NO_THROW(exported_where_above(3, 1));  // an extent that is not open
  for (const std::int64_t bound : {1, 2})
    BOOST_CHECK_EXCEPTION(exported_where_above(bound, 0), onnx::ExportError,
                          says("(If) reads something else where n is 1"));
  BOOST_CHECK_EXCEPTION(exported_where_above(7, 0), onnx::ExportError,
                        says("an extent that should stay open is fixed"));
}

/// One file serves all extents: it computes what rounds down, and padding and sizes follow.
BOOST_AUTO_TEST_CASE(windows_and_interpolation_take_extents_that_no_stride_divides) {
  for (const exchange_test::OpenCase& c : exchange_test::open_window_cases()) {
    BOOST_TEST_CHECKPOINT(c.run.name);
    const onnx::Model model = parsed(onnx::to_onnx(c.f, c.specs, {.dynamic = c.axes}));
    const Tensors y = model.run(c.run.arguments);
    for (std::size_t i = 0; i < y.size(); ++i)
      BOOST_TEST(support::within(y[i], c.run.results[i], c.run.tolerance), c.run.name);
  }
}

/// A pooling node has one padding for all extents, where each extent alone would be written with another.
BOOST_AUTO_TEST_CASE(one_padding_gives_the_windows_of_all_extents) {
  const Function pooled = [](const Tensors& in) -> Tensors {
    return {max_pool2d(in[0], {2}, {.stride = {2}, .ceil_mode = true})};
  };
  const std::string bytes =
      exported(pooled, {{{1, 2, 8, 8}}}, {.dynamic = {{.axis = 2, .name = "h"}, {.axis = 3, .name = "w"}}});
  BOOST_TEST(bytes.find("MaxPool") != std::string::npos);
  const onnx::Model model = parsed(bytes);
  for (const auto& [h, w] : {std::pair{5, 8}, {8, 5}, {7, 7}, {2, 4}}) {
    const Tensor x = numbers({1, 2, h, w});
    BOOST_TEST(support::identical(model.run({x})[0], pooled({x})[0]));
  }
}

/// If trials cannot distinguish two paddings, either every remainder by the stride was tried or there is no file.
BOOST_AUTO_TEST_CASE(a_padding_is_known_or_refused) {
  struct Case {
    const char* name;
    Function f;
    std::int64_t example;
    std::int64_t multiple = 1;
  };
  const Tensor w = ones({1, 1, 2}), wide = ones({1, 1, 3});
  const auto causal = [](const Tensor& weight, std::int64_t stride) -> Function {
    return [=](const Tensors& in) -> Tensors {
      return {conv1d(in[0], weight, {}, {.stride = {stride}, .padding = ConvolutionPadding::causal})};
    };
  };
  const auto rounded_up = [](std::int64_t window, std::int64_t stride) -> Function {
    return [=](const Tensors& in) -> Tensors {
      return {max_pool1d(in[0], {window}, {.stride = {stride}, .ceil_mode = true})};
    };
  };
  int files = 0, refused = 0;
  for (const Case& c : {Case{"causal by 11", causal(w, 11), 33},
                        {"causal by 11, multiples of 11", causal(w, 11), 33, 11},
                        {"causal by 7, even", causal(w, 7), 22, 2},
                        {"causal by 3", causal(wide, 3), 20},
                        {"rounded up by 10", rounded_up(2, 10), 30},
                        {"rounded up by 6", rounded_up(2, 6), 27},
                        {"rounded up by 8, multiples of 3", rounded_up(2, 8), 27, 3},
                        {"rounded up by 2", rounded_up(3, 2), 9}})
    try {
      const onnx::Model model = parsed(
          exported(c.f, {{{2, 1, c.example}}},
                   {.dynamic = {{.axis = 0, .name = "batch"}, {.axis = 2, .name = "time", .multiple = c.multiple}}}));
      ++files;
      for (std::int64_t n = c.example; n < c.example + 60 * c.multiple; n += c.multiple) {
        const Tensor x = numbers({1, 1, n});
        BOOST_TEST(support::identical(model.run({x})[0], c.f({x})[0]), c.name << " at " << n);
      }
    } catch (const onnx::ExportError& e) {
      BOOST_TEST(says("its padding")(e), c.name << ": " << e.what());
      ++refused;
    }
  BOOST_TEST(files >= 3);
  BOOST_TEST(refused >= 2);
}

/// The program takes every fifth of every second row: if trials do not show when there is one more, there is no file.
BOOST_AUTO_TEST_CASE(quotients_of_quotients_are_known_or_refused) {
  int files = 0;
  for (const auto& [first, second] :
       {std::pair{2, 5}, {2, 3}, {3, 4}, {3, 3}, {2, 7}, {5, 7}, {4, 2}, {7, 8}, {8, 7}, {6, 8}, {8, 8}, {7, 5}}) {
    const Function f = [first = first, second = second](const Tensors& in) -> Tensors {
      const Tensor some = slice(slice(in[0], 0, 0, kEnd, first), 0, 0, kEnd, second);
      return {sum(some, {0}) / static_cast<double>(some.shape()[0])};
    };
    try {
      const onnx::Model model = parsed(exported(f, {{{50, 2}}}, {.dynamic = {{.name = "n"}}}));
      ++files;
      for (std::int64_t n = 50; n < 130; ++n) {
        const Tensor x = numbers({n, 2});
        BOOST_TEST(support::within(model.run({x})[0], f({x})[0], 1e-5), first << ", " << second << " at " << n);
      }
    } catch (const onnx::ExportError&) {
    }
  }
  BOOST_TEST(files >= 3);
}

/// The program of the example itself, and the effects of far extents, are checked, too.
BOOST_AUTO_TEST_CASE(a_function_that_is_another_at_its_example_is_refused) {
  const auto refused = [](const Function& f, const std::string& words) {
    for (const bool as_onnx : {true, false}) {
      const auto write = [&] {
        if (as_onnx) return exported(f, {{{8, 3}}}, {.dynamic = {{.name = "n"}}});
        return exchange::to_stablehlo(f, std::vector<Spec>{{{8, 3}}}, {.dynamic = {{.name = "n"}}});
      };
      BOOST_CHECK_EXCEPTION((void)write(), onnx::ExportError, says(words));
    }
  };
  refused([](const Tensors& in) -> Tensors { return {in[0].shape()[0] < 9 ? in[0] * 2 : in[0] + 0}; },
          "where n is 8, as in the example, there is mul in place of add");
  refused(
      [](const Tensors& in) -> Tensors {
        return {in[0] * static_cast<double>(std::max<std::int64_t>(in[0].shape()[0], 9))};
      },
      "extent");
  refused(
      [](const Tensors& in) -> Tensors {
        return {in[0].shape()[0] > 60 ? in[0] + uniform(in[0].shape(), {.seed = 1}) : in[0] * 2};
      },
      "no lowering of uniform");
}

/// A sum of one name, and another name that looks like it, are two numbers.
BOOST_AUTO_TEST_CASE(names_of_extents_are_no_arithmetic) {
  const Function f = [](const Tensors& in) -> Tensors {
    return {mean(concat({in[0], in[0]}, 0), {0}) + mean(in[1], {0})};
  };
  const auto written = [&](const std::string& other) {
    return exported(f, {{{4, 2}}, {{6, 2}}}, {.dynamic = {{.name = "T"}, {.input = 1, .name = other}}});
  };
  for (const char* name : {"2*T", "T+1", "a b", "T\n}}"}) BOOST_CHECK_THROW((void)written(name), ValueError);
  const onnx::Model model = parsed(written("U"));
  const Tensors in{numbers({8, 2}), numbers({5, 2})};
  BOOST_TEST(support::within(model.run(in)[0], f(in)[0], 1e-6));
}

/// The padding is two in front and none at the end, with a stride of two.
BOOST_AUTO_TEST_CASE(padding_in_front_alone_stays_so) {
  using namespace wire;
  const std::string content =
      initialiser(tensor<float>("w", 1, {1, 2, 3}, {1, 2, -1, 0.5F, -2, 3})) +
      node_of("Conv", {"x", "w"}, {"y"}, ints_attribute("pads", {2, 0}) + ints_attribute("strides", {2}));
  const onnx::Model model = parsed(model_of(graph(content, {"x"}, {"y"})));
  const Function read = [&](const Tensors& in) { return model.run(in); };
  const std::string bytes = exported(read, {{{1, 2, 8}}}, {.dynamic = {{.axis = 2, .name = "n"}}});
  BOOST_TEST(bytes.find("Conv") != std::string::npos);
  const onnx::Model again = parsed(bytes);
  for (const std::int64_t n : {1, 4, 7, 12}) {
    const Tensor x = numbers({1, 2, n});
    BOOST_TEST(support::identical(again.run({x})[0], model.run({x})[0]));
  }
}

/// uint64 is stored as i64: its order is written with sums that wrap around, which every version of ONNX has.
BOOST_AUTO_TEST_CASE(numbers_without_a_sign_are_written_again) {
  using namespace wire;
  constexpr std::size_t kUnsigned64 = 13;
  const auto top = std::numeric_limits<std::uint64_t>::max();
  const std::vector<std::uint64_t> values{0, 1, 7, top / 2, top / 2 + 1, top - 1, top};
  const std::string content = initialiser(tensor<std::uint64_t>("d", kUnsigned64, {2, 1}, {3, top - 4})) +
                              node_of("Div", {"x", "d"}, {"q"}) + node_of("Less", {"x", "d"}, {"less"}) +
                              node_of("Max", {"x", "d"}, {"most"});
  const onnx::Model model = parsed(model_of(graph(initialiser(tensor<std::uint64_t>("zero", kUnsigned64, {1}, {0})) +
                                                      initialiser(tensor("v", kUnsigned64, {7}, values)) +
                                                      node_of("Add", {"v", "zero"}, {"x"}) + content,
                                                  {}, {"q", "less", "most"})));
  const Function read = [&](const Tensors& in) { return model.run(in); };
  const Tensors wanted = model.run({}), again = parsed(exported(read, {})).run({});
  for (std::size_t i = 0; i < wanted.size(); ++i) BOOST_TEST(support::identical(again[i], wanted[i]));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto element = [&](const Tensor& t, std::int64_t row) {
      return static_cast<std::uint64_t>(t.to_vector<std::int64_t>()[static_cast<std::size_t>(row) * values.size() + i]);
    };
    BOOST_TEST(element(wanted[0], 0) == values[i] / 3);
    BOOST_TEST(element(wanted[0], 1) == values[i] / (top - 4));
    BOOST_TEST(element(wanted[2], 1) == std::max(values[i], top - 4));
  }
}

BOOST_AUTO_TEST_SUITE_END()

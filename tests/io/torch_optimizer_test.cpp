/// States of optimisers exchanged with PyTorch in the middle of runs: tests/data/make_optimizer_fixtures.py writes what
/// is read, tests/data/check_torch_optimizer.py continues from what is written.
#include "ferrite/io/torch_optimizer.h"

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <functional>

#include "ferrite/io/safetensors.h"
#include "ferrite/io/torch.h"
#include "ferrite/nn/optim/cyclic_schedule.h"
#include "golden/optimizer_runs.h"
#include "support/compare.h"
#include "support/fixtures.h"
#include "temporary_folder.h"

using namespace ferrite;
using support::identical;
using support::within;

namespace {

const std::vector<std::string> kKinds = {"SGD",    "Adam",    "AdamW",   "NAdam",    "RAdam",
                                         "Adamax", "RMSprop", "Adagrad", "Adadelta", "Adafactor"};
const std::vector<std::string> kNames = {"weight", "bias", "v", "m"};

io::TensorFile numbers() { return support::fixture("torch_optimizers.safetensors"); }

/// Returns a weight in our layout: [3, 4].
Tensor ours(const io::TensorFile& file, const std::string& where, const std::string& name) {
  const Tensor t = file.tensor(where + "/" + name);
  return name == "weight" ? contiguous(transpose(t)) : t;
}

struct Run {
  std::vector<Parameter> parameters;
  std::unique_ptr<nn::Optimizer> optimizer;

  /// Makes parameters with the initial values of the file, and an optimiser of two groups.
  Run(const std::string& kind, const std::string& where) {
    const io::TensorFile file = numbers();
    for (const std::string& name : kNames)
      parameters.emplace_back(name, ours(file, where, name),
                              name == "weight" ? FileLayout::transposed : FileLayout::same);
    const io::Metadata options = file.metadata();
    const auto group = [&](std::size_t k) {
      return optimizer_runs::GroupOfRun{options.at(kind + "." + std::to_string(k)),
                                        {parameters[2 * k], parameters[2 * k + 1]}};
    };
    optimizer = optimizer_runs::make(kind, {group(0), group(1)});
  }

  void steps(std::int64_t first, std::int64_t end) {
    const io::TensorFile file = numbers();
    for (std::int64_t t = first; t < end; ++t) {
      Tensors g;
      for (const Parameter& p : parameters) {
        const Tensor given = select(file.tensor("g/" + p.name()), 0, t);
        g.push_back((p.name() == "weight" ? transpose(given) : given) + p.value() / 10);
      }
      optimizer->step(g);
    }
  }

  std::vector<Tensor> values() const {
    std::vector<Tensor> all;
    for (const Parameter& p : parameters) all.push_back(p.peek() + 0);
    for (const auto& s : optimizer->states()) all.push_back(s.variable.peek() + 0);
    return all;
  }
};

void check_end(const Run& run, const std::string& kind) {
  for (const Parameter& p : run.parameters)
    BOOST_TEST(within(p.peek(), ours(numbers(), "end/" + kind, p.name()), 1e-10), kind << ": " << p.name());
}

boost::test_tools::assertion_result have_python(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(std::getenv("FERRITE_PYTHON") != nullptr);
  result.message() << "FERRITE_PYTHON names no Python that has torch";
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(torch_optimizer)

BOOST_AUTO_TEST_CASE(twenty_steps_are_pytorchs) {
  for (const std::string& kind : kKinds) {
    Run run(kind, "init");
    run.steps(0, 20);
    check_end(run, kind);
  }
}

BOOST_AUTO_TEST_CASE(what_pytorch_saved_after_ten_steps_goes_on) {
  for (const std::string& kind : kKinds) {
    Run run(kind, "mid/" + kind);
    run.optimizer->set_learning_rate(123);
    io::load_torch_optimizer(*run.optimizer, support::fixture_path("torch_optimizers.pt"), kind);
    run.steps(10, 20);
    check_end(run, kind);
  }
}

/// A state that is written and read again has its bits, and so does a run that resumes from it.
BOOST_AUTO_TEST_CASE(what_is_written_is_read) {
  const io_test::TemporaryFolder folder;
  for (const std::string& kind : kKinds) {
    for (const std::int64_t steps : {0, 7}) {
      Run a(kind, "init"), b(kind, "init");
      a.steps(0, steps);
      for (std::size_t i = 0; i < kNames.size(); ++i) b.parameters[i].assign(a.parameters[i].peek());
      io::write_torch_optimizer(folder / "state.pt", *a.optimizer);
      io::load_torch_optimizer(*b.optimizer, folder / "state.pt");
      a.steps(steps, 12);
      b.steps(steps, 12);
      for (std::size_t i = 0; i < kNames.size(); ++i)
        BOOST_TEST(identical(a.parameters[i].peek(), b.parameters[i].peek()), kind << ": " << kNames[i]);
      BOOST_TEST((io::serialize_torch_optimizer(*a.optimizer) == io::serialize_torch_optimizer(*b.optimizer)), kind);
    }
  }
}

/// PyTorch would overwrite a number that parameters share once for each of them.
BOOST_AUTO_TEST_CASE(every_parameter_is_written_with_numbers_of_its_own) {
  Run run("NAdam", "init");
  run.steps(0, 2);
  const std::vector<std::byte> bytes = io::serialize_torch_optimizer(*run.optimizer);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::size_t storages = 0;  // in the directory at the end of the archive
  for (std::size_t at = 0; (at = text.find("PK\1\2", at)) != std::string::npos; ++at) {
    const std::size_t length = static_cast<unsigned char>(text[at + 28]);
    if (text.substr(at + 46, length).find("/data/") != std::string::npos) ++storages;
  }
  BOOST_TEST(storages == 4 * kNames.size());  // step, mu_product, exp_avg, exp_avg_sq
}

BOOST_AUTO_TEST_CASE(pytorch_goes_on_from_what_we_write, *boost::unit_test::precondition(have_python)) {
  const io_test::TemporaryFolder folder;
  std::vector<io::NamedTensor> tensors;
  const auto put = [&](const std::string& where, const Run& run) {
    for (const Parameter& p : run.parameters)
      tensors.push_back(
          {where + "/" + p.name(), p.name() == "weight" ? contiguous(transpose(p.peek())) : p.peek() + 0});
  };
  for (const std::string& kind : kKinds) {
    Run run(kind, "init");
    run.steps(0, 10);
    io::write_torch_optimizer(folder / (kind + ".pt"), *run.optimizer);
    put("mid/" + kind, run);
    run.steps(10, 20);
    put("end/" + kind, run);
  }
  io::write_safetensors(folder / "ours.safetensors", tensors);
  const std::string script = std::string(FERRITE_SOURCE_DIR) + "/tests/data/check_torch_optimizer.py";
  const std::string command =
      std::string(std::getenv("FERRITE_PYTHON")) + " '" + script + "' '" + folder.path().string() + "'";
  BOOST_TEST(std::system(command.c_str()) == 0);
}

namespace {

/// The contents of a state's file, as its reader shows them, to be changed in one place.
struct Contents {
  std::vector<io::NamedTensor> tensors;
  io::Metadata plain;

  explicit Contents(const std::string& kind) {
    const io::TensorFile file = io::read_torch(support::fixture_path("torch_optimizers.pt"), kind);
    for (const std::string_view name : file.names()) tensors.push_back({std::string(name), file.tensor(name)});
    plain = file.metadata();
  }
  Tensor& tensor(const std::string& name) {
    for (io::NamedTensor& t : tensors)
      if (t.name == name) return t.tensor;
    return tensors.emplace_back(io::NamedTensor{name, {}}).tensor;
  }
  void remove(const std::string& name) {
    std::erase_if(tensors, [&](const io::NamedTensor& t) { return t.name == name; });
  }
};

struct Wrong {
  std::string sentence;
  std::function<void(Contents&)> change;
};

}  // namespace

/// Every wrong content of a file is refused with its full message, and nothing has changed.
BOOST_AUTO_TEST_CASE(states_that_do_not_fit_are_refused) {
  const std::vector<Wrong> table = {
      {"'param_groups.0.betas' is (0.9, 0.9), the optimiser's is (0.9, 0.999); make it with the options of the "
       "file",
       [](Contents& c) { c.plain["param_groups.0.betas"] = "(0.9, 0.9)"; }},
      {"'param_groups.1.amsgrad' is False, the optimiser's is True; make it with the options of the file",
       [](Contents& c) { c.plain["param_groups.1.amsgrad"] = "False"; }},
      {"'param_groups.0.eps' is missing, the optimiser's is 1e-08; make it with the options of the file",
       [](Contents& c) { c.plain.erase("param_groups.0.eps"); }},
      {"it has no 'param_groups.1.params': it is no state of an optimiser of 2 groups; a part of a checkpoint is named "
       "by its key",
       [](Contents& c) { c.plain.erase("param_groups.1.params"); }},
      {"it has more groups of parameters than the optimiser, which has 2",
       [](Contents& c) { c.plain["param_groups.2.params"] = "[4]"; }},
      {"group 0 has 3 parameters, the optimiser's 2",
       [](Contents& c) { c.plain["param_groups.0.params"] = "[0, 1, 7]"; }},
      {"parameter '1' is in its groups twice", [](Contents& c) { c.plain["param_groups.1.params"] = "[1, 3]"; }},
      {"it has no number 'param_groups.0.lr'", [](Contents& c) { c.plain.erase("param_groups.0.lr"); }},
      {"'param_groups.0.lr' is no number: 'None'", [](Contents& c) { c.plain["param_groups.0.lr"] = "None"; }},
      {"'param_groups.0.lr' must be at least 0 and finite, is -0.1",
       [](Contents& c) { c.plain["param_groups.0.lr"] = "-0.1"; }},
      {"'state.0.exp_avg' has shape [3, 4], the optimiser needs [4, 3]",
       [](Contents& c) {
         c.tensor("state.0.exp_avg") = zeros({3, 4}, Dtype::f64);
       }},
      {"'state.1.exp_avg' is I64, no floats",
       [](Contents& c) { c.tensor("state.1.exp_avg") = zeros({4}, Dtype::i64); }},
      {"'state.1.exp_avg_sq' is missing", [](Contents& c) { c.remove("state.1.exp_avg_sq"); }},
      {"'state.1.exp_inf' is not a state of the optimiser, Adam",
       [](Contents& c) { c.tensor("state.1.exp_inf") = zeros({4}); }},
      {"'state.9.step' is not a state of the optimiser, Adam",
       [](Contents& c) { c.tensor("state.9.step") = ones({}); }},
      {"'state.0.step' must be a whole number, is 1.5",
       [](Contents& c) { c.tensor("state.0.step") = c.tensor("state.1.step") = full({}, 1.5); }},
      {"'state.0.step' must be at least 0 and finite, is inf",
       [](Contents& c) { c.tensor("state.0.step") = c.tensor("state.1.step") = full({}, HUGE_VAL); }},
      {"'state.0.step' is not a tensor with one element", [](Contents& c) { c.tensor("state.0.step") = ones({2}); }},
  };
  for (const Wrong& w : table) {
    Contents contents("Adam");
    w.change(contents);
    Run run("Adam", "init");
    run.steps(0, 2);
    const std::vector<Tensor> before = run.values();
    const io::TensorFile file = io::tensor_file_of(contents.tensors, "adam.pt", contents.plain);
    try {
      io::load_torch_optimizer(*run.optimizer, file);
      BOOST_ERROR("accepted: " << w.sentence);
    } catch (const IoError& e) {
      BOOST_TEST(e.what() == "adam.pt: " + w.sentence);
    }
    const std::vector<Tensor> after = run.values();
    for (std::size_t i = 0; i < before.size(); ++i) BOOST_TEST(identical(before[i], after[i]), w.sentence);
  }
}

/// PyTorch has updated parameters of one group 10 times, 3 times and never.
BOOST_AUTO_TEST_CASE(counts_that_differ_in_a_group_are_read_and_written) {
  for (const std::string kind : {"Adam", "NAdam", "Adagrad"}) {
    Contents c(kind);
    c.tensor("state.1.step") = full({}, 3);
    if (kind != "Adagrad")
      std::erase_if(c.tensors, [](const io::NamedTensor& t) { return t.name.starts_with("state.2."); });
    Run run(kind, "mid/" + kind);
    io::load_torch_optimizer(*run.optimizer, io::tensor_file_of(c.tensors, "state.pt", c.plain));
    const auto counts = [&](const std::string& name) {
      for (const auto& s : run.optimizer->states())
        if (s.name == name) return s.variable.peek().to_vector<std::int64_t>();
      return std::vector<std::int64_t>();
    };
    const std::int64_t third = kind == "Adagrad" ? 10 : 0;
    BOOST_TEST((counts("step") == std::vector<std::int64_t>{10, 3}), kind);
    BOOST_TEST((counts("step.1") == std::vector<std::int64_t>{third, 10}), kind);
    const io::TensorFile written = io::parse_torch(io::serialize_torch_optimizer(*run.optimizer));
    BOOST_TEST(written.tensor("state.1.step").item<float>() == 3.0F, kind);
    BOOST_TEST(written.contains("state.2.step") == (third > 0), kind);
  }
}

/// PyTorch's Adagrad has its states from the beginning, and cannot resume from a file without them.
BOOST_AUTO_TEST_CASE(states_of_adagrad_are_written_before_the_first_step) {
  const Run run("Adagrad", "init");
  const io::TensorFile written = io::parse_torch(io::serialize_torch_optimizer(*run.optimizer));
  for (const char* name : {"state.0.sum", "state.3.sum", "state.3.step"}) BOOST_TEST(written.contains(name), name);
}

BOOST_AUTO_TEST_CASE(another_optimisers_state_is_refused) {
  for (const std::string& kind : kKinds)
    for (const std::string& other : kKinds) {
      if (kind == other) continue;
      Run run(kind, "init");
      BOOST_CHECK_THROW(io::load_torch_optimizer(*run.optimizer, support::fixture_path("torch_optimizers.pt"), other),
                        IoError);
    }
  const Parameter p("p", zeros({2}));
  nn::Lion lion({p});
  BOOST_CHECK_THROW((void)io::serialize_torch_optimizer(lion), ValueError);
  BOOST_CHECK_THROW(io::load_torch_optimizer(lion, support::fixture_path("torch_optimizers.pt"), "Adam"), ValueError);
}

/// A momentum that a schedule changes is read from the file.
BOOST_AUTO_TEST_CASE(a_cycled_momentum_is_loaded) {
  const Parameter p("p", zeros({2}));
  nn::Adam a({p}), b({p}), c({p});
  const nn::OneCycleOptions cycle{.max_learning_rate = {0.1}, .total_steps = 10};
  nn::OneCycleSchedule first(a, cycle), second(b, cycle);
  a.step({ones({2})});
  first.set_steps(4);
  const auto bytes = io::serialize_torch_optimizer(a);
  io::load_torch_optimizer(b, io::parse_torch(bytes));
  BOOST_TEST(b.momentum() == a.momentum());
  BOOST_TEST(b.learning_rate() == a.learning_rate());
  BOOST_CHECK_THROW(io::load_torch_optimizer(c, io::parse_torch(bytes)), IoError);
}

BOOST_AUTO_TEST_SUITE_END()

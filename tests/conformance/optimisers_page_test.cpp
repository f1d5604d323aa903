// docs/optimisers.md is generated from the headers in nn/optim; this test keeps it current. FERRITE_REGENERATE=1 writes
// it.
#include <sstream>

#include "conformance/header_text.h"

namespace {

/// A class, the header that declares it, and its name in PyTorch.
struct Entry {
  const char *header, *name, *pytorch;
};

constexpr Entry kOptimisers[] = {{"sgd", "Sgd", "SGD"},
                                 {"adam", "Adam", "Adam"},
                                 {"adam", "AdamW", "AdamW"},
                                 {"nadam", "NAdam", "NAdam"},
                                 {"radam", "RAdam", "RAdam"},
                                 {"adamax", "Adamax", "Adamax"},
                                 {"rmsprop", "RmsProp", "RMSprop"},
                                 {"adagrad", "Adagrad", "Adagrad"},
                                 {"adadelta", "Adadelta", "Adadelta"},
                                 {"adafactor", "Adafactor", "Adafactor"},
                                 {"lion", "Lion", ""},
                                 {"lbfgs", "Lbfgs", "LBFGS"},
                                 {"levenberg_marquardt", "levenberg_marquardt", ""}};
constexpr Entry kSchedules[] = {
    {"schedule", "FunctionSchedule", "LambdaLR"},        {"schedule", "StepSchedule", "StepLR"},
    {"schedule", "CosineSchedule", "CosineAnnealingLR"}, {"cyclic_schedule", "OneCycleSchedule", "OneCycleLR"},
    {"cyclic_schedule", "CyclicSchedule", "CyclicLR"},   {"plateau_schedule", "PlateauSchedule", "ReduceLROnPlateau"}};
constexpr Entry kOthers[] = {{"weight_average", "WeightAverage", "swa_utils.AveragedModel"},
                             {"accumulate_gradients", "GradientAccumulator", ""}};

std::string header_of(const Entry& e) { return "nn/optim/" + std::string(e.header) + ".h"; }

/// Returns the docstring of a class or of a function.
std::string said(const Entry& e) {
  const std::string name(e.name);
  return pages::docstring(header_of(e), [&](const std::string& line) {
    return (line.starts_with("class " + name + " ") && !line.ends_with(";")) ||
           (!pages::is_comment(line) && line.find(" " + name + "(const std::vector<Parameter>&") != std::string::npos);
  });
}

/// Returns the options of a class as its header declares them; empty if it has none or takes those of another.
std::string options(const Entry& e) {
  const std::string name = std::string(e.name) == "levenberg_marquardt" ? "LevenbergMarquardt" : e.name;
  return pages::members(header_of(e), name + "Options");
}

void describe(std::ostringstream& s, const Entry& e) {
  s << "### `nn::" << e.name << "`";
  if (*e.pytorch) s << " (PyTorch: `" << e.pytorch << "`)";
  s << "\n\n" << said(e) << "\n";
  const std::string text = options(e);
  if (!text.empty()) s << "Options, with their defaults:\n\n" << text << "\n";
}

/// Returns the functions of rates.h with their comments.
std::string rates() {
  const std::vector<std::string> lines = pages::lines_of("nn/optim/rates.h");
  std::string text = "| function | the rate after `steps` steps: PyTorch's class |\n|---|---|\n", words;
  for (const std::string& line : lines) {
    if (pages::is_comment(line)) words += (words.empty() ? "" : " ") + pages::without_marks(line);
    if (line.starts_with("RateFunction ")) text += "| `" + line.substr(13, line.size() - 14) + "` | " + words + " |\n";
    if (!pages::is_comment(line)) words.clear();
  }
  return text;
}

constexpr const char* kBegin = R"(# Optimisers and schedules

Choose an optimiser and a schedule, and set options for each group of parameters. Values are PyTorch's: the tests repeat
runs of 20 steps with combinations of options, and 50 steps of every schedule (`tests/golden/optimizers_test.cpp`,
`schedules_test.cpp`). This page is generated from the headers in `nn/optim/`; do not edit it.

```cpp
#include <ferrite/ferrite.h>
using namespace ferrite;

int main() {
  auto body = dsl::sequence(4).linear(8).relu().build(/*seed=*/0);
  auto head = dsl::sequence(8).linear(2).build(/*seed=*/1);
  nn::AdamW adam(body.parameters(), {.learning_rate = 1e-3});
  adam.add_group(head.parameters(), {.learning_rate = 1e-2, .weight_decay = 0});  // options of its own
  nn::FunctionSchedule schedule(adam, nn::warm_up_rate(10, nn::cosine_rate(100)));
  nn::WeightAverage average(adam.parameters(), {.decay = 0.99});

  const Tensor x = uniform({16, 4}, {.seed = 2}, -1, 1), y = zeros({16, 2});
  adam.freeze(body.parameters());  // the head alone first
  for (int step = 0; step < 20; ++step) {
    if (step == 10) adam.unfreeze(body.parameters());
    Tape tape;
    const Tensor loss = mean(square(head(body(x)) - y));
    adam.step(nn::clip_grad_norm(tape.grad(loss, adam.parameters()), 1.0).grads);
    average.update();
    schedule.advance();
  }
  average.swap();  // validate and save with the averages, then swap back
  average.swap();
}
```

Every optimiser takes parameters in groups: the first with the constructor, others with `add_group`, each with its own
options and learning rate. Pass the gradients of all groups in the order of `parameters()`; an undefined gradient leaves
its parameter alone. `freeze` leaves parameters out until `unfreeze`. Steps are counted for each parameter: one that
joins late starts with its first step, whatever the others have done. A step that throws changes nothing. The update of a
parameter and its states is one operation, `rule_update`, which reads and writes memory once (Adafactor: several
operations); inside `compile(f)` it becomes part of the program, with the same bits. States have PyTorch's names and are
saved in checkpoints (`train::save_checkpoint`); `io::load_torch_optimizer` and `io::write_torch_optimizer` exchange them
with PyTorch.
)";

std::string page() {
  std::ostringstream s;
  s << kBegin << "\n## Optimisers\n\n";
  for (const Entry& e : kOptimisers) describe(s, e);
  s << "## Schedules\n\nA schedule counts steps, or epochs, with `advance()`. Most are "
       "`nn::FunctionSchedule(optimizer, function)` with one of\nthese functions of the number of steps:\n\n"
    << rates() << "\n";
  for (const Entry& e : kSchedules) describe(s, e);
  s << "## Averages and accumulation\n\n";
  for (const Entry& e : kOthers) describe(s, e);
  std::string text = s.str();
  text.pop_back();
  return text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(reference_pages)

BOOST_AUTO_TEST_CASE(optimisers_md) { pages::check_page("docs/optimisers.md", page()); }

BOOST_AUTO_TEST_SUITE_END()

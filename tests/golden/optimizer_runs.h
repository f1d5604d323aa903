#pragma once
/// Makes optimisers from the names of the runs in optimizers.safetensors.
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "ferrite/nn/optim/adadelta.h"
#include "ferrite/nn/optim/adafactor.h"
#include "ferrite/nn/optim/adagrad.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/adamax.h"
#include "ferrite/nn/optim/lion.h"
#include "ferrite/nn/optim/nadam.h"
#include "ferrite/nn/optim/radam.h"
#include "ferrite/nn/optim/rmsprop.h"
#include "ferrite/nn/optim/sgd.h"

namespace optimizer_runs {
using namespace ferrite;

/// A run's name in words, "NAdam lr=0.01 betas=0.8,0.95": a class of PyTorch and its options.
struct Words {
  std::string kind;
  std::map<std::string, std::vector<double>> options;

  explicit Words(const std::string& name) {
    std::istringstream text(name);
    text >> kind;
    for (std::string word; text >> word;) {
      const std::size_t is = word.find('=');
      std::istringstream values(word.substr(is + 1));
      for (std::string v; std::getline(values, v, ',');) options[word.substr(0, is)].push_back(std::stod(v));
    }
  }

  /// Sets a field to the option of that name, if the run has it.
  template <class T>
  void take(T& field, const std::string& option, std::size_t i = 0) {
    const auto found = options.find(option);
    if (found == options.end()) return;
    field = static_cast<T>(found->second.at(i));
    used.insert({option, true});
  }
  bool all_used() const { return used.size() == options.size(); }

 private:
  std::map<std::string, bool> used;
};

template <class Options>
void take_common(Words& words, Options& o) {
  words.take(o.learning_rate, "lr");
  words.take(o.maximize, "maximize");
}

template <class Options>
void take_betas(Words& words, Options& o) {
  words.take(o.beta1, "betas");
  words.take(o.beta2, "betas", 1);
}

inline void read(Words& words, nn::SgdOptions& o) {
  take_common(words, o);
  words.take(o.momentum, "momentum");
  words.take(o.dampening, "dampening");
  words.take(o.nesterov, "nesterov");
  words.take(o.weight_decay, "weight_decay");
}
inline void read(Words& words, nn::AdamOptions& o) {
  take_common(words, o);
  take_betas(words, o);
  words.take(o.epsilon, "eps");
  words.take(o.amsgrad, "amsgrad");
  if (words.options.contains("weight_decay")) words.take(o.weight_decay.emplace(), "weight_decay");
}
inline void read(Words& words, nn::NAdamOptions& o) {
  take_common(words, o);
  take_betas(words, o);
  words.take(o.weight_decay, "weight_decay");
  words.take(o.momentum_decay, "momentum_decay");
  words.take(o.decoupled_weight_decay, "decoupled_weight_decay");
}
inline void read(Words& words, nn::RAdamOptions& o) {
  take_common(words, o);
  take_betas(words, o);
  words.take(o.epsilon, "eps");
  words.take(o.weight_decay, "weight_decay");
  words.take(o.decoupled_weight_decay, "decoupled_weight_decay");
}
inline void read(Words& words, nn::AdamaxOptions& o) {
  take_common(words, o);
  take_betas(words, o);
  words.take(o.epsilon, "eps");
  words.take(o.weight_decay, "weight_decay");
}
inline void read(Words& words, nn::RmsPropOptions& o) {
  take_common(words, o);
  words.take(o.alpha, "alpha");
  words.take(o.epsilon, "eps");
  words.take(o.weight_decay, "weight_decay");
  words.take(o.momentum, "momentum");
  words.take(o.centered, "centered");
}
inline void read(Words& words, nn::AdagradOptions& o) {
  take_common(words, o);
  words.take(o.learning_rate_decay, "lr_decay");
  words.take(o.weight_decay, "weight_decay");
  words.take(o.initial_accumulator, "initial_accumulator_value");
  words.take(o.epsilon, "eps");
}
inline void read(Words& words, nn::AdadeltaOptions& o) {
  take_common(words, o);
  words.take(o.rho, "rho");
  words.take(o.epsilon, "eps");
  words.take(o.weight_decay, "weight_decay");
}
inline void read(Words& words, nn::AdafactorOptions& o) {
  take_common(words, o);
  words.take(o.beta2_decay, "beta2_decay");
  if (words.options.contains("eps")) words.take(o.epsilon1.emplace(), "eps");
  words.take(o.epsilon2, "eps", 1);
  words.take(o.clipping_threshold, "d");
  words.take(o.weight_decay, "weight_decay");
}
inline void read(Words& words, nn::LionOptions& o) {
  take_common(words, o);
  take_betas(words, o);
  words.take(o.weight_decay, "weight_decay");
}

/// The parameters of a group and the text of its options.
struct GroupOfRun {
  std::string options;  ///< "lr=0.01 momentum=0.9"
  std::vector<Parameter> parameters;
};

template <class O, class Options>
std::unique_ptr<nn::Optimizer> make_of(const std::string& kind, const std::vector<GroupOfRun>& groups) {
  std::unique_ptr<O> made;
  for (const GroupOfRun& group : groups) {
    Words words(kind + " " + group.options);
    Options o;
    read(words, o);
    if (!words.all_used()) throw std::runtime_error("an option of the run is not known: " + group.options);
    if (made) {
      made->add_group(group.parameters, o);
    } else {
      made = std::make_unique<O>(group.parameters, o);
    }
  }
  return made;
}

/// Makes the optimiser for a class of PyTorch.
inline std::unique_ptr<nn::Optimizer> make(const std::string& kind, const std::vector<GroupOfRun>& groups) {
  if (kind == "SGD") return make_of<nn::Sgd, nn::SgdOptions>(kind, groups);
  if (kind == "Adam") return make_of<nn::Adam, nn::AdamOptions>(kind, groups);
  if (kind == "AdamW") return make_of<nn::AdamW, nn::AdamOptions>(kind, groups);
  if (kind == "NAdam") return make_of<nn::NAdam, nn::NAdamOptions>(kind, groups);
  if (kind == "RAdam") return make_of<nn::RAdam, nn::RAdamOptions>(kind, groups);
  if (kind == "Adamax") return make_of<nn::Adamax, nn::AdamaxOptions>(kind, groups);
  if (kind == "RMSprop") return make_of<nn::RmsProp, nn::RmsPropOptions>(kind, groups);
  if (kind == "Adagrad") return make_of<nn::Adagrad, nn::AdagradOptions>(kind, groups);
  if (kind == "Adadelta") return make_of<nn::Adadelta, nn::AdadeltaOptions>(kind, groups);
  if (kind == "Adafactor") return make_of<nn::Adafactor, nn::AdafactorOptions>(kind, groups);
  if (kind == "Lion") return make_of<nn::Lion, nn::LionOptions>(kind, groups);
  throw std::runtime_error("no such optimiser: " + kind);
}

/// Makes the optimiser for a run's name. Throws for an option that nothing reads.
inline std::unique_ptr<nn::Optimizer> make(const std::string& name, const std::vector<Parameter>& p) {
  const std::size_t blank = std::min(name.find(' '), name.size());
  return make(name.substr(0, blank), {{name.substr(blank), p}});
}

}  // namespace optimizer_runs

/// Names the parameters and buffers of a module that torch.jit.save wrote.
#include <algorithm>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/torch/index_builder.h"
#include "ferrite/io/torch/scripted_code.h"
#include "ferrite/io/torch/torch_index.h"

namespace ferrite::io::detail {
namespace {

using Kind = PickleKind;

bool is_module(const Pickle& pickle, ScriptedCode& code, PickleValue value) {
  return value.kind() == Kind::instance && code.of(pickle, pickle.class_of(value)).is_module;
}

/// Walks over modules and those in them.
class ModuleFlattener : IndexBuilder {
 public:
  ModuleFlattener(const Pickle& pickle, ScriptedCode& code, std::string_view where)
      : IndexBuilder(pickle, where), code_(code) {}

  TorchIndex run(PickleValue root) {
    if (is_tensor(pickle_, root)) {
      name_ = kBareName;
      add_tensor(root);
    } else if (is_module(pickle_, code_, root)) {
      walk(root);
    } else {
      refuse(where_, "holds no module: it is " + std::string(with_article(root.kind())));
    }
    return finish();
  }

 private:
  /// A module on the way from the root.
  struct Frame {
    PickleValue module;
    const ScriptedClass* made_of;
    Pickle::Items attributes;
    std::size_t name_size;  ///< of the module's own name
    std::size_t found = 0;  ///< parameters and buffers
  };

  void enter(PickleValue module) {
    check_level(frames_.size());
    for (const Frame& frame : frames_)
      if (frame.module == module) fail("contains itself");
    const ScriptedClass& made_of = code_.of(pickle_, pickle_.class_of(module));
    if (made_of.restores_itself)
      fail(
          "a module that restores itself by code of its own, __setstate__; save the weights: "
          "torch.save(model.state_dict(), path)");
    const PickleValue state = pickle_.state_of(module);
    if (state.kind() != Kind::dictionary)
      fail("the state of a module is no dictionary: " + std::string(with_article(state.kind())));
    frames_.push_back({module, &made_of, pickle_.items(state), name_.size()});
  }

  void walk(PickleValue root) {
    enter(root);
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      name_.resize(frame.name_size);
      const auto key = frame.attributes.next();
      if (!key) {
        leave(frame);
        continue;
      }
      if (key->kind() != Kind::text)
        fail("the name of an attribute is no string: " + std::string(with_article(key->kind())));
      const std::string_view attribute = pickle_.text(*key);
      if (frames_.size() > 1) name_ += '.';
      name_ += attribute;
      visit(frame, attribute, *frame.attributes.next());  // a dictionary holds pairs
    }
  }

  void visit(Frame& frame, std::string_view attribute, PickleValue value) {
    count_visit();
    const ScriptedClass& made_of = *frame.made_of;
    const bool tensor = is_tensor(pickle_, value);
    if (std::ranges::binary_search(made_of.tensors, attribute)) {
      ++frame.found;
      if (!tensor && value.kind() != Kind::none)
        fail("a parameter or buffer is neither a tensor nor None: " + std::string(with_article(value.kind())));
      if (tensor) add_tensor(value);
    } else if (tensor && !made_of.lists_buffers) {
      add_tensor(value);
    } else if (is_module(pickle_, code_, value)) {
      enter(value);
    }
  }

  void leave(const Frame& frame) {
    if (frame.found < frame.made_of->tensors.size())
      fail("lacks parameters or buffers of its class: it has " + std::to_string(frame.found) + " of " +
           std::to_string(frame.made_of->tensors.size()));
    frames_.pop_back();
  }

  ScriptedCode& code_;
  std::vector<Frame> frames_;
};

/// The attribute of a module; nothing where it has none of that name.
std::optional<PickleValue> attribute_of(const Pickle& pickle, PickleValue module, std::string_view name) {
  const PickleValue state = pickle.state_of(module);
  if (state.kind() != Kind::dictionary) return std::nullopt;
  Pickle::Items items = pickle.items(state);
  while (const auto key = items.next()) {
    const auto value = items.next();
    if (key->kind() == Kind::text && pickle.text(*key) == name) return value;
  }
  return std::nullopt;
}

}  // namespace

TorchIndex flatten_module(const Pickle& pickle, ScriptedCode& code, std::string_view key, std::string_view where) {
  PickleValue part = pickle.root();
  for (std::string_view path = key; !path.empty();) {
    const std::string_view name = path.substr(0, path.find('.'));
    const auto next = is_module(pickle, code, part) ? attribute_of(pickle, part, name) : std::nullopt;
    if (!next) refuse(where, "the module has no part of this name: " + quote(key));
    part = *next;
    path.remove_prefix(std::min(path.size(), name.size() + 1));
  }
  return ModuleFlattener(pickle, code, where).run(part);
}

}  // namespace ferrite::io::detail

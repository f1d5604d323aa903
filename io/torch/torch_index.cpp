/// Flattens the dictionaries of a checkpoint to dotted names.
#include "ferrite/io/torch/torch_index.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/torch/index_builder.h"

namespace ferrite::io::detail {
namespace {

using Kind = PickleKind;

bool is_container(PickleValue v) {
  return v.kind() == Kind::dictionary || v.kind() == Kind::list || v.kind() == Kind::tuple;
}

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  const double size = std::fabs(value);
  const bool fixed = size == 0 || (size >= 1e-4 && size < 1e16);  // as Python's repr
  std::array<char, 40> digits{};
  const auto form = fixed ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, form).ptr;
  std::string text(digits.data(), end);
  if (fixed && text.find('.') == std::string::npos) text += ".0";
  return text;
}

/// The text of a dictionary's key; nothing where it has none.
std::optional<std::string> key_text(const Pickle& pickle, PickleValue key) {
  if (key.kind() == Kind::global || key.kind() == Kind::object) return std::nullopt;
  return plain_text(pickle, key);
}

/// What to say of a foreign value that was asked for.
std::string foreign_text(const Pickle& pickle, PickleValue v) {
  const auto [module, name] = pickle.foreign_name(v);
  return "the file names something that is not read: " + quote(std::string(module) + "." + std::string(name)) +
         " at byte " + std::to_string(pickle.foreign_at(v)) + " of the pickle; " + remedy_for(module, name);
}

class Flattener : IndexBuilder {
 public:
  Flattener(const Pickle& pickle, std::string_view where) : IndexBuilder(pickle, where) {}

  TorchIndex run(PickleValue root) {
    if (is_tensor(pickle_, root)) {
      name_ = kBareName;
      add_tensor(root);
    } else if (is_container(root)) {
      walk(root);
    } else if (root.kind() == Kind::foreign) {
      refuse(where_, foreign_text(pickle_, root));
    } else {
      refuse(where_, "holds no tensors: it is " + std::string(with_article(root.kind())) +
                         "; save a dictionary of tensors, such as model.state_dict()");
    }
    return finish();
  }

 private:
  /// A container on the way from the root.
  struct Frame {
    PickleValue container;
    Pickle::Items items;
    std::size_t name_size;  ///< of the container's own name
    std::size_t next = 0;   ///< the next item's position
  };

  void enter(PickleValue container) {
    check_level(frames_.size());
    for (const Frame& frame : frames_)
      if (frame.container == container && pickle_.items(container).next()) fail("contains itself");
    frames_.push_back({container, pickle_.items(container), name_.size()});
  }

  void walk(PickleValue root) {
    enter(root);
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      name_.resize(frame.name_size);
      const auto first = frame.items.next();
      if (!first) {
        frames_.pop_back();
        continue;
      }
      if (frames_.size() > 1) name_ += '.';
      if (frame.container.kind() == Kind::dictionary) {
        append_key(*first);
        visit(*frame.items.next());  // a dictionary holds pairs
      } else {
        name_ += std::to_string(frame.next++);
        visit(*first);
      }
    }
  }

  void append_key(PickleValue key) {
    const auto text = key_text(pickle_, key);
    if (!text)
      fail("a dictionary's key is neither a string nor a number: " + std::string(with_article(key.kind())) +
           "; name the part you want by its key");
    name_ += *text;
  }

  void visit(PickleValue value) {
    count_visit();
    if (is_tensor(pickle_, value)) return add_tensor(value);
    if (value.kind() == Kind::persistent) fail("a bare storage; save a tensor");
    if (!is_container(value)) {
      if (const auto text = plain_text(pickle_, value)) return add_metadata(*text);
      if (value.kind() == Kind::foreign)
        fail(foreign_text(pickle_, value) + "; or name the part that you want by its key");
      if (value.kind() == Kind::object && pickle_.maker(value).kind == GlobalKind::numpy_scalar)
        fail("a number of NumPy that is not read; " + remedy_for("numpy", "scalar"));
      return;
    }
    if (value.kind() != Kind::dictionary) {
      if (const auto text = plain_list(value)) return add_metadata(*text);
    }
    enter(value);
  }

  /// A list of scalars in Python's words, "[0, 1]"; nothing when it holds anything else.
  std::optional<std::string> plain_list(PickleValue list) {
    const bool tuple = list.kind() == Kind::tuple;
    std::string text = tuple ? "(" : "[";
    std::size_t n = 0;
    Pickle::Items items = pickle_.items(list);
    while (const auto item = items.next()) {
      if (item->kind() != Kind::none && item->kind() != Kind::boolean && item->kind() != Kind::integer &&
          item->kind() != Kind::real)
        return std::nullopt;
      count_visit();
      if (n++ > 0) text += ", ";
      text += *plain_text(pickle_, *item);
      check_memory(2 * text.size(), 0, 0);
    }
    text += tuple ? (n == 1 ? ",)" : ")") : "]";
    return text;
  }

  std::vector<Frame> frames_;
};

/// The bytes of a string of Python 3 in a pickle of protocol 2, which has none: a string in which each stands for the
/// code point of its number.
std::optional<std::string> bytes_of(const Pickle& pickle, PickleValue v) {
  if (v.kind() == Kind::bytes) return std::string(pickle.text(v));
  if (v.kind() != Kind::object || pickle.maker(v).module != "_codecs") return std::nullopt;
  const PickleValue arguments = pickle.arguments(v);
  if (pickle.tuple_size(arguments) != 2 || pickle.tuple_item(arguments, 0).kind() != Kind::text) return std::nullopt;
  const std::string_view text = pickle.text(pickle.tuple_item(arguments, 0));
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    if (first < 0x80) {
      bytes += text[i];
    } else if (first == 0xc2 || first == 0xc3) {  // the text is UTF-8: one byte follows
      bytes += static_cast<char>((first & 3U) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3fU));
    } else {
      return std::nullopt;
    }
  }
  return bytes;
}

/// The text of a name of NumPy's types, "f8", and the order of the bytes that its state gives.
std::optional<std::string> numpy_type(const Pickle& pickle, PickleValue v) {
  if (v.kind() != Kind::object || pickle.maker(v).kind != GlobalKind::numpy_dtype) return std::nullopt;
  const PickleValue arguments = pickle.arguments(v), state = pickle.dtype_state(v);
  if (pickle.tuple_size(arguments) == 0 || pickle.tuple_item(arguments, 0).kind() != Kind::text) return std::nullopt;
  if (state.kind() != Kind::tuple || pickle.tuple_size(state) < 2) return std::nullopt;
  const PickleValue order = pickle.tuple_item(state, 1);
  if (order.kind() != Kind::text || (pickle.text(order) != "<" && pickle.text(order) != "|")) return std::nullopt;
  return std::string(pickle.text(pickle.tuple_item(arguments, 0)));
}

template <class T>
std::optional<T> number_of(const std::string& bytes) {
  if (bytes.size() != sizeof(T)) return std::nullopt;
  T value{};
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

/// A NumPy number in Python's words, as its x.item(); nothing for other types and what does not fit together.
std::optional<std::string> numpy_text(const Pickle& pickle, PickleValue v) {
  const PickleValue arguments = pickle.arguments(v);
  if (pickle.tuple_size(arguments) != 2) return std::nullopt;
  const auto type = numpy_type(pickle, pickle.tuple_item(arguments, 0));
  const auto bytes = bytes_of(pickle, pickle.tuple_item(arguments, 1));
  if (!type || !bytes) return std::nullopt;
  const auto whole = [](const auto& value) { return value ? std::optional(std::to_string(*value)) : std::nullopt; };
  const auto real = [](const auto& value) {
    return value ? std::optional(real_text(static_cast<double>(*value))) : std::nullopt;
  };
  if (*type == "f8") return real(number_of<double>(*bytes));
  if (*type == "f4") return real(number_of<float>(*bytes));
  if (*type == "f2") return real(number_of<float16>(*bytes));
  if (*type == "i8") return whole(number_of<std::int64_t>(*bytes));
  if (*type == "i4") return whole(number_of<std::int32_t>(*bytes));
  if (*type == "i2") return whole(number_of<std::int16_t>(*bytes));
  if (*type == "i1") return whole(number_of<std::int8_t>(*bytes));
  if (*type == "u8") return whole(number_of<std::uint64_t>(*bytes));
  if (*type == "u4") return whole(number_of<std::uint32_t>(*bytes));
  if (*type == "u2") return whole(number_of<std::uint16_t>(*bytes));
  if (*type == "u1") return whole(number_of<std::uint8_t>(*bytes));
  const auto byte = number_of<std::uint8_t>(*bytes);
  if (*type == "b1" && byte && *byte <= 1) return *byte == 1 ? "True" : "False";
  return std::nullopt;
}

/// The names in a container, as advice.
std::string names_in(const Pickle& pickle, PickleValue container) {
  std::string names;
  Pickle::Items items = pickle.items(container);
  int n = 0;
  while (const auto key = items.next()) {
    if (container.kind() != Kind::dictionary) break;
    items.next();
    const auto text = key_text(pickle, *key);
    if (!text) continue;
    if (++n > 8) return names + ", ...";
    names += (n > 1 ? ", " : "") + quote(*text);
  }
  return names;
}

/// The item of a container under the longest name that the path begins with, and the rest of the path.
struct Step {
  std::optional<PickleValue> value;
  std::size_t taken = 0;
};

Step step_into(const Pickle& pickle, PickleValue container, std::string_view path) {
  Step best;
  Pickle::Items items = pickle.items(container);
  for (std::size_t i = 0;; ++i) {
    const auto first = items.next();
    if (!first) return best;
    const bool dictionary = container.kind() == Kind::dictionary;
    const auto value = dictionary ? items.next() : first;
    const auto text = dictionary ? key_text(pickle, *first) : std::to_string(i);
    if (!text || !path.starts_with(*text)) continue;
    if (path.size() != text->size() && path[text->size()] != '.') continue;
    if (!best.value || text->size() >= best.taken) best = {value, text->size()};
  }
}

}  // namespace

std::optional<std::string> plain_text(const Pickle& pickle, PickleValue v) {
  switch (v.kind()) {
    case Kind::none: return "None";
    case Kind::boolean: return pickle.boolean(v) ? "True" : "False";
    case Kind::real: return real_text(pickle.real(v));
    case Kind::text: return std::string(pickle.text(v));
    case Kind::integer: {
      const auto value = pickle.integer(v);
      return value ? std::to_string(*value) : "an integer of more than 64 bits";
    }
    case Kind::global: {
      const PickleGlobal& global = pickle.global(v);
      if (global.kind != GlobalKind::dtype) return std::nullopt;
      return std::string(global.module) + "." + std::string(global.name);
    }
    case Kind::foreign: {
      const auto value = pickle.foreign_value(v);
      return value ? plain_text(pickle, *value) : std::nullopt;
    }
    case Kind::object: {
      if (pickle.maker(v).kind == GlobalKind::numpy_scalar) return numpy_text(pickle, v);
      const PickleValue arguments = pickle.arguments(v);
      if (pickle.maker(v).kind != GlobalKind::device || pickle.tuple_size(arguments) == 0) return std::nullopt;
      const auto item = [&](std::size_t i) { return pickle.tuple_item(arguments, i); };
      if (item(0).kind() != Kind::text) return std::nullopt;
      std::string text(pickle.text(item(0)));
      if (pickle.tuple_size(arguments) == 2 && item(1).kind() == Kind::integer)
        text += ":" + std::to_string(pickle.integer(item(1)).value_or(-1));
      return text;
    }
    default: return std::nullopt;
  }
}

std::optional<std::size_t> TorchIndex::find(std::string_view wanted) const {
  const auto key = [this](std::uint32_t i) { return name(i); };
  const auto found = std::ranges::lower_bound(by_name, wanted, {}, key);
  if (found == by_name.end() || key(*found) != wanted) return std::nullopt;
  return *found;
}

TorchIndex flatten(const Pickle& pickle, std::string_view key, std::string_view where) {
  PickleValue part = pickle.root();
  std::string_view path = key;
  while (!path.empty()) {
    const Step step = is_container(part) ? step_into(pickle, part, path) : Step{};
    if (!step.value && part.kind() == Kind::foreign) refuse(where, foreign_text(pickle, part));
    if (!step.value) {
      const std::string names = is_container(part) ? names_in(pickle, part) : "";
      refuse(where,
             "the checkpoint has no part of this name: " + quote(key) + (names.empty() ? "" : "; there are " + names));
    }
    part = *step.value;
    path.remove_prefix(std::min(path.size(), step.taken + 1));
  }
  return Flattener(pickle, where).run(part);
}

}  // namespace ferrite::io::detail

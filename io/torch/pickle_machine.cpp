/// The machine that reads the opcodes of a pickle.
#include "ferrite/io/torch/pickle_state.h"

namespace ferrite::io::detail {

/// Runs one pickle.
class PickleMachine : PickleState {
 public:
  PickleMachine(std::span<const std::byte> bytes, std::string_view where, PickleClasses classes)
      : PickleState(bytes, where), classes_(classes) {}

  Pickle run() {
    if (bytes_.size() < 2 || opcode_at(0) != Opcode::proto) fail("not a pickle of protocol 2 to 5");
    const auto protocol = std::to_integer<unsigned>(bytes_[1]);
    if (protocol < 2 || protocol > 5)
      fail("unsupported pickle protocol: " + std::to_string(protocol) + ", supported are 2 to 5");
    at_ = 2;
    while (step()) {
    }
    pickle_.size_ = at_;
    pickle_.memory_ = spent_;
    return std::move(pickle_);
  }

 private:
  // ---- opcodes ----

  void add_items(std::size_t begin, Kind kind, std::string_view action) {
    if (begin == 0 || begin <= floor()) fail("the stack of the pickle is empty where a value is needed");
    const Value container = stack_[begin - 1];
    if (container.kind() == Kind::foreign) {
      without_value(container);
      stack_.resize(begin);
      return;
    }
    expect(container, kind, action);
    if (kind == Kind::dictionary && (stack_.size() - begin) % 2 != 0)
      fail("a dictionary is given a key without a value");
    for (std::size_t i = begin; i < stack_.size(); ++i) add_to(container, stack_[i]);
    stack_.resize(begin);
  }

  void push_frozen_set() {
    const std::size_t begin = pop_mark();
    const Value set(Kind::set, new_node());
    for (std::size_t i = begin; i < stack_.size(); ++i) add_to(set, stack_[i]);
    stack_.resize(begin);
    push(set);
  }

  void push_counted(Kind kind, Opcode code) {
    const std::uint64_t length = number(static_cast<std::size_t>(length_bytes(code)));
    const std::span<const std::byte> bytes = take(length);
    if (kind == Kind::text) {
      const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      if (invalid_utf8(text)) fail("a string is not UTF-8: " + quote(text));
    }
    push(kind, op_);
  }

  void push_fixed(Kind kind, std::size_t bytes) {
    take(bytes);
    push(kind, op_);
  }

  std::string_view line() {
    const std::size_t most = std::min(bytes_.size() - at_, kMostLine);
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + at_, most);
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) fail("a name has no end within 1000 bytes");
    at_ += end + 1;
    return rest.substr(0, end);
  }

  /// The name stands at the opcode, or in two strings.
  void push_global(std::string_view module, std::string_view name, Value first, Value second) {
    if (const auto found = find_global(module, name)) return push(Kind::global, *found);
    if (classes_ == PickleClasses::scripted)
      fail("the file names something that is not read: " + quote(std::string(module) + "." + std::string(name)),
           remedy_for(module, name));
    push_foreign(first, second, Value(Kind::none, static_cast<std::uint32_t>(op_)), kNoValue);
  }

  // ---- what is not read ----

  static constexpr Value kNoValue{Kind::foreign, 0};

  void push_foreign(Value module, Value name, Value at, Value value) {
    const std::uint32_t place_of = place(module);
    place(name), place(at), place(value);
    push(Kind::foreign, place_of);
  }

  /// Calling a foreign name: only of what may be an Enum the one value is kept.
  void call_foreign(Value maker, Value arguments) {
    expect(arguments, Kind::tuple, "a call");
    const std::uint32_t from = maker.place();
    const Value called = pickle_.pool_[from + 3];
    const auto [module, name] = pickle_.foreign_name(maker);
    if (called != kNoValue || pickle_.tuple_size(arguments) != 1 || !may_be_enum(module, name))
      return push(without_value(maker));
    const Value value = pickle_.tuple_item(arguments, 0);
    if (value.kind() != Kind::none && value.kind() != Kind::boolean && value.kind() != Kind::integer &&
        value.kind() != Kind::real && value.kind() != Kind::text)
      return push(maker);
    push_foreign(pickle_.pool_[from], pickle_.pool_[from + 1], pickle_.pool_[from + 2], value);
  }

  /// What is called again, or is given items or a state, is no Enum.
  Value without_value(Value foreign) {
    pickle_.pool_[foreign.place() + 3] = kNoValue;
    return foreign;
  }

  void put(std::uint64_t index) {
    const Value value = top();
    if (index >= bytes_.size()) fail("an index of the memo is beyond the pickle's size: " + std::to_string(index));
    if (index >= memo_.size()) {
      charge((static_cast<std::size_t>(index) + 1 - memo_.size()) * sizeof(Value));
      memo_.resize(static_cast<std::size_t>(index) + 1, kAbsent);
    }
    Value& entry = memo_[static_cast<std::size_t>(index)];
    if (entry == kAbsent) ++memoized_;
    entry = value;
  }

  void get(std::uint64_t index) {
    if (index >= memo_.size() || memo_[static_cast<std::size_t>(index)] == kAbsent)
      fail("the memo has no such entry: " + std::to_string(index));
    push(memo_[static_cast<std::size_t>(index)]);
  }

  Value new_dictionary(bool ordered) { return {Kind::dictionary, new_node() | (ordered ? Pickle::kOrderedBit : 0)}; }

  /// OrderedDict() or, as Python 2 wrote it, OrderedDict([[key, value], ...]).
  Value ordered_dictionary(Value arguments) {
    const Value made = new_dictionary(true);
    const std::size_t n = pickle_.tuple_size(arguments);
    if (n == 0) return made;
    const Value pairs = pickle_.tuple_item(arguments, 0);
    if (n != 1 || pairs.kind() != Kind::list) fail("an OrderedDict is made of something else than a list of pairs");
    Pickle::Items items = pickle_.items(pairs);
    while (const auto pair = items.next()) {
      if (pair->kind() != Kind::list && pair->kind() != Kind::tuple)
        fail("an OrderedDict is made of something else than a list of pairs");
      Pickle::Items both = pickle_.items(*pair);
      const auto key = both.next();
      const auto value = both.next();
      if (!key || !value || both.next()) fail("an OrderedDict is made of something else than a list of pairs");
      add_to(made, *key);
      add_to(made, *value);
    }
    return made;
  }

  Value object(Value maker, Value arguments) {
    const std::uint32_t at = place(maker);
    place(arguments);
    if (pickle_.global(maker).kind == GlobalKind::numpy_dtype) place(Value());
    return {Kind::object, at};
  }

  /// Counter(dict) is that dictionary, torch.Size(tuple) that tuple.
  Value only_argument(Value arguments, Kind kind, std::string_view name) {
    if (pickle_.tuple_size(arguments) != 1 || pickle_.tuple_item(arguments, 0).kind() != kind)
      fail(std::string(name) + " is made of something else than " + std::string(with_article(kind)));
    return pickle_.tuple_item(arguments, 0);
  }

  void reduce() {
    const Value arguments = pop();
    const Value maker = pop();
    if (maker.kind() == Kind::scripted_class) return push(instance(maker, arguments));  // a NamedTuple, an Enum
    if (maker.kind() == Kind::foreign) return call_foreign(maker, arguments);
    if (maker.kind() != Kind::global)
      fail("the file calls what is no function: " + std::string(with_article(maker.kind())));
    expect(arguments, Kind::tuple, "a call");
    const PickleGlobal& global = pickle_.global(maker);
    switch (global.kind) {
      case GlobalKind::ordered_dict: return push(ordered_dictionary(arguments));
      case GlobalKind::default_dict: return push(new_dictionary(false));
      case GlobalKind::counter:
        return push(pickle_.tuple_size(arguments) == 0 ? new_dictionary(false)
                                                       : only_argument(arguments, Kind::dictionary, "a Counter"));
      case GlobalKind::size: return push(only_argument(arguments, Kind::tuple, "a torch.Size"));
      case GlobalKind::plain_type:
      case GlobalKind::tensor_class:
      case GlobalKind::storage:
      case GlobalKind::untyped_storage:
      case GlobalKind::dtype:
        fail("the file calls what data does not need: " +
                 quote(std::string(global.module) + "." + std::string(global.name)),
             remedy_for(global.module, global.name));
      default: return push(object(maker, arguments));
    }
  }

  Value instance(Value scripted_class, Value state) {
    const std::uint32_t at = place(scripted_class);
    place(state);
    return {Kind::instance, at};
  }

  /// Also with keyword arguments, which only a foreign class takes.
  void new_instance(bool keywords) {
    if (keywords) expect(pop(), Kind::dictionary, "making an object");
    const Value arguments = pop();
    const Value made_of = pop();
    if (made_of.kind() == Kind::foreign) {
      expect(arguments, Kind::tuple, "making an object");
      return push(without_value(made_of));
    }
    if (made_of.kind() != Kind::scripted_class || keywords)
      fail("the file makes objects of a class", "is this a whole pickled module? save model.state_dict() instead");
    expect(arguments, Kind::tuple, "making an object");
    if (pickle_.tuple_size(arguments) != 0) fail("the file makes an object with arguments");
    push(instance(made_of, Value()));
  }

  void set_once(Value& own, Value state) {
    if (own.kind() != Kind::none) fail("the file gives an object its state twice");
    own = state;
  }

  /// An instance and a numpy.dtype are given their state once. Of what data needs, only an OrderedDict has attributes,
  /// `_metadata`, which nobody needs.
  void build() {
    const Value state = pop();
    const Value target = top();
    if (target.kind() == Kind::instance) return set_once(pickle_.pool_[target.place() + 1], state);
    if (target.kind() == Kind::foreign) {
      without_value(target);
      return;
    }
    if (target.kind() == Kind::object && pickle_.maker(target).kind == GlobalKind::numpy_dtype) {
      expect(state, Kind::tuple, "setting attributes");
      return set_once(pickle_.pool_[target.place() + 2], state);
    }
    if (target.kind() != Kind::dictionary || (target.place() & Pickle::kOrderedBit) == 0)
      fail("the file sets attributes of " + std::string(with_article(target.kind())),
           "save tensors and plain data, such as model.state_dict()");
    expect(state, Kind::dictionary, "setting attributes");
  }

  void stack_global() {
    const Value name = pop();
    const Value module = pop();
    expect(name, Kind::text, "a name");
    expect(module, Kind::text, "a name");
    push_global(pickle_.text(module), pickle_.text(name), module, name);
  }

  void persistent() {
    const Value id = pop();
    expect(id, Kind::tuple, "a persistent id");
    push(Kind::persistent, place(id));
    charge(sizeof(Value));
    pickle_.persistent_ids_.push_back(stack_.back());
  }

  /// Returns false at STOP.
  bool step() {
    op_ = at_;
    const auto code = static_cast<Opcode>(take(1)[0]);
    switch (code) {
      case Opcode::stop: return stop();
      case Opcode::frame: check_frame(); break;
      case Opcode::mark: open_group(); break;
      case Opcode::pop: drop(); break;
      case Opcode::pop_mark: stack_.resize(pop_mark()); break;
      case Opcode::none: push(Kind::none); break;
      case Opcode::newtrue: push(Kind::boolean, 1); break;
      case Opcode::newfalse: push(Kind::boolean, 0); break;
      case Opcode::binint: push_fixed(Kind::integer, 4); break;
      case Opcode::binint1: push_fixed(Kind::integer, 1); break;
      case Opcode::binint2: push_fixed(Kind::integer, 2); break;
      case Opcode::binfloat: push_fixed(Kind::real, 8); break;
      case Opcode::long1:
      case Opcode::long4: push_counted(Kind::integer, code); break;
      case Opcode::binunicode:
      case Opcode::short_binunicode:
      case Opcode::binunicode8:
      case Opcode::binstring:
      case Opcode::short_binstring: push_counted(Kind::text, code); break;
      case Opcode::binbytes:
      case Opcode::short_binbytes:
      case Opcode::binbytes8:
      case Opcode::bytearray8: push_counted(Kind::bytes, code); break;
      case Opcode::empty_tuple: push_tuple(stack_.size()); break;
      case Opcode::tuple: push_tuple(pop_mark()); break;
      case Opcode::tuple1: push_tuple_of(1); break;
      case Opcode::tuple2: push_tuple_of(2); break;
      case Opcode::tuple3: push_tuple_of(3); break;
      case Opcode::empty_list: push(Kind::list, new_node()); break;
      case Opcode::empty_dict: push(new_dictionary(false)); break;
      case Opcode::empty_set: push(Kind::set, new_node()); break;
      case Opcode::append: add_last(1, Kind::list, "appending"); break;
      case Opcode::setitem: add_last(2, Kind::dictionary, "setting an item"); break;
      case Opcode::appends: add_items(pop_mark(), Kind::list, "appending"); break;
      case Opcode::setitems: add_items(pop_mark(), Kind::dictionary, "setting an item"); break;
      case Opcode::additems: add_items(pop_mark(), Kind::set, "adding to a set"); break;
      case Opcode::frozenset: push_frozen_set(); break;
      case Opcode::binput: put(number(1)); break;
      case Opcode::long_binput: put(number(4)); break;
      case Opcode::memoize: put(memoized_); break;
      case Opcode::binget: get(number(1)); break;
      case Opcode::long_binget: get(number(4)); break;
      case Opcode::global: {
        const std::string_view module = line(), name = line();
        if (classes_ == PickleClasses::scripted && (module == "__torch__" || module.starts_with("__torch__.")))
          push(Kind::scripted_class, op_);
        else
          push_global(module, name, Value(Kind::scripted_class, static_cast<std::uint32_t>(op_)), Value());
        break;
      }
      case Opcode::stack_global: stack_global(); break;
      case Opcode::reduce: reduce(); break;
      case Opcode::build: build(); break;
      case Opcode::binpersid: persistent(); break;
      case Opcode::newobj: new_instance(false); break;
      case Opcode::newobj_ex: new_instance(true); break;
      default: refuse_opcode(std::to_integer<unsigned>(bytes_[op_]));
    }
    return true;
  }

  void add_last(std::size_t n, Kind kind, std::string_view action) {
    if (stack_.size() - floor() < n + 1) fail("the stack of the pickle is empty where a value is needed");
    add_items(stack_.size() - n, kind, action);
  }

  void open_group() {
    if (marks_.size() == most_marks_) {
      ++most_marks_;
      charge(sizeof(std::uint32_t));
    }
    marks_.push_back(static_cast<std::uint32_t>(stack_.size()));
  }

  /// POP takes a value away, or a mark on top of the stack.
  void drop() {
    if (!marks_.empty() && stack_.size() == marks_.back())
      marks_.pop_back();
    else
      pop();
  }

  void check_frame() {
    const std::uint64_t length = number(8);
    if (length > bytes_.size() - at_)
      fail("a frame is longer than the pickle: " + std::to_string(length) + " bytes, " +
           std::to_string(bytes_.size() - at_) + " are left");
  }

  bool stop() {
    if (stack_.size() != 1 || !marks_.empty())
      fail("the pickle ends with " + counted(stack_.size(), "value") + " and " + counted(marks_.size(), "open group") +
           " on its stack, not one value");
    pickle_.root_ = stack_.back();
    return false;
  }

  [[noreturn]] void refuse_opcode(unsigned code) const {
    const std::string_view name = refused_opcode(static_cast<std::uint8_t>(code));
    fail(name.empty() ? "not an opcode: " + std::to_string(code)
                      : "an opcode that data does not need: " + std::string(name));
  }

  PickleClasses classes_;
};

Pickle read_pickle(std::span<const std::byte> bytes, std::string_view where, PickleClasses classes) {
  return PickleMachine(bytes, where, classes).run();
}

}  // namespace ferrite::io::detail

/// Reads pickles as data: keeps the values in compact tables, and runs the opcodes on a machine whose stack, marks,
/// memo and values are all bounded.
#include "ferrite/io/torch/pickle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <string>
#include <string_view>

#include "ferrite/io/detail/io_text.h"

// ---- opcodes -------------------------------------------------------------------------------------------

namespace ferrite::io::detail {
namespace {

/// The opcodes of protocols 2 to 5 that plain data needs, by CPython's names (Lib/pickletools.py).
enum class Opcode : std::uint8_t {
  mark = '(',
  stop = '.',
  pop = '0',
  pop_mark = '1',
  none = 'N',
  binint = 'J',
  binint1 = 'K',
  binint2 = 'M',
  binfloat = 'G',
  binstring = 'T',
  short_binstring = 'U',
  binunicode = 'X',
  binbytes = 'B',
  short_binbytes = 'C',
  empty_tuple = ')',
  empty_list = ']',
  empty_dict = '}',
  tuple = 't',
  append = 'a',
  appends = 'e',
  setitem = 's',
  setitems = 'u',
  binput = 'q',
  long_binput = 'r',
  binget = 'h',
  long_binget = 'j',
  global = 'c',
  reduce = 'R',
  build = 'b',
  binpersid = 'Q',
  proto = 0x80,
  newobj = 0x81,
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  newtrue = 0x88,
  newfalse = 0x89,
  long1 = 0x8a,
  long4 = 0x8b,
  short_binunicode = 0x8c,
  binunicode8 = 0x8d,
  binbytes8 = 0x8e,
  empty_set = 0x8f,
  additems = 0x90,
  frozenset = 0x91,
  newobj_ex = 0x92,
  stack_global = 0x93,
  memoize = 0x94,
  frame = 0x95,
  bytearray8 = 0x96,
};

/// Returns the size of the length that follows an opcode of a string, bytes or long; 0 for the others.
int length_bytes(Opcode code);

// ---- values --------------------------------------------------------------------------------------------

std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = (value << 8) | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

/// Returns the bytes that follow an opcode with a length; the machine has checked that all are there.
std::span<const std::byte> counted_bytes(std::span<const std::byte> bytes, std::uint32_t place) {
  const auto width = static_cast<std::size_t>(length_bytes(static_cast<Opcode>(bytes[place])));
  const auto length = static_cast<std::size_t>(little_endian(bytes.subspan(place + 1, width)));
  return bytes.subspan(place + 1 + width, length);
}

/// Returns the value of two's complement in up to 8 bytes, or in more where the rest repeats the sign.
std::optional<std::int64_t> from_long(std::span<const std::byte> bytes) {
  if (bytes.empty()) return 0;
  const bool negative = std::to_integer<unsigned>(bytes.back()) > 127;
  const std::byte fill = negative ? std::byte{0xff} : std::byte{0};
  while (bytes.size() > 8 && bytes.back() == fill) bytes = bytes.first(bytes.size() - 1);
  if (bytes.size() > 8 || (std::to_integer<unsigned>(bytes.back()) > 127) != negative) return std::nullopt;
  std::uint64_t value = little_endian(bytes);
  if (negative && bytes.size() < 8) value |= ~std::uint64_t{0} << (8 * bytes.size());
  return std::bit_cast<std::int64_t>(value);
}

}  // namespace

std::string_view with_article(PickleKind kind) {
  constexpr std::array<std::string_view, 16> words = {"None",
                                                      "a bool",
                                                      "an integer",
                                                      "a float",
                                                      "a string",
                                                      "bytes",
                                                      "a tuple",
                                                      "a list",
                                                      "a dictionary",
                                                      "a set",
                                                      "a Python name",
                                                      "an object",
                                                      "a storage",
                                                      "a class",
                                                      "an instance of a class",
                                                      "what is not read"};
  return words[static_cast<std::size_t>(kind)];
}

namespace {

/// Returns the name of an opcode that is refused, "INST"; empty for a byte that is no opcode at all.
std::string_view refused_opcode(std::uint8_t code) {
  switch (code) {
    case 'I': return "INT";
    case 'L': return "LONG";
    case 'S': return "STRING";
    case 'V': return "UNICODE";
    case 'F': return "FLOAT";
    case 'l': return "LIST";
    case 'd': return "DICT";
    case 'p': return "PUT";
    case 'g': return "GET";
    case 'P': return "PERSID";
    case '2': return "DUP";
    case 'i': return "INST";
    case 'o': return "OBJ";
    case 0x82: return "EXT1";
    case 0x83: return "EXT2";
    case 0x84: return "EXT4";
    case 0x97: return "NEXT_BUFFER";
    case 0x98: return "READONLY_BUFFER";
    default: return "";
  }
}

int length_bytes(Opcode code) {
  switch (code) {
    case Opcode::short_binstring:
    case Opcode::short_binunicode:
    case Opcode::short_binbytes:
    case Opcode::long1: return 1;
    case Opcode::binstring:
    case Opcode::binunicode:
    case Opcode::binbytes:
    case Opcode::long4: return 4;
    case Opcode::binunicode8:
    case Opcode::binbytes8:
    case Opcode::bytearray8: return 8;
    default: return 0;
  }
}

}  // namespace

std::optional<std::int64_t> Pickle::integer(PickleValue v) const {
  const std::span<const std::byte> behind = bytes_.subspan(v.place() + 1);
  switch (static_cast<Opcode>(bytes_[v.place()])) {
    case Opcode::binint1: return static_cast<std::int64_t>(little_endian(behind.first(1)));
    case Opcode::binint2: return static_cast<std::int64_t>(little_endian(behind.first(2)));
    case Opcode::binint: return std::bit_cast<std::int32_t>(static_cast<std::uint32_t>(little_endian(behind.first(4))));
    default: return from_long(counted_bytes(bytes_, v.place()));
  }
}

double Pickle::real(PickleValue v) const {
  std::uint64_t bits = 0;
  for (std::size_t i = 1; i <= 8; ++i)
    bits = (bits << 8) | std::to_integer<std::uint64_t>(bytes_[v.place() + i]);  // big-endian
  return std::bit_cast<double>(bits);
}

std::string_view Pickle::text(PickleValue v) const {
  const std::span<const std::byte> bytes = counted_bytes(bytes_, v.place());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::pair<std::string_view, std::string_view> Pickle::class_name(PickleValue scripted_class) const {
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
  const std::size_t module = scripted_class.place() + 1;  // two lines follow the opcode
  const std::size_t name = text.find('\n', module) + 1;
  return {text.substr(module, name - 1 - module), text.substr(name, text.find('\n', name) - name)};
}

std::pair<std::string_view, std::string_view> Pickle::foreign_name(PickleValue v) const {
  const PickleValue module = pool_[v.place()];
  if (module.kind() == PickleKind::scripted_class) return class_name(module);
  return {text(module), text(pool_[v.place() + 1])};
}

std::size_t Pickle::tuple_size(PickleValue v) const { return pool_[v.place()].place(); }

Pickle::Items::Items(const Pickle& pickle, PickleValue container) : pickle_(&pickle) {
  if (container.kind() == PickleKind::tuple) {
    at_ = container.place() + 1;
    left_ = static_cast<std::uint32_t>(pickle.tuple_size(container));
    return;
  }
  const PickleNode& node = pickle.nodes_[container.place() & ~kOrderedBit];
  at_ = node.begin;
  left_ = node.count;
  next_ = node.next;
}

std::optional<PickleValue> Pickle::Items::next() {
  while (left_ == 0) {
    if (next_ == 0) return std::nullopt;
    const PickleNode& node = pickle_->nodes_[next_];
    at_ = node.begin;
    left_ = node.count;
    next_ = node.next;
  }
  --left_;
  return pickle_->pool_[at_++];
}

// ---- the state of the machine --------------------------------------------------------------------------

/// The state of a machine that reads a pickle: the bytes, a stack with marks on it, a memo, and the values, whose
/// tables only grow and may not outgrow the pickle.
class PickleState {
 protected:
  PickleState(std::span<const std::byte> bytes, std::string_view where)
      : bytes_(bytes.first(std::min(bytes.size(), kMostPickleBytes))), where_(where), pickle_(bytes_) {}

  using Kind = PickleKind;
  using Value = PickleValue;

  static constexpr std::size_t kFreeBytes = std::size_t{1} << 19;
  static constexpr std::size_t kMostLine = 1000;
  static constexpr std::size_t kMostDepth = std::size_t{1} << 20;
  static constexpr Value kAbsent{Kind::persistent, 0x0fffffff};

  [[noreturn]] void fail(const std::string& what, const std::string& remedy = "") const {
    refuse(where_, what + " at byte " + std::to_string(op_) + " of the pickle" + (remedy.empty() ? "" : "; ") + remedy);
  }

  Opcode opcode_at(std::size_t i) const { return static_cast<Opcode>(bytes_[i]); }

  std::span<const std::byte> take(std::uint64_t n) {
    if (n > bytes_.size() - at_)
      fail("the pickle is cut short: " + std::to_string(n) + " bytes wanted, " + std::to_string(bytes_.size() - at_) +
           " are left");
    at_ += static_cast<std::size_t>(n);
    return bytes_.subspan(at_ - static_cast<std::size_t>(n), static_cast<std::size_t>(n));
  }

  std::uint64_t number(std::size_t width) {
    std::uint64_t value = 0;
    const std::span<const std::byte> digits = take(width);
    for (std::size_t i = width; i-- > 0;) value = (value << 8) | std::to_integer<std::uint64_t>(digits[i]);
    return value;
  }

  // ---- the tables, which may not outgrow the pickle ----

  void charge(std::size_t bytes) {
    spent_ += bytes;
    if (spent_ > kFreeBytes + 8 * at_)
      fail("the values need more memory than a file of this size warrants: above " + std::to_string(spent_) + " bytes");
  }

  std::uint32_t place(Value value) {
    charge(sizeof(Value));
    pickle_.pool_.push_back(value);
    return static_cast<std::uint32_t>(pickle_.pool_.size() - 1);
  }

  std::uint32_t new_node() {
    charge(sizeof(PickleNode));
    const auto number = static_cast<std::uint32_t>(pickle_.nodes_.size());
    pickle_.nodes_.push_back({0, 0, 0, number});
    return number;
  }

  /// Appends a value to a container; its last piece grows while nothing follows it in the pool.
  void add_to(Value container, Value item) {
    PickleNode& head = pickle_.nodes_[container.place() & ~Pickle::kOrderedBit];
    std::uint32_t last = head.last;
    const PickleNode& tail = pickle_.nodes_[last];
    if (tail.count > 0 && tail.begin + tail.count != pickle_.pool_.size()) {
      const std::uint32_t piece = new_node();  // references into the deque stay valid
      pickle_.nodes_[last].next = piece;
      head.last = last = piece;
    }
    const std::uint32_t at = place(item);
    PickleNode& node = pickle_.nodes_[last];
    if (node.count++ == 0) node.begin = at;
  }

  // ---- the stack ----

  void push(Value value) {
    if (stack_.size() >= kMostDepth) fail("the stack of the pickle is too deep: " + std::to_string(stack_.size()));
    if (stack_.size() == deepest_) {
      ++deepest_;
      charge(sizeof(Value));
    }
    stack_.push_back(value);
  }
  void push(Kind kind, std::size_t place = 0) { push(Value(kind, static_cast<std::uint32_t>(place))); }

  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  Value pop() {
    if (stack_.size() <= floor()) fail("the stack of the pickle is empty where a value is needed");
    const Value value = stack_.back();
    stack_.pop_back();
    return value;
  }

  Value top() const {
    if (stack_.size() <= floor()) fail("the stack of the pickle is empty where a value is needed");
    return stack_.back();
  }

  std::size_t pop_mark() {
    if (marks_.empty()) fail("the pickle closes a group that it has not opened");
    const std::size_t begin = marks_.back();
    marks_.pop_back();
    return begin;
  }

  void push_tuple(std::size_t begin) {
    const std::size_t n = stack_.size() - begin;
    const std::uint32_t head = place(Value(Kind::tuple, static_cast<std::uint32_t>(n)));
    for (std::size_t i = begin; i < stack_.size(); ++i) place(stack_[i]);
    stack_.resize(begin);
    push(Kind::tuple, head);
  }

  void push_tuple_of(std::size_t n) {
    if (stack_.size() - floor() < n) fail("the stack of the pickle is empty where a value is needed");
    push_tuple(stack_.size() - n);
  }

  void expect(Value value, Kind kind, std::string_view action) const {
    if (value.kind() != kind)
      fail(std::string(action) + " needs " + std::string(with_article(kind)) + " and meets " +
           std::string(with_article(value.kind())));
  }

  std::span<const std::byte> bytes_;
  std::string where_;
  Pickle pickle_;
  std::size_t at_ = 0;
  std::size_t op_ = 0;  ///< position of the present opcode
  std::size_t spent_ = 0;
  std::size_t deepest_ = 0;     ///< largest size of the stack so far
  std::size_t most_marks_ = 0;  ///< largest number of marks so far
  std::uint64_t memoized_ = 0;  ///< number of memo entries, which is the next number of MEMOIZE
  std::deque<Value> stack_;
  std::deque<std::uint32_t> marks_;
  std::deque<Value> memo_;
};

// ---- the machine ---------------------------------------------------------------------------------------

/// Runs the opcodes of one pickle.
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

  /// Pushes a global, whose name is stored at the opcode or in two strings.
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

  /// Calls a foreign name; its one argument is kept only where the name may be an Enum's.
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

  /// Returns a foreign value without its argument: one that is called again, or given items or a state, is no Enum.
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

  /// Makes OrderedDict() or, as Python 2 wrote it, OrderedDict([[key, value], ...]).
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

  /// Returns the only argument of a call: Counter(dict) is that dictionary, torch.Size(tuple) that tuple.
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

  /// Makes a new instance, perhaps with keyword arguments, which only a foreign class takes.
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

  /// Runs BUILD. An instance and a numpy.dtype are given their state once. Among data, only an OrderedDict has
  /// attributes, `_metadata`, which are ignored.
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

  /// Runs one opcode. Returns false at STOP.
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

  /// Runs POP, which removes a value, or a mark on top of the stack.
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

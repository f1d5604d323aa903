/// The texts of loops: types, addresses, names and operations.
#include <algorithm>

#include "ferrite/exchange/freeze/c_points.h"
#include "ferrite/tensor/operations.h"

namespace ferrite::exchange::detail {
namespace {

using Step = LoweredInstruction::Step;

}  // namespace

LoopText::LoopText(CBody& body, const LoweredLoop& loop, CText& to) : body_(body), loop_(loop), to_(to) {
  for (const LoweredInstruction& i : loop.instructions)
    if (i.step == Step::store || i.step == Step::across) written_.insert(loop.accesses[i.access].value);
  choose_type();
}

void LoopText::choose_type() {
  std::set<Dtype> types;
  for (const LoweredSlot& s : loop_.slots)
    if (s.dtype != Dtype::boolean) types.insert(s.dtype);
  if (types.empty()) types.insert(body_.module().has_doubles() ? Dtype::f64 : Dtype::f32);
  vector_ = types.size() == 1 && is_float(*types.begin());
  type_ = vector_ ? *types.begin() : Dtype::f32;
  bool masks = false;
  for (const LoweredSlot& s : loop_.slots) masks = masks || s.dtype == Dtype::boolean;
  if (masks && type_ == Dtype::f32 && body_.module().has_doubles()) vector_ = false;  // masks in memory are wider
  if (vector_) body_.module().has(type_);
  if (!vector_) body_.module().kernel("first", Dtype::f32), body_.module().has(Dtype::f32);
}

std::string LoopText::at(ValueId v, std::int64_t offset) const {
  return parameters_.name(body_.at(v, offset), body_.spec(v).dtype, written_.contains(v));
}
std::string LoopText::row_of(std::size_t slot, std::int64_t n) const {
  const Dtype dtype = loop_.slots[slot].dtype;
  return parameters_.name(body_.scratch(dtype, n), dtype, true);
}
std::string LoopText::address(const LoweredAccess& a, int axes) const {
  std::string all = at(a.value, a.offset);
  for (int k = 0; k < axes; ++k) all = plus(all, a.strides[k], "i" + text(k));
  return all;
}
std::string LoopText::inside(const LoweredAccess& a, int axes, bool row) const {
  if (a.whole) return "";
  std::string all;
  for (int k = 0; k < axes; ++k) {
    const std::int64_t b = a.box.begin[k], e = a.box.end[k], n = row ? e : loop_.extents[k];
    if (b >= e) return "0";
    if (b > 0) all += (all.empty() ? "" : " && ") + ("i" + text(k) + " >= " + text(b));
    if (e < loop_.extents[k]) all += (all.empty() ? "" : " && ") + ("i" + text(k) + " < " + text(e));
    (void)n;
  }
  return all;
}

std::string LoopText::suffix(Dtype dtype) const {
  const bool wide = type_ == Dtype::f64;
  return dtype == Dtype::boolean ? (wide ? "l" : "i") : (wide ? "d" : "f");
}
std::string LoopText::type(Dtype dtype) const { return vector_ ? "nf_" + suffix(dtype) : std::string(c_type(dtype)); }
std::string LoopText::number(const std::array<std::byte, 8>& n, Dtype dtype) const {
  const std::string c = c_number_at(n.data(), dtype);
  return vector_ ? "nf_set_" + suffix(dtype) + "(" + c + ")" : c;
}

void LoopText::open_axes(int from, int to) {
  for (int k = from; k < to; ++k) to_.open(loop_over("i" + text(k), loop_.extents[k]));
}
void LoopText::close_axes(int from, int to) {
  for (int k = from; k < to; ++k) to_.close();
}

// ---- operations ------------------------------------------------------------------------------------------------

namespace {

/// Returns an operation on truth values, whose bits are all ones or all zeros, alone and in vectors; "" for another.
std::string of_truths(std::string_view op, const std::vector<std::string>& in) {
  if (op == "logical_not") return "~" + in[0];
  if (op == "logical_and" || op == "bitwise_and") return in[0] + " & " + in[1];
  if (op == "logical_or" || op == "bitwise_or") return in[0] + " | " + in[1];
  if (op == "bitwise_xor") return in[0] + " ^ " + in[1];
  if (op == "equal") return "~(" + in[0] + " ^ " + in[1] + ")";
  if (op == "less") return "~" + in[0] + " & " + in[1];
  if (op == "less_equal") return "~" + in[0] + " | " + in[1];
  if (op == "where") return "(" + in[0] + " & " + in[1] + ") | (~" + in[0] + " & " + in[2] + ")";
  return "";
}

}  // namespace

std::string LoopText::applied(const LoweredInstruction& i, const std::vector<std::string>& in) const {
  const bool truths = std::ranges::all_of(i.in, [&](std::size_t s) { return loop_.slots[s].dtype == Dtype::boolean; });
  if (truths && i.node->op != ferrite::detail::ops::cast) {
    const std::string text = of_truths(i.node->op->name, in);
    if (text.empty()) body_.refuse(*i.node, "it has no form for truth values in C");
    return text;
  }
  if (!vector_) return applied_alone(i, in);
  std::string all;
  for (const std::string& x : in) all += (all.empty() ? "" : ", ") + x;
  if (i.node->op == ferrite::detail::ops::cast) return cast_vector(i, all);
  const std::string f = body_.module().function(*i.node->op, type_);
  if (f.empty()) body_.refuse(*i.node, "it has no function in C");
  return f + "(" + all + ")";
}
/// Returns a cast between numbers and truth values in vectors, whose numbers all have one type.
std::string LoopText::cast_vector(const LoweredInstruction& i, const std::string& in) const {
  const bool from = loop_.slots[i.in[0]].dtype == Dtype::boolean, to = loop_.slots[i.slot].dtype == Dtype::boolean;
  const std::string s = suffix(type_), zero = "nf_set_" + s + "(0)";
  if (from == to) return in;
  if (from) return "nf_select_" + s + "(nf_mask_of_" + s + "(" + in + "), nf_set_" + s + "(1), " + zero + ")";
  return "~nf_truth_" + s + "(nf_is_equal_" + s + "(" + in + ", " + zero + "))";
}

/// Returns an operation on single numbers.
std::string LoopText::applied_alone(const LoweredInstruction& i, const std::vector<std::string>& in) const {
  Dtype of = loop_.slots[i.slot].dtype;
  const Primitive& op = *i.node->op;
  if (&op == ferrite::detail::ops::cast) return converted(in[0], loop_.slots[i.in[0]].dtype, of);
  if (op.name == "where") return "(" + in[0] + ") ? (" + in[1] + ") : (" + in[2] + ")";
  for (const std::size_t s : i.in)
    if (loop_.slots[s].dtype != Dtype::boolean) of = loop_.slots[s].dtype;
  if (op.name == "equal") return "(" + in[0] + ") == (" + in[1] + ") ? -1 : 0";
  if (op.name == "less") return "(" + in[0] + ") < (" + in[1] + ") ? -1 : 0";
  if (op.name == "less_equal") return "(" + in[0] + ") <= (" + in[1] + ") ? -1 : 0";
  if (!is_float(of)) return integer(i, in, of);
  const std::string f = body_.module().function(op, of), s = of == Dtype::f64 ? "d" : "f";
  if (f.empty()) body_.refuse(*i.node, "it has no function in C");
  body_.module().kernel("first", of);
  std::string call = f + "(";
  for (std::size_t k = 0; k < in.size(); ++k) call += (k ? ", " : "") + ("nf_set_" + s + "(" + in[k] + ")");
  return "nf_first_" + s + "(" + call + "))";
}
std::string LoopText::integer(const LoweredInstruction& i, const std::vector<std::string>& in, Dtype dtype) const {
  const std::string t(c_type(dtype)), u = "u" + t;
  const std::string_view op = i.node->op->name;
  for (const auto& [name, sign] : {std::pair{"add", " + "}, {"sub", " - "}, {"mul", " * "}})
    if (op == name) return "(" + t + ")((" + u + ")(" + in[0] + ")" + sign + "(" + u + ")(" + in[1] + "))";
  const std::string &a = in[0], &b = in.back(), minus = "(" + t + ")(0 - (" + u + ")" + a + ")";
  const auto larger = [](const std::string& x, const std::string& y) { return x + " > " + y + " ? " + x + " : " + y; };
  if (op == "neg") return minus;
  if (op == "abs") return a + " < 0 ? " + minus + " : " + a;
  if (op == "sign") return "(" + a + " > 0) - (" + a + " < 0)";
  if (op == "square") return "(" + t + ")((" + u + ")" + a + " * (" + u + ")" + a + ")";
  if (op == "relu") return larger(a, "0");
  if (op == "maximum") return larger(a, b);
  if (op == "minimum") return a + " < " + b + " ? " + a + " : " + b;
  if (op == "clamp") return "(" + larger(a, in[1]) + ") < " + b + " ? (" + larger(a, in[1]) + ") : " + b;
  if (op == "bitwise_and") return a + " & " + b;
  if (op == "bitwise_or") return a + " | " + b;
  if (op == "bitwise_xor") return a + " ^ " + b;
  if (op == "bitwise_not") return "~" + a;
  const std::string within = b + " >= 0 && " + b + " < " + text(8 * size_of(dtype)) + " ? ";
  if (op == "bitwise_left_shift") return within + "(" + t + ")((" + u + ")" + a + " << " + b + ") : 0";
  if (op == "bitwise_right_shift") return within + "(" + t + ")" + a + " >> " + b + " : -(" + a + " < 0)";
  // A remainder of division by 0 is 0, and so is the quotient. In C, a remainder has the sign of the dividend.
  const std::string rest = "(" + b + " == 0 || " + b + " == -1 ? 0 : " + a + " % " + b + ")";
  const std::string crosses = "(" + rest + " != 0 && (" + rest + " < 0) != (" + b + " < 0))";
  if (op == "fmod") return rest;
  if (op == "remainder") return crosses + " ? " + rest + " + " + b + " : " + rest;
  if (op == "floor_divide")
    return b + " == 0 ? 0 : " + b + " == -1 ? " + minus + " : " + a + " / " + b + " - " + crosses;
  body_.refuse(*i.node, "it has no form for integers in C");
}
std::string LoopText::converted(const std::string& x, Dtype from, Dtype to) const {
  const std::string t(c_type(to));
  if (to == Dtype::boolean) return "(" + x + ") != 0 ? -1 : 0";
  if (from == Dtype::boolean) return "(" + x + ") != 0 ? 1 : 0";
  if (is_float(from) && !is_float(to)) {
    const bool wide = to == Dtype::i64;
    const std::string high = wide ? "INT64_MAX" : "INT32_MAX", low = wide ? "INT64_MIN" : "INT32_MIN";
    return "(" + x + ") != (" + x + ") ? 0 : (" + x + ") >= " + (wide ? "9223372036854775807.0" : "2147483647.0") +
           " ? " + high + " : (" + x + ") <= " + (wide ? "-9223372036854775808.0" : "-2147483648.0") + " ? " + low +
           " : (" + t + ")(" + x + ")";
  }
  return "(" + t + ")(" + x + ")";
}

}  // namespace ferrite::exchange::detail

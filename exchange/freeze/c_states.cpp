/// Writes states as members of the struct of a frozen net.
#include "ferrite/exchange/freeze/c_states.h"

#include <algorithm>

namespace ferrite::exchange::detail {
namespace {

/// Returns the number of elements from one place of a state to the next. Vectors may reach behind the last element of
/// all but small states.
std::int64_t places(const FrozenState& s) {
  const std::int64_t n = s.spec.shape.numel();
  return n < 8 ? n : whole_vectors(n);
}
/// Returns whether a state lies at changing places.
bool moves(const FrozenState& s) { return s.keeping == Keeping::line || s.keeping == Keeping::pair; }

/// Moves the last frames of a line to its beginning.
constexpr const char* kBack = R"C(/* Copies rows of n numbers that lie `apart` from each other; returns 0. */
NF_APART int32_t $name($T *to, const $T *from, ptrdiff_t rows, ptrdiff_t apart, ptrdiff_t n) {
  for (ptrdiff_t r = 0; r < rows; ++r)
    for (ptrdiff_t i = 0; i < n; ++i) to[apart * r + i] = from[apart * r + i];
  return 0;
}
)C";

constexpr std::int64_t kFewFrames = 8;  ///< minimum number of free frames of a line, for each that a step appends

bool is_zero(const Tensor& x) {
  const std::byte* const raw = x.raw();
  return std::all_of(raw, raw + x.numel() * size_of(x.dtype()), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

std::int64_t CStates::frames(const FrozenState& s) const {
  const std::int64_t past = s.spec.shape[0];
  if (s.channel) return s.channel;
  return past + most_appended_ + std::max(past, kFewFrames * s.appended);
}
std::string CStates::c_type_of(Dtype dtype) const {
  if (dtype == Dtype::boolean) return wide_masks_ ? "int64_t" : "int32_t";
  return std::string(c_type(dtype));
}
std::int64_t CStates::bytes(const FrozenState& s) const {
  return s.spec.shape.numel() * (s.spec.dtype == Dtype::boolean ? (wide_masks_ ? 8 : 4) : size_of(s.spec.dtype));
}
std::string CStates::counter_of(std::size_t k) const {
  while (states_[k].keeping != Keeping::counts) ++k;
  return "n->" + names_[k];
}
const FrozenState* CStates::counted_by(std::size_t k) const {
  for (std::size_t i = k; i-- > 0 && states_[i].keeping != Keeping::counts;)
    if (states_[i].keeping == Keeping::store) return &states_[i];
  return nullptr;
}

std::int64_t CStates::room(std::size_t k) const {
  const FrozenState& s = states_[k];
  const bool padded = (s.keeping == Keeping::pair || s.keeping == Keeping::value) && is_float(s.spec.dtype);
  return padded && places(s) >= 16 ? places(s) : 0;
}
std::string CStates::where(std::size_t k) const {
  const std::string member = "n->" + names_[k];
  if (states_[k].keeping == Keeping::pair) return member + " + n->" + names_[k] + "_at * " + text(places(states_[k]));
  if (states_[k].keeping != Keeping::line) return member;
  if (states_[k].channel) return member + " + n->" + names_[k] + "_at";
  return member + " + n->" + names_[k] + "_at * " + text(states_[k].frame);
}
std::string CStates::next_place(std::size_t k) const {
  return "n->" + names_[k] + " + (1 - n->" + names_[k] + "_at) * " + text(places(states_[k]));
}
std::int64_t CStates::saved_bytes() const {
  std::int64_t all = 0;
  for (const FrozenState& s : states_) all += bytes(s);
  return all;
}

void CStates::write_members(CText& to) const {
  for (std::size_t k = 0; k < states_.size(); ++k) {
    const FrozenState& s = states_[k];
    std::int64_t n = s.keeping == Keeping::line ? frames(s) * s.frame : s.spec.shape.numel();
    if (s.keeping == Keeping::value) n = places(s);
    if (s.keeping == Keeping::pair) n = 2 * places(s);
    const bool matrix = s.keeping == Keeping::value && s.spec.shape.rank() > 1;
    to.line(c_type_of(s.spec.dtype) + " " + names_[k] + "[" + text(std::max<std::int64_t>(n, 1)) + "];" +
            (matrix ? " /* " + s.spec.shape.str() + " */" : ""));
    if (moves(s)) to.line("int32_t " + names_[k] + "_at;");
  }
}

void CStates::write_room(CText& to, std::size_t first, std::size_t n) const {
  for (std::size_t k = first; k < first + n; ++k) {
    const FrozenState* const store = states_[k].keeping == Keeping::counts ? counted_by(k) : nullptr;
    if (!store) continue;
    to.open("for (int b = 0; b < " + text(store->spec.shape[0]) + "; ++b)");
    to.line("if (n->" + names_[k] + "[b] >= " + text(store->spec.shape[1]) + ") return NF_FULL;");
    to.close();
  }
}

void CStates::write_commit(CText& to, std::size_t k, const std::string& next, std::int64_t appended,
                           CModule& module) const {
  const FrozenState& s = states_[k];
  const std::string member = "n->" + names_[k], at = member + "_at";
  switch (s.keeping) {
    case Keeping::value:
      if (next != where(k)) write_copy(to, where(k), next, s.spec.shape.numel());
      break;
    case Keeping::pair:
      if (next != next_place(k)) write_copy(to, next_place(k), next, s.spec.shape.numel());
      to.line(at + " = 1 - " + at + ";");
      break;
    case Keeping::line:
      to.line(at + " += " + text(appended) + ";");
      to.line("if (" + at + " > " + text(frames(s) - s.spec.shape[0] - most_appended_) + ") " + at + " = " +
              module.define("back", replaced(kBack, "$T", c_type_of(s.spec.dtype))) + "(" + member + ", " + where(k) +
              (s.channel ? ", " + text(s.frame) + ", " + text(s.channel) + ", " + text(s.spec.shape[0])
                         : ", 1, 0, " + text(s.spec.shape[0] * s.frame)) +
              ");");
      break;
    case Keeping::store:
      to.open(loop_over("b", s.spec.shape[0]));
      write_copy(
          to,
          member + " + (b * " + text(s.spec.shape[1]) + " + (ptrdiff_t)" + counter_of(k) + "[b]) * " + text(s.frame),
          next + " + b * " + text(s.frame), s.frame);
      to.close();
      break;
    case Keeping::counts: to.line(loop_over("b", s.spec.shape[0]) + " ++" + member + "[b];"); break;
  }
}

void CStates::write_reset(CText& to, CModule& module) const {
  for (std::size_t k = 0; k < states_.size(); ++k) {
    const FrozenState& s = states_[k];
    std::int64_t n = room(k) ? (s.keeping == Keeping::pair ? 2 : 1) * room(k) : s.spec.shape.numel();
    if (s.channel) n = s.frame * s.channel;
    if (is_zero(s.first))
      to.line(loop_over("i", n) + " n->" + names_[k] + "[i] = 0;");
    else if (s.channel)
      to.line(loop_over("i", s.spec.shape.numel()) + " n->" + names_[k] + "[i % " + text(s.frame) + " * " +
              text(s.channel) + " + i / " + text(s.frame) +
              "] = " + module.constant(s.first, "first value of " + s.name) + "[i];");
    else
      write_copy(to, "n->" + names_[k], module.constant(s.first, "first value of " + s.name), s.spec.shape.numel());
    if (moves(s)) to.line("n->" + names_[k] + "_at = 0;");
  }
  to.line("(void)n;");
}

void CStates::write_save(CText& to) const {
  to.line("unsigned char *at = (unsigned char *)to;");
  for (std::size_t k = 0; k < states_.size(); ++k) {
    const FrozenState& s = states_[k];
    if (s.channel) to.line(loop_over("c", s.frame));
    to.line((s.channel ? "  at = nf_bytes(at, " + where(k) + " + c * " + text(s.channel)
                       : "at = nf_bytes(at, " + where(k)) +
            ", " + text(bytes(s) / (s.channel ? s.frame : 1)) + ");");
  }
  to.line("(void)n;");
  to.line("(void)at;");
}

void CStates::write_sum(CText& to, CModule& module) const {
  for (std::size_t k = 0; k < states_.size(); ++k) {
    const Spec& s = states_[k].spec;
    to.line("sum = " + module.kernel("check_sum", s.dtype) + "(" + where(k) + ", " + text(s.shape.numel()) + ", sum);");
  }
}

void CStates::write_restore(CText& to) const {
  to.line("const unsigned char *at = (const unsigned char *)from;");
  std::int64_t offset = 0;
  for (std::size_t k = 0; k < states_.size(); ++k) {
    const FrozenState& s = states_[k];
    if (s.keeping == Keeping::counts) {
      const std::string rows = text(s.spec.shape[0]), name = "counts_" + text(k);
      const FrozenState* const store = counted_by(k);
      to.line("int64_t " + name + "[" + rows + "];");
      to.line("nf_bytes(" + name + ", at + " + text(offset) + ", " + text(bytes(s)) + ");");
      to.open("for (int b = 0; b < " + rows + "; ++b)");
      to.line("if (" + name + "[b] < 0 || " + name + "[b] > " + (store ? text(store->spec.shape[1]) : "INT64_MAX - 1") +
              ") return NF_BAD_STATE;");
      to.close();
    }
    offset += bytes(s);
  }
  for (std::size_t k = 0; k < states_.size(); ++k) {
    if (moves(states_[k])) to.line("n->" + names_[k] + "_at = 0;");
    const std::int64_t channel = states_[k].channel, frame = states_[k].frame;
    if (channel)
      to.line(loop_over("c", frame) + " nf_bytes(n->" + names_[k] + " + c * " + text(channel) + ", at + c * " +
              text(bytes(states_[k]) / frame) + ", " + text(bytes(states_[k]) / frame) + ");");
    else
      to.line("nf_bytes(n->" + names_[k] + ", at, " + text(bytes(states_[k])) + ");");
    to.line("at += " + text(bytes(states_[k])) + ";");
  }
  to.line("(void)n;");
  to.line("(void)at;");
  to.line("return 0;");
}

}  // namespace ferrite::exchange::detail

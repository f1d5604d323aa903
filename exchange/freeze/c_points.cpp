/// Writes the statements of loops on points: loads, operations and stores.
#include "ferrite/exchange/freeze/c_points.h"

#include <algorithm>

namespace ferrite::exchange::detail {
namespace {

using Step = LoweredInstruction::Step;

}  // namespace

void PointsWriter::begin_piece(std::int64_t begin, std::int64_t end, int axis) {
  begin_ = begin, end_ = end, row_axis_ = axis;
  partial_ = vector_ && (end - begin) % most_lanes() != 0;
  count_ = partial_ ? "left" : lanes();
}
void PointsWriter::write_left() {
  const std::string left = text(end_) + " - j";
  if (partial_) to_.line("const int left = " + left + " < " + lanes() + " ? (int)(" + left + ") : " + lanes() + ";");
}

std::string PointsWriter::read(std::size_t slot) const {
  const LoweredSlot& s = loop_.slots[slot];
  if (s.literal) return number(s.number, s.dtype);
  const auto at = spilled_.find(slot);
  if (at == spilled_.end() || level_[slot] == present_ || s.of_rows || all_loads_.contains(slot)) return name(slot);
  const std::string where = row_place(at->second);
  return vector_ ? "nf_load_" + suffix(s.dtype) + "(" + where + ")" : "(" + where + ")[0]";
}
/// Returns the address of the present point in a row that is kept.
std::string PointsWriter::row_place(std::string at) const {
  std::int64_t stride = 1;
  for (int k = loop_.extents.rank() - 2; k >= row_axis_; --k) {
    stride *= loop_.extents[k + 1];
    at = plus(at, stride, "i" + text(k));
  }
  return plus(at, 1, "j");
}
std::vector<std::string> PointsWriter::operands(const LoweredInstruction& i) const {
  std::vector<std::string> in;
  for (const std::size_t s : i.in) in.push_back(read(s));
  return in;
}

std::string PointsWriter::inside_here(const LoweredAccess& a) const {
  if (a.whole) return "";
  const int rank = loop_.extents.rank();
  if (begin_ < a.box.begin[-1] || end_ > a.box.end[-1]) return "0";
  return inside(a, rank - 1, false);
}

void PointsWriter::write_point(const LoweredInstruction& i) {
  const Dtype dtype = loop_.slots[i.slot].dtype;
  const std::string to = type(dtype) + " " + name(i.slot);
  switch (i.step) {
    case Step::load: {
      const LoweredAccess& a = loop_.accesses[i.access];
      const std::string here = inside_here(a);  // what is not read must not become a parameter
      define(to, i.slot, here, here == "0" ? "" : loaded(a, dtype), number(a.number, dtype));
      break;
    }
    case Step::fill: {
      const LoweredAccess& a = loop_.accesses[i.access];
      define(to, i.slot, inside_here(a), read(i.in[0]), number(a.number, dtype));
      if (inside_here(a) == "0") to_.line("(void)" + read(i.in[0]) + ";");  // not read in this piece
      break;
    }
    case Step::spread: to_.line("const " + to + " = " + name(i.in[0]) + ";"); break;
    case Step::apply: to_.line("const " + to + " = " + applied(i, operands(i)) + ";"); break;
    case Step::store: write_store(i); return;
    default: return;
  }
  if (const auto at = spilled_.find(i.slot); at != spilled_.end() && level_[i.slot] == present_)
    keep(i.slot, at->second);
}
void PointsWriter::define(const std::string& to, std::size_t slot, const std::string& condition,
                          const std::string& value, const std::string& outside) {
  if (condition.empty()) return to_.line("const " + to + " = " + value + ";");
  if (condition == "0") return to_.line("const " + to + " = " + outside + ";");
  to_.line(to + " = " + outside + ";");
  to_.line("if (" + condition + ") " + name(slot) + " = " + value + ";");
}
void PointsWriter::keep(std::size_t slot, const std::string& memory) {
  const std::string where = row_place(memory), s = suffix(loop_.slots[slot].dtype);
  if (!vector_) return to_.line("(" + where + ")[0] = " + name(slot) + ";");
  to_.line(partial_ ? "nf_put_" + s + "(" + where + ", " + name(slot) + ", left);"
                    : "nf_store_" + s + "(" + where + ", " + name(slot) + ");");
}

/// Returns whether a whole vector may be read from the last elements of every row of the present piece.
bool PointsWriter::has_room(const LoweredAccess& a) const {
  const std::int64_t room = body_.place_of(a.value).room;
  if (room == CPlace::kAnyRoom) return true;
  std::int64_t last = a.offset + begin_ + whole_vectors(end_ - begin_, most_lanes());
  for (int k = 0; k + 1 < loop_.extents.rank(); ++k)
    last += std::max<std::int64_t>(a.strides[k], 0) * (loop_.extents[k] - 1);
  return last <= room;
}
std::string PointsWriter::loaded(const LoweredAccess& a, Dtype dtype) const {
  const int last = loop_.extents.rank() - 1;
  const std::int64_t stride = a.strides[last];
  const std::string at = plus(address(a, last), stride, "j"), s = suffix(dtype);
  if (!vector_) return "(" + at + ")[0]";
  if (stride == 0) return "nf_set_" + s + "((" + at + ")[0])";
  if (stride != 1) return "nf_gather_" + s + "(" + at + ", " + text(stride) + ", " + count_ + ")";
  if (partial_ && !has_room(a)) return "nf_get_" + s + "(" + at + ", left)";
  return "nf_load_" + s + "(" + at + ")";
}
void PointsWriter::write_store(const LoweredInstruction& i) {
  const LoweredAccess& a = loop_.accesses[i.access];
  const int last = loop_.extents.rank() - 1;
  const std::int64_t stride = a.strides[last];
  const std::string at = plus(address(a, last), stride, "j"), s = suffix(loop_.slots[i.slot].dtype);
  const std::string value = read(i.slot);
  if (!vector_) return to_.line("(" + at + ")[0] = " + value + ";");
  if (stride != 1)
    return to_.line("nf_scatter_" + s + "(" + at + ", " + text(stride) + ", " + value + ", " + count_ + ");");
  const bool alone = last == 0 && a.offset == 0 && end_ == loop_.extents[0] &&
                     loop_.extents[0] == body_.spec(a.value).shape.numel() && body_.place_of(a.value).room > 0;
  to_.line(partial_ && !alone ? "nf_put_" + s + "(" + at + ", " + value + ", left);"
                              : "nf_store_" + s + "(" + at + ", " + value + ");");
}

}  // namespace ferrite::exchange::detail

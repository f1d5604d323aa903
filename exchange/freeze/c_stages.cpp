/// Writes streams in stages.
#include "ferrite/exchange/freeze/c_stages.h"

#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::exchange::detail {
namespace {

std::string number(std::size_t k) { return std::to_string(k); }

}  // namespace

StagesWriter::StagesWriter(CModule& module, const std::vector<FrozenStage>& stages) : module_(module), stages_(stages) {
  const NewFrame frame;
  for (const FrozenStage& s : stages_) {
    runs_.emplace_back(module, s.program);
    pads_.emplace_back();
    if (!s.window || s.window->after == 0) continue;
    const Spec& row = in(runs_.size() - 1);
    pads_.back() = module_.constant(contiguous(full(row.shape, s.window->padding, row.dtype)), "padding");
  }
}

const Spec& StagesWriter::in(std::size_t k) const {
  return stages_[k].program.lowered.graph.values[stages_[k].program.inputs[0]];
}
const Spec& StagesWriter::out(std::size_t k) const {
  return stages_[k].program.lowered.graph.values[stages_[k].program.outputs[0]];
}

void StagesWriter::write(const std::string& input, const std::string& output, const CStates& states,
                         const std::vector<std::string>& ticks) {
  input_ = input, output_ = output;
  std::size_t first = 0;
  for (std::size_t k = 0; k < stages_.size(); ++k) {
    runs_[k].begin_after(work_);  // the next states of all stages are committed at the end
    runs_[k].write({"x" + number(k)}, {k + 1 == stages_.size() ? output : "row" + number(k)}, states, first,
                   stages_[k].window.has_value());
    first += stages_[k].program.states.size() + (stages_[k].window ? 1 : 0);
    work_.widen(runs_[k].work());
  }
  CText t;
  for (std::size_t k = 0; k < stages_.size(); ++k) write_stage(k, ticks[k]);
  for (std::size_t k = 0; k < stages_.size(); ++k) {
    if (runs_[k].commits().empty() && !stages_[k].window) continue;
    t.open("  if (on" + number(k) + ")");
    t.append(runs_[k].commits());
    if (stages_[k].window) t.line("++" + ticks[k] + "[0];");
    t.close();
  }
  body_ += t.str();
}

void StagesWriter::write_stage(std::size_t k, const std::string& tick) {
  CText t(1);
  const std::string me = number(k), before = k ? number(k - 1) : "";
  // A net that ends begins at a stage that looks ahead, with its padding. No other stage begins.
  const bool begins = k == 0 || !pads_[k].empty();
  if (k > 0 && begins) t.line("if (stage == " + me + ") x" + me + " = " + pads_[k] + ";");
  t.line("const int on" + me + " = " + (begins ? "stage == " + me : "") + (k > 0 && begins ? " || " : "") +
         (k > 0 ? "gave" + before : "") + ";");
  t.line("int gave" + me + " = on" + me + ";");
  t.open("if (on" + me + ")");
  t.append(runs_[k].appends());
  if (const auto& w = stages_[k].window) {
    const nn::Pace pace = w->pace();
    t.line("gave" + me + " = " + tick + "[0] >= " + std::to_string(pace.delay) + " && (" + tick + "[0] - " +
           std::to_string(pace.delay) + ") % " + std::to_string(pace.stride) + " == 0;");
  }
  t.open("if (gave" + me + ")");
  t.append(runs_[k].statements());
  t.close();
  t.close();
  body_ += t.str();
}

std::string StagesWriter::parameters() const {
  return "const " + std::string(c_type(in(0).dtype)) + " *" + input_ + ", " +
         std::string(c_type(out(stages_.size() - 1).dtype)) + " *" + output_;
}

std::string StagesWriter::text(bool on_stack) const {
  CText t;
  t.open("static int nf_from(nf_self *n, int stage, " + parameters() + ")");
  work_.write_names(t, on_stack);
  for (std::size_t k = 0; k < stages_.size(); ++k) {
    const std::string me = number(k);
    const std::string type(c_type(in(k).dtype));
    if (k > 0)
      t.line(type + " row" + number(k - 1) + "[" + std::to_string(in(k).shape.numel() + CWork::kPastEnd) +
             "] NF_ALIGNED;");
    t.line("const " + type + " *x" + me + " = " + (k ? "row" + number(k - 1) : input_) + ";");
  }
  t.append(body_);
  t.line("(void)n;");
  t.line("return gave" + number(stages_.size() - 1) + " ? 0 : NF_NOTHING;");
  t.close();
  return t.str() + "\n";
}

std::int64_t StagesWriter::finishing() const {
  std::int64_t all = 0;
  for (const FrozenStage& s : stages_) all += s.window ? s.window->after : 0;
  return all;
}

std::string StagesWriter::finish() const {
  CText t;
  t.open("int nf_finish(nf_self *n, " + std::string(c_type(out(stages_.size() - 1).dtype)) + " *" + output_ + ")");
  t.open("while (n->finished < " + std::to_string(finishing()) + ")");
  t.line("const int32_t i = n->finished++;");
  std::int64_t end = 0;
  std::string stage;
  for (std::size_t k = 0; k < stages_.size(); ++k) {
    if (pads_[k].empty()) continue;
    end += stages_[k].window->after;
    stage += "i < " + std::to_string(end) + " ? " + number(k) + " : ";
  }
  t.line("(void)i;");
  t.line("const int result = nf_from(n, " + (stage.empty() ? "" : stage) + "0, " + (pads_[0].empty() ? "0" : pads_[0]) +
         ", " + output_ + ");");
  t.line("if (result != NF_NOTHING) return result;");
  t.close();
  t.line("(void)" + output_ + ";");
  t.line("return NF_NOTHING;");
  t.close();
  return t.str();
}

}  // namespace ferrite::exchange::detail

/// Names the ends and states of a frozen net.
#include "ferrite/exchange/freeze/c_ends.h"

#include <set>

#include "ferrite/exchange/freeze/c_text.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::exchange::detail {
namespace {

/// Makes names of C of any names: letters, digits and underlines, each once.
class CNames {
 public:
  std::string claim(const std::string& wanted) {
    std::string name;
    for (const char c : wanted) {
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      const bool digit = c >= '0' && c <= '9';
      if (letter || (digit && !name.empty())) name += c;
      if (!letter && !digit && !name.empty() && name.back() != '_') name += '_';
    }
    if (name.empty()) name = "s";
    std::string own = name;
    for (int i = 2; !taken_.insert(own).second; ++i) own = name + "_" + std::to_string(i);
    return own;
  }

 private:
  /// Words that no member or parameter may be called.
  std::set<std::string> taken_{"auto",   "break",  "case",   "char",   "const",   "continue", "default",
                               "do",     "double", "else",   "enum",   "extern",  "float",    "for",
                               "goto",   "if",     "int",    "long",   "return",  "short",    "signed",
                               "sizeof", "static", "struct", "switch", "typedef", "union",    "unsigned",
                               "void",   "while",  "class",  "new",    "this",    "delete",   "template",
                               "work_f", "work_d", "work_i", "work_l", "work_m",  "n",        "steps"};
};

Names names_of(const FrozenProgram& first, const FrozenProgram& last, const std::vector<FrozenState>& states) {
  CNames names;
  Names n;
  for (const std::string& x : first.input_names) n.inputs.push_back("in_" + names.claim(x));
  for (const std::string& y : last.output_names) n.outputs.push_back("out_" + names.claim(y));
  for (const FrozenState& s : states) n.states.push_back(names.claim(s.name));
  return n;
}

}  // namespace

std::vector<FrozenState> states_of(const std::vector<FrozenStage>& stages) {
  std::vector<FrozenState> all;
  for (const FrozenStage& s : stages) {
    all.insert(all.end(), s.program.states.begin(), s.program.states.end());
    if (s.window)
      all.push_back(
          {.name = "rows", .keeping = Keeping::counts, .spec = {{1}, Dtype::i64}, .first = zeros({1}, Dtype::i64)});
  }
  return all;
}

std::string seen(const std::string& name) { return name.substr(name.find('_') + 1); }

std::string upper(std::string s) {
  for (char& c : s) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return s;
}

std::string Ends::listed(const std::vector<Spec>& specs, const std::vector<std::string>& names, const char* before,
                         bool shown) {
  std::string all;
  for (std::size_t i = 0; i < specs.size(); ++i)
    all +=
        std::string(", ") + before + std::string(c_type(specs[i].dtype)) + " *" + (shown ? seen(names[i]) : names[i]);
  return all;
}

Ends ends_of(const std::vector<FrozenStage>& stages, const std::vector<FrozenState>& states) {
  const FrozenProgram &first = stages.front().program, &last = stages.back().program;
  Ends e{{}, {}, names_of(first, last, states)};
  for (const ValueId v : first.inputs) e.inputs.push_back(first.lowered.graph.values[v]);
  for (const ValueId v : last.outputs) e.outputs.push_back(last.lowered.graph.values[v]);
  return e;
}

}  // namespace ferrite::exchange::detail

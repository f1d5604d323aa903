/// Names and ports of frozen nets, for the folders around them.
#include "ferrite/exchange/freeze/folder_text.h"

#include <charconv>

#include "ferrite/exchange/freeze/c_text.h"
#include "ferrite/tensor/error.h"

namespace ferrite::exchange::detail {
namespace {

/// Returns the number that a header defines, -1 if there is none.
std::int64_t defined(const std::string& header, const std::string& macro) {
  const std::string before = "#define " + macro + " ";
  const std::size_t at = header.find(before);
  std::int64_t value = -1;
  if (at != std::string::npos)
    std::from_chars(header.data() + at + before.size(), header.data() + header.size(), value);
  return value;
}

}  // namespace

StepPorts step_ports(const FrozenNet& net, const std::string& name) {
  const std::string step = "int " + name + "_step(" + name + " *n, const float *";
  const std::size_t begin = net.header.find(step);
  const std::string_view rest =
      begin == std::string::npos ? "" : std::string_view(net.header).substr(begin + step.size());
  const std::string_view others = rest.substr(0, rest.find(')'));
  StepPorts p{defined(net.header, named("@NAME_INPUTS", name)), defined(net.header, named("@NAME_OUTPUTS", name)),
              net.header.find("int " + name + "_steps(") != std::string::npos};
  if (p.inputs < 0 || p.outputs < 0 || others.find(", float *") == std::string_view::npos)
    throw ValueError("a folder needs the step of a stream with one input and one output of float32, frozen as '" +
                     name + "'; this net has others, or is a whole program");
  return p;
}

std::string named(std::string_view text, const std::string& name) {
  std::string upper = name;
  for (char& c : upper) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return replaced(replaced(std::string(text), "@name", name), "@NAME", upper);
}

}  // namespace ferrite::exchange::detail

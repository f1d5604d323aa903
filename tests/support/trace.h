#pragma once
/// Reads traces of profiles strictly, as JSON.
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "ferrite/io/detail/json_parser.h"
#include "ferrite/tensor/profiler.h"

namespace support {

/// The fields of one event of a trace as texts; those in `args` are named "args.layer".
using TraceEvent = std::map<std::string, std::string>;

/// Collects the objects of the list "traceEvents".
class TraceReader final : public ferrite::io::detail::JsonHandler {
 public:
  explicit TraceReader(const std::string& json) { ferrite::io::detail::parse_json(json, *this); }
  std::vector<TraceEvent> events;
  std::map<std::string, std::string> head;  ///< fields next to the list

 private:
  void null() override { value("null"); }
  void boolean(bool v) override { value(v ? "true" : "false"); }
  void negative(std::int64_t v) override { value(std::to_string(v)); }
  void natural(std::uint64_t v) override { value(std::to_string(v)); }
  void real(double, const std::string& text) override { value(text); }
  void string(const std::string& v) override { value(v); }
  void key(const std::string& name) override { path_.back() = name; }
  void begin_object() override {
    path_.emplace_back();
    if (path_.size() == 3 && path_[0] == "traceEvents") events.emplace_back();
  }
  void end_object() override { path_.pop_back(); }
  void begin_list() override { path_.emplace_back("[]"); }
  void end_list() override { path_.pop_back(); }
  void error(std::size_t position, bool) override {
    throw std::runtime_error("the trace is no JSON from byte " + std::to_string(position));
  }
  void value(const std::string& v) {
    const bool event = path_[0] == "traceEvents";
    std::string name;
    for (std::size_t i = event ? 2 : 0; i < path_.size(); ++i) name += (name.empty() ? "" : ".") + path_[i];
    if (!(event ? events.back() : head).emplace(name, v).second) throw std::runtime_error("twice: " + name);
  }

  std::vector<std::string> path_;
};

/// Returns everything that a profile traced.
inline TraceReader traced(const ferrite::Profile& profile) {
  std::ostringstream out;
  profile.chrome_trace(out);
  return TraceReader(out.str());
}
/// Returns the complete events of a trace.
inline std::vector<TraceEvent> complete(const ferrite::Profile& profile) {
  std::vector<TraceEvent> list;
  for (const TraceEvent& e : traced(profile).events)
    if (e.at("ph") == "X") list.push_back(e);
  return list;
}
/// Converts microseconds with three digits to nanoseconds.
inline std::int64_t nanoseconds_of(std::string microseconds) {
  const std::size_t point = microseconds.find('.');
  if (point == std::string::npos || microseconds.size() != point + 4) throw std::runtime_error(microseconds);
  return std::stoll(microseconds.erase(point, 1));
}

}  // namespace support

/// What a profile gives: rows, a table, a trace.
#include "ferrite/tensor/profiler.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ostream>

#include "ferrite/tensor/detail/profile_log.h"

namespace ferrite {
namespace {

using std::chrono::nanoseconds;

constexpr std::size_t kMostEvents = std::size_t{1} << 31;

// ---- rows ----------------------------------------------------------------------------------------------

/// Whether all layers of a list "a, b" are `outer` or in it.
bool is_in(std::string_view layers, std::string_view outer) {
  while (true) {
    const std::size_t comma = layers.find(", ");
    const std::string_view first = layers.substr(0, comma);
    if (!first.starts_with(outer) || (first.size() > outer.size() && first[outer.size()] != '.')) return false;
    if (comma == std::string_view::npos) return true;
    layers.remove_prefix(comma + 2);
  }
}

/// Calls of all threads, joined.
class Joined {
 public:
  explicit Joined(ProfileBy by) : by_(by) {}

  void add(const detail::ProfileCopy& of) {
    for (const detail::ProfileCalls& c : of.calls) {
      if (!c.calls) continue;
      const bool kernels = by_ != ProfileBy::layer, layers = by_ != ProfileBy::kernel;
      ProfileRow& row =
          row_of(kernels ? c.kernel.text() : std::string_view(), layers ? c.layer.path() : std::string_view());
      row.calls += c.calls;
      row.self += nanoseconds(c.self);
      row.longest = std::max(row.longest, nanoseconds(c.longest));
      if (kernels && layers) row.total += nanoseconds(c.total);
    }
    if (by_ != ProfileBy::kernel) return;
    for (const detail::ProfileKernel& k : of.kernels)
      if (k.total) row_of(k.kernel.text(), {}).total += nanoseconds(k.total);
  }

  std::vector<ProfileRow> take() {
    std::vector<ProfileRow> rows;
    for (const auto& [key, row] : rows_) rows.push_back(row);
    if (by_ == ProfileBy::layer)
      for (ProfileRow& outer : rows)
        for (const ProfileRow& row : rows)
          if (row.layer == outer.layer || (!outer.layer.empty() && is_in(row.layer, outer.layer)))
            outer.total += row.self;
    std::stable_sort(rows.begin(), rows.end(),
                     [](const ProfileRow& a, const ProfileRow& b) { return a.self > b.self; });
    return rows;
  }

 private:
  ProfileRow& row_of(std::string_view kernel, std::string_view layer) {
    ProfileRow& row = rows_[{kernel, layer}];
    row.kernel = kernel;
    row.layer = layer;
    return row;
  }

  ProfileBy by_;
  std::map<std::pair<std::string_view, std::string_view>, ProfileRow> rows_;  ///< of texts that live as the process
};

// ---- texts ---------------------------------------------------------------------------------------------

/// With so many digits behind the point, whatever the locale.
std::string number(double x, int digits) {
  std::array<char, 64> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), x, std::chars_format::fixed, digits).ptr;
  return {text.data(), end};
}
std::string milliseconds(nanoseconds t) { return number(static_cast<double>(t.count()) * 1e-6, 3); }

std::string counted(std::int64_t n, const char* what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

/// As a terminal may show it: no control characters, and not too long.
std::string shown(const std::string& name, const char* none) {
  constexpr std::size_t kLongest = 48;
  if (name.empty()) return none;
  std::string s = name.size() <= kLongest ? name : name.substr(0, kLongest - 3) + "...";
  for (char& c : s)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return s;
}

/// Columns as wide as they must be: texts, then numbers, these to the right.
std::string aligned(const std::vector<std::vector<std::string>>& rows, std::size_t texts) {
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string s;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - row[i].size(), ' ');
      s += (i ? "  " : "") + (i < texts ? row[i] + blanks : blanks + row[i]);
    }
    s += '\n';
  }
  return s;
}

// ---- JSON ----------------------------------------------------------------------------------------------

/// The bytes of the UTF-8 character that s begins with; 0: there is none.
std::size_t character(std::string_view s) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char first = byte(0);
  const std::size_t n = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : 4;
  if (n == 1) return 1;
  if (first < 0xc2 || first > 0xf4 || s.size() < n) return 0;
  for (std::size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool beyond = (first == 0xed && byte(1) >= 0xa0) || (first == 0xf4 && byte(1) >= 0x90);
  return overlong || beyond ? 0 : n;
}

/// A string of JSON; bytes that are no UTF-8 become U+FFFD.
std::string json_string(std::string_view text) {
  constexpr const char* kHex = "0123456789abcdef";
  std::string s = "\"";
  while (!text.empty()) {
    const std::size_t n = character(text);
    const char c = text[0];
    if (n == 0) {
      s += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      s += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      s += std::string("\\u00") + kHex[c >> 4] + kHex[c & 15];
    } else {
      s += text.substr(0, n);
    }
    text.remove_prefix(std::max<std::size_t>(n, 1));
  }
  return s + '"';
}

/// Nanoseconds in microseconds, all digits.
std::string microseconds(std::int64_t ns) {
  const std::string below = std::to_string(ns % 1000);
  return std::to_string(ns / 1000) + '.' + std::string(3 - below.size(), '0') + below;
}

std::string metadata(const std::string& name, std::size_t thread, const std::string& value) {
  return R"({"ph":"M","pid":1,"tid":)" + std::to_string(thread) + R"(,"name":")" + name + R"(","args":{"name":)" +
         json_string(value) + "}}";
}

}  // namespace

Profile::Profile(const ProfileOptions& options) {
  if (options.trace_events > kMostEvents)
    throw ValueError("profile: trace_events must be at most " + std::to_string(kMostEvents) + ", got " +
                     std::to_string(options.trace_events));
  session_ = std::make_shared<detail::ProfileSession>(options);
  detail::begin_profile(session_);
}

Profile::~Profile() {
  stop();
  session_->release();
}

void Profile::stop() { detail::end_profile(session_); }

nanoseconds Profile::duration() const { return nanoseconds(session_->duration()); }
std::size_t Profile::threads() const { return session_->logs().size(); }

std::int64_t Profile::dropped() const {
  std::int64_t n = 0;
  for (const auto& log : session_->logs()) n += log->copy().dropped;
  return n;
}

std::vector<ProfileRow> Profile::rows(ProfileBy by) const {
  Joined joined(by);
  for (const auto& log : session_->logs()) joined.add(log->copy());
  return joined.take();
}

std::string Profile::table(ProfileBy by, std::size_t most) const {
  const nanoseconds all = duration();
  const std::vector<ProfileRow> rows = this->rows(by);
  nanoseconds sum{};
  std::int64_t calls = 0;
  for (const ProfileRow& row : rows) sum += row.self, calls += row.calls;
  std::string text = "profile: " + milliseconds(all) + " ms, in which " + counted(calls, "call") + " on " +
                     counted(static_cast<std::int64_t>(threads()), "thread") + " took " + milliseconds(sum) + " ms\n";
  const double whole = std::max<double>(static_cast<double>(sum.count()), 1);
  const bool kernels = by != ProfileBy::layer, layers = by != ProfileBy::kernel;
  std::vector<std::vector<std::string>> cells;
  const auto add = [&](const std::string& kernel, const std::string& layer, std::vector<std::string> numbers) {
    if (layers) numbers.insert(numbers.begin(), layer);
    if (kernels) numbers.insert(numbers.begin(), kernel);
    cells.push_back(std::move(numbers));
  };
  add("kernel", "layer", {"calls", "self ms", "self %", "total ms", "self us/call", "max us"});
  const std::size_t n = most ? std::min(most, rows.size()) : rows.size();
  for (const ProfileRow& r : std::span(rows).first(n)) {
    const auto self = static_cast<double>(r.self.count());
    add(shown(r.kernel, ""), shown(r.layer, "(no layer)"),
        {std::to_string(r.calls), milliseconds(r.self), number(100 * self / whole, 1), milliseconds(r.total),
         number(1e-3 * self / static_cast<double>(r.calls), 3),
         number(1e-3 * static_cast<double>(r.longest.count()), 3)});
  }
  text += aligned(cells, (kernels ? 1U : 0U) + (layers ? 1U : 0U));
  if (n < rows.size()) text += counted(static_cast<std::int64_t>(rows.size() - n), "row") + " more\n";
  if (const std::int64_t lost = dropped())
    text += "the trace lacks " + counted(lost, "event") + " of these: it holds " +
            std::to_string(session_->trace_events()) + " of each thread\n";
  return text;
}

void Profile::chrome_trace(std::ostream& out) const {
  const auto write = [&](const std::string& s) { out.write(s.data(), static_cast<std::streamsize>(s.size())); };
  write(R"({"displayTimeUnit":"ns","otherData":{"library":"ferrite","dropped":")" + std::to_string(dropped()) +
        "\"},\"traceEvents\":[\n" + metadata("process_name", 0, "ferrite"));
  std::size_t thread = 0;
  for (const auto& log : session_->logs()) {
    ++thread;
    write(",\n" + metadata("thread_name", thread, "thread " + std::to_string(thread)));
    const std::string track = R"({"ph":"X","pid":1,"tid":)" + std::to_string(thread) + R"(,"ts":)";
    std::vector<detail::TracedEvent> events;
    log->read([&](auto, std::span<const detail::TracedEvent> all) { events.assign(all.begin(), all.end()); });
    std::vector<std::string> names;
    for (const detail::ProfileCalls& c : log->copy().calls)
      names.push_back(R"(,"cat":"kernel","name":)" + json_string(c.kernel.text()) + R"(,"args":{"layer":)" +
                      json_string(c.layer.path()) + "}}");
    for (const detail::TracedEvent& e : events)
      if (e.duration >= 0)
        write(",\n" + track + microseconds(e.begun - session_->begun()) + R"(,"dur":)" + microseconds(e.duration) +
              names[e.calls]);
  }
  write("\n]}\n");
}

}  // namespace ferrite

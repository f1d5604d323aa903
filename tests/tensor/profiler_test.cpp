// Profiles: what is counted, how times nest, and the contents of the table and the trace.
#include "ferrite/tensor/profiler.h"

#include <regex>

#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/profiled.h"
#include "support/comma_locale.h"
#include "support/compare.h"
#include "support/trace.h"

using namespace ferrite;
using ferrite::detail::ProfileEvent;
using std::chrono::nanoseconds;
using support::complete;
using support::nanoseconds_of;
using support::says;
using support::TraceEvent;

namespace {

const ProfileRow& row_of(const std::vector<ProfileRow>& rows, const std::string& kernel,
                         const std::string& layer = {}) {
  static const ProfileRow none;
  for (const ProfileRow& r : rows)
    if (r.kernel == kernel && r.layer == layer) return r;
  return none;
}

/// Spends some time that the clock sees.
void spend() {
  const auto begun = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begun < std::chrono::microseconds(20)) continue;
}

/// Makes events: encoder.0: outer holds inner twice; head: outer alone.
void some_events() {
  {
    const ProfileEvent outer("outer", Scope::of("encoder.0"));
    for (int i = 0; i < 2; ++i) {
      const ProfileEvent inner("inner", Scope());
      spend();
    }
    spend();
  }
  const ProfileEvent outer("outer", Scope::of("head"));
  spend();
}

/// Returns a text with every number as N and every run of blanks as one.
std::string without_numbers(const std::string& text) {
  return std::regex_replace(std::regex_replace(text, std::regex("[0-9]+\\.[0-9]+"), "N"), std::regex(" +"), " ");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(profiler)

BOOST_AUTO_TEST_CASE(every_operation_is_counted_while_a_profile_runs) {
  const Tensor a = ones({4, 4});
  (void)(a + a);
  Profile profile;
  for (int i = 0; i < 3; ++i) (void)(matmul(a, a) + 1);
  (void)sum(reshape(a, {16}));  // a view has no kernel
  profile.stop();
  (void)(a + a);
  const std::vector<ProfileRow> rows = profile.rows();
  BOOST_TEST(rows.size() == 3U);
  BOOST_TEST(row_of(rows, "matmul").calls == 3);
  BOOST_TEST(row_of(rows, "add").calls == 3);
  BOOST_TEST(row_of(rows, "sum").calls == 1);
  BOOST_TEST(profile.threads() == 1U);
  BOOST_TEST(profile.dropped() == 0);
  nanoseconds sum{};
  for (const ProfileRow& r : rows) {
    BOOST_TEST((r.self == r.total));
    sum += r.self;
  }
  BOOST_TEST((sum <= profile.duration()));
  BOOST_TEST((profile.duration() == profile.duration()), "it goes on after its end");
}

BOOST_AUTO_TEST_CASE(self_time_is_total_time_without_what_runs_inside) {
  Profile profile;
  some_events();
  const std::vector<ProfileRow> rows = profile.rows();
  const ProfileRow &outer = row_of(rows, "outer", "encoder.0"), &inner = row_of(rows, "inner", "encoder.0");
  BOOST_TEST(outer.calls == 1);
  BOOST_TEST(inner.calls == 2);
  BOOST_TEST((inner.self == inner.total));
  BOOST_TEST((inner.total >= std::chrono::microseconds(40)));
  BOOST_TEST((inner.longest >= std::chrono::microseconds(20) && inner.longest < inner.total));
  BOOST_TEST((outer.longest == outer.total));
  BOOST_TEST((outer.self == outer.total - inner.total));
  BOOST_TEST((outer.self > nanoseconds(0)));
  BOOST_TEST(std::is_sorted(rows.begin(), rows.end(), [](auto& a, auto& b) { return a.self > b.self; }));
}

BOOST_AUTO_TEST_CASE(rows_are_grouped_by_kernel_or_by_layer) {
  Profile profile;
  some_events();
  {
    const ProfileEvent whole("whole", Scope::of("encoder"));
    const ProfileEvent both("both", Scope::of("encoder.0, encoder.1"));
    const ProfileEvent far("both", Scope::of("encoder.0, head"));
  }
  profile.stop();
  const std::vector<ProfileRow> all = profile.rows(), kernels = profile.rows(ProfileBy::kernel),
                                layers = profile.rows(ProfileBy::layer);
  const auto self = [&](const char* kernel, const char* layer) { return row_of(all, kernel, layer).self; };
  BOOST_TEST(kernels.size() == 4U);
  BOOST_TEST(row_of(kernels, "outer").calls == 2);
  BOOST_TEST(
      (row_of(kernels, "outer").total == row_of(all, "outer", "encoder.0").total + row_of(all, "outer", "head").total));
  BOOST_TEST((row_of(kernels, "both").total == row_of(all, "both", "encoder.0, encoder.1").total),
             "what runs inside its like is counted twice");
  BOOST_TEST(layers.size() == 5U);
  BOOST_TEST(row_of(layers, "", "encoder.0").calls == 3);
  BOOST_TEST((row_of(layers, "", "encoder").self == self("whole", "encoder")));
  BOOST_TEST((row_of(layers, "", "encoder").total == self("whole", "encoder") + self("outer", "encoder.0") +
                                                         self("inner", "encoder.0") +
                                                         self("both", "encoder.0, encoder.1")));
  BOOST_TEST((row_of(layers, "", "head").total == self("outer", "head")));
}

BOOST_AUTO_TEST_CASE(a_kernel_inside_itself_is_counted_once_in_its_total) {
  Profile profile;
  {
    const ProfileEvent outer("scan", Scope());
    const ProfileEvent inner("scan", Scope());
    spend();
  }
  const ProfileRow row = profile.rows().at(0);
  BOOST_TEST(row.calls == 2);
  BOOST_TEST((row.self == row.total));
}

BOOST_AUTO_TEST_CASE(an_exception_ends_the_events_that_it_passes) {
  const Tensor x = ones({3}), index = Tensor::from<std::int64_t>({7});
  Profile profile;
  try {
    const ProfileEvent outer("outer", Scope::of("head"));
    (void)index_select(x, 0, index);
  } catch (const Error&) {
    (void)exp(x);
  }
  const std::vector<ProfileRow> rows = profile.rows();
  BOOST_TEST(row_of(rows, "outer", "head").calls == 1);
  BOOST_TEST(row_of(rows, "index_select", "head").calls == 1);
  BOOST_TEST(row_of(rows, "exp").calls == 1);
}

BOOST_AUTO_TEST_CASE(one_profile_runs_at_a_time) {
  Profile first;
  (void)exp(ones({2}));
  BOOST_CHECK_EXCEPTION(Profile(), ProfileError, says("profile: another profile of this process runs"));
  first.stop();
  first.stop();
  Profile second;
  (void)tanh(ones({2}));
  BOOST_TEST(row_of(first.rows(), "tanh").calls == 0);
  BOOST_TEST(row_of(first.rows(), "exp").calls == 1);
  BOOST_TEST(row_of(second.rows(), "exp").calls == 0);
  BOOST_TEST(row_of(second.rows(), "tanh").calls == 1);
}

/// An event is counted by the profile under which it began, and by none that has ended.
BOOST_AUTO_TEST_CASE(what_runs_when_a_profile_ends_is_not_counted) {
  std::optional<Profile> first(std::in_place);
  std::optional<ProfileEvent> open(std::in_place, "long", Scope());
  first->stop();
  BOOST_TEST(first->rows().empty());
  Profile second;
  { const ProfileEvent inside("short", Scope()); }
  first.reset();
  open.reset();
  BOOST_TEST(second.rows().size() == 1U);
  BOOST_TEST(row_of(second.rows(), "short").calls == 1);
}

BOOST_AUTO_TEST_CASE(an_event_outlasts_several_profiles) {
  std::optional<Profile> profile(std::in_place);
  std::optional<ProfileEvent> outer(std::in_place, "outer", Scope());
  for (int i = 0; i < 3; ++i) {
    profile.reset();
    profile.emplace();
    const ProfileEvent inside("inside", Scope());
    const std::vector<std::string> elsewhere(64, std::string(200, 'x'));  // reuses memory of a log freed too early
  }
  outer.reset();
  BOOST_TEST(profile->rows().size() == 1U);
  BOOST_TEST(row_of(profile->rows(), "inside").calls == 1);
}

BOOST_AUTO_TEST_CASE(a_full_trace_still_counts) {
  Profile profile({.trace_events = 3});
  for (int i = 0; i < 5; ++i) (void)exp(ones({2}));
  BOOST_TEST(row_of(profile.rows(), "exp").calls == 5);
  BOOST_TEST(profile.dropped() == 7);
  BOOST_TEST(complete(profile).size() == 3U);
  BOOST_TEST(support::traced(profile).head.at("otherData.dropped") == "7");
  BOOST_TEST(profile.table().find("\nthe trace lacks 7 events of these: it holds 3 of each thread\n") !=
             std::string::npos);
  profile.stop();
  BOOST_CHECK_EXCEPTION(Profile({.trace_events = std::size_t{1} << 40}), ValueError,
                        says("profile: trace_events must be at most 2147483648, got 1099511627776"));
}

BOOST_AUTO_TEST_CASE(many_kernels_and_layers_stay_apart) {
  std::vector<std::string> names;
  for (int i = 0; i < 700; ++i) names.push_back("kernel" + std::to_string(i));
  Profile profile;
  for (int k = 0; k < 3; ++k)
    for (const std::string& name : names) {
      const std::string elsewhere = name;  // the same text at another address
      const ProfileEvent a(name, Scope::of(name)), b(elsewhere, Scope::of("x"));
    }
  const std::vector<ProfileRow> rows = profile.rows();
  BOOST_TEST(rows.size() == 1400U);
  for (const std::string& name : names) {
    BOOST_TEST_REQUIRE(row_of(rows, name, name).calls == 3);
    BOOST_TEST_REQUIRE(row_of(rows, name, "x").calls == 3);
  }
}

BOOST_AUTO_TEST_CASE(the_table_is_a_line_for_each_row) {
  Profile profile;
  some_events();
  profile.stop();
  const std::string head = "profile: N ms, in which 4 calls on 1 thread took N ms\n";
  const std::string table = without_numbers(profile.table());
  BOOST_TEST(table.starts_with(head + "kernel layer calls self ms self % total ms self us/call max us\n"));
  BOOST_TEST(table.find("\ninner encoder.0 2 N N N N N\n") != std::string::npos);
  BOOST_TEST(table.find("\nouter encoder.0 1 N N N N N\n") != std::string::npos);
  BOOST_TEST(table.find("\nouter head 1 N N N N N\n") != std::string::npos);
  BOOST_TEST(std::count(table.begin(), table.end(), '\n') == 5);
  // Rows are ordered by their time, which other load on the machine may change.
  const std::string columns = head + "layer calls self ms self % total ms self us/call max us\n";
  const std::string of_encoder = "encoder.0 3 N N N N N\n", of_head = "head 1 N N N N N\n";
  const std::string by_layer = without_numbers(profile.table(ProfileBy::layer));
  BOOST_TEST((by_layer == columns + of_encoder + of_head || by_layer == columns + of_head + of_encoder), by_layer);
  const std::string short_table = without_numbers(profile.table(ProfileBy::kernel, 1));
  BOOST_TEST(short_table.starts_with(head + "kernel calls self ms self % total ms self us/call max us\n"));
  BOOST_TEST(short_table.ends_with(" N N N N N\n1 row more\n"));
  std::istringstream lines(profile.table());
  std::string line, first;
  std::getline(lines, line);
  std::getline(lines, first);
  while (std::getline(lines, line)) BOOST_TEST(line.size() == first.size(), "columns are not aligned: " + line);
}

BOOST_AUTO_TEST_CASE(an_empty_profile_is_a_table_and_a_trace) {
  const Profile profile;
  BOOST_TEST(without_numbers(profile.table()) ==
             "profile: N ms, in which 0 calls on 0 threads took N ms\n"
             "kernel layer calls self ms self % total ms self us/call max us\n");
  BOOST_TEST(complete(profile).empty());
}

BOOST_AUTO_TEST_CASE(the_trace_holds_every_event_with_its_times) {
  Profile profile;
  some_events();
  profile.stop();
  const support::TraceReader trace = support::traced(profile);
  BOOST_TEST(trace.head.at("displayTimeUnit") == "ns");
  const std::vector<TraceEvent> events = complete(profile);
  BOOST_TEST_REQUIRE(events.size() == 4U);
  BOOST_TEST(trace.events.size() == 6U);  // and the names of the process and of the thread
  BOOST_TEST(trace.events[1].at("name") == "thread_name");
  BOOST_TEST(trace.events[1].at("args.name") == "thread 1");
  const auto begin = [&](std::size_t i) { return nanoseconds_of(events[i].at("ts")); };
  const auto end = [&](std::size_t i) { return begin(i) + nanoseconds_of(events[i].at("dur")); };
  for (const TraceEvent& e : events) {
    BOOST_TEST(e.size() == 8U);
    BOOST_TEST(e.at("pid") == "1");
    BOOST_TEST(e.at("tid") == "1");
    BOOST_TEST(e.at("cat") == "kernel");
  }
  BOOST_TEST(events[0].at("name") == "outer");  // what contains others comes before them
  BOOST_TEST(events[1].at("name") == "inner");
  BOOST_TEST(events[1].at("args.layer") == "encoder.0");
  BOOST_TEST(events[3].at("args.layer") == "head");
  BOOST_TEST((begin(0) >= 0 && begin(0) < begin(1) && end(1) <= begin(2) && end(2) <= end(0) && end(0) <= begin(3)));
  BOOST_TEST((end(3) <= profile.duration().count()));
  BOOST_TEST((end(0) - begin(0) == row_of(profile.rows(), "outer", "encoder.0").total.count()));
}

BOOST_AUTO_TEST_CASE(names_of_layers_may_hold_anything) {
  const std::string name = "a\"b\\c\n\x01\x7f \xc3\xa9 \xff \xed\xa0\x80 \xf0\x9f\x98\x80 \xe2\x82";
  Profile profile;
  { const ProfileEvent event(std::string(200, 'k'), Scope::of(name)); }
  profile.stop();
  const std::string bad = "\xef\xbf\xbd";
  BOOST_TEST(complete(profile).at(0).at("args.layer") ==
             "a\"b\\c\n\x01\x7f \xc3\xa9 " + bad + " " + bad + bad + bad + " \xf0\x9f\x98\x80 " + bad + bad);
  const std::string table = profile.table();
  BOOST_TEST(table.find("a\"b\\c??? ") != std::string::npos);
  BOOST_TEST(table.find(std::string(45, 'k') + "...  ") != std::string::npos);
  BOOST_TEST(profile.rows().at(0).kernel == std::string(200, 'k'));
}

BOOST_AUTO_TEST_CASE(numbers_do_not_depend_on_the_locale) {
  const support::CommaLocale commas;
  Profile profile;
  for (int i = 0; i < 1200; ++i) (void)exp(ones({2}));
  std::ostringstream out;
  profile.chrome_trace(out);
  BOOST_TEST(support::TraceReader(out.str()).events.size() == 2402U);
  BOOST_TEST(profile.table().find(',') == profile.table().find(", in which"));
  BOOST_TEST(profile.table().find(" 1200 ") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

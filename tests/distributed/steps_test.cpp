// Training steps have the same bits for every number of ranks.
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "distributed/runs.h"

using runs::all_behind;
using runs::on_ranks;

namespace {

std::string digest_of(int ranks, const std::string& words, const std::string& options = "") {
  return runs::one_digest(on_ranks(ranks, words, options), ranks);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(steps, *boost::unit_test::precondition(runs::if_mpirun))

BOOST_AUTO_TEST_CASE(the_bits_do_not_depend_on_the_number_of_ranks) {
  for (const char* norm : {"sync", "local"})
    for (const char* rows : {"29", "7"}) {
      if (*norm == 'l' && *rows == '7') continue;  // the variance of a shard of one row is not defined
      const std::string wanted = digest_of(1, std::string("train eager ") + norm + " " + rows + " 6");
      for (const char* how : {"eager", "compiled"})
        for (const int n : {1, 2, 3, 4}) {
          const std::string words = std::string("train ") + how + " " + norm + " " + rows + " 6";
          BOOST_TEST(digest_of(n, words) == wanted, words << " on " << n);
        }
    }
}

BOOST_AUTO_TEST_CASE(nor_on_the_transport) {
  for (const int n : {2, 3})
    BOOST_TEST(digest_of(n, "train eager sync 29 4", "--tcp") == digest_of(1, "train compiled sync 29 4"));
}

BOOST_AUTO_TEST_CASE(as_many_ranks_as_shards_and_ranks_without_rows) {
  BOOST_TEST(digest_of(12, "train eager sync 7 3") == digest_of(1, "train eager sync 7 3"));
  BOOST_TEST(digest_of(6, "train compiled sync 5 3") == digest_of(1, "train eager sync 5 3"));
}

BOOST_AUTO_TEST_CASE(buckets_leave_while_the_backward_pass_goes_on) {
  const runs::Result eager = on_ranks(2, "train eager sync 29 2"), compiled = on_ranks(2, "train compiled sync 29 2");
  for (const runs::Result* r : {&eager, &compiled}) {
    const int buckets = std::stoi(all_behind(r->text, "buckets").at(0)),
              early = std::stoi(all_behind(r->text, "early").at(0));
    BOOST_TEST(buckets >= 3, r->text);
    BOOST_TEST(early == buckets - 1, r->text);
  }
  BOOST_TEST(std::stoi(all_behind(compiled.text, "product").at(0)) >= 2, compiled.text);
}

BOOST_AUTO_TEST_CASE(states_spread_over_ranks_are_those_of_one_optimiser) {
  const std::string wanted = digest_of(1, "train eager sync 29 5");
  for (const char* how : {"eager", "compiled"})
    for (const int n : {1, 2, 3, 12})
      BOOST_TEST(digest_of(n, std::string("train ") + how + " sync 29 5 sharded") == wanted, how << " on " << n);
}

BOOST_AUTO_TEST_CASE(a_sharded_optimiser_follows_its_rate_and_counts_steps_of_late_parameters) {
  for (const int n : {1, 2, 3, 6}) {
    const runs::Result r = on_ranks(n, "sharded");
    BOOST_TEST(r.status == 0, r.text);
  }
}

BOOST_AUTO_TEST_CASE(a_step_is_one_on_the_whole_batch) {
  for (const int n : {1, 3}) {
    const runs::Result r = on_ranks(n, "plain_step");
    BOOST_TEST(r.status == 0, r.text);
  }
}

BOOST_AUTO_TEST_CASE(what_is_refused_and_what_is_drawn) {
  const std::string wanted = digest_of(1, "refusals");
  for (const int n : {2, 3, 4}) BOOST_TEST(digest_of(n, "refusals") == wanted);
}

BOOST_AUTO_TEST_CASE(a_killed_job_goes_on_with_another_number_of_ranks) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("ferrite_mpi_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const auto file = [&](const char* name) { return " " + (folder / name).string(); };
  const std::string wanted = digest_of(1, "train eager sync 29 6 adam" + file("whole"));
  int number = 0;
  for (const char* optimiser : {"adam", "sharded"})
    for (const int at : {1, 4}) {
      const std::string name = std::to_string(number++);
      const std::string words = std::string("train eager sync 29 6 ") + optimiser + file(name.c_str());
      const runs::Result lost = on_ranks(3, words + " " + std::to_string(at), "--recover --limit 40", 2000);
      BOOST_TEST(all_behind(lost.text, "digest").empty(), lost.text);
      BOOST_TEST(lost.text.find("do not answer within 2000 ms: 2") != std::string::npos, lost.text);
      BOOST_TEST(digest_of(number % 2 ? 2 : 4, words) == wanted, lost.text);
    }
  std::filesystem::remove_all(folder);
}

BOOST_AUTO_TEST_SUITE_END()

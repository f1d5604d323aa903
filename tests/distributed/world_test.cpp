// Worlds of ranks: their functions, ranks that die or hang, and that the main library does not depend on MPI.
#include <sstream>

#include "distributed/runs.h"

using runs::on_ranks;

BOOST_AUTO_TEST_SUITE(world, *boost::unit_test::precondition(runs::if_mpirun))

BOOST_AUTO_TEST_CASE(functions_of_a_world) {
  for (const int n : {1, 2, 3, 4})
    for (const char* transport : {"", "--tcp"}) {
      const runs::Result r = on_ranks(n, "world", transport);
      BOOST_TEST(r.status == 0, r.text);
    }
}

namespace {

/// Checks that every remaining rank reports in time which one is missing.
void check_lost(const char* how, int after, int n, const std::string& options) {
  BOOST_TEST_CONTEXT(how << " after " << after << " sums of " << n << " " << options) {
    const int timeout = 3000;
    const runs::Result r =
        on_ranks(n, std::string("lost ") + how + " " + std::to_string(after), options + " --limit 40", timeout);
    BOOST_TEST(r.status != 124, "the job did not end: " << r.text);
    std::istringstream lines(r.text);
    int told = 0, named = 0;
    for (std::string line; std::getline(lines, line);) {
      const std::size_t at = line.find("lost ");
      if (at == std::string::npos) continue;
      std::istringstream words(line.substr(at));
      std::string word, operation;
      int rank = 0, took = 0, missing = -1;
      if (!(words >> word >> rank >> took >> operation) || rank == n - 1)
        continue;  // mpirun resumes the rank that was stopped
      ++told;
      BOOST_TEST(took < timeout + 1000, line);
      if (words >> missing) named += missing == n - 1;
    }
    BOOST_TEST(told >= 1, r.text);  // with the first error mpirun may end the others
    BOOST_TEST(named == told, r.text);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_rank_that_stops_is_named_in_time) {
  for (const char* transport : {"", "--tcp"})
    for (const int after : {0, 3, 57}) check_lost("stop", after, 3, transport);
}

BOOST_AUTO_TEST_CASE(a_rank_that_is_killed_is_named_in_time) {
  for (const int after : {0, 41}) check_lost("kill", after, 3, "--recover");
}

BOOST_AUTO_TEST_CASE(without_recovery_mpirun_ends_the_job_of_a_killed_rank) {
  const runs::Result r = on_ranks(3, "lost kill 5", "--limit 40", 20000);
  BOOST_TEST((r.status != 0 && r.status != 124), r.text);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(apart)

BOOST_AUTO_TEST_CASE(the_main_library_knows_nothing_of_mpi) {
  const runs::Result main = runs::run(FERRITE_NM " -C " FERRITE_LIBRARY " | grep -c -E ' MPI_|ompi_|ferrite::mpi'");
  BOOST_TEST(main.text == "0\n");
  const runs::Result component = runs::run(FERRITE_NM " -C " FERRITE_MPI_LIBRARY " | grep -c -E ' MPI_'");
  BOOST_TEST(component.text != "0\n");  // the search works
}

BOOST_AUTO_TEST_SUITE_END()

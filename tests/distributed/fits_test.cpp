// `fit` on ranks has the bits of one process, and survives the loss of a rank.
#include <unistd.h>

#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "distributed/runs.h"

using runs::all_behind;
using runs::on_ranks;

namespace {

/// Runs the case on `ranks` ranks; 0: one process without mpirun.
runs::Result run(int ranks, const std::string& words, const std::string& options = "") {
  return ranks > 0 ? on_ranks(ranks, words, options) : runs::run(FERRITE_RANKS " " + words);
}

std::string digest_of(int ranks, const std::string& words, const std::string& options = "") {
  return runs::one_digest(run(ranks, words, options), std::max(1, ranks));
}

/// A temporary folder of this process.
struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("ferrite_mpi_fits_" + std::to_string(getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string file(const std::string& name) const { return (path / name).string(); }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(fits, *boost::unit_test::precondition(runs::if_mpirun))

BOOST_AUTO_TEST_CASE(parameters_history_and_files_have_the_bits_of_one_process) {
  const Folder folder;
  int number = 0;
  for (const std::string kind : {"rows", "masked", "sequences"}) {
    const auto words = [&](const std::string& how, const std::string& more = "") {
      return "fit " + kind + " " + how + " " + folder.file(std::to_string(number++)) + " 6" + more;
    };
    const std::string wanted = digest_of(0, words("eager"));
    for (const int n : {0, 1, 2, 3, 4}) BOOST_TEST(digest_of(n, words("automatic")) == wanted, kind << " on " << n);
    BOOST_TEST(digest_of(3, words("eager")) == wanted, kind);
    BOOST_TEST(digest_of(2, words("always"), "--tcp") == wanted, kind);
    for (const int n : {2, 3}) BOOST_TEST(digest_of(n, words("automatic", " sharded")) == wanted, kind << " sharded");
  }
}

/// The frozen ranks join after two epochs, also in compiled steps, and Adam counts their steps from then on.
BOOST_AUTO_TEST_CASE(ranks_whose_parameters_are_all_frozen_wait_for_the_others) {
  const std::string wanted = digest_of(0, "fit rows eager - 4 late");
  BOOST_TEST(wanted != digest_of(0, "fit rows eager - 4"));
  for (const std::string how : {"eager", "automatic", "always"}) {
    const std::string words = "fit rows " + how + " - 4 ";
    BOOST_TEST(digest_of(0, words + "late") == wanted, how);
    for (const int n : {2, 3}) BOOST_TEST(digest_of(n, words + "sharded late") == wanted, how << " on " << n);
    BOOST_TEST(digest_of(2, words + "late") == wanted, how);
  }
}

BOOST_AUTO_TEST_CASE(one_rank_that_stops_stops_all_and_one_alone_shows_progress) {
  const std::string wanted = digest_of(0, "fit rows automatic - 9 stop");
  for (const int n : {2, 3}) {
    const runs::Result r = run(n, "fit rows automatic - 9 stop");
    BOOST_TEST_REQUIRE(r.status == 0, r.text);
    const std::vector<std::string> digests = all_behind(r.text, "digest"), epochs = all_behind(r.text, "epochs"),
                                   shown = all_behind(r.text, "shown");
    BOOST_TEST_REQUIRE(digests.size() == static_cast<std::size_t>(n), r.text);
    for (const std::string& d : digests) BOOST_TEST(d == wanted, r.text);
    for (const std::string& e : epochs) BOOST_TEST(e == "4", r.text);
    BOOST_TEST(std::multiset<std::string>(shown.begin(), shown.end()).count("4") == 1U, r.text);
    BOOST_TEST(std::multiset<std::string>(shown.begin(), shown.end()).count("0") == static_cast<unsigned>(n - 1));
  }
}

BOOST_AUTO_TEST_CASE(early_stops_are_those_of_one_process) {
  const runs::Result one = run(0, "fit sequences automatic - 60");
  BOOST_TEST_REQUIRE(one.status == 0, one.text);
  const int epochs = std::stoi(all_behind(one.text, "epochs").at(0));
  BOOST_TEST((epochs > 3 && epochs < 60), one.text);  // it stops early
  BOOST_TEST(one.text.find("val_loss has not become better since epoch") != std::string::npos, one.text);
  BOOST_TEST(digest_of(3, "fit sequences automatic - 60") == all_behind(one.text, "digest").at(0));
}

BOOST_AUTO_TEST_CASE(numbers_are_those_of_fit_alone) {
  for (const int n : {0, 2}) {
    const runs::Result r = run(n, "fit_plainly");
    BOOST_TEST(r.status == 0, r.text);
  }
}

BOOST_AUTO_TEST_CASE(what_is_refused) {
  for (const int n : {0, 2, 3}) {
    const runs::Result r = run(n, "fit_refusals");
    BOOST_TEST(r.status == 0, r.text);
  }
  // An exception on one rank ends the others at once, though their timeout is a minute.
  for (const int n : {0, 2}) {
    const runs::Result mean = run(n, "fit_throws mean");
    BOOST_TEST(mean.status != 0, mean.text);
    BOOST_TEST(mean.text.find("and StepOutput::count, of how many") != std::string::npos, mean.text);
    const runs::Result frozen = run(n, "fit_throws frozen");
    BOOST_TEST(frozen.status != 0, frozen.text);
    BOOST_TEST(frozen.text.find("every parameter that has a gradient is frozen") != std::string::npos, frozen.text);
  }
  const runs::Result r = on_ranks(3, "fit_throws callback", "--recover --limit 40");
  BOOST_TEST(r.status != 124, r.text);
  BOOST_TEST(r.text.find("rank 1 throws") != std::string::npos, r.text);
  BOOST_TEST(r.text.find("rank 1 has left the job: an exception ended its training") != std::string::npos, r.text);
}

BOOST_AUTO_TEST_CASE(a_rank_killed_or_stopped_at_random_moments) {
  const char* const text = std::getenv("FERRITE_FIRST_SEED");
  const std::uint64_t seed = text ? std::strtoull(text, nullptr, 10) : 1;
  std::mt19937_64 random(seed);
  const auto draw = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  const Folder folder;
  const char* const kinds[] = {"rows", "masked", "sequences"};
  std::map<std::string, std::string> wanted;
  for (const std::string kind : kinds)
    wanted[kind] = digest_of(0, "fit " + kind + " automatic " + folder.file(kind) + " 5");
  constexpr int kTimeout = 1000;
  for (int k = 0; k < 20; ++k) {
    const int n = draw(2, 4), lost = draw(0, n - 1), at = draw(1, 22), delay = draw(0, 3000), later = draw(0, 4);
    const std::string kind = kinds[k % 3], how = k % 2 ? "kill" : "suspend", file = folder.file(std::to_string(k));
    const std::string words = "fit " + kind + " automatic " + file + " 5" + (draw(0, 1) ? " sharded" : "");
    const std::string more =
        " " + how + " " + std::to_string(lost) + " " + std::to_string(at) + " " + std::to_string(delay);
    const std::string options = how == "kill" ? "--recover --limit 40" : draw(0, 1) ? "--tcp --limit 40" : "--limit 40";
    BOOST_TEST_CONTEXT("seed " << seed << ", run " << k << ": " << words << more << " on " << n << " " << options) {
      const runs::Result r = on_ranks(n, words + more, options, kTimeout);
      BOOST_TEST(r.status != 124, "the job did not end: " << r.text);
      std::istringstream lines(r.text);
      int told = 0, named = 0;
      bool by_itself = false;  // mpirun resumes the stopped rank; on a slow machine the training may end before
      for (std::string line; std::getline(lines, line);) {
        const std::size_t begin = line.find("lost ");
        if (begin == std::string::npos) continue;
        std::istringstream numbers(line.substr(begin + 5));
        int rank = -1, took = -1, silent = -1;
        if (!(numbers >> rank >> took)) continue;
        by_itself |= rank == lost;
        if (rank == lost) continue;
        ++told;
        BOOST_TEST(took < kTimeout + 3000, line);
        while (numbers >> silent) named += silent == lost;
      }
      BOOST_TEST(told >= 1, r.text);  // with the first error mpirun may end the others
      BOOST_TEST((named >= 1 || by_itself), r.text);
      BOOST_TEST(digest_of(later == n ? 0 : later, words) == wanted[kind], "resumed on " << later);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

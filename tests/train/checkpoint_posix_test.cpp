/// Checkpoints of a process that is killed while it saves them.
#include "io/killed.h"
#include "io/temporary_folder.h"
#include "train/checkpointed.h"

using io_test::TemporaryFolder;
using train_test::Training;

BOOST_AUTO_TEST_SUITE(killed_checkpoints)

/// A child saves checkpoints one after another and is killed at a random moment, 200 times. The file is always a whole
/// one, and never older than one that was seen before.
BOOST_AUTO_TEST_CASE(two_hundred_kills_lose_nothing) {
  const TemporaryFolder folder;
  const auto path = folder / "training.safetensors";
  Training t(1);
  t.save(path);
  std::int64_t newest = 0;
  for (int kill_number = 0; kill_number < 200; ++kill_number) {
    io_test::kill_after(kill_number % 4, [&](const auto& tell) {
      for (t.at.step = newest + 1;; ++t.at.step) t.save(path), tell();
    });
    Training seen(2);
    seen.load(path);
    BOOST_REQUIRE(seen.at.step >= newest + kill_number % 4);
    newest = seen.at.step;
  }
  BOOST_TEST(newest >= 300);
  t.save(path);
  BOOST_TEST(folder.leftovers() == 0);
}

BOOST_AUTO_TEST_SUITE_END()

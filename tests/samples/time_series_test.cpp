// The archive's Japanese Vowels, read as scripts/make_vowels.py read them for data/.
#include "ferrite/io/time_series.h"

#include <cstdlib>
#include <filesystem>

#include "ferrite/io/safetensors.h"
#include "samples.h"

using namespace ferrite;

BOOST_AUTO_TEST_SUITE(time_series_samples)

BOOST_AUTO_TEST_CASE(japanese_vowels) {
  SAMPLES_OR_SKIP();
  const auto data =
      io::read_safetensors(std::filesystem::path(std::getenv("FERRITE_DATA")) / "japanese_vowels.safetensors");
  for (const std::string part : {"train", "test"}) {
    const std::string name = part == "train" ? "JapaneseVowels_TRAIN.ts" : "JapaneseVowels_TEST.ts";
    const io::TimeSeries series = io::read_time_series(samples::folder() / "japanese_vowels" / name);
    BOOST_TEST(series.name == "JapaneseVowels");
    BOOST_TEST(series.classes.size() == 9U);
    BOOST_TEST((series.values.to_vector<float>() == data.tensor(part + ".x").to_vector<float>()));
    BOOST_TEST((series.lengths.to_vector<std::int64_t>() == data.tensor(part + ".lengths").to_vector<std::int64_t>()));
    BOOST_TEST((series.labels.to_vector<std::int64_t>() == data.tensor(part + ".labels").to_vector<std::int64_t>()));
  }
}

BOOST_AUTO_TEST_SUITE_END()

// Folders of pictures as data sets: classes, channels, reading on demand.
#include "ferrite/train/png_folder.h"

#include <filesystem>
#include <fstream>

#include "ferrite/io/png.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/sampling.h"
#include "ferrite/train/data_loader.h"
#include "io/temporary_folder.h"
#include "support/compare.h"

using namespace ferrite;
using namespace ferrite::train;
using support::identical;
using support::says;
using support::within;
namespace fs = std::filesystem;

namespace {

/// Returns samples of 8 bits, as a file holds them.
Tensor picture(std::int64_t channels, std::uint64_t seed) {
  return cast(randint({channels, 2, 3}, {.seed = seed}, 0, 256), Dtype::f32) / 255;
}

/// A folder with cat/a (grey), dog/b (colour), dog/more/c (colour with opacity), and files that are not pictures.
struct Animals {
  io_test::TemporaryFolder folder;
  Tensor a = picture(1, 1), b = picture(3, 2), c = picture(4, 3);

  Animals() {
    fs::create_directories(folder / "dog" / "more");
    fs::create_directories(folder / "cat");
    io::write_png(folder / "cat" / "a.png", a);
    io::write_png(folder / "dog" / "b.PNG", b);
    io::write_png(folder / "dog" / "more" / "c.png", c);
    std::ofstream(folder / "dog" / "notes.txt") << "woof";
  }
};

Tensor channel(const Tensor& x, std::int64_t c) { return slice(x, 0, c, c + 1); }

}  // namespace

BOOST_AUTO_TEST_SUITE(png_folders)

BOOST_AUTO_TEST_CASE(one_line_makes_a_data_set) {
  const Animals animals;
  const auto [data, classes, labels] = png_folder(animals.folder / ".");
  BOOST_TEST(classes == (std::vector<std::string>{"cat", "dog"}), boost::test_tools::per_element());
  BOOST_TEST(identical(labels, Tensor::from<std::int64_t>({0, 1, 1})));
  BOOST_REQUIRE(data.size() == 3);
  BOOST_TEST(identical(data[0][0], concat({animals.a, animals.a, animals.a})));
  BOOST_TEST(identical(data[1][0], animals.b));
  BOOST_TEST(identical(data[2][0], slice(animals.c, 0, 0, 3)));
  for (std::int64_t i = 0; i < 3; ++i) BOOST_TEST(identical(data[i][1], labels[i]));
  const Batch all = data.all();
  BOOST_TEST(all.x().shape().str() == "[3, 3, 2, 3]");
  BOOST_TEST(all.y().shape().str() == "[3]");
}

// The weights are those of ITU-R BT.601, as in PIL's convert("L").
BOOST_AUTO_TEST_CASE(channels_as_asked_for) {
  const Animals animals;
  const Dataset grey = png_folder(animals.folder / ".", {.channels = 1}).data;
  const Tensor b = animals.b;
  BOOST_TEST(identical(grey[0][0], animals.a));
  BOOST_TEST(within(grey[1][0], 0.299 * channel(b, 0) + 0.587 * channel(b, 1) + 0.114 * channel(b, 2), 1e-7));
  const Dataset opaque = png_folder(animals.folder / ".", {.channels = 4}).data;
  BOOST_TEST(identical(opaque[0][0], concat({animals.a, animals.a, animals.a, ones({1, 2, 3})})));
  BOOST_TEST(identical(opaque[1][0], concat({b, ones({1, 2, 3})})));
  BOOST_TEST(identical(opaque[2][0], animals.c));
  const Dataset stored = png_folder(animals.folder / ".", {.channels = 0}).data;
  BOOST_TEST(identical(stored[0][0], animals.a));
  BOOST_TEST(identical(stored[2][0], animals.c));
  const Tensor faint = picture(2, 5);  // grey and opacity
  BOOST_TEST(identical(with_channels(faint, 1), channel(faint, 0)));
  BOOST_TEST(identical(with_channels(faint, 4)[3], faint[1]));
  BOOST_TEST(identical(with_channels(faint, 3)[2], faint[0]));
}

BOOST_AUTO_TEST_CASE(files_are_read_when_their_examples_are_asked_for) {
  const Animals animals;
  std::ofstream(animals.folder / "dog" / "d.png") << "no picture";
  const Dataset data = png_folder(animals.folder / ".").data;
  BOOST_TEST(data.size() == 4);  // in the order of names: b.PNG, d.png, more/c.png
  BOOST_TEST(identical(data[1][0], animals.b));
  BOOST_CHECK_EXCEPTION((void)data[2], IoError, says("d.png: "));
  fs::remove(animals.folder / "cat" / "a.png");
  BOOST_CHECK_EXCEPTION((void)data[0], IoError, says("a.png: cannot open the file"));
}

BOOST_AUTO_TEST_CASE(threads_of_a_loader_decode) {
  const Animals animals;
  const Dataset data = png_folder(animals.folder / ".").data;
  const DataLoader alone(data, {.batch_size = 2, .seed = 4}), helped(data, {.batch_size = 2, .seed = 4, .threads = 2});
  std::vector<Batch> wanted;
  for (const Batch& b : alone.epoch(0)) wanted.push_back(b);
  BOOST_TEST(wanted.size() == 2U);
  std::size_t at = 0;
  for (const Batch& b : helped.epoch(0)) {
    BOOST_TEST(identical(b.x(), wanted.at(at).x()));
    BOOST_TEST(identical(b.y(), wanted.at(at++).y()));
  }
  BOOST_TEST(at == wanted.size());
}

BOOST_AUTO_TEST_CASE(refusals) {
  const Animals animals;
  BOOST_CHECK_EXCEPTION((void)png_folder(animals.folder / ".", {.channels = 2}), ValueError,
                        says("channels must be 1, 3, 4 or 0 (as the file says), got 2"));
  BOOST_CHECK_THROW((void)png_folder(animals.folder / "none"), IoError);
  BOOST_CHECK_THROW((void)with_channels(zeros({2, 2}), 3), ShapeError);
  BOOST_CHECK_THROW((void)with_channels(zeros({5, 2, 2}), 3), ShapeError);
  const Dataset data = png_folder(animals.folder / ".", {.most_values = 17}).data;  // b has 18
  BOOST_TEST(identical(data[0][0], concat({animals.a, animals.a, animals.a})));
  BOOST_CHECK_THROW((void)data[1], IoError);
}

BOOST_AUTO_TEST_SUITE_END()

// Event files: records and checksums are read by hand, messages by a small reader, everything by TensorBoard itself.
#include "ferrite/train/tensorboard.h"

#include <zlib.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include "ferrite/io/numpy.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/train/detail/event_records.h"
#include "io/temporary_folder.h"
#include "support/python.h"
#include "support/system.h"

namespace {

using namespace ferrite;
using train::EventWriter;

/// Returns the CRC with Castagnoli's polynomial, computed bit by bit.
std::uint32_t slow_crc(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78U : 0);
  }
  return ~crc;
}

template <class T>
T number(std::string_view bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

/// Returns the records of a file, and checks each.
std::vector<std::string> records_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  const auto masked = [](std::string_view bytes) {
    const std::uint32_t crc = slow_crc(bytes);
    return (crc >> 15 | crc << 17) + 0xa282ead8U;
  };
  std::vector<std::string> records;
  for (std::string_view rest = all; !rest.empty();) {
    BOOST_REQUIRE(rest.size() >= 16);
    const auto size = number<std::uint64_t>(rest);
    BOOST_REQUIRE(rest.size() >= size + 16);
    BOOST_TEST(number<std::uint32_t>(rest.substr(8)) == masked(rest.substr(0, 8)));
    BOOST_TEST(number<std::uint32_t>(rest.substr(12 + size)) == masked(rest.substr(12, size)));
    records.emplace_back(rest.substr(12, size));
    rest.remove_prefix(size + 16);
  }
  return records;
}

/// Returns the fields of a message: integers as 8 bytes, all others unchanged.
std::map<std::uint64_t, std::string> fields_of(std::string_view message) {
  std::map<std::uint64_t, std::string> fields;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.at(0));
      message.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
  };
  while (!message.empty()) {
    const std::uint64_t key = varint();
    std::string value;
    if (key % 8 == 0) {
      const std::uint64_t integer = varint();
      value.assign(reinterpret_cast<const char*>(&integer), 8);
    } else {
      const std::uint64_t size = key % 8 == 1 ? 8 : key % 8 == 5 ? 4 : varint();
      BOOST_REQUIRE(size <= message.size());
      value = message.substr(0, size);
      message.remove_prefix(size);
    }
    fields[key / 8] = value;
  }
  return fields;
}

/// Returns the fields of Summary.Value of a record.
std::map<std::uint64_t, std::string> value_of(const std::string& record) {
  return fields_of(fields_of(fields_of(record).at(5)).at(1));
}

std::vector<double> doubles_of(const std::string& packed) {
  std::vector<double> values(packed.size() / 8);
  std::memcpy(values.data(), packed.data(), packed.size());
  return values;
}

/// Returns options with a clock that advances by a second per call, from 1.7e9.
train::EventWriterOptions steady() {
  return {.clock = [now = 1.7e9]() mutable { return now++; }, .suffix = ".test"};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tensorboard)

/// The values are those of RFC 3720, appendix B.4, and the check value of CRC catalogues.
BOOST_AUTO_TEST_CASE(checksums) {
  BOOST_TEST(train::detail::crc32c("123456789") == 0xe3069283U);
  BOOST_TEST(train::detail::crc32c(std::string(32, '\0')) == 0x8a9136aaU);
  BOOST_TEST(train::detail::crc32c(std::string(32, '\xff')) == 0x62a8ab43U);
  BOOST_TEST(train::detail::crc32c("") == 0U);
}

BOOST_AUTO_TEST_CASE(records_and_events) {
  const io_test::TemporaryFolder folder;
  EventWriter events(folder / "runs" / "first", steady());
  BOOST_TEST(events.file().filename().string().starts_with("events.out.tfevents.1700000000."));
  BOOST_TEST(events.file().extension() == ".test");
  events.scalar("loss/train", 0.5, 3);
  events.scalar("loss/train", -1e300, -1);
  const std::vector<std::string> records = records_of(events.file());
  BOOST_TEST(records.size() == 3U);
  BOOST_TEST(fields_of(records[0]).at(3) == "brain.Event:2");
  BOOST_TEST(number<double>(fields_of(records[1]).at(1)) == 1.7e9 + 2);
  BOOST_TEST(number<std::int64_t>(fields_of(records[1]).at(2)) == 3);
  BOOST_TEST(number<std::int64_t>(fields_of(records[2]).at(2)) == -1);
  BOOST_TEST(value_of(records[1]).at(1) == "loss/train");
  BOOST_TEST(number<float>(value_of(records[1]).at(2)) == 0.5f);
}

/// The file is whole after every call, while the writer lives.
BOOST_AUTO_TEST_CASE(nothing_is_held_back) {
  const io_test::TemporaryFolder folder;
  EventWriter events(folder.path(), steady());
  for (std::size_t i = 1; i < 5; ++i) {
    events.text("note", "step", static_cast<std::int64_t>(i));
    BOOST_TEST(records_of(events.file()).size() == i + 1);
  }
  EventWriter other(folder.path(), steady());  // at the same time, in the same process: it has another file
  BOOST_TEST(other.file() != events.file());
  EventWriter moved = std::move(events);
  moved.scalar("a", 1, 1);
  BOOST_TEST(records_of(moved.file()).size() == 6U);
}

/// The disk is full in the middle of a record: part of a record would hide all following ones.
BOOST_AUTO_TEST_CASE(a_record_that_does_not_fit_leaves_the_file_as_it_was,
                     *boost::unit_test::precondition(support::has_limits)) {
  const io_test::TemporaryFolder folder;
  EventWriter events(folder.path(), steady());
  events.scalar("a", 1, 1);
  support::Limit limit(support::Limit::Of::file_bytes, std::filesystem::file_size(events.file()) + 20);
  BOOST_CHECK_EXCEPTION(events.scalar("b", 2, 2), IoError, [](const IoError& e) {
    return std::string(e.what()).find(": cannot write the file: File too large") != std::string::npos;
  });
  limit.end();
  events.scalar("c", 3, 3);
  const auto records = records_of(events.file());
  BOOST_TEST(records.size() == 3U);
  BOOST_TEST(value_of(records[2]).at(1) == "c");
}

BOOST_AUTO_TEST_CASE(histograms) {
  const Tensor x = Tensor::from<float>({-2, 0, 0, 1e-13f, 1, 1.05f, 3e30f}, {7, 1});
  const auto fields = fields_of(train::detail::encode_histogram(x));
  BOOST_TEST(number<double>(fields.at(1)) == -2);
  BOOST_TEST(number<double>(fields.at(2)) == double{3e30f});
  BOOST_TEST(number<double>(fields.at(3)) == 7);
  const auto sums = fields_of(train::detail::encode_histogram(Tensor::from<float>({-2, 0.5F, 3}, {3})));
  BOOST_TEST(number<double>(sums.at(4)) == 1.5);
  BOOST_TEST(number<double>(sums.at(5)) == 13.25);  // the sum of squares
  const auto ends = doubles_of(fields.at(6)), counts = doubles_of(fields.at(7));
  BOOST_REQUIRE(ends.size() == counts.size());
  BOOST_TEST(std::is_sorted(ends.begin(), ends.end()));
  // Counts the elements below each limit one by one.
  double below = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    below += counts[i];
    double seen = 0;
    for (const float v : x.to_vector<float>()) seen += v < ends[i] ? 1 : 0;
    BOOST_TEST(below == seen);
    if (i > 0) BOOST_TEST((counts[i] > 0 || counts[i - 1] > 0));  // a run of empty buckets is one bucket
  }
  BOOST_TEST(below == 7);
  BOOST_TEST(
      number<double>(fields_of(train::detail::encode_histogram(Tensor::from<bool>({true, false, true}))).at(4)) == 2);
}

/// zlib inflates the pixels as a PNG reader would: rows of filter 0.
BOOST_AUTO_TEST_CASE(pictures) {
  const Tensor x = Tensor::from<float>({0, 0.25f, 1, 2, -1, 0.5f}, {3, 1, 2});
  const auto p = train::detail::encode_picture(x);
  BOOST_TEST(p.png.starts_with("\x89PNG\r\n\x1a\n"));
  BOOST_TEST(p.png.ends_with(std::string("IEND\xae\x42\x60\x82")));
  BOOST_TEST(p.png.substr(16, 10) == std::string("\0\0\0\2\0\0\0\1\x08\x02", 10));
  const std::size_t at = p.png.find("IDAT");
  std::string rows(7, 'x');
  auto size = static_cast<uLongf>(rows.size());
  BOOST_REQUIRE(uncompress(reinterpret_cast<Bytef*>(rows.data()), &size,
                           reinterpret_cast<const Bytef*>(p.png.data() + at + 4),
                           static_cast<uLong>(p.png.size() - at - 4 - 16)) == Z_OK);
  BOOST_TEST((rows == std::string("\x00\x00\xff\x00\x40\xff\x80", 7)));  // 63.75 -> 64, 127.5 -> 128
}

/// zlib inflates what we compress; repetition shrinks, and noise grows by at most an eighth.
BOOST_AUTO_TEST_CASE(pixels_are_compressed) {
  const auto inflated = [](const std::string& stream, std::size_t room) {
    std::string out(room + 1, 'x');
    auto size = static_cast<uLongf>(out.size());
    BOOST_REQUIRE(uncompress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(stream.data()),
                             static_cast<uLong>(stream.size())) == Z_OK);
    return out.substr(0, size);
  };
  const Tensor noise = uniform({100'000}, {.seed = 4}, 0, 255.9);
  for (const std::size_t size : {0U, 1U, 2U, 3U, 4U, 5U, 257U, 258U, 259U, 260U, 261U, 100'000U})
    for (int kind = 0; kind < 4; ++kind) {
      std::string pixels(size, '\0');
      for (std::size_t i = 0; i < size; ++i) {
        const auto r = static_cast<unsigned>(noise.values<float>()[i]);
        const unsigned repeated = i >= 300 && r > 3 ? static_cast<unsigned char>(pixels[i - 300]) : r;
        pixels[i] = static_cast<char>(kind == 0 ? r : kind == 1 ? i / 3000 : kind == 2 ? repeated : 143 + r % 2);
      }
      const std::string stream = train::detail::zlib_stream(pixels);
      BOOST_REQUIRE((inflated(stream, size) == pixels));
      BOOST_TEST(stream.size() <= size + size / 8 + 10);
      if (kind == 1) BOOST_TEST(stream.size() <= size / 100 + 20);
      if (kind == 2) BOOST_TEST(stream.size() <= size / 4 + 400);
    }
  BOOST_TEST(train::detail::crc32("123456789") == 0xcbf43926U);
}

BOOST_AUTO_TEST_CASE(what_is_refused) {
  const io_test::TemporaryFolder folder;
  EventWriter events(folder.path(), steady());
  const Tensor pixel = Tensor::from<float>({0.5f}, {1, 1}), nan = full({1, 1}, std::nanf(""));
  BOOST_CHECK_THROW(events.scalar("", 1, 1), ValueError);
  for (const std::string bad : {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xe0\x80\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    BOOST_CHECK_THROW(events.scalar(bad, 1, 1), ValueError);
    BOOST_CHECK_THROW(events.text("a", bad, 1), ValueError);
  }
  BOOST_CHECK_THROW(events.histogram("a", nan, 1), ValueError);
  BOOST_CHECK_THROW(events.histogram("a", full({0}, 0), 1), ValueError);
  BOOST_CHECK_THROW(events.image("a", nan, 1), ValueError);
  BOOST_CHECK_THROW(events.image("a", cast(pixel, Dtype::f64), 1), DtypeError);
  for (const Shape& shape : {Shape{5, 1, 1}, Shape{0, 2}, Shape{2}, Shape{1, 1, 1, 1}, Shape{0, 1, 1}})
    BOOST_CHECK_THROW(events.image("a", full(shape, 0), 1), ShapeError);
  BOOST_TEST(records_of(events.file()).size() == 1U);
  events.text("ü/€/😀", "", 1);
  BOOST_TEST(records_of(events.file()).size() == 2U);
  std::ofstream(folder / "file") << "x";
  BOOST_CHECK_THROW(EventWriter(folder / "file"), IoError);
  BOOST_CHECK_THROW(EventWriter(folder / "file" / "below"), IoError);
}

/// tests/data/check_events_written.py compares the values with the arrays next to the file.
BOOST_AUTO_TEST_CASE(tensorboard_reads_every_value,
                     *boost::unit_test::precondition(support::python_with("tensorboard"))) {
  const io_test::TemporaryFolder folder;
  EventWriter events(folder.path(), steady());
  const Tensor losses = uniform({20}, {.seed = 1}, -2, 2), weights = normal({1000}, {.seed = 2});
  for (std::int64_t i = 0; i < 20; ++i)
    events.scalar("loss", double{losses.values<float>()[static_cast<std::size_t>(i)]}, 10 * i);
  events.scalar("nan", std::nan(""), 1);
  events.histogram("weights", weights, 7);
  events.text("note", "**bold** ü", 8);
  std::vector<io::NamedTensor> expected = {{"losses", losses}, {"weights", weights}};
  for (const std::int64_t channels : {1, 2, 3, 4}) {
    const Tensor image = uniform({channels, 5, 7}, {.seed = 3}, -0.2, 1.2);
    const std::string name = "image" + std::to_string(channels);
    events.image(name, image, channels);
    expected.push_back({name, image});
  }
  io::write_npz(folder / "expected.npz", expected);
  BOOST_TEST(support::run_script("check_events_written.py", folder.path()));
}

BOOST_AUTO_TEST_SUITE_END()

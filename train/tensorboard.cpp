/// TensorBoard's event files: events of a training run as messages in records, each appended by one system call.
#include "ferrite/train/tensorboard.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "ferrite/tensor/error.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/system/files.h"
#include "ferrite/tensor/system/system.h"
#include "ferrite/train/detail/event_records.h"
#include "ferrite/train/detail/utf8.h"

namespace ferrite::train {

using ferrite::detail::cut_file;
using ferrite::detail::host_name;
using ferrite::detail::OpenFor;
using ferrite::detail::process_number;
using ferrite::detail::system_calls;

}  // namespace ferrite::train

namespace ferrite::train::detail {
namespace {

/// A protocol buffer that is being written (protobuf.dev/programming-guides/encoding).
class Message {
 public:
  Message& integer(std::uint32_t field, std::int64_t value) {
    key(field, 0);
    varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  Message& number(std::uint32_t field, double value) {
    key(field, 1);
    fixed(std::bit_cast<std::uint64_t>(value), 8);
    return *this;
  }
  Message& number(std::uint32_t field, float value) {
    key(field, 5);
    fixed(std::bit_cast<std::uint32_t>(value), 4);
    return *this;
  }
  /// Appends a string, bytes, or a nested message.
  Message& bytes(std::uint32_t field, std::string_view content) {
    key(field, 2);
    varint(content.size());
    text_ += content;
    return *this;
  }
  /// Appends repeated doubles in packed form.
  Message& numbers(std::uint32_t field, std::span<const double> values) {
    key(field, 2);
    varint(8 * values.size());
    for (const double value : values) fixed(std::bit_cast<std::uint64_t>(value), 8);
    return *this;
  }

  const std::string& text() const { return text_; }

 private:
  void key(std::uint32_t field, std::uint32_t type) { varint(field << 3 | type); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
  }
  void fixed(std::uint64_t value, int width) {
    for (int i = 0; i < width; ++i) text_ += static_cast<char>(value >> (8 * i));
  }

  std::string text_;
};

// ---- records -------------------------------------------------------------------------------------------

/// A table of the CRC of every byte.
using CrcTable = std::array<std::uint32_t, 256>;
constexpr CrcTable crc_table(std::uint32_t polynomial) {
  CrcTable table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? crc >> 1 ^ polynomial : crc >> 1;
    table[i] = crc;
  }
  return table;
}
constexpr CrcTable kCastagnoli = crc_table(0x82f63b78U), kPng = crc_table(0xedb88320U);

std::uint32_t crc_of(std::string_view bytes, const CrcTable& table) {
  std::uint32_t crc = 0xffffffffU;
  for (const char c : bytes) crc = table[(crc ^ static_cast<unsigned char>(c)) & 0xff] ^ crc >> 8;
  return ~crc;
}

void append_number(std::string& out, std::uint64_t value, int width) {
  for (int i = 0; i < width; ++i) out += static_cast<char>(value >> (8 * i));
}

std::uint32_t masked(std::uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8U; }

[[noreturn]] void refuse(const std::filesystem::path& path, std::string_view what, int error) {
  throw IoError(path.string() + ": " + std::string(what) + ": " + std::generic_category().message(error));
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) { return crc_of(bytes, kCastagnoli); }
std::uint32_t crc32(std::string_view bytes) { return crc_of(bytes, kPng); }

std::string framed(std::string_view content) {
  std::string record;
  record.reserve(content.size() + 16);
  append_number(record, content.size(), 8);
  append_number(record, masked(crc32c(record)), 4);
  record += content;
  append_number(record, masked(crc32c(content)), 4);
  return record;
}

RecordFile::RecordFile(std::filesystem::path path) : path_(std::move(path)) {
  do {
    fd_ = system_calls().open(path_, OpenFor::appending);
  } while (fd_ < 0 && errno == EINTR);
  if (fd_ < 0) refuse(path_, "cannot create the file", errno);
}

RecordFile::~RecordFile() { system_calls().close(fd_); }

void RecordFile::append(std::string_view content) {
  const std::string record = framed(content);
  for (std::string_view rest = record; !rest.empty();) {
    const std::ptrdiff_t put = system_calls().write(fd_, rest.data(), rest.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      const int error = errno;
      // Part of a record would hide all following ones.
      const bool restored = cut_file(fd_, static_cast<std::uint64_t>(size_)) == 0;
      refuse(path_, restored ? "cannot write the file" : "cannot write the file, which now ends in half a record",
             error);
    }
    rest.remove_prefix(static_cast<std::size_t>(put));
  }
  size_ += static_cast<std::int64_t>(record.size());
}

// Counts values in the buckets of TensorFlow (tensorflow/core/lib/histogram), whose limits grow geometrically.

namespace {

/// Returns the upper limits of the buckets, which the buckets exclude.
const std::vector<double>& limits() {
  static const std::vector<double> all = [] {
    std::vector<double> upward;
    for (double limit = 1e-12; limit < 1e20; limit *= 1.1) upward.push_back(limit);
    upward.push_back(std::numeric_limits<double>::max());
    std::vector<double> both;
    for (auto limit = upward.rbegin(); limit != upward.rend(); ++limit) both.push_back(-*limit);
    both.push_back(0);
    both.insert(both.end(), upward.begin(), upward.end());
    return both;
  }();
  return all;
}

/// The buckets of a histogram, in which a run of empty ones is one bucket.
struct Buckets {
  std::vector<double> ends{}, counts{};
};

Buckets joined(const std::vector<double>& counts) {
  Buckets buckets;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0 && i + 1 < counts.size() && counts[i + 1] == 0) continue;
    buckets.ends.push_back(limits()[i]);
    buckets.counts.push_back(counts[i]);
  }
  return buckets;
}

}  // namespace

std::string encode_histogram(const Tensor& values) {
  const std::vector<double> all = cast(values.unmarked(), Dtype::f64).to_vector<double>();
  if (all.empty()) throw ValueError("histogram: no values: " + values.shape().str());
  std::vector<double> counts(limits().size());
  double sum = 0, squares = 0;
  for (const double x : all) {
    if (!std::isfinite(x)) throw ValueError("histogram: a value is not finite: " + Scalar(x).str());
    sum += x;
    squares += x * x;
    const auto bucket = std::ranges::upper_bound(limits(), x) - limits().begin();
    ++counts[std::min(static_cast<std::size_t>(bucket), counts.size() - 1)];
  }
  const auto [least, most] = std::ranges::minmax(all);
  const Buckets buckets = joined(counts);
  Message message;
  message.number(1, least).number(2, most).number(3, static_cast<double>(all.size())).number(4, sum).number(5, squares);
  return message.numbers(6, buckets.ends).numbers(7, buckets.counts).text();
}

// Writes zlib streams: RFC 1950 and 1951, whose section numbers are given with what they define.

namespace {

constexpr std::size_t kWindow = 32768, kShortest = 3, kLongest = 258;

/// Appends bits to bytes, from the lowest bit of each byte to the highest.
class Bits {
 public:
  explicit Bits(std::string& out) : out_(out) {}
  void put(std::uint32_t bits, int count) {
    held_ |= std::uint64_t{bits} << count_;
    for (count_ += count; count_ >= 8; count_ -= 8, held_ >>= 8) out_ += static_cast<char>(held_);
  }
  /// Appends a Huffman code, highest bit first.
  void put_code(std::uint32_t code, int count) {
    std::uint32_t reversed = 0;
    for (int i = 0; i < count; ++i) reversed |= (code >> i & 1) << (count - 1 - i);
    put(reversed, count);
  }
  void end_byte() {
    if (count_ > 0) put(0, 8 - count_);
  }

 private:
  std::string& out_;
  std::uint64_t held_ = 0;
  int count_ = 0;
};

/// Writes a symbol in the fixed code of literals and lengths, 3.2.6.
void put_symbol(Bits& bits, std::uint32_t symbol) {
  if (symbol < 144) {
    bits.put_code(0x30 + symbol, 8);
  } else if (symbol < 256) {
    bits.put_code(0x190 + symbol - 144, 9);
  } else if (symbol < 280) {
    bits.put_code(symbol - 256, 7);
  } else {
    bits.put_code(0xc0 + symbol - 280, 8);
  }
}

/// Writes a length and a distance, 3.2.5: the highest bits of each as a code, the others as they are.
void put_copy(Bits& bits, std::size_t length, std::size_t distance) {
  if (length == kLongest) {
    put_symbol(bits, 285);
  } else {
    const auto l = static_cast<std::uint32_t>(length - kShortest);
    const int extra = std::max(0, static_cast<int>(std::bit_width(l)) - 3);
    put_symbol(bits, 257 + 4 * static_cast<std::uint32_t>(extra) + (l >> extra));
    bits.put(l & ((1U << extra) - 1), extra);
  }
  const auto d = static_cast<std::uint32_t>(distance - 1);
  const int extra = std::max(0, static_cast<int>(std::bit_width(d)) - 2);
  bits.put_code(2 * static_cast<std::uint32_t>(extra) + (d >> extra), 5);
  bits.put(d & ((1U << extra) - 1), extra);
}

/// A table of the last place of each sequence of three bytes, by hash.
class Places {
 public:
  /// Returns the last place of the three bytes at `at`, negative if there is none, and records `at` as the new one.
  std::int64_t exchange(std::string_view text, std::size_t at) {
    const auto byte = [&](std::size_t i) { return std::uint32_t{static_cast<unsigned char>(text[at + i])}; };
    const std::uint32_t hash = (byte(0) << 16 | byte(1) << 8 | byte(2)) * 2654435761U >> (32 - kBits);
    return std::exchange(last_[hash], static_cast<std::int64_t>(at) + 1) - 1;
  }

 private:
  static constexpr int kBits = 15;
  std::vector<std::int64_t> last_ = std::vector<std::int64_t>(std::size_t{1} << kBits);  // place + 1; 0: none
};

std::size_t common_length(std::string_view text, std::size_t a, std::size_t b) {
  const std::size_t most = std::min(kLongest, text.size() - b);
  std::size_t n = 0;
  while (n < most && text[a + n] == text[b + n]) ++n;
  return n;
}

std::uint32_t adler32(std::string_view text) {
  std::uint32_t a = 1, b = 0;
  for (const char c : text) {
    a = (a + static_cast<unsigned char>(c)) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

}  // namespace

std::string zlib_stream(std::string_view contents) {
  std::string out = "\x78\x01";  // header: deflate, a window of 32 KiB, the fastest level
  Bits bits(out);
  bits.put(0b011, 3);  // the last block, in the fixed code
  Places places;
  for (std::size_t at = 0; at < contents.size();) {
    std::size_t length = 0, distance = 0;
    if (contents.size() - at >= kShortest)
      if (const std::int64_t place = places.exchange(contents, at); place >= 0) {
        distance = at - static_cast<std::size_t>(place);
        if (distance <= kWindow) length = common_length(contents, static_cast<std::size_t>(place), at);
      }
    if (length < kShortest) {
      put_symbol(bits, static_cast<unsigned char>(contents[at++]));
      continue;
    }
    put_copy(bits, length, distance);
    const std::size_t end = at + length;
    for (++at; at < end && contents.size() - at >= kShortest; ++at) places.exchange(contents, at);
    at = end;
  }
  put_symbol(bits, 256);
  bits.end_byte();
  const std::uint32_t sum = adler32(contents);
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(sum >> shift);
  return out;
}

// Writes PNG files (w3.org/TR/png-3) without a library, with no filters and one chunk of data.

namespace {

constexpr std::array<char, 5> kColourTypes = {0, 0, 4, 2, 6};  // indexed by the number of channels

std::string big_endian(std::uint64_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::string chunk(std::string_view name, std::string_view content) {
  const std::string body = std::string(name) + std::string(content);
  return big_endian(content.size()) + body + big_endian(crc32(body));
}

char byte_of(float x) {
  if (std::isnan(x)) throw ValueError("image: a pixel is NaN");
  return static_cast<char>(static_cast<unsigned char>(std::lround(255 * std::clamp(x, 0.0F, 1.0F))));
}

/// Returns the rows of a picture with interleaved channels, each after the number of its filter, 0.
std::string scanlines(std::span<const float> pixels, const Picture& p) {
  const auto plane = static_cast<std::size_t>(p.height * p.width), width = static_cast<std::size_t>(p.width);
  std::string lines;
  lines.reserve(plane * static_cast<std::size_t>(p.channels) + static_cast<std::size_t>(p.height));
  for (std::size_t i = 0; i < plane; ++i) {
    if (i % width == 0) lines += '\0';
    for (std::size_t c = 0; c < static_cast<std::size_t>(p.channels); ++c) lines += byte_of(pixels[c * plane + i]);
  }
  return lines;
}

}  // namespace

Picture encode_picture(const Tensor& pixels) {
  constexpr std::int64_t kMostPixels = std::int64_t{1} << 28;
  if (pixels.dtype() != Dtype::f32) throw DtypeError("image: pixels must be f32, got " + pixels.spec().str());
  const int rank = pixels.rank();
  Picture p;
  if (rank == 2 || rank == 3) p = {pixels.size(-2), pixels.size(-1), rank == 3 ? pixels.size(0) : 1, {}};
  if (p.height < 1 || p.width < 1 || p.channels < 1 || p.channels > 4)
    throw ShapeError("image: pixels must be [H, W] or [C, H, W] with C in 1..4, got " + pixels.shape().str());
  if (pixels.numel() > kMostPixels) throw ShapeError("image: more than 2^28 values: " + pixels.shape().str());
  const Tensor dense = contiguous(pixels.unmarked());
  const std::string kind = {8, kColourTypes[static_cast<std::size_t>(p.channels)], 0, 0, 0};
  p.png = "\x89PNG\r\n\x1a\n" +
          chunk("IHDR", big_endian(static_cast<std::uint64_t>(p.width)) +
                            big_endian(static_cast<std::uint64_t>(p.height)) + kind) +
          chunk("IDAT", zlib_stream(scanlines(dense.values<float>(), p))) + chunk("IEND", {});
  return p;
}

}  // namespace ferrite::train::detail

// ---- events --------------------------------------------------------------------------------------------

namespace ferrite::train {

using detail::Message;

namespace {

// Fields of Event and of Summary.Value, and constants in messages
// (tensorboard/compat/proto/{event,summary,tensor,types}.proto).
constexpr std::uint32_t kFileVersion = 3, kSummary = 5;
constexpr std::uint32_t kTag = 1, kSimpleValue = 2, kImage = 4, kHistogram = 5, kTensor = 8, kMetadata = 9;
constexpr std::int64_t kStringDtype = 7, kTensorData = 2;

double system_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Returns whether `text` is UTF-8, as protocol buffers require of strings.
bool is_utf8(std::string_view text) {
  for (std::size_t at = 0, n = 0; at < text.size(); at += n)
    if ((n = detail::utf8_bytes(text, at)) == 0) return false;
  return true;
}

std::string host() {
  std::string name = host_name();
  std::ranges::replace(name, '/', '_');
  return name.empty() ? "host" : name;
}

std::string name_of(double time, const std::string& suffix) {
  static std::atomic<int> count = 0;
  std::string seconds = std::to_string(static_cast<std::int64_t>(time));
  if (seconds.size() < 10) seconds.insert(0, 10 - seconds.size(), '0');
  return "events.out.tfevents." + seconds + "." + host() + "." + std::to_string(process_number()) + "." +
         std::to_string(count++) + suffix;
}

std::filesystem::path created(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw IoError(folder.string() + ": cannot create the folder: " + error.message());
  return folder;
}

}  // namespace

EventWriter::EventWriter(const std::filesystem::path& folder, EventWriterOptions options)
    : clock_(options.clock ? std::move(options.clock) : system_time),
      records_(std::make_unique<detail::RecordFile>(created(folder) / name_of(clock_(), options.suffix))) {
  write(0, kFileVersion, "brain.Event:2");
}

EventWriter::~EventWriter() = default;
EventWriter::EventWriter(EventWriter&&) noexcept = default;
EventWriter& EventWriter::operator=(EventWriter&&) noexcept = default;

const std::filesystem::path& EventWriter::file() const { return records_->path(); }

void EventWriter::write(std::int64_t step, std::uint32_t field, std::string_view content) {
  records_->append(Message().number(1, clock_()).integer(2, step).bytes(field, content).text());
}

/// Writes one value with a tag; `value` holds the other fields of Summary.Value.
void EventWriter::summarize(std::string_view tag, std::int64_t step, std::string_view value) {
  if (tag.empty()) throw ValueError("event writer: the tag is empty: ''");
  if (!is_utf8(tag)) throw ValueError("event writer: the tag is not UTF-8");
  const std::string tagged = Message().bytes(kTag, tag).text() + std::string(value);
  write(step, kSummary, Message().bytes(1, tagged).text());
}

void EventWriter::scalar(std::string_view tag, double value, std::int64_t step) {
  summarize(tag, step, Message().number(kSimpleValue, static_cast<float>(value)).text());
}

void EventWriter::histogram(std::string_view tag, const Tensor& values, std::int64_t step) {
  summarize(tag, step, Message().bytes(kHistogram, detail::encode_histogram(values)).text());
}

void EventWriter::image(std::string_view tag, const Tensor& pixels, std::int64_t step) {
  const detail::Picture p = detail::encode_picture(pixels);
  const Message image = Message().integer(1, p.height).integer(2, p.width).integer(3, p.channels).bytes(4, p.png);
  summarize(tag, step, Message().bytes(kImage, image.text()).text());
}

void EventWriter::text(std::string_view tag, std::string_view text, std::int64_t step) {
  if (!is_utf8(text)) throw ValueError("event writer: the text is not UTF-8");
  const Message tensor = Message().integer(1, kStringDtype).bytes(2, {}).bytes(8, text);
  const Message plugin = Message().bytes(1, "text");
  const Message metadata = Message().bytes(1, plugin.text()).integer(4, kTensorData);
  summarize(tag, step, Message().bytes(kTensor, tensor.text()).bytes(kMetadata, metadata.text()).text());
}

}  // namespace ferrite::train

/// Writes PNG files by libpng, whose errors are jumps: no object with a destructor lives where one starts.
#include <png.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "ferrite/io/atomic_file.h"
#include "ferrite/io/png.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::io {
namespace {

constexpr std::array<int, 5> kColourTypes = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                             PNG_COLOR_TYPE_RGB_ALPHA};

struct Picture {
  std::size_t height = 0, width = 0, channels = 0;
  int bits = 8;
};

/// What was written, and libpng's last words.
struct Sink {
  std::vector<std::byte> bytes{};
  std::array<char, 200> error{};
};

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto& sink = *static_cast<Sink*>(png_get_error_ptr(png));
  std::strncpy(sink.error.data(), message, sink.error.size() - 1);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

/// False instead of an exception, which must not cross libpng.
bool append(Sink& sink, png_const_bytep data, std::size_t size) noexcept {
  try {
    const auto* begin = reinterpret_cast<const std::byte*>(data);
    sink.bytes.insert(sink.bytes.end(), begin, begin + size);
    return true;
  } catch (...) {
    return false;
  }
}

void on_write(png_structp png, png_bytep data, std::size_t size) {
  if (!append(*static_cast<Sink*>(png_get_io_ptr(png)), data, size)) png_error(png, "no memory");
}

class Writer {
 public:
  explicit Writer(Sink& sink)
      : sink_(sink), png_(png_create_write_struct(PNG_LIBPNG_VER_STRING, &sink, on_error, on_warning)) {
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  ~Writer() { png_destroy_write_struct(&png_, &info_); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// False when libpng refuses; the sink then says why.
  bool write(const Picture& p, png_bytepp rows) {
    if (info_ == nullptr || setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_write_fn(png_, &sink_, on_write, nullptr);
    png_set_user_limits(png_, 0x7fffffff, 0x7fffffff);
    png_set_IHDR(png_, info_, static_cast<png_uint_32>(p.width), static_cast<png_uint_32>(p.height), p.bits,
                 kColourTypes[p.channels], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png_, info_);
    if constexpr (std::endian::native == std::endian::little) png_set_swap(png_);
    png_write_image(png_, rows);
    png_write_end(png_, nullptr);
    return true;
  }

 private:
  Sink& sink_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

Picture picture_of(const Tensor& pixels, PngDepth depth) {
  if (pixels.dtype() != Dtype::f32) throw DtypeError("write_png: pixels must be f32, got " + pixels.spec().str());
  const int rank = pixels.rank();
  Picture p{.bits = static_cast<int>(depth)};
  if (rank == 2 || rank == 3) {
    p.height = static_cast<std::size_t>(pixels.size(-2));
    p.width = static_cast<std::size_t>(pixels.size(-1));
    p.channels = rank == 3 ? static_cast<std::size_t>(pixels.size(0)) : 1;
  }
  if (p.height < 1 || p.width < 1 || p.channels < 1 || p.channels > 4 || pixels.numel() > kMostPngValues)
    throw ShapeError("write_png: pixels must be [H, W] or [C, H, W] with C in 1..4 and at most 2^28 values, got " +
                     pixels.shape().str());
  return p;
}

/// The samples side by side, in the machine's order of bytes.
template <class T>
std::vector<T> samples_of(std::span<const float> pixels, const Picture& p) {
  constexpr auto kFull = static_cast<float>(static_cast<T>(~T{0}));
  const std::size_t plane = p.height * p.width;
  std::vector<T> samples(pixels.size());
  for (std::size_t i = 0; i < plane; ++i)
    for (std::size_t c = 0; c < p.channels; ++c) {
      const float x = pixels[c * plane + i];
      if (std::isnan(x)) throw ValueError("write_png: a pixel is NaN");
      samples[i * p.channels + c] = static_cast<T>(std::lround(kFull * std::clamp(x, 0.0F, 1.0F)));
    }
  return samples;
}

template <class T>
std::vector<std::byte> encoded(std::span<const float> pixels, const Picture& p) {
  std::vector<T> samples = samples_of<T>(pixels, p);
  std::vector<png_bytep> rows(p.height);
  for (std::size_t i = 0; i < p.height; ++i)
    rows[i] = reinterpret_cast<png_bytep>(samples.data() + i * p.width * p.channels);
  Sink sink;
  if (Writer writer(sink); !writer.write(p, rows.data()))
    throw IoError(std::string("write_png: libpng cannot write it: ") +
                  (sink.error[0] != 0 ? sink.error.data() : "no memory"));
  return std::move(sink.bytes);
}

}  // namespace

std::vector<std::byte> serialize_png(const Tensor& pixels, PngDepth depth) {
  const Picture p = picture_of(pixels, depth);
  const Tensor dense = contiguous(pixels.unmarked());
  return depth == PngDepth::bits8 ? encoded<std::uint8_t>(dense.values<float>(), p)
                                  : encoded<std::uint16_t>(dense.values<float>(), p);
}

void write_png(const std::filesystem::path& path, const Tensor& pixels, PngDepth depth) {
  write_atomically(path, serialize_png(pixels, depth));
}

}  // namespace ferrite::io

/// Reads and writes PNG files by libpng, whose errors are jumps: no object with a destructor lives where one starts.
#include "ferrite/io/png.h"

#include <png.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "ferrite/io/atomic_file.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/file/input_file.h"
#include "ferrite/tensor/log.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::io {
namespace {

/// The text of libpng's error.
using LastWords = std::array<char, 200>;

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto& words = *static_cast<LastWords*>(png_get_error_ptr(png));
  std::strncpy(words.data(), message, words.size() - 1);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

// ---- reading -------------------------------------------------------------------------------------------

/// The bytes that libpng reads, and the text of its error.
struct Source {
  const std::byte* at = nullptr;
  std::size_t left = 0;
  LastWords error{};
};

/// Allocates libpng's memory with operator new, like the library's own.
png_voidp on_allocate(png_structp, png_alloc_size_t size) { return ::operator new(size, std::nothrow); }
void on_release(png_structp, png_voidp block) { ::operator delete(block); }

void on_read(png_structp png, png_bytep out, std::size_t size) {
  auto& source = *static_cast<Source*>(png_get_io_ptr(png));
  if (size > source.left) png_error(png, "the file is cut short");
  std::memcpy(out, source.at, size);
  source.at += size;
  source.left -= size;
}

/// The format of the rows that libpng gives: samples of one or two bytes, or bytes that index the palette.
struct Layout {
  std::size_t width = 0, height = 0, channels = 0, sample_bytes = 0, row_bytes = 0;
  std::span<const png_color> palette{};   ///< empty: rows are samples
  std::span<const png_byte> opacities{};  ///< opacities of the first colours of the palette; the others are opaque
};

class Reader {
 public:
  explicit Reader(Source& source)
      : source_(source),
        png_(png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &source.error, on_error, on_warning, nullptr, on_allocate,
                                      on_release)) {
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  ~Reader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// Reads everything before the samples, and sets their layout. Returns false when libpng refuses; the source has the
  /// reason.
  bool read_front(Layout& layout) {
    if (info_ == nullptr || setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_read_fn(png_, &source_, on_read);
    skip_other_chunks();
    png_set_user_limits(png_, 0x7fffffff, 0x7fffffff);
    png_read_info(png_, info_);
    layout.width = png_get_image_width(png_, info_);
    layout.height = png_get_image_height(png_, info_);
    layout.channels = expanded_channels();
    return true;
  }
  /// Sets the form of rows and lets libpng allocate memory for them; the picture's size must have been checked before.
  bool start(Layout& layout) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    // libpng would make an index beyond the palette black, so colours_of checks indices and looks up colours.
    if (png_get_color_type(png_, info_) == PNG_COLOR_TYPE_PALETTE) {
      png_set_packing(png_);
      read_palette(layout);
    } else {
      png_set_expand(png_);
    }
    if constexpr (std::endian::native == std::endian::little) png_set_swap(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    if (layout.palette.empty()) layout.channels = png_get_channels(png_, info_);  // number of samples in a pixel
    layout.sample_bytes = png_get_bit_depth(png_, info_) / 8U;
    layout.row_bytes = png_get_rowbytes(png_, info_);
    return true;
  }
  /// Reads the samples and the rest of the file.
  bool read_rows(png_bytepp rows) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
    return true;
  }

 private:
  /// Returns the number of channels with palettes as colours and transparent colours as opacity.
  std::size_t expanded_channels() const {
    const bool palette = png_get_color_type(png_, info_) == PNG_COLOR_TYPE_PALETTE;
    const bool transparent = png_get_valid(png_, info_, PNG_INFO_tRNS) != 0;
    return (palette ? 3U : png_get_channels(png_, info_)) + (transparent ? 1U : 0U);
  }
  void read_palette(Layout& layout) {
    png_colorp colours = nullptr;
    png_bytep opacities = nullptr;
    int of_colours = 0, of_opacities = 0;
    if (png_get_PLTE(png_, info_, &colours, &of_colours) == 0 || of_colours < 1) png_error(png_, "there is no palette");
    layout.palette = {colours, static_cast<std::size_t>(of_colours)};
    if (png_get_tRNS(png_, info_, &opacities, &of_opacities, nullptr) != 0 && opacities != nullptr)
      layout.opacities = {opacities, static_cast<std::size_t>(of_opacities)};
  }
  /// Makes libpng skip chunks that could take memory and that no sample depends on.
  void skip_other_chunks() {
    static constexpr png_byte names[] = "iCCP\0iTXt\0tEXt\0zTXt\0sPLT\0hIST\0eXIf\0pCAL\0sCAL\0";
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, names, static_cast<int>(sizeof(names) / 5));
  }

  Source& source_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

template <class T>
Tensor values_of(std::span<const std::byte> samples, const Layout& p) {
  const Shape shape = {static_cast<std::int64_t>(p.channels), static_cast<std::int64_t>(p.height),
                       static_cast<std::int64_t>(p.width)};
  constexpr auto kFull = static_cast<float>(static_cast<T>(~T{0}));
  return Tensor::build<float>(shape, [&](std::span<float> out) {
    const std::size_t plane = p.height * p.width;
    for (std::size_t i = 0; i < plane; ++i) {
      const std::byte* pixel = samples.data() + i / p.width * p.row_bytes + i % p.width * p.channels * sizeof(T);
      for (std::size_t c = 0; c < p.channels; ++c) {
        T value{};
        std::memcpy(&value, pixel + c * sizeof(T), sizeof(T));
        out[c * plane + i] = static_cast<float>(value) / kFull;
      }
    }
  });
}

/// Returns the colours of a picture whose bytes index its palette. Throws IoError for an index beyond it.
Tensor colours_of(std::span<const std::byte> numbers, const Layout& p, std::string_view where) {
  const Shape shape = {static_cast<std::int64_t>(p.channels), static_cast<std::int64_t>(p.height),
                       static_cast<std::int64_t>(p.width)};
  return Tensor::build<float>(shape, [&](std::span<float> out) {
    const std::size_t plane = p.height * p.width;
    for (std::size_t i = 0; i < plane; ++i) {
      const std::size_t row = i / p.width, column = i % p.width;
      const auto number = std::to_integer<std::size_t>(numbers[row * p.row_bytes + column]);
      if (number >= p.palette.size())
        detail::refuse(where, "damaged: the pixel at row " + std::to_string(row) + ", column " +
                                  std::to_string(column) + " has colour " + std::to_string(number) +
                                  " of a palette of " + std::to_string(p.palette.size()));
      const png_color& colour = p.palette[number];
      const png_byte opacity = number < p.opacities.size() ? p.opacities[number] : 255;
      const std::array<png_byte, 4> samples = {colour.red, colour.green, colour.blue, opacity};
      for (std::size_t c = 0; c < p.channels; ++c) out[c * plane + i] = static_cast<float>(samples[c]) / 255.0F;
    }
  });
}

}  // namespace

Tensor parse_png(std::span<const std::byte> bytes, std::string_view where, std::int64_t most_values) {
  constexpr std::size_t kSignature = 8;
  if (bytes.size() < kSignature || png_sig_cmp(reinterpret_cast<png_const_bytep>(bytes.data()), 0, kSignature) != 0)
    detail::refuse(
        where, "not a PNG file: it begins with " +
                   detail::quote({reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), kSignature)}));
  Source source{bytes.data(), bytes.size()};
  Reader reader(source);
  Layout layout;
  const auto refuse = [&] {
    detail::refuse(where, "damaged: " + detail::quote(source.error[0] != 0 ? source.error.data() : "no memory"));
  };
  if (!reader.read_front(layout)) refuse();
  const auto most = static_cast<std::uint64_t>(std::max<std::int64_t>(most_values, 0));
  if (layout.height > most / layout.width || layout.height * layout.width > most / layout.channels)
    detail::refuse(where, "more than " + std::to_string(most) + " values: " + std::to_string(layout.channels) + " x " +
                              std::to_string(layout.height) + " x " + std::to_string(layout.width) +
                              "; the caller may allow more");
  if (!reader.start(layout)) refuse();
  detail::Block samples(std::uint64_t{layout.height} * layout.row_bytes, where);
  std::vector<png_bytep> rows(layout.height);
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i] = reinterpret_cast<png_bytep>(samples.span().data()) + i * layout.row_bytes;
  if (!reader.read_rows(rows.data())) refuse();
  if (!layout.palette.empty()) return colours_of(samples.span(), layout, where);
  return layout.sample_bytes == 1 ? values_of<std::uint8_t>(samples.span(), layout)
                                  : values_of<std::uint16_t>(samples.span(), layout);
}

Tensor read_png(const std::filesystem::path& path, std::int64_t most_values) {
  const detail::WholeFile file = detail::read_whole(path);
  ferrite::detail::log_debug(file.where + ": read " + detail::counted(file.bytes.span().size(), "byte"));
  return parse_png(file.bytes.span(), file.where, most_values);
}

// ---- writing -------------------------------------------------------------------------------------------

namespace {

constexpr std::array<int, 5> kColourTypes = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                             PNG_COLOR_TYPE_RGB_ALPHA};

struct Picture {
  std::size_t height = 0, width = 0, channels = 0;
  int bits = 8;
};

/// The bytes that were written, and the text of libpng's error.
struct Sink {
  std::vector<std::byte> bytes{};
  LastWords error{};
};

/// Appends bytes. Returns false instead of throwing, as an exception must not cross libpng.
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
      : sink_(sink), png_(png_create_write_struct(PNG_LIBPNG_VER_STRING, &sink.error, on_error, on_warning)) {
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  ~Writer() { png_destroy_write_struct(&png_, &info_); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Writes a picture. Returns false when libpng refuses; the sink has the reason.
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

/// Returns the samples interleaved by pixel, in the machine's byte order.
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

#pragma once
/// Event files for TensorBoard: scalars, histograms, images and texts of a training run.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ferrite/tensor/tensor.h"

namespace ferrite::train {

namespace detail {
class RecordFile;
}  // namespace detail

struct EventWriterOptions {
  /// Seconds since 1970, for the name of the file and the time of every event; the system's clock if empty.
  std::function<double()> clock{};
  /// Appended to the name of the file.
  std::string suffix{};
};

/// Writes one event file, `events.out.tfevents.<seconds>.<host>.<pid>.<n>`, which `tensorboard --logdir <folder>` shows
/// while it grows. A folder for each run: TensorBoard shows runs by their folders.
///
/// Every call hands one whole record to the system before it returns: a process that is killed loses at most the record
/// it is writing. Nothing is flushed to the disk; a power cut may lose the end. When a call throws, the file is as
/// before it. The format is that of TensorFlow: records with masked CRC-32C, and the protocol buffers of
/// tensorboard/compat/proto. Not for use by several threads.
///
/// `step` is the place on the horizontal axis. A tag is any text that is not empty; slashes group. Every function
/// throws ValueError for a tag or text that is empty or no UTF-8 (texts may be empty), TraceError for values of a
/// traced tensor, and IoError when the file cannot be written.
class EventWriter {
 public:
  /// Creates the folder, if there is none, and a new file in it. Throws IoError.
  explicit EventWriter(const std::filesystem::path& folder, EventWriterOptions options = {});
  ~EventWriter();
  EventWriter(EventWriter&&) noexcept;
  EventWriter& operator=(EventWriter&&) noexcept;

  /// A point of a curve, stored as a float; NaN and infinities are shown as such.
  void scalar(std::string_view tag, double value, std::int64_t step);
  /// How the elements of a tensor of any shape are distributed, in TensorFlow's buckets: their limits grow by a tenth
  /// from 1e-12. bool counts as 0 and 1. Throws ValueError for no elements and for NaN and infinities.
  void histogram(std::string_view tag, const Tensor& values, std::int64_t step);
  /// A picture: f32 [H, W] or [C, H, W] of 1 (grey), 2 (grey, opacity), 3 (red, green, blue) or 4 channels (and
  /// opacity) in 0..1, clipped, as a PNG of 8 bits: x becomes round(255 x). Throws DtypeError, ShapeError, and
  /// ValueError for NaN.
  void image(std::string_view tag, const Tensor& pixels, std::int64_t step);
  /// A text in Markdown.
  void text(std::string_view tag, std::string_view text, std::int64_t step);

  /// The file that is written.
  const std::filesystem::path& file() const;

 private:
  void write(std::int64_t step, std::uint32_t field, std::string_view content);
  void summarize(std::string_view tag, std::int64_t step, std::string_view value);

  std::function<double()> clock_;
  std::unique_ptr<detail::RecordFile> records_;
};

}  // namespace ferrite::train

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

/// The options of an EventWriter: the source of times, and the end of the file's name.
struct EventWriterOptions {
  /// Function that returns seconds since 1970, for the name of the file and the time of every event. Empty: the
  /// system's clock.
  std::function<double()> clock{};
  /// Text to append to the name of the file.
  std::string suffix{};
};

/// Writes one event file, `events.out.tfevents.<seconds>.<host>.<pid>.<n>`, which `tensorboard --logdir <folder>` shows
/// while it grows. Use one folder per run: TensorBoard shows runs by their folders.
///
/// Every call hands one whole record to the system before it returns, so a process that is killed loses at most the
/// record it is writing. Nothing is flushed to the disk; a power cut may lose the end. When a call throws, the file is
/// as it was before. The format is that of TensorFlow: records with masked CRC-32C, and the protocol buffers of
/// tensorboard/compat/proto. A writer is not for use by several threads.
///
/// `step` is the place on the horizontal axis. Slashes in a tag group curves. Every function throws ValueError for a
/// tag that is empty and for a tag or text that is not UTF-8, TraceError for values of a traced tensor, and IoError
/// when the file cannot be written.
class EventWriter {
 public:
  /// Creates the folder, if there is none, and a new file in it. Throws IoError when it cannot.
  explicit EventWriter(const std::filesystem::path& folder, EventWriterOptions options = {});
  ~EventWriter();
  EventWriter(EventWriter&&) noexcept;
  EventWriter& operator=(EventWriter&&) noexcept;

  /// Writes a point of a curve, stored as a float; NaN and infinities are shown as such.
  void scalar(std::string_view tag, double value, std::int64_t step);
  /// Writes a histogram of the elements of a tensor of any shape, in TensorFlow's buckets, whose limits grow by a tenth
  /// from 1e-12. bool counts as 0 and 1. Throws ValueError for no elements and for NaN and infinities.
  void histogram(std::string_view tag, const Tensor& values, std::int64_t step);
  /// Writes a picture as a PNG of 8 bits: f32 [H, W] or [C, H, W] of 1 (grey), 2 (grey, opacity), 3 (red, green, blue)
  /// or 4 channels (with opacity). Values are clipped to 0..1; x becomes round(255 x). Throws DtypeError for another
  /// dtype, ShapeError for another shape, ValueError for NaN.
  void image(std::string_view tag, const Tensor& pixels, std::int64_t step);
  /// Writes a text in Markdown, which may be empty.
  void text(std::string_view tag, std::string_view text, std::int64_t step);

  /// Returns the path of the file.
  const std::filesystem::path& file() const;

 private:
  void write(std::int64_t step, std::uint32_t field, std::string_view content);
  void summarize(std::string_view tag, std::int64_t step, std::string_view value);

  std::function<double()> clock_;
  std::unique_ptr<detail::RecordFile> records_;
};

}  // namespace ferrite::train

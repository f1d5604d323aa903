/// Events of a training run, as messages in records.
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <system_error>
#include <utility>

#include "ferrite/tensor/error.h"
#include "ferrite/train/detail/utf8.h"
#include "ferrite/train/tensorboard.h"
#include "ferrite/train/tensorboard/event_records.h"
#include "ferrite/train/tensorboard/histogram.h"
#include "ferrite/train/tensorboard/message.h"
#include "ferrite/train/tensorboard/picture.h"

namespace ferrite::train {

using detail::Message;

namespace {

// Fields of Event and of Summary.Value, and numbers that stand in messages
// (tensorboard/compat/proto/{event,summary,tensor,types}.proto).
constexpr std::uint32_t kFileVersion = 3, kSummary = 5;
constexpr std::uint32_t kTag = 1, kSimpleValue = 2, kImage = 4, kHistogram = 5, kTensor = 8, kMetadata = 9;
constexpr std::int64_t kStringDtype = 7, kTensorData = 2;

double system_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Whether `text` is UTF-8, which protocol buffers ask of strings.
bool is_utf8(std::string_view text) {
  for (std::size_t at = 0, n = 0; at < text.size(); at += n)
    if ((n = detail::utf8_bytes(text, at)) == 0) return false;
  return true;
}

std::string host() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "host";
  for (char& c : name)
    if (c == '/') c = '_';
  return name.front() == 0 ? "host" : name.data();
}

std::string name_of(double time, const std::string& suffix) {
  static std::atomic<int> count = 0;
  std::string seconds = std::to_string(static_cast<std::int64_t>(time));
  if (seconds.size() < 10) seconds.insert(0, 10 - seconds.size(), '0');
  return "events.out.tfevents." + seconds + "." + host() + "." + std::to_string(::getpid()) + "." +
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

/// One value under a tag; `value` is the fields of Summary.Value beside it.
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

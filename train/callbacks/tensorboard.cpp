/// The callback that writes TensorBoard's event files.
#include <cmath>

#include "ferrite/train/callbacks.h"

namespace ferrite::train {

namespace {

/// "1/weight" of "1.weight": TensorBoard shows what stands before a slash as one group.
std::string by_layer(std::string name) {
  const std::size_t dot = name.rfind('.');
  if (dot != std::string::npos) name[dot] = '/';
  return name;
}

}  // namespace

TensorBoard::TensorBoard(std::filesystem::path folder, TensorBoardOptions options)
    : folder_(std::move(folder)), options_(options) {
  if (options.histograms < 0)
    throw ValueError("TensorBoard: histograms must be at least 0, got " + std::to_string(options.histograms));
}

void TensorBoard::on_train_begin(Training& t) {
  if (!t.is_main()) return;
  training_ = std::make_shared<EventWriter>(folder_ / "train");
  validation_ = nullptr;
}

void TensorBoard::on_batch_end(Training& t) {
  if (options_.update_losses && t.is_main()) training_->scalar("update/loss", t.logs()["loss"], t.step());
}

void TensorBoard::on_epoch_end(Training& t) {
  if (!t.is_main()) return;
  const std::int64_t epoch = t.epoch() + 1;
  for (const auto& [name, value] : t.logs()) {
    const bool validation = name.starts_with("val_");
    if (validation && !validation_) validation_ = std::make_shared<EventWriter>(folder_ / "validation");
    (validation ? validation_ : training_)->scalar("epoch/" + (validation ? name.substr(4) : name), value, epoch);
  }
  if (options_.histograms == 0 || epoch % options_.histograms != 0) return;
  for (const auto& p : t.model().named_parameters()) training_->histogram(by_layer(p.name), p.variable.peek(), epoch);
}

}  // namespace ferrite::train

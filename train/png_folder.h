#pragma once
/// Folders of pictures as data sets. Like io/png.h a part of the package's component `png`.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "ferrite/io/png.h"
#include "ferrite/train/dataset.h"

namespace ferrite::train {

/// The options of `png_folder`: the channels of the pictures and a limit on their size.
struct PngFolderOptions {
  /// Number of channels of every picture: 1 (grey), 3 (red, green, blue), 4 (with opacity); 0: as many as its file has.
  int channels = 3;
  std::int64_t most_values = io::kMostPngValues;  ///< limit on C * H * W of a picture
};

/// The result of `png_folder`: a data set that reads pictures on demand, and the classes of its examples.
struct PngFolder {
  Dataset data;                      ///< examples (picture f32 [C, H, W] in 0..1, class i64 [])
  std::vector<std::string> classes;  ///< name of each class; a label is a position in it
  Tensor labels;                     ///< class of each example, i64 [N], for `split` and `balanced_weights`
};

/// Returns a data set of the PNG files under a folder that has a folder for each class (io::list_class_folders: classes
/// sorted by name, then files). The files are listed now and read on demand, so the threads of a DataLoader decode
/// them. Grey becomes colour by repetition, and colour becomes grey as 0.299 red + 0.587 green + 0.114 blue; opacity is
/// left out, or is 1 for a file without it.
///
///   const auto [pictures, classes, labels] = train::png_folder("flowers");
///   const train::DataLoader loader(pictures, {.batch_size = 32, .threads = 2});
///
/// Pictures of different sizes do not fit in a batch: resize them with `map`. Throws ValueError for another number of
/// channels, and what io::list_class_folders throws; reading an example throws what io::read_png throws.
PngFolder png_folder(const std::filesystem::path& root, const PngFolderOptions& options = {});

/// Converts a picture f32 [C, H, W], C in 1..4, to 1, 3 or 4 channels by the rules of `png_folder`; 0 channels: returns
/// it as it is. Throws ShapeError for another shape, ValueError for another number of channels.
Tensor with_channels(const Tensor& picture, int channels);

}  // namespace ferrite::train

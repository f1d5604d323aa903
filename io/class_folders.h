#pragma once
/// Data sets that are folders: one folder for each class, with the files of that class in it.
#include <filesystem>
#include <string>
#include <vector>

#include "ferrite/tensor/tensor.h"

namespace ferrite::io {

/// The N files of a data set and the class of each.
struct ClassFolders {
  std::vector<std::filesystem::path> files{};  ///< class by class, sorted within a class
  Tensor labels{};                             ///< i64 [N], positions in `classes`
  std::vector<std::string> classes{};          ///< the names of the folders, sorted by their bytes
};

/// Lists the files under each folder in `root`, as torchvision's ImageFolder does: subfolders of a class belong to it.
/// Entries whose names begin with a dot are skipped, links to folders inside a class are not followed, and of files
/// only those with one of the `endings` (".png", compared without case) are listed, or all if `endings` is empty. No
/// file is opened.
///
/// Throws IoError when `root` is not a folder or cannot be read, when it has no folders, and for a class without such
/// files.
ClassFolders list_class_folders(const std::filesystem::path& root, const std::vector<std::string>& endings = {});

}  // namespace ferrite::io

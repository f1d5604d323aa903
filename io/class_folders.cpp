/// Lists folders of classes in an order that does not depend on the file system.
#include "ferrite/io/class_folders.h"

#include <algorithm>
#include <system_error>

#include "ferrite/io/detail/io_text.h"

namespace ferrite::io {
namespace {

namespace fs = std::filesystem;

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

bool is_hidden(const fs::path& path) { return path.filename().native().starts_with('.'); }

bool wanted(const fs::directory_entry& entry, const std::vector<std::string>& endings) {
  std::error_code ignored;
  if (is_hidden(entry.path()) || !entry.is_regular_file(ignored)) return false;
  const std::string name = lower(entry.path().filename().string());
  return endings.empty() ||
         std::ranges::any_of(endings, [&](const std::string& ending) { return name.ends_with(lower(ending)); });
}

[[noreturn]] void refuse_listing(const fs::path& folder, const std::error_code& error) {
  detail::refuse(detail::shown(folder), "cannot list the folder: " + error.message());
}

std::vector<fs::path> classes_in(const fs::path& root) {
  std::vector<fs::path> folders;
  std::error_code error, ignored;
  for (fs::directory_iterator at(root, error), end; !error && at != end; at.increment(error))
    if (!is_hidden(at->path()) && at->is_directory(ignored)) folders.push_back(at->path());
  if (error) refuse_listing(root, error);
  std::ranges::sort(folders, {}, [](const fs::path& path) { return path.filename().native(); });
  return folders;
}

std::vector<fs::path> files_in(const fs::path& folder, const std::vector<std::string>& endings) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (is_hidden(at->path())) at.disable_recursion_pending();
    if (wanted(*at, endings)) files.push_back(at->path());
  }
  if (error) refuse_listing(folder, error);
  std::ranges::sort(files);
  return files;
}

}  // namespace

ClassFolders list_class_folders(const fs::path& root, const std::vector<std::string>& endings) {
  ClassFolders all;
  std::vector<std::int64_t> labels;
  for (const fs::path& folder : classes_in(root)) {
    const std::vector<fs::path> files = files_in(folder, endings);
    if (files.empty())
      detail::refuse(detail::shown(folder),
                     "a class without files" +
                         std::string(endings.empty() ? "" : " of the endings that are asked for") +
                         "; remove the folder, or begin its name with a dot");
    labels.insert(labels.end(), files.size(), static_cast<std::int64_t>(all.classes.size()));
    all.files.insert(all.files.end(), files.begin(), files.end());
    all.classes.push_back(folder.filename().string());
  }
  if (all.classes.empty()) detail::refuse(detail::shown(root), "no folders of classes in it");
  all.labels = Tensor::from(labels, {static_cast<std::int64_t>(labels.size())});
  return all;
}

}  // namespace ferrite::io

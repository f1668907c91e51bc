#pragma once

#include <filesystem>
#include <string>

namespace gdrbench::cli {

/// Throws UsageError where no picture could be written under that name: its ending, or its folder.
void check_picture(const std::filesystem::path& file);

/// Has hwloc's lstopo draw its own XML document; the format is that of the file's ending. Complete or absent.
/// Throws Unavailable where lstopo is not installed or cannot write that format, and names the package.
void draw_picture(const std::string& xml, const std::filesystem::path& file);

}  // namespace gdrbench::cli

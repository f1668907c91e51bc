#pragma once

#include <string>

#include "doctor/facts.hpp"
#include "doctor/finding.hpp"

/// Small things that checks share.
namespace gdrbench::doctor {

/// A file of the root and its text, or why there is none.
inline Evidence evidence(const topology::Root& root, const std::string& path) {
  const topology::FileText file = root.read(path, 256);
  return {"/" + path, file.present() ? file.text : std::string(to_string(file.state))};
}

/// Whether a file, folder or device node is there.
inline Evidence presence(const topology::Root& root, const std::string& path) {
  return {"/" + path, std::string(to_string(root.state(path)))};
}

/// The finding with the name of a thing put in the place that its text and fix keep for it: "<netdev>".
inline Finding named(Finding finding, const std::string& place, const std::string& name) {
  for (std::string* const text : {&finding.text, &finding.fix})
    for (std::size_t at = 0; (at = text->find(place, at)) != std::string::npos; at += name.size())
      text->replace(at, place.size(), name);
  return finding;
}

}  // namespace gdrbench::doctor

#pragma once

#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace gdrbench {

/// What `nvidia-smi topo -m` prints: a cell for each pair of columns, and which RDMA device a NIC column is.
struct NvidiaSmiMatrix {
  std::map<std::pair<std::string, std::string>, std::string> cells;  ///< {"GPU0", "NIC1"}: "PIX"
  std::map<std::string, std::string> devices;                        ///< "NIC1": "mlx5_1"
};

namespace nvidia_smi {

// Without the escape sequences that underline the head.
inline std::string plain(const std::string& text) {
  std::string kept;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\x1b') {
      while (at < text.size() && text[at] != 'm') ++at;
    } else if (text[at] != '\r') {
      kept += text[at];
    }
  }
  return kept;
}

inline bool is_device(const std::string& word) {
  const bool numbered = word.starts_with("GPU") || word.starts_with("NIC");
  return word.starts_with("mlx") || (numbered && word.size() > 3 && word[3] >= '0' && word[3] <= '9');
}

// What comes after the devices, "CPU Affinity" first, is of no use here.
inline std::vector<std::string> columns(const std::string& head) {
  std::vector<std::string> names;
  std::istringstream words(head);
  for (std::string word; words >> word && is_device(word);) names.push_back(word);
  return names;
}

}  // namespace nvidia_smi

inline NvidiaSmiMatrix parse_nvidia_smi_matrix(const std::string& output) {
  NvidiaSmiMatrix matrix;
  std::vector<std::string> columns;
  std::istringstream lines(nvidia_smi::plain(output));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string row, cell;
    if (!(words >> row)) continue;
    if (columns.empty()) {
      columns = nvidia_smi::columns(line);
    } else if (row.ends_with(":")) {  // the legend of NICs, "NIC0: mlx5_0"
      row.pop_back();
      if (words >> cell) matrix.devices[row] = cell;
    } else if (nvidia_smi::is_device(row)) {
      for (const std::string& column : columns)
        if (words >> cell) matrix.cells[{row, column}] = cell;
    }
  }
  for (const std::string& column : columns)  // of drivers before NICs had numbers
    if (column.starts_with("mlx")) matrix.devices[column] = column;
  return matrix;
}

}  // namespace gdrbench

#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace gdrbench::doctor {

/// In order of weight: the worst of a report gives its exit status.
enum class Verdict { ok, info, unknown, warn, fail };

/// "ok", "info", "unknown", "warn", "fail".
std::string_view to_string(Verdict verdict);

/// Where a check looked, and what it saw there.
struct Evidence {
  std::string source;  ///< "/sys/module/nvidia_peermem/version", "CUDA", "ibv_reg_dmabuf_mr(fd -1) on mlx5_0"
  std::string value;   ///< "absent", "1", "EBADF"
};

/// What a check has to say of one thing.
struct Finding {
  std::string check;    ///< "peermem"
  std::string cause;    ///< identifier within the check, "not_loaded"; empty when all is well
  std::string subject;  ///< "GPU 0000:bb:00.0", "mlx5_0 port 1"; empty for the machine
  Verdict verdict = Verdict::ok;
  std::vector<Evidence> evidence;
  std::string text;  ///< the cause, or what is right, in a sentence
  std::string fix;   ///< command or setting; empty where none is needed
  std::string risk;  ///< what the fix risks; empty where nothing
  /// The finding that this one follows from, "peermem/not_loaded", where it is the same trouble seen again.
  std::string explained_by{};
};

nlohmann::json to_json(const Finding& finding);

}  // namespace gdrbench::doctor

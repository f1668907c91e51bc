// Preloaded: sends the signals that GDRBENCH_TEST_SIGNALS lists ("2,15") to the process when it makes the
// folder of a recording that is not whole yet.

#include <dlfcn.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

extern "C" int mkdir(const char* path, mode_t mode) {
  using Mkdir = int (*)(const char*, mode_t);
  static const auto real = reinterpret_cast<Mkdir>(dlsym(RTLD_NEXT, "mkdir"));
  const int result = real(path, mode);
  const std::size_t length = std::strlen(path);
  const char* const mark = std::strstr(path, ".partial-");
  const char* list = std::getenv("GDRBENCH_TEST_SIGNALS");
  if (mark == nullptr || std::memchr(mark, '/', length - static_cast<std::size_t>(mark - path)) != nullptr)
    return result;
  while (list != nullptr && *list != '\0') {
    char* end = nullptr;
    std::raise(static_cast<int>(std::strtol(list, &end, 10)));
    list = *end == ',' ? end + 1 : end;
  }
  return result;
}

#include "abi/guard.hpp"

#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>

#include "nic/limits.hpp"

namespace gdrbench::softverbs {

int errno_of_exception(const char* verb) {
  const auto tell = [verb](const std::exception& error) {
    std::fprintf(stderr, "%s: %s: %s\n", device_name, verb, error.what());
  };
  try {
    throw;
  } catch (const Refused& refused) {
    return refused.error;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  } catch (const std::system_error& error) {
    tell(error);
    return error.code().value();
  } catch (const std::invalid_argument& error) {
    tell(error);
    return EINVAL;
  } catch (const std::exception& error) {
    tell(error);
    return EIO;
  }
}

}  // namespace gdrbench::softverbs

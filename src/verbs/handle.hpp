#pragma once

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

namespace gdrbench::verbs {

/// Whatever an object must not outlive.
using Parent = std::shared_ptr<const void>;

/// Deleter of a verbs object. `Call` names and makes the destroying call, which returns 0 on success.
///
/// The parents live in the deleter because unique_ptr's move-assignment destroys the old object before it
/// replaces the old deleter: a child goes before its parents on every way out.
template <class Call>
struct Destroy {
  std::array<Parent, 2> parents;

  template <class T>
  void operator()(T* object) const noexcept {
    const int returned = Call::destroy(object);
    if (returned == 0) return;
    const int code = returned > 0 ? returned : errno;
    const char* const code_name = strerrorname_np(code);
    std::fprintf(stderr, "gdrbench: %s: %s (%d)\n", Call::name, code_name != nullptr ? code_name : "?", code);
  }
};

/// Sole owner of a verbs object; shares its parents.
template <class T, class Call>
using Handle = std::unique_ptr<T, Destroy<Call>>;

template <class Call, class T>
Handle<T, Call> own(T* object, Parent parent = nullptr, Parent other = nullptr) {
  return Handle<T, Call>(object, Destroy<Call>{{std::move(parent), std::move(other)}});
}

}  // namespace gdrbench::verbs

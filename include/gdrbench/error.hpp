#pragma once

#include <stdexcept>
#include <string>

namespace gdrbench {

/// Exit status of the program; each error type carries the one it leads to.
enum class ExitStatus : int {
  done = 0,
  failed = 1,       ///< a measurement or a verification failed
  usage = 2,        ///< wrong flag, size, address or file
  unavailable = 3,  ///< a required path cannot run here
  peer_lost = 4,
  interrupted = 130,
};

/// Base of all errors thrown by the library. The text says what was tried, on what, what came back and what
/// usually causes it.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& text, ExitStatus status = ExitStatus::failed)
      : std::runtime_error(text), status_(status) {}
  ExitStatus status() const { return status_; }

 private:
  ExitStatus status_;
};

/// A system call or an ibv_* call that reports by errno failed. Text: "<tried>: <ENAME> (<strerror>)[;
/// <hint>]".
class SystemError : public Error {
 public:
  SystemError(int errno_value, const std::string& tried, const std::string& hint = "");
  int code() const { return code_; }

 private:
  int code_;
};

/// A CUDA runtime or driver call failed. Text: "<tried>: <CUDA_ERROR_NAME> (<description>)[; <hint>]".
class CudaError : public Error {
 public:
  CudaError(int code, const std::string& name, const std::string& tried, const std::string& hint = "");
  int code() const { return code_; }

 private:
  int code_;
};

/// Wrong input by the user; the text names the value, its place and what is accepted.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& text) : Error(text, ExitStatus::usage) {}
};

/// Something that this machine or its peer lacks; the text is the reason why a path is skipped.
class Unavailable : public Error {
 public:
  explicit Unavailable(const std::string& reason) : Error(reason, ExitStatus::unavailable) {}
};

/// The other end vanished, stopped answering, or broke the protocol.
class PeerLost : public Error {
 public:
  explicit PeerLost(const std::string& text) : Error(text, ExitStatus::peer_lost) {}
};

/// Ctrl-C or SIGTERM.
class Interrupted : public Error {
 public:
  Interrupted() : Error("interrupted", ExitStatus::interrupted) {}
};

/// A run was not over when its deadline came.
class OutOfTime : public Error {
 public:
  OutOfTime() : Error("the run was not over when its time was up") {}
};

/// Symbolic name of an errno value, "EFAULT"; "errno 9999" when it has none.
std::string errno_name(int errno_value);

}  // namespace gdrbench

#include "wire/socket.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <memory>
#include <thread>

#include "gdrbench/error.hpp"
#include "gdrbench/interrupt.hpp"

namespace gdrbench::wire {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A termination signal may be delivered to another thread and then interrupts no system call here.
constexpr milliseconds interrupt_check_interval{100};

struct FreeAddressList {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, FreeAddressList>;

struct Resolution {
  int status = 0;  ///< of getaddrinfo
  AddressList addresses;
};

std::string without_brackets(const std::string& host) {
  return host.size() > 2 && host.front() == '[' && host.back() == ']' ? host.substr(1, host.size() - 2)
                                                                      : host;
}

std::string format_address(const std::string& host, unsigned port) {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

std::string format_address(const Address& address) {
  return format_address(without_brackets(address.host), address.port);
}

Resolution look_up(const Address& address, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* list = nullptr;
  Resolution found;
  found.status = getaddrinfo(without_brackets(address.host).c_str(), std::to_string(address.port).c_str(),
                             &hints, &list);
  if (found.status == 0) found.addresses.reset(list);
  return found;
}

// getaddrinfo has no deadline of its own and a dead name server holds it up for tens of seconds, so names
// (not numeric addresses) are looked up in a thread that may outlive the caller.
AddressList resolve(const Address& address, Deadline deadline) {
  Resolution numeric = look_up(address, AI_NUMERICHOST);
  if (numeric.status == 0) return std::move(numeric.addresses);

  std::packaged_task<Resolution()> task([address] { return look_up(address, 0); });
  std::future<Resolution> pending = task.get_future();
  std::thread(std::move(task)).detach();
  while (pending.wait_for(20ms) != std::future_status::ready) {
    throw_if_interrupted();
    if (steady_clock::now() >= deadline)
      throw Error(
          fmt::format("looking up host '{}': no answer from the name service in time; give a numeric "
                      "address or check /etc/resolv.conf",
                      address.host));
  }
  Resolution found = pending.get();
  if (found.status != 0)
    throw UsageError(
        fmt::format("looking up host '{}': {}; check its spelling, /etc/hosts and the name service",
                    address.host, gai_strerror(found.status)));
  return std::move(found.addresses);
}

void set_option(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof value);
}

// 0 and a connected `out`, or an errno value.
int connect_one(const addrinfo& to, Deadline deadline, FileDescriptor& out) {
  FileDescriptor fd(::socket(to.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return errno;
  set_option(fd.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  if (::connect(fd.get(), to.ai_addr, to.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return errno;
    if (!wait_for(fd.get(), POLLOUT, deadline)) return ETIMEDOUT;
    int failure = 0;
    socklen_t length = sizeof failure;
    getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failure, &length);
    if (failure != 0) return failure;
  }
  out = std::move(fd);
  return 0;
}

[[noreturn]] void throw_gone(int failure, const std::string& tried) {
  const std::string hint = lost_hint(failure);
  throw PeerLost(fmt::format("{}: the connection is gone: {} ({}){}{}", tried, errno_name(failure),
                             std::strerror(failure), hint.empty() ? "" : "; ", hint));
}

struct Name {
  std::string host = "unknown";
  unsigned port = 0;
};

using NameCall = int (*)(int, sockaddr*, socklen_t*);

Name socket_name(int fd, NameCall call) {
  sockaddr_storage storage{};
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  socklen_t length = sizeof storage;
  Name name;
  if (call(fd, address, &length) != 0) return name;
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (getnameinfo(address, length, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) !=
      0)
    return name;
  name.host = host;
  name.port = static_cast<unsigned>(std::stoul(port));
  // A socket that listens on [::] sees IPv4 peers as mapped addresses; rdma_cm and people want the IPv4 one.
  constexpr std::string_view mapped = "::ffff:";
  if (name.host.starts_with(mapped) && name.host.find('.') != std::string::npos)
    name.host.erase(0, mapped.size());
  return name;
}

}  // namespace

bool wait_for(int fd, short events, Deadline deadline) {
  for (;;) {
    throw_if_interrupted();
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    const auto slice = std::clamp(left, 0ms, interrupt_check_interval);
    pollfd entry{fd, events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(slice.count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) throw SystemError(errno, fmt::format("poll on descriptor {}", fd));
    if (ready == 0 && left <= slice) return false;
  }
}

void Socket::send_all(std::span<const std::byte> data, Deadline deadline, const std::string& tried) {
  while (!data.empty()) {
    const ssize_t sent = ::send(fd(), data.data(), data.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      data = data.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!wait_for(fd(), POLLOUT, deadline))
        throw PeerLost(fmt::format("{}: the other end takes no data (timed out)", tried));
    } else if (errno != EINTR) {
      throw_gone(errno, tried);
    }
  }
}

void Socket::receive_all(std::span<std::byte> data, Deadline deadline, const std::string& tried) {
  while (!data.empty()) {
    const ssize_t received = ::recv(fd(), data.data(), data.size(), 0);
    if (received > 0) {
      data = data.subspan(static_cast<std::size_t>(received));
    } else if (received == 0) {
      throw PeerLost(fmt::format("{}: the other end closed the connection", tried));
    } else if (errno == EAGAIN) {
      if (!wait_for(fd(), POLLIN, deadline))
        throw PeerLost(fmt::format("{}: the other end is silent (timed out)", tried));
    } else if (errno != EINTR) {
      throw_gone(errno, tried);
    }
  }
}

std::string Socket::remote_address() const {
  const Name name = socket_name(fd(), ::getpeername);
  return format_address(name.host, name.port);
}

std::string Socket::local_address() const {
  const Name name = socket_name(fd(), ::getsockname);
  return format_address(name.host, name.port);
}

std::string Socket::local_host() const {
  return socket_name(fd(), ::getsockname).host;
}
std::string Socket::remote_host() const {
  return socket_name(fd(), ::getpeername).host;
}

Socket connect_tcp(const Address& address, Deadline deadline) {
  const AddressList addresses = resolve(address, deadline);
  int left = 0;
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) ++left;
  int failure = 0;
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next, --left) {
    // An address that swallows packets must leave time for the next one.
    const auto now = steady_clock::now();
    const Deadline share = now + std::max(deadline - now, steady_clock::duration::zero()) / left;
    FileDescriptor fd;
    const int result = connect_one(*a, share, fd);
    if (result == 0) return Socket(std::move(fd));
    // Of several addresses, a refusal tells more than "no route", which is what a host without IPv6 says.
    if (failure == 0 || result == ECONNREFUSED || result == ETIMEDOUT) failure = result;
  }
  throw SystemError(failure, fmt::format("connecting to {}", format_address(address)),
                    connect_hint(failure, format_address(address), address.port));
}

Listener::Listener(const Address& address) {
  const AddressList addresses = resolve(address, after(5s));
  int failure = 0;
  for (const addrinfo* a = addresses.get(); a != nullptr && !fd_; a = a->ai_next) {
    FileDescriptor fd(::socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd) {
      failure = errno;
      continue;
    }
    set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (a->ai_family == AF_INET6) set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
    if (::bind(fd.get(), a->ai_addr, a->ai_addrlen) == 0 && ::listen(fd.get(), SOMAXCONN) == 0)
      fd_ = std::move(fd);
    else
      failure = errno;
  }
  if (!fd_)
    throw SystemError(failure, fmt::format("listening on {}", format_address(address)), listen_hint(failure));
  port_ = static_cast<std::uint16_t>(socket_name(fd_.get(), ::getsockname).port);
}

Socket Listener::accept(Deadline deadline) {
  try {
    while (wait_for(fd_.get(), POLLIN, deadline)) {
      FileDescriptor fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (fd) {
        set_option(fd.get(), IPPROTO_TCP, TCP_NODELAY, 1);
        return Socket(std::move(fd));
      }
      // Out of descriptors or memory: the connection stays queued, so poll would return at once for ever.
      const int error = errno;
      if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) {
        std::this_thread::sleep_for(50ms);
        throw SystemError(error, "cannot accept a connection", accept_hint(error));
      }
    }
  } catch (const Interrupted&) {  // an empty socket says so
  }
  return {};
}

namespace {

// Of any call that makes a descriptor.
std::string resource_hint(int errno_value) {
  switch (errno_value) {
    case EMFILE:
      return "raise ulimit -n";
    case ENFILE:
      return "the whole machine has too many files open: raise fs.file-max, or end what holds them";
    case ENOBUFS:
    case ENOMEM:
      return "the kernel has no memory left for sockets";
    default:
      return "";
  }
}

}  // namespace

std::string connect_hint(int errno_value, const std::string& address, unsigned port) {
  switch (errno_value) {
    case ECONNREFUSED:
      return fmt::format(
          "nothing listens on {}: start `gdrbench serve` there, or check the port; a server listens on "
          "127.0.0.1 only unless told --bind",
          address);
    case ETIMEDOUT:
      return fmt::format("the host is down, or a firewall drops TCP port {}", port);
    case EHOSTUNREACH:
      return "no route to that address, or no host answers for it: check the address, the routes of this "
             "host, "
             "and that the other is up (ping)";
    case ENETUNREACH:
      return "no route to that address: check it, and the routes of this host";
    case ENETDOWN:
      return "the network interface towards it is down: see `ip link`";
    case EADDRNOTAVAIL:
      return "no local port is free, or no local address leads there: see `ss -s` and `ip address`";
    case ECONNRESET:
      return fmt::format("something other than gdrbench may listen on port {}, or a firewall resets it",
                         port);
    case EACCES:
    case EPERM:
      return "a local firewall rule forbids it";
    case EAFNOSUPPORT:
      return "this host has no such kind of address (IPv6 may be disabled): give the other kind";
    default:
      return resource_hint(errno_value);
  }
}

std::string listen_hint(int errno_value) {
  switch (errno_value) {
    case EADDRINUSE:
      return "another server listens there already: stop it, or choose another --port";
    case EADDRNOTAVAIL:
      return "no interface of this host has that address: see `ip address`, or use --bind 0.0.0.0";
    case EACCES:
      return "ports below 1024 need privileges: choose another --port";
    case EAFNOSUPPORT:
      return "this host has no such kind of address (IPv6 may be disabled): give the other kind to --bind";
    default:
      return resource_hint(errno_value);
  }
}

std::string accept_hint(int errno_value) {
  return resource_hint(errno_value);
}

std::string lost_hint(int errno_value) {
  switch (errno_value) {
    case ECONNRESET:
    case EPIPE:
      return "the other end's process ended or was killed: look at its output";
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return "the other host is gone, or the network between: ping it";
    case ENETDOWN:
      return "a network interface went down: see `ip link`";
    default:
      return "";
  }
}

}  // namespace gdrbench::wire

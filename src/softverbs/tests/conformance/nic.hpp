#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "handles.hpp"

/// The device under test, and the fixture that opens it.
namespace gdrbench::conformance {

inline constexpr std::uint8_t port_number = 1;

/// Bytes of a path MTU; ibv_mtu counts powers of two from 256 at 1.
constexpr std::uint32_t mtu_bytes(ibv_mtu mtu) {
  return 128U << static_cast<unsigned>(mtu);
}

/// $RDMA_DEVICE, else the name of the first device; empty where there is none.
std::string device_name();

/// An open device, a protection domain of it, and what one needs to reach port 1 from port 1.
struct Nic {
  /// Throws std::system_error where a verb fails; std::runtime_error where the device is absent or offers no
  /// RoCE v2 GID.
  Nic();

  Context context;
  ProtectionDomain pd;
  ibv_device_attr attributes{};
  ibv_port_attr port{};
  int gid_index = 0;  ///< RoCE v2; of an IPv4 address where there is one
  ibv_gid gid{};

  /// The address of the port itself.
  ibv_ah_attr self() const;
  std::uint32_t mtu() const { return mtu_bytes(port.active_mtu); }  ///< bytes
};

/// Opens the device anew for every test, so that each sees its own asynchronous events only. Skips the tests,
/// with the reason, where there is no RDMA device; where the environment names one, it must be there.
class Conformance : public testing::Test {
 protected:
  void SetUp() override;
  const Nic& nic() const { return *nic_; }

 private:
  std::optional<Nic> nic_;
};

/// The next asynchronous event, acknowledged; nothing when none comes within 20 s.
std::optional<ibv_async_event> next_event(const Nic& nic);
/// Whether an asynchronous event waits.
bool event_waits(const Nic& nic);

}  // namespace gdrbench::conformance

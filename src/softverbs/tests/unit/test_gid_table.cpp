#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>

#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "nic/device.hpp"

namespace gdrbench::softverbs {
namespace {

std::string text_of(const ibv_gid& gid) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(AF_INET6, gid.raw, text.data(), text.size());
  return text.data();
}

/// A list as getifaddrs gives it.
class Addresses {
 public:
  void add(const char* interface, const char* address, unsigned flags = IFF_UP | IFF_RUNNING) {
    Node& node = nodes_.emplace_back();
    node.name = interface;
    node.entry.ifa_name = node.name.data();
    node.entry.ifa_flags = flags;
    auto& ipv4 = reinterpret_cast<sockaddr_in&>(node.storage);
    auto& ipv6 = reinterpret_cast<sockaddr_in6&>(node.storage);
    if (address == nullptr) {
      node.storage.ss_family = AF_PACKET;
    } else if (inet_pton(AF_INET, address, &ipv4.sin_addr) == 1) {
      ipv4.sin_family = AF_INET;
    } else {
      ASSERT_EQ(inet_pton(AF_INET6, address, &ipv6.sin6_addr), 1) << address;
      ipv6.sin6_family = AF_INET6;
    }
    node.entry.ifa_addr = reinterpret_cast<sockaddr*>(&node.storage);
    if (nodes_.size() > 1) nodes_[nodes_.size() - 2].entry.ifa_next = &node.entry;
  }
  ifaddrs* list() { return nodes_.empty() ? nullptr : &nodes_.front().entry; }
  ifaddrs& last() { return nodes_.back().entry; }
  std::vector<std::string> gids() {
    std::vector<std::string> texts;
    for (const GidEntry& entry : gids_of(list())) texts.push_back(text_of(entry.gid));
    return texts;
  }

 private:
  struct Node {
    std::string name;
    sockaddr_storage storage{};
    ifaddrs entry{};
  };
  std::deque<Node> nodes_;
};

using Texts = std::vector<std::string>;

TEST(SoftverbsGidTable, OrdersAddressesAsRemotesPreferThem) {
  Addresses addresses;
  addresses.add("eth0", "fe80::1");
  addresses.add("eth0", "fd00::2");
  addresses.add("eth0", "2001:db8::3");
  addresses.add("eth0", "10.0.0.4");
  EXPECT_EQ(addresses.gids(), (Texts{"::ffff:10.0.0.4", "2001:db8::3", "fd00::2", "fe80::1"}));
}

TEST(SoftverbsGidTable, AnIpv4LinkLocalAddressIsNoRoutableOne) {
  Addresses addresses;
  addresses.add("eth0", "169.254.0.1");
  addresses.add("eth0", "fd00::2");
  EXPECT_EQ(addresses.gids(), (Texts{"fd00::2", "::ffff:169.254.0.1"}));
}

TEST(SoftverbsGidTable, LoopbackAddressesAreThereOnlyWhereNothingElseIs) {
  Addresses addresses;
  addresses.add("lo", "::1");
  addresses.add("lo", "127.0.0.1");
  EXPECT_EQ(addresses.gids(), (Texts{"::1", "::ffff:127.0.0.1"}));
  addresses.add("eth0", "fe80::1");
  EXPECT_EQ(addresses.gids(), Texts{"fe80::1"});
}

TEST(SoftverbsGidTable, AnAddressOfTheHostOnTheLoopbackInterfaceCounts) {
  Addresses addresses;
  addresses.add("lo", "127.0.0.1");
  addresses.add("lo", "10.0.0.1");
  EXPECT_EQ(addresses.gids(), Texts{"::ffff:10.0.0.1"});
}

TEST(SoftverbsGidTable, InterfacesThatAreDownDoNotCount) {
  Addresses addresses;
  addresses.add("eth0", "10.0.0.1", 0);
  addresses.add("eth1", "10.0.0.2");
  EXPECT_EQ(addresses.gids(), Texts{"::ffff:10.0.0.2"});
}

TEST(SoftverbsGidTable, AnInterfaceWithoutCarrierComesAfterThoseWithOne) {
  Addresses addresses;
  addresses.add("bridge0", "172.17.0.1", IFF_UP);
  addresses.add("eth0", "10.0.0.1");
  EXPECT_EQ(addresses.gids(), (Texts{"::ffff:10.0.0.1", "::ffff:172.17.0.1"}));
}

TEST(SoftverbsGidTable, NamesTheInterfaceAndItsIndexAlsoOfALabelledAddress) {
  Addresses addresses;
  addresses.add("lo:1", "10.0.0.1");
  const auto table = gids_of(addresses.list());
  ASSERT_EQ(table.size(), 1U);
  EXPECT_EQ(table[0].interface_name, "lo");
  EXPECT_EQ(table[0].interface, if_nametoindex("lo"));
  EXPECT_NE(table[0].interface, 0U);
}

TEST(SoftverbsGidTable, AnAddressThatIsListedTwiceIsOneEntry) {
  Addresses addresses;
  addresses.add("lo", "10.0.0.1");
  addresses.add("lo:1", "10.0.0.1");
  EXPECT_EQ(addresses.gids(), Texts{"::ffff:10.0.0.1"});
}

TEST(SoftverbsGidTable, PassesOverOtherFamiliesAndInterfacesWithoutAddress) {
  Addresses addresses;
  addresses.add("eth0", nullptr);
  addresses.add("tun0", "10.0.0.9");
  addresses.last().ifa_addr = nullptr;
  addresses.add("eth0", "10.0.0.1");
  EXPECT_EQ(addresses.gids(), Texts{"::ffff:10.0.0.1"});
}

TEST(SoftverbsGidTable, KeepsWithinTheLengthThatAGidIndexCanName) {
  Addresses addresses;
  for (int i = 0; i < 300; ++i)
    addresses.add("eth0", ("10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250)).c_str());
  EXPECT_EQ(gids_of(addresses.list()).size(), max_gids);
}

TEST(SoftverbsGidTable, NoAddressesAreAnEmptyTable) {
  EXPECT_TRUE(gids_of(nullptr).empty());
}

TEST(SoftverbsGidTable, FindsTheIndexOfAGid) {
  Addresses addresses;
  addresses.add("eth0", "10.0.0.1");
  addresses.add("eth0", "fd00::2");
  const auto table = gids_of(addresses.list());
  EXPECT_EQ(find_gid(table, table[1].gid), 1);
  ibv_gid other = table[1].gid;
  other.raw[15] ^= 1;
  EXPECT_EQ(find_gid(table, other), -1);
}

}  // namespace
}  // namespace gdrbench::softverbs

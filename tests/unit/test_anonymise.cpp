#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor/anonymise.hpp"
#include "doctor/kernel_log.hpp"

namespace gdrbench::doctor {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Anonymiser made() {
  return Anonymiser({.hosts = {"node-b.cluster.example.com"}, .users = {"alice", "root"}});
}

TEST(Anonymiser, replaces_hosts_and_users_as_whole_words_in_any_case) {
  Anonymiser anonymiser = made();
  EXPECT_EQ(anonymiser.text("node-b mlx5_0, NODE-B.cluster.example.com!"), "host1 mlx5_0, host1!");
  EXPECT_EQ(anonymiser.text("/dev/mapper/node--b-root at cluster.example.com"),
            "/dev/mapper/host1-root at example.org");
  EXPECT_EQ(anonymiser.text("/home/alice/x of root and malice"), "/home/user1/x of root and malice");
}

TEST(Anonymiser, keeps_the_kind_of_an_address_and_tells_different_ones_apart) {
  Anonymiser anonymiser = made();
  const std::string first = anonymiser.text("fe80:0000:0000:0000:0e42:a1ff:fe12:3456");
  EXPECT_THAT(first, StartsWith("fe80:0000:0000:0000:"));
  EXPECT_EQ(first.size(), 39U);
  EXPECT_EQ(anonymiser.text("fe80::e42:a1ff:fe12:3456"), "fe80::1");
  EXPECT_EQ(anonymiser.text("fe80::e42:a1ff:fe12:3457"), "fe80::2");
  EXPECT_THAT(anonymiser.text("fd93:1:2::7"), StartsWith("fd00::"));
  EXPECT_THAT(anonymiser.text("2a01:4f8::7"), StartsWith("2001:db8::"));
  EXPECT_EQ(anonymiser.text("::1 and :: and ff02::1"), "::1 and :: and ff02::1");
  EXPECT_THAT(anonymiser.text("peer 10.20.30.40, 10.20.30.41."), "peer 10.0.1.1, 10.0.1.2.");
  EXPECT_EQ(anonymiser.text("192.168.7.7"), "192.168.1.1");
  EXPECT_EQ(anonymiser.text("8.8.8.8"), "198.18.1.1");
  EXPECT_EQ(anonymiser.text("127.0.0.1 0.0.0.0 255.255.255.0"), "127.0.0.1 0.0.0.0 255.255.255.0");
}

TEST(Anonymiser, gives_a_mapped_gid_the_address_that_stands_for_its_ipv4_address) {
  Anonymiser anonymiser = made();
  EXPECT_EQ(anonymiser.text("10.20.30.40"), "10.0.1.1");
  EXPECT_EQ(anonymiser.text("0000:0000:0000:0000:0000:ffff:0a14:1e28"),
            "0000:0000:0000:0000:0000:ffff:0a00:0101");
  EXPECT_EQ(anonymiser.text("::ffff:10.20.30.40"), "::ffff:10.0.1.1");
}

TEST(Anonymiser, replaces_what_names_hardware) {
  Anonymiser anonymiser = made();
  EXPECT_EQ(anonymiser.text("0c:42:a1:12:34:56"), "02:00:00:00:00:01");
  EXPECT_EQ(anonymiser.text("0c42:a103:0012:3456"), "0200:0000:0000:0001");
  EXPECT_EQ(anonymiser.text("GPU-8F1A23B4-0000-1111-2222-333344445555"),
            "GPU-00000000-0000-4000-8000-000000000001");
  EXPECT_EQ(anonymiser.text("enx0c42a1123456"), "enx020000000001");
}

TEST(Anonymiser, leaves_alone_what_only_looks_alike) {
  Anonymiser anonymiser = made();
  for (const char* text :
       {"0000:bb:00.0", "0000:bb:00", "28.39.1002", "580.95.05", "12:34:56", "[   12.345678]",
        "0x00000000d0000000 0x00000000dfffffff 0x0000000000040200", "ffffffff,ffffffff",
        "0000:0000:0000:0000:0000:0000:0000:0000", "00:00:00:00:00:00", "std::string", "231:192"})
    EXPECT_EQ(anonymiser.text(text), text);
  EXPECT_EQ(anonymiser.text_with_versions("24.10.1.4"), "24.10.1.4");
}

TEST(Anonymise, keeps_of_the_command_line_what_counts_and_of_a_log_no_process) {
  RecordedTree tree;
  tree.add("proc/cmdline", RecordedTree::Kind::file,
           "BOOT_IMAGE=/vmlinuz root=UUID=1 ro iommu=pt intel_iommu=on password=secret nfsroot=1.2.3.4:/x\n");
  Answers answers;
  answers.kernel_log = "NVRM: Xid (PCI:0000:bb:00): 31, pid=12, name=secret_job, Ch 1";
  tree.add("answers.json", RecordedTree::Kind::file, to_json(answers).dump());
  const RecordedTree hidden = anonymise(tree, {});
  EXPECT_EQ(hidden.entries().at("proc/cmdline").content, "ro iommu=pt intel_iommu=on\n");
  EXPECT_THAT(hidden.entries().at("answers.json").content, HasSubstr("Xid (PCI:0000:bb:00): 31"));
  EXPECT_THAT(hidden.entries().at("answers.json").content, Not(HasSubstr("secret")));
  EXPECT_TRUE(hidden.entries().contains("README"));
}

TEST(KernelLog, keeps_the_lines_that_concern_us_as_plain_text) {
  const std::string log =
      "usb 1-1: new device\n"
      "nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client\n"
      "calibrate: liberty of lib_x\n"
      "mlx5_core 0000:bc:00.0: \x1b[31mlink down\n"
      "DMAR: [DMA Read] Request device\n";
  EXPECT_EQ(lines_that_concern(log),
            "nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client\n"
            "mlx5_core 0000:bc:00.0: ?[31mlink down\n"
            "DMAR: [DMA Read] Request device");
  EXPECT_EQ(lines_that_concern(""), "");
}

}  // namespace
}  // namespace gdrbench::doctor

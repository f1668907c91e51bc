#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor/facts/kernel.hpp"
#include "doctor/record/anonymise.hpp"
#include "unit/synthetic_facts.hpp"

namespace gdrbench::doctor {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Anonymiser example_anonymiser() {
  return Anonymiser({.hosts = {"node-b.cluster.example.com"}, .users = {"alice", "root"}});
}

TEST(Anonymiser, replaces_hosts_and_users_as_whole_words_in_any_case) {
  Anonymiser anonymiser = example_anonymiser();
  EXPECT_EQ(anonymiser.text("node-b mlx5_0, NODE-B.cluster.example.com!"), "host1 mlx5_0, host1!");
  EXPECT_EQ(anonymiser.text("/dev/mapper/node--b-root at cluster.example.com"),
            "/dev/mapper/host1-root at example.org");
  EXPECT_EQ(anonymiser.text("/home/alice/x of root and malice"), "/home/user1/x of root and malice");
}

TEST(Anonymiser, keeps_the_kind_of_an_address_and_tells_different_ones_apart) {
  Anonymiser anonymiser = example_anonymiser();
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
  Anonymiser anonymiser = example_anonymiser();
  EXPECT_EQ(anonymiser.text("10.20.30.40"), "10.0.1.1");
  EXPECT_EQ(anonymiser.text("0000:0000:0000:0000:0000:ffff:0a14:1e28"),
            "0000:0000:0000:0000:0000:ffff:0a00:0101");
  EXPECT_EQ(anonymiser.text("::ffff:10.20.30.40"), "::ffff:10.0.1.1");
}

TEST(Anonymiser, replaces_what_names_hardware) {
  Anonymiser anonymiser = example_anonymiser();
  EXPECT_EQ(anonymiser.text("0c:42:a1:12:34:56"), "02:00:00:00:00:01");
  EXPECT_EQ(anonymiser.text("0c42:a103:0012:3456"), "0200:0000:0000:0001");
  EXPECT_EQ(anonymiser.text("GPU-8F1A23B4-0000-1111-2222-333344445555"),
            "GPU-00000000-0000-4000-8000-000000000001");
  EXPECT_EQ(anonymiser.text("enx0c42a1123456"), "enx020000000001");
}

TEST(Anonymiser, leaves_alone_what_only_looks_alike) {
  Anonymiser anonymiser = example_anonymiser();
  for (const char* text :
       {"0000:bb:00.0", "0000:bb:00", "28.39.1002", "580.95.05", "12:34:56", "[   12.345678]",
        "0x00000000d0000000 0x00000000dfffffff 0x0000000000040200", "ffffffff,ffffffff",
        "0000:0000:0000:0000:0000:0000:0000:0000", "00:00:00:00:00:00", "std::string", "231:192"})
    EXPECT_EQ(anonymiser.text(text), text);
  EXPECT_EQ(anonymiser.text_with_versions("24.10.1.4"), "24.10.1.4");
}

TEST(Anonymiser, takes_names_for_names_in_free_text_only_and_no_common_word_for_one) {
  Anonymiser anonymiser({.hosts = {"pci", "node1", "vm", "rxe", "7"},
                         .users = {"nvidia", "class", "rdma", "core", "ab", "cafe1"}});
  const std::string log = "nvidia_peermem: rdma class core 7 ab pci 0000:7:00.0 rxe vm mlx5_core";
  EXPECT_EQ(anonymiser.text(log), log);
  EXPECT_EQ(anonymiser.text("cafe1 at node1"), "user1 at host1");
  EXPECT_EQ(anonymiser.kernel_text("sys/class/cafe1/node1"), "sys/class/cafe1/node1");
  EXPECT_EQ(anonymiser.text_with_versions("cafe1"), "cafe1");
}

TEST(Anonymiser, hides_whose_folder_it_is_and_what_lies_on_the_way_to_a_file) {
  Anonymiser anonymiser = example_anonymiser();
  EXPECT_EQ(anonymiser.text("open /home/bob/secret/job.so: denied"), "open /home/user1/job.so: denied");
  const std::string of_root = "/root";
  EXPECT_EQ(anonymiser.text("/nfs/home/bob, '" + of_root + "/secret/x' and " + of_root + "/y"),
            "/nfs/home/user1, '/home/user1/x' and /home/user1/y");
}

TEST(Anonymiser, replaces_addresses_without_colons_where_they_are_due_like_those_with) {
  Anonymiser anonymiser = example_anonymiser();
  EXPECT_EQ(anonymiser.addresses("0c42a1030012ABCD"), "0200000000000001");
  EXPECT_EQ(anonymiser.addresses("0x0c42a1030012abcd"), "0x0200000000000001");
  EXPECT_EQ(anonymiser.addresses("0c42:a103:0012:abcd"), "0200:0000:0000:0001");
  EXPECT_EQ(anonymiser.addresses("0c42a1123456"), "020000000001");
  EXPECT_EQ(anonymiser.addresses("0C:42:A1:12:34:56"), "02:00:00:00:00:01");
  EXPECT_EQ(anonymiser.addresses("fe800000000000000c42a1030012abcd"), "fe800000000000000000000000000001");
  EXPECT_EQ(anonymiser.addresses("0000000000000000"), "0000000000000000");
  EXPECT_EQ(anonymiser.text("GUID 0c42a1030012abcd\nRIP 0c42a1030012abce"),
            "GUID 0200000000000001\nRIP 0c42a1030012abce");
}

TEST(Anonymiser, keeps_of_a_group_what_many_machines_have) {
  Anonymiser anonymiser = example_anonymiser();
  EXPECT_EQ(anonymiser.group_path("/system.slice/secret.service/Secret.service"),
            "/system.slice/group1/group2");
  EXPECT_EQ(anonymiser.group_path("system.slice/secret.service/rdma.max"), "system.slice/group1/rdma.max");
  EXPECT_EQ(anonymiser.group_path("/"), "/");
  EXPECT_EQ(anonymiser.group_path("/../a..b"), "/../group3..");
}

TEST(PrivateNames, are_those_of_the_recorded_machine_too) {
  const TestFolder folder;
  RecordedTree tree;
  tree.add("proc/sys/kernel/hostname", RecordedTree::Kind::file, "recordedhost\n");
  tree.write(folder.path());
  const PrivateNames names = private_names(topology::Root(folder.path()));
  EXPECT_THAT(names.hosts, testing::Contains("recordedhost"));
  EXPECT_THAT(names.hosts, testing::Contains(topology::Root().read("proc/sys/kernel/hostname").text));
}

// What becomes of one file of a recording.
std::string recorded(const std::string& path, const std::string& content) {
  RecordedTree tree;
  tree.add(path, RecordedTree::Kind::file, content);
  return anonymise(tree, {.hosts = {"secrethost"}, .users = {"alice"}}).entries().at(path).content;
}

std::string recorded_log(const std::string& log) {
  Answers answers;
  answers.kernel_log = log;
  const std::string document = recorded("answers.json", to_json(answers).dump());
  return answers_from_json(nlohmann::json::parse(document)).kernel_log.value_or("");
}

TEST(Anonymise, keeps_only_parameters_of_the_command_line_with_known_keys) {
  EXPECT_EQ(recorded("proc/cmdline",
                     "pci_secret=1 dma.secret=1 iommux=1 nvidia.secret=1 mlx_secret=1 realloc_secret "
                     "pci=realloc,secrethost pcie_aspm=off nvidia-drm.modeset=1 hugepagesz=1G\n"),
            "pci=realloc,host1 pcie_aspm=off nvidia-drm.modeset=1 hugepagesz=1G\n");
}

TEST(Anonymise, keeps_of_kernel_lists_no_address_and_of_configurations_no_comment) {
  EXPECT_EQ(recorded("proc/kallsyms", "ffffffffc0a01230 T ib_register_client\t[ib_core]\n"),
            "0000000000000000 T ib_register_client\t[ib_core]\n");
  EXPECT_EQ(recorded("proc/modules", "nvidia 1234 2 nvidia_uvm, Live 0xffffffffc0a01000 (OE)\n"),
            "nvidia 1234 2 nvidia_uvm, Live 0x0000000000000000 (OE)\n");
  for (const char* file : {"etc/modules", "etc/modules-load.d/x.conf", "etc/modprobe.d/x.conf"})
    EXPECT_EQ(recorded(file, "# by bob\nnvidia-peermem # for carol\n  # dave\n"), "nvidia-peermem \n");
  EXPECT_EQ(recorded("etc/modprobe.d/x.conf", "install nvidia /opt/secret/run\noptions nvidia a=1\n"),
            "install nvidia\noptions nvidia a=1\n");
}

TEST(Anonymise, keeps_serial_numbers_programs_and_command_lines_out_of_texts) {
  EXPECT_EQ(recorded("proc/driver/nvidia/gpus/0000:1b:00.0/information",
                     "Model: \t H200\nSerial Number: \t 165012\nIRQ: 5\n"),
            "Model: \t H200\nSerial\nIRQ: 5\n");
  EXPECT_EQ(recorded("proc/driver/nvidia/version", "NVRM 580.95.05 (root@buildhost) Tue\n"),
            "NVRM 580.95.05 () Tue\n");
  EXPECT_EQ(recorded_log("NVRM: Xid (PCI:0000:bb:00): 31, pid=1, name=train secretmodel, Ch 1"),
            "NVRM: Xid (PCI:0000:bb:00): 31, pid=1, name=, Ch 1");
  EXPECT_EQ(recorded_log("NVRM: Xid 31, name=train secretmodel\nNVRM: GPU Board Serial Number: 165012\n"
                         "Kernel command line: iommu=pt password=secret\nNVRM: serialized"),
            "NVRM: Xid 31, name=\nNVRM: GPU Board Serial\nKernel command line\nNVRM: serialized");
  EXPECT_EQ(recorded_log("CPU: 3 PID: 1 Comm: secret job Tainted: P nvidia"),
            "CPU: 3 PID: 1 Comm:  Tainted: P nvidia");
}

TEST(Anonymise, keeps_of_topology_what_describes_the_model) {
  const std::string hidden = recorded("topology.xml",
                                      "<object local_memory=\"135000000000\">\n"
                                      "<info name=\"DMIProductName\" value=\"DGX\"/>\n"
                                      "<info name=\"DMISysVendor\" value=\"NVIDIA\"/>\n"
                                      "<info name=\"DMIBoardAssetTag\" value=\"secret\"/>\n"
                                      "<info name=\"DMIChassisVersion\" value=\"secret\"/>\n"
                                      "<info name=\"HostName\" value=\"secret\"/>\n"
                                      "<info name=\"OSRelease\" value=\"6.1.0\"/>\n"
                                      "<info name=\"NodeGUID\" value=\"0c42a1030012abcd\"/>\n"
                                      "<info name=\"SysImageGUID\" value=\"0c42:a103:0012:abcd\"/>\n");
  EXPECT_EQ(hidden,
            "<object local_memory=\"135000000000\">\n"
            "<info name=\"DMIProductName\" value=\"DGX\"/>\n"
            "<info name=\"DMISysVendor\" value=\"NVIDIA\"/>\n"
            "<info name=\"OSRelease\" value=\"6.1.0\"/>\n"
            "<info name=\"NodeGUID\" value=\"0200000000000001\"/>\n"
            "<info name=\"SysImageGUID\" value=\"0200:0000:0000:0001\"/>\n");
}

TEST(Anonymise, replaces_addresses_in_paths_links_contents_and_counters_alike) {
  RecordedTree tree;
  tree.add("sys/class/net/v10.9.8.7", RecordedTree::Kind::link, "../../devices/net/10.9.8.7");
  tree.add("sys/devices/net/10.9.8.7/ifindex", RecordedTree::Kind::file, "2\n");
  tree.add("sys/class/infiniband/rocex0c42a1123456/ports/1/gid_attrs/ndevs/0", RecordedTree::Kind::file,
           "10.9.8.7\n");
  Answers answers;
  answers.rdma.emplace_back().device = "rocex0c42a1123456";
  answers.counters_after["rocex0c42a1123456/1/out_of_sequence"] = 1;
  tree.add("answers.json", RecordedTree::Kind::file, to_json(answers).dump());
  const auto hidden = anonymise(tree, {}).entries();
  EXPECT_EQ(hidden.at("sys/class/net/v10.9.8.7").content, "../../devices/net/10.0.1.1");
  EXPECT_EQ(hidden.at("sys/devices/net/10.0.1.1/ifindex").content, "2\n");
  EXPECT_EQ(hidden.at("sys/class/infiniband/rocex020000000001/ports/1/gid_attrs/ndevs/0").content,
            "10.0.1.1\n");
  EXPECT_THAT(hidden.at("answers.json").content, HasSubstr("rocex020000000001/1/out_of_sequence"));
  EXPECT_THAT(hidden.at("answers.json").content, Not(HasSubstr("0c42a1123456")));
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

TEST(KernelLog, keeps_the_relevant_log_lines_us_as_plain_text) {
  const std::string log =
      "usb 1-1: new device\n"
      "nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client\n"
      "calibrate: liberty of lib_x\n"
      "mlx5_core 0000:bc:00.0: \x1b[31mlink down\n"
      "DMAR: [DMA Read] Request device\n";
  EXPECT_EQ(relevant_log_lines(log),
            "nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client\n"
            "mlx5_core 0000:bc:00.0: ?[31mlink down\n"
            "DMAR: [DMA Read] Request device");
  EXPECT_EQ(relevant_log_lines(""), "");
}

}  // namespace
}  // namespace gdrbench::doctor

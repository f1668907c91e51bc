#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <system_error>

#include "links.hpp"

namespace gdrbench::softverbs {
namespace {

using namespace test;

/// Runs in a process of its own, which ends with the result; `body` gets a pipe to write to.
class Child {
 public:
  explicit Child(const std::function<bool(int report)>& body) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category());
    report = Descriptor(ends[0]);
    const Descriptor write_end(ends[1]);
    pid = fork();
    if (pid == 0) _exit(body(write_end.get()) ? 0 : 1);
  }
  ~Child() {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }

  pid_t pid;
  Descriptor report;
};

TEST(SoftverbsLocality, FramesOfAProcessThatDiedAreStillThereAndItsDeathIsSeen) {
  Process here;
  const sockaddr_in6 address = here.address();
  const Child child([&](int) {
    Process process;
    std::unique_ptr<Link> link = dial(process, address, [] {}, {}).link;
    if (!link || !link->can_pull()) return false;
    while (!link->arm()) process.loop.wait(Clock::now() + 10s);
    for (std::uint32_t number = 1; number <= 100; ++number) {
      if (!try_add(*link, number, number * 10)) return false;
    }
    link->flush();
    while (link->next() != nullptr) link->consume();
    link->release();
    if (link->arm()) return false;
    _exit(0);  // no destructor runs
  });
  ASSERT_TRUE(wait_for({&here.loop}, [&] { return !here.requests.empty(); }));
  const auto link = here.requests.front().accept();
  ASSERT_NE(link, nullptr);
  ASSERT_TRUE(try_add(*link, 0, 8));
  link->flush();

  // It sleeps as far as the link knows, and is rung: a SIGPIPE would end this program.
  siginfo_t ended;
  ASSERT_EQ(waitid(P_PID, id_t(child.pid), &ended, WEXITED | WNOWAIT), 0);
  ASSERT_EQ(ended.si_status, 0);
  ASSERT_TRUE(try_add(*link, 1, 8));
  link->flush();

  std::uint32_t number = 1;
  EXPECT_TRUE(wait_for({&here.loop}, [&] {
    while (number <= 100 && try_take(*link, number, number * 10)) ++number;
    return link->next() == nullptr && link->broken();
  }));
  EXPECT_EQ(number, 101u);
}

TEST(SoftverbsLocality, MemoryOfAnotherProcessIsReadAsFarAsItGoes) {
  const std::size_t page = std::size_t(sysconf(_SC_PAGESIZE));
  const Child child([&](int report) {
    void* const place = mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    auto* const bytes = static_cast<std::byte*>(place);
    for (std::size_t i = 0; i < 2 * page; ++i) bytes[i] = pattern(3, i);
    munmap(bytes + 2 * page, page);
    our_locality(-1, -1);  // where Yama is, it lets us read
    if (write(report, &place, sizeof place) != sizeof place) return false;
    pause();
    return true;
  });
  void* place = nullptr;
  ASSERT_EQ(read(child.report.get(), &place, sizeof place), ssize_t(sizeof place));
  const auto address = reinterpret_cast<std::uint64_t>(place);

  std::vector<std::byte> ours(2 * page + 1);
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{9}, page + 5, 2 * page}) {
    std::fill(ours.begin(), ours.end(), std::byte{});
    ASSERT_EQ(copy_from_process(child.pid, address, ours.data(), length), 0) << length;
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < length; ++i) wrong += ours[i] != pattern(3, i);
    EXPECT_EQ(wrong, 0u) << length;
    EXPECT_EQ(ours[length], std::byte{}) << length;
  }
  EXPECT_EQ(copy_from_process(child.pid, address, ours.data(), 2 * page + 1), EFAULT);
  EXPECT_EQ(copy_from_process(child.pid, 0, ours.data(), 8), EFAULT);
  EXPECT_EQ(copy_from_process(child.pid, ~std::uint64_t{0} - 8, ours.data(), 64), EFAULT);
}

TEST(SoftverbsLocality, AProcessThatIsGoneIsNamedSo) {
  pid_t gone;
  {
    const Child child([](int) { return true; });
    gone = child.pid;
  }
  std::uint64_t ignored;
  EXPECT_EQ(copy_from_process(gone, reinterpret_cast<std::uint64_t>(&ignored), &ignored, sizeof ignored),
            ESRCH);
}

}  // namespace
}  // namespace gdrbench::softverbs

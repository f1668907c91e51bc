#include <algorithm>
#include <cstdio>
#include <gdrbench/session.hpp>
#include <gdrbench/version.hpp>
#include <thread>

// Serves itself over loopback and measures one small case.
int main() {
  gdrbench::ServeOptions options;
  options.port = 0;
  gdrbench::Server server(options);
  std::thread responder([&] { server.run(1); });
  gdrbench::RunResult run;
  {
    gdrbench::ConnectOptions connect;
    connect.port = server.port();
    gdrbench::Session session(connect);
    const gdrbench::Case c;
    run = session.open(c, c)->run({.iterations = 100, .warmup = 10, .seed = 1});
  }
  responder.join();
  std::sort(run.samples_us.begin(), run.samples_us.end());
  std::printf("gdrbench %s: tcp p50 %.1f us, verified %d\n", gdrbench::version,
              run.samples_us[run.samples_us.size() / 2], run.verified);
  return run.verified ? 0 : 1;
}

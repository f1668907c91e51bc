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
  if (run.ranks.size() != 2 || !run.ranks.front().latency_us) return 1;
  std::printf("gdrbench %s: tcp p50 %.1f us, verified %d\n", gdrbench::version,
              run.ranks.front().latency_us->p50, run.verified);
  return run.verified ? 0 : 1;
}

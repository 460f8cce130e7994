/* Stages processes for tests: what it is told to be, it is, until it is ended
   or ten minutes are over.

   stage init CMD...                        run CMD and reap everything, as process 1 does
   stage orphan|detached|attached K=V... -- ARGV...
     prints its process number (and port) on standard output first
     keys: deleted, stopped, spin=S, listen=BACKLOG, echo, term=ignore|exit0, lock=FILE,
           write=FILE, rss=MB, drop, children=N, zombie, respawn, vfork=S, comm=NAME, memfd, fds=N */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *opt(const char *key) {
  char name[64];
  snprintf(name, sizeof name, "STAGE_%s", key);
  return getenv(name);
}

static int num(const char *key, int other) { return opt(key) ? atoi(opt(key)) : other; }

static void bye(int s) { (void)s; _exit(0); }

static void drop(int s) {
  (void)s;
  if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)) _exit(9);
}

static void nothing(int s) { (void)s; }

static int listener(int backlog, int *port) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t n = sizeof a;
  if (fd < 0 || bind(fd, (void *)&a, sizeof a) || listen(fd, backlog) || getsockname(fd, (void *)&a, &n)) _exit(8);
  *port = ntohs(a.sin_port);
  return fd;
}

static void child(void) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGTERM, SIG_DFL);
  for (;;) pause();
}

static void respawn(char **argv) {
  signal(SIGTERM, SIG_DFL);
  for (;;) {
    pid_t c = fork();
    if (!c) {
      unsetenv("STAGE_RUN");
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      execl("/bin/sleep", "sleep", "600.125", (char *)0);
      _exit(7);
    }
    waitpid(c, 0, 0);
    usleep(100000);
  }
  (void)argv;
}

static void echo(int fd) {
  for (;;) {
    int c = accept(fd, 0, 0);
    char b[256];
    ssize_t n;
    while ((n = read(c, b, sizeof b)) > 0)
      if (write(c, b, n) < 0) break;
    close(c);
  }
}

/* be runs in the final process, after its own exec. */
static int be(char **argv) {
  int port = 0, fd = -1;
  signal(SIGHUP, opt("stopped") ? SIG_IGN : SIG_DFL);
  if (opt("comm")) prctl(PR_SET_NAME, opt("comm"));
  if (opt("term")) signal(SIGTERM, strcmp(opt("term"), "ignore") ? bye : SIG_IGN);
  if (opt("drop")) signal(SIGUSR1, drop);
  else signal(SIGUSR1, nothing);
  if (opt("deleted")) {
    char d[] = "/tmp/stage-XXXXXX";
    if (!mkdtemp(d) || chdir(d) || rmdir(d)) _exit(6);
  }
  if (opt("lock")) {
    int f = open(opt("lock"), O_RDWR | O_CREAT, 0600);
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (f < 0 || fcntl(f, F_SETLK, &l)) _exit(5);
  }
  if (opt("write") && open(opt("write"), O_WRONLY | O_CREAT, 0600) < 0) _exit(5);
  if (opt("rss")) {
    size_t n = (size_t)num("rss", 1) << 20;
    memset(mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, n);
  }
  if (opt("fds")) {
    struct rlimit r = {num("fds", 64), num("fds", 64)};
    setrlimit(RLIMIT_NOFILE, &r);
    while (open("/dev/null", O_RDONLY) >= 0) {}
    close(40);
  }
  if (opt("listen") || opt("echo")) fd = listener(num("listen", 8), &port);
  for (int i = 0; i < num("children", 0); i++)
    if (!fork()) child();
  if (opt("zombie")) {
    pid_t c = fork();
    if (!c) _exit(0);
    port = c;
  }
  usleep(20000);
  int out = num("OUT", -1);
  if (out >= 0) {
    dprintf(out, "%d %d\n", getpid(), port);
    close(out);
  }
  if (opt("respawn")) respawn(argv);
  if (opt("vfork")) {
    pid_t c = vfork();
    if (!c) {
      struct timespec t = {num("vfork", 20), 0};
      nanosleep(&t, 0);
      _exit(0);
    }
  }
  if (opt("stopped")) raise(SIGSTOP);
  if (opt("echo")) echo(fd);
  if (opt("spin")) {
    volatile unsigned long x = 0;
    time_t end = time(0) + num("spin", 20);
    if (nice(19) < 0) {}
    while (time(0) < end) for (int i = 0; i < 1000000; i++) x++;
  }
  for (int i = 0; i < 600; i++) sleep(1);
  return 0;
}

static void null_stdio(void) {
  int n = open("/dev/null", O_RDWR);
  for (int i = 0; i < 3; i++) dup2(n, i);
  if (n > 2) close(n);
}

static void become(const char *self, char **argv, int out) {
  char s[16];
  snprintf(s, sizeof s, "%d", out);
  setenv("STAGE_OUT", s, 1);
  setenv("STAGE_RUN", "1", 1);
  if (opt("memfd")) {
    int m = memfd_create("stage", 0), f = open(self, O_RDONLY);
    char b[65536];
    ssize_t n;
    while ((n = read(f, b, sizeof b)) > 0)
      if (write(m, b, n) != n) _exit(4);
    close(f);
    extern char **environ;
    fexecve(m, argv, environ);
  }
  execv(self, argv);
  _exit(3);
}

static int init(char **argv) {
  pid_t main = fork();
  int status = 0, code = 1;
  if (!main) {
    execvp(argv[0], argv);
    _exit(127);
  }
  for (;;) {
    pid_t p = wait(&status);
    if (p == main) {
      code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      return code;
    }
    if (p < 0 && errno == ECHILD) return code;
  }
}

int main(int argc, char **argv) {
  if (getenv("STAGE_RUN")) return be(argv);
  if (argc > 2 && !strcmp(argv[1], "init")) return init(argv + 2);
  char self[4096];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (argc < 3 || n < 0) return 2;
  self[n] = 0;
  const char *kind = argv[1];
  char **rest = argv + 2;
  for (; *rest && strcmp(*rest, "--"); rest++) {
    char *eq = strchr(*rest, '='), name[64];
    if (eq) *eq = 0;
    snprintf(name, sizeof name, "STAGE_%s", *rest);
    setenv(name, eq ? eq + 1 : "1", 1);
  }
  if (!*rest || !rest[1]) return 2;
  rest++;
  int p[2];
  if (pipe(p)) return 2;
  if (!strcmp(kind, "attached")) {
    int out = dup(1);
    int e = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; i++) if (!isatty(i)) dup2(e, i);
    close(e);
    close(p[0]);
    close(p[1]);
    become(self, rest, out);
  }
  if (!fork()) {
    setsid();
    if (fork()) _exit(0);
    close(p[0]);
    if (!strcmp(kind, "detached")) setsid();
    null_stdio();
    become(self, rest, p[1]);
  }
  close(p[1]);
  char b[64];
  n = read(p[0], b, sizeof b);
  if (n <= 0) return 1;
  if (write(1, b, n) != n) return 1;
  while (waitpid(-1, 0, WNOHANG) > 0) {}
  return 0;
}

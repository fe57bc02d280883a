/* test_service.c -- what the service manager is told, and what it may pass */

#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "daemon/service.h"
#include "loop/loop.h"

static char dir[] = "/tmp/test_service.XXXXXX";
static struct sockaddr_un control = {.sun_family = AF_UNIX}, other = {.sun_family = AF_UNIX};
static char lines[2048];

static void
keep_line(enum log_level level, const char *line)
{
	(void)level;
	snprintf(lines + strlen(lines), sizeof(lines) - strlen(lines), "%s\n", line);
}

/* ---- what is told ---- */

static int manager; /* the other end of NOTIFY_SOCKET */

static const char *
told(void)
{
	static char buf[256];
	ssize_t n = recv(manager, buf, sizeof(buf) - 1, MSG_DONTWAIT);

	buf[n > 0 ? n : 0] = '\0';
	return buf;
}

static void
be_told(void)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/notify", dir);
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(manager, (struct sockaddr *)&sun, sizeof(sun)), 0);
	setenv("NOTIFY_SOCKET", sun.sun_path, 1);
}

static void
be_told_no_more(void)
{
	char path[sizeof(control.sun_path)];

	snprintf(path, sizeof(path), "%s", getenv("NOTIFY_SOCKET"));
	unlink(path);
	unsetenv("NOTIFY_SOCKET");
	close(manager);
}

struct look {
	struct loop_timer *timer;
	struct loop *loop;
	bool looked;
	char seen[256];
};

static void
look(void *arg)
{
	struct look *l = arg;

	snprintf(l->seen, sizeof(l->seen), "%s", told());
	l->looked = true;
	loop_stop(l->loop);
}

static void
look_after(struct look *l, uint64_t after_ns)
{
	assert_int_equal(loop_timer_new(l->loop, look, l, &l->timer), 0);
	loop_timer_set(l->timer, after_ns);
}

/* Timers of one loop go in the order of their times, however slow the machine is: one that is set
 * just before the third, and one just behind it, look for the food. */
static void
watchdog(void **state)
{
	struct look before = {0}, behind = {0};
	struct service *service;
	struct loop *loop;

	(void)state;
	be_told();
	setenv("WATCHDOG_USEC", "300000", 1);
	assert_int_equal(loop_new(&loop), 0);
	before.loop = behind.loop = loop;
	look_after(&before, 95 * NSEC_PER_MSEC);
	assert_int_equal(service_new(loop, &service), 0);
	look_after(&behind, 105 * NSEC_PER_MSEC);

	assert_string_equal(told(), "WATCHDOG=1"); /* at once */
	while (!behind.looked)
		assert_int_equal(loop_run(loop), 0);
	assert_string_equal(before.seen, "");
	assert_string_equal(behind.seen, "WATCHDOG=1");

	usleep(150000); /* a loop that does not turn feeds nothing */
	assert_string_equal(told(), "");
	loop_turn(loop, 0);
	assert_string_equal(told(), "WATCHDOG=1");

	loop_timer_free(before.timer);
	loop_timer_free(behind.timer);
	assert_null(service_free(service));
	loop_free(loop);
	unsetenv("WATCHDOG_USEC");
	be_told_no_more();
}

static void
no_watchdog(void **state)
{
	struct service *service;
	struct loop *loop;

	(void)state;
	be_told();
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(service_new(loop, &service), 0);
	assert_string_equal(told(), "");
	assert_null(service_free(service));
	loop_free(loop);
	be_told_no_more();
}

static void
words(void **state)
{
	unsigned long long usec;

	(void)state;
	be_told();
	service_ready();
	assert_string_equal(told(), "READY=1");
	service_reloading();
	assert_int_equal(sscanf(told(), "RELOADING=1\nMONOTONIC_USEC=%llu", &usec), 1);
	assert_true(usec <= loop_now() / NSEC_PER_USEC);
	service_status("as it is");
	assert_string_equal(told(), "STATUS=as it is");
	service_stopping(30 * NSEC_PER_SEC); /* more than transfers may take */
	assert_string_equal(told(), "STOPPING=1\nEXTEND_TIMEOUT_USEC=40000000");
	be_told_no_more();
}

/* ---- what is passed ---- */

static int
unix_socket(int type, const struct sockaddr_un *sun)
{
	int fd = socket(AF_UNIX, type, 0);

	unlink(sun->sun_path);
	assert_int_equal(bind(fd, (const struct sockaddr *)sun, sizeof(*sun)), 0);
	return fd;
}

static int
listening(int fd)
{
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

static int
make_right(void)
{
	return listening(unix_socket(SOCK_STREAM, &control));
}

static int
make_elsewhere(void)
{
	return listening(unix_socket(SOCK_STREAM, &other));
}

static int
make_silent(void)
{
	return unix_socket(SOCK_STREAM, &control);
}

static int
make_packet(void)
{
	return listening(unix_socket(SOCK_SEQPACKET, &control));
}

static int
make_datagram(void)
{
	return unix_socket(SOCK_DGRAM, &control);
}

static int
make_tcp(void)
{
	return listening(socket(AF_INET, SOCK_STREAM, 0)); /* to a port that the kernel chooses */
}

static int
make_file(void)
{
	return open(dir, O_RDONLY);
}

/* Passes fds, as exec would; they are closed here. */
static int
pass(int n, const int *fds, const char *names, int *ret_fd)
{
	char number[12];

	for (int i = 0; i < n; i++) {
		/* From above, so that none is overwritten before its turn. */
		int high = fcntl(fds[i], F_DUPFD, 100);

		close(fds[i]);
		assert_int_equal(dup2(high, SD_LISTEN_FDS_START + i), SD_LISTEN_FDS_START + i);
		close(high);
	}
	snprintf(number, sizeof(number), "%d", getpid());
	setenv("LISTEN_PID", number, 1);
	snprintf(number, sizeof(number), "%d", n);
	setenv("LISTEN_FDS", number, 1);
	setenv("LISTEN_FDNAMES", names, 1);
	return service_control_socket(control.sun_path, ret_fd);
}

static void
nothing_passed(void **state)
{
	int fd = 7;

	(void)state;
	assert_int_equal(service_control_socket(control.sun_path, &fd), 0);
	assert_int_equal(fd, -1);
}

static void
right_one_passed(void **state)
{
	int made = make_right(), fd;

	(void)state;
	assert_int_equal(pass(1, &made, "io.rwriter", &fd), 0);
	assert_int_equal(fd, SD_LISTEN_FDS_START);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_null(getenv("LISTEN_FDS")); /* children are passed nothing */
	close(fd);
}

static void
wrong_one_passed(void **state)
{
	static const struct {
		int (*make)(void);
		const char *said;
	} CASES[] = {
	    {make_elsewhere, "a stream socket that listens on /tmp/test_service."},
	    {make_silent, "a stream socket that does not listen, of /tmp/test_service."},
	    {make_packet, "a packet socket that listens on /tmp/test_service."},
	    {make_datagram, "a datagram socket that does not listen, of /tmp/test_service."},
	    {make_tcp, "a stream socket that listens on 0.0.0.0:"},
	    {make_file, "no socket"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
		int made = CASES[i].make(), fd = 7;

		lines[0] = '\0';
		assert_int_equal(pass(1, &made, "web", &fd), -EINVAL);
		assert_int_equal(fd, 7);
		assert_non_null(strstr(lines, "passed descriptor 3, \"web\": "));
		assert_non_null(strstr(lines, CASES[i].said));
		assert_non_null(strstr(lines, control.sun_path));
		close(SD_LISTEN_FDS_START);
	}
}

static void
two_passed(void **state)
{
	int fds[] = {make_right(), make_tcp()}, fd = 7;

	(void)state;
	lines[0] = '\0';
	assert_int_equal(pass(2, fds, "io.rwriter:web", &fd), -EINVAL);
	assert_int_equal(fd, 7);
	assert_non_null(strstr(lines, "descriptor 3, \"io.rwriter\": a stream socket"));
	assert_non_null(strstr(lines, "descriptor 4, \"web\": a stream socket"));
	close(SD_LISTEN_FDS_START);
	close(SD_LISTEN_FDS_START + 1);
}

static void
nonsense_passed(void **state)
{
	int fd = 7;

	(void)state;
	lines[0] = '\0';
	setenv("LISTEN_PID", "many", 1);
	setenv("LISTEN_FDS", "1", 1);
	assert_int_equal(service_control_socket(control.sun_path, &fd), -EINVAL);
	assert_non_null(strstr(lines, "cannot be taken"));
	assert_int_equal(fd, 7);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(watchdog),
	    cmocka_unit_test(no_watchdog),
	    cmocka_unit_test(words),
	    cmocka_unit_test(nothing_passed),
	    cmocka_unit_test(right_one_passed),
	    cmocka_unit_test(wrong_one_passed),
	    cmocka_unit_test(two_passed),
	    cmocka_unit_test(nonsense_passed),
	};
	int failed;

	if (mkdtemp(dir) == NULL)
		return EXIT_FAILURE;
	snprintf(control.sun_path, sizeof(control.sun_path), "%s/io.rwriter", dir);
	snprintf(other.sun_path, sizeof(other.sun_path), "%s/other", dir);
	log_set_sink(keep_line);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(control.sun_path);
	unlink(other.sun_path);
	rmdir(dir);
	return failed;
}

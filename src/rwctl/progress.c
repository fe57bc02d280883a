/* progress.c -- a line on a terminal that is drawn over and over, or one for each of several peers
 *
 *	model.bin -> b  [##############......]  71 %  456 of 640 MiB  4.9 GiB/s  1 s
 *
 * Of several lines the cursor stands on the last one.
 */

#include "config.h"

#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "base/limits.h"
#include "base/text.h"
#include "rwctl/answer.h"
#include "rwctl/progress.h"

#define BAR_MAX   40
#define BAR_MIN   8
#define RATE_ROOM 20 /* columns kept for rate and time, lest the bar change with each digit */

struct row {       /* of a peer */
	int line;  /* from 1; 0: it has none on the screen */
	int drawn; /* columns of the line that stands there */
	/* the rate, smoothed */
	uint64_t last_ns, last_bytes;
	double rate; /* bytes per second; 0: not known yet */
};

struct progress {
	bool utf8, dumb; /* dumb: the cursor cannot go up */
	int lines;       /* on the screen */
	size_t done, files;
	size_t n;
	struct row rows[];
};

static bool
is_dumb(void)
{
	const char *term = getenv("TERM");

	return term == NULL || strcmp(term, "dumb") == 0;
}

struct progress *
progress_new(size_t peers)
{
	struct progress *p;

	if (!isatty(STDERR_FILENO))
		return NULL;
	p = calloc(1, sizeof(*p) + peers * sizeof(p->rows[0]));
	if (p == NULL)
		return NULL;
	p->n = peers;
	p->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	p->dumb = is_dumb();
	return p;
}

static int
smaller(int a, int b)
{
	return a < b ? a : b;
}

static struct winsize
terminal_size(void)
{
	struct winsize ws;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &ws) < 0 || ws.ws_col == 0)
		ws = (struct winsize){.ws_col = 80};
	if (ws.ws_row == 0)
		ws.ws_row = 24;
	return ws;
}

static int
terminal_width(void)
{
	return terminal_size().ws_col;
}

/* Columns that text takes; what the locale cannot show has been made '?' before. */
static int
width_of(const char *text)
{
	wchar_t wide[512];
	size_t n = mbstowcs(wide, text, sizeof(wide) / sizeof(wide[0]));
	int width = n == (size_t)-1 ? -1 : wcswidth(wide, n);

	return width >= 0 ? width : (int)strlen(text);
}

static void
make_ascii(char *text)
{
	char *out = text;

	/* One '?' for each character: the bytes that follow its first go. */
	for (; *text != '\0'; text++)
		if ((*text & 0xc0) != 0x80)
			*out++ = (*text & 0x80) != 0 ? '?' : *text;
	*out = '\0';
}

/* ---- the parts of the line ---- */

/* "456 of 640 MiB": both in the unit of the second; "456 MiB" when the whole is not known. */
static void
print_amount(char *buf, size_t size, uint64_t bytes, uint64_t whole)
{
	static const char *const UNITS[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	char human[TEXT_SIZE_MAX];
	double unit = 1;
	int i = 0;

	if (whole == 0) {
		snprintf(buf, size, "%s", text_human_size(human, bytes));
		return;
	}
	for (; whole / unit >= 1024; i++)
		unit *= 1024;
	int digits = i > 0 && whole / unit < 10 ? 1 : 0;
	int columns = snprintf(NULL, 0, "%.*f", digits, whole / unit);

	snprintf(buf, size, "%*.*f of %.*f %s", columns, digits, bytes / unit, digits, whole / unit,
	    UNITS[i]);
}

static void
print_rate(const struct row *row, char *buf, size_t size, uint64_t left)
{
	char human[TEXT_SIZE_MAX], eta[TEXT_TIME_MAX];

	buf[0] = '\0';
	if (row->rate <= 0)
		return;
	int n = snprintf(buf, size, "  %s/s", text_human_size(human, (uint64_t)row->rate));

	if (left > 0 && left / row->rate < 1e6)
		snprintf(buf + n, size - n, "  %s",
		    text_human_time(eta, (uint64_t)(left / row->rate + 1) * UINT64_C(1000000000)));
}

static void
print_bar(const struct progress *p, char *buf, int width, double part)
{
	int full = (int)(part * width);

	*buf++ = '[';
	for (int i = 0; i < width; i++)
		buf = stpcpy(buf, i >= full ? (p->utf8 ? "░" : ".") : (p->utf8 ? "█" : "#"));
	strcpy(buf, "]");
}

/* ---- the line ---- */

static void
measure(struct row *row, uint64_t bytes)
{
	struct timespec ts;
	uint64_t now;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec;
	if (row->last_ns != 0 && now > row->last_ns && bytes >= row->last_bytes) {
		double rate = (bytes - row->last_bytes) * 1e9 / (now - row->last_ns);

		row->rate = row->rate > 0 ? row->rate * 0.7 + rate * 0.3 : rate;
	}
	row->last_ns = now;
	row->last_bytes = bytes;
}

/* Draws text, and spaces over what is left of the line before. */
static void
put_line(struct row *row, const char *text, int width)
{
	fprintf(stderr, "\r%s%*s", text, row->drawn > width ? row->drawn - width : 0, "");
	if (row->drawn > width)
		fprintf(stderr, "\r%s", text);
	row->drawn = width;
}

/* A line of its own for the row, if there is room for one more. */
static bool
get_line(struct progress *p, struct row *row)
{
	if (row->line > 0)
		return true;
	if (p->lines > 0 && (p->dumb || p->lines >= terminal_size().ws_row - 1))
		return false;
	if (p->lines > 0)
		fputc('\n', stderr);
	row->line = ++p->lines;
	return true;
}

static void
put_row(struct progress *p, struct row *row, const char *text, int width)
{
	int up = p->lines - row->line;

	if (up > 0)
		fprintf(stderr, "\033[%dA", up);
	put_line(row, text, width);
	if (up > 0)
		fprintf(stderr, "\033[%dB", up);
	fflush(stderr);
}

/* Drops characters from the end until it fits. */
static int
cut_to(char *text, int columns)
{
	int width;

	while ((width = width_of(text)) > columns && text[0] != '\0') {
		size_t len = strlen(text);

		while (--len > 0 && (text[len] & 0xc0) == 0x80)
			;
		text[len] = '\0';
	}
	return width;
}

/* What goes on, where that is not just sending. */
static void
print_state(const json_t *transfer, char *buf, size_t size)
{
	const char *state = text_at(transfer, "state"), *text = text_at(transfer, "text");

	if (strcmp(state, "reconnecting") == 0)
		snprintf(buf, size, "  reconnecting: %s", text);
	else if (strcmp(state, "sending") != 0)
		snprintf(buf, size, "  %s", state);
}

/* Bytes done: in this state, and of all. */
static uint64_t
bytes_done(const json_t *transfer)
{
	bool checking = strcmp(text_at(transfer, "state"), "checking") == 0;

	return number_at(transfer, checking ? "checked" : "sent");
}

void
progress_draw(struct progress *p, size_t peer, const json_t *t)
{
	struct row *row;
	uint64_t sent = bytes_done(t), whole = number_at(t, "length");
	char line[1024], head[512], bar[BAR_MAX * 4] = "", amount[64], rate[LIMIT_TEXT + 32],
						  percent[16] = "";
	int room, n = 0;

	if (p == NULL)
		return;
	row = &p->rows[peer];
	measure(row, sent);
	if (!get_line(p, row))
		return;
	if (p->files > 1)
		n = snprintf(head, sizeof(head), "[%zu/%zu] ", p->done, p->files);
	snprintf(head + n, sizeof(head) - n, "%s -> %s", text_at(t, "name"), text_at(t, "peer"));
	if (!p->utf8)
		make_ascii(head);
	print_amount(amount, sizeof(amount), sent, whole);
	print_rate(row, rate, sizeof(rate), whole > sent ? whole - sent : 0);
	print_state(t, rate, sizeof(rate));
	if (whole > 0)
		snprintf(percent, sizeof(percent), "%3d %%  ", (int)(sent * 100.0 / whole));

	/* The name gives way first, then the bar; the last column stays free, or some terminals
	 * wrap. */
	room = terminal_width() - 1 - (int)(strlen(percent) + strlen(amount)) - RATE_ROOM - 2;
	room -= cut_to(head, room > 24 ? room / 2 : 12);
	if (whole > 0 && room >= BAR_MIN + 4) {
		int width = smaller(room - 4, BAR_MAX);

		print_bar(p, bar, width, (double)sent / whole);
		strcat(bar, "  ");
	}
	snprintf(line, sizeof(line), "%s  %s%s%s%s", head, bar, percent, amount, rate);
	put_row(p, row, line, cut_to(line, terminal_width() - 1));
}

void
progress_count(struct progress *p, size_t done, size_t files)
{
	if (p == NULL)
		return;
	p->done = done;
	p->files = files;
}

/* The row of the last line has none any more; the columns that it took. */
static int
clear_line(struct progress *p)
{
	int drawn = 0;

	for (size_t i = 0; i < p->n; i++)
		if (p->rows[i].line == p->lines) {
			drawn = p->rows[i].drawn;
			p->rows[i].line = p->rows[i].drawn = 0;
		}
	return drawn;
}

void
progress_clear(struct progress *p)
{
	if (p == NULL)
		return;
	/* Two columns more: the terminal may have echoed a "^C". */
	for (; p->lines > 0; p->lines--)
		fprintf(stderr, "\r%*s\r%s", smaller(clear_line(p) + 2, terminal_width() - 1), "",
		    p->lines > 1 ? "\033[A" : "");
	fflush(stderr);
}

struct progress *
progress_free(struct progress *p)
{
	progress_clear(p);
	free(p);
	return NULL;
}

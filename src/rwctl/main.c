/* main.c -- rwctl: options, commands, help, all from two tables */

#include "config.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/text.h"
#include "rwctl/interrupt.h"
#include "rwctl/rwctl.h"

/* ---- the tables ---- */

static int cmd_complete(const struct options *o, char **args);

static const struct command {
	const char *name, *arguments, *summary; /* summary: NULL hides it */
	int min, max;                           /* arguments */
	int (*fn)(const struct options *o, char **args);
} COMMANDS[] = {
    {"write", "PEER FILE...|-",
	"write files, or standard input, to PEER (or a,b or @GROUP or @all)", 1, INT_MAX,
	cmd_write},
    {"dump-region", "[ID|PEER]", "show or copy the newest arrival here", 0, 1, cmd_dump_region},
    {"regions", "", "list the memory granted to peers", 0, 0, cmd_regions},
    {"transfers", "", "list the writes that are under way", 0, 0, cmd_transfers},
    {"explain", "[ID]", "show where the time of a transfer or an arrival went", 0, 1, cmd_explain},
    {"events", "", "print what happens, a line of JSON each", 0, 0, cmd_events},
    {"wait-arrival", "", "wait until something has arrived here", 0, 0, cmd_wait_arrival},
    {"release", "ID", "end a region and give its memory back", 1, 1, cmd_release},
    {"peers", "", "list connections and configured peers", 0, 0, cmd_peers},
    {"disconnect", "PEER", "end all connections with PEER", 1, 1, cmd_disconnect},
    {"status", "", "show how the daemon does", 0, 0, cmd_status},
    {"reload", "", "have the daemon read its configuration again", 0, 0, cmd_reload},
    {"genkey", "[FILE]", "make a key for two peers, in a new FILE", 0, 1, cmd_genkey},
    {"complete", "[COMMAND]", NULL, 0, 1, cmd_complete},
};

#define N_COMMANDS (sizeof(COMMANDS) / sizeof(COMMANDS[0]))

enum option_type { FLAG, WORD, COUNT, SIZE, TIME };

static const struct option_def {
	const char *name;
	char letter;          /* 0: none */
	const char *commands; /* that it is for; NULL: any */
	enum option_type type;
	size_t offset; /* in struct options */
	const char *argument, *help;
} OPTIONS[] = {
    {"region", 0, "write wait-arrival", WORD, offsetof(struct options, region), "NAME",
	"the region (write: default)"},
    {"name", 0, "write wait-arrival", WORD, offsetof(struct options, name), "NAME",
	"the file's name there (write: its own)"},
    {"since", 0, "events wait-arrival", WORD, offsetof(struct options, since), "CURSOR",
	"begin with what followed CURSOR, or with \"start\""},
    {"timeout", 0, "write wait-arrival", TIME, offsetof(struct options, timeout_ns), "TIME",
	"give up after TIME, as 10s"},
    {"size", 0, "write", SIZE, offsetof(struct options, size), "SIZE",
	"room to ask for, of a stream, as 64M"},
    {"width", 0, "write", COUNT, offsetof(struct options, width), "N",
	"write to N of the peers at once"},
    {"files-from", 0, "write", WORD, offsetof(struct options, files_from), "LIST",
	"write the files named in LIST, - for standard input"},
    {"preserve", 0, "write", FLAG, offsetof(struct options, preserve), NULL,
	"send mode and modification time along"},
    {"discard", 0, "write", FLAG, offsetof(struct options, discard), NULL,
	"when cancelled, leave nothing to resume from"},
    {"quiet", 'q', "write", FLAG, offsetof(struct options, quiet), NULL, "show no progress"},
    {"output", 'o', "dump-region", WORD, offsetof(struct options, output), "FILE",
	"copy into FILE"},
    {"all", 0, "dump-region", FLAG, offsetof(struct options, all), NULL,
	"show all bytes on a terminal"},
    {"socket", 0, NULL, WORD, offsetof(struct options, socket), "PATH",
	"the daemon's socket (RWCTL_SOCKET)"},
    {"json", 0, NULL, FLAG, offsetof(struct options, json), NULL, "print results as JSON"},
    {"help", 'h', NULL, FLAG, offsetof(struct options, help), NULL, "show this"},
    {"version", 'V', NULL, FLAG, offsetof(struct options, version), NULL, "show the version"},
};

#define N_OPTIONS (sizeof(OPTIONS) / sizeof(OPTIONS[0]))

/* ---- messages ---- */

static void
say(const char *prefix, const char *fmt, va_list ap)
{
	fflush(stdout);
	fputs(prefix, stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

void
complain(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("rwctl: ", fmt, ap);
	va_end(ap);
}

void
advise(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("  ", fmt, ap);
	va_end(ap);
}

/* ---- help ---- */

static bool
option_is_for(const struct option_def *def, const struct command *command)
{
	size_t len = command != NULL ? strlen(command->name) : 0;
	const char *word = def->commands;

	while (word != NULL && len > 0) {
		size_t n = strcspn(word, " ");

		if (n == len && strncmp(word, command->name, n) == 0)
			return true;
		word = word[n] != '\0' ? word + n + 1 : NULL;
	}
	return def->commands == NULL;
}

static void
print_option(const struct option_def *def)
{
	char left[64];

	snprintf(left, sizeof(left), "%s%c%s--%s%s%s", def->letter != 0 ? "-" : " ",
	    def->letter != 0 ? def->letter : ' ', def->letter != 0 ? ", " : "  ", def->name,
	    def->argument != NULL ? " " : "", def->argument != NULL ? def->argument : "");
	printf("  %-20s  %s\n", left, def->help);
}

static void
print_commands(void)
{
	puts("rwctl [OPTION...] COMMAND [ARGUMENT...]\n");
	for (size_t i = 0; i < N_COMMANDS; i++) {
		char left[64];

		snprintf(left, sizeof(left), "%s %s", COMMANDS[i].name, COMMANDS[i].arguments);
		if (COMMANDS[i].summary != NULL)
			printf("  %-22s  %s\n", left, COMMANDS[i].summary);
	}
	puts("\n  rwctl COMMAND --help shows the options of a command");
}

/* command: NULL shows them all. */
static void
print_help(const struct command *command)
{
	if (command == NULL)
		print_commands();
	else
		printf("rwctl [OPTION...] %s %s\n\n  %s\n", command->name, command->arguments,
		    command->summary != NULL ? command->summary : "for the shell");
	putchar('\n');
	for (size_t i = 0; i < N_OPTIONS; i++)
		if (option_is_for(&OPTIONS[i], command))
			print_option(&OPTIONS[i]);
}

static const struct command *
find_command(const char *name)
{
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (strcmp(name, COMMANDS[i].name) == 0)
			return &COMMANDS[i];
	return NULL;
}

/* For the shell: the commands, or the options of one. */
static int
cmd_complete(const struct options *o, char **args)
{
	const struct command *command = args[0] != NULL ? find_command(args[0]) : NULL;

	(void)o;
	for (size_t i = 0; i < N_COMMANDS && args[0] == NULL; i++)
		if (COMMANDS[i].summary != NULL)
			puts(COMMANDS[i].name);
	for (size_t i = 0; i < N_OPTIONS && args[0] != NULL; i++)
		if (option_is_for(&OPTIONS[i], command))
			printf("--%s\n", OPTIONS[i].name);
	return STATUS_DONE;
}

/* ---- options ---- */

static int
usage(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("rwctl: ", fmt, ap);
	va_end(ap);
	advise("rwctl --help says what there is");
	return STATUS_USAGE;
}

static const char *const FORMS[] = {
    [COUNT] = "number from 1 to 128",
    [SIZE] = "size, as 64M",
    [TIME] = "time, as 10s",
};
static_assert(LIMIT_BATCH == 128, "FORMS says so");

static int
set_option(struct options *o, const struct option_def *def, const char *value)
{
	char *field = (char *)o + def->offset;
	int r = 0;

	switch (def->type) {
	case FLAG:
		*(bool *)field = true;
		break;
	case WORD:
		*(const char **)field = value;
		break;
	case COUNT:
		r = text_parse_uint(value, LIMIT_BATCH, (uint64_t *)field);
		if (r == 0 && *(uint64_t *)field == 0)
			r = -ERANGE;
		break;
	case SIZE:
		r = text_parse_size(value, (uint64_t *)field);
		break;
	case TIME:
		r = text_parse_time(value, (uint64_t *)field);
		if (r == 0 && *(uint64_t *)field == 0)
			r = -ERANGE;
		break;
	}
	if (r < 0)
		return usage("--%s: %s is no %s", def->name, value, FORMS[def->type]);
	return STATUS_DONE;
}

#define NO_LETTER 256 /* from here on getopt's values are places in OPTIONS */

/* OPTIONS as getopt_long(3) wants them. */
static void
make_getopt(struct option longs[N_OPTIONS + 1], char shorts[2 * N_OPTIONS + 1])
{
	memset(longs, 0, (N_OPTIONS + 1) * sizeof(longs[0]));
	for (size_t i = 0; i < N_OPTIONS; i++) {
		const struct option_def *def = &OPTIONS[i];
		bool argument = def->argument != NULL;

		longs[i] = (struct option){def->name, argument, NULL, NO_LETTER + (int)i};
		if (def->letter != 0)
			shorts += sprintf(shorts, "%c%s", def->letter, argument ? ":" : "");
	}
	*shorts = '\0';
}

static size_t
option_place(int value)
{
	size_t i = 0;

	if (value >= NO_LETTER)
		return value - NO_LETTER;
	while (OPTIONS[i].letter != value)
		i++;
	return i;
}

/* seen[i]: OPTIONS[i] was given. */
static int
parse_options(int argc, char **argv, struct options *o, bool *seen)
{
	struct option longs[N_OPTIONS + 1];
	char shorts[2 * N_OPTIONS + 1];
	int value, r = STATUS_DONE;

	make_getopt(longs, shorts);
	while (r == STATUS_DONE && (value = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		size_t i;

		if (value == '?') /* getopt has said it */
			return STATUS_USAGE;
		i = option_place(value);
		seen[i] = true;
		r = set_option(o, &OPTIONS[i], optarg);
	}
	return r;
}

static int
check_options(const struct command *command, const bool *seen)
{
	for (size_t i = 0; i < N_OPTIONS; i++)
		if (seen[i] && !option_is_for(&OPTIONS[i], command))
			return usage("--%s is not for %s", OPTIONS[i].name, command->name);
	return STATUS_DONE;
}

/* ---- dispatch ---- */

static int
dispatch(const struct options *o, const bool *seen, int n, char **words)
{
	const struct command *command = n > 0 ? find_command(words[0]) : NULL;
	int r;

	if (o->version) {
		puts(PACKAGE_STRING);
		return STATUS_DONE;
	}
	if (n > 0 && command == NULL)
		return usage("%s: no such command", words[0]);
	if (o->help) {
		print_help(command);
		return STATUS_DONE;
	}
	if (n == 0)
		return usage("which command?");
	r = check_options(command, seen);
	if (r != STATUS_DONE)
		return r;
	if (n - 1 < command->min || n - 1 > command->max)
		return usage("usage: rwctl %s %s", command->name, command->arguments);
	return command->fn(o, words + 1);
}

int
main(int argc, char **argv)
{
	struct options options = {0};
	bool seen[N_OPTIONS] = {0};
	int status;

	setlocale(LC_CTYPE, ""); /* numbers stay as they are */
	signal(SIGPIPE, SIG_IGN);
	interrupt_setup();
	status = parse_options(argc, argv, &options, seen);
	if (status == STATUS_DONE)
		status = dispatch(&options, seen, argc - optind, argv + optind);
	/* What did not get out was not done. */
	if (fflush(stdout) != 0 || ferror(stdout)) {
		complain("standard output: %s", strerror(errno));
		if (status == STATUS_DONE)
			status = STATUS_FAILED;
	}
	return status;
}

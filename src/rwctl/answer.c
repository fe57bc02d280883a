/* answer.c -- what the daemon has answered */

#include "config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rwctl/answer.h"

void
answer_done(struct answer *answer)
{
	json_decref(answer->message);
	if (answer->fd >= 0)
		close(answer->fd);
	*answer = (struct answer){.fd = -1};
}

const char *
text_at(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

uint64_t
number_at(const json_t *object, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(object, key));

	return n > 0 ? (uint64_t)n : 0;
}

const char *
yes_no_at(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key)) ? "yes" : "no";
}

static void
print_json(const json_t *value)
{
	json_dumpf(value, stdout, JSON_INDENT(2));
	putchar('\n');
}

void
answer_print(const struct answer *answer)
{
	print_json(answer->parameters);
}

/* ---- errors ---- */

/* "b", and where that is unless the peer's own limits are the matter: then it was surely the right
 * one. */
static void
name_peer(const json_t *transfer, char *buf, size_t size)
{
	const char *peer = text_at(transfer, "peer"), *address = text_at(transfer, "address"),
		   *code = text_at(transfer, "code");

	if (address[0] == '\0' || strcmp(address, peer) == 0 || strcmp(code, "size") == 0 ||
	    strcmp(code, "region") == 0)
		snprintf(buf, size, "%s", peer);
	else
		snprintf(buf, size, "%s (%s)", peer, address);
}

static void
say_transfer(const json_t *parameters)
{
	const json_t *t = json_object_get(parameters, "transfer");
	bool refused = strcmp(text_at(t, "state"), "refused") == 0;
	const char *fix = text_at(t, "fix"), *host = text_at(t, "host");
	char peer[512];

	name_peer(t, peer, sizeof(peer));
	complain("%s%s %s", peer, refused ? "" : ":", text_at(t, "text"));
	if (fix[0] == '\0')
		return;
	if (json_is_true(json_object_get(t, "fixOnPeer")))
		advise("on %s: %s", host[0] != '\0' ? host : text_at(t, "peer"), fix);
	else
		advise("here: %s", fix);
}

static void
say_text(const json_t *parameters)
{
	complain("%s", text_at(parameters, "text"));
}

/* Each line is a message of its own, with file and line. */
static void
say_errors(const json_t *parameters)
{
	complain("the configuration stays as it was:");
	fputs(text_at(parameters, "errors"), stderr);
}

static void
say_not_found(const json_t *parameters)
{
	complain(
	    "rwriterd does not know %s: it is of another version", text_at(parameters, "method"));
}

static void
say_bad_parameter(const json_t *parameters)
{
	complain("rwriterd does not take this %s", text_at(parameters, "parameter"));
}

static const struct {
	const char *error;
	int status;
	void (*say)(const json_t *parameters);
} ERRORS[] = {
    {"io.rwriter.TransferRefused", STATUS_FAILED, say_transfer},
    {"io.rwriter.TransferFailed", STATUS_FAILED, say_transfer},
    {"io.rwriter.TransferDeadline", STATUS_DEADLINE, say_transfer},
    {"io.rwriter.ReloadFailed", STATUS_FAILED, say_errors},
    {"org.varlink.service.MethodNotFound", STATUS_FAILED, say_not_found},
    {"org.varlink.service.InterfaceNotFound", STATUS_FAILED, say_not_found},
    {"org.varlink.service.InvalidParameter", STATUS_FAILED, say_bad_parameter},
};

int
answer_failed(const struct answer *answer, const struct options *o)
{
	if (o->json)
		print_json(answer->message);
	for (size_t i = 0; i < sizeof(ERRORS) / sizeof(ERRORS[0]); i++)
		if (strcmp(answer->error, ERRORS[i].error) == 0) {
			ERRORS[i].say(answer->parameters);
			return ERRORS[i].status;
		}
	if (text_at(answer->parameters, "text")[0] != '\0')
		say_text(answer->parameters);
	else
		complain("%s", answer->error);
	return STATUS_FAILED;
}

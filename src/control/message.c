/* message.c -- the messages of Varlink, from text and to text; pure */

#include "config.h"

#include "base/limits.h"
#include "control/message.h"

/* Asked before jansson sees the text, which would follow it down to 2048 levels. */
static bool
too_deep(const char *text, size_t len)
{
	unsigned depth = 0;
	bool string = false;

	for (size_t i = 0; i < len; i++) {
		if (string && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			string = !string;
		else if (!string && (text[i] == '{' || text[i] == '[') &&
			 ++depth > LIMIT_CONTROL_DEPTH)
			return true;
		else if (!string && (text[i] == '}' || text[i] == ']') && depth > 0)
			depth--;
	}
	return false;
}

json_t *
message_parse(const char *text, size_t len)
{
	json_t *message, *parameters;

	if (too_deep(text, len))
		return NULL;
	message = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	parameters = json_object_get(message, "parameters");
	if (parameters == NULL || json_is_null(parameters)) {
		json_object_set_new(message, "parameters", json_object());
		parameters = json_object_get(message, "parameters");
	}
	if (json_is_string(json_object_get(message, "method")) && json_is_object(parameters) &&
	    !json_is_true(json_object_get(message, "upgrade")))
		return message;
	json_decref(message);
	return NULL;
}

char *
message_print(json_t *parameters, const char *error, bool continues)
{
	json_t *message = json_pack("{s:o}", "parameters", parameters);
	char *text = NULL;

	if (message == NULL)
		return NULL;
	if ((error == NULL || json_object_set_new(message, "error", json_string(error)) == 0) &&
	    (!continues || json_object_set_new(message, "continues", json_true()) == 0))
		text = json_dumps(message, JSON_COMPACT);
	json_decref(message);
	return text;
}

/* message.h -- the messages of Varlink, from text and to text; pure */

#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* A call: a new object whose method is a string and whose parameters are an object (an empty one
 * where there were none); NULL when text (len bytes, without its NUL) is none. */
json_t *message_parse(const char *text, size_t len);
/* An answer. Takes parameters over (NULL: there was no memory for them); error may be NULL. On the
 * heap; NULL without memory. */
char *message_print(json_t *parameters, const char *error, bool continues);

/* sink.c -- which sinks there are */

#include "config.h"

#include "core/sink.h"

const struct sink *
sink_of(enum conf_sink sink)
{
	static const struct sink *const SINKS[] = {
	    [CONF_SINK_MEMORY] = &sink_memory,
	    [CONF_SINK_SPOOL] = &sink_spool,
	    [CONF_SINK_DISCARD] = &sink_discard,
	};

	return SINKS[sink];
}

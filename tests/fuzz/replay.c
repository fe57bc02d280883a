/* replay.c -- gives a fuzz target inputs from files, where no engine does
 *
 * fuzz_X [FILE ...]: without arguments, every file of the corpus of X, which must not be empty.
 */

#include "config.h"

#include <dirent.h>
#include <string.h>

#include "fuzz/fuzz.h"

#define PATH_SIZE 4096

static void
replay(const char *path)
{
	FILE *in = fopen(path, "r");
	uint8_t *data;
	long size;

	printf("# %s\n", path);
	fflush(stdout); /* should it crash, this was the input */
	CHECK(in != NULL && fseek(in, 0, SEEK_END) == 0);
	size = ftell(in);
	rewind(in);
	/* Exactly as large as it is: one byte too many is seen by the address sanitizer. */
	CHECK(size >= 0 && (data = malloc((size_t)size)) != NULL);
	CHECK(fread(data, 1, (size_t)size, in) == (size_t)size);
	fclose(in);
	LLVMFuzzerTestOneInput(data, (size_t)size);
	free(data);
}

static int
is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int
replay_corpus(const char *target)
{
	char directory[PATH_SIZE / 2], path[PATH_SIZE];
	struct dirent **entries;
	int n;

	snprintf(directory, sizeof(directory), "%s/%s", CORPUS, target);
	n = scandir(directory, &entries, is_visible, alphasort);
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, entries[i]->d_name);
		replay(path);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	printf("%sok 1 - %s: %d inputs\n1..1\n", n > 0 ? "" : "not ", target, n);
	return n > 0 ? 0 : 1;
}

int
main(int argc, char **argv)
{
	const char *target = strstr(argv[0], "fuzz_");

	LLVMFuzzerInitialize(&argc, &argv);
	if (argc == 1)
		return replay_corpus(target != NULL ? target + strlen("fuzz_") : "");
	for (int i = 1; i < argc; i++)
		replay(argv[i]);
	return 0;
}

/* barrier.h -- reading memory that a device writes while we look at it
 *
 * The order is: flag_load() until the flag is the expected one, device_read_barrier(),
 * foreign_copy(); then only the copy is checked and used.
 */

#pragma once

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A 64-bit flag on the wire (little-endian, aligned), in host order. One load, so it is never torn;
 * acquire, so that nothing read after it in this thread, also by the compiler's choice, is older
 * than it. */
static inline uint64_t
flag_load(const void *flag)
{
	return le64toh(__atomic_load_n((const uint64_t *)flag, __ATOMIC_ACQUIRE));
}

/* Once a flag matches, what the device wrote before the flag must be seen too. Acquire orders
 * against other processors only; a device's writes are in the outer domain. x86 keeps loads in
 * order against everyone. */
static inline void
device_read_barrier(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__asm__ volatile("" ::: "memory");
#elif defined(__aarch64__)
	__asm__ volatile("dmb oshld" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* memcpy() that happens exactly once and here: without the asm, which claims to read and change the
 * copy, the compiler might drop the copy and read the foreign bytes a second time after they were
 * checked. */
static inline void
foreign_copy(void *copy, const void *foreign, size_t len)
{
	memcpy(copy, foreign, len);
	__asm__ volatile("" : : "r"(copy) : "memory");
}

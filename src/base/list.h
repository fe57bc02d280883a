/* list.h -- intrusive doubly linked list; a node is in at most one list */

#pragma once

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *prev, *next;
};

#define LIST_INIT(head)          \
	{                        \
		&(head), &(head) \
	}

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* An initialised node points to itself: list_del() on it is harmless. */
static inline void
list_init(struct list *l)
{
	l->prev = l->next = l;
}

static inline bool
list_empty(const struct list *head)
{
	return head->next == head;
}

/* True while the initialised node is in a list. */
static inline bool
list_linked(const struct list *node)
{
	return node->next != node;
}

static inline void
list_add_tail(struct list *head, struct list *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

static inline void
list_del(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

static inline unsigned
list_length(const struct list *head)
{
	unsigned n = 0;

	for (const struct list *node = head->next; node != head; node = node->next)
		n++;
	return n;
}

/* Moves all of from to the end of to. */
static inline void
list_splice_tail(struct list *to, struct list *from)
{
	if (list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	list_init(from);
}

/* The first entry, or NULL. */
#define list_first(head, type, member) \
	(list_empty(head) ? NULL : container_of((head)->next, type, member))

/* Walks the entries; the body may remove the one it is at, and no other. */
#define list_for_each(it, head, type, member)                                             \
	for (struct list *it##_node = (head)->next, *it##_next = it##_node->next;         \
	     it##_node != (head) && ((it) = container_of(it##_node, type, member), true); \
	     it##_node = it##_next, it##_next = it##_node->next)

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the two sides of a measurement talk: each exports one page for control
 * messages and writes into the other's. Strictly one message each way in turn,
 * so that none is overwritten before it is read.
 */
#ifndef PRAWN_TOOLS_SESSION_H
#define PRAWN_TOOLS_SESSION_H

#include <vmmc.h>

#include "measure.h"

enum control_op {
	OP_HELLO = 1, /* client: name of its control export, node */
	OP_PREPARE,   /* client: size, slots, name of its data export */
	OP_PREPARED,  /* server: name of its data export */
	OP_READY,     /* server: a = model time delivered, b = bad bytes, c = it
			 has looked; or an answer to HELLO */
	OP_ARRIVED,   /* server: a = model time of the last delivery */
	OP_END,	      /* client: the whole was well (a), or not */
};

#define CONTROL_MAGIC 0x6e776172702d6d76ull

struct control {
	uint64_t magic;
	uint32_t op;
	uint32_t node;
	uint64_t a, b, c;
	char name[VMMC_NAME_MAX + 1];
};

struct session {
	const struct options *o;
	vmmc_t *v;
	struct vmmc_info info;
	void *page; /* control messages arrive here */
	struct control *out;
	vmmc_export_t *control;
	vmmc_import_t *peer;
	/* data of the current size */
	unsigned char *source, *target;
	size_t bytes; /* of each of the two */
	vmmc_export_t *data;
	vmmc_import_t *remote;
	unsigned int data_count; /* makes names unique */
	char data_name[VMMC_NAME_MAX + 1];
	char name[VMMC_NAME_MAX + 1]; /* of the control export */
};

/* What a tool does beyond that; each ends the program when something fails. */
struct tool {
	struct tool_defaults defaults;
	/* Until OP_END; whether all data was right. */
	bool (*serve)(struct session *s);
	bool (*measure)(struct session *s, size_t size, struct row *r);
};

/* main() of a tool. */
int run_tool(const struct tool *tool, int argc, char **argv);

/* Server: export and wait for a client. Client: find the server. */
void session_open(struct session *s, const struct options *o);
void session_close(struct session *s);

/* All of these end the program with one line when something fails. */
void control_send(struct session *s, enum control_op op, uint64_t a, uint64_t b,
		  uint64_t c, const char *name);
/* Waits for a control message, which must be @op unless that is 0. */
struct control control_wait(struct session *s, enum control_op op);

/* Waits for the message with @immediate in the data export. */
struct vmmc_notification data_wait(struct session *s, uint32_t immediate);

/* Make source and target of @bytes each; export the target. */
void data_open(struct session *s, size_t bytes);
void data_import(struct session *s, unsigned int node, const char *name);
void data_close(struct session *s);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * box - the smallest use of libvmmc: one process writes into another's memory.
 *
 *   box         exports a page named "box", waits for one message, prints it
 *   box NODE    imports "box" from that node, writes a greeting into it
 *
 * README.md says how to build it and how to run it in guests.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <vmmc.h>

#define BOX_SIZE 4096
#define WAIT_MS 60000

static void check(int result, const char* what) {
    if (result >= 0)
        return;
    fprintf(stderr, "box: %s: %s\n", what, vmmc_strerror(result));
    exit(1);
}

static void receive(vmmc_t* v) {
    struct vmmc_notification n;
    vmmc_export_t* box;
    char* page = mmap(NULL, BOX_SIZE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int got;

    if (page == MAP_FAILED) {
        perror("box");
        exit(1);
    }
    check(vmmc_export(v, page, BOX_SIZE, "box", VMMC_EXPORT_NOTIFY, NULL, &box),
          "export");
    got = vmmc_wait(v, &n, WAIT_MS);
    check(got, "wait");
    if (!got || n.type != VMMC_MESSAGE) {
        fprintf(stderr, "box: no message came\n");
        exit(1);
    }
    printf("%s (%u bytes from node %u)\n", page + n.offset, n.length,
           n.source_node);
    check(vmmc_unexport(box), "unexport");
}

static void greet(vmmc_t* v, unsigned int node) {
    static const char text[] = "hello";
    vmmc_import_t* box;

    /* The other process may be later than this one. */
    check(vmmc_import(v, node, "box", WAIT_MS, NULL, &box), "import");
    check(vmmc_send(box, 0, text, sizeof(text), VMMC_SEND_NOTIFY, 0), "send");
    check(vmmc_unimport(box), "unimport");
}

int main(int argc, char** argv) {
    vmmc_t* v;

    check(vmmc_open(NULL, 0, &v), "open");
    if (argc > 1)
        greet(v, (unsigned int)strtoul(argv[1], NULL, 0));
    else
        receive(v);
    vmmc_close(v);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* For tools that ask a card without taking a context. */
#ifndef PRAWN_TOOLS_DEVICE_H
#define PRAWN_TOOLS_DEVICE_H

/*
 * Opens *@device, or $VMMC_DEVICE, or /dev/prawn0 if that is NULL, and leaves
 * the path in *@device. Ends the program with one line and status 1 if it
 * cannot. Returns the descriptor.
 */
int open_device(const char *tool, const char **device);

#endif

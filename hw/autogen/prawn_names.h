/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Made by 'python3 hw/util/regtool.py' from hw/data; do not edit. */

#ifndef PRAWN_NAMES_H
#define PRAWN_NAMES_H

/*
 * Names of codes and registers, for people. For user space and the model:
 * the kernel module does not include this.
 */

#include "prawn_hw.h"

struct prawn_register_info {
    const char* name;
    uint32_t offset;
    uint32_t width;     /* bits */
    uint32_t count;     /* consecutive registers of that width */
    uint32_t readable;  /* 0 or 1 */
    uint32_t writable;  /* 0 or 1 */
    uint64_t reset;     /* 0 where the source names none */
};

/* Name of a value of enum status; "?" if none. */
static inline const char* prawn_status_name(unsigned value) {
    switch (value) {
        case 0:
            return "OK";
        case 1:
            return "BAD_OPCODE";
        case 2:
            return "BAD_FIELD";
        case 3:
            return "BAD_LENGTH";
        case 4:
            return "BAD_IMPORT";
        case 5:
            return "OUT_OF_RANGE";
        case 6:
            return "NOT_PINNED";
        case 7:
            return "NOT_WRITABLE";
        case 8:
            return "DMA_ERROR";
        case 9:
            return "IMPORT_ERROR";
        case 10:
            return "CANCELLED";
        case 11:
            return "BUSY";
        case 12:
            return "UNSUPPORTED";
        case 13:
            return "BAD_CONTEXT";
        case 14:
            return "UNKNOWN_OUTCOME";
        case 15:
            return "RING_OVERRUN";
        case 32:
            return "BAD_EXPORT";
        case 33:
            return "BAD_KEY";
        case 34:
            return "EXPORT_RANGE";
        case 35:
            return "STALE_EPOCH";
        case 36:
            return "RECEIVE_FAULT";
        case 37:
            return "NO_HOST";
        case 38:
            return "EVENT_FULL";
        case 39:
            return "PEER_DEAD";
        case 40:
            return "BAD_PACKET";
        default:
            return "?";
    }
}

/* Name of a value of enum opcode; "?" if none. */
static inline const char* prawn_opcode_name(unsigned value) {
    switch (value) {
        case 0:
            return "NOP";
        case 1:
            return "SEND";
        case 2:
            return "FENCE";
        default:
            return "?";
    }
}

/* Name of a value of enum admin_opcode; "?" if none. */
static inline const char* prawn_admin_opcode_name(unsigned value) {
    switch (value) {
        case 0:
            return "NOP";
        case 1:
            return "CONTEXT_ENABLE";
        case 2:
            return "CONTEXT_DISABLE";
        case 3:
            return "OPT_SET";
        case 4:
            return "OPT_CLEAR";
        case 5:
            return "IPT_SET";
        case 6:
            return "IPT_CLEAR";
        case 7:
            return "UTLB_INVALIDATE";
        case 8:
            return "UTLB_FILL";
        case 9:
            return "SLOT_SET";
        case 10:
            return "SLOT_CLEAR";
        case 11:
            return "MGMT_SEND";
        case 12:
            return "GRANT";
        case 13:
            return "REVOKE";
        case 14:
            return "PEER_CONTROL";
        default:
            return "?";
    }
}

/* Name of a value of enum event_type; "?" if none. */
static inline const char* prawn_event_type_name(unsigned value) {
    switch (value) {
        case 0:
            return "NONE";
        case 1:
            return "MGMT";
        case 2:
            return "PEER_UP";
        case 3:
            return "PEER_DOWN";
        case 4:
            return "CONTEXT_ERROR";
        case 5:
            return "UTLB_MISS";
        case 6:
            return "FIFO_THRESHOLD";
        case 7:
            return "FIRMWARE";
        case 8:
            return "UTLB_EVICT";
        default:
            return "?";
    }
}

/* Name of a value of enum notification_type; "?" if none. */
static inline const char* prawn_notification_type_name(unsigned value) {
    switch (value) {
        case 0:
            return "NONE";
        case 1:
            return "MESSAGE";
        case 2:
            return "IMPORT_ERROR";
        default:
            return "?";
    }
}

/* Name of a value of enum slot_kind; "?" if none. */
static inline const char* prawn_slot_kind_name(unsigned value) {
    switch (value) {
        case 0:
            return "MEMORY";
        case 1:
            return "DESTINATION";
        case 2:
            return "UPDATE";
        case 3:
            return "RESERVED";
        default:
            return "?";
    }
}

/* Name of a value of enum packet_type; "?" if none. */
static inline const char* prawn_packet_type_name(unsigned value) {
    switch (value) {
        case 1:
            return "DATA";
        case 2:
            return "ACK";
        case 3:
            return "NACK";
        case 4:
            return "MGMT";
        case 5:
            return "HELLO";
        case 6:
            return "BYE";
        default:
            return "?";
    }
}

/* Name of a value of enum utlb_mode; "?" if none. */
static inline const char* prawn_utlb_mode_name(unsigned value) {
    switch (value) {
        case 0:
            return "HIERARCHICAL";
        case 1:
            return "PER_PROCESS";
        case 2:
            return "KERNEL_MANAGED";
        case 3:
            return "REGISTERED";
        default:
            return "?";
    }
}

/* Name of a value of enum mgmt_type; "?" if none. */
static inline const char* prawn_mgmt_type_name(unsigned value) {
    switch (value) {
        case 1:
            return "IMPORT_REQUEST";
        case 2:
            return "IMPORT_REPLY";
        case 3:
            return "WITHDRAW";
        case 4:
            return "WITHDRAW_ACK";
        case 5:
            return "UNIMPORT";
        case 6:
            return "PING";
        case 7:
            return "PONG";
        default:
            return "?";
    }
}

#define PRAWN_BAR0_REGISTERS 40
/* By rising offset. */
static const struct prawn_register_info prawn_bar0_registers[] = {
    {"ID", 0x000, 32, 1, 1, 0, 0x4e575250},
    {"ABI", 0x004, 32, 1, 1, 0, 0x10001},
    {"FEATURES", 0x008, 64, 1, 1, 0, 0x0},
    {"CTRL", 0x010, 32, 1, 1, 1, 0x0},
    {"STATUS", 0x014, 32, 1, 1, 0, 0x0},
    {"NODE", 0x018, 32, 1, 1, 0, 0x0},
    {"EPOCH", 0x01c, 32, 1, 1, 0, 0x0},
    {"LIMITS", 0x020, 64, 1, 1, 0, 0x0},
    {"TIME", 0x028, 64, 1, 1, 0, 0x0},
    {"TIME_MODE", 0x030, 32, 1, 1, 0, 0x0},
    {"PROFILE", 0x034, 32, 1, 1, 0, 0x0},
    {"ADMIN_BASE", 0x040, 64, 1, 1, 1, 0x0},
    {"ADMIN_ACK_BASE", 0x048, 64, 1, 1, 1, 0x0},
    {"ADMIN_LOG2", 0x050, 32, 1, 1, 1, 0x0},
    {"ADMIN_DOORBELL", 0x054, 32, 1, 0, 1, 0x0},
    {"EVENT_BASE", 0x058, 64, 1, 1, 1, 0x0},
    {"EVENT_LOG2", 0x060, 32, 1, 1, 1, 0x0},
    {"EVENT_CONSUMED", 0x064, 32, 1, 0, 1, 0x0},
    {"INT_CAUSE", 0x068, 32, 1, 1, 1, 0x0},
    {"INT_ENABLE", 0x06c, 32, 1, 1, 1, 0x0},
    {"COUNTER_COUNT", 0x080, 32, 1, 1, 0, 0x0},
    {"COUNTER_SELECT", 0x084, 32, 1, 1, 1, 0x0},
    {"COUNTER_VALUE", 0x088, 64, 1, 1, 0, 0x0},
    {"COUNTER_NAME", 0x090, 64, 6, 1, 0, 0x0},
    {"UTLB_MODE", 0x100, 32, 1, 1, 1, 0x0},
    {"UTLB_GEOMETRY", 0x104, 32, 1, 1, 1, 0x0},
    {"AU_CONTROL", 0x110, 32, 1, 1, 1, 0x0},
    {"AU_TIMER", 0x114, 32, 1, 1, 1, 0x0},
    {"FIFO_THRESHOLD", 0x118, 32, 1, 1, 1, 0x0},
    {"FIFO_LEVEL", 0x11c, 32, 1, 1, 0, 0x0},
    {"PTP_TIME", 0x140, 64, 1, 1, 1, 0x0},
    {"PTP_ADJUST", 0x148, 64, 1, 0, 1, 0x0},
    {"PTP_INCREMENT", 0x150, 64, 1, 1, 1, 0x1000000000000},
    {"FW_CONTROL", 0x200, 32, 1, 1, 1, 0x0},
    {"FW_STATUS", 0x204, 32, 1, 1, 0, 0x0},
    {"FW_ADDRESS", 0x208, 32, 1, 1, 1, 0x0},
    {"FW_SRAM_SIZE", 0x20c, 32, 1, 1, 0, 0x0},
    {"FW_DATA", 0x210, 64, 1, 1, 1, 0x0},
    {"FW_CONSOLE", 0x218, 32, 1, 1, 0, 0x0},
    {"FW_TIMER_MS", 0x21c, 32, 1, 1, 1, 0x0},
};

#define PRAWN_DOORBELL_REGISTERS 6
/* By rising offset. */
static const struct prawn_register_info prawn_doorbell_registers[] = {
    {"DOORBELL", 0x000, 64, 1, 0, 1, 0x0},
    {"NOTIFY_CONSUMED", 0x008, 64, 1, 0, 1, 0x0},
    {"ARM_NOTIFY", 0x010, 64, 1, 0, 1, 0x0},
    {"ARM_COMPLETION", 0x018, 64, 1, 0, 1, 0x0},
    {"TIME", 0x020, 64, 1, 1, 0, 0x0},
    {"STATE", 0x028, 32, 1, 1, 0, 0x0},
};

#endif

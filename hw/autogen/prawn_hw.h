/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Made by 'python3 hw/util/regtool.py' from hw/data; do not edit. */

#ifndef PRAWN_HW_H
#define PRAWN_HW_H

/*
 * The card as its driver, library, firmware and model see it. Little-endian.
 * PRAWN_BAR0_x and PRAWN_DOORBELL_x are byte offsets of registers;
 * PRAWN_x_y_MASK and _SHIFT describe field y of register or word x, in place.
 */

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/stddef.h>
#include <linux/types.h>
typedef __u8 prawn_u8;
typedef __le16 prawn_le16;
typedef __le32 prawn_le32;
typedef __le64 prawn_le64;
#else
#include <stddef.h>
#include <stdint.h>
typedef uint8_t prawn_u8;
typedef uint16_t prawn_le16;
typedef uint32_t prawn_le32;
typedef uint64_t prawn_le64;
#endif

#if defined(__KERNEL__) || defined(__cplusplus)
#define PRAWN_ASSERT(condition, text) static_assert(condition, text)
#else
#define PRAWN_ASSERT(condition, text) _Static_assert(condition, text)
#endif

/* Field NAME (without PRAWN_) out of a word; a word with only that field. */
#define PRAWN_FIELD_GET(NAME, word) \
	(((word) & PRAWN_##NAME##_MASK) >> PRAWN_##NAME##_SHIFT)
#define PRAWN_FIELD_PUT(NAME, value) \
	((((PRAWN_##NAME##_MASK & 0) | (value)) << PRAWN_##NAME##_SHIFT) & \
	 PRAWN_##NAME##_MASK)

/* Constants of card.toml */
#define PRAWN_ABI_MAJOR                         1               /* Driver and card must agree on it */
#define PRAWN_ABI_MINOR                         1               /* Raised when reserved bits get a meaning */
#define PRAWN_PCI_VENDOR_ID                     0x1234          /* The vendor number that QEMU and others use for unassigned devices */
#define PRAWN_PCI_DEVICE_ID                     0x5057          /* "PW" */
#define PRAWN_PCI_CLASS                         0x028000        /* Network controller, other */
#define PRAWN_PCI_REVISION                      1               /* Raised with the hardware */
#define PRAWN_ID_MAGIC                          0x4e575250      /* "PRWN" in memory order; what register ID reads */
#define PRAWN_BAR0_SIZE                         0x100000        /* Control registers, MSI-X table and PBA (bytes) */
#define PRAWN_BAR2_SIZE                         0x40000         /* One doorbell page per context (bytes) */
#define PRAWN_BAR4_SIZE                         0x100000000ULL  /* Proxy space (bytes) */
#define PRAWN_MSIX_TABLE_OFFSET                 0x8000          /* In BAR 0 */
#define PRAWN_MSIX_PBA_OFFSET                   0x9000          /* In BAR 0 */
#define PRAWN_VECTORS                           16              /* MSI-X vectors: 0 is the kernel's own, 1 to 15 are given to contexts */
#define PRAWN_VECTOR_KERNEL                     0               /* Kernel events, admin acknowledgements, errors */
#define PRAWN_PAGE_SHIFT                        12              /* The card knows 4 KiB pages only */
#define PRAWN_PAGE_SIZE                         4096            /* Bytes */
#define PRAWN_CONTEXTS                          64              /* Protection domains */
#define PRAWN_OPT_ENTRIES                       4096            /* Outgoing page table: imports of all contexts together */
#define PRAWN_IPT_ENTRIES                       4096            /* Incoming page table: exports of all contexts together */
#define PRAWN_MAX_NODES                         16              /* Nodes of one fabric */
#define PRAWN_MAX_PAYLOAD                       4096            /* Largest payload of a packet (bytes); a packet never crosses a page of its destination */
#define PRAWN_MAX_MESSAGE                       0x40000000      /* Largest length of one command (bytes) */
#define PRAWN_MGMT_MAX                          256             /* Largest management message between drivers (bytes) */
#define PRAWN_RING_LOG2_MIN                     4               /* Smallest ring: 16 entries */
#define PRAWN_RING_LOG2_MAX                     12              /* Largest ring: 4096 entries */
#define PRAWN_TABLE_LEVELS                      4               /* Levels of a translation table; 512 entries of 8 bytes a page */
#define PRAWN_VA_BITS                           48              /* Virtual addresses that a translation table covers */
#define PRAWN_COUNTER_NAME_SIZE                 48              /* Bytes of a counter's name, NUL-padded */
#define PRAWN_PTP_FRACTION_BITS                 48              /* Of PTP_INCREMENT: 2^48 is the nominal rate */
#define PRAWN_PTP_INCREMENT_MIN                 0x0000800000000000ULL /* Half the nominal rate */
#define PRAWN_PTP_INCREMENT_MAX                 0x0001800000000000ULL /* One and a half of it */
#define PRAWN_PTP_MAX_PPB                       500000000       /* The same as a deviation from the nominal rate, in parts per billion */
#define PRAWN_BAR4_CONTEXT_SHIFT                26              /* BAR 4 address bits 31:26: context */
#define PRAWN_BAR4_KIND_SHIFT                   24              /* BAR 4 address bits 25:24: kind of slot (enum slot_kind) */
#define PRAWN_BAR4_SLOT_SHIFT                   12              /* BAR 4 address bits 23:12: slot */
#define PRAWN_SLOTS                             4096            /* Slots of one kind in one context */
#define PRAWN_KINDS                             4               /* Kinds of slot */

/* Constants of rings.toml */
#define PRAWN_COMMAND_FLAG_NOTIFY               1               /* Ask for a notification at the receiver */
#define PRAWN_COMMAND_FLAGS                     1               /* All flags that exist */
#define PRAWN_ADMIN_FLAG_INTERRUPT              1               /* Raise vector 0 with the acknowledgement */
#define PRAWN_ADMIN_FLAGS                       1               /* All flags that exist */
#define PRAWN_IPT_FLAG_NOTIFY                   1               /* IPT_SET: notifications are wanted */

/* Constants of packet.toml */
#define PRAWN_PACKET_VERSION                    1               /* Of the wire format */
#define PRAWN_PACKET_CRC_SIZE                   4               /* Bytes after the payload */
#define PRAWN_PACKET_FLAG_FIRST                 1               /* First packet of a message */
#define PRAWN_PACKET_FLAG_LAST                  2               /* Last packet of a message */
#define PRAWN_PACKET_FLAG_NOTIFY                4               /* The sender asks for a notification (with LAST) */
#define PRAWN_PACKET_FLAG_AUTOMATIC             8               /* Automatic update (else deliberate) */
#define PRAWN_PACKET_FLAGS                      15              /* All flags that exist */
#define PRAWN_MGMT_NAME_SIZE                    64              /* Bytes of the name of an export, NUL included */

/* enum status: Outcome of a command, an admin command, or the reason in a NACK. 16 bits. */
#define PRAWN_STATUS_OK                         0               /* Done */
#define PRAWN_STATUS_BAD_OPCODE                 1               /* Unknown opcode */
#define PRAWN_STATUS_BAD_FIELD                  2               /* A reserved field is not zero, or a field is out of its range */
#define PRAWN_STATUS_BAD_LENGTH                 3               /* Length beyond MAX_MESSAGE, or address plus length wraps */
#define PRAWN_STATUS_BAD_IMPORT                 4               /* No such import, or it belongs to another context */
#define PRAWN_STATUS_OUT_OF_RANGE               5               /* Offset plus length beyond the end of the import */
#define PRAWN_STATUS_NOT_PINNED                 6               /* The translation table has no valid entry for a source page */
#define PRAWN_STATUS_NOT_WRITABLE               7               /* The entry is valid but the card may not write the page */
#define PRAWN_STATUS_DMA_ERROR                  8               /* The host refused a DMA: no such memory, bus mastering off, or the host went away */
#define PRAWN_STATUS_IMPORT_ERROR               9               /* The import is in error state since an earlier NACK; detail has its reason */
#define PRAWN_STATUS_CANCELLED                  10              /* The context was disabled or reset while the command was in flight */
#define PRAWN_STATUS_BUSY                       11              /* No room just now; try again */
#define PRAWN_STATUS_UNSUPPORTED                12              /* Known, but not in this card; see register FEATURES */
#define PRAWN_STATUS_BAD_CONTEXT                13              /* No such context, or its state does not allow it */
#define PRAWN_STATUS_UNKNOWN_OUTCOME            14              /* The peer was declared dead or restarted before it acknowledged. NACK: a packet of the message is missing */
#define PRAWN_STATUS_RING_OVERRUN               15              /* Producer index more than one ring ahead: the context is stopped */
#define PRAWN_STATUS_BAD_EXPORT                 32              /* NACK: the IPT entry is not valid, or was withdrawn */
#define PRAWN_STATUS_BAD_KEY                    33              /* NACK: wrong key */
#define PRAWN_STATUS_EXPORT_RANGE               34              /* NACK: outside of the export */
#define PRAWN_STATUS_STALE_EPOCH                35              /* NACK: addressed to an earlier life of the node */
#define PRAWN_STATUS_RECEIVE_FAULT              36              /* NACK: a page of the export has no writable translation, or its DMA failed */
#define PRAWN_STATUS_NO_HOST                    37              /* NACK: no driver is running on the node */
#define PRAWN_STATUS_EVENT_FULL                 38              /* NACK: the kernel event ring of the node has no room for a management message */
#define PRAWN_STATUS_PEER_DEAD                  39              /* The peer does not answer */
#define PRAWN_STATUS_BAD_PACKET                 40              /* NACK: type, version or length of the packet makes no sense */

/* enum opcode: Commands of a context's command ring. */
#define PRAWN_OPCODE_NOP                        0               /* Completes, does nothing else */
#define PRAWN_OPCODE_SEND                       1               /* Deliberate update: length bytes from source to the import */
#define PRAWN_OPCODE_FENCE                      2               /* Completes when all earlier commands of the context have completed */

/* enum admin_opcode: Commands of the kernel's admin ring. */
#define PRAWN_ADMIN_OPCODE_NOP                  0               /* Acknowledged, does nothing else */
#define PRAWN_ADMIN_OPCODE_CONTEXT_ENABLE       1               /* Give a context its rings, table and vector */
#define PRAWN_ADMIN_OPCODE_CONTEXT_DISABLE      2               /* Stop a context; acknowledged when no DMA for it is in flight */
#define PRAWN_ADMIN_OPCODE_OPT_SET              3               /* Write an outgoing page table entry (an import) */
#define PRAWN_ADMIN_OPCODE_OPT_CLEAR            4               /* Invalidate it; the commands under way with it end BAD_IMPORT, and what of them was not handed to the network does not leave; acknowledged when no command uses it */
#define PRAWN_ADMIN_OPCODE_IPT_SET              5               /* Write an incoming page table entry (an export) */
#define PRAWN_ADMIN_OPCODE_IPT_CLEAR            6               /* Invalidate it; acknowledged when no DMA into it is in flight */
#define PRAWN_ADMIN_OPCODE_UTLB_INVALIDATE      7               /* Forget translations of a range; acknowledged when no DMA uses one */
#define PRAWN_ADMIN_OPCODE_UTLB_FILL            8               /* Answer a miss (kernel-managed UTLB) */
#define PRAWN_ADMIN_OPCODE_SLOT_SET             9               /* Write a slot of BAR 4 */
#define PRAWN_ADMIN_OPCODE_SLOT_CLEAR           10              /* Invalidate slots; acknowledged when no transfer uses one */
#define PRAWN_ADMIN_OPCODE_MGMT_SEND            11              /* Send a management message to another node's driver */
#define PRAWN_ADMIN_OPCODE_GRANT                12              /* Tell the checker of a page the card may touch (only if FEATURES.CHECKER) */
#define PRAWN_ADMIN_OPCODE_REVOKE               13              /* Take a grant back */
#define PRAWN_ADMIN_OPCODE_PEER_CONTROL         14              /* Declare a peer dead, or welcome it again */

/* enum event_type: Entries of the kernel event ring. */
#define PRAWN_EVENT_TYPE_NONE                   0               /* Empty */
#define PRAWN_EVENT_TYPE_MGMT                   1               /* A management message has arrived */
#define PRAWN_EVENT_TYPE_PEER_UP                2               /* A peer started a new life; value is its epoch */
#define PRAWN_EVENT_TYPE_PEER_DOWN              3               /* A peer went away or was declared dead */
#define PRAWN_EVENT_TYPE_CONTEXT_ERROR          4               /* A context was stopped; value is the status */
#define PRAWN_EVENT_TYPE_UTLB_MISS              5               /* Kernel-managed UTLB: a translation is wanted */
#define PRAWN_EVENT_TYPE_FIFO_THRESHOLD         6               /* The outgoing FIFO is above its threshold */
#define PRAWN_EVENT_TYPE_FIRMWARE               7               /* The firmware has something to say; value is its code */
#define PRAWN_EVENT_TYPE_UTLB_EVICT             8               /* Kernel-managed UTLB: a translation left the card and may be unpinned */

/* enum notification_type: Entries of a context's notification ring. */
#define PRAWN_NOTIFICATION_TYPE_NONE            0               /* Empty */
#define PRAWN_NOTIFICATION_TYPE_MESSAGE         1               /* A message with the notify flag has been delivered completely */
#define PRAWN_NOTIFICATION_TYPE_IMPORT_ERROR    2               /* An import went to error state; status has the reason */

/* enum slot_kind: Kinds of BAR 4 pages. */
#define PRAWN_SLOT_KIND_MEMORY                  0               /* Source of a proxy transfer: a page frame */
#define PRAWN_SLOT_KIND_DESTINATION             1               /* Destination of a proxy transfer: a page of an import */
#define PRAWN_SLOT_KIND_UPDATE                  2               /* Automatic-update window: a page frame bound to a page of an import */
#define PRAWN_SLOT_KIND_RESERVED                3               /* Not used */

/* enum packet_type: Types of packet. */
#define PRAWN_PACKET_TYPE_DATA                  1               /* Part of an update */
#define PRAWN_PACKET_TYPE_ACK                   2               /* Acknowledgement alone */
#define PRAWN_PACKET_TYPE_NACK                  3               /* The receiver refused a DATA or MGMT packet; status says why */
#define PRAWN_PACKET_TYPE_MGMT                  4               /* Management message between drivers */
#define PRAWN_PACKET_TYPE_HELLO                 5               /* The sender starts a new life: its epoch has changed */
#define PRAWN_PACKET_TYPE_BYE                   6               /* The sender's host has gone */

/* enum utlb_mode: Variants of the UTLB (register UTLB_MODE). */
#define PRAWN_UTLB_MODE_HIERARCHICAL            0               /* Tables in host memory, cache on the card */
#define PRAWN_UTLB_MODE_PER_PROCESS             1               /* Table in card SRAM, index given by the process */
#define PRAWN_UTLB_MODE_KERNEL_MANAGED          2               /* A miss interrupts the kernel */
#define PRAWN_UTLB_MODE_REGISTERED              3               /* Everything pinned at registration */

/* enum mgmt_type: Management messages between drivers. */
#define PRAWN_MGMT_TYPE_IMPORT_REQUEST          1               /* Ask a node for an export by name */
#define PRAWN_MGMT_TYPE_IMPORT_REPLY            2               /* The answer */
#define PRAWN_MGMT_TYPE_WITHDRAW                3               /* The export is gone; sent to every node that imported it */
#define PRAWN_MGMT_TYPE_WITHDRAW_ACK            4               /* The import has been invalidated */
#define PRAWN_MGMT_TYPE_UNIMPORT                5               /* The importer has let go */
#define PRAWN_MGMT_TYPE_PING                    6               /* Liveness */
#define PRAWN_MGMT_TYPE_PONG                    7               /* Answer to PING */

/* Registers of BAR 0 */
#define PRAWN_BAR0_ID                           0x000           /* ro 32: ID_MAGIC */
#define PRAWN_BAR0_ID_RESET                     0x4e575250U
#define PRAWN_BAR0_ABI                          0x004           /* ro 32: Version of this interface */
#define PRAWN_BAR0_ABI_RESET                    0x00010001U
#define PRAWN_ABI_MINOR_MASK                    0x0000ffffU     /* ABI_MINOR */
#define PRAWN_ABI_MINOR_SHIFT                   0
#define PRAWN_ABI_MAJOR_MASK                    0xffff0000U     /* ABI_MAJOR */
#define PRAWN_ABI_MAJOR_SHIFT                   16
#define PRAWN_BAR0_FEATURES                     0x008           /* ro 64: What this card has */
#define PRAWN_FEATURES_CHECKER_MASK             0x0000000000000001ULL /* A checker wants GRANT and REVOKE */
#define PRAWN_FEATURES_CHECKER_SHIFT            0
#define PRAWN_FEATURES_PROXY_MASK               0x0000000000000002ULL /* Proxy UDMA (BAR 4 kinds MEMORY, DESTINATION) */
#define PRAWN_FEATURES_PROXY_SHIFT              1
#define PRAWN_FEATURES_UPDATE_MASK              0x0000000000000004ULL /* Automatic update through the window */
#define PRAWN_FEATURES_UPDATE_SHIFT             2
#define PRAWN_FEATURES_SNOOP_MASK               0x0000000000000008ULL /* Automatic update by bus snooping */
#define PRAWN_FEATURES_SNOOP_SHIFT              3
#define PRAWN_FEATURES_FIRMWARE_MASK            0x0000000000000010ULL /* A processor that wants firmware */
#define PRAWN_FEATURES_FIRMWARE_SHIFT           4
#define PRAWN_FEATURES_RETRANSMIT_MASK          0x0000000000000020ULL /* Reliable delivery over a lossy fabric */
#define PRAWN_FEATURES_RETRANSMIT_SHIFT         5
#define PRAWN_FEATURES_PTP_MASK                 0x0000000000000040ULL /* A clock that can be set (PTP_TIME and the two behind it) */
#define PRAWN_FEATURES_PTP_SHIFT                6
#define PRAWN_FEATURES_UTLB_MODES_MASK          0x0000000000000f00ULL /* One bit per utlb_mode that can be chosen */
#define PRAWN_FEATURES_UTLB_MODES_SHIFT         8
#define PRAWN_BAR0_CTRL                         0x010           /* rw 32: Global control */
#define PRAWN_BAR0_CTRL_RESET                   0x00000000U
#define PRAWN_CTRL_RESET_MASK                   0x00000001U     /* Write 1: the card goes to reset state; reads 1 until STATUS.READY */
#define PRAWN_CTRL_RESET_SHIFT                  0
#define PRAWN_CTRL_ENABLE_MASK                  0x00000002U     /* The driver is ready: packets are accepted, rings are served */
#define PRAWN_CTRL_ENABLE_SHIFT                 1
#define PRAWN_BAR0_STATUS                       0x014           /* ro 32: Global state */
#define PRAWN_STATUS_READY_MASK                 0x00000001U     /* Reset is over */
#define PRAWN_STATUS_READY_SHIFT                0
#define PRAWN_STATUS_LINK_UP_MASK               0x00000002U     /* The fabric is there */
#define PRAWN_STATUS_LINK_UP_SHIFT              1
#define PRAWN_STATUS_BUS_MASTER_MASK            0x00000004U     /* DMA is allowed by PCI configuration */
#define PRAWN_STATUS_BUS_MASTER_SHIFT           2
#define PRAWN_STATUS_ADMIN_ERROR_MASK           0x00000008U     /* The admin ring was misconfigured or overrun; reset to recover */
#define PRAWN_STATUS_ADMIN_ERROR_SHIFT          3
#define PRAWN_STATUS_CHECK_FAILED_MASK          0x00000010U     /* The checker saw a DMA outside of the grants */
#define PRAWN_STATUS_CHECK_FAILED_SHIFT         4
#define PRAWN_BAR0_NODE                         0x018           /* ro 32: Place in the fabric */
#define PRAWN_NODE_ID_MASK                      0x0000ffffU     /* This node */
#define PRAWN_NODE_ID_SHIFT                     0
#define PRAWN_NODE_COUNT_MASK                   0xffff0000U     /* Nodes of the fabric, this one included */
#define PRAWN_NODE_COUNT_SHIFT                  16
#define PRAWN_BAR0_EPOCH                        0x01c           /* ro 32: This life of the node, 1 to 65535; changes with every reset */
#define PRAWN_BAR0_LIMITS                       0x020           /* ro 64: Sizes of this card */
#define PRAWN_LIMITS_CONTEXTS_MASK              0x000000000000ffffULL /* Contexts */
#define PRAWN_LIMITS_CONTEXTS_SHIFT             0
#define PRAWN_LIMITS_OPT_ENTRIES_MASK           0x00000000ffff0000ULL /* Entries of the outgoing page table */
#define PRAWN_LIMITS_OPT_ENTRIES_SHIFT          16
#define PRAWN_LIMITS_IPT_ENTRIES_MASK           0x0000ffff00000000ULL /* Entries of the incoming page table */
#define PRAWN_LIMITS_IPT_ENTRIES_SHIFT          32
#define PRAWN_LIMITS_VECTORS_MASK               0xffff000000000000ULL /* MSI-X vectors */
#define PRAWN_LIMITS_VECTORS_SHIFT              48
#define PRAWN_BAR0_TIME                         0x028           /* ro 64: Model time in picoseconds: the card's clock */
#define PRAWN_BAR0_TIME_MODE                    0x030           /* ro 32: What the card's clock means */
#define PRAWN_TIME_MODE_MODE_MASK               0x00000003U     /* 0 free-running, 1 synchronized, 2 replay */
#define PRAWN_TIME_MODE_MODE_SHIFT              0
#define PRAWN_TIME_MODE_SKEWED_MASK             0x00000004U     /* Synchronized, but not exact */
#define PRAWN_TIME_MODE_SKEWED_SHIFT            2
#define PRAWN_BAR0_PROFILE                      0x034           /* ro 32: CRC-32C of the timing profile's name: lets a tool label its results */
#define PRAWN_BAR0_ADMIN_BASE                   0x040           /* rw 64: Bus address of the admin ring, page aligned */
#define PRAWN_BAR0_ADMIN_ACK_BASE               0x048           /* rw 64: Bus address of the acknowledgements, page aligned; entry n answers command n */
#define PRAWN_BAR0_ADMIN_LOG2                   0x050           /* rw 32: Log2 of the entries of both */
#define PRAWN_BAR0_ADMIN_DOORBELL               0x054           /* wo 32: Producer index, free running */
#define PRAWN_BAR0_EVENT_BASE                   0x058           /* rw 64: Bus address of the kernel event ring, page aligned */
#define PRAWN_BAR0_EVENT_LOG2                   0x060           /* rw 32: Log2 of its entries */
#define PRAWN_BAR0_EVENT_CONSUMED               0x064           /* wo 32: Consumer index, free running; re-arms the interrupt: one follows if entries beyond it exist */
#define PRAWN_BAR0_INT_CAUSE                    0x068           /* rw1c 32: Why INTx or vector 0 was raised */
#define PRAWN_INT_CAUSE_EVENT_MASK              0x00000001U     /* The event ring has new entries */
#define PRAWN_INT_CAUSE_EVENT_SHIFT             0
#define PRAWN_INT_CAUSE_ADMIN_MASK              0x00000002U     /* An admin command with the interrupt flag was acknowledged */
#define PRAWN_INT_CAUSE_ADMIN_SHIFT             1
#define PRAWN_INT_CAUSE_CONTEXT_MASK            0x00000004U     /* INTx only: a context wants attention */
#define PRAWN_INT_CAUSE_CONTEXT_SHIFT           2
#define PRAWN_INT_CAUSE_CHECK_MASK              0x00000008U     /* The checker failed */
#define PRAWN_INT_CAUSE_CHECK_SHIFT             3
#define PRAWN_BAR0_INT_ENABLE                   0x06c           /* rw 32: Bits of INT_CAUSE that raise INTx (used only without MSI-X) */
#define PRAWN_BAR0_INT_ENABLE_RESET             0x00000000U
#define PRAWN_BAR0_COUNTER_COUNT                0x080           /* ro 32: Counters there are */
#define PRAWN_COUNTER_COUNT_GLOBAL_MASK         0x0000ffffU     /* Of the card */
#define PRAWN_COUNTER_COUNT_GLOBAL_SHIFT        0
#define PRAWN_COUNTER_COUNT_CONTEXT_MASK        0xffff0000U     /* Of each context */
#define PRAWN_COUNTER_COUNT_CONTEXT_SHIFT       16
#define PRAWN_BAR0_COUNTER_SELECT               0x084           /* rw 32: Which one COUNTER_VALUE and COUNTER_NAME show */
#define PRAWN_COUNTER_SELECT_INDEX_MASK         0x0000ffffU     /* Number of the counter */
#define PRAWN_COUNTER_SELECT_INDEX_SHIFT        0
#define PRAWN_COUNTER_SELECT_CONTEXT_MASK       0xffff0000U     /* 0: of the card; n + 1: of context n */
#define PRAWN_COUNTER_SELECT_CONTEXT_SHIFT      16
#define PRAWN_BAR0_COUNTER_VALUE                0x088           /* ro 64: Its value; all ones where there is no such counter */
#define PRAWN_BAR0_COUNTER_NAME                 0x090           /* ro 64: Its name, "block.counter", NUL-padded, COUNTER_NAME_SIZE bytes */
#define PRAWN_BAR0_COUNTER_NAME_COUNT           6
#define PRAWN_BAR0_UTLB_MODE                    0x100           /* rw 32: Variant (enum utlb_mode); may change only while no context is enabled */
#define PRAWN_BAR0_UTLB_GEOMETRY                0x104           /* rw 32: May change only while no context is enabled; other values are ignored */
#define PRAWN_UTLB_GEOMETRY_LOG2_ENTRIES_MASK   0x0000000fU     /* 6 to 14 */
#define PRAWN_UTLB_GEOMETRY_LOG2_ENTRIES_SHIFT  0
#define PRAWN_UTLB_GEOMETRY_LOG2_WAYS_MASK      0x00000030U     /* 0 to 3 */
#define PRAWN_UTLB_GEOMETRY_LOG2_WAYS_SHIFT     4
#define PRAWN_UTLB_GEOMETRY_OFFSET_MASK         0x00000040U     /* Index offset by context */
#define PRAWN_UTLB_GEOMETRY_OFFSET_SHIFT        6
#define PRAWN_UTLB_GEOMETRY_LOG2_PREFETCH_MASK  0x00000700U     /* Entries fetched on a miss: 1 to 32 */
#define PRAWN_UTLB_GEOMETRY_LOG2_PREFETCH_SHIFT 8
#define PRAWN_BAR0_AU_CONTROL                   0x110           /* rw 32: Automatic update (only if FEATURES.UPDATE or SNOOP) */
#define PRAWN_AU_CONTROL_COMBINE_MASK           0x00000001U     /* Combine consecutive stores */
#define PRAWN_AU_CONTROL_COMBINE_SHIFT          0
#define PRAWN_AU_CONTROL_LOG2_LIMIT_MASK        0x000000f0U     /* Log2 of the bytes that close a combined packet */
#define PRAWN_AU_CONTROL_LOG2_LIMIT_SHIFT       4
#define PRAWN_BAR0_AU_TIMER                     0x114           /* rw 32: Nanoseconds after the last store that close a combined packet; 0: no timer */
#define PRAWN_BAR0_FIFO_THRESHOLD               0x118           /* rw 32: Bytes in the outgoing FIFO that raise FIFO_THRESHOLD; 0: never */
#define PRAWN_BAR0_FIFO_LEVEL                   0x11c           /* ro 32: Bytes in the outgoing FIFO */
#define PRAWN_BAR0_PTP_TIME                     0x140           /* rw 64: The PTP clock: nanoseconds, signed, modulo 2^64 (only if FEATURES.PTP) */
#define PRAWN_BAR0_PTP_ADJUST                   0x148           /* wo 64: Nanoseconds, signed, to add to PTP_TIME at once */
#define PRAWN_BAR0_PTP_INCREMENT                0x150           /* rw 64: What PTP_TIME gains in each nanosecond of its time base, in 2^-48 ns; values outside of PTP_INCREMENT_MIN to _MAX are ignored */
#define PRAWN_BAR0_PTP_INCREMENT_RESET          0x0001000000000000ULL
#define PRAWN_BAR0_FW_CONTROL                   0x200           /* rw 32: Card processor (only if FEATURES.FIRMWARE) */
#define PRAWN_FW_CONTROL_RUN_MASK               0x00000001U     /* Release the processor from reset */
#define PRAWN_FW_CONTROL_RUN_SHIFT              0
#define PRAWN_FW_CONTROL_LOAD_MASK              0x00000002U     /* FW_DATA writes go to card SRAM */
#define PRAWN_FW_CONTROL_LOAD_SHIFT             1
#define PRAWN_BAR0_FW_STATUS                    0x204           /* ro 32: State of the processor and handshake */
#define PRAWN_FW_STATUS_RUNNING_MASK            0x00000001U     /* Out of reset */
#define PRAWN_FW_STATUS_RUNNING_SHIFT           0
#define PRAWN_FW_STATUS_READY_MASK              0x00000002U     /* The firmware has started its service */
#define PRAWN_FW_STATUS_READY_SHIFT             1
#define PRAWN_FW_STATUS_PANIC_MASK              0x00000004U     /* It stopped; a post-mortem is in SRAM */
#define PRAWN_FW_STATUS_PANIC_SHIFT             2
#define PRAWN_FW_STATUS_ABI_MASK                0xffff0000U     /* The firmware's own version of this interface */
#define PRAWN_FW_STATUS_ABI_SHIFT               16
#define PRAWN_BAR0_FW_ADDRESS                   0x208           /* rw 32: SRAM address of the next FW_DATA access; advances by 8 */
#define PRAWN_BAR0_FW_SRAM_SIZE                 0x20c           /* ro 32: Bytes of card SRAM */
#define PRAWN_BAR0_FW_DATA                      0x210           /* rw 64: Card SRAM at FW_ADDRESS */
#define PRAWN_BAR0_FW_CONSOLE                   0x218           /* ro 32: Next byte of the firmware's console */
#define PRAWN_FW_CONSOLE_BYTE_MASK              0x000000ffU     /* The byte */
#define PRAWN_FW_CONSOLE_BYTE_SHIFT             0
#define PRAWN_FW_CONSOLE_VALID_MASK             0x00000100U     /* There was one */
#define PRAWN_FW_CONSOLE_VALID_SHIFT            8
#define PRAWN_BAR0_FW_TIMER_MS                  0x21c           /* rw 32: Watchdog period in milliseconds; 0: off */

/* Registers of a doorbell page (BAR 2) */
#define PRAWN_DOORBELL_DOORBELL                 0x000           /* wo 64: New commands */
#define PRAWN_DOORBELL_PRODUCER_MASK            0x00000000ffffffffULL /* Producer index of the command ring, free running */
#define PRAWN_DOORBELL_PRODUCER_SHIFT           0
#define PRAWN_DOORBELL_CONSUMED_MASK            0xffffffff00000000ULL /* Consumer index of the completion ring, free running */
#define PRAWN_DOORBELL_CONSUMED_SHIFT           32
#define PRAWN_DOORBELL_NOTIFY_CONSUMED          0x008           /* wo 64: Consumer index of the notification ring (bits 31:0) */
#define PRAWN_DOORBELL_ARM_NOTIFY               0x010           /* wo 64: One interrupt as soon as the notification ring's producer differs from bits 31:0 */
#define PRAWN_DOORBELL_ARM_COMPLETION           0x018           /* wo 64: One interrupt as soon as the completion ring's producer differs from bits 31:0 */
#define PRAWN_DOORBELL_TIME                     0x020           /* ro 64: Model time in picoseconds */
#define PRAWN_DOORBELL_STATE                    0x028           /* ro 32: State of the context */
#define PRAWN_STATE_ENABLED_MASK                0x00000001U     /* Its rings are served */
#define PRAWN_STATE_ENABLED_SHIFT               0
#define PRAWN_STATE_ERROR_MASK                  0x00000002U     /* It was stopped */
#define PRAWN_STATE_ERROR_SHIFT                 1
#define PRAWN_STATE_STATUS_MASK                 0xffff0000U     /* Why (enum status) */
#define PRAWN_STATE_STATUS_SHIFT                16

/* TABLE_ENTRY: Entry of a context's translation table: a 4-level radix tree in host memory, owned by the kernel, indexed by virtual address bits 47:39, 38:30, 29:21, 20:12. The same format at every level; WRITE counts at the last level only. */
#define PRAWN_TABLE_ENTRY_VALID_MASK            0x0000000000000001ULL /* The rest means something */
#define PRAWN_TABLE_ENTRY_VALID_SHIFT           0
#define PRAWN_TABLE_ENTRY_WRITE_MASK            0x0000000000000002ULL /* The card may write the page */
#define PRAWN_TABLE_ENTRY_WRITE_SHIFT           1
#define PRAWN_TABLE_ENTRY_ADDRESS_MASK          0x000ffffffffff000ULL /* Bus address bits 51:12 of the page, or of the table below */
#define PRAWN_TABLE_ENTRY_ADDRESS_SHIFT         12

/* SLOT_FRAME: First word of a BAR 4 slot. */
#define PRAWN_SLOT_FRAME_VALID_MASK             0x0000000000000001ULL /* The slot may be used */
#define PRAWN_SLOT_FRAME_VALID_SHIFT            0
#define PRAWN_SLOT_FRAME_WRITE_MASK             0x0000000000000002ULL /* UPDATE: stores are allowed */
#define PRAWN_SLOT_FRAME_WRITE_SHIFT            1
#define PRAWN_SLOT_FRAME_ADDRESS_MASK           0x000ffffffffff000ULL /* MEMORY, UPDATE: bus address bits 51:12 of the page frame */
#define PRAWN_SLOT_FRAME_ADDRESS_SHIFT          12

/* SLOT_TARGET: Second word of a BAR 4 slot. */
#define PRAWN_SLOT_TARGET_OPT_MASK              0x000000000000ffffULL /* DESTINATION, UPDATE: entry of the outgoing page table */
#define PRAWN_SLOT_TARGET_OPT_SHIFT             0
#define PRAWN_SLOT_TARGET_PAGE_MASK             0xffffffff00000000ULL /* DESTINATION, UPDATE: page of the import */
#define PRAWN_SLOT_TARGET_PAGE_SHIFT            32

/* PROXY_STATUS: What a LOAD from a proxy address returns. */
#define PRAWN_PROXY_STATUS_INITIATION_MASK      0x0000000000000001ULL /* This LOAD started the transfer */
#define PRAWN_PROXY_STATUS_INITIATION_SHIFT     0
#define PRAWN_PROXY_STATUS_TRANSFERRING_MASK    0x0000000000000002ULL /* A transfer is under way */
#define PRAWN_PROXY_STATUS_TRANSFERRING_SHIFT   1
#define PRAWN_PROXY_STATUS_INVALID_MASK         0x0000000000000004ULL /* The state was Idle */
#define PRAWN_PROXY_STATUS_INVALID_SHIFT        2
#define PRAWN_PROXY_STATUS_MATCH_MASK           0x0000000000000008ULL /* The address is the base of the transfer under way */
#define PRAWN_PROXY_STATUS_MATCH_SHIFT          3
#define PRAWN_PROXY_STATUS_WRONG_SPACE_MASK     0x0000000000000010ULL /* Source and destination in the same space */
#define PRAWN_PROXY_STATUS_WRONG_SPACE_SHIFT    4
#define PRAWN_PROXY_STATUS_ERROR_MASK           0x0000000000ffff00ULL /* Device error (enum status) */
#define PRAWN_PROXY_STATUS_ERROR_SHIFT          8
#define PRAWN_PROXY_STATUS_REMAINING_MASK       0xffffffff00000000ULL /* Bytes still to be moved */
#define PRAWN_PROXY_STATUS_REMAINING_SHIFT      32

/* A context's command, written by the process. */
struct prawn_command {
	prawn_u8 opcode;                        /* enum opcode */
	prawn_u8 flags;                         /* COMMAND_FLAG_* */
	prawn_le16 rsvd0;                       /* 0 */
	prawn_le32 length;                      /* Bytes, 0 to MAX_MESSAGE */
	prawn_le64 source;                      /* Virtual address of the first byte */
	prawn_le64 offset;                      /* Byte in the import where the message goes */
	prawn_le64 cookie;                      /* Comes back in the completion */
	prawn_le32 import_id;                   /* Entry of the outgoing page table */
	prawn_le32 immediate;                   /* Delivered with the notification */
	prawn_le32 completions_seen;            /* Completions the library had consumed when it issued this */
	prawn_le32 notifications_seen;          /* Likewise notifications */
	prawn_le32 utlb_index;                  /* PER_PROCESS UTLB: entry of the first page; else 0 */
	prawn_le32 rsvd1[3];                    /* 0 */
};
PRAWN_ASSERT(sizeof(struct prawn_command) == 64, "size");
PRAWN_ASSERT(offsetof(struct prawn_command, opcode) == 0, "opcode");
PRAWN_ASSERT(offsetof(struct prawn_command, flags) == 1, "flags");
PRAWN_ASSERT(offsetof(struct prawn_command, rsvd0) == 2, "rsvd0");
PRAWN_ASSERT(offsetof(struct prawn_command, length) == 4, "length");
PRAWN_ASSERT(offsetof(struct prawn_command, source) == 8, "source");
PRAWN_ASSERT(offsetof(struct prawn_command, offset) == 16, "offset");
PRAWN_ASSERT(offsetof(struct prawn_command, cookie) == 24, "cookie");
PRAWN_ASSERT(offsetof(struct prawn_command, import_id) == 32, "import_id");
PRAWN_ASSERT(offsetof(struct prawn_command, immediate) == 36, "immediate");
PRAWN_ASSERT(offsetof(struct prawn_command, completions_seen) == 40, "completions_seen");
PRAWN_ASSERT(offsetof(struct prawn_command, notifications_seen) == 44, "notifications_seen");
PRAWN_ASSERT(offsetof(struct prawn_command, utlb_index) == 48, "utlb_index");
PRAWN_ASSERT(offsetof(struct prawn_command, rsvd1) == 52, "rsvd1");

/* The source of the command may be reused. One for every command, in order of the ring. */
struct prawn_completion {
	prawn_le64 cookie;                      /* Of the command */
	prawn_le64 accepted;                    /* Model time in ps when the doorbell was accepted */
	prawn_le64 finished;                    /* Model time in ps when the last byte had left host memory */
	prawn_le64 fault;                       /* NOT_PINNED: virtual address of the page */
	prawn_le32 bytes;                       /* Bytes handed to the network, from the start of the message */
	prawn_le16 status;                      /* enum status */
	prawn_le16 detail;                      /* IMPORT_ERROR: its reason (enum status) */
	prawn_le32 message;                     /* Message number (event stream, packets) */
	prawn_le32 rsvd[4];                     /* 0 */
	prawn_le32 seq;                         /* Index + 1 */
};
PRAWN_ASSERT(sizeof(struct prawn_completion) == 64, "size");
PRAWN_ASSERT(offsetof(struct prawn_completion, cookie) == 0, "cookie");
PRAWN_ASSERT(offsetof(struct prawn_completion, accepted) == 8, "accepted");
PRAWN_ASSERT(offsetof(struct prawn_completion, finished) == 16, "finished");
PRAWN_ASSERT(offsetof(struct prawn_completion, fault) == 24, "fault");
PRAWN_ASSERT(offsetof(struct prawn_completion, bytes) == 32, "bytes");
PRAWN_ASSERT(offsetof(struct prawn_completion, status) == 36, "status");
PRAWN_ASSERT(offsetof(struct prawn_completion, detail) == 38, "detail");
PRAWN_ASSERT(offsetof(struct prawn_completion, message) == 40, "message");
PRAWN_ASSERT(offsetof(struct prawn_completion, rsvd) == 44, "rsvd");
PRAWN_ASSERT(offsetof(struct prawn_completion, seq) == 60, "seq");

/* Something happened that a process waits for. */
struct prawn_notification {
	prawn_le64 cookie;                      /* Of the export (IPT_SET) or the import (OPT_SET) */
	prawn_le64 delivered;                   /* Model time in ps when the last byte was in host memory */
	prawn_le64 offset;                      /* First byte of the message in the export */
	prawn_le32 length;                      /* Bytes of the message */
	prawn_le32 immediate;                   /* From the command */
	prawn_le32 id;                          /* IPT entry; IMPORT_ERROR: OPT entry */
	prawn_le32 message;                     /* Message number at the sender */
	prawn_le16 source_node;                 /* Sender */
	prawn_le16 source_context;              /* Sender */
	prawn_le32 count;                       /* Messages that this entry stands for: more than 1 when the ring was full; the rest describes the last */
	prawn_u8 type;                          /* enum notification_type */
	prawn_u8 rsvd0;                         /* 0 */
	prawn_le16 status;                      /* IMPORT_ERROR: enum status */
	prawn_le32 rsvd1[2];                    /* 0 */
	prawn_le32 seq;                         /* Index + 1 */
};
PRAWN_ASSERT(sizeof(struct prawn_notification) == 64, "size");
PRAWN_ASSERT(offsetof(struct prawn_notification, cookie) == 0, "cookie");
PRAWN_ASSERT(offsetof(struct prawn_notification, delivered) == 8, "delivered");
PRAWN_ASSERT(offsetof(struct prawn_notification, offset) == 16, "offset");
PRAWN_ASSERT(offsetof(struct prawn_notification, length) == 24, "length");
PRAWN_ASSERT(offsetof(struct prawn_notification, immediate) == 28, "immediate");
PRAWN_ASSERT(offsetof(struct prawn_notification, id) == 32, "id");
PRAWN_ASSERT(offsetof(struct prawn_notification, message) == 36, "message");
PRAWN_ASSERT(offsetof(struct prawn_notification, source_node) == 40, "source_node");
PRAWN_ASSERT(offsetof(struct prawn_notification, source_context) == 42, "source_context");
PRAWN_ASSERT(offsetof(struct prawn_notification, count) == 44, "count");
PRAWN_ASSERT(offsetof(struct prawn_notification, type) == 48, "type");
PRAWN_ASSERT(offsetof(struct prawn_notification, rsvd0) == 49, "rsvd0");
PRAWN_ASSERT(offsetof(struct prawn_notification, status) == 50, "status");
PRAWN_ASSERT(offsetof(struct prawn_notification, rsvd1) == 52, "rsvd1");
PRAWN_ASSERT(offsetof(struct prawn_notification, seq) == 60, "seq");

/* A command of the kernel. The meaning of a to e depends on the opcode (see below). */
struct prawn_admin_command {
	prawn_u8 opcode;                        /* enum admin_opcode */
	prawn_u8 flags;                         /* ADMIN_FLAG_* */
	prawn_le16 context;                     /* Context, where one is meant */
	prawn_le32 index;                       /* Entry, slot, node, or vector */
	prawn_le64 a;                           /* See table */
	prawn_le64 b;                           /* See table */
	prawn_le64 c;                           /* See table */
	prawn_le64 d;                           /* See table */
	prawn_le64 e;                           /* See table */
	prawn_le64 f;                           /* See table */
	prawn_le64 rsvd;                        /* 0 */
};
PRAWN_ASSERT(sizeof(struct prawn_admin_command) == 64, "size");
PRAWN_ASSERT(offsetof(struct prawn_admin_command, opcode) == 0, "opcode");
PRAWN_ASSERT(offsetof(struct prawn_admin_command, flags) == 1, "flags");
PRAWN_ASSERT(offsetof(struct prawn_admin_command, context) == 2, "context");
PRAWN_ASSERT(offsetof(struct prawn_admin_command, index) == 4, "index");
PRAWN_ASSERT(offsetof(struct prawn_admin_command, a) == 8, "a");
PRAWN_ASSERT(offsetof(struct prawn_admin_command, b) == 16, "b");
PRAWN_ASSERT(offsetof(struct prawn_admin_command, c) == 24, "c");
PRAWN_ASSERT(offsetof(struct prawn_admin_command, d) == 32, "d");
PRAWN_ASSERT(offsetof(struct prawn_admin_command, e) == 40, "e");
PRAWN_ASSERT(offsetof(struct prawn_admin_command, f) == 48, "f");
PRAWN_ASSERT(offsetof(struct prawn_admin_command, rsvd) == 56, "rsvd");

/* Acknowledges the admin command with the same index; may come out of order. */
struct prawn_admin_ack {
	prawn_le32 value;                       /* Result, where there is one */
	prawn_le16 status;                      /* enum status */
	prawn_le16 detail;                      /* 0 */
	prawn_le32 rsvd;                        /* 0 */
	prawn_le32 seq;                         /* Index + 1 */
};
PRAWN_ASSERT(sizeof(struct prawn_admin_ack) == 16, "size");
PRAWN_ASSERT(offsetof(struct prawn_admin_ack, value) == 0, "value");
PRAWN_ASSERT(offsetof(struct prawn_admin_ack, status) == 4, "status");
PRAWN_ASSERT(offsetof(struct prawn_admin_ack, detail) == 6, "detail");
PRAWN_ASSERT(offsetof(struct prawn_admin_ack, rsvd) == 8, "rsvd");
PRAWN_ASSERT(offsetof(struct prawn_admin_ack, seq) == 12, "seq");

/* Entry of the kernel event ring. */
struct prawn_kernel_event {
	prawn_u8 type;                          /* enum event_type */
	prawn_u8 rsvd0;                         /* 0 */
	prawn_le16 node;                        /* Peer it is about */
	prawn_le16 epoch;                       /* Its epoch */
	prawn_le16 context;                     /* Context it is about */
	prawn_le64 value;                       /* By type */
	prawn_le64 time;                        /* Model time in ps */
	prawn_le32 length;                      /* Bytes of data */
	prawn_le32 rsvd1;                       /* 0 */
	prawn_u8 data[256];                     /* MGMT: the message */
	prawn_le32 rsvd2[55];                   /* 0 */
	prawn_le32 seq;                         /* Index + 1 */
};
PRAWN_ASSERT(sizeof(struct prawn_kernel_event) == 512, "size");
PRAWN_ASSERT(offsetof(struct prawn_kernel_event, type) == 0, "type");
PRAWN_ASSERT(offsetof(struct prawn_kernel_event, rsvd0) == 1, "rsvd0");
PRAWN_ASSERT(offsetof(struct prawn_kernel_event, node) == 2, "node");
PRAWN_ASSERT(offsetof(struct prawn_kernel_event, epoch) == 4, "epoch");
PRAWN_ASSERT(offsetof(struct prawn_kernel_event, context) == 6, "context");
PRAWN_ASSERT(offsetof(struct prawn_kernel_event, value) == 8, "value");
PRAWN_ASSERT(offsetof(struct prawn_kernel_event, time) == 16, "time");
PRAWN_ASSERT(offsetof(struct prawn_kernel_event, length) == 24, "length");
PRAWN_ASSERT(offsetof(struct prawn_kernel_event, rsvd1) == 28, "rsvd1");
PRAWN_ASSERT(offsetof(struct prawn_kernel_event, data) == 32, "data");
PRAWN_ASSERT(offsetof(struct prawn_kernel_event, rsvd2) == 288, "rsvd2");
PRAWN_ASSERT(offsetof(struct prawn_kernel_event, seq) == 508, "seq");

/* Header of every packet. */
struct prawn_packet_header {
	prawn_u8 version;                       /* PACKET_VERSION */
	prawn_u8 type;                          /* enum packet_type */
	prawn_le16 flags;                       /* PACKET_FLAG_* */
	prawn_le16 source_node;                 /* Sender */
	prawn_le16 destination_node;            /* Receiver */
	prawn_le16 source_epoch;                /* Life of the sender */
	prawn_le16 destination_epoch;           /* Life of the receiver as the sender knows it; 0: any (MGMT, HELLO, BYE) */
	prawn_le32 sequence;                    /* Per pair of nodes, from 1 after HELLO */
	prawn_le32 acknowledge;                 /* Last sequence received in order from the receiver */
	prawn_le16 source_context;              /* Sender's context */
	prawn_le16 payload_length;              /* Bytes */
	prawn_le32 message;                     /* Message number of the sender's context */
	prawn_le32 message_offset;              /* Byte of the message where this payload starts */
	prawn_le64 key;                         /* Of the export */
	prawn_le64 offset;                      /* Byte of the export where the payload goes */
	prawn_le32 export_id;                   /* Destination IPT entry */
	prawn_le32 import_id;                   /* Sender's OPT entry: names the import in a NACK */
	prawn_le32 immediate;                   /* For the notification */
	prawn_le16 status;                      /* NACK: enum status */
	prawn_le16 rsvd;                        /* 0 */
};
PRAWN_ASSERT(sizeof(struct prawn_packet_header) == 64, "size");
PRAWN_ASSERT(offsetof(struct prawn_packet_header, version) == 0, "version");
PRAWN_ASSERT(offsetof(struct prawn_packet_header, type) == 1, "type");
PRAWN_ASSERT(offsetof(struct prawn_packet_header, flags) == 2, "flags");
PRAWN_ASSERT(offsetof(struct prawn_packet_header, source_node) == 4, "source_node");
PRAWN_ASSERT(offsetof(struct prawn_packet_header, destination_node) == 6, "destination_node");
PRAWN_ASSERT(offsetof(struct prawn_packet_header, source_epoch) == 8, "source_epoch");
PRAWN_ASSERT(offsetof(struct prawn_packet_header, destination_epoch) == 10, "destination_epoch");
PRAWN_ASSERT(offsetof(struct prawn_packet_header, sequence) == 12, "sequence");
PRAWN_ASSERT(offsetof(struct prawn_packet_header, acknowledge) == 16, "acknowledge");
PRAWN_ASSERT(offsetof(struct prawn_packet_header, source_context) == 20, "source_context");
PRAWN_ASSERT(offsetof(struct prawn_packet_header, payload_length) == 22, "payload_length");
PRAWN_ASSERT(offsetof(struct prawn_packet_header, message) == 24, "message");
PRAWN_ASSERT(offsetof(struct prawn_packet_header, message_offset) == 28, "message_offset");
PRAWN_ASSERT(offsetof(struct prawn_packet_header, key) == 32, "key");
PRAWN_ASSERT(offsetof(struct prawn_packet_header, offset) == 40, "offset");
PRAWN_ASSERT(offsetof(struct prawn_packet_header, export_id) == 48, "export_id");
PRAWN_ASSERT(offsetof(struct prawn_packet_header, import_id) == 52, "import_id");
PRAWN_ASSERT(offsetof(struct prawn_packet_header, immediate) == 56, "immediate");
PRAWN_ASSERT(offsetof(struct prawn_packet_header, status) == 60, "status");
PRAWN_ASSERT(offsetof(struct prawn_packet_header, rsvd) == 62, "rsvd");

/* Start of every management message. */
struct prawn_mgmt_header {
	prawn_u8 type;                          /* enum mgmt_type */
	prawn_u8 version;                       /* 1 */
	prawn_le16 status;                      /* Answers: 0 or a positive errno */
	prawn_le32 transaction;                 /* Chosen by the asker, repeated in the answer */
	prawn_le32 export_id;                   /* IPT entry at the exporter */
	prawn_le32 import_id;                   /* OPT entry at the importer */
	prawn_le64 rsvd;                        /* 0 */
};
PRAWN_ASSERT(sizeof(struct prawn_mgmt_header) == 24, "size");
PRAWN_ASSERT(offsetof(struct prawn_mgmt_header, type) == 0, "type");
PRAWN_ASSERT(offsetof(struct prawn_mgmt_header, version) == 1, "version");
PRAWN_ASSERT(offsetof(struct prawn_mgmt_header, status) == 2, "status");
PRAWN_ASSERT(offsetof(struct prawn_mgmt_header, transaction) == 4, "transaction");
PRAWN_ASSERT(offsetof(struct prawn_mgmt_header, export_id) == 8, "export_id");
PRAWN_ASSERT(offsetof(struct prawn_mgmt_header, import_id) == 12, "import_id");
PRAWN_ASSERT(offsetof(struct prawn_mgmt_header, rsvd) == 16, "rsvd");

/* IMPORT_REQUEST. */
struct prawn_mgmt_import_request {
	struct prawn_mgmt_header header;
	prawn_le32 uid;                         /* Effective user of the importer, in the initial namespace */
	prawn_le32 gid;                         /* Effective group */
	prawn_u8 name[64];                      /* Of the export, NUL-terminated */
	prawn_le64 rsvd;                        /* 0 */
};
PRAWN_ASSERT(sizeof(struct prawn_mgmt_import_request) == 104, "size");
PRAWN_ASSERT(offsetof(struct prawn_mgmt_import_request, header) == 0, "header");
PRAWN_ASSERT(offsetof(struct prawn_mgmt_import_request, uid) == 24, "uid");
PRAWN_ASSERT(offsetof(struct prawn_mgmt_import_request, gid) == 28, "gid");
PRAWN_ASSERT(offsetof(struct prawn_mgmt_import_request, name) == 32, "name");
PRAWN_ASSERT(offsetof(struct prawn_mgmt_import_request, rsvd) == 96, "rsvd");

/* IMPORT_REPLY. */
struct prawn_mgmt_import_reply {
	struct prawn_mgmt_header header;
	prawn_le64 key;                         /* Of the export */
	prawn_le64 length;                      /* Bytes */
	prawn_le32 flags;                       /* IPT_FLAG_* */
	prawn_le32 rsvd0;                       /* 0 */
	prawn_le64 rsvd1;                       /* 0 */
};
PRAWN_ASSERT(sizeof(struct prawn_mgmt_import_reply) == 56, "size");
PRAWN_ASSERT(offsetof(struct prawn_mgmt_import_reply, header) == 0, "header");
PRAWN_ASSERT(offsetof(struct prawn_mgmt_import_reply, key) == 24, "key");
PRAWN_ASSERT(offsetof(struct prawn_mgmt_import_reply, length) == 32, "length");
PRAWN_ASSERT(offsetof(struct prawn_mgmt_import_reply, flags) == 40, "flags");
PRAWN_ASSERT(offsetof(struct prawn_mgmt_import_reply, rsvd0) == 44, "rsvd0");
PRAWN_ASSERT(offsetof(struct prawn_mgmt_import_reply, rsvd1) == 48, "rsvd1");

#endif

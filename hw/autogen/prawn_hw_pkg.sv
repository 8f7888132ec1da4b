// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
// Made by 'python3 hw/util/regtool.py' from hw/data; do not edit.
//
// The card for SystemVerilog. In every packed structure the byte that comes
// first in memory or on the wire is the least significant one, so that a
// little-endian word of memory can be assigned as it is: members are declared
// from the last byte to the first. A name that the language reserves has an
// underscore at its end (type_, time_).

/* verilator lint_off UNUSEDPARAM */
package prawn_hw_pkg;

  // Constants of card.toml
  // Driver and card must agree on it
  parameter int unsigned AbiMajor = 1;
  // Raised when reserved bits get a meaning
  parameter int unsigned AbiMinor = 1;
  // The vendor number that QEMU and others use for unassigned devices
  parameter int unsigned PciVendorId = 32'h1234;
  // "PW"
  parameter int unsigned PciDeviceId = 32'h5057;
  // Network controller, other
  parameter int unsigned PciClass = 32'h28000;
  // Raised with the hardware
  parameter int unsigned PciRevision = 1;
  // "PRWN" in memory order; what register ID reads
  parameter int unsigned IdMagic = 32'h4e575250;
  // Control registers, MSI-X table and PBA (bytes)
  parameter int unsigned Bar0Size = 32'h100000;
  // One doorbell page per context (bytes)
  parameter int unsigned Bar2Size = 32'h40000;
  // Proxy space (bytes)
  parameter logic [63:0] Bar4Size = 64'h100000000;
  // In BAR 0
  parameter int unsigned MsixTableOffset = 32'h8000;
  // In BAR 0
  parameter int unsigned MsixPbaOffset = 32'h9000;
  // MSI-X vectors: 0 is the kernel's own, 1 to 15 are given to contexts
  parameter int unsigned Vectors = 16;
  // Kernel events, admin acknowledgements, errors
  parameter int unsigned VectorKernel = 0;
  // The card knows 4 KiB pages only
  parameter int unsigned PageShift = 12;
  // Bytes
  parameter int unsigned PageSize = 4096;
  // Protection domains
  parameter int unsigned Contexts = 64;
  // Outgoing page table: imports of all contexts together
  parameter int unsigned OptEntries = 4096;
  // Incoming page table: exports of all contexts together
  parameter int unsigned IptEntries = 4096;
  // Nodes of one fabric
  parameter int unsigned MaxNodes = 16;
  // Largest payload of a packet (bytes); a packet never crosses a page of its destination
  parameter int unsigned MaxPayload = 4096;
  // Largest length of one command (bytes)
  parameter int unsigned MaxMessage = 32'h40000000;
  // Largest management message between drivers (bytes)
  parameter int unsigned MgmtMax = 256;
  // Smallest ring: 16 entries
  parameter int unsigned RingLog2Min = 4;
  // Largest ring: 4096 entries
  parameter int unsigned RingLog2Max = 12;
  // Levels of a translation table; 512 entries of 8 bytes a page
  parameter int unsigned TableLevels = 4;
  // Virtual addresses that a translation table covers
  parameter int unsigned VaBits = 48;
  // Bytes of a counter's name, NUL-padded
  parameter int unsigned CounterNameSize = 48;
  // Of PTP_INCREMENT: 2^48 is the nominal rate
  parameter int unsigned PtpFractionBits = 48;
  // Half the nominal rate
  parameter logic [63:0] PtpIncrementMin = 64'h800000000000;
  // One and a half of it
  parameter logic [63:0] PtpIncrementMax = 64'h1800000000000;
  // The same as a deviation from the nominal rate, in parts per billion
  parameter int unsigned PtpMaxPpb = 500000000;
  // BAR 4 address bits 31:26: context
  parameter int unsigned Bar4ContextShift = 26;
  // BAR 4 address bits 25:24: kind of slot (enum slot_kind)
  parameter int unsigned Bar4KindShift = 24;
  // BAR 4 address bits 23:12: slot
  parameter int unsigned Bar4SlotShift = 12;
  // Slots of one kind in one context
  parameter int unsigned Slots = 4096;
  // Kinds of slot
  parameter int unsigned Kinds = 4;

  // Constants of rings.toml
  // Ask for a notification at the receiver
  parameter int unsigned CommandFlagNotify = 1;
  // All flags that exist
  parameter int unsigned CommandFlags = 1;
  // Raise vector 0 with the acknowledgement
  parameter int unsigned AdminFlagInterrupt = 1;
  // All flags that exist
  parameter int unsigned AdminFlags = 1;
  // IPT_SET: notifications are wanted
  parameter int unsigned IptFlagNotify = 1;

  // Constants of packet.toml
  // Of the wire format
  parameter int unsigned PacketVersion = 1;
  // Bytes after the payload
  parameter int unsigned PacketCrcSize = 4;
  // First packet of a message
  parameter int unsigned PacketFlagFirst = 1;
  // Last packet of a message
  parameter int unsigned PacketFlagLast = 2;
  // The sender asks for a notification (with LAST)
  parameter int unsigned PacketFlagNotify = 4;
  // Automatic update (else deliberate)
  parameter int unsigned PacketFlagAutomatic = 8;
  // All flags that exist
  parameter int unsigned PacketFlags = 15;
  // Bytes of the name of an export, NUL included
  parameter int unsigned MgmtNameSize = 64;

  // Outcome of a command, an admin command, or the reason in a NACK. 16 bits.
  typedef enum logic [15:0] {
    StatusOk = 16'd0,                        // Done
    StatusBadOpcode = 16'd1,                 // Unknown opcode
    // A reserved field is not zero, or a field is out of its range
    StatusBadField = 16'd2,
    // Length beyond MAX_MESSAGE, or address plus length wraps
    StatusBadLength = 16'd3,
    StatusBadImport = 16'd4,                 // No such import, or it belongs to another context
    StatusOutOfRange = 16'd5,                // Offset plus length beyond the end of the import
    // The translation table has no valid entry for a source page
    StatusNotPinned = 16'd6,
    // The entry is valid but the card may not write the page
    StatusNotWritable = 16'd7,
    // The host refused a DMA: no such memory, bus mastering off, or the host went away
    StatusDmaError = 16'd8,
    // The import is in error state since an earlier NACK; detail has its reason
    StatusImportError = 16'd9,
    // The context was disabled or reset while the command was in flight
    StatusCancelled = 16'd10,
    StatusBusy = 16'd11,                     // No room just now; try again
    StatusUnsupported = 16'd12,              // Known, but not in this card; see register FEATURES
    StatusBadContext = 16'd13,               // No such context, or its state does not allow it
    // The peer was declared dead or restarted before it acknowledged. NACK: a packet of the message
    // is missing
    StatusUnknownOutcome = 16'd14,
    // Producer index more than one ring ahead: the context is stopped
    StatusRingOverrun = 16'd15,
    StatusBadExport = 16'd32,                // NACK: the IPT entry is not valid, or was withdrawn
    StatusBadKey = 16'd33,                   // NACK: wrong key
    StatusExportRange = 16'd34,              // NACK: outside of the export
    StatusStaleEpoch = 16'd35,               // NACK: addressed to an earlier life of the node
    // NACK: a page of the export has no writable translation, or its DMA failed
    StatusReceiveFault = 16'd36,
    StatusNoHost = 16'd37,                   // NACK: no driver is running on the node
    // NACK: the kernel event ring of the node has no room for a management message
    StatusEventFull = 16'd38,
    StatusPeerDead = 16'd39,                 // The peer does not answer
    // NACK: type, version or length of the packet makes no sense
    StatusBadPacket = 16'd40
  } status_e;

  // Commands of a context's command ring.
  typedef enum logic [7:0] {
    OpcodeNop = 8'd0,                        // Completes, does nothing else
    // Deliberate update: length bytes from source to the import
    OpcodeSend = 8'd1,
    // Completes when all earlier commands of the context have completed
    OpcodeFence = 8'd2
  } opcode_e;

  // Commands of the kernel's admin ring.
  typedef enum logic [7:0] {
    AdminOpcodeNop = 8'd0,                   // Acknowledged, does nothing else
    AdminOpcodeContextEnable = 8'd1,         // Give a context its rings, table and vector
    // Stop a context; acknowledged when no DMA for it is in flight
    AdminOpcodeContextDisable = 8'd2,
    AdminOpcodeOptSet = 8'd3,                // Write an outgoing page table entry (an import)
    // Invalidate it; the commands under way with it end BAD_IMPORT, and what of them was not handed
    // to the network does not leave; acknowledged when no command uses it
    AdminOpcodeOptClear = 8'd4,
    AdminOpcodeIptSet = 8'd5,                // Write an incoming page table entry (an export)
    // Invalidate it; acknowledged when no DMA into it is in flight
    AdminOpcodeIptClear = 8'd6,
    // Forget translations of a range; acknowledged when no DMA uses one
    AdminOpcodeUtlbInvalidate = 8'd7,
    AdminOpcodeUtlbFill = 8'd8,              // Answer a miss (kernel-managed UTLB)
    AdminOpcodeSlotSet = 8'd9,               // Write a slot of BAR 4
    // Invalidate slots; acknowledged when no transfer uses one
    AdminOpcodeSlotClear = 8'd10,
    AdminOpcodeMgmtSend = 8'd11,             // Send a management message to another node's driver
    // Tell the checker of a page the card may touch (only if FEATURES.CHECKER)
    AdminOpcodeGrant = 8'd12,
    AdminOpcodeRevoke = 8'd13,               // Take a grant back
    AdminOpcodePeerControl = 8'd14           // Declare a peer dead, or welcome it again
  } admin_opcode_e;

  // Entries of the kernel event ring.
  typedef enum logic [7:0] {
    EventTypeNone = 8'd0,                    // Empty
    EventTypeMgmt = 8'd1,                    // A management message has arrived
    EventTypePeerUp = 8'd2,                  // A peer started a new life; value is its epoch
    EventTypePeerDown = 8'd3,                // A peer went away or was declared dead
    EventTypeContextError = 8'd4,            // A context was stopped; value is the status
    EventTypeUtlbMiss = 8'd5,                // Kernel-managed UTLB: a translation is wanted
    EventTypeFifoThreshold = 8'd6,           // The outgoing FIFO is above its threshold
    EventTypeFirmware = 8'd7,                // The firmware has something to say; value is its code
    // Kernel-managed UTLB: a translation left the card and may be unpinned
    EventTypeUtlbEvict = 8'd8
  } event_type_e;

  // Entries of a context's notification ring.
  typedef enum logic [7:0] {
    NotificationTypeNone = 8'd0,             // Empty
    // A message with the notify flag has been delivered completely
    NotificationTypeMessage = 8'd1,
    NotificationTypeImportError = 8'd2       // An import went to error state; status has the reason
  } notification_type_e;

  // Kinds of BAR 4 pages.
  typedef enum logic [1:0] {
    SlotKindMemory = 2'd0,                   // Source of a proxy transfer: a page frame
    SlotKindDestination = 2'd1,              // Destination of a proxy transfer: a page of an import
    // Automatic-update window: a page frame bound to a page of an import
    SlotKindUpdate = 2'd2,
    SlotKindReserved = 2'd3                  // Not used
  } slot_kind_e;

  // Types of packet.
  typedef enum logic [7:0] {
    PacketTypeData = 8'd1,                   // Part of an update
    PacketTypeAck = 8'd2,                    // Acknowledgement alone
    // The receiver refused a DATA or MGMT packet; status says why
    PacketTypeNack = 8'd3,
    PacketTypeMgmt = 8'd4,                   // Management message between drivers
    PacketTypeHello = 8'd5,                  // The sender starts a new life: its epoch has changed
    PacketTypeBye = 8'd6                     // The sender's host has gone
  } packet_type_e;

  // Variants of the UTLB (register UTLB_MODE).
  typedef enum logic [1:0] {
    UtlbModeHierarchical = 2'd0,             // Tables in host memory, cache on the card
    UtlbModePerProcess = 2'd1,               // Table in card SRAM, index given by the process
    UtlbModeKernelManaged = 2'd2,            // A miss interrupts the kernel
    UtlbModeRegistered = 2'd3                // Everything pinned at registration
  } utlb_mode_e;

  // Management messages between drivers.
  typedef enum logic [7:0] {
    MgmtTypeImportRequest = 8'd1,            // Ask a node for an export by name
    MgmtTypeImportReply = 8'd2,              // The answer
    // The export is gone; sent to every node that imported it
    MgmtTypeWithdraw = 8'd3,
    MgmtTypeWithdrawAck = 8'd4,              // The import has been invalidated
    MgmtTypeUnimport = 8'd5,                 // The importer has let go
    MgmtTypePing = 8'd6,                     // Liveness
    MgmtTypePong = 8'd7                      // Answer to PING
  } mgmt_type_e;

  // Registers: byte offsets in bar0
  // ro 32: ID_MAGIC
  parameter logic [19:0] Bar0IdOffset = 20'h000;
  parameter logic [31:0] Bar0IdReset = 32'h4e575250;
  // ro 32: Version of this interface
  parameter logic [19:0] Bar0AbiOffset = 20'h004;
  parameter logic [31:0] Bar0AbiReset = 32'h10001;
  // ro 64: What this card has
  parameter logic [19:0] Bar0FeaturesOffset = 20'h008;
  // rw 32: Global control
  parameter logic [19:0] Bar0CtrlOffset = 20'h010;
  parameter logic [31:0] Bar0CtrlReset = 32'h0;
  // ro 32: Global state
  parameter logic [19:0] Bar0StatusOffset = 20'h014;
  // ro 32: Place in the fabric
  parameter logic [19:0] Bar0NodeOffset = 20'h018;
  // ro 32: This life of the node, 1 to 65535; changes with every reset
  parameter logic [19:0] Bar0EpochOffset = 20'h01c;
  // ro 64: Sizes of this card
  parameter logic [19:0] Bar0LimitsOffset = 20'h020;
  // ro 64: Model time in picoseconds: the card's clock
  parameter logic [19:0] Bar0TimeOffset = 20'h028;
  // ro 32: What the card's clock means
  parameter logic [19:0] Bar0TimeModeOffset = 20'h030;
  // ro 32: CRC-32C of the timing profile's name: lets a tool label its results
  parameter logic [19:0] Bar0ProfileOffset = 20'h034;
  // rw 64: Bus address of the admin ring, page aligned
  parameter logic [19:0] Bar0AdminBaseOffset = 20'h040;
  // rw 64: Bus address of the acknowledgements, page aligned; entry n answers command n
  parameter logic [19:0] Bar0AdminAckBaseOffset = 20'h048;
  // rw 32: Log2 of the entries of both
  parameter logic [19:0] Bar0AdminLog2Offset = 20'h050;
  // wo 32: Producer index, free running
  parameter logic [19:0] Bar0AdminDoorbellOffset = 20'h054;
  // rw 64: Bus address of the kernel event ring, page aligned
  parameter logic [19:0] Bar0EventBaseOffset = 20'h058;
  // rw 32: Log2 of its entries
  parameter logic [19:0] Bar0EventLog2Offset = 20'h060;
  // wo 32: Consumer index, free running; re-arms the interrupt: one follows if entries beyond it
  // exist
  parameter logic [19:0] Bar0EventConsumedOffset = 20'h064;
  // rw1c 32: Why INTx or vector 0 was raised
  parameter logic [19:0] Bar0IntCauseOffset = 20'h068;
  // rw 32: Bits of INT_CAUSE that raise INTx (used only without MSI-X)
  parameter logic [19:0] Bar0IntEnableOffset = 20'h06c;
  parameter logic [31:0] Bar0IntEnableReset = 32'h0;
  // ro 32: Counters there are
  parameter logic [19:0] Bar0CounterCountOffset = 20'h080;
  // rw 32: Which one COUNTER_VALUE and COUNTER_NAME show
  parameter logic [19:0] Bar0CounterSelectOffset = 20'h084;
  // ro 64: Its value; all ones where there is no such counter
  parameter logic [19:0] Bar0CounterValueOffset = 20'h088;
  // ro 64: Its name, "block.counter", NUL-padded, COUNTER_NAME_SIZE bytes
  parameter logic [19:0] Bar0CounterNameOffset = 20'h090;
  // rw 32: Variant (enum utlb_mode); may change only while no context is enabled
  parameter logic [19:0] Bar0UtlbModeOffset = 20'h100;
  // rw 32: May change only while no context is enabled; other values are ignored
  parameter logic [19:0] Bar0UtlbGeometryOffset = 20'h104;
  // rw 32: Automatic update (only if FEATURES.UPDATE or SNOOP)
  parameter logic [19:0] Bar0AuControlOffset = 20'h110;
  // rw 32: Nanoseconds after the last store that close a combined packet; 0: no timer
  parameter logic [19:0] Bar0AuTimerOffset = 20'h114;
  // rw 32: Bytes in the outgoing FIFO that raise FIFO_THRESHOLD; 0: never
  parameter logic [19:0] Bar0FifoThresholdOffset = 20'h118;
  // ro 32: Bytes in the outgoing FIFO
  parameter logic [19:0] Bar0FifoLevelOffset = 20'h11c;
  // rw 64: The PTP clock: nanoseconds, signed, modulo 2^64 (only if FEATURES.PTP)
  parameter logic [19:0] Bar0PtpTimeOffset = 20'h140;
  // wo 64: Nanoseconds, signed, to add to PTP_TIME at once
  parameter logic [19:0] Bar0PtpAdjustOffset = 20'h148;
  // rw 64: What PTP_TIME gains in each nanosecond of its time base, in 2^-48 ns; values outside of
  // PTP_INCREMENT_MIN to _MAX are ignored
  parameter logic [19:0] Bar0PtpIncrementOffset = 20'h150;
  parameter logic [63:0] Bar0PtpIncrementReset = 64'h1000000000000;
  // rw 32: Card processor (only if FEATURES.FIRMWARE)
  parameter logic [19:0] Bar0FwControlOffset = 20'h200;
  // ro 32: State of the processor and handshake
  parameter logic [19:0] Bar0FwStatusOffset = 20'h204;
  // rw 32: SRAM address of the next FW_DATA access; advances by 8
  parameter logic [19:0] Bar0FwAddressOffset = 20'h208;
  // ro 32: Bytes of card SRAM
  parameter logic [19:0] Bar0FwSramSizeOffset = 20'h20c;
  // rw 64: Card SRAM at FW_ADDRESS
  parameter logic [19:0] Bar0FwDataOffset = 20'h210;
  // ro 32: Next byte of the firmware's console
  parameter logic [19:0] Bar0FwConsoleOffset = 20'h218;
  // rw 32: Watchdog period in milliseconds; 0: off
  parameter logic [19:0] Bar0FwTimerMsOffset = 20'h21c;

  // bar0 ABI: Version of this interface
  typedef struct packed {
    logic [15:0] major;                      // ABI_MAJOR
    logic [15:0] minor;                      // ABI_MINOR
  } bar0_abi_t;

  // bar0 FEATURES: What this card has
  typedef struct packed {
    logic [51:0] rsvd0;
    logic [3:0] utlb_modes;                  // One bit per utlb_mode that can be chosen
    logic rsvd1;
    // A clock that can be set (PTP_TIME and the two behind it)
    logic ptp;
    logic retransmit;                        // Reliable delivery over a lossy fabric
    logic firmware;                          // A processor that wants firmware
    logic snoop;                             // Automatic update by bus snooping
    logic update;                            // Automatic update through the window
    logic proxy;                             // Proxy UDMA (BAR 4 kinds MEMORY, DESTINATION)
    logic checker_;                          // A checker wants GRANT and REVOKE
  } bar0_features_t;

  // bar0 CTRL: Global control
  typedef struct packed {
    logic [29:0] rsvd0;
    // The driver is ready: packets are accepted, rings are served
    logic enable;
    // Write 1: the card goes to reset state; reads 1 until STATUS.READY
    logic reset;
  } bar0_ctrl_t;

  // bar0 STATUS: Global state
  typedef struct packed {
    logic [26:0] rsvd0;
    logic check_failed;                      // The checker saw a DMA outside of the grants
    // The admin ring was misconfigured or overrun; reset to recover
    logic admin_error;
    logic bus_master;                        // DMA is allowed by PCI configuration
    logic link_up;                           // The fabric is there
    logic ready;                             // Reset is over
  } bar0_status_t;

  // bar0 NODE: Place in the fabric
  typedef struct packed {
    logic [15:0] count;                      // Nodes of the fabric, this one included
    logic [15:0] id;                         // This node
  } bar0_node_t;

  // bar0 LIMITS: Sizes of this card
  typedef struct packed {
    logic [15:0] vectors;                    // MSI-X vectors
    logic [15:0] ipt_entries;                // Entries of the incoming page table
    logic [15:0] opt_entries;                // Entries of the outgoing page table
    logic [15:0] contexts;                   // Contexts
  } bar0_limits_t;

  // bar0 TIME_MODE: What the card's clock means
  typedef struct packed {
    logic [28:0] rsvd0;
    logic skewed;                            // Synchronized, but not exact
    logic [1:0] mode;                        // 0 free-running, 1 synchronized, 2 replay
  } bar0_time_mode_t;

  // bar0 INT_CAUSE: Why INTx or vector 0 was raised
  typedef struct packed {
    logic [27:0] rsvd0;
    logic check;                             // The checker failed
    logic context_;                          // INTx only: a context wants attention
    // An admin command with the interrupt flag was acknowledged
    logic admin;
    logic event_;                            // The event ring has new entries
  } bar0_int_cause_t;

  // bar0 COUNTER_COUNT: Counters there are
  typedef struct packed {
    logic [15:0] context_;                   // Of each context
    logic [15:0] global_;                    // Of the card
  } bar0_counter_count_t;

  // bar0 COUNTER_SELECT: Which one COUNTER_VALUE and COUNTER_NAME show
  typedef struct packed {
    logic [15:0] context_;                   // 0: of the card; n + 1: of context n
    logic [15:0] index;                      // Number of the counter
  } bar0_counter_select_t;

  // bar0 UTLB_GEOMETRY: May change only while no context is enabled; other values are ignored
  typedef struct packed {
    logic [20:0] rsvd0;
    logic [2:0] log2_prefetch;               // Entries fetched on a miss: 1 to 32
    logic rsvd1;
    logic offset;                            // Index offset by context
    logic [1:0] log2_ways;                   // 0 to 3
    logic [3:0] log2_entries;                // 6 to 14
  } bar0_utlb_geometry_t;

  // bar0 AU_CONTROL: Automatic update (only if FEATURES.UPDATE or SNOOP)
  typedef struct packed {
    logic [23:0] rsvd0;
    logic [3:0] log2_limit;                  // Log2 of the bytes that close a combined packet
    logic [2:0] rsvd1;
    logic combine;                           // Combine consecutive stores
  } bar0_au_control_t;

  // bar0 FW_CONTROL: Card processor (only if FEATURES.FIRMWARE)
  typedef struct packed {
    logic [29:0] rsvd0;
    logic load;                              // FW_DATA writes go to card SRAM
    logic run;                               // Release the processor from reset
  } bar0_fw_control_t;

  // bar0 FW_STATUS: State of the processor and handshake
  typedef struct packed {
    logic [15:0] abi;                        // The firmware's own version of this interface
    logic [12:0] rsvd0;
    logic panic;                             // It stopped; a post-mortem is in SRAM
    logic ready;                             // The firmware has started its service
    logic running;                           // Out of reset
  } bar0_fw_status_t;

  // bar0 FW_CONSOLE: Next byte of the firmware's console
  typedef struct packed {
    logic [22:0] rsvd0;
    logic valid;                             // There was one
    logic [7:0] byte_;                       // The byte
  } bar0_fw_console_t;

  // Registers: byte offsets in doorbell
  // wo 64: New commands
  parameter logic [11:0] DoorbellDoorbellOffset = 12'h000;
  // wo 64: Consumer index of the notification ring (bits 31:0)
  parameter logic [11:0] DoorbellNotifyConsumedOffset = 12'h008;
  // wo 64: One interrupt as soon as the notification ring's producer differs from bits 31:0
  parameter logic [11:0] DoorbellArmNotifyOffset = 12'h010;
  // wo 64: One interrupt as soon as the completion ring's producer differs from bits 31:0
  parameter logic [11:0] DoorbellArmCompletionOffset = 12'h018;
  // ro 64: Model time in picoseconds
  parameter logic [11:0] DoorbellTimeOffset = 12'h020;
  // ro 32: State of the context
  parameter logic [11:0] DoorbellStateOffset = 12'h028;

  // doorbell DOORBELL: New commands
  typedef struct packed {
    logic [31:0] consumed;                   // Consumer index of the completion ring, free running
    logic [31:0] producer;                   // Producer index of the command ring, free running
  } doorbell_doorbell_t;

  // doorbell STATE: State of the context
  typedef struct packed {
    logic [15:0] status;                     // Why (enum status)
    logic [13:0] rsvd0;
    logic error;                             // It was stopped
    logic enabled;                           // Its rings are served
  } doorbell_state_t;

  // Entry of a context's translation table: a 4-level radix tree in host memory, owned by the
  // kernel, indexed by virtual address bits 47:39, 38:30, 29:21, 20:12. The same format at every
  // level; WRITE counts at the last level only.
  typedef struct packed {
    logic [11:0] rsvd0;
    // Bus address bits 51:12 of the page, or of the table below
    logic [39:0] address;
    logic [9:0] rsvd1;
    logic write;                             // The card may write the page
    logic valid;                             // The rest means something
  } table_entry_t;

  // First word of a BAR 4 slot.
  typedef struct packed {
    logic [11:0] rsvd0;
    // MEMORY, UPDATE: bus address bits 51:12 of the page frame
    logic [39:0] address;
    logic [9:0] rsvd1;
    logic write;                             // UPDATE: stores are allowed
    logic valid;                             // The slot may be used
  } slot_frame_t;

  // Second word of a BAR 4 slot.
  typedef struct packed {
    logic [31:0] page;                       // DESTINATION, UPDATE: page of the import
    logic [15:0] rsvd0;
    // DESTINATION, UPDATE: entry of the outgoing page table
    logic [15:0] opt;
  } slot_target_t;

  // What a LOAD from a proxy address returns.
  typedef struct packed {
    logic [31:0] remaining;                  // Bytes still to be moved
    logic [7:0] rsvd0;
    logic [15:0] error;                      // Device error (enum status)
    logic [2:0] rsvd1;
    logic wrong_space;                       // Source and destination in the same space
    logic match;                             // The address is the base of the transfer under way
    logic invalid;                           // The state was Idle
    logic transferring;                      // A transfer is under way
    logic initiation;                        // This LOAD started the transfer
  } proxy_status_t;

  // A context's command, written by the process. 64 bytes.
  typedef struct packed {
    logic [2:0][31:0] rsvd1;                 // 52: 0
    // 48: PER_PROCESS UTLB: entry of the first page; else 0
    logic [31:0] utlb_index;
    logic [31:0] notifications_seen;         // 44: Likewise notifications
    // 40: Completions the library had consumed when it issued this
    logic [31:0] completions_seen;
    logic [31:0] immediate;                  // 36: Delivered with the notification
    logic [31:0] import_id;                  // 32: Entry of the outgoing page table
    logic [63:0] cookie;                     // 24: Comes back in the completion
    logic [63:0] offset;                     // 16: Byte in the import where the message goes
    logic [63:0] source;                     // 8: Virtual address of the first byte
    logic [31:0] length;                     // 4: Bytes, 0 to MAX_MESSAGE
    logic [15:0] rsvd0;                      // 2: 0
    logic [7:0] flags;                       // 1: COMMAND_FLAG_*
    logic [7:0] opcode;                      // 0: enum opcode
  } command_t;

  // The source of the command may be reused. One for every command, in order of the ring. 64 bytes.
  typedef struct packed {
    logic [31:0] seq;                        // 60: Index + 1
    logic [3:0][31:0] rsvd;                  // 44: 0
    logic [31:0] message;                    // 40: Message number (event stream, packets)
    logic [15:0] detail;                     // 38: IMPORT_ERROR: its reason (enum status)
    logic [15:0] status;                     // 36: enum status
    // 32: Bytes handed to the network, from the start of the message
    logic [31:0] bytes;
    logic [63:0] fault;                      // 24: NOT_PINNED: virtual address of the page
    // 16: Model time in ps when the last byte had left host memory
    logic [63:0] finished;
    logic [63:0] accepted;                   // 8: Model time in ps when the doorbell was accepted
    logic [63:0] cookie;                     // 0: Of the command
  } completion_t;

  // Something happened that a process waits for. 64 bytes.
  typedef struct packed {
    logic [31:0] seq;                        // 60: Index + 1
    logic [1:0][31:0] rsvd1;                 // 52: 0
    logic [15:0] status;                     // 50: IMPORT_ERROR: enum status
    logic [7:0] rsvd0;                       // 49: 0
    logic [7:0] type_;                       // 48: enum notification_type
    // 44: Messages that this entry stands for: more than 1 when the ring was full; the rest
    // describes the last
    logic [31:0] count;
    logic [15:0] source_context;             // 42: Sender
    logic [15:0] source_node;                // 40: Sender
    logic [31:0] message;                    // 36: Message number at the sender
    logic [31:0] id;                         // 32: IPT entry; IMPORT_ERROR: OPT entry
    logic [31:0] immediate;                  // 28: From the command
    logic [31:0] length;                     // 24: Bytes of the message
    logic [63:0] offset;                     // 16: First byte of the message in the export
    // 8: Model time in ps when the last byte was in host memory
    logic [63:0] delivered;
    logic [63:0] cookie;                     // 0: Of the export (IPT_SET) or the import (OPT_SET)
  } notification_t;

  // A command of the kernel. The meaning of a to e depends on the opcode (see below). 64 bytes.
  typedef struct packed {
    logic [63:0] rsvd;                       // 56: 0
    logic [63:0] f;                          // 48: See table
    logic [63:0] e;                          // 40: See table
    logic [63:0] d;                          // 32: See table
    logic [63:0] c;                          // 24: See table
    logic [63:0] b;                          // 16: See table
    logic [63:0] a;                          // 8: See table
    logic [31:0] index;                      // 4: Entry, slot, node, or vector
    logic [15:0] context_;                   // 2: Context, where one is meant
    logic [7:0] flags;                       // 1: ADMIN_FLAG_*
    logic [7:0] opcode;                      // 0: enum admin_opcode
  } admin_command_t;

  // Acknowledges the admin command with the same index; may come out of order. 16 bytes.
  typedef struct packed {
    logic [31:0] seq;                        // 12: Index + 1
    logic [31:0] rsvd;                       // 8: 0
    logic [15:0] detail;                     // 6: 0
    logic [15:0] status;                     // 4: enum status
    logic [31:0] value;                      // 0: Result, where there is one
  } admin_ack_t;

  // Entry of the kernel event ring. 512 bytes.
  typedef struct packed {
    logic [31:0] seq;                        // 508: Index + 1
    logic [54:0][31:0] rsvd2;                // 288: 0
    logic [255:0][7:0] data;                 // 32: MGMT: the message
    logic [31:0] rsvd1;                      // 28: 0
    logic [31:0] length;                     // 24: Bytes of data
    logic [63:0] time_;                      // 16: Model time in ps
    logic [63:0] value;                      // 8: By type
    logic [15:0] context_;                   // 6: Context it is about
    logic [15:0] epoch;                      // 4: Its epoch
    logic [15:0] node;                       // 2: Peer it is about
    logic [7:0] rsvd0;                       // 1: 0
    logic [7:0] type_;                       // 0: enum event_type
  } kernel_event_t;

  // Header of every packet. 64 bytes.
  typedef struct packed {
    logic [15:0] rsvd;                       // 62: 0
    logic [15:0] status;                     // 60: NACK: enum status
    logic [31:0] immediate;                  // 56: For the notification
    logic [31:0] import_id;                  // 52: Sender's OPT entry: names the import in a NACK
    logic [31:0] export_id;                  // 48: Destination IPT entry
    logic [63:0] offset;                     // 40: Byte of the export where the payload goes
    logic [63:0] key;                        // 32: Of the export
    logic [31:0] message_offset;             // 28: Byte of the message where this payload starts
    logic [31:0] message;                    // 24: Message number of the sender's context
    logic [15:0] payload_length;             // 22: Bytes
    logic [15:0] source_context;             // 20: Sender's context
    // 16: Last sequence received in order from the receiver
    logic [31:0] acknowledge;
    logic [31:0] sequence_;                  // 12: Per pair of nodes, from 1 after HELLO
    // 10: Life of the receiver as the sender knows it; 0: any (MGMT, HELLO, BYE)
    logic [15:0] destination_epoch;
    logic [15:0] source_epoch;               // 8: Life of the sender
    logic [15:0] destination_node;           // 6: Receiver
    logic [15:0] source_node;                // 4: Sender
    logic [15:0] flags;                      // 2: PACKET_FLAG_*
    logic [7:0] type_;                       // 1: enum packet_type
    logic [7:0] version;                     // 0: PACKET_VERSION
  } packet_header_t;

  // Start of every management message. 24 bytes.
  typedef struct packed {
    logic [63:0] rsvd;                       // 16: 0
    logic [31:0] import_id;                  // 12: OPT entry at the importer
    logic [31:0] export_id;                  // 8: IPT entry at the exporter
    logic [31:0] transaction;                // 4: Chosen by the asker, repeated in the answer
    logic [15:0] status;                     // 2: Answers: 0 or a positive errno
    logic [7:0] version;                     // 1: 1
    logic [7:0] type_;                       // 0: enum mgmt_type
  } mgmt_header_t;

  // IMPORT_REQUEST. 104 bytes.
  typedef struct packed {
    logic [63:0] rsvd;                       // 96: 0
    logic [63:0][7:0] name;                  // 32: Of the export, NUL-terminated
    logic [31:0] gid;                        // 28: Effective group
    // 24: Effective user of the importer, in the initial namespace
    logic [31:0] uid;
    mgmt_header_t header;                    // 0
  } mgmt_import_request_t;

  // IMPORT_REPLY. 56 bytes.
  typedef struct packed {
    logic [63:0] rsvd1;                      // 48: 0
    logic [31:0] rsvd0;                      // 44: 0
    logic [31:0] flags;                      // 40: IPT_FLAG_*
    logic [63:0] length;                     // 32: Bytes
    logic [63:0] key;                        // 24: Of the export
    mgmt_header_t header;                    // 0
  } mgmt_import_reply_t;

endpackage
/* verilator lint_on UNUSEDPARAM */

// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "prawn_hw.h"
#include "vmmc_internal.h"

static const struct {
	int status;
	const char *text;
} card_text[] = {
	{ PRAWN_STATUS_BAD_OPCODE, "the card does not know this command" },
	{ PRAWN_STATUS_BAD_FIELD, "a field of the command is invalid" },
	{ PRAWN_STATUS_BAD_LENGTH, "the length is too large" },
	{ PRAWN_STATUS_BAD_IMPORT, "no such import in this endpoint" },
	{ PRAWN_STATUS_OUT_OF_RANGE, "beyond the end of the import" },
	{ PRAWN_STATUS_NOT_PINNED, "a source page is not pinned" },
	{ PRAWN_STATUS_NOT_WRITABLE, "a page may not be written by the card" },
	{ PRAWN_STATUS_DMA_ERROR, "the host refused a DMA" },
	{ PRAWN_STATUS_IMPORT_ERROR, "the import failed earlier" },
	{ PRAWN_STATUS_CANCELLED, "cancelled by a reset" },
	{ PRAWN_STATUS_BUSY, "the card has no room just now" },
	{ PRAWN_STATUS_UNSUPPORTED, "this card cannot do that" },
	{ PRAWN_STATUS_BAD_CONTEXT, "the context is not enabled" },
	{ PRAWN_STATUS_UNKNOWN_OUTCOME, "the peer has gone, outcome unknown" },
	{ PRAWN_STATUS_RING_OVERRUN, "the command ring was overrun" },
	{ PRAWN_STATUS_BAD_EXPORT, "the export was withdrawn" },
	{ PRAWN_STATUS_BAD_KEY, "the export has another key" },
	{ PRAWN_STATUS_EXPORT_RANGE, "outside of the export" },
	{ PRAWN_STATUS_STALE_EPOCH, "the peer has restarted" },
	{ PRAWN_STATUS_RECEIVE_FAULT, "the receiver's memory is gone" },
	{ PRAWN_STATUS_NO_HOST, "no driver is running on the peer" },
	{ PRAWN_STATUS_EVENT_FULL, "the peer's kernel has no room" },
	{ PRAWN_STATUS_PEER_DEAD, "the peer does not answer" },
	{ PRAWN_STATUS_BAD_PACKET, "the peer could not read the packet" },
};

VMMC_API const char *vmmc_strerror(int error)
{
	int status = VMMC_CARD_STATUS(error);
	const char *text;

	if (error >= 0)
		return "success";
	for (size_t i = 0; i < sizeof(card_text) / sizeof(*card_text); i++) {
		if (card_text[i].status == status)
			return card_text[i].text;
	}
	if (status)
		return "unknown status of the card";
	switch (-error) {
	case ENODEV:
		return "no card, or it has gone";
	case EAGAIN:
		return "too many requests under way";
	case EDQUOT:
		return "this process has as many exports or imports as it may";
	case EIO:
		return "the card does not answer, or has stopped this endpoint";
	case EHOSTUNREACH:
		return "no such node";
	case EOPNOTSUPP:
		return "this kind of memory cannot be pinned";
	case EPERM:
		return "the endpoint belongs to another process";
	}
	text = strerrordesc_np(-error);
	return text ? text : "unknown error";
}

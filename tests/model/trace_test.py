#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Wireshark and Perfetto get to see of real traffic: messages from node 0
to node 1 of a model, from the files that the run has written.

usage: trace_test.py TRACE_RUN DISSECTOR [TEST...]
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

RUN = ""
DISSECTOR = ""
PAGE = 4096
NODES = ("node 0", "node 1")


def pieces(offset, length):
    """Payloads of a message: cut at the pages of its destination."""
    cut = []
    done = 0
    while done < length or not cut:
        size = min(length - done, PAGE - (offset + done) % PAGE)
        cut.append((done, size))
        done += size
    return cut


class Trace:
    """Slices of a Perfetto file, by message."""

    def __init__(self, entries):
        process = {e["pid"]: e["args"]["name"] for e in entries
                   if e["ph"] == "M" and e["name"] == "process_name"}
        thread = {e["tid"]: e["args"]["name"].split()[0] for e in entries
                  if e["ph"] == "M" and e["name"] == "thread_name"}
        self.slices = []
        self.arrows = []
        open_slices = {}
        for e in entries:
            place = (e["pid"], e["tid"])
            if e["ph"] in "XB":
                one = {"node": process[e["pid"]], "block": thread[e["tid"]],
                       "name": e["name"], "args": e["args"],
                       "begin": e["args"]["ps"],
                       "end": e["args"]["ps"] if e["ph"] == "X" else None}
                self.slices.append(one)
                if e["ph"] == "B":
                    open_slices.setdefault(place, []).append(one)
            elif e["ph"] == "E":
                one = open_slices[place].pop()
                one["end"] = e["args"]["end ps"]
            elif e["ph"] in "stf":
                self.arrows.append(e)

    def find(self, **wanted):
        message = wanted.pop("message", None)
        return [s for s in self.slices
                if all(s[k] == v for k, v in wanted.items())
                and (message is None or s["args"].get("message") == message)]


def check_message(trace, message, packets):
    """What is wrong with the stages of a message; an empty list is good."""
    wrong = []

    def stage(node, block, name, count):
        found = trace.find(node=NODES[node], block=block, name=name,
                           message=message)
        if len(found) != count:
            wrong.append(f"{message}: {len(found)} times {name} in {block} of "
                         f"{NODES[node]}, not {count}")
        for s in found:
            if s["end"] is None:
                wrong.append(f"{message}: {name} in {block} has no end")
        return sorted(found, key=lambda s: s["begin"])

    def follow(earlier, later, begins_when_over=True):
        """Each of them after its own predecessor."""
        for a, b in zip(earlier, later):
            over = a["end"] if begins_when_over else a["begin"]
            if over is None or b["begin"] < over:
                wrong.append(f"{message}: {b['name']} before {a['name']}")

    n = len(packets)
    full = [p for p in packets if p[1] != 0]
    fetch = stage(0, "command_queue", "doorbell to fetch", 1)
    for f in fetch:
        rung = [s for s in trace.find(node=NODES[0], block="csr",
                                      name="doorbell")
                if s["begin"] == f["args"]["doorbell time"]]
        if len(rung) != 1 or rung[0]["args"]["producer"] <= f["args"]["index"]:
            wrong.append(f"{message}: no doorbell for its fetch")
        if f["args"]["doorbell time"] >= f["begin"]:
            wrong.append(f"{message}: fetched before its doorbell")
    looked_up = stage(0, "opt", "opt lookup", n)
    # The source is not aligned as the destination is: two pages for most.
    translated = [s for name in ("utlb hit", "utlb miss")
                  for s in trace.find(node=NODES[0], block="utlb", name=name,
                                      message=message)]
    translated.sort(key=lambda s: s["begin"])
    read = trace.find(node=NODES[0], block="dma_engine", name="dma read",
                      message=message)
    read.sort(key=lambda s: s["begin"])
    if sum(int(s["args"]["bytes|channel"].split()[0]) for s in read) != \
            sum(size for _, size in packets):
        wrong.append(f"{message}: read other bytes than it has")
    if any(s["end"] is None for s in read):
        wrong.append(f"{message}: dma read has no end")
    if (len(translated) < len(full) or len(read) < len(full)
            or len(read) != len(translated)):
        wrong.append(f"{message}: {len(translated)} translations, "
                     f"{len(read)} reads of {len(full)} packets")
    built = stage(0, "packetizer", "packet", n)
    sent = stage(0, "link_mac", "tx", n)
    hop = stage(0, "fabric", "hop", n)
    arrived = stage(1, "link_mac", "rx", n)
    received = stage(1, "depacketizer", "packet received", n)
    allowed = stage(1, "ipt", "ipt ok", n)
    target = [s for name in ("utlb hit", "utlb miss")
              for s in trace.find(node=NODES[1], block="utlb", name=name,
                                  message=message)]
    target.sort(key=lambda s: s["begin"])
    if len(target) != len(full):
        wrong.append(f"{message}: {len(target)} translations at the receiver")
    incoming = stage(1, "incoming_dma", "incoming dma", len(full))
    written = stage(1, "dma_engine", "dma write", len(full))
    delivered = stage(1, "incoming_dma", "delivered", 1)
    notified = stage(1, "notifier", "notification", 1)
    completed = stage(0, "notifier", "completion", 1)

    for stages in (looked_up, translated):
        follow(fetch, stages)
    follow(translated, read)
    if full:
        follow(read[-1:], built[-1:])
    for earlier, later in zip((built, sent, hop, received, allowed),
                              (sent, hop, arrived, allowed, target)):
        follow(earlier, later)
    follow(arrived, received, begins_when_over=False)
    follow(target, incoming)
    follow(incoming, written, begins_when_over=False)
    for one in (incoming, written):
        follow(one[-1:], delivered)
    follow(delivered, notified)
    follow(built[-1:], completed)
    for s, (offset, size) in zip(built, packets):
        if (s["args"]["message offset"], s["args"]["payload bytes"]) != \
                (offset, size):
            wrong.append(f"{message}: packet {offset} has other bounds")
    return wrong


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temp = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temp.cleanup)
        cls.pcapng = os.path.join(cls.temp.name, "run.pcapng")
        cls.perfetto = os.path.join(cls.temp.name, "run.json")
        run = subprocess.run(
            [RUN, "--set", "trace.pcapng=" + cls.pcapng,
             "--set", "trace.perfetto=" + cls.perfetto],
            capture_output=True, text=True, timeout=60,
            stdin=subprocess.DEVNULL)
        assert run.returncode == 0, run.stdout + run.stderr
        cls.sent = {}
        for line in run.stdout.splitlines():
            if line.startswith("0:1:"):
                message, offset, length = line.split()
                cls.sent[message] = pieces(int(offset), int(length))
        assert len(cls.sent) == 6, run.stdout

    def tshark(self, pcapng, *words):
        result = subprocess.run(
            ["tshark", "-X", "lua_script:" + DISSECTOR, "-r", pcapng, *words],
            capture_output=True, text=True, timeout=60,
            stdin=subprocess.DEVNULL)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.splitlines()

    def check_packets(self, pcapng):
        self.assertEqual(
            self.tshark(pcapng, "-Y", "_ws.expert or _ws.malformed or "
                        '!(prawn.crc.status == "good")'), [])
        fields = ("frame.interface_name", "prawn.message_id",
                  "prawn.message_offset", "prawn.payload_length",
                  "prawn.flags.first", "prawn.flags.last")
        words = [w for f in fields for w in ("-e", f)]
        seen = [tuple(line.split("\t")) for line in self.tshark(
            pcapng, "-Y", "prawn.type == 1", "-T", "fields", *words)]
        for interface in ("node0-tx", "node1-rx"):
            wanted = [(interface, message, str(offset), str(size),
                       str(int(k == 0)), str(int(k == len(cut) - 1)))
                      for message, cut in self.sent.items()
                      for k, (offset, size) in enumerate(cut)]
            self.assertEqual([p for p in seen if p[0] == interface], wanted)
        self.assertEqual(
            len(seen), 2 * sum(len(cut) for cut in self.sent.values()))

    def test_every_packet_is_decoded(self):
        self.check_packets(self.pcapng)

    def test_a_packet_that_is_missing_is_missed(self):
        short = os.path.join(self.temp.name, "short.pcapng")
        number = self.tshark(self.pcapng, "-Y", "prawn.type == 1", "-T",
                             "fields", "-e", "frame.number")[-1]
        self.tshark(self.pcapng, "-Y", f"frame.number != {number}", "-w",
                    short)
        with self.assertRaises(AssertionError):
            self.check_packets(short)

    def entries(self):
        with open(self.perfetto, encoding="utf-8") as file:
            return json.load(file)

    def test_every_message_has_its_stages_in_order(self):
        trace = Trace(self.entries())
        wrong = [line for message, packets in self.sent.items()
                 for line in check_message(trace, message, packets)]
        self.assertEqual(wrong, [])

    def test_arrows_lead_from_the_doorbell_to_the_notification(self):
        trace = Trace(self.entries())
        for message in self.sent:
            of_message = trace.find(message=message)
            key = hex(1 << 32 | int(message.split(":")[2]))
            arrows = [e["ph"] for e in trace.arrows if e["id"] == key]
            self.assertEqual(arrows, ["s"] + ["t"] * (len(of_message) - 2) +
                             ["f"])

    def test_a_stage_that_is_missing_is_missed(self):
        entries = self.entries()
        message = next(m for m, cut in self.sent.items() if len(cut) > 2)
        own = [k for k, e in enumerate(entries) if e["ph"] in "XB"
               and e["args"].get("message") == message]
        self.assertGreater(len(own), 30)
        for k in own:
            rest = list(entries)
            gone = rest.pop(k)
            if gone["ph"] == "B":  # its end too
                end = next(j for j in range(k, len(rest))
                           if rest[j]["ph"] == "E"
                           and rest[j]["tid"] == gone["tid"])
                rest.pop(end)
            self.assertNotEqual(
                check_message(Trace(rest), message, self.sent[message]), [],
                gone)


if __name__ == "__main__":
    RUN, DISSECTOR = sys.argv[1], sys.argv[2]
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])

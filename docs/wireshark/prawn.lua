-- SPDX-License-Identifier: Apache-2.0
-- Wireshark dissector for the packets of Prawn cards (link type USER0, 147).
--
--   wireshark -X lua_script:docs/wireshark/prawn.lua -r run.pcapng
--
-- The layout comes from prawn_fields.lua, which hw/util/regtool.py makes: in
-- the folder of this file (an installed copy) or in the tree it belongs to.
-- Filters: see docs/observation.md.

local here = debug.getinfo(1, "S").source:gsub("^@", ""):match("^(.*[/\\])")
  or "./"

local function load_fields()
  for _, folder in ipairs({ here, here .. "../../hw/autogen/" }) do
    local path = folder .. "prawn_fields.lua"
    local file = io.open(path, "r")
    if file then
      file:close()
      return dofile(path)
    end
  end
  error("prawn.lua: prawn_fields.lua not found: copy hw/autogen/"
    .. "prawn_fields.lua into the folder of prawn.lua")
end

local source = load_fields()
local C = source.constants
local HEADER = source.structs.packet_header
local TYPE = {}
for value, name in pairs(source.enums.packet_type) do
  TYPE[name] = value
end
local MGMT_TYPE = {}
for value, name in pairs(source.enums.mgmt_type) do
  MGMT_TYPE[name] = value
end

local prawn = Proto("prawn", "Prawn packet")

-- Fields ------------------------------------------------------------------

local HEX = { key = true, flags = true }
local fields = {} -- all, for the Proto

local function add(key, field)
  fields[key] = field
  return field
end

-- One ProtoField for each member; arrays of bytes are texts if called "name".
local function member_field(prefix, m)
  local filter = prefix .. m.name
  local label = m.name:gsub("_", " "):gsub("^%l", string.upper)
  local names = m.enum and source.enums[m.enum] or nil
  if m.count > 1 then
    if m.name == "name" then
      return ProtoField.stringz(filter, label, base.ASCII, m.desc)
    end
    return ProtoField.bytes(filter, label, base.NONE, m.desc)
  end
  local make = ({ u8 = ProtoField.uint8, u16 = ProtoField.uint16,
                  u32 = ProtoField.uint32, u64 = ProtoField.uint64 })[m.type]
  return make(filter, label, HEX[m.name] and base.HEX or base.DEC, names, nil,
    m.desc)
end

local function struct_fields(prefix, struct, into)
  for _, m in ipairs(struct.fields) do
    if not source.structs[m.type] then
      into[m.name] = add(prefix .. m.name, member_field(prefix, m))
    end
  end
  return into
end

local F = struct_fields("prawn.", HEADER, {})
local MGMT = struct_fields("prawn.mgmt.", source.structs.mgmt_header, {})
local MGMT_STRUCT = {} -- by message type: its structure and fields
for name, value in pairs(MGMT_TYPE) do
  local struct = source.structs["mgmt_" .. name:lower()]
  if struct then
    local prefix = "prawn.mgmt." .. name:lower() .. "."
    MGMT_STRUCT[value] =
      { struct = struct, fields = struct_fields(prefix, struct, {}) }
  end
end

local FLAGS = {}
for name, value in pairs(C) do
  local flag = name:match("^PACKET_FLAG_(.+)$")
  if flag then
    FLAGS[#FLAGS + 1] = { name = flag, value = value }
  end
end
table.sort(FLAGS, function(a, b) return a.value < b.value end)
for _, flag in ipairs(FLAGS) do
  flag.field = add("flag." .. flag.name, ProtoField.bool(
    "prawn.flags." .. flag.name:lower(), flag.name, 16, nil, flag.value))
end

local payload_f = add("payload", ProtoField.bytes("prawn.payload", "Payload"))
local crc_f = add("crc", ProtoField.uint32("prawn.crc", "CRC-32C", base.HEX))
local crc_status_f = add("crc_status", ProtoField.string("prawn.crc.status",
  "CRC status", base.ASCII, "good, bad, or unchecked"))
local id_f = add("id", ProtoField.string("prawn.message_id", "Message identity",
  base.ASCII, "node:context:message of the sender; a NACK has the identity of "
  .. "the message it refuses"))
local first_f = add("first", ProtoField.framenum("prawn.message_first",
  "First packet of the message", base.NONE))
local last_f = add("last", ProtoField.framenum("prawn.message_last",
  "Last packet of the message", base.NONE))
local refused_f = add("refused", ProtoField.framenum("prawn.refused_in",
  "Refused in", base.NONE))
local request_f = add("request", ProtoField.framenum("prawn.mgmt.request_in",
  "Request in", base.NONE, frametype and frametype.REQUEST or nil))
local response_f = add("response", ProtoField.framenum("prawn.mgmt.response_in",
  "Response in", base.NONE, frametype and frametype.RESPONSE or nil))
local delay_f = add("delay", ProtoField.double("prawn.mgmt.response_time",
  "Response time (ns)"))

local list = {}
for _, field in pairs(fields) do
  list[#list + 1] = field
end
prawn.fields = list

local function expert_field(name, text, group, severity)
  return ProtoExpert.new("prawn.expert." .. name, text, group, severity)
end
local E = {
  truncated = expert_field("truncated", "Packet ends too early",
    expert.group.MALFORMED, expert.severity.ERROR),
  length = expert_field("length", "Wrong payload length",
    expert.group.MALFORMED, expert.severity.ERROR),
  crc = expert_field("crc", "Bad CRC-32C",
    expert.group.CHECKSUM, expert.severity.ERROR),
  version = expert_field("version", "Unknown version",
    expert.group.PROTOCOL, expert.severity.ERROR),
  type = expert_field("type", "Unknown type",
    expert.group.PROTOCOL, expert.severity.ERROR),
  reserved = expert_field("reserved", "Reserved field or flag is not zero",
    expert.group.PROTOCOL, expert.severity.WARN),
  nack = expert_field("nack", "Packet was refused",
    expert.group.RESPONSE_CODE, expert.severity.NOTE),
}
local experts = {}
for _, e in pairs(E) do
  experts[#experts + 1] = e
end
prawn.experts = experts

-- CRC-32C -----------------------------------------------------------------

-- Lua 5.2 (Wireshark to 4.2) has a library for bits, 5.4 has operators.
local bits = rawget(_G, "bit") or rawget(_G, "bit32")
if not bits then
  bits = assert(load([[return {
    bxor = function(a, b) return a ~ b end,
    band = function(a, b) return a & b end,
    rshift = function(a, n) return a >> n end,
  }]]))()
end

local function unsigned(v)
  return v % 0x100000000
end

local crc_row = {}
for i = 0, 255 do
  local sum = i
  for _ = 1, 8 do
    local odd = sum % 2 == 1
    sum = unsigned(bits.rshift(sum, 1))
    if odd then
      sum = unsigned(bits.bxor(sum, 0x82f63b78))
    end
  end
  crc_row[i] = sum
end

local function crc32c(text)
  local sum = 0xffffffff
  for i = 1, #text do
    local index = bits.band(bits.bxor(sum, text:byte(i)), 0xff)
    sum = unsigned(bits.bxor(bits.rshift(sum, 8), crc_row[index]))
  end
  return 0xffffffff - sum
end

-- What earlier packets said -----------------------------------------------

local messages -- by identity: frames first, last, refused
local exchanges -- by nodes and transaction: frames and times
function prawn.init()
  messages = {}
  exchanges = {}
end

local function note(record, key, number)
  if not record[key] then
    record[key] = number
  end
end

local function link(tree, field, number, this)
  if number and number ~= this then
    tree:add(field, number):set_generated()
  end
end

-- Answers have the type after that of their question.
local QUESTION = {
  [MGMT_TYPE.IMPORT_REQUEST] = MGMT_TYPE.IMPORT_REPLY,
  [MGMT_TYPE.WITHDRAW] = MGMT_TYPE.WITHDRAW_ACK,
  [MGMT_TYPE.PING] = MGMT_TYPE.PONG,
}
local ANSWER = {}
for question, answer in pairs(QUESTION) do
  ANSWER[answer] = question
end

-- Dissection --------------------------------------------------------------

local function add_struct(tree, struct, of, range)
  for _, m in ipairs(struct.fields) do
    if of[m.name] then
      local part = range(m.offset, m.size * m.count)
      local item
      if m.count > 1 then
        item = tree:add(of[m.name], part)
      else
        item = tree:add_le(of[m.name], part)
      end
      if m.name:match("^rsvd") and part:bytes():tohex():match("[^0]") then
        item:add_proto_expert_info(E.reserved)
      end
    end
  end
end

local function dissect_mgmt(tvb, pinfo, tree, from, to)
  local size = source.structs.mgmt_header.size
  local sub = tree:add(prawn, tvb, "Management message")
  if tvb:len() < size then
    sub:add_proto_expert_info(E.truncated)
    return "MGMT (truncated)"
  end
  add_struct(sub, source.structs.mgmt_header, MGMT, tvb)
  local kind = tvb(0, 1):uint()
  local own = MGMT_STRUCT[kind]
  if own then
    if tvb:len() < own.struct.size then
      sub:add_proto_expert_info(E.truncated)
    else
      add_struct(sub, own.struct, own.fields, tvb)
    end
  end
  local name = source.enums.mgmt_type[kind] or ("type " .. kind)
  sub:append_text(": " .. name)

  -- The same question and answer appear on two links each: the first counts.
  local transaction = tvb(4, 4):le_uint()
  local question = QUESTION[kind] and kind or ANSWER[kind]
  if question then
    local asker, asked = from, to
    if ANSWER[kind] then
      asker, asked = to, from
    end
    local key = table.concat({ asker, asked, question, transaction }, ":")
    local exchange = exchanges[key] or {}
    exchanges[key] = exchange
    if ANSWER[kind] then
      note(exchange, "response", pinfo.number)
      note(exchange, "response_time", pinfo.abs_ts)
      link(sub, request_f, exchange.request, pinfo.number)
      if exchange.request_time then
        sub:add(delay_f, math.floor((exchange.response_time
          - exchange.request_time) * 1e9 + 0.5)):set_generated()
      end
    else
      note(exchange, "request", pinfo.number)
      note(exchange, "request_time", pinfo.abs_ts)
      link(sub, response_f, exchange.response, pinfo.number)
    end
  end
  return "MGMT " .. name .. " transaction " .. transaction
end

local function follow(tree, pinfo, id, kind, flags)
  local record = messages[id] or {}
  messages[id] = record
  if kind == TYPE.DATA then
    if flags % (2 * C.PACKET_FLAG_FIRST) >= C.PACKET_FLAG_FIRST then
      note(record, "first", pinfo.number)
    end
    if flags % (2 * C.PACKET_FLAG_LAST) >= C.PACKET_FLAG_LAST then
      note(record, "last", pinfo.number)
    end
    link(tree, refused_f, record.refused, pinfo.number)
  elseif kind == TYPE.NACK then
    note(record, "refused", pinfo.number)
  end
  link(tree, first_f, record.first, pinfo.number)
  link(tree, last_f, record.last, pinfo.number)
end

local function check_crc(tree, tvb, whole)
  local at = tvb:len() - C.PACKET_CRC_SIZE
  local range = tvb(at, C.PACKET_CRC_SIZE)
  local item = tree:add_le(crc_f, range)
  local status = "unchecked"
  if whole then
    local sum = crc32c(tvb:raw(0, at))
    status = sum == range:le_uint() and "good" or "bad"
    if status == "bad" then
      item:append_text(string.format(", should be 0x%08x", sum))
      item:add_proto_expert_info(E.crc)
    end
  end
  item:append_text(" [" .. status .. "]")
  tree:add(crc_status_f, status):set_generated()
end

function prawn.dissector(tvb, pinfo, root)
  pinfo.cols.protocol = "PRAWN"
  local tree = root:add(prawn, tvb())
  local length = tvb:len()
  if length < HEADER.size + C.PACKET_CRC_SIZE then
    tree:add_proto_expert_info(E.truncated)
    pinfo.cols.info = "Truncated packet, " .. length .. " bytes"
    return length
  end

  add_struct(tree, HEADER, F, tvb)
  local function value(name)
    for _, m in ipairs(HEADER.fields) do
      if m.name == name then
        return tvb(m.offset, m.size):le_uint()
      end
    end
  end
  local flags = value("flags")
  local range = tvb(2, 2)
  for _, flag in ipairs(FLAGS) do
    tree:add_le(flag.field, range)
  end
  if flags >= C.PACKET_FLAGS + 1 then
    tree:add_proto_expert_info(E.reserved)
  end
  if value("version") ~= C.PACKET_VERSION then
    tree:add_proto_expert_info(E.version)
  end
  local kind = value("type")
  local name = source.enums.packet_type[kind]
  if not name then
    tree:add_proto_expert_info(E.type)
    name = "type " .. kind
  end

  local from, to = value("source_node"), value("destination_node")
  pinfo.cols.src = "node " .. from
  pinfo.cols.dst = "node " .. to
  local payload = value("payload_length")
  local room = length - HEADER.size - C.PACKET_CRC_SIZE
  local fits = payload == room and payload <= C.MAX_PAYLOAD
  if not fits then
    tree:add_proto_expert_info(E.length)
  end
  if room > 0 then
    tree:add(payload_f, tvb(HEADER.size, room))
  end
  check_crc(tree, tvb, length == tvb:reported_len())

  local info = name
  if kind == TYPE.MGMT and fits and room > 0 then
    info = dissect_mgmt(tvb(HEADER.size, room):tvb(), pinfo, tree, from, to)
  elseif kind == TYPE.DATA or kind == TYPE.NACK then
    local sender = kind == TYPE.NACK and to or from
    local id = table.concat(
      { sender, value("source_context"), value("message") }, ":")
    tree:add(id_f, id):set_generated()
    follow(tree, pinfo, id, kind, flags)
    if kind == TYPE.NACK then
      local status = value("status")
      tree:add_proto_expert_info(E.nack)
      info = info .. " " .. id .. " "
        .. (source.enums.status[status] or ("status " .. status))
    else
      info = info .. " " .. id .. " at " .. value("message_offset") .. ", "
        .. payload .. " bytes"
      for _, flag in ipairs(FLAGS) do
        if flags % (2 * flag.value) >= flag.value then
          info = info .. " " .. flag.name
        end
      end
    end
  end
  pinfo.cols.info = info .. ", seq " .. value("sequence") .. " ack "
    .. value("acknowledge")
  tree:append_text(", " .. info)
  return length
end

DissectorTable.get("wtap_encap"):add((wtap_encaps or wtap).USER0, prawn)

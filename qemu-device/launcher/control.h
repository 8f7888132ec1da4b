// SPDX-License-Identifier: Apache-2.0
#ifndef PRAWN_QEMU_DEVICE_LAUNCHER_CONTROL_H
#define PRAWN_QEMU_DEVICE_LAUNCHER_CONTROL_H

#include <optional>
#include <string>

namespace prawn::launch {

// The launcher's end of the control channel. The messages are described in
// guest-driver/image/agent.c; one line is one message. What a guest sends is
// input: a line that is no message is counted and otherwise ignored.
struct control_message {
    enum kind_type { HELLO, PONG, OUT, ERR, EXIT, BYE };

    kind_type kind = PONG;
    unsigned long id = 0;
    int number = 0;    // HELLO: protocol; EXIT, BYE: status
    std::string text;  // HELLO: kernel release; OUT, ERR: data
};

constexpr int CONTROL_PROTOCOL = 1;

// Cuts a byte stream into messages.
class control_parser
{
public:
    static constexpr size_t LONGEST = 64 << 10;

    void feed(const char* data, size_t size) { m_text.append(data, size); }
    std::optional<control_message> next();
    unsigned long ignored() const { return m_ignored; }

private:
    static std::optional<control_message> parse(const std::string& line);

    std::string m_text;
    bool m_skipping = false;  // inside a line that was too long
    unsigned long m_ignored = 0;
};

std::string control_run(unsigned long id, bool root, const std::string& text);

std::string base64_encode(const std::string& data);
std::optional<std::string> base64_decode(const std::string& text);

}  // namespace prawn::launch

#endif

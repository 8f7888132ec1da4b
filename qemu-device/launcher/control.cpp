// SPDX-License-Identifier: Apache-2.0
#include "control.h"

#include <cstdint>
#include <sstream>
#include <vector>

namespace prawn::launch {

namespace {

constexpr const char* DIGITS =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int digit(char c) {
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+')
        return 62;
    return c == '/' ? 63 : -1;
}

// A decimal number that fits, and nothing else.
std::optional<unsigned long> number(const std::string& word) {
    if (word.empty() || word.size() > 9 ||
        word.find_first_not_of("0123456789") != std::string::npos) {
        return std::nullopt;
    }
    return std::stoul(word);
}

}  // namespace

std::string base64_encode(const std::string& data) {
    std::string text;
    for (size_t i = 0; i < data.size(); i += 3) {
        std::uint32_t bits = 0;
        for (size_t k = 0; k < 3; k++) {
            const bool there = i + k < data.size();
            bits = bits << 8 |
                   (there ? static_cast<unsigned char>(data[i + k]) : 0U);
        }
        for (size_t k = 0; k < 4; k++) {
            const bool there = i + k <= data.size();
            text += there ? DIGITS[bits >> (18 - 6 * k) & 63] : '=';
        }
    }
    return text;
}

std::optional<std::string> base64_decode(const std::string& text) {
    if (text.size() % 4 != 0)
        return std::nullopt;
    size_t used = text.size();
    for (int k = 0; k < 2 && used > 0 && text[used - 1] == '='; k++)
        used--;
    std::string data;
    std::uint32_t bits = 0;
    unsigned count = 0;
    for (size_t i = 0; i < used; i++) {
        const int value = digit(text[i]);
        if (value < 0)
            return std::nullopt;
        bits = bits << 6 | static_cast<std::uint32_t>(value);
        count += 6;
        if (count >= 8) {
            count -= 8;
            data += static_cast<char>(bits >> count & 255);
        }
    }
    return data;
}

std::string control_run(unsigned long id, bool root, const std::string& text) {
    return "run " + std::to_string(id) + (root ? " root " : " user ") +
           base64_encode(text) + "\n";
}

std::optional<control_message> control_parser::parse(const std::string& line) {
    std::istringstream in(line);
    std::vector<std::string> words;
    for (std::string word; in >> word;)
        words.push_back(word);
    control_message message;
    const size_t count = words.size();
    if (count == 0)
        return std::nullopt;
    const auto at = [&](size_t i) {
        return i < count ? number(words[i]) : std::nullopt;
    };
    if (words[0] == "pong" && count == 1) {
        message.kind = control_message::PONG;
        return message;
    }
    if (words[0] == "hello" && count == 4 && at(1)) {
        message.kind = control_message::HELLO;
        message.number = static_cast<int>(*at(1));
        message.text = words[3];
        return message;
    }
    if (words[0] == "bye" && count == 2 && at(1)) {
        message.kind = control_message::BYE;
        message.number = static_cast<int>(*at(1));
        return message;
    }
    if (count != 3 || !at(1))
        return std::nullopt;
    message.id = *at(1);
    if (words[0] == "exit" && at(2) && *at(2) <= 255) {
        message.kind = control_message::EXIT;
        message.number = static_cast<int>(*at(2));
        return message;
    }
    if (words[0] == "out" || words[0] == "err") {
        message.kind =
            words[0] == "out" ? control_message::OUT : control_message::ERR;
        const auto data = base64_decode(words[2]);
        if (!data)
            return std::nullopt;
        message.text = *data;
        return message;
    }
    return std::nullopt;
}

std::optional<control_message> control_parser::next() {
    for (;;) {
        const size_t end = m_text.find('\n');
        if (end == std::string::npos) {
            if (m_text.size() > LONGEST) {
                m_text.clear();
                m_skipping = true;
            }
            return std::nullopt;
        }
        const std::string line = m_text.substr(0, end);
        m_text.erase(0, end + 1);
        const bool whole = !m_skipping && line.size() <= LONGEST;
        m_skipping = false;
        if (whole) {
            if (auto message = parse(line))
                return message;
        }
        m_ignored++;
    }
}

}  // namespace prawn::launch

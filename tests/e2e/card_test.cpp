// SPDX-License-Identifier: Apache-2.0
//
// Two real guests with cards: what happens to the others when one reboots, is
// killed, is started again; when a process dies in mid-transfer; when the
// driver lets go of the card; when the model dies.
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include <csignal>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "report.h"
#include "session.h"

namespace prawn::launch {
namespace {

constexpr unsigned TIMEOUT_S = 120;

options test_options() {
    options opts;
    opts.command = "boot";
    for (const char* name : {"PRAWN_ROOT", "PRAWN_BUILD"}) {
        if (!getenv(name))
            throw failure(EXIT_USAGE, std::string(name) + " is not set");
    }
    opts.root = getenv("PRAWN_ROOT");
    opts.build_dir = getenv("PRAWN_BUILD");
    opts.nodes_given = true;
    opts.timeout_s = TIMEOUT_S;
    // Every DMA is compared with what the kernels granted.
    opts.set = {"checker=true"};
    return opts;
}

class two_guests : public testing::Test
{
protected:
    void SetUp() override {
        where = load_settings(test_options());
        run = std::make_unique<session>(test_options(), where);
        run->start_model();
        run->start_guests(false);
        run->wait_for_guests();
    }

    void TearDown() override {
        if (!run)
            return;
        run->stop();
        EXPECT_FALSE(run->checker_failed());
    }

    std::shared_ptr<guest_job> finished(std::shared_ptr<guest_job> job,
                                        const std::string& what) {
        try {
            run->wait([&] { return job->done; }, TIMEOUT_S, what);
        } catch (const failure& error) {
            ADD_FAILURE() << error.what() << "\nso far: " << job->out
                          << job->err << "\n"
                          << error.details();
            for (unsigned k = 0; k < run->count(); k++)
                look_at(k);
            throw;
        }
        return job;
    }

    void let_pass(unsigned seconds) {
        run->loop().run_until([] { return false; },
                              steady::now() + std::chrono::seconds(seconds));
    }

    // For whoever has to find out why something hangs.
    void look_at(unsigned node) {
        const auto job = run->node(node).run(
            "ps; for p in $(pidof vmmc_bw vmmc_lat sh); do "
            "echo $p; cat /proc/$p/status /proc/$p/stack; done; "
            "vmmc_stat; dmesg | tail -n 20",
            true);
        run->wait([&] { return job->done; }, TIMEOUT_S, "looking around");
        ADD_FAILURE() << "node" << node << ":\n" << job->out << job->err;
    }

    std::shared_ptr<guest_job> root(unsigned node, const std::string& text) {
        return finished(run->node(node).run(text, true), text);
    }

    // Data goes from one node to the other and is right.
    void expect_transfer(unsigned from, unsigned to) {
        const auto server = run->node(to).run("vmmc_lat --json", false);
        const auto client = run->node(from).run(
            fmt::format("vmmc_lat --json -s 9000 -n 20 {}", to), false);
        finished(client, "the client");
        ASSERT_EQ(client->status, 0) << client->err;
        finished(server, "the server");
        ASSERT_EQ(server->status, 0) << server->err;
        const json said = parse_tool_output(client->out);
        EXPECT_TRUE(all_verified(said["results"])) << client->out;
        EXPECT_TRUE(parse_tool_output(server->out).value("ok", false));
    }

    // The kernels have nothing to complain about, the checker neither.
    void expect_no_complaint(unsigned node) {
        const auto log = root(node,
                              "dmesg | grep -E "
                              "'BUG|WARNING|Oops|given up|Call Trace'");
        EXPECT_EQ(log->out, "");
        EXPECT_EQ(log->status, 1);
    }

    settings where;
    std::unique_ptr<session> run;
};

TEST_F(two_guests, reboot_of_one_leaves_the_other_up) {
    expect_transfer(0, 1);
    const auto marker = run->node(0).run("sleep 1000", false);
    run->node(1).run("reboot", true);
    run->wait([&] { return run->node(1).boots() == 2; }, TIMEOUT_S,
              "node1 did not come up again");
    EXPECT_FALSE(marker->done);  // node 0 was not disturbed
    expect_transfer(0, 1);
    expect_transfer(1, 0);
    EXPECT_EQ(run->node(0).boots(), 1U);
    expect_no_complaint(0);
    expect_no_complaint(1);
}

TEST_F(two_guests, killed_guest_comes_back_to_a_fresh_card) {
    expect_transfer(1, 0);
    run->kill_guest(1);
    EXPECT_EQ(root(0, "true")->status, 0);
    run->restart_guest(1);
    run->wait_for_guests();
    const auto info = root(1, "vmmc_info && ls -l /dev/prawn0");
    EXPECT_EQ(info->status, 0) << info->err;
    expect_transfer(0, 1);
    expect_transfer(1, 0);
    expect_no_complaint(0);
}

TEST_F(two_guests, process_killed_in_mid_transfer) {
    // Either side, while megabytes are under way.
    for (unsigned victim : {0U, 1U, 0U}) {
        const auto server = run->node(1).run("vmmc_bw --json -t 20", false);
        const auto client =
            run->node(0).run("vmmc_bw --json -t 20 -s 1M -n 1000000 1", false);
        let_pass(3);
        EXPECT_FALSE(client->done) << client->err;
        EXPECT_FALSE(server->done) << server->err;
        const auto& killed = victim == 0 ? client : server;
        const auto& other = victim == 0 ? server : client;
        run->node(victim).kill(killed, SIGKILL);
        finished(killed, "who was killed");
        EXPECT_EQ(killed->status, 128 + SIGKILL);
        // The other one is told, and does not wait for ever.
        finished(other, "the one left");
        EXPECT_EQ(other->status, 1) << other->err;
        EXPECT_NE(other->err, "");
        expect_transfer(0, 1);
    }
    expect_no_complaint(0);
    expect_no_complaint(1);
}

TEST_F(two_guests, driver_lets_go_and_takes_again) {
    const auto rebind =
        root(1,
             "cd /sys/bus/pci/drivers/prawn && d=$(echo 0000:*) && "
             "for i in 1 2 3; do echo $d > unbind && "
             "[ ! -e /dev/prawn0 ] && echo $d > bind || exit 1; done; "
             "ls -l /dev/prawn0");
    EXPECT_EQ(rebind->status, 0) << rebind->err;
    // As a udev rule would have it, also for a card that comes later.
    EXPECT_NE(rebind->out.find("crw-rw----"), std::string::npos);
    EXPECT_NE(rebind->out.find("prawn"), std::string::npos);
    expect_transfer(0, 1);
    expect_transfer(1, 0);
    expect_no_complaint(1);
}

TEST_F(two_guests, idle_model_uses_no_cpu) {
    const auto ticks = [&] {
        std::ifstream stat(fmt::format("/proc/{}/stat", run->model_pid()));
        std::string text;
        std::getline(stat, text);
        std::istringstream fields(text.substr(text.rfind(')') + 1));
        std::string word;
        unsigned long user = 0;
        unsigned long system = 0;
        for (int i = 0; i < 11; i++)
            fields >> word;
        fields >> user >> system;
        return user + system;
    };
    let_pass(1);
    const unsigned long before = ticks();
    let_pass(4);
    const auto used = static_cast<double>(ticks() - before) /
                      static_cast<double>(sysconf(_SC_CLK_TCK));
    EXPECT_LT(used, 0.2) << "seconds of CPU in four seconds of idleness";
}

TEST_F(two_guests, dead_model_is_named) {
    kill(run->model_pid(), SIGKILL);
    try {
        run->wait([] { return false; }, 30, "the end");
        FAIL() << "nobody noticed";
    } catch (const failure& error) {
        EXPECT_EQ(error.code(), EXIT_PART_DIED);
        EXPECT_NE(std::string(error.what())
                      .find("the model (prawn-sim) was killed by signal 9"),
                  std::string::npos)
            << error.what();
    }
}

}  // namespace
}  // namespace prawn::launch

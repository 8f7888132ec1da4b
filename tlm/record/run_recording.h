// SPDX-License-Identifier: Apache-2.0
// The recording of one run: its file, and a recorder for each node.

#ifndef PRAWN_RECORD_RUN_RECORDING_H
#define PRAWN_RECORD_RUN_RECORDING_H

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/host_bus.h"
#include "record/recorder.h"
#include "record/recording.h"
#include "sim/config.h"

namespace prawn {

// A host and a card's bus, on all of their connections; with a recorder
// between them if there is one.
template <typename HOST>
void connect(HOST& host, host_bus& bus, recorder* between) {
    if (!between) {
        host.bar_out.bind(bus.bar_in);
        bus.dma_out.bind(host.dma_in);
        bus.interrupt_out.bind(host.interrupt_in);
        host.control_out.bind(bus.control_in);
        return;
    }
    host.bar_out.bind(between->bar_in);
    between->bar_out.bind(bus.bar_in);
    bus.dma_out.bind(between->dma_in);
    between->dma_out.bind(host.dma_in);
    bus.interrupt_out.bind(between->interrupt_in);
    between->interrupt_out.bind(host.interrupt_in);
    host.control_out.bind(between->control_in);
    between->control_out.bind(bus.control_in);
    host.map_out.bind(between->map_in);
}

// What a recording of a run with this configuration begins with. Throws
// std::runtime_error if its profile cannot be read.
recording_header header_of_run(const sim_config& config);

class run_recording
{
public:
    // Makes recorders "recorder0" and so on where the module hierarchy stands.
    // Throws std::runtime_error with one line if the file cannot be made.
    run_recording(const std::string& path, const sim_config& config);

    recorder& at(unsigned node) { return *m_recorders.at(node); }

    // Called after each record, on the SystemC thread.
    std::function<void()> written;
    // What has been recorded is in the file.
    void flush() { m_file.flush(); }
    // The run is over: nothing follows. Without it the recording is one of a
    // run that was killed.
    void finish();

private:
    recording_writer m_file;
    std::vector<std::unique_ptr<recorder>> m_recorders;
};

}  // namespace prawn

#endif

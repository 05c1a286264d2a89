#include "qinglong_sched/scheduling/wakeup.hpp"

namespace qinglong::scheduling {

Wake wake_schedulers = nullptr;
volatile sig_atomic_t stop_flag = 0;

namespace {

bool requested = false; // in the current top-level transaction
bool registered = false;

void on_transaction_end(XactEvent event, void*) {
    switch (event) {
    case XACT_EVENT_COMMIT:
        if (requested && wake_schedulers != nullptr)
            wake_schedulers(MyDatabaseId);
        requested = false;
        break;
    case XACT_EVENT_ABORT:
    case XACT_EVENT_PREPARE:
        requested = false;
        break;
    default:
        break;
    }
}

} // namespace

void request_wakeup() {
    if (!registered) {
        RegisterXactCallback(on_transaction_end, nullptr);
        registered = true;
    }
    requested = true;
}

bool stop_requested() {
    return stop_flag != 0;
}

} // namespace qinglong::scheduling

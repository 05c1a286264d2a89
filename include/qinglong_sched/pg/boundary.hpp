#pragma once
// The two doors between longjmp and exceptions: pgcall() lets C++ call PostgreSQL, boundary() lets PostgreSQL
// call C++. A function that owns anything with a destructor calls PostgreSQL only through pgcall().

#include "qinglong_sched/core/specs.hpp"
#include "qinglong_sched/pg/errors.hpp"

namespace qinglong::pg {

// Runs f, which may ereport; such an error becomes a PgError. Captures by reference, returns trivial values.
template<typename F>
[[gnu::noinline]] auto pgcall(F f) {
    using Result = decltype(f());
    static_assert(std::is_trivially_copyable_v<F>, "a skipped destructor would leak");
    MemoryContext const context = CurrentMemoryContext;
    sigjmp_buf* const saved_stack = PG_exception_stack;
    ErrorContextCallback* const saved_callbacks = error_context_stack;
    sigjmp_buf here;
    if (sigsetjmp(here, 0) == 0) {
        PG_exception_stack = &here;
        if constexpr (std::is_void_v<Result>) {
            f();
            PG_exception_stack = saved_stack;
            return;
        } else {
            static_assert(std::is_trivially_destructible_v<Result>, "a skipped destructor would leak");
            Result const result = f();
            PG_exception_stack = saved_stack;
            return result;
        }
    }
    PG_exception_stack = saved_stack;
    error_context_stack = saved_callbacks;
    MemoryContextSwitchTo(context);
    ErrorData* const data = CopyErrorData();
    FlushErrorState();
    throw PgError{data};
}

// What boundary() carries out of its handlers: fixed buffers, because nothing may allocate or ereport in a
// handler.
struct PendingError {
    ErrorData* data = nullptr;
    int sqlstate = 0;
    char message[1024] = {};
    char detail[1024] = {};
    char hint[1024] = {};

    void set(int state, std::string_view text, std::string_view details = {},
             std::string_view advice = {}) noexcept;
    void set_current_exception() noexcept;
    ErrorData* to_error_data() const;
    [[noreturn]] void raise() const;
};

// Runs body, which may throw; what it throws becomes an ereport after the handler has ended.
template<typename F>
auto boundary(F body) -> decltype(body()) {
    static_assert(std::is_trivially_destructible_v<F>, "a skipped destructor would leak");
    sigjmp_buf* const saved_stack = PG_exception_stack;
    ErrorContextCallback* const saved_callbacks = error_context_stack;
    PendingError pending;
    try {
        return body();
    } catch (...) {
        pending.set_current_exception();
    }
    PG_exception_stack = saved_stack;
    error_context_stack = saved_callbacks;
    pending.raise();
}

void begin_subtransaction();
void release_subtransaction();
void rollback_subtransaction();
// One of our own errors as data, palloc'd in the current context.
PgError to_pg_error(const SqlError& error);
bool is_cancellation(const PgError& error);

// The place where an error may end: rolls the body's work back and hands the error over as data. Cancellation
// passes through. Open the SPI session outside, so that the error's data outlives the subtransaction.
// Answers whether the body succeeded.
template<typename F>
bool in_subtransaction(F body, PgError& failure) {
    MemoryContext const context = CurrentMemoryContext;
    ResourceOwner const owner = CurrentResourceOwner;
    pgcall([] { begin_subtransaction(); });
    MemoryContextSwitchTo(context);
    bool failed = false;
    PendingError pending;
    try {
        body();
    } catch (...) {
        pending.set_current_exception();
        failed = true;
    }
    MemoryContextSwitchTo(context);
    if (failed)
        pgcall([] { rollback_subtransaction(); });
    else
        pgcall([] { release_subtransaction(); });
    MemoryContextSwitchTo(context);
    CurrentResourceOwner = owner;
    if (failed) {
        failure = PgError{pgcall([&] { return pending.to_error_data(); })};
        if (is_cancellation(failure))
            throw failure;
    }
    return !failed;
}

} // namespace qinglong::pg

// Declares a SQL-callable function whose body is C++: an entry point and a boundary are the same act.
#define QL_FUNCTION(name)                                                                                    \
    static Datum name##_body(FunctionCallInfo fcinfo);                                                       \
    extern "C" {                                                                                             \
    QL_EXPORT extern const Pg_finfo_record* pg_finfo_##name(void);                                           \
    QL_EXPORT extern Datum name(PG_FUNCTION_ARGS);                                                           \
    extern const Pg_finfo_record* pg_finfo_##name(void) {                                                    \
        static const Pg_finfo_record record = {1};                                                           \
        return &record;                                                                                      \
    }                                                                                                        \
    Datum name(PG_FUNCTION_ARGS) {                                                                           \
        return qinglong::pg::boundary([&]() -> Datum { return name##_body(fcinfo); });                       \
    }                                                                                                        \
    }                                                                                                        \
    static Datum name##_body([[maybe_unused]] FunctionCallInfo fcinfo)

#include "qinglong_sched/pg/boundary.hpp"

namespace qinglong::pg {

namespace {

void copy_text(char* to, std::size_t size, std::string_view from) noexcept {
    // Never cut a UTF-8 character in half.
    std::size_t length = from.size() < size - 1 ? from.size() : size - 1;
    if (length < from.size())
        while (length > 0 && (static_cast<unsigned char>(from[length]) & 0xC0U) == 0x80U)
            --length;
    std::memcpy(to, from.data(), length);
    to[length] = '\0';
}

} // namespace

void PendingError::set(int state, std::string_view text, std::string_view details,
                       std::string_view advice) noexcept {
    sqlstate = state;
    copy_text(message, sizeof message, text);
    copy_text(detail, sizeof detail, details);
    copy_text(hint, sizeof hint, advice);
}

void PendingError::set_current_exception() noexcept {
    try {
        throw;
    } catch (const PgError& error) {
        data = error.data;
    } catch (const SqlError& error) {
        set(error.sqlstate, error.message, error.detail, error.hint);
    } catch (const core::InvalidSpec& error) {
        set(ERRCODE_INVALID_PARAMETER_VALUE, error.what(), {}, error.hint);
        char where[sizeof detail];
        const int length = snprintf(where, sizeof where, "At %s.", error.path.c_str());
        if (length > 0)
            copy_text(detail, sizeof detail, where);
    } catch (const std::bad_alloc&) {
        set(ERRCODE_OUT_OF_MEMORY, "out of memory");
    } catch (const std::exception& error) {
        set(ERRCODE_INTERNAL_ERROR, error.what());
    } catch (...) {
        set(ERRCODE_INTERNAL_ERROR, "unknown C++ exception");
    }
}

ErrorData* PendingError::to_error_data() const {
    if (data != nullptr)
        return data;
    auto* const made = static_cast<ErrorData*>(palloc0(sizeof(ErrorData)));
    made->elevel = ERROR;
    made->output_to_server = true;
    made->output_to_client = true;
    made->sqlerrcode = sqlstate;
    made->message = pstrdup(message);
    if (detail[0] != '\0')
        made->detail = pstrdup(detail);
    if (hint[0] != '\0')
        made->hint = pstrdup(hint);
    made->assoc_context = CurrentMemoryContext;
    return made;
}

void PendingError::raise() const {
    if (data != nullptr)
        ReThrowError(data);
    ereport(ERROR, (errcode(sqlstate), errmsg_internal("%s", message),
                    detail[0] != '\0' ? errdetail_internal("%s", detail) : 0,
                    hint[0] != '\0' ? errhint("%s", hint) : 0));
    pg_unreachable();
}

void begin_subtransaction() {
    BeginInternalSubTransaction(nullptr);
}
void release_subtransaction() {
    ReleaseCurrentSubTransaction();
}
void rollback_subtransaction() {
    RollbackAndReleaseCurrentSubTransaction();
}

PgError to_pg_error(const SqlError& error) {
    PendingError pending;
    pending.set(error.sqlstate, error.message, error.detail, error.hint);
    return PgError{pgcall([&] { return pending.to_error_data(); })};
}

bool is_cancellation(const PgError& error) {
    return error.data->sqlerrcode == ERRCODE_QUERY_CANCELED;
}

} // namespace qinglong::pg
